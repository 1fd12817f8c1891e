//! When a delay ends. The only place of this face that looks at a clock.

use std::time::{SystemTime, UNIX_EPOCH};

use windlass_record::rejection::Rejection;

/// The latest time at which a job may be due: the year 2100.
pub(crate) const DUE_MS_MAX: u64 = 4_102_444_800_000;

/// The time of a job that is due at a time, or after a delay; 0 is "not given". Engine time follows
/// the wall; by as much as it differs, a delayed job is early or late.
pub(crate) fn due_ms(due_ms: u64, delay_ms: u64) -> Result<Option<u64>, Rejection> {
    if due_ms > DUE_MS_MAX {
        return Err(Rejection::OutOfRange { field: "due_ms" });
    }
    if due_ms > 0 {
        return Ok(Some(due_ms));
    }
    if delay_ms == 0 {
        return Ok(None);
    }
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    Ok(Some(now_ms.saturating_add(delay_ms)))
}
