//! `windlass incident`: jobs and processes that wait for a person.

use std::collections::HashSet;

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::table;
use crate::rest::{Rest, shown, text};
use crate::units::seen_from_now;

/// Asked for at once.
const PAGE: u32 = 1_000;
/// Said where the server keeps no history.
const UNSEARCHED: &str = "\nincidents of processes without a job cannot be searched on this server";
/// Of a message in a list.
const MESSAGE_CHARS_MAX: usize = 60;

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentCommand {
    /// List incidents
    List {
        /// Of jobs of this queue only
        #[arg(long, default_value = "", hide_default_value = true)]
        queue: String,
    },
    /// Let the job try again, or the process go on
    Resolve {
        /// Key of the incident, or of its job
        key: u64,
        /// Retries that the job has from now on; one that has none left needs some
        #[arg(long, value_name = "N")]
        retries: Option<u32>,
    },
}

pub(crate) async fn run(online: &Online, command: IncidentCommand) -> Result<(), Failure> {
    match command {
        IncidentCommand::List { queue } => list(online, queue).await,
        IncidentCommand::Resolve { key, retries } => {
            let resolved = online.client.resolve_incident(key, retries).await;
            resolved.map_err(|error| {
                Failure::from(error).hint_if_refused(
                    "`windlass incident list` shows what waits; a job without retries is given some \
                     with --retries",
                )
            })?;
            let value = json!({ "key": json::key(key), "resolved": true });
            online.out.show(&value, || format!("{key} is resolved"))
        }
    }
}

/// Those of jobs are asked for over the native API, those of processes over the one for processes:
/// there they are known by element. An incident of a job that belongs to a process is in both.
async fn list(online: &Online, queue: String) -> Result<(), Failure> {
    let searched = if queue.is_empty() { of_processes(online).await } else { Ok(Vec::new()) };
    let (of_processes, unsearched, has_processes) = match searched {
        Ok(found) => (found, false, true),
        Err(failure) if failure.cannot_search() => (Vec::new(), true, !failure.is_unknown_call()),
        Err(failure) => return Err(failure),
    };
    let known: HashSet<&str> =
        of_processes.iter().map(|found| text(found, "incidentKey")).collect();
    let mut jobs = of_jobs(online, queue).await?;
    jobs.retain(|job| {
        let key = job.incident.as_ref().map(|incident| incident.key.to_string());
        !key.is_some_and(|key| known.contains(key.as_str()))
    });
    let of_job = |job: &v1::JobView| json!({ "incident": job.incident.as_ref().map(json::incident), "job": json::job(job) });
    let mut all: Vec<Value> = jobs.iter().map(of_job).collect();
    all.extend(
        of_processes.iter().map(|found| json!({ "incident": head(found), "process": found })),
    );
    let value = json!({ "incidents": all, "processes_searched": !unsearched });
    online.out.show(&value, || {
        let note = if unsearched && has_processes { UNSEARCHED } else { "" };
        if all.is_empty() {
            return format!("no incidents{note}");
        }
        let mut rows: Vec<Vec<String>> = jobs.iter().map(job_row).collect();
        rows.extend(of_processes.iter().map(process_row));
        let table = table(&["incident", "of", "where", "kind", "since", "message"], &rows);
        format!("{table}\n`windlass incident resolve KEY` lets a job or a process go on{note}")
    })
}

async fn of_jobs(online: &Online, queue: String) -> Result<Vec<v1::JobView>, Failure> {
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
    Ok(jobs)
}

async fn of_processes(online: &Online) -> Result<Vec<Value>, Failure> {
    let mut filter = json!({ "state": "ACTIVE" });
    if !online.tenant.is_empty() {
        filter["tenantId"] = json!(online.tenant);
    }
    let oldest_first = json!([{ "field": "creationTime", "order": "ASC" }]);
    Rest::new(online).search("incidents", &filter, &oldest_first, usize::MAX).await
}

/// What both sorts have, by the same names.
fn head(found: &Value) -> Value {
    json!({
        "key": text(found, "incidentKey"),
        "kind": kind(found),
        "code": "",
        "since": text(found, "creationTime"),
    })
}

fn kind(found: &Value) -> String {
    text(found, "errorType").to_lowercase().replace('_', "-")
}

fn job_row(job: &v1::JobView) -> Vec<String> {
    let incident = job.incident.clone().unwrap_or_default();
    vec![
        incident.key.to_string(),
        format!("job {}", job.key),
        job.queue.clone(),
        incident.kind,
        seen_from_now(incident.since_ms),
        start(&job.message),
    ]
}

fn process_row(found: &Value) -> Vec<String> {
    vec![
        shown(found, "incidentKey"),
        format!("instance {}", text(found, "processInstanceKey")),
        format!("{} / {}", text(found, "processDefinitionId"), text(found, "elementId")),
        kind(found),
        text(found, "creationTime").to_owned(),
        start(text(found, "errorMessage")),
    ]
}

fn start(message: &str) -> String {
    message.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS_MAX).collect()
}
