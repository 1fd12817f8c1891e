//! Rules that travel as data: how a job is retried, what its deadlines do, how a queue orders.

/// Which product's rules a job lives by. Faces choose it; it grants rights, see
/// `windlass_engine::rights`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Dialect {
    /// Our own API.
    #[default]
    Native,
    /// Zeebe job workers.
    Zeebe,
    /// Conductor tasks: results without a lease, and a lease that ends counts as a failure.
    Conductor,
    /// Airbyte jobs.
    Airbyte,
}

/// What follows a failed attempt. Decided by one pure function, `windlass_engine::retry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum RetryPolicy {
    /// The worker says how many retries remain and how long to wait (Zeebe). A worker that names
    /// no number uses one up.
    #[default]
    WorkerGiven,
    /// Always the same delay (Conductor FIXED).
    Fixed {
        /// The delay.
        delay_ms: u64,
        /// Up to this much is added, derived from the job and its attempt.
        jitter_ms: u64,
    },
    /// `delay * scale * n` before the n-th retry (Conductor LINEAR_BACKOFF).
    Linear {
        /// The delay.
        delay_ms: u64,
        /// The factor.
        scale: u32,
        /// The longest delay, before jitter; 0 is none.
        cap_ms: u64,
        /// Up to this much is added.
        jitter_ms: u64,
    },
    /// `delay * base^(n-1)` before the n-th retry (Conductor EXPONENTIAL_BACKOFF, Docspell with
    /// `from_start`).
    Exponential {
        /// The delay before the first retry.
        delay_ms: u64,
        /// The factor between two delays, 2 in every product we know.
        base: u32,
        /// The longest delay, before jitter; 0 is none.
        cap_ms: u64,
        /// Up to this much is added.
        jitter_ms: u64,
        /// Count the delay from the start of the failed attempt, as Docspell does: a task that
        /// ran longer than its delay is due again at once.
        from_start: bool,
    },
    /// Attempts with progress (Airbyte): failures without progress and failures with progress are
    /// counted apart; only the former wait, and progress resets the wait.
    Attempts {
        /// Failures in a row without progress that end the job; 5 in Airbyte.
        complete_successive_max: u32,
        /// Failures without progress in all that end the job; 10.
        complete_total_max: u32,
        /// Failures in a row with progress that end the job; 1000.
        partial_successive_max: u32,
        /// Failures with progress in all that end the job; 20.
        partial_total_max: u32,
        /// The wait after the first failure without progress; 10 s.
        delay_ms: u64,
        /// The factor between two waits; 3.
        base: u32,
        /// The longest wait; 30 min.
        cap_ms: u64,
    },
}

impl RetryPolicy {
    /// The spans of time that it names, in milliseconds.
    #[must_use]
    pub fn durations_ms(&self) -> [u64; 3] {
        match *self {
            RetryPolicy::WorkerGiven => [0; 3],
            RetryPolicy::Fixed { delay_ms, jitter_ms } => [delay_ms, jitter_ms, 0],
            RetryPolicy::Linear { delay_ms, cap_ms, jitter_ms, .. }
            | RetryPolicy::Exponential { delay_ms, cap_ms, jitter_ms, .. } => {
                [delay_ms, cap_ms, jitter_ms]
            }
            RetryPolicy::Attempts { delay_ms, cap_ms, .. } => [delay_ms, cap_ms, 0],
        }
    }

    /// Airbyte's defaults.
    pub const AIRBYTE: RetryPolicy = RetryPolicy::Attempts {
        complete_successive_max: 5,
        complete_total_max: 10,
        partial_successive_max: 1000,
        partial_total_max: 20,
        delay_ms: 10_000,
        base: 3,
        cap_ms: 1_800_000,
    };

    /// Docspell's `2^retry` times a delay, counted from the start of the attempt.
    pub fn docspell(delay_ms: u64) -> RetryPolicy {
        RetryPolicy::Exponential { delay_ms, base: 2, cap_ms: 0, jitter_ms: 0, from_start: true }
    }
}

/// What happens when no retry is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Exhausted {
    /// The job waits for a person.
    #[default]
    Incident,
    /// The job ends as failed.
    Fail,
}

/// What a deadline does when it passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum DeadlineOutcome {
    /// The job is ready again; nothing is counted.
    #[default]
    Again,
    /// The attempt failed; the retry policy decides.
    FailAttempt,
    /// The job ends as timed out (and its flow with it).
    End,
    /// Somebody is told, nothing else happens.
    Alert,
}

/// The four deadlines of a job. Durations in milliseconds; `None` is no deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Deadlines {
    /// What the end of a lease does. The lease itself is set by the activation.
    pub lease: DeadlineOutcome,
    /// How long the job may stand ready without being taken (Conductor's poll timeout).
    pub waiting: Option<(u64, DeadlineOutcome)>,
    /// How long an attempt may take from its first start, put-backs included.
    pub attempt: Option<(u64, DeadlineOutcome)>,
    /// How long the job may take in all, retries included.
    pub total: Option<(u64, DeadlineOutcome)>,
}

/// How a cancel treats a job that somebody is working on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum CancelPolicy {
    /// The job ends now; its worker finds out when it reports.
    #[default]
    AtOnce,
    /// The worker is asked and the job ends when the worker is done; a completion that wins the
    /// race still ends as cancelled.
    Cooperative,
    /// As `Cooperative`, but a completion that wins the race counts.
    CooperativeCompletionCounts,
}

/// The order of jobs with equal priority in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum JobOrder {
    /// In the order in which they became ready (native, Conductor).
    #[default]
    Ready,
    /// In the order of creation; a retried job returns to its old place (Zeebe, Docspell).
    Creation,
}

/// How a group chooses between priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum PriorityRule {
    /// Highest first, always.
    #[default]
    Strict,
    /// Docspell's counting scheme `h,l`: `high` turns for the highest priority, then `low` turns
    /// for the lowest, falling back to the other when there is none. Counted per group.
    Scheme {
        /// Turns for the highest.
        high: u32,
        /// Turns for the lowest.
        low: u32,
    },
}

/// The settings of a queue. They are set by command and live in the log; configuration files only
/// seed queues that do not exist yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QueueSettings {
    /// How a group chooses between priorities.
    pub priority: PriorityRule,
    /// The order of jobs with equal priority.
    pub order: JobOrder,
    /// Retries that are due go before everything else in their group.
    pub retries_first: bool,
    /// A job that waited this long goes before higher priorities of its group; 0 is off.
    pub aging_ms: u64,
    /// Whether the queue takes only jobs whose type is its name.
    pub one_type: bool,
    /// How many jobs of one concurrency key may be active when the key has no settings of its own;
    /// 0 is no limit.
    pub key_active_max: u32,
    /// Activations of one rate key per window when the key has no settings of its own.
    pub key_rate: Option<RateWindow>,
    /// How many finished jobs are kept for look-ups; 0 keeps none.
    pub finished_max: u32,
    /// How long finished jobs are kept.
    pub finished_ms: u64,
}

impl QueueSettings {
    /// What a queue gets that nobody configured: strict priorities, order of becoming ready, and
    /// the last thousand finished jobs kept for a day.
    pub const DEFAULT: QueueSettings = QueueSettings {
        priority: PriorityRule::Strict,
        order: JobOrder::Ready,
        retries_first: false,
        aging_ms: 0,
        one_type: false,
        key_active_max: 0,
        key_rate: None,
        finished_max: 1_000,
        finished_ms: 24 * 60 * 60 * 1000,
    };
}

/// The settings of a limit key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LimitSettings {
    /// Jobs of this key that may be active at once; `None` is no limit.
    pub active_max: Option<u32>,
    /// Activations of this key per sliding window; `None` is no limit.
    pub rate: Option<RateWindow>,
}

/// Never more than `max` activations in any half-open span of `window_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RateWindow {
    /// Activations per window, 1..=10,000.
    pub max: u32,
    /// The window.
    pub window_ms: u64,
}
