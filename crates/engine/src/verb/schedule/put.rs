//! Make a schedule, or give it new settings. Refused are times that cannot be read and a job that
//! could never be made.
//!
//! What it was about to do stays: its runs, those that wait, and its next time if its times are the
//! same.

use std::borrow::Cow;

use windlass_record::bound::Bound;
use windlass_record::command::{CreateJob, Due, QueueName};
use windlass_record::event::Event;
use windlass_record::rejection::Rejection;
use windlass_record::schedule::{
    JobTemplate, PutPause, PutSchedule, SCHEDULE_BYTES_MAX, ScheduleAction, ScheduleAnswer,
    ScheduleEvent, ScheduleRejection,
};

use crate::schedule::Timetable;
use crate::verb::create;
use crate::verb::guard::{at_most, room};
use crate::{Sink, Step};

/// Decides [`PutSchedule`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &PutSchedule,
) -> Result<ScheduleAnswer, Rejection> {
    let (name, settings) = (&command.name, &command.settings);
    step.name("tenant", &name.tenant)?;
    step.name("schedule", &name.name)?;
    step.optional_name("owner", &settings.owner)?;
    let expressions = settings.times.expressions.len();
    at_most(Bound::ScheduleExpressions, expressions, step.bounds.schedule_expressions_max)?;
    at_most(Bound::ScheduleBytes, settings.bytes(), SCHEDULE_BYTES_MAX)?;
    let old = step.state.schedules.named(name);
    let actual = old.map_or(0, |old| old.version);
    match command.expected_version {
        Some(0) if actual > 0 => {
            return Err(ScheduleRejection::Exists { name: (*name.name).into() }.into());
        }
        Some(expected) if expected != actual => {
            return Err(ScheduleRejection::Version { name: (*name.name).into(), actual }.into());
        }
        Some(_) | None => {}
    }
    match &settings.action {
        ScheduleAction::Job(template) => check_template(step, &name.tenant, template)?,
        ScheduleAction::Workflow { request } if request.is_empty() => {
            return Err(Rejection::NameEmpty { field: "request" });
        }
        ScheduleAction::Workflow { .. } => {}
    }
    let now_ms = step.context.now_ms;
    let anchor_ms = old.map_or(now_ms, |old| old.created_ms);
    let table = Timetable::parse(&settings.times, anchor_ms)
        .map_err(|error| ScheduleRejection::InvalidTimes { problem: error.message.into() })?;
    if old.is_none() {
        room(Bound::Schedules, step.state.schedules.len(), step.bounds.schedules_max)?;
    }

    // Cannot fail from here.
    let paused = match &command.pause {
        PutPause::AsItIs => old.and_then(|old| old.paused.clone()),
        PutPause::Running => None,
        PutPause::Paused(reason) => Some(step.message(reason).into()),
    };
    let due_ms = old.filter(|old| old.settings.times == settings.times);
    let next_due_ms = match due_ms.and_then(|old| old.next_due_ms) {
        _ if paused.is_some() => None,
        Some(due_ms) => Some(due_ms),
        None => table.next_after(now_ms),
    };
    let schedule = old.map_or_else(|| step.next_key(), |old| old.key);
    let version = actual + 1;
    step.emit(&Event::Schedule(ScheduleEvent::Set {
        schedule,
        tenant: &name.tenant,
        name: &name.name,
        version,
        settings: Cow::Borrowed(settings),
        paused: paused.as_deref(),
        next_due_ms,
    }));
    Ok(ScheduleAnswer::Put { schedule, version, next_due_ms })
}

fn check_template<S: Sink>(
    step: &Step<'_, S>,
    tenant: &str,
    template: &JobTemplate,
) -> Result<(), Rejection> {
    if template.options.as_ref().is_some_and(|options| !options.request_id.is_empty()) {
        // Its second run would be answered with the first.
        return Err(Rejection::OutOfRange {
            field: "request id",
            must: "absent: the second run would be answered with the first",
        });
    }
    create::check_form(step, &job_of(tenant, template))
}

/// The job that a run makes.
pub(super) fn job_of(tenant: &str, template: &JobTemplate) -> CreateJob {
    CreateJob {
        queue: QueueName { tenant: tenant.into(), queue: (*template.queue).into() },
        job_type: template.job_type.clone(),
        group: template.group.clone(),
        priority: template.priority,
        retries: template.retries,
        due: Due::Now,
        payload: template.payload.clone(),
        options: template.options.clone(),
    }
}
