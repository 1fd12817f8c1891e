//! Events about schedules.

use std::collections::VecDeque;

use windlass_record::flow::FlowEvent;
use windlass_record::id::JobKey;
use windlass_record::schedule::{
    FireCause, FireOutcome, SCHEDULE_RUNS_MAX, ScheduleEvent, ScheduleFired, ScheduleName,
};
use windlass_record::workflow::WorkflowEvent;

use crate::state::State;
use crate::state::schedule::{Run, RunOutcome, Schedule};

impl State {
    pub(super) fn schedule_event(&mut self, now_ms: u64, event: &ScheduleEvent<'_>) {
        match event {
            ScheduleEvent::Set {
                schedule,
                tenant,
                name,
                version,
                settings,
                paused,
                next_due_ms,
            } => {
                self.last_counter = self.last_counter.max(schedule.counter());
                if !self.schedules.by_key.contains_key(schedule) {
                    let name = ScheduleName { tenant: (*tenant).into(), name: (*name).into() };
                    let settings = settings.clone().into_owned();
                    self.schedules.insert(Schedule::new(*schedule, name, settings, now_ms));
                }
                self.schedules.change(*schedule, |schedule| {
                    schedule.version = *version;
                    schedule.settings = settings.clone().into_owned();
                    schedule.paused = paused.map(Box::from);
                    schedule.updated_ms = now_ms;
                    schedule.next_due_ms = *next_due_ms;
                });
            }
            ScheduleEvent::Deleted { schedule } => self.schedules.remove(*schedule),
            ScheduleEvent::Paused { schedule, reason } => {
                self.schedules.change(*schedule, |schedule| {
                    schedule.paused = Some((*reason).into());
                    schedule.updated_ms = now_ms;
                    schedule.next_due_ms = None;
                });
            }
            ScheduleEvent::Resumed { schedule, next_due_ms } => {
                self.schedules.change(*schedule, |schedule| {
                    schedule.paused = None;
                    schedule.updated_ms = now_ms;
                    schedule.next_due_ms = *next_due_ms;
                    schedule.caught_up = 0;
                });
            }
            ScheduleEvent::Fired(fired) => self.schedule_fired(now_ms, fired),
        }
    }

    fn schedule_fired(&mut self, now_ms: u64, fired: &ScheduleFired<'_>) {
        let live = match fired.outcome {
            FireOutcome::Started { run } => self.run_lives(run).then_some(run),
            FireOutcome::Queued { .. }
            | FireOutcome::Skipped { .. }
            | FireOutcome::Failed { .. } => None,
        };
        self.schedules.change(fired.schedule, |schedule| {
            schedule.next_due_ms = fired.next_due_ms;
            schedule.caught_up = fired.caught_up;
            if fired.cause == FireCause::Queued {
                schedule.queued.pop_front();
            }
            match fired.outcome {
                FireOutcome::Started { run } => {
                    schedule.live = live;
                    schedule.started += 1;
                    schedule.remember(now_ms, fired, RunOutcome::Started(run));
                }
                FireOutcome::Queued { alone } => {
                    if alone {
                        schedule.queued.clear();
                    }
                    schedule.queued.push_back(fired.scheduled_for_ms);
                }
                FireOutcome::Skipped { why, count } => {
                    schedule.skipped += u64::from(count);
                    schedule.remember(now_ms, fired, RunOutcome::Skipped(why, count));
                }
                FireOutcome::Failed { message } => {
                    schedule.failed += 1;
                    schedule.remember(now_ms, fired, RunOutcome::Failed(message.into()));
                }
            }
        });
    }

    /// A job or a workflow is over: a run of a schedule, perhaps.
    pub(super) fn run_ended(&mut self, run: JobKey) {
        if let Some(&schedule) = self.schedules.by_run.get(&run) {
            self.schedules.change(schedule, |schedule| schedule.live = None);
        }
    }

    /// The same, where a flow says so.
    pub(super) fn flow_run_ended(&mut self, event: &FlowEvent<'_>) {
        if let FlowEvent::ElementCompleted { key }
        | FlowEvent::ElementTerminated { key }
        | FlowEvent::Workflow(
            WorkflowEvent::WorkflowEnded { key, .. } | WorkflowEvent::WorkflowRemoved { key, .. },
        ) = event
        {
            self.run_ended(*key);
        }
    }
}

impl Schedule {
    fn new(
        key: JobKey,
        name: ScheduleName,
        settings: windlass_record::schedule::ScheduleSettings,
        now_ms: u64,
    ) -> Schedule {
        Schedule {
            key,
            name,
            version: 0,
            settings,
            paused: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            next_due_ms: None,
            caught_up: 0,
            live: None,
            queued: VecDeque::new(),
            runs: VecDeque::new(),
            started: 0,
            skipped: 0,
            failed: 0,
            image_hash: 0,
        }
    }

    /// Times that are skipped one after the other for one reason are one entry: they must not drive
    /// out what happened before.
    fn remember(&mut self, at_ms: u64, fired: &ScheduleFired<'_>, outcome: RunOutcome) {
        let (scheduled_for_ms, cause) = (fired.scheduled_for_ms, fired.cause);
        if let (Some(last), RunOutcome::Skipped(why, count)) = (self.runs.back_mut(), &outcome)
            && let RunOutcome::Skipped(last_why, last_count) = &mut last.outcome
            && (*last_why, last.cause) == (*why, cause)
        {
            *last_count = last_count.saturating_add(*count);
            last.at_ms = at_ms;
            return;
        }
        if self.runs.len() >= SCHEDULE_RUNS_MAX {
            self.runs.pop_front();
        }
        self.runs.push_back(Run { scheduled_for_ms, at_ms, cause, outcome });
    }
}
