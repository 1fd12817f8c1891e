//! `windlass queue`: look at queues, pause and configure them.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::table;
use crate::units::{duration, grouped, millis};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List queues with their counts
    List,
    /// Hand out nothing more; jobs at work go on
    Pause {
        /// The queue
        queue: String,
    },
    /// Hand out again
    Resume {
        /// The queue
        queue: String,
    },
    /// Change settings; those left out stay
    Configure(ConfigureArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigureArgs {
    /// The queue; made when it does not exist
    queue: String,
    /// Counting scheme, such as 2,1: two of high priority, then one of low; 0,0 is strict priority
    #[arg(long, value_name = "HIGH,LOW", value_parser = scheme)]
    scheme: Option<(u32, u32)>,
    /// Within a priority, order of creation instead of becoming ready
    #[arg(long, value_name = "BOOL")]
    creation_order: Option<bool>,
    /// Retries that are due go first
    #[arg(long, value_name = "BOOL")]
    retries_first: Option<bool>,
    /// Waiting this long counts as one more priority; 0 is off
    #[arg(long, value_name = "TIME", value_parser = duration)]
    aging: Option<Duration>,
    /// Bind the queue to one type of job
    #[arg(long, value_name = "BOOL")]
    one_type: Option<bool>,
    /// Active jobs per concurrency key, where the key has no limit of its own; 0 is any number
    #[arg(long, value_name = "N")]
    key_active_max: Option<u32>,
    /// Activations per rate key and window, such as 100/1m, where the key has no limit of its own
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    key_rate: Option<Rate>,
    /// Finished jobs that are remembered
    #[arg(long, value_name = "N")]
    finished_max: Option<u32>,
    /// How long finished jobs are remembered
    #[arg(long, value_name = "TIME", value_parser = duration)]
    finished_for: Option<Duration>,
}

/// So many per window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    max: u32,
    window: Duration,
}

impl Rate {
    pub(crate) fn window(self) -> v1::RateWindow {
        v1::RateWindow { max: self.max, window_ms: millis(self.window) }
    }
}

pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let (max, window) = text.split_once('/').ok_or("expected for instance 100/1m")?;
    let max = max.parse().map_err(|_| format!("{max:?} is no number"))?;
    let window = duration(window)?;
    if max == 0 || millis(window) == 0 {
        return Err("expected at least 1 in at least 1ms".to_owned());
    }
    Ok(Rate { max, window })
}

fn scheme(text: &str) -> Result<(u32, u32), String> {
    let (high, low) = text.split_once(',').ok_or("expected for instance 2,1")?;
    let number = |text: &str| text.trim().parse().map_err(|_| format!("{text:?} is no number"));
    Ok((number(high)?, number(low)?))
}

pub(crate) async fn run(online: &Online, command: QueueCommand) -> Result<(), Failure> {
    match command {
        QueueCommand::List => list(online).await,
        QueueCommand::Pause { queue } => pause(online, queue, true).await,
        QueueCommand::Resume { queue } => pause(online, queue, false).await,
        QueueCommand::Configure(args) => configure(online, args).await,
    }
}

async fn list(online: &Online) -> Result<(), Failure> {
    let queues = online.client.queues(&online.tenant).await?;
    let value = json!({ "queues": queues.iter().map(json::queue).collect::<Vec<Value>>() });
    online.out.show(&value, || {
        if queues.is_empty() {
            return "no queues yet: `windlass job create QUEUE` makes one".to_owned();
        }
        let rows: Vec<Vec<String>> = queues.iter().map(row).collect();
        table(
            &[
                "queue",
                "ready",
                "active",
                "scheduled",
                "backoff",
                "incident",
                "groups",
                "workers",
                "completed",
                "failed",
                "",
            ],
            &rows,
        )
    })
}

fn row(queue: &v1::QueueView) -> Vec<String> {
    let mut row = vec![queue.name.clone()];
    let live = [queue.ready, queue.active, queue.scheduled, queue.backoff, queue.incident];
    row.extend(live.into_iter().map(|count| grouped(count.into())));
    row.extend([queue.groups, queue.waiting_workers].into_iter().map(|n| grouped(n.into())));
    row.extend([queue.completed, queue.failed].into_iter().map(grouped));
    row.push(if queue.paused { "paused".to_owned() } else { String::new() });
    row
}

async fn pause(online: &Online, queue: String, paused: bool) -> Result<(), Failure> {
    let tenant = online.tenant.clone();
    let request = v1::PauseQueueRequest { tenant, queue: queue.clone(), paused };
    let answer = online.client.pause_queue(request).await;
    answer.map_err(|error| {
        Failure::from(error).hint_if_refused(
            "`windlass queue list` names them; `windlass queue configure` makes one before its first job",
        )
    })?;
    let word = if paused { "paused" } else { "resumed" };
    online.out.show(&json!({ "queue": queue, "paused": paused }), || format!("{queue} is {word}"))
}

async fn configure(online: &Online, args: ConfigureArgs) -> Result<(), Failure> {
    let queues = online.client.queues(&online.tenant).await?;
    let queue = queues.into_iter().find(|queue| queue.name == args.queue);
    let mut settings = queue.and_then(|queue| queue.settings).unwrap_or_default();
    if let Some((high, low)) = args.scheme {
        (settings.scheme_high, settings.scheme_low) = (high, low);
    }
    set(&mut settings.creation_order, args.creation_order);
    set(&mut settings.retries_first, args.retries_first);
    set(&mut settings.aging_ms, args.aging.map(millis));
    set(&mut settings.one_type, args.one_type);
    set(&mut settings.key_active_max, args.key_active_max);
    set(&mut settings.key_rate, args.key_rate.map(|rate| Some(rate.window())));
    set(&mut settings.finished_max, args.finished_max.map(Some));
    set(&mut settings.finished_ms, args.finished_for.map(|time| Some(millis(time))));
    let request = v1::ConfigureQueueRequest {
        tenant: online.tenant.clone(),
        queue: args.queue.clone(),
        settings: Some(settings),
    };
    online.client.configure_queue(request).await?;
    let value = json!({ "queue": args.queue, "configured": true });
    online.out.show(&value, || format!("{} is configured", args.queue))
}

fn set<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_schemes_are_pairs() {
        let expected = Rate { max: 100, window: Duration::from_secs(60) };
        assert_eq!(rate("100/1m"), Ok(expected));
        assert!(rate("100").is_err() && rate("x/1s").is_err() && rate("1/x").is_err());
        assert_eq!(scheme("2,1"), Ok((2, 1)));
        assert!(scheme("2").is_err() && scheme("2,-1").is_err());
    }
}
