//! When a delay ends. The only place of this face that looks at a clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of a job that is due at a time, or after a delay; 0 is "not given". Engine time follows
/// the wall; by as much as it differs, a delayed job is early or late.
pub(crate) fn due_ms(due_ms: u64, delay_ms: u64) -> Option<u64> {
    if due_ms > 0 {
        return Some(due_ms);
    }
    if delay_ms == 0 {
        return None;
    }
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    Some(now_ms.saturating_add(delay_ms))
}
