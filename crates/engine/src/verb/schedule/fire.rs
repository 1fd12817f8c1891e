//! What time does: runs that are due, runs that waited, times that were missed.
//!
//! Each call does one thing and says in its event when the next is due. A time is **missed** when
//! another one has passed behind it, or when it is found later than
//! [`schedule_late_ms_max`](windlass_record::bound::Bounds::schedule_late_ms_max).

use windlass_record::event::Event;
use windlass_record::id::JobKey;
use windlass_record::schedule::{
    CatchUp, FireCause, FireOutcome, Overlap, ScheduleEvent, ScheduleFired, SkipReason,
};

use super::{Ran, start, timetable};
use crate::{Sink, Step};

/// Does one thing that is due. False when nothing is.
pub(in crate::verb) fn fire<S: Sink>(step: &mut Step<'_, S>) -> bool {
    if let Some(&schedule) = step.state.schedules.ready.first() {
        run_queued(step, schedule);
        return true;
    }
    let now_ms = step.context.now_ms;
    if let Some(&(due_ms, schedule)) = step.state.schedules.due.first()
        && due_ms <= now_ms
    {
        fire_due(step, schedule, due_ms);
        return true;
    }
    false
}

/// What happens at a time besides the run.
#[derive(Clone, Copy)]
struct Time {
    scheduled_for_ms: u64,
    cause: FireCause,
    next_due_ms: Option<u64>,
    caught_up: u32,
}

fn fire_due<S: Sink>(step: &mut Step<'_, S>, key: JobKey, due_ms: u64) {
    let now_ms = step.context.now_ms;
    let Some(schedule) = step.state.schedule(key) else { return };
    let (catch_up, caught_up) = (schedule.settings.catch_up, schedule.caught_up);
    let table = timetable(schedule);
    let next_ms = |after_ms| table.as_ref().and_then(|table| table.next_after(after_ms));
    let following_ms = next_ms(due_ms);
    let time = |next_due_ms, caught_up| Time {
        scheduled_for_ms: due_ms,
        cause: FireCause::Due,
        next_due_ms,
        caught_up,
    };
    if following_ms.is_none_or(|following_ms| following_ms > now_ms) {
        let late = now_ms - due_ms > step.bounds.schedule_late_ms_max;
        if catch_up == CatchUp::None && late {
            skip(step, key, time(following_ms, 0), SkipReason::Missed, 1);
        } else {
            run_at(step, key, time(following_ms, 0));
        }
        return;
    }
    if catch_up == CatchUp::All && caught_up < step.bounds.schedule_catch_up_max {
        run_at(step, key, time(following_ms, caught_up + 1));
        return;
    }
    let Some(passed) = table.as_ref().map(|table| table.passed(due_ms, now_ms)) else { return };
    match catch_up {
        // The last one is looked at by itself.
        CatchUp::None | CatchUp::One => {
            let time = time(Some(passed.last_ms), 0);
            skip(step, key, time, SkipReason::Missed, passed.before_last);
        }
        CatchUp::All => {
            let time = time(next_ms(now_ms), 0);
            skip(step, key, time, SkipReason::Missed, passed.before_last.saturating_add(1));
        }
    }
}

/// A run beside the times of a schedule, which stay as they are.
pub(super) fn run<S: Sink>(
    step: &mut Step<'_, S>,
    key: JobKey,
    scheduled_for_ms: u64,
    cause: FireCause,
) -> Ran {
    let schedule = step.state.schedule(key).expect("it was just found");
    let (next_due_ms, caught_up) = (schedule.next_due_ms, schedule.caught_up);
    run_at(step, key, Time { scheduled_for_ms, cause, next_due_ms, caught_up })
}

fn run_queued<S: Sink>(step: &mut Step<'_, S>, key: JobKey) {
    let Some(schedule) = step.state.schedule(key) else { return };
    let Some(&scheduled_for_ms) = schedule.queued.front() else { return };
    let (next_due_ms, caught_up) = (schedule.next_due_ms, schedule.caught_up);
    let cause = FireCause::Queued;
    start_now(step, key, Time { scheduled_for_ms, cause, next_due_ms, caught_up });
}

/// Starts a run, or does what the overlap policy says.
fn run_at<S: Sink>(step: &mut Step<'_, S>, key: JobKey, time: Time) -> Ran {
    let schedule = step.state.schedule(key).expect("it was just found");
    let (overlap, live) = (schedule.settings.overlap, schedule.live);
    let queued = schedule.queued.len();
    match (overlap, live) {
        (Overlap::Allow, _) | (Overlap::Skip | Overlap::Replace, None) => {
            start_now(step, key, time)
        }
        (Overlap::Skip, Some(_)) => skip(step, key, time, SkipReason::Running, 1),
        (Overlap::Queue, None) if queued == 0 => start_now(step, key, time),
        (Overlap::Queue, _) if queued < step.bounds.schedule_queued_max => {
            fired(step, key, time, FireOutcome::Queued { alone: false })
        }
        (Overlap::Queue, _) => skip(step, key, time, SkipReason::QueueFull, 1),
        (Overlap::Replace, Some(run)) => {
            start::cancel(step, run);
            if step.state.run_lives(run) {
                return fired(step, key, time, FireOutcome::Queued { alone: true });
            }
            start_now(step, key, time)
        }
    }
}

fn start_now<S: Sink>(step: &mut Step<'_, S>, key: JobKey, time: Time) -> Ran {
    // What a run is made of is copied: it is read while events change the state.
    let schedule = step.state.schedule(key).expect("it was just found").clone();
    match start::start(step, &schedule, time.scheduled_for_ms) {
        Ok(run) => fired(step, key, time, FireOutcome::Started { run }),
        Err(message) => {
            let message = step.message(&message);
            fired(step, key, time, FireOutcome::Failed { message })
        }
    }
}

fn skip<S: Sink>(
    step: &mut Step<'_, S>,
    key: JobKey,
    time: Time,
    why: SkipReason,
    count: u32,
) -> Ran {
    fired(step, key, time, FireOutcome::Skipped { why, count })
}

fn fired<S: Sink>(
    step: &mut Step<'_, S>,
    schedule: JobKey,
    time: Time,
    outcome: FireOutcome<'_>,
) -> Ran {
    step.emit(&Event::Schedule(ScheduleEvent::Fired(ScheduleFired {
        schedule,
        scheduled_for_ms: time.scheduled_for_ms,
        cause: time.cause,
        outcome,
        next_due_ms: time.next_due_ms,
        caught_up: time.caught_up,
    })));
    outcome.into()
}
