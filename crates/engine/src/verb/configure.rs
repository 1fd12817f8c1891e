//! Settings: of a queue, of a limit key, and pause.

use windlass_record::bound::Bound;
use windlass_record::command::{ConfigureLimit, ConfigureQueue, PauseQueue};
use windlass_record::event::Event;
use windlass_record::id::LimitId;
use windlass_record::policy::{PriorityRule, RateWindow};
use windlass_record::rejection::Rejection;

use super::guard::room;
use crate::state::PairName;
use crate::{Answer, Sink, Step};

/// Decides [`ConfigureQueue`].
pub(super) fn decide_queue<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ConfigureQueue,
) -> Result<Answer, Rejection> {
    step.name("tenant", &command.queue.tenant)?;
    step.name("queue", &command.queue.queue)?;
    let settings = &command.settings;
    if let PriorityRule::Scheme { high, low } = settings.priority
        && !(1..=1_000_000).contains(&high.saturating_add(low))
    {
        return Err(Rejection::OutOfRange { field: "counting scheme" });
    }
    step.duration(settings.aging_ms)?;
    step.duration(settings.finished_ms)?;
    step.check_rate(settings.key_rate)?;
    let known = step.state.queue_named(&command.queue);
    if known.is_none() {
        room(Bound::Queues, step.state.queues.len(), step.bounds.queues_max)?;
    }

    // Cannot fail from here.
    let Some(queue) = known else {
        let queue = step.emit_queue(&command.queue.tenant, &command.queue.queue, settings);
        return Ok(Answer::Queue(queue));
    };
    if !command.seed_only && step.state.queue(queue).settings != *settings {
        step.emit(&Event::QueueConfigured { queue, settings: *settings });
    }
    Ok(Answer::Queue(queue))
}

/// Decides [`PauseQueue`].
pub(super) fn decide_pause<S: Sink>(
    step: &mut Step<'_, S>,
    command: &PauseQueue,
) -> Result<Answer, Rejection> {
    let queue = step.state.queue_named(&command.queue).ok_or(Rejection::QueueNotFound)?;

    // Cannot fail from here.
    if step.state.queue(queue).paused != command.paused {
        step.emit(&Event::QueuePaused { queue, paused: command.paused });
    }
    Ok(Answer::Queue(queue))
}

/// Decides [`ConfigureLimit`].
pub(super) fn decide_limit<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ConfigureLimit,
) -> Result<Answer, Rejection> {
    step.name("tenant", &command.tenant)?;
    step.name("limit key", &command.name)?;
    step.check_rate(command.settings.rate)?;
    let names = (&*command.tenant, &*command.name);
    let known = step.state.limit_names.get(&names as &dyn PairName).copied();
    if known.is_none() {
        room(Bound::LimitKeys, step.state.limits.len(), step.bounds.limit_keys_max)?;
    }

    // Cannot fail from here.
    let limit = known.unwrap_or(LimitId(step.state.last_limit + 1));
    step.emit(&Event::LimitConfigured {
        limit,
        tenant: &command.tenant,
        name: &command.name,
        settings: command.settings,
        implied: false,
    });
    Ok(Answer::Done)
}

impl<S: Sink> Step<'_, S> {
    fn check_rate(&self, rate: Option<RateWindow>) -> Result<(), Rejection> {
        let Some(rate) = rate else { return Ok(()) };
        step_rate_max(rate.max, self.bounds.rate_window_size_max)?;
        self.positive("rate window", rate.window_ms)
    }
}

fn step_rate_max(given: u32, max: u32) -> Result<(), Rejection> {
    if given == 0 {
        return Err(Rejection::OutOfRange { field: "rate" });
    }
    if given > max {
        return Err(Rejection::TooLarge {
            bound: Bound::RateWindowSize,
            max: u64::from(max),
            given: u64::from(given),
        });
    }
    Ok(())
}
