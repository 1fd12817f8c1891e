//! `windlass job retry`.

use clap::Args;
use serde_json::json;
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::show::state;
use crate::units::moment;

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Key of the job
    key: u64,
    /// Retries that it has from now on
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
}

pub(crate) async fn run(online: &Online, args: &RetryArgs) -> Result<(), Failure> {
    let key = args.key;
    let job = online.client.job(key).await?;
    match job.state() {
        v1::JobState::Incident => {
            online.client.resolve_incident(key, args.retries).await?;
            let value = json!({ "key": key, "copied": false });
            online.out.show(&value, || format!("job {key} is ready again"))
        }
        v1::JobState::Failed | v1::JobState::Cancelled | v1::JobState::Completed => {
            copy(online, job, args.retries).await
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

/// A job that has ended stays ended; a new one does its work. A unique key is taken along, so that
/// two people who retry at once make one job.
async fn copy(online: &Online, job: v1::JobView, retries: Option<u32>) -> Result<(), Failure> {
    let mut options = job.options;
    if let Some(options) = &mut options {
        options.request_id.clear();
    }
    let again = v1::NewJob {
        tenant: job.tenant,
        queue: job.queue,
        r#type: job.r#type,
        group: job.group,
        priority: job.priority,
        retries,
        payload: job.payload,
        options,
        ..v1::NewJob::default()
    };
    let created = online.client.create_job(again).await?;
    let value = json!({ "key": created.key, "copied": true, "copy_of": job.key });
    online
        .out
        .show(&value, || format!("job {} does the work of job {} again", created.key, job.key))
}
