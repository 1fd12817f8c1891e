//! The list of jobs: live ones from the engine, ended ones from what it remembers of each queue. Both are
//! read whole, within a bound, so that filters and orders are exact.

use std::collections::HashMap;

use axum::extract::State;
use serde_json::Value;
use windlass_gateway::request::{JobFilter, JobView};
use windlass_record::command::QueueName;

use crate::answer::{Shown, paged};
use crate::document::Connection;
use crate::extract::{Page, Params};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::job::{JobStatus, SYNC_QUEUE, attempts, shown};
use crate::limit::JOBS_MAX;
use crate::token::Caller;

/// Jobs that are read at once.
const PAGE: usize = 1_000;

/// Pages that are read at most: those of a partition with many jobs of others are empty.
const PAGES_MAX: usize = 10_000;

/// States of jobs that have ended; `None` is all the others.
const STATES: [Option<&str>; 4] = [None, Some("completed"), Some("failed"), Some("cancelled")];

/// Where jobs of a status are, as [`JobStatus::of`] has it.
fn states(status: Option<&str>) -> &'static [Option<&'static str>] {
    match status {
        None => &STATES,
        Some("succeeded") => &[Some("completed")],
        Some("failed") => &[Some("failed")],
        Some("cancelled") => &[Some("cancelled")],
        Some(_) => &[None],
    }
}

/// Jobs of syncs, each once, that pass.
async fn jobs(
    face: &Face,
    tenant: &str,
    workspace: Option<&str>,
    states: &[Option<&'static str>],
    passes: impl Fn(&JobView) -> bool,
) -> Answered<Vec<JobView>> {
    let mut found: HashMap<u64, JobView> = HashMap::new();
    for state in states.iter().copied() {
        let mut filter = JobFilter {
            tenant: Some(tenant.into()),
            queue: Some(SYNC_QUEUE.into()),
            group: workspace.map(Box::from),
            state,
            cursor: 0,
            limit: PAGE,
        };
        for _ in 0..PAGES_MAX {
            let (jobs, next) = face.gateway.jobs(filter.clone()).await?;
            // One that ended meanwhile is found again, as it is now.
            let passing = jobs.into_iter().filter(|job| passes(job));
            found.extend(passing.map(|job| (job.key.raw(), job)));
            if next == 0 || found.len() >= JOBS_MAX {
                break;
            }
            filter.cursor = next;
        }
    }
    Ok(found.into_values().collect())
}

/// The live job of a connection: the one that holds its key.
pub(crate) async fn live(
    face: &Face,
    tenant: &str,
    connection: &str,
) -> Answered<Option<Box<JobView>>> {
    let queue = QueueName { tenant: tenant.into(), queue: SYNC_QUEUE.into() };
    let Some(holder) = face.gateway.holder(queue, connection).await? else { return Ok(None) };
    Ok(face.job(holder).await?.filter(|job| job.outcome.is_none()))
}

/// Jobs of a connection that pass: the live one is known by its key, whatever else the partition has.
async fn of_connection(
    face: &Face,
    tenant: &str,
    connection: &str,
    workspace: Option<&str>,
    states: &[Option<&'static str>],
    passes: impl Fn(&JobView) -> bool,
) -> Answered<Vec<JobView>> {
    // Before those that ended: one that ends meanwhile is among them.
    let live = if states.contains(&None) { live(face, tenant, connection).await? } else { None };
    let ended: Vec<_> = states.iter().copied().filter(Option::is_some).collect();
    let mut found = jobs(face, tenant, workspace, &ended, &passes).await?;
    if let Some(live) =
        live.filter(|live| passes(live) && found.iter().all(|job| job.key != live.key))
    {
        found.push(*live);
    }
    Ok(found)
}

/// When the newest job of a connection was made, live or remembered.
pub(crate) async fn newest_ms(
    face: &Face,
    tenant: &str,
    connection: &Connection,
) -> Answered<Option<u64>> {
    let [_, ended @ ..] = STATES;
    let id = &*connection.connection_id;
    // It has one at a time.
    if let Some(live) = live(face, tenant, id).await? {
        return Ok(Some(live.created_ms));
    }
    let workspace = Some(connection.workspace_id.as_str());
    let found = jobs(face, tenant, workspace, &ended, |job| *job.unique_key == *id).await?;
    Ok(found.iter().map(|job| job.created_ms).max())
}

/// What a list is asked for.
struct Filter<'p> {
    connection: Option<&'p str>,
    job_type: Option<&'p str>,
    workspaces: Vec<&'p str>,
    status: Option<&'p str>,
    created: Span,
    updated: Span,
}

/// From a time to a time, both with it.
#[derive(Clone, Copy)]
struct Span(Option<u64>, Option<u64>);

impl Span {
    fn has(self, ms: u64) -> bool {
        self.0.is_none_or(|start| start <= ms) && self.1.is_none_or(|end| ms <= end)
    }

    fn is_all(self) -> bool {
        self.0.is_none() && self.1.is_none()
    }
}

impl<'p> Filter<'p> {
    fn read(params: &'p Params) -> Answered<Filter<'p>> {
        let status = params.find("status");
        let job_type = params.find("jobType");
        one_of("status", status, &STATUSES)?;
        one_of("jobType", job_type, &["sync", "reset", "refresh", "clear"])?;
        let span =
            |start, end| Ok::<Span, Failure>(Span(params.moment(start)?, params.moment(end)?));
        Ok(Filter {
            connection: params.find("connectionId"),
            job_type,
            workspaces: params.all("workspaceIds"),
            status,
            created: span("createdAtStart", "createdAtEnd")?,
            updated: span("updatedAtStart", "updatedAtEnd")?,
        })
    }

    fn passes(&self, job: &JobView) -> bool {
        self.connection.is_none_or(|wanted| *wanted == *job.unique_key)
            && self.job_type.is_none_or(|wanted| *wanted == *job.job_type)
            && (self.workspaces.is_empty() || self.workspaces.contains(&&*job.group))
            && self.status.is_none_or(|wanted| wanted == JobStatus::of(job).name())
            && self.created.has(job.created_ms)
    }
}

/// What can be asked for. Nothing is ever `queued` here.
const STATUSES: [&str; 7] =
    ["pending", "queued", "running", "incomplete", "failed", "succeeded", "cancelled"];

fn one_of(name: &str, given: Option<&str>, known: &[&str]) -> Answered<()> {
    match given {
        Some(given) if !known.contains(&given) => {
            let known = known.join(", ");
            Err(Failure::invalid(format!("The parameter {name} must be one of {known}.")))
        }
        Some(_) | None => Ok(()),
    }
}

/// By which time, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Created { descending: bool },
    Updated { descending: bool },
}

fn order(given: Option<&str>) -> Answered<Order> {
    let wrong = || {
        let detail =
            "The parameter orderBy must be createdAt or updatedAt, with |ASC or |DESC behind it.";
        Failure::invalid(detail)
    };
    let given = given.unwrap_or("createdAt|DESC");
    let (field, way) = given.split_once('|').unwrap_or((given, "DESC"));
    let descending = match way.to_ascii_uppercase().as_str() {
        "DESC" => true,
        "ASC" => false,
        _ => return Err(wrong()),
    };
    match field {
        "createdAt" => Ok(Order::Created { descending }),
        "updatedAt" => Ok(Order::Updated { descending }),
        _ => Err(wrong()),
    }
}

pub(crate) async fn list(
    State(face): State<Face>,
    caller: Caller,
    params: Params,
    page: Page,
) -> Answered<Shown<Value>> {
    let filter = Filter::read(&params)?;
    let order = order(params.find("orderBy"))?;
    let workspace = match filter.workspaces.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let (tenant, states) = (&*caller.tenant, states(filter.status));
    let passes = |job: &JobView| filter.passes(job);
    let found = match filter.connection {
        Some(id) => of_connection(&face, tenant, id, workspace, states, passes).await?,
        None => jobs(&face, tenant, workspace, states, passes).await?,
    };
    let by_update = matches!(order, Order::Updated { .. });
    let mut timed = Vec::with_capacity(found.len());
    for job in found {
        let updated_ms =
            if by_update || !filter.updated.is_all() { updated_ms(&face, &job).await? } else { 0 };
        if filter.updated.is_all() || filter.updated.has(updated_ms) {
            timed.push((updated_ms, job));
        }
    }
    // Keys grow in order of creation.
    timed.sort_by_key(|(updated_ms, job)| match order {
        Order::Created { .. } => (0, job.key),
        Order::Updated { .. } => (*updated_ms, job.key),
    });
    let (Order::Created { descending } | Order::Updated { descending }) = order;
    if descending {
        timed.reverse();
    }
    let (timed, more) = page.part(timed);
    let (mut data, now_ms) = (Vec::new(), face.now_ms().await?);
    for (_, job) in timed {
        data.push(shown(&face, &job, now_ms).await?);
    }
    Ok(paged(data, more, &page))
}

/// When something last happened to a job.
async fn updated_ms(face: &Face, job: &JobView) -> Answered<u64> {
    if job.outcome.is_some() {
        return Ok(job.time_ms);
    }
    let attempts = attempts(face, job).await?;
    let newest = attempts.iter().map(|attempt| attempt.updated_at).max();
    Ok(newest.unwrap_or(0).max(job.created_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() {
        assert_eq!(order(None).unwrap(), Order::Created { descending: true });
        assert_eq!(order(Some("updatedAt|ASC")).unwrap(), Order::Updated { descending: false });
        assert_eq!(order(Some("createdAt")).unwrap(), Order::Created { descending: true });
        for wrong in ["size|ASC", "createdAt|UP", "|"] {
            assert!(order(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_have_both_ends() {
        assert!(Span(Some(5), Some(5)).has(5));
        assert!(!Span(Some(6), None).has(5));
        assert!(!Span(None, Some(4)).has(5));
        assert!(Span(None, None).is_all());
    }
}
