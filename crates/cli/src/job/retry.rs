//! `windlass job retry`.

use clap::Args;
use serde_json::json;
use windlass_worker::v1;

use super::create::input;
use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::show::state;
use crate::units::moment;

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Key of the job
    key: u64,
    /// Retries that it has from now on
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// For a job that has ended: the payload of its copy; - reads standard input, @FILE a file
    #[arg(long, value_name = "PAYLOAD")]
    payload: Option<String>,
}

pub(crate) async fn run(online: &Online, args: &RetryArgs) -> Result<(), Failure> {
    let key = args.key;
    let job = online.client.job(key).await?;
    match job.state() {
        v1::JobState::Incident => {
            online.client.resolve_incident(key, args.retries).await?;
            let value = json!({ "key": json::key(key), "copied": false });
            online.out.show(&value, || format!("job {key} is ready again"))
        }
        v1::JobState::Failed | v1::JobState::Cancelled | v1::JobState::Completed => {
            copy(online, job, args).await
        }
        v1::JobState::Backoff | v1::JobState::Scheduled => {
            Err(Failure::new(format!("job {key} runs by itself at {}", moment(job.time_ms))))
        }
        v1::JobState::Ready | v1::JobState::Active | v1::JobState::Unspecified => {
            let state = state(job.state());
            Err(Failure::new(format!("job {key} is {state}: there is nothing to retry"))
                .hint(format!("`windlass job why {key}` says what it waits for")))
        }
    }
}

/// A job that has ended stays ended; a new one does its work. The engine does not keep the payload of
/// a job that has ended, nor its options: whoever copies one must bring the payload.
async fn copy(online: &Online, job: v1::JobView, args: &RetryArgs) -> Result<(), Failure> {
    let payload = match &args.payload {
        Some(payload) => input(payload)?,
        None if !job.payload.is_empty() => job.payload,
        None => {
            let message =
                format!("job {} has ended, and the payload of ended jobs is not kept", job.key);
            return Err(Failure::new(message).hint(
                "give it with --payload, or use `windlass job create`, which has all options",
            ));
        }
    };
    let again = v1::NewJob {
        tenant: job.tenant,
        queue: job.queue,
        r#type: job.r#type,
        group: job.group,
        priority: job.priority,
        retries: args.retries,
        payload,
        options: job.options,
        ..v1::NewJob::default()
    };
    let created = online.client.create_job(again).await?;
    let value = json!({
        "key": json::key(created.key),
        "copied": true,
        "copy_of": json::key(job.key),
    });
    online
        .out
        .show(&value, || format!("job {} does the work of job {} again", created.key, job.key))
}
