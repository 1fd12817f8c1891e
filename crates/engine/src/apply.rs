//! What an event does to the state. Only assigns: every choice was made by `decide` and stands in
//! the event. Replay is decode and this.
//!
//! Start at [`State::apply`]; one function per event that needs more than a line. Those about queues
//! and limit keys stand in `settings`, those about documents in `document`,
//! those about schedules in `schedule`.

mod document;
mod schedule;
mod settings;

use windlass_record::event::{
    DeadlineKind, Event, IncidentKind, JobActivated, JobCreated, Outcome, ReadyCause,
};
use windlass_record::id::{JobKey, Payload, Token};
use windlass_record::policy::JobOrder;

use crate::lifecycle::JobState;
use crate::state::document::DocumentName;
use crate::state::fair::Side;
use crate::state::job::{Extra, Flags, Incident, Job, NONE, Slot};
use crate::state::{Ended, State};

impl State {
    /// Applies an event of the record made at `now_ms`.
    pub(crate) fn apply(&mut self, now_ms: u64, event: &Event<'_>) {
        self.last_ms = self.last_ms.max(now_ms);
        match event {
            Event::PartitionOpened { leases_to_ms } => {
                self.move_leases(|deadline_ms| deadline_ms.max(*leases_to_ms));
            }
            Event::LeasesMoved { by_ms } => {
                self.move_leases(|deadline_ms| deadline_ms.saturating_add(*by_ms));
            }
            Event::QueueCreated { queue, tenant, name, settings } => {
                self.queue_created(*queue, tenant, name, settings);
            }
            Event::QueueConfigured { queue, settings } => self.queue_configured(*queue, settings),
            Event::QueuePaused { queue, paused } => {
                self.mark_queue(*queue);
                self.queue_mut(*queue).paused = *paused;
                self.mark_served(*queue);
            }
            Event::LimitConfigured { limit, tenant, name, settings, implied } => {
                self.limit_configured(*limit, (tenant, name), settings, *implied, now_ms);
            }
            Event::RateFreed { limit } => self.rate_freed(*limit, now_ms),
            Event::JobCreated(created) => self.job_created(now_ms, created),
            Event::JobActivated(activated) => self.job_activated(now_ms, activated),
            Event::JobReturned { key, turn, scheme_count } => {
                self.job_returned(self.live(*key), *turn, *scheme_count, now_ms);
            }
            Event::LeaseExtended { key, deadline_ms } => {
                let slot = self.live(*key);
                self.touch(slot);
                let job = self.jobs.get_mut(slot);
                job.due_ms = *deadline_ms;
                job.flags.set(Flags::ALERTED_LEASE, false);
                self.reset_wake(slot);
            }
            Event::JobProgressed { key, percent, note } => {
                let slot = self.live(*key);
                self.touch(slot);
                let extra = self.jobs.get_mut(slot).extra_mut();
                extra.percent = *percent;
                extra.note = (*note).into();
            }
            Event::JobLogged { key, lines, dropped } => {
                let slot = self.live(*key);
                self.touch(slot);
                let extra = self.jobs.get_mut(slot).extra_mut();
                extra.log.extend(lines.iter().map(|line| Box::from(&**line)));
                extra.log_dropped = *dropped;
            }
            Event::JobRetried { key, due_ms, retries, attempt, failures, message } => {
                let slot = self.live(*key);
                self.leave(slot);
                self.mark_retry(slot);
                let job = self.jobs.get_mut(slot);
                job.retries = *retries;
                let extra = job.extra_mut();
                extra.failures = *failures;
                extra.message = (*message).into();
                self.begin_attempt(slot, *attempt);
                self.wait_or_ready(slot, *due_ms, JobState::Backoff, now_ms);
            }
            Event::JobReadied { key, cause } => {
                let slot = self.live(*key);
                match cause {
                    ReadyCause::Due | ReadyCause::BackoffEnded => self.touch(slot),
                    ReadyCause::LeaseEnded => self.leave(slot),
                }
                self.make_ready(slot, now_ms);
            }
            Event::JobReleased { key, due_ms } => {
                let slot = self.live(*key);
                self.leave(slot);
                self.wait_or_ready(slot, *due_ms, JobState::Scheduled, now_ms);
            }
            Event::IncidentRaised { key, incident, kind, retries, failures, code, message } => {
                let slot = self.live(*key);
                self.leave(slot);
                self.jobs.get_mut(slot).retries = *retries;
                let extra = self.jobs.get_mut(slot).extra_mut();
                extra.failures = *failures;
                extra.message = (*message).into();
                self.raise_incident(slot, *incident, *kind, code, now_ms);
            }
            Event::IncidentResolved { key, retries, attempt } => {
                let slot = self.live(*key);
                self.touch(slot);
                let job = self.jobs.get_mut(slot);
                job.retries = *retries;
                if let Some(incident) = job.extra_mut().incident.take() {
                    self.incidents.remove(&incident.key);
                }
                self.begin_attempt(slot, *attempt);
                self.make_ready(slot, now_ms);
            }
            Event::CancelAsked { key, reason } => {
                let slot = self.live(*key);
                self.touch(slot);
                let job = self.jobs.get_mut(slot);
                job.flags.set(Flags::CANCEL_ASKED, true);
                job.extra_mut().cancel_reason = (*reason).into();
                self.effects.cancels.push(*key);
            }
            Event::JobUpdated { key, retries, priority, deadline_ms } => {
                self.job_updated(self.live(*key), *retries, *priority, *deadline_ms);
            }
            Event::JobAlerted { key, deadline } => {
                let slot = self.live(*key);
                self.touch(slot);
                let flag = match deadline {
                    DeadlineKind::Lease => Flags::ALERTED_LEASE,
                    DeadlineKind::Waiting => Flags::ALERTED_WAITING,
                    DeadlineKind::Attempt => Flags::ALERTED_ATTEMPT,
                    DeadlineKind::Total => Flags::ALERTED_TOTAL,
                };
                self.jobs.get_mut(slot).flags.set(flag, true);
                self.effects.alerts.push((*key, *deadline));
                self.reset_wake(slot);
            }
            Event::JobEnded { key, outcome, result, message } => {
                self.job_ended(self.live(*key), *outcome, *result, message, now_ms);
                self.run_ended(*key);
            }
            Event::DocumentPut { tenant, kind, id, version, bytes } => {
                self.document_put(document_name(tenant, kind, id), *version, *bytes);
            }
            Event::DocumentDeleted { tenant, kind, id } => {
                self.document_deleted(document_name(tenant, kind, id));
            }
            Event::Flow(event) => {
                if let Some(key) = event.new_key() {
                    self.last_counter = self.last_counter.max(key.counter());
                }
                self.flow.apply(now_ms, event);
                self.flow_run_ended(event);
            }
            Event::Schedule(event) => self.schedule_event(now_ms, event),
        }
    }

    fn live(&self, key: JobKey) -> Slot {
        self.find(key).expect("events are only about live jobs")
    }

    // ── the life of a job ───────────────────────────────────────────────────────────────────

    fn job_created(&mut self, now_ms: u64, created: &JobCreated<'_>) {
        self.last_counter = self.last_counter.max(created.key.counter());
        let mut job = Job::new(created.key, now_ms, created.payload);
        job.retries = created.retries;
        if !created.job_type.is_empty() {
            job.job_type = self.types.add(created.job_type);
        }
        if let Some(options) = &created.options {
            let options = options.clone().into_owned();
            if !options.unique_key.is_empty() {
                self.unique_keys.hold(created.queue, &options.unique_key, created.key);
            }
            if !options.request_id.is_empty() {
                let scoped = self.scoped_request(created.queue, &options.request_id);
                self.requests.remember(scoped, created.key, now_ms);
            }
            job.extra = Some(Box::new(Extra { options, ..Extra::default() }));
        }
        let slot = self.jobs.insert(job);
        self.keys.insert(created.key, slot);
        let group = self.group_named(created.queue, Side::Open, created.group);
        let keys = (created.concurrency, created.rate);
        let class = self.class_of(created.queue, slot);
        let lane = self.lane_for(group, keys, class, created.priority);
        self.join_lane(slot, lane);
        self.queue_mut(created.queue).counts.scheduled += 1;
        self.touch(slot);
        if created.due_ms == 0 {
            self.make_ready(slot, now_ms);
        } else {
            self.jobs.get_mut(slot).due_ms = created.due_ms;
            self.reset_wake(slot);
        }
        self.unique_keys.prune(now_ms);
        let (since_ms, entries_max) = self.request_bounds(now_ms);
        self.requests.prune(since_ms, entries_max);
    }

    fn job_activated(&mut self, now_ms: u64, activated: &JobActivated<'_>) {
        let slot = self.live(activated.key);
        self.touch(slot);
        self.serve(slot, now_ms);
        self.set_state(slot, JobState::Active);
        let worker = match activated.worker {
            "" => NONE,
            worker => self.workers.add(worker),
        };
        let job = self.jobs.get_mut(slot);
        job.activation = activated.activation;
        job.due_ms = activated.deadline_ms;
        job.worker = worker;
        let first_token = activated.with_token && !job.flags.has(Flags::TOKENED);
        job.flags.set(Flags::FIRST_TOKEN, first_token);
        if first_token {
            job.flags.set(Flags::TOKENED, true);
        }
        job.flags.set(Flags::ALERTED_LEASE, false);
        job.flags.set(Flags::ALERTED_WAITING, false);
        if let Some(extra) = job.extra.as_deref_mut() {
            extra.attempt_due_ms = activated.attempt_due_ms;
            extra.activated_ms = now_ms;
            if extra.attempt_started_ms == 0 {
                extra.attempt_started_ms = now_ms;
                // What the attempt before said was there to be read until now.
                extra.percent = 0;
                extra.note = "".into();
                extra.log.clear();
                extra.log_dropped = 0;
            }
        }
        let group = self.group_of(slot);
        self.set_scheme_count(group, activated.scheme_count);
        self.end_turn(group);
        self.reset_wake(slot);
    }

    fn job_returned(&mut self, slot: Slot, turn: u64, scheme_count: u32, now_ms: u64) {
        self.touch(slot);
        self.drop_lease(slot);
        self.set_state(slot, JobState::Ready);
        let job = self.jobs.get_mut(slot);
        job.due_ms = now_ms;
        if job.flags.has(Flags::FIRST_TOKEN) {
            // Nobody has the token.
            job.flags.set(Flags::FIRST_TOKEN | Flags::TOKENED, false);
        }
        let activated_ms = job.extra.as_deref_mut().map_or(0, |extra| {
            if extra.attempt_started_ms == extra.activated_ms {
                // The attempt was started by this activation, so it was not started at all.
                extra.attempt_started_ms = 0;
                extra.attempt_due_ms = 0;
            }
            extra.activated_ms
        });
        // Its order is as it was, so it stands where it stood.
        self.unserve(slot, activated_ms);
        let group = self.group_of(slot);
        self.set_scheme_count(group, scheme_count);
        self.restore_turn(group, turn);
        self.reset_wake(slot);
    }

    fn job_updated(&mut self, slot: Slot, retries: i32, priority: i32, deadline_ms: Option<u64>) {
        self.touch(slot);
        let ready = self.job(slot).state == JobState::Ready;
        if ready {
            self.relane_ready(slot, priority);
        } else {
            self.relane(slot, priority);
        }
        let job = self.jobs.get_mut(slot);
        job.retries = retries;
        if let Some(deadline_ms) = deadline_ms {
            job.due_ms = deadline_ms;
            job.flags.set(Flags::ALERTED_LEASE, false);
        }
        self.reset_wake(slot);
    }

    fn job_ended(
        &mut self,
        slot: Slot,
        outcome: Outcome,
        result: Payload,
        message: &str,
        now_ms: u64,
    ) {
        self.bury(slot);
        if matches!(outcome, Outcome::Cancelled | Outcome::TimedOut)
            && let Some(worker) = self.worker_name(slot)
        {
            // Somebody else ended it: its worker works for nothing and should hear of it.
            let token = Token { key: self.job(slot).key, activation: self.job(slot).activation };
            self.effects.lost.push((token, worker.clone()));
        }
        self.leave_unmarked(slot);
        let queue = self.queue_of(slot);
        let ended_group = self.group_name(slot).clone();
        let job_type = self.type_name(slot).clone();
        let priority = self.priority(slot);
        let state = self.jobs.get(slot).state;
        *self.queue_mut(queue).counts.of(state) -= 1;
        self.wheel.set(&mut self.jobs, slot, u64::MAX);
        self.quit_lane(slot);
        let job = self.jobs.remove(slot);
        self.keys.remove(job.key);
        self.types.drop_user(job.job_type);
        if let Some(extra) = job.extra() {
            if let Some(incident) = &extra.incident {
                self.incidents.remove(&incident.key);
            }
            if !extra.options.unique_key.is_empty() {
                let until_ms = now_ms.saturating_add(extra.options.unique_hold_ms);
                self.unique_keys.release(queue, &extra.options.unique_key, until_ms, now_ms);
            }
        }
        if job.payload.len > 0 {
            self.effects.freed.push(job.payload);
        }
        self.effects.ended.push(Ended {
            job,
            queue,
            group: ended_group,
            job_type,
            priority,
            outcome,
            result,
            message: message.into(),
            ended_ms: now_ms,
        });
    }

    /// Takes a job out of wherever its state has it: its lane, or its lease with the slot it uses.
    fn leave(&mut self, slot: Slot) {
        self.touch(slot);
        self.leave_unmarked(slot);
        if self.job(slot).flags.has(Flags::FIRST_TOKEN) {
            // The token is out in the world: the job is for those who have one from now on.
            self.jobs.get_mut(slot).flags.set(Flags::FIRST_TOKEN, false);
            let priority = self.priority(slot);
            self.relane(slot, priority);
        }
    }

    fn leave_unmarked(&mut self, slot: Slot) {
        match self.job(slot).state {
            JobState::Ready => self.leave_lane(slot),
            JobState::Active => {
                self.drop_lease(slot);
                self.free_place(self.bay_of(slot));
            }
            JobState::Scheduled | JobState::Backoff | JobState::Incident => {}
            JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Vacant => {
                unreachable!("a live job is not at rest")
            }
        }
    }

    fn drop_lease(&mut self, slot: Slot) {
        let worker = std::mem::replace(&mut self.jobs.get_mut(slot).worker, NONE);
        self.workers.drop_user(worker);
    }

    fn begin_attempt(&mut self, slot: Slot, attempt: u32) {
        let job = self.jobs.get_mut(slot);
        job.attempt = attempt;
        job.flags.set(Flags::ALERTED_ATTEMPT, false);
        if let Some(extra) = job.extra.as_deref_mut() {
            extra.attempt_due_ms = 0;
            extra.attempt_started_ms = 0;
        }
    }

    /// The job, which stands in no lane, is served as a retry from now on.
    fn mark_retry(&mut self, slot: Slot) {
        self.jobs.get_mut(slot).flags.set(Flags::RETRY, true);
        let priority = self.priority(slot);
        self.relane(slot, priority);
    }

    fn wait_or_ready(&mut self, slot: Slot, due_ms: u64, waiting: JobState, now_ms: u64) {
        if due_ms == 0 {
            self.make_ready(slot, now_ms);
            return;
        }
        self.set_state(slot, waiting);
        self.jobs.get_mut(slot).due_ms = due_ms;
        self.reset_wake(slot);
    }

    /// Puts a job that stands nowhere into its lane.
    fn make_ready(&mut self, slot: Slot, now_ms: u64) {
        self.set_state(slot, JobState::Ready);
        let queue = self.queue_of(slot);
        let order = match self.queue(queue).settings.order {
            JobOrder::Creation => self.job(slot).key.counter(),
            JobOrder::Ready => self.next_stamp(),
        };
        let job = self.jobs.get_mut(slot);
        job.order = order;
        job.due_ms = now_ms;
        job.flags.set(Flags::ALERTED_WAITING, false);
        self.enter_lane(slot);
        self.reset_wake(slot);
    }

    fn raise_incident(
        &mut self,
        slot: Slot,
        incident: JobKey,
        kind: IncidentKind,
        code: &str,
        now_ms: u64,
    ) {
        self.last_counter = self.last_counter.max(incident.counter());
        self.set_state(slot, JobState::Incident);
        self.mark_retry(slot);
        let job = self.jobs.get_mut(slot);
        let key = job.key;
        job.extra_mut().incident =
            Some(Incident { key: incident, kind, code: code.into(), since_ms: now_ms });
        self.incidents.insert(incident, key);
        self.reset_wake(slot);
    }

    fn move_leases(&mut self, to: impl Fn(u64) -> u64) {
        let active: Vec<Slot> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state == JobState::Active)
            .map(|(slot, _)| slot)
            .collect();
        for slot in active {
            let due_ms = to(self.job(slot).due_ms);
            if due_ms != self.job(slot).due_ms {
                self.touch(slot);
                let job = self.jobs.get_mut(slot);
                job.due_ms = due_ms;
                job.flags.set(Flags::ALERTED_LEASE, false);
                self.reset_wake(slot);
            }
        }
    }
}

fn document_name(tenant: &str, kind: &str, id: &str) -> DocumentName {
    DocumentName { tenant: tenant.into(), kind: kind.into(), id: id.into() }
}
