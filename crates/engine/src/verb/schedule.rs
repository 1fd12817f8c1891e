//! Commands on schedules, and what is done when their time comes.
//!
//! `put` makes and replaces, `fire` is what time does, `start` what a run is. The rest is here.

mod fire;
mod put;
mod start;

use windlass_record::event::Event;
use windlass_record::id::JobKey;
use windlass_record::rejection::Rejection;
use windlass_record::schedule::{
    DeleteSchedule, FireCause, FireOutcome, PauseSchedule, ScheduleAnswer, ScheduleCommand,
    ScheduleEvent, ScheduleName, ScheduleRejection,
};

pub(super) use fire::fire;

use crate::schedule::Timetable;
use crate::state::schedule::Schedule;
use crate::{Answer, Sink, Step};

/// Decides a command on schedules.
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ScheduleCommand,
) -> Result<Answer, Rejection> {
    let answer = match command {
        ScheduleCommand::Put(command) => put::decide(step, command),
        ScheduleCommand::Delete(command) => delete(step, command),
        ScheduleCommand::Pause(command) => pause(step, command),
        ScheduleCommand::Resume(name) => resume(step, name),
        ScheduleCommand::RunNow(name) => run_now(step, name),
    };
    answer.map(Answer::Schedule)
}

fn delete<S: Sink>(
    step: &mut Step<'_, S>,
    command: &DeleteSchedule,
) -> Result<ScheduleAnswer, Rejection> {
    let found = step.schedule_named(&command.name)?;
    let (schedule, actual) = (found.key, found.version);
    if command.expected_version.is_some_and(|expected| expected != actual) {
        let name = (*command.name.name).into();
        return Err(ScheduleRejection::Version { name, actual }.into());
    }

    // Cannot fail from here.
    step.emit(&Event::Schedule(ScheduleEvent::Deleted { schedule }));
    Ok(ScheduleAnswer::Done)
}

/// A second pause changes the reason.
fn pause<S: Sink>(
    step: &mut Step<'_, S>,
    command: &PauseSchedule,
) -> Result<ScheduleAnswer, Rejection> {
    let found = step.schedule_named(&command.name)?;
    let (schedule, reason) = (found.key, step.message(&command.reason));

    // Cannot fail from here.
    if found.paused.as_deref() != Some(reason) {
        step.emit(&Event::Schedule(ScheduleEvent::Paused { schedule, reason }));
    }
    Ok(ScheduleAnswer::Done)
}

fn resume<S: Sink>(
    step: &mut Step<'_, S>,
    name: &ScheduleName,
) -> Result<ScheduleAnswer, Rejection> {
    let found = step.schedule_named(name)?;

    // Cannot fail from here.
    if found.paused.is_some() {
        let schedule = found.key;
        let table = timetable(found);
        let next_due_ms = table.and_then(|table| table.next_after(step.context.now_ms));
        step.emit(&Event::Schedule(ScheduleEvent::Resumed { schedule, next_due_ms }));
    }
    Ok(ScheduleAnswer::Done)
}

fn run_now<S: Sink>(
    step: &mut Step<'_, S>,
    name: &ScheduleName,
) -> Result<ScheduleAnswer, Rejection> {
    let schedule = step.schedule_named(name)?.key;

    // Cannot fail from here: that nothing could be started is an answer, and remembered.
    let now_ms = step.context.now_ms;
    Ok(match fire::run(step, schedule, now_ms, FireCause::Asked) {
        Ran::Started(run) => ScheduleAnswer::Started { run },
        Ran::Queued => ScheduleAnswer::Queued,
        Ran::Skipped(why) => ScheduleAnswer::Skipped(why),
        Ran::Failed => ScheduleAnswer::Failed,
    })
}

/// What became of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    Started(JobKey),
    Queued,
    Skipped(windlass_record::schedule::SkipReason),
    Failed,
}

impl From<FireOutcome<'_>> for Ran {
    fn from(outcome: FireOutcome<'_>) -> Ran {
        match outcome {
            FireOutcome::Started { run } => Ran::Started(run),
            FireOutcome::Queued { .. } => Ran::Queued,
            FireOutcome::Skipped { why, .. } => Ran::Skipped(why),
            FireOutcome::Failed { .. } => Ran::Failed,
        }
    }
}

/// When a schedule fires. It was read when it was put; should a later program read less, it fires
/// no more, and its next time says so.
fn timetable(schedule: &Schedule) -> Option<Timetable> {
    Timetable::parse(&schedule.settings.times, schedule.created_ms).ok()
}

impl<S: Sink> Step<'_, S> {
    fn schedule_named(&self, name: &ScheduleName) -> Result<&Schedule, Rejection> {
        let found = self.state.schedules.named(name);
        found.ok_or_else(|| ScheduleRejection::NotFound { name: (*name.name).into() }.into())
    }
}

#[cfg(test)]
mod tests;
