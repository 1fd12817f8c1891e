//! Create a job: it is Ready, or Scheduled when it is not due yet.
//!
//! Refused with the holder's key when the unique key is held. A repeated request id is answered
//! with the key of the first. A queue or limit key that does not exist yet is made with it.

use std::borrow::Cow;

use windlass_record::bound::Bound;
use windlass_record::command::{CreateJob, JobOptions};
use windlass_record::event::{Event, JobCreated};
use windlass_record::id::{LimitId, Payload, QueueId};
use windlass_record::policy::{LimitSettings, QueueSettings};
use windlass_record::rejection::Rejection;

use super::guard::{at_most, room};
use crate::state::PairName;
use crate::{Answer, Sink, Step};

/// Decides [`CreateJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &CreateJob,
) -> Result<Answer, Rejection> {
    step.name("tenant", &command.queue.tenant)?;
    step.name("queue", &command.queue.queue)?;
    step.optional_name("type", &command.job_type)?;
    step.optional_name("group", &command.group)?;
    at_most(Bound::PayloadBytes, command.payload.len(), step.bounds.payload_bytes_max)?;
    if command.retries < 0 {
        return Err(Rejection::OutOfRange { field: "retries" });
    }
    let now_ms = step.context.now_ms;
    if let Some(due_ms) = command.due_ms {
        step.duration(due_ms.saturating_sub(now_ms))?;
    }
    let queue = step.state.queue_named(&command.queue);
    let settings = queue.map_or(QueueSettings::DEFAULT, |queue| step.state.queue(queue).settings);
    let typed = !command.job_type.is_empty() && command.job_type != command.queue.queue;
    if typed && settings.one_type {
        return Err(Rejection::QueueOfOneType);
    }
    if typed && !step.state.types.contains(&command.job_type) {
        room(Bound::JobTypes, step.state.types.len(), step.bounds.job_types_max)?;
    }
    if let Some(options) = &command.options {
        check_options(step, command, options)?;
        if let Some(answer) = check_memory(step, queue, command, options)? {
            return Ok(answer);
        }
    }
    let live = usize::try_from(step.state.jobs.live()).expect("usize has at least 32 bits");
    room(Bound::LiveJobs, live, step.bounds.live_jobs_max)?;
    if queue.is_none() {
        room(Bound::Queues, step.state.queues.len(), step.bounds.queues_max)?;
    }

    // Cannot fail from here.
    let queue = queue.unwrap_or_else(|| step.make_queue(command, &settings));
    let (mut concurrency, mut rate) = (None, None);
    if let Some(options) = &command.options {
        let tenant = &command.queue.tenant;
        let of_concurrency = LimitSettings {
            active_max: (settings.key_active_max > 0).then_some(settings.key_active_max),
            rate: None,
        };
        concurrency = step.make_limit(tenant, &options.concurrency_key, of_concurrency);
        let of_rate = LimitSettings { active_max: None, rate: settings.key_rate };
        rate = step.make_limit(tenant, &options.rate_key, of_rate);
    }
    let payload =
        if command.payload.is_empty() { Payload::EMPTY } else { step.sink.keep(&command.payload) };
    let key = step.next_key();
    step.emit(&Event::JobCreated(JobCreated {
        key,
        queue,
        job_type: if typed { &command.job_type } else { "" },
        group: &command.group,
        priority: command.priority,
        retries: command.retries,
        due_ms: command.due_ms.filter(|&due_ms| due_ms > now_ms).unwrap_or(0),
        payload,
        concurrency,
        rate,
        options: command.options.as_deref().map(Cow::Borrowed),
    }));
    Ok(Answer::Created { key, existing: false })
}

fn check_options<S: Sink>(
    step: &Step<'_, S>,
    command: &CreateJob,
    options: &JobOptions,
) -> Result<(), Rejection> {
    at_most(Bound::HeaderBytes, options.headers.len(), step.bounds.header_bytes_max)?;
    step.optional_name("unique key", &options.unique_key)?;
    step.optional_name("request id", &options.request_id)?;
    step.optional_name("concurrency key", &options.concurrency_key)?;
    step.optional_name("rate key", &options.rate_key)?;
    step.duration(options.unique_hold_ms)?;
    let deadlines = &options.deadlines;
    for (after_ms, _) in
        [deadlines.waiting, deadlines.attempt, deadlines.total].into_iter().flatten()
    {
        step.positive("deadline", after_ms)?;
    }
    let tenant = &*command.queue.tenant;
    let is_new = |key: &&&str| {
        !key.is_empty()
            && !step.state.limit_names.contains_key(&(tenant, **key) as &dyn PairName)
    };
    // Two keys may be made by one job.
    match [&*options.concurrency_key, &*options.rate_key].iter().filter(is_new).count() {
        0 => Ok(()),
        new => {
            let present = step.state.limits.len() + new - 1;
            room(Bound::LimitKeys, present, step.bounds.limit_keys_max)
        }
    }
}

/// What an earlier create means for this one.
fn check_memory<S: Sink>(
    step: &Step<'_, S>,
    queue: Option<QueueId>,
    command: &CreateJob,
    options: &JobOptions,
) -> Result<Option<Answer>, Rejection> {
    let now_ms = step.context.now_ms;
    if !options.request_id.is_empty() {
        let scoped = format!("{}\0{}", command.queue.tenant, options.request_id);
        let (since_ms, _) = step.state.request_bounds(now_ms);
        if let Some(key) = step.state.requests.made(&scoped, since_ms) {
            return Ok(Some(Answer::Created { key, existing: true }));
        }
    }
    if let Some(queue) = queue
        && !options.unique_key.is_empty()
        && let Some(holder) = step.state.unique_keys.holder(queue, &options.unique_key, now_ms)
    {
        return Err(Rejection::UniqueKeyHeld { holder });
    }
    Ok(None)
}

impl<S: Sink> Step<'_, S> {
    fn make_queue(&mut self, command: &CreateJob, settings: &QueueSettings) -> QueueId {
        self.emit_queue(&command.queue.tenant, &command.queue.queue, settings)
    }

    /// Makes a queue and returns its id.
    pub(super) fn emit_queue(
        &mut self,
        tenant: &str,
        name: &str,
        settings: &QueueSettings,
    ) -> QueueId {
        let id = u32::try_from(self.state.queues.len()).expect("queues are bounded");
        let queue = QueueId(id);
        self.emit(&Event::QueueCreated { queue, tenant, name, settings: *settings });
        queue
    }

    /// The limit key of this name, made with the queue's settings if it is new.
    fn make_limit(&mut self, tenant: &str, name: &str, settings: LimitSettings) -> Option<LimitId> {
        if name.is_empty() {
            return None;
        }
        let known = self.state.limit_names.get(&(tenant, name) as &dyn PairName).copied();
        if let Some(limit) = known {
            let mut merged = self.state.limit(limit).settings;
            let lacks_active = merged.active_max.is_none() && settings.active_max.is_some();
            let lacks_rate = merged.rate.is_none() && settings.rate.is_some();
            if self.state.limit(limit).implied && (lacks_active || lacks_rate) {
                merged.active_max = merged.active_max.or(settings.active_max);
                merged.rate = merged.rate.or(settings.rate);
                let implied = true;
                self.emit(&Event::LimitConfigured {
                    limit,
                    tenant,
                    name,
                    settings: merged,
                    implied,
                });
            }
            return Some(limit);
        }
        let limit = LimitId(self.state.last_limit + 1);
        self.emit(&Event::LimitConfigured { limit, tenant, name, settings, implied: true });
        Some(limit)
    }
}
