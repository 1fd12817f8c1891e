//! Create a job: it is Ready, or Scheduled when it is not due yet.
//!
//! Refused with the holder's key when the unique key is held. A repeated request id is answered
//! with the key of the first. A queue or limit key that does not exist yet is made with it.

use std::borrow::Cow;

use windlass_record::bound::Bound;
use windlass_record::command::{CreateJob, Due, JobOptions};
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
    check_form(step, command)?;
    let now_ms = step.context.now_ms;
    let wait_ms = wait_ms(command.due, now_ms);
    step.duration(wait_ms)?;
    let queue = step.state.queue_named(&command.queue);
    let settings = queue.map_or(QueueSettings::DEFAULT, |queue| step.state.queue(queue).settings);
    let typed = !command.job_type.is_empty() && *command.job_type != *command.queue.queue;
    if typed && settings.one_type {
        return Err(Rejection::QueueOfOneType);
    }
    if typed && !step.state.types.contains(&command.job_type) {
        room(Bound::JobTypes, step.state.types.len(), step.bounds.job_types_max)?;
    }
    if let Some(options) = &command.options {
        check_keys(step, command, options)?;
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
        due_ms: if wait_ms == 0 { 0 } else { now_ms.saturating_add(wait_ms) },
        payload,
        concurrency,
        rate,
        options: command.options.as_deref().map(Cow::Borrowed),
    }));
    Ok(Answer::Created { key, existing: false })
}

/// Refuses what could never be a job, whatever there is besides.
pub(super) fn check_form<S: Sink>(
    step: &Step<'_, S>,
    command: &CreateJob,
) -> Result<(), Rejection> {
    step.name("tenant", &command.queue.tenant)?;
    step.name("queue", &command.queue.queue)?;
    step.optional_name("type", &command.job_type)?;
    step.optional_name("group", &command.group)?;
    at_most(Bound::PayloadBytes, command.payload.len(), step.bounds.payload_bytes_max)?;
    if command.retries < 0 {
        return Err(Rejection::OutOfRange { field: "retries", must: "from 0 to 2147483647" });
    }
    match &command.options {
        Some(options) => check_options(step, options),
        None => Ok(()),
    }
}

/// How long the job is not to be handed out.
fn wait_ms(due: Due, now_ms: u64) -> u64 {
    match due {
        Due::Now => 0,
        Due::At(due_ms) => due_ms.saturating_sub(now_ms),
        Due::After(wait_ms) => wait_ms,
    }
}

fn check_options<S: Sink>(step: &Step<'_, S>, options: &JobOptions) -> Result<(), Rejection> {
    at_most(Bound::HeaderBytes, options.headers.len(), step.bounds.header_bytes_max)?;
    step.optional_name("unique key", &options.unique_key)?;
    step.optional_name("request id", &options.request_id)?;
    step.optional_name("concurrency key", &options.concurrency_key)?;
    step.optional_name("rate key", &options.rate_key)?;
    step.duration(options.unique_hold_ms)?;
    for duration_ms in options.retry.durations_ms() {
        step.duration(duration_ms)?;
    }
    let deadlines = &options.deadlines;
    for (after_ms, _) in
        [deadlines.waiting, deadlines.attempt, deadlines.total].into_iter().flatten()
    {
        step.positive("deadline", after_ms)?;
    }
    Ok(())
}

/// Refuses new limit keys when there are too many.
fn check_keys<S: Sink>(
    step: &Step<'_, S>,
    command: &CreateJob,
    options: &JobOptions,
) -> Result<(), Rejection> {
    let tenant = &*command.queue.tenant;
    let is_new = |key: &&&str| {
        !key.is_empty() && !step.state.limit_names.contains_key(&(tenant, **key) as &dyn PairName)
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
    pub(super) fn make_limit(
        &mut self,
        tenant: &str,
        name: &str,
        settings: LimitSettings,
    ) -> Option<LimitId> {
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

#[cfg(test)]
mod tests {
    use windlass_record::bound::Bounds;
    use windlass_record::command::{Bytes, Command, QueueName};
    use windlass_record::id::JobKey;
    use windlass_record::policy::{DeadlineOutcome, Deadlines, RetryPolicy};

    use super::*;
    use crate::lifecycle::JobState;
    use crate::verb::check::{Check, active_max, job, job_with, queue_name};

    fn unique(key: &str, hold_ms: u64) -> JobOptions {
        JobOptions { unique_key: key.into(), unique_hold_ms: hold_ms, ..JobOptions::default() }
    }

    #[test]
    fn is_ready_or_scheduled() {
        let mut check = Check::new();
        let now_ms = check.now_ms;
        for (due, expected_ms) in [
            (Due::Now, None),
            (Due::At(0), None),
            (Due::At(now_ms), None),
            (Due::After(0), None),
            (Due::At(now_ms + 1), Some(now_ms + 1)),
            (Due::After(1), Some(now_ms + 1)),
        ] {
            let key = check.create(CreateJob { due, ..job("q", "a", 0) });
            let expected = expected_ms.map_or(JobState::Ready, |_| JobState::Scheduled);
            assert_eq!(check.state_of(key), Some(expected), "{due:?}");
            if let Some(expected_ms) = expected_ms {
                assert_eq!(check.job(key).due_ms, expected_ms, "{due:?}");
            }
        }
        check.pass(1);
        assert_eq!(check.take_many(&["q"], 9).len(), 6);
    }

    #[test]
    fn a_unique_key_is_held_and_a_while_longer() {
        let mut check = Check::new();
        let key = check.create(job_with("q", "a", unique("u", 100)));
        let other = check.create(job_with("p", "a", unique("u", 0)));
        check.create(job_with("q", "a", unique("v", 0)));
        let holder = |check: &Check, queue: &str, key: &str| {
            check.engine.state().holder(&queue_name(queue), key, check.now_ms)
        };
        assert_eq!(holder(&check, "q", "u"), Some(key));
        assert_eq!(holder(&check, "p", "u"), Some(other));
        assert_eq!((holder(&check, "p", "v"), holder(&check, "r", "u")), (None, None));
        let held = Err(Rejection::UniqueKeyHeld { holder: key });
        assert_eq!(check.give(Command::CreateJob(job_with("q", "b", unique("u", 0)))), held);
        check.complete(key).expect("nobody finished it");
        assert_eq!(check.give(Command::CreateJob(job_with("q", "b", unique("u", 0)))), held);
        check.now_ms += 99;
        assert_eq!(check.give(Command::CreateJob(job_with("q", "b", unique("u", 0)))), held);
        assert_eq!(holder(&check, "q", "u"), Some(key));
        check.now_ms += 1;
        assert_eq!(holder(&check, "q", "u"), None);
        let next = check.create(job_with("q", "b", unique("u", 0)));
        check.complete(next).expect("nobody finished it");
        check.create(job_with("q", "b", unique("u", 0)));
    }

    fn request(check: &mut Check, tenant: &str, request_id: &str) -> Result<Answer, Rejection> {
        let options = JobOptions { request_id: request_id.into(), ..JobOptions::default() };
        let queue = QueueName { tenant: tenant.into(), queue: "q".into() };
        check.give(Command::CreateJob(CreateJob { queue, ..job_with("q", "a", options) }))
    }

    fn key_of(answer: Result<Answer, Rejection>) -> (JobKey, bool) {
        match answer {
            Ok(Answer::Created { key, existing }) => (key, existing),
            other => panic!("create: {other:?}"),
        }
    }

    #[test]
    fn a_repeated_request_is_answered_with_the_first_key() {
        let mut check = Check::new();
        let (key, existing) = key_of(request(&mut check, "t", "r"));
        assert!(!existing);
        check.complete(key).expect("nobody finished it");
        check.now_ms += 10 * 60 * 1000;
        assert_eq!(key_of(request(&mut check, "t", "r")), (key, true), "ended, and remembered");
        assert!(!key_of(request(&mut check, "other", "r")).1, "another tenant's");
        check.now_ms += 1;
        let (again, existing) = key_of(request(&mut check, "t", "r"));
        assert!(!existing, "ten minutes are over");
        assert_eq!(key_of(request(&mut check, "t", "r")), (again, true));
    }

    #[test]
    fn past_the_bound_the_oldest_request_is_forgotten() {
        let mut check = Check::with_bounds(Bounds { request_ids_max: 2, ..Bounds::default() });
        for id in ["1", "2", "3"] {
            assert!(!key_of(request(&mut check, "t", id)).1);
        }
        assert!(key_of(request(&mut check, "t", "3")).1);
        assert!(key_of(request(&mut check, "t", "2")).1);
        assert!(!key_of(request(&mut check, "t", "1")).1);
    }

    #[test]
    fn every_bound_and_what_it_says() {
        let bounds = Bounds {
            name_bytes_max: 4,
            payload_bytes_max: 4,
            header_bytes_max: 4,
            live_jobs_max: 2,
            queues_max: 2,
            job_types_max: 1,
            limit_keys_max: 2,
            duration_ms_max: 1000,
            ..Bounds::default()
        };
        let long = || Box::<str>::from("12345");
        let plain = || job("q", "a", 0);
        let with = |options| CreateJob { options: Some(Box::new(options)), ..plain() };
        let default = JobOptions::default;
        let soon = |after_ms| Deadlines {
            waiting: Some((after_ms, DeadlineOutcome::End)),
            ..Deadlines::default()
        };
        let tenant = |tenant: &str| QueueName { tenant: tenant.into(), queue: "q".into() };
        let rows: Vec<(CreateJob, &str)> = vec![
            (CreateJob { queue: tenant(""), ..plain() }, "tenant must not be empty"),
            (
                CreateJob { queue: tenant("12345"), ..plain() },
                "5 bytes of a name is over the limit of 4",
            ),
            (CreateJob { queue: tenant("a\0"), ..plain() }, "tenant must be free of zero bytes"),
            (CreateJob { job_type: long(), ..plain() }, "5 bytes of a name is over the limit of 4"),
            (CreateJob { group: long(), ..plain() }, "5 bytes of a name is over the limit of 4"),
            (
                CreateJob { payload: Bytes::from([0; 5]), ..plain() },
                "5 bytes of a payload is over the limit of 4",
            ),
            (CreateJob { retries: -1, ..plain() }, "retries must be from 0 to 2147483647"),
            (CreateJob { due: Due::At(u64::MAX), ..plain() }, "milliseconds of a duration"),
            (
                CreateJob { due: Due::After(1001), ..plain() },
                "1001 milliseconds of a duration is over the limit of 1000",
            ),
            (
                with(JobOptions { headers: [0; 5].into(), ..default() }),
                "5 bytes of headers is over the limit of 4",
            ),
            (
                with(JobOptions { unique_key: long(), ..default() }),
                "5 bytes of a name is over the limit of 4",
            ),
            (
                with(JobOptions { request_id: long(), ..default() }),
                "5 bytes of a name is over the limit of 4",
            ),
            (
                with(JobOptions { concurrency_key: long(), ..default() }),
                "5 bytes of a name is over the limit of 4",
            ),
            (
                with(JobOptions { rate_key: long(), ..default() }),
                "5 bytes of a name is over the limit of 4",
            ),
            (
                with(JobOptions { unique_hold_ms: 1001, ..default() }),
                "1001 milliseconds of a duration is over the limit of 1000",
            ),
            (
                with(JobOptions {
                    retry: RetryPolicy::Fixed { delay_ms: 1001, jitter_ms: 0 },
                    ..default()
                }),
                "1001 milliseconds of a duration is over the limit of 1000",
            ),
            (
                with(JobOptions {
                    retry: RetryPolicy::Fixed { delay_ms: 0, jitter_ms: u64::MAX },
                    ..default()
                }),
                "milliseconds of a duration is over the limit of 1000",
            ),
            (
                with(JobOptions { deadlines: soon(0), ..default() }),
                "deadline must be at least 1 ms",
            ),
            (
                with(JobOptions { deadlines: soon(1001), ..default() }),
                "1001 milliseconds of a duration is over the limit of 1000",
            ),
        ];
        for (command, expected) in rows {
            let mut check = Check::with_bounds(bounds);
            let command = CreateJob {
                queue: match &*command.queue.tenant {
                    "default" => tenant("t"),
                    _ => command.queue.clone(),
                },
                ..command
            };
            let said = check.give(Command::CreateJob(command.clone())).expect_err(expected);
            assert!(said.to_string().contains(expected), "{said} for {command:?}");
        }
    }

    #[test]
    fn what_is_exhausted_is_named() {
        let bounds = Bounds {
            live_jobs_max: 3,
            queues_max: 2,
            job_types_max: 1,
            limit_keys_max: 2,
            ..Bounds::default()
        };
        let keys = |concurrency: &str, rate: &str| JobOptions {
            concurrency_key: concurrency.into(),
            rate_key: rate.into(),
            ..JobOptions::default()
        };
        let mut check = Check::with_bounds(bounds);
        check.limit("k1", active_max(1));
        let refused = |check: &mut Check, command, bound, max| {
            let said = check.give(Command::CreateJob(command));
            assert_eq!(said, Err(Rejection::Exhausted { bound, max }));
        };
        refused(&mut check, job_with("q", "a", keys("k2", "k3")), Bound::LimitKeys, 2);
        check.create(job_with("q", "a", keys("k1", "k2")));
        // Keys that are there already are no new ones.
        check.create(CreateJob { job_type: "t1".into(), ..job_with("q", "a", keys("k2", "k1")) });
        refused(&mut check, job_with("q", "a", keys("k3", "")), Bound::LimitKeys, 2);
        refused(
            &mut check,
            CreateJob { job_type: "t2".into(), ..job("q", "a", 0) },
            Bound::JobTypes,
            1,
        );
        check.create(CreateJob { job_type: "t1".into(), ..job("p", "a", 0) });
        refused(&mut check, job("r", "a", 0), Bound::LiveJobs, 3);
        let key = check.take("q").expect("one is ready");
        check.complete(key).expect("it is held");
        refused(&mut check, job("r", "a", 0), Bound::Queues, 2);
        check.create(job("q", "a", 0));
    }

    #[test]
    fn a_queue_of_one_type_takes_no_other() {
        let mut check = Check::new();
        check.configure("q", QueueSettings { one_type: true, ..QueueSettings::DEFAULT });
        let typed = |job_type: &str| CreateJob { job_type: job_type.into(), ..job("q", "a", 0) };
        check.create(typed(""));
        check.create(typed("q"));
        let refused = check.give(Command::CreateJob(typed("other")));
        assert_eq!(refused, Err(Rejection::QueueOfOneType));
    }
}
