//! `windlass top`: watch the queues live. Without a terminal it prints snapshots.

mod screen;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::table;
use crate::units::{duration, grouped, now_ms, short, utc};

/// Jobs of one state that are looked at for the groups of a queue.
const SAMPLE_JOBS: u32 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// How often to look
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    interval: Duration,
    /// Print so many snapshots as text and end, also on a terminal
    #[arg(long, value_name = "N")]
    snapshots: Option<u64>,
    /// Of this queue only, and print its groups with every snapshot
    #[arg(long, default_value = "", hide_default_value = true)]
    queue: String,
}

pub(crate) async fn run(online: &Online, args: &TopArgs) -> Result<(), Failure> {
    let interval = args.interval.max(Duration::from_millis(50));
    let interactive = args.snapshots.is_none()
        && !online.out.json
        && std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal();
    if interactive {
        return screen::run(online, interval, &args.queue).await;
    }
    let mut last: Option<Snapshot> = None;
    let mut left = args.snapshots.unwrap_or(u64::MAX);
    while left > 0 {
        let snapshot = Snapshot::take(online, last.as_ref(), &args.queue).await?;
        let groups = match args.queue.as_str() {
            "" => Vec::new(),
            queue => groups(online, queue).await?,
        };
        online.out.show(&snapshot.json(&groups), || snapshot.text(&groups))?;
        last = Some(snapshot);
        left -= 1;
        if left > 0 {
            tokio::time::sleep(interval).await;
        }
    }
    Ok(())
}

/// Everything at one moment.
struct Snapshot {
    at: Instant,
    time_ms: u64,
    status: v1::StatusView,
    queues: Vec<Line>,
}

/// A queue, and how fast it moves.
struct Line {
    queue: v1::QueueView,
    completed_per_s: f64,
    failed_per_s: f64,
}

/// A group of one queue, as far as the sample goes.
#[derive(Debug, Default)]
struct Group {
    name: String,
    active: u32,
    waiting: u32,
    /// Since when the one waiting longest is ready.
    oldest_ms: Option<u64>,
}

impl Snapshot {
    async fn take(online: &Online, last: Option<&Self>, only: &str) -> Result<Self, Failure> {
        let status = online.client.status().await?;
        let queues = online.client.queues(&online.tenant).await?;
        let at = Instant::now();
        let queues = queues.into_iter().filter(|queue| only.is_empty() || queue.name == only);
        let lines = queues.map(|queue| {
            let before = last.and_then(|last| {
                let line = last.queues.iter().find(|line| line.queue.name == queue.name)?;
                Some((&line.queue, at.duration_since(last.at).as_secs_f64()))
            });
            let per_s = |count: fn(&v1::QueueView) -> u64| {
                before.map_or(0.0, |(before, seconds)| {
                    count(&queue).saturating_sub(count(before)) as f64 / seconds.max(0.001)
                })
            };
            let (completed_per_s, failed_per_s) =
                (per_s(|queue| queue.completed), per_s(|queue| queue.failed));
            Line { queue, completed_per_s, failed_per_s }
        });
        let mut queues: Vec<Line> = lines.collect();
        // Busy ones first, in an order that does not jump.
        queues.sort_by_key(|line| {
            let queue = &line.queue;
            (queue.active == 0 && queue.ready == 0, queue.name.clone())
        });
        Ok(Self { at, time_ms: now_ms(), status, queues })
    }

    fn json(&self, groups: &[Group]) -> Value {
        let queue = |line: &Line| {
            let mut value = json::queue(&line.queue);
            value["completed_per_s"] = json!(line.completed_per_s);
            value["failed_per_s"] = json!(line.failed_per_s);
            value
        };
        let group = |group: &Group| {
            json!({
                "group": group.name,
                "active": group.active,
                "waiting": group.waiting,
                "oldest_ms": group.oldest_ms,
            })
        };
        json!({
            "time_ms": self.time_ms,
            "health": self.status.health,
            "live_jobs": self.status.live_jobs,
            "queues": self.queues.iter().map(queue).collect::<Vec<Value>>(),
            "groups": groups.iter().map(group).collect::<Vec<Value>>(),
        })
    }

    fn text(&self, groups: &[Group]) -> String {
        let rows: Vec<Vec<String>> = self.queues.iter().map(Line::cells).collect();
        let mut text = format!("{}  {}\n", utc(self.time_ms), self.summary());
        text.push_str(&table(Line::HEAD, &rows));
        if !groups.is_empty() {
            let rows: Vec<Vec<String>> = groups.iter().map(Group::cells).collect();
            text.push('\n');
            text.push_str(&table(Group::HEAD, &rows));
        }
        text.push('\n');
        text
    }

    fn summary(&self) -> String {
        let completed: f64 = self.queues.iter().map(|line| line.completed_per_s).sum();
        format!(
            "{} live jobs, {} completed a second, {} workers waiting, {}",
            grouped(self.status.live_jobs.into()),
            rate(completed),
            self.status.waiting_requests,
            self.status.health,
        )
    }
}

impl Line {
    const HEAD: &[&str] = &[
        "queue",
        "ready",
        "active",
        "scheduled",
        "backoff",
        "incident",
        "done/s",
        "failed/s",
        "groups",
        "workers",
        "",
    ];

    fn cells(&self) -> Vec<String> {
        let queue = &self.queue;
        let mut cells = vec![queue.name.clone()];
        let live = [queue.ready, queue.active, queue.scheduled, queue.backoff, queue.incident];
        cells.extend(live.into_iter().map(|count| grouped(count.into())));
        cells.extend([rate(self.completed_per_s), rate(self.failed_per_s)]);
        cells.extend([queue.groups, queue.waiting_workers].into_iter().map(|n| grouped(n.into())));
        cells.push(if queue.paused { "paused".to_owned() } else { String::new() });
        cells
    }
}

impl Group {
    const HEAD: &[&str] = &["group", "active", "waiting", "longest wait"];

    fn cells(&self) -> Vec<String> {
        let name = if self.name.is_empty() { "(none)" } else { self.name.as_str() };
        let oldest = self.oldest_ms.map(|ms| short(now_ms().saturating_sub(ms)));
        vec![
            name.to_owned(),
            grouped(self.active.into()),
            grouped(self.waiting.into()),
            oldest.unwrap_or_default(),
        ]
    }
}

fn rate(per_s: f64) -> String {
    if per_s < 100.0 { format!("{per_s:.1}") } else { grouped(per_s as u64) }
}

/// The groups of a queue among its active jobs and a sample of its waiting ones.
async fn groups(online: &Online, queue: &str) -> Result<Vec<Group>, Failure> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for state in [v1::JobState::Active, v1::JobState::Ready] {
        let request = v1::ListJobsRequest {
            tenant: online.tenant.clone(),
            queue: queue.to_owned(),
            state: state.into(),
            limit: SAMPLE_JOBS,
            ..v1::ListJobsRequest::default()
        };
        for job in online.client.list_jobs(request).await?.jobs {
            let group = groups.entry(job.group).or_default();
            if state == v1::JobState::Active {
                group.active += 1;
            } else {
                group.waiting += 1;
                let oldest = group.oldest_ms.unwrap_or(u64::MAX);
                group.oldest_ms = Some(oldest.min(job.time_ms));
            }
        }
    }
    let named = groups.into_iter().map(|(name, group)| Group { name, ..group });
    let mut groups: Vec<Group> = named.collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.active, group.waiting)));
    Ok(groups)
}
