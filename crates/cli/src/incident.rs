//! `windlass incident`: jobs that wait for a person.

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::output::table;
use crate::show::{incident_json, job_json};
use crate::units::seen_from_now;

/// Asked for at once.
const PAGE: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentCommand {
    /// List incidents
    List {
        /// Of this queue only
        #[arg(long, default_value = "", hide_default_value = true)]
        queue: String,
    },
    /// Let the job try again
    Resolve {
        /// Key of the incident or of its job
        key: u64,
        /// Retries that the job has from now on
        #[arg(long, value_name = "N")]
        retries: Option<u32>,
    },
}

pub(crate) async fn run(online: &Online, command: IncidentCommand) -> Result<(), Failure> {
    match command {
        IncidentCommand::List { queue } => list(online, queue).await,
        IncidentCommand::Resolve { key, retries } => {
            online.client.resolve_incident(key, retries).await?;
            let value = json!({ "key": key, "resolved": true });
            online.out.show(&value, || format!("{key} is resolved; the job is ready"))
        }
    }
}

async fn list(online: &Online, queue: String) -> Result<(), Failure> {
    let mut request = v1::ListJobsRequest {
        tenant: online.tenant.clone(),
        queue,
        state: v1::JobState::Incident.into(),
        limit: PAGE,
        ..v1::ListJobsRequest::default()
    };
    let mut jobs = Vec::new();
    loop {
        let page = online.client.list_jobs(request.clone()).await?;
        jobs.extend(page.jobs);
        request.cursor = page.next_cursor;
        if request.cursor == 0 {
            break;
        }
    }
    // A list shows heads; what an incident is about stands with its job.
    for job in jobs.iter_mut().filter(|job| job.incident.is_none()) {
        *job = online.client.job(job.key).await?;
    }
    let entry = |job: &v1::JobView| json!({ "incident": job.incident.as_ref().map(incident_json), "job": job_json(job) });
    let value = json!({ "incidents": jobs.iter().map(entry).collect::<Vec<Value>>() });
    online.out.show(&value, || {
        if jobs.is_empty() {
            return "no incidents".to_owned();
        }
        let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
        let table = table(&["incident", "job", "queue", "kind", "since", "message"], &rows);
        format!("{table}\n`windlass incident resolve KEY` lets a job try again")
    })
}

fn row(job: &v1::JobView) -> Vec<String> {
    let incident = job.incident.clone().unwrap_or_default();
    let message = job.message.lines().next().unwrap_or_default();
    vec![
        incident.key.to_string(),
        job.key.to_string(),
        job.queue.clone(),
        incident.kind,
        seen_from_now(incident.since_ms),
        message.chars().take(60).collect(),
    ]
}
