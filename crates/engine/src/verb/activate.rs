//! Hand out jobs: the fair choice over one or several queues.
//!
//! The queue whose first group joined earliest is served first; the group chooses by the queue's
//! rule. Jobs that were once leased with a token are only for those who ask with one. Each hand-out
//! ends the group's turn. Costs the same whatever the number of groups and the
//! length of the backlog.

use windlass_record::bound::Bound;
use windlass_record::command::ActivateJobs;
use windlass_record::event::{Event, JobActivated};
use windlass_record::rejection::Rejection;

use crate::state::fair::Choice;
use crate::{Answer, HandedOut, Sink, Step};

/// Decides [`ActivateJobs`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ActivateJobs,
) -> Result<Answer, Rejection> {
    step.positive("lease", command.lease_ms)?;
    step.optional_name("worker", &command.worker)?;
    if command.jobs_max > step.bounds.activation_jobs_max {
        return Err(Rejection::TooLarge {
            bound: Bound::ActivationJobs,
            max: u64::from(step.bounds.activation_jobs_max),
            given: u64::from(command.jobs_max),
        });
    }

    // Cannot fail from here.
    let mut handed = Vec::new();
    let mut bytes_left = command.bytes_max;
    for _ in 0..command.jobs_max {
        let Some(choice) = next_job(step, command) else { break };
        let bytes = u64::from(step.state.job(choice.slot).payload.len);
        if bytes > bytes_left && !handed.is_empty() {
            break;
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        handed.push(hand_out(step, choice, command));
    }
    Ok(Answer::Activated(handed))
}

fn next_job<S: Sink>(step: &Step<'_, S>, command: &ActivateJobs) -> Option<Choice> {
    let with_token = command.with_token;
    let queue = match *command.queues.as_slice() {
        [queue] => queue,
        ref queues => {
            let turn = |queue| step.state.first_turn(queue, with_token);
            queues.iter().filter_map(|&queue| Some((turn(queue)?, queue))).min()?.1
        }
    };
    step.state.choose(queue, with_token, step.context.now_ms)
}

fn hand_out<S: Sink>(step: &mut Step<'_, S>, choice: Choice, command: &ActivateJobs) -> HandedOut {
    let now_ms = step.context.now_ms;
    let Choice { slot, scheme_count, turn } = choice;
    let scheme_count_before = step.state.groups.get(step.state.group_of(slot)).scheme_count;
    let job = step.state.job(slot);
    let (key, activation) = (job.key, job.activation + 1);
    let started_due_ms = job.extra().map_or(0, |extra| extra.attempt_due_ms);
    let attempt_due_ms = match job.deadlines().attempt {
        Some((after_ms, _)) if started_due_ms == 0 => now_ms.saturating_add(after_ms),
        Some(_) | None => started_due_ms,
    };
    // The task of a workflow says itself how long its worker may be silent.
    let lease_ms = match step.state.flow.response_ms(key) {
        0 => command.lease_ms,
        response_ms => response_ms,
    };
    step.emit(&Event::JobActivated(JobActivated {
        key,
        activation,
        deadline_ms: now_ms.saturating_add(lease_ms),
        attempt_due_ms,
        with_token: command.with_token,
        scheme_count,
        worker: &command.worker,
    }));
    HandedOut { slot, key, activation, turn, scheme_count: scheme_count_before }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_record::bound::Bounds;
    use windlass_record::command::{Bytes, Command, CreateJob};
    use windlass_record::id::QueueId;

    use super::*;
    use crate::verb::check::{Check, job};

    fn ask(jobs_max: u32, bytes_max: u64, lease_ms: u64, worker: &str) -> ActivateJobs {
        ActivateJobs {
            queues: vec![QueueId(0)],
            worker: Arc::from(worker),
            lease_ms,
            jobs_max,
            bytes_max,
            with_token: true,
        }
    }

    #[test]
    fn hands_out_what_fits() {
        for (jobs_max, bytes_max, expected) in [
            (9, u64::MAX, 4),
            (2, u64::MAX, 2),
            (0, 100, 0),
            (9, 10, 2),
            (9, 14, 2),
            (9, 15, 3),
            (9, 1, 1),
        ] {
            let mut check = Check::new();
            for _ in 0..4 {
                let payload = Bytes::from([0; 5]);
                check.create(CreateJob { payload, ..job("q", "a", 0) });
            }
            let said = check.give(Command::ActivateJobs(ask(jobs_max, bytes_max, 5, "w")));
            let Ok(Answer::Activated(handed)) = said else { panic!("{said:?}") };
            assert_eq!(handed.len(), expected, "{jobs_max} jobs, {bytes_max} bytes");
        }
    }

    #[test]
    fn what_is_refused() {
        let bounds = Bounds {
            activation_jobs_max: 3,
            name_bytes_max: 8,
            duration_ms_max: 9,
            ..Bounds::default()
        };
        let mut check = Check::with_bounds(bounds);
        check.create(job("q", "a", 0));
        for (command, expected) in [
            (ask(4, 1, 5, "w"), "4 jobs of an activation is over the limit of 3"),
            (ask(1, 1, 0, "w"), "lease must be at least 1 ms"),
            (ask(1, 1, 10, "w"), "10 milliseconds of a duration is over the limit of 9"),
            (ask(1, 1, 5, "123456789"), "9 bytes of a name is over the limit of 8"),
        ] {
            let said = check.give(Command::ActivateJobs(command)).expect_err(expected);
            assert_eq!(said.to_string(), expected);
        }
    }
}
