//! What a worker says while it works: progress, and lines for the log of the attempt.
//!
//! The log keeps the first lines up to a bound and counts the rest; the count is part of the
//! record, so a reader knows that lines are missing and how many.

use std::borrow::Cow;

use windlass_record::bound::cut;
use windlass_record::command::{AppendLog, ReportProgress};
use windlass_record::event::Event;
use windlass_record::rejection::Rejection;

use crate::lifecycle::Verb;
use crate::state::job::Slot;
use crate::{Answer, Sink, Step};

/// Decides [`ReportProgress`].
pub(super) fn decide_progress<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ReportProgress,
) -> Result<Answer, Rejection> {
    let slot = step.job_held(command.lease, Verb::Report)?;
    step.lease_lives(slot)?;
    step.check_documents(&command.documents)?;

    // Cannot fail from here.
    let note = step.message(&command.note);
    let percent = command.percent.min(100);
    step.emit(&Event::JobProgressed { key: command.lease.key, percent, note });
    step.put_documents(&command.documents);
    Ok(held(step, slot))
}

/// Decides [`AppendLog`].
pub(super) fn decide_log<S: Sink>(
    step: &mut Step<'_, S>,
    command: &AppendLog,
) -> Result<Answer, Rejection> {
    let slot = step.job_held(command.lease, Verb::Report)?;

    // Cannot fail from here.
    let (kept, dropped) =
        step.state.job(slot).extra().map_or((0, 0), |extra| (extra.log.len(), extra.log_dropped));
    let lines_max = usize::try_from(step.bounds.log_lines_per_attempt_max).unwrap_or(usize::MAX);
    let room = lines_max.saturating_sub(kept);
    let bytes_max = step.bounds.log_line_bytes_max;
    let lines: Vec<Cow<'_, str>> =
        command.lines.iter().take(room).map(|line| Cow::Borrowed(cut(line, bytes_max))).collect();
    let over = u32::try_from(command.lines.len() - lines.len()).unwrap_or(u32::MAX);
    if !command.lines.is_empty() {
        step.emit(&Event::JobLogged {
            key: command.lease.key,
            lines: Cow::Owned(lines),
            dropped: dropped.saturating_add(over),
        });
    }
    Ok(held(step, slot))
}

fn held<S: Sink>(step: &Step<'_, S>, slot: Slot) -> Answer {
    let job = step.state.job(slot);
    Answer::Held { deadline_ms: job.due_ms, cancel_asked: job.cancel_asked() }
}

#[cfg(test)]
mod tests {
    use windlass_record::bound::Bounds;
    use windlass_record::command::{Command, Lease};

    use super::*;
    use crate::verb::check::{Check, job};

    #[test]
    fn progress_is_kept_per_attempt_and_cut_to_its_bounds() {
        let mut check = Check::with_bounds(Bounds { message_bytes_max: 3, ..Bounds::default() });
        let key = check.create(job("q", "a", 0));
        check.take("q");
        let lease = Lease { key, activation: None };
        for (percent, note, expected) in
            [(0, "", (0, "")), (100, "abcd", (100, "abc")), (255, "aéé", (100, "aé"))]
        {
            let documents = Vec::new();
            let report = ReportProgress { lease, percent, note: note.into(), documents };
            check.give(Command::ReportProgress(report)).expect("it is held");
            let extra = check.job(key).extra().expect("it has progress");
            assert_eq!((extra.percent, &*extra.note), expected);
        }
        check.fail(key).expect("it is held");
        let extra = check.job(key).extra().expect("it has failed");
        assert_eq!((extra.percent, &*extra.note), (100, "aé"), "how far it had come");
        check.take("q");
        let extra = check.job(key).extra().expect("it has failed");
        assert_eq!((extra.percent, &*extra.note), (0, ""), "a new attempt begins at nothing");
    }

    #[test]
    fn long_lines_are_cut_between_characters_and_many_are_counted() {
        let bounds =
            Bounds { log_line_bytes_max: 4, log_lines_per_attempt_max: 2, ..Bounds::default() };
        let mut check = Check::with_bounds(bounds);
        let key = check.create(job("q", "a", 0));
        check.take("q");
        let lease = Lease { key, activation: None };
        let lines = ["abcé", "12345", "3", "4"].map(Box::from).to_vec();
        check.give(Command::AppendLog(AppendLog { lease, lines })).expect("it is held");
        let extra = check.job(key).extra().expect("it has a log");
        let lines: Vec<&str> = extra.log.iter().map(|line| &**line).collect();
        assert_eq!((lines, extra.log_dropped), (vec!["abc", "1234"], 2));
        check.fail(key).expect("it is held");
        let extra = check.job(key).extra().expect("it has failed");
        assert_eq!((extra.log.len(), extra.log_dropped), (2, 2), "why it failed can be read");
        check.take("q");
        let extra = check.job(key).extra().expect("it has failed");
        assert_eq!((extra.log.len(), extra.log_dropped), (0, 0), "each attempt has its own");
    }
}
