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
        return Err(Rejection::OutOfRange {
            field: "counting scheme",
            must: "from 1 to 1000000 turns in all",
        });
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
        return Err(Rejection::OutOfRange { field: "rate", must: "at least 1 per window" });
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

#[cfg(test)]
mod tests {
    use windlass_record::bound::Bounds;
    use windlass_record::command::Command;
    use windlass_record::policy::QueueSettings;

    use super::*;
    use crate::verb::check::{Check, active_max, job, queue_name, rate};

    fn configure(settings: QueueSettings, seed_only: bool) -> Command {
        Command::ConfigureQueue(ConfigureQueue { queue: queue_name("q"), settings, seed_only })
    }

    #[test]
    fn a_seed_does_not_touch_what_is_there() {
        let mut check = Check::new();
        let aged = QueueSettings { aging_ms: 5, ..QueueSettings::DEFAULT };
        check.give(configure(aged, true)).expect("it is new");
        check.give(configure(QueueSettings::DEFAULT, true)).expect("it is there");
        let settings =
            |check: &Check| check.engine.state().queue(windlass_record::id::QueueId(0)).settings;
        assert_eq!(settings(&check), aged);
        check.give(configure(QueueSettings::DEFAULT, false)).expect("it is there");
        assert_eq!(settings(&check), QueueSettings::DEFAULT);
        let logged = check.shelf.log.len();
        check.give(configure(QueueSettings::DEFAULT, false)).expect("it is there");
        assert_eq!(check.shelf.log.len(), logged, "nothing is new");
    }

    #[test]
    fn a_paused_queue_hands_out_nothing() {
        let mut check = Check::new();
        let unknown = PauseQueue { queue: queue_name("q"), paused: true };
        let refused = check.give(Command::PauseQueue(unknown));
        assert_eq!(refused, Err(Rejection::QueueNotFound));
        let key = check.create(job("q", "a", 0));
        check.pause("q", true);
        assert_eq!(check.take_many(&["q"], 5), []);
        check.pause("q", false);
        assert_eq!(check.take_many(&["q"], 5), [key]);
    }

    #[test]
    fn what_is_refused() {
        let bounds = Bounds {
            queues_max: 0,
            limit_keys_max: 1,
            rate_window_size_max: 10,
            duration_ms_max: 1000,
            ..Bounds::default()
        };
        let mut check = Check::with_bounds(bounds);
        let scheme = |high, low| {
            let priority = PriorityRule::Scheme { high, low };
            configure(QueueSettings { priority, ..QueueSettings::DEFAULT }, false)
        };
        let limit = |name: &str, settings| {
            Command::ConfigureLimit(ConfigureLimit {
                tenant: "t".into(),
                name: name.into(),
                settings,
            })
        };
        check.give(limit("k", active_max(1))).expect("there is room for one");
        for (command, expected) in [
            (scheme(0, 0), "counting scheme must be from 1 to 1000000 turns in all"),
            (scheme(u32::MAX, 1), "counting scheme must be from 1 to 1000000 turns in all"),
            (
                configure(
                    QueueSettings { aging_ms: 1001, finished_ms: 0, ..QueueSettings::DEFAULT },
                    false,
                ),
                "1001 milliseconds of a duration is over the limit of 1000",
            ),
            (
                configure(QueueSettings { finished_ms: 0, ..QueueSettings::DEFAULT }, false),
                "the limit of 0 queues of a partition is reached: try again later",
            ),
            (limit("", active_max(1)), "limit key must not be empty"),
            (limit("k", rate(0, 5)), "rate must be at least 1 per window"),
            (limit("k", rate(5, 0)), "rate window must be at least 1 ms"),
            (limit("k", rate(11, 5)), "11 activations of a rate window is over the limit of 10"),
            (
                limit("other", active_max(1)),
                "the limit of 1 limit keys of a partition is reached: try again later",
            ),
        ] {
            let said = check.give(command).expect_err(expected);
            assert_eq!(said.to_string(), expected);
        }
    }
}
