//! Who asked for work, and when: the last poll per type of task, domain and worker, a bounded number
//! of them. It is for people to look at, and forgotten with the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::limit::POLLERS_MAX;

/// A last poll, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PollData {
    queue_name: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    domain: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    worker_id: Box<str>,
    last_poll_time: u64,
}

/// Type, domain, worker.
type Name = (Box<str>, Box<str>, Box<str>);

/// See the module.
#[derive(Default)]
pub(crate) struct Pollers {
    last: Mutex<HashMap<Name, u64>>,
}

impl Pollers {
    /// A worker asks.
    pub(crate) fn polled(&self, task_type: &str, domain: &str, worker: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.polled_at(task_type, domain, worker, now_ms);
    }

    fn polled_at(&self, task_type: &str, domain: &str, worker: &str, now_ms: u64) {
        let mut last = self.last();
        last.insert((task_type.into(), domain.into(), worker.into()), now_ms);
        if last.len() > POLLERS_MAX {
            forget_half(&mut last);
        }
    }

    /// The last polls for a type, or for all.
    pub(crate) fn of(&self, task_type: Option<&str>) -> Vec<PollData> {
        let last = self.last();
        let matching = last
            .iter()
            .filter(|((name, _, _), _)| task_type.is_none_or(|task_type| task_type == &**name));
        let mut found: Vec<PollData> = matching
            .map(|((queue_name, domain, worker_id), last_poll_time)| PollData {
                queue_name: queue_name.clone(),
                domain: domain.clone(),
                worker_id: worker_id.clone(),
                last_poll_time: *last_poll_time,
            })
            .collect();
        drop(last);
        found.sort_by(|a, b| {
            (&a.queue_name, &a.domain, &a.worker_id).cmp(&(&b.queue_name, &b.domain, &b.worker_id))
        });
        found
    }

    fn last(&self) -> MutexGuard<'_, HashMap<Name, u64>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The older half goes, so that a full table costs little per poll.
fn forget_half(last: &mut HashMap<Name, u64>) {
    let mut times: Vec<u64> = last.values().copied().collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    last.retain(|_, at_ms| *at_ms > median);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let pollers = Pollers::default();
        for (number, at_ms) in (0..3 * POLLERS_MAX).zip(1..) {
            pollers.polled_at("t", "", &number.to_string(), at_ms);
        }
        pollers.polled_at("other", "d", "w", 1_000_000);
        let all = pollers.of(None);
        assert!(all.len() <= POLLERS_MAX, "{}", all.len());
        assert!(all.len() >= POLLERS_MAX / 2, "{}", all.len());
        let newest = (3 * POLLERS_MAX - 1).to_string();
        assert!(all.iter().any(|it| *it.worker_id == *newest));
        let other = pollers.of(Some("other"));
        assert_eq!(other.len(), 1);
        assert_eq!((&*other[0].domain, other[0].last_poll_time), ("d", 1_000_000));
    }
}
