//! `windlass job tail`: follow a job.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::show::{bytes_text, is_at_rest, state};
use crate::units::{now_ms, utc};

/// How soon the job is looked at again, at first.
pub(crate) const LOOK_MIN: Duration = Duration::from_millis(20);
/// And at most.
pub(crate) const LOOK_MAX: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// Key of the job
    key: u64,
}

/// What was printed already.
#[derive(Default)]
struct Seen {
    state: Option<v1::JobState>,
    attempt: u32,
    log_lines: usize,
    percent: u32,
    note: String,
}

pub(crate) async fn run(online: &Online, args: &TailArgs) -> Result<(), Failure> {
    let mut seen = Seen::default();
    let mut printed = Ok(());
    let job = until(online, args.key, |job| {
        printed = seen.print_news(online, job);
        printed.is_err() || is_at_rest(job.state())
    })
    .await?;
    printed?;
    if !job.result.is_empty() && !online.out.json {
        online.out.line(&format!("result: {}", bytes_text(&job.result)))?;
    }
    Ok(())
}

/// Looks at a job until `done`: often while things happen, seldom when it waits for long.
pub(crate) async fn until(
    online: &Online,
    key: u64,
    mut done: impl FnMut(&v1::JobView) -> bool,
) -> Result<v1::JobView, Failure> {
    let mut wait = LOOK_MIN;
    let mut before = None;
    loop {
        let job = online.client.job(key).await?;
        if done(&job) {
            return Ok(job);
        }
        let now = (job.state, job.attempt, job.percent, job.log.len());
        wait = if before == Some(now) { (wait * 2).min(LOOK_MAX) } else { LOOK_MIN };
        before = Some(now);
        tokio::time::sleep(wait).await;
    }
}

impl Seen {
    fn print_news(&mut self, online: &Online, job: &v1::JobView) -> Result<(), Failure> {
        // The log of an attempt that failed is there until the next one starts.
        let starts = job.state() == v1::JobState::Active && job.attempt != self.attempt;
        if starts || job.log.len() < self.log_lines {
            self.attempt = job.attempt;
            self.log_lines = 0;
        }
        for line in job.log.iter().skip(self.log_lines) {
            self.event(online, json!({ "log": line }), line)?;
        }
        self.log_lines = job.log.len();
        if (job.percent, &job.note) != (self.percent, &self.note) {
            (self.percent, self.note) = (job.percent, job.note.clone());
            let value = json!({ "percent": job.percent, "note": job.note });
            self.event(online, value, &format!("{} % {}", job.percent, job.note))?;
        }
        if self.state != Some(job.state()) {
            self.state = Some(job.state());
            let name = state(job.state());
            let mut text = format!("{name}, attempt {}", job.attempt);
            for (word, what) in [("worker", &job.worker), ("message", &job.message)] {
                if !what.is_empty() {
                    text.push_str(&format!(", {word} {what}"));
                }
            }
            let mut value = json!({
                "state": name,
                "attempt": job.attempt,
                "worker": json::some(&job.worker),
                "message": json::some(&job.message),
            });
            json::bytes(&mut value, "result", &job.result);
            self.event(online, json::terse(value), &text)?;
        }
        Ok(())
    }

    fn event(
        &self,
        online: &Online,
        mut value: serde_json::Value,
        text: &str,
    ) -> Result<(), Failure> {
        let time_ms = now_ms();
        value["time_ms"] = json!(time_ms);
        online.out.show(&value, || format!("{}  {text}", utc(time_ms)))
    }
}
