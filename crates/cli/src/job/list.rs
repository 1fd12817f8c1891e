//! `windlass job list`.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::table;
use crate::show::state;
use crate::units::seen_from_now;

/// Asked for at once.
const PAGE_MAX: u32 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this queue only
    #[arg(long, default_value = "", hide_default_value = true)]
    queue: String,
    /// In this state; otherwise all that have not ended
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Of this group only
    #[arg(long, default_value = "", hide_default_value = true)]
    group: String,
    /// At most so many
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u32,
    /// Where the last list ended
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    cursor: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    Scheduled,
    Ready,
    Active,
    Backoff,
    Incident,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    fn wire(self) -> v1::JobState {
        match self {
            Self::Scheduled => v1::JobState::Scheduled,
            Self::Ready => v1::JobState::Ready,
            Self::Active => v1::JobState::Active,
            Self::Backoff => v1::JobState::Backoff,
            Self::Incident => v1::JobState::Incident,
            Self::Completed => v1::JobState::Completed,
            Self::Failed => v1::JobState::Failed,
            Self::Cancelled => v1::JobState::Cancelled,
        }
    }
}

pub(crate) async fn run(online: &Online, args: ListArgs) -> Result<(), Failure> {
    let mut request = v1::ListJobsRequest {
        tenant: online.tenant.clone(),
        queue: args.queue,
        state: args.state.map_or(v1::JobState::Unspecified, State::wire).into(),
        group: args.group,
        cursor: args.cursor,
        limit: 0,
    };
    let mut jobs = Vec::new();
    loop {
        let left = args.limit.saturating_sub(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        request.limit = left.min(PAGE_MAX);
        let page = online.client.list_jobs(request.clone()).await?;
        jobs.extend(page.jobs);
        request.cursor = page.next_cursor;
        if request.cursor == 0 {
            break;
        }
    }
    let listed: Vec<Value> = jobs.iter().map(json::job).collect();
    let value = json!({ "jobs": listed, "next_cursor": request.cursor });
    online.out.show(&value, || {
        if jobs.is_empty() {
            return "no jobs".to_owned();
        }
        let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
        let head =
            ["key", "queue", "group", "state", "since", "attempt", "retries", "worker", "message"];
        let mut text = table(&head, &rows);
        if request.cursor != 0 {
            text.push_str(&format!(
                "\nthere are more: --cursor {}, or a larger --limit",
                request.cursor
            ));
        }
        text
    })
}

fn row(job: &v1::JobView) -> Vec<String> {
    let message = job.message.lines().next().unwrap_or_default();
    vec![
        job.key.to_string(),
        job.queue.clone(),
        job.group.clone(),
        state(job.state()).to_owned(),
        seen_from_now(job.time_ms),
        job.attempt.to_string(),
        job.retries.to_string(),
        job.worker.clone(),
        message.chars().take(50).collect(),
    ]
}
