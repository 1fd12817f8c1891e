//! What a run is: a job, or a workflow.

use windlass_record::command::CancelJob;
use windlass_record::id::JobKey;
use windlass_record::schedule::ScheduleAction;

use super::put::job_of;
use crate::state::schedule::Schedule;
use crate::verb::{cancel, create};
use crate::{Answer, Sink, Step};

/// Why a run of another one was cancelled.
const REPLACED: &str = "the next run of its schedule replaced it";

/// Starts a run; or says why it cannot be.
pub(super) fn start<S: Sink>(
    step: &mut Step<'_, S>,
    schedule: &Schedule,
    scheduled_for_ms: u64,
) -> Result<JobKey, String> {
    match &schedule.settings.action {
        ScheduleAction::Job(template) => {
            let command = job_of(&schedule.name.tenant, template);
            match create::decide(step, &command) {
                Ok(Answer::Created { key, .. }) => Ok(key),
                Ok(_) => unreachable!("a create is answered with its job"),
                Err(rejection) => Err(rejection.to_string()),
            }
        }
        ScheduleAction::Workflow { request } => {
            start_workflow(step, schedule, request, scheduled_for_ms)
        }
    }
}

/// Starts a workflow from what Conductor's start takes, with the times of the schedule in its input.
fn start_workflow<S: Sink>(
    step: &mut Step<'_, S>,
    schedule: &Schedule,
    request: &str,
    scheduled_for_ms: u64,
) -> Result<JobKey, String> {
    let (name, now_ms) = (&*schedule.name.name, step.context.now_ms);
    windlass_flow::conductor::verb::start_scheduled(step, request, name, scheduled_for_ms, now_ms)
        .map_err(|rejection| rejection.to_string())
}

/// Cancels the run before, as its own rules have it: it may take its time.
pub(super) fn cancel<S: Sink>(step: &mut Step<'_, S>, run: JobKey) {
    if step.state.find(run).is_some() {
        let command = CancelJob { key: run, force: false, reason: REPLACED.into(), tenant: None };
        // Refused only when it may not be cancelled; then the next one waits for it.
        let _ = cancel::decide(step, &command);
    } else {
        cancel_workflow(step, run);
    }
}

/// Cancels a workflow that [`start_workflow`] started.
fn cancel_workflow<S: Sink>(step: &mut Step<'_, S>, workflow: JobKey) {
    // Refused only when it has ended.
    let _ = windlass_flow::conductor::verb::terminate(step, workflow, REPLACED);
}
