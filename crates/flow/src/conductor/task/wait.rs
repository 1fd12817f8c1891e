//! WAIT: for a length of time, until a time, or for somebody.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::TaskStatus;

use super::{Task, finish, lenient, under_way, workflows};
use crate::conductor::time;
use crate::kernel::Port;

/// Begins to wait.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let task = workflows(port).known_task(key);
    if let Err(problem) = due_ms(task, port.now_ms()) {
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        return;
    }
    under_way(port, key);
    proceed(port, key);
}

/// When it is over; `None` is when somebody says so.
pub(crate) fn due_ms(task: &Task, now_ms: u64) -> Result<Option<u64>, String> {
    let input = lenient::parse_object(&task.input);
    let text = |field: &str| match input.get(field) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Null) | None => None,
        Some(other) => Some(other.to_string()),
    };
    let (duration, until) = (text("duration"), text("until"));
    let from_ms = if task.started_ms > 0 { task.started_ms } else { now_ms };
    match (duration, until) {
        (Some(_), Some(_)) => {
            Err("Both 'duration' and 'until' specified. Please provide only one \
                                   input"
                .to_owned())
        }
        (Some(duration), None) if duration.is_empty() => Ok(None),
        (Some(duration), None) => Ok(Some(from_ms.saturating_add(time::duration_ms(&duration)?))),
        (None, Some(until)) if until.is_empty() => Ok(None),
        (None, Some(until)) => Ok(Some(time::date_ms(&until)?)),
        (None, None) => Ok(None),
    }
}

/// Whether only somebody can end it.
pub(crate) fn waits_for_somebody(task: &Task) -> bool {
    matches!(due_ms(task, task.scheduled_ms), Ok(None))
}

/// Looks whether it is over.
pub(super) fn proceed<P: Port>(port: &mut P, key: Key) {
    let task = workflows(port).known_task(key);
    let Ok(Some(at_ms)) = due_ms(task, port.now_ms()) else { return };
    if at_ms <= port.now_ms() {
        finish(port, key, TaskStatus::Completed, Some(&json!({})), "");
    }
}
