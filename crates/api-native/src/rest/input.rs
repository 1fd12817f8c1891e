//! What requests carry, and the commands they become.
//!
//! long: one list of wire shapes, each a few lines beside the command it becomes; read by looking up.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use windlass_gateway::read::DocumentFilter;
use windlass_gateway::request::JobFilter;
use windlass_record::bound::{Bound, Bounds};
use windlass_record::command::{Command, CreateJob, DocumentWrite, JobOptions, QueueName};
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};
use windlass_record::rejection::{NAME_MUST, Rejection};

use super::schema::{
    MaybeName, Millis, Name, Object, Payload, Ranged, Retries, Schema, SomeMillis, Time, Whole,
    names, object, reference,
};
use crate::error::ApiError;
use crate::limit::{RETRIES_DEFAULT, TENANT_DEFAULT, WAIT_MS_MAX};
use crate::words;

object! { in
    /// A job to be created.
    NewJob {
        /// The wall of security; default when absent.
        tenant: Option<MaybeName>,
        /// Where it waits.
        queue: Name,
        /// What work it is; the queue's name when absent.
        r#type: Option<MaybeName>,
        /// Whose turn it uses.
        group: Option<MaybeName>,
        /// Higher goes first; 0 when absent.
        priority: Option<Whole<i32>>,
        /// Retries after the first attempt; 3 when absent.
        retries: Option<Retries>,
        /// Not before this time, in milliseconds since 1970; counts more than delay_ms.
        due_ms: Option<Time>,
        /// Not before this long from now.
        delay_ms: Option<Millis>,
        /// Any JSON value, kept byte for byte.
        #[serde(default)]
        payload: Payload,
        /// What most jobs do not have.
        options: Option<Object<NewJobOptions>>,
    }
}

object! { in
    /// What most jobs do not have.
    NewJobOptions {
        /// Static metadata for the worker: any JSON value, an object by convention.
        #[serde(default)]
        headers: Payload,
        /// While a job with this key is not finished, another one is refused.
        unique_key: Option<MaybeName>,
        /// How long the unique key stays held after the job has ended.
        unique_hold_ms: Option<Millis>,
        /// A repeated request within ten minutes is answered with the first one's key.
        request_id: Option<MaybeName>,
        /// The limit key that bounds how many are active.
        concurrency_key: Option<MaybeName>,
        /// The limit key that bounds activations per window.
        rate_key: Option<MaybeName>,
        /// What follows a failure; worker-given when absent.
        retry: Option<Object<RetryRule>>,
        /// What happens when no retry is left; incident when absent.
        exhausted: Option<ExhaustedName>,
        /// What the end of a lease does; again when absent.
        lease_outcome: Option<OutcomeName>,
        /// How long the job may stand ready without being taken.
        waiting: Option<Object<NewDeadline>>,
        /// How long an attempt may take from its first start.
        attempt: Option<Object<NewDeadline>>,
        /// How long the job may take in all.
        total: Option<Object<NewDeadline>>,
        /// How a cancel treats a job in work; at-once when absent.
        cancel: Option<CancelName>,
    }
}

object! { in
    /// A deadline and what it does when it passes.
    NewDeadline {
        /// After this long.
        after_ms: SomeMillis,
        /// What it does.
        outcome: OutcomeName,
    }
}

names! {
    /// What happens when no retry is left.
    ExhaustedName {
        Incident = "incident",
        Fail = "fail",
    }
}

names! {
    /// What a deadline does: the job is ready again, the attempt failed, the job ends, or somebody is told.
    OutcomeName {
        Again = "again",
        FailAttempt = "fail-attempt",
        End = "end",
        Alert = "alert",
    }
}

names! {
    /// How a cancel treats a job in work: it ends at once, or its worker is asked to stop and a completion that wins the race is discarded, or counts.
    CancelName {
        AtOnce = "at-once",
        Cooperative = "cooperative",
        CooperativeCompletionCounts = "cooperative-completion-counts",
    }
}

names! {
    /// The state of a job.
    StateName {
        Scheduled = "scheduled",
        Ready = "ready",
        Active = "active",
        Backoff = "backoff",
        Incident = "incident",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

names! {
    /// The order of jobs with equal priority: of becoming ready, or of creation.
    OrderName {
        Ready = "ready",
        Creation = "creation",
    }
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum RetryRule {
    /// The worker decides, or one retry is used up.
    WorkerGiven {},
    /// Always the same delay.
    Fixed {
        delay_ms: Whole<u64>,
        #[serde(default)]
        jitter_ms: Whole<u64>,
    },
    /// `delay * scale * n` before the n-th retry.
    Linear {
        delay_ms: Whole<u64>,
        scale: Whole<u32>,
        #[serde(default)]
        cap_ms: Whole<u64>,
        #[serde(default)]
        jitter_ms: Whole<u64>,
    },
    /// `delay * base^(n-1)` before the n-th retry.
    Exponential {
        delay_ms: Whole<u64>,
        base: Whole<u32>,
        #[serde(default)]
        cap_ms: Whole<u64>,
        #[serde(default)]
        jitter_ms: Whole<u64>,
        #[serde(default)]
        from_start: bool,
    },
    /// Failures without and with progress are counted apart.
    Attempts {
        complete_successive_max: Whole<u32>,
        complete_total_max: Whole<u32>,
        partial_successive_max: Whole<u32>,
        partial_total_max: Whole<u32>,
        delay_ms: Whole<u64>,
        base: Whole<u32>,
        #[serde(default)]
        cap_ms: Whole<u64>,
    },
}

impl Schema for RetryRule {
    fn schema() -> Value {
        reference("RetryRule")
    }

    fn define(schemas: &mut Map<String, Value>) {
        let kinds: [(&str, &[&str], &[&str]); 5] = [
            ("worker-given", &[], &[]),
            ("fixed", &["delay_ms"], &["jitter_ms"]),
            ("linear", &["delay_ms", "scale"], &["cap_ms", "jitter_ms"]),
            ("exponential", &["delay_ms", "base"], &["cap_ms", "jitter_ms", "from_start"]),
            (
                "attempts",
                &[
                    "complete_successive_max",
                    "complete_total_max",
                    "partial_successive_max",
                    "partial_total_max",
                    "delay_ms",
                    "base",
                ],
                &["cap_ms"],
            ),
        ];
        let one_of = kinds.map(|(kind, required, optional)| {
            let mut properties = Map::new();
            properties.insert("kind".to_owned(), json!({ "const": kind }));
            for name in required.iter().chain(optional) {
                properties.insert((*name).to_owned(), retry_field(name));
            }
            let required: Vec<&str> =
                std::iter::once("kind").chain(required.iter().copied()).collect();
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        });
        let whole = json!({ "description": "What follows a failure.", "oneOf": one_of });
        schemas.insert("RetryRule".to_owned(), whole);
    }
}

fn retry_field(name: &str) -> Value {
    match name {
        "from_start" => bool::schema(),
        name if name.ends_with("_ms") => u64::schema(),
        _ => u32::schema(),
    }
}

object! { in
    /// Many jobs, each created for itself.
    NewJobs {
        /// The jobs.
        jobs: Vec<Object<NewJob>>,
    }
}

object! { in
    /// A request for jobs.
    Activation {
        /// The wall of security; default when absent.
        tenant: Option<MaybeName>,
        /// The queues of each of these tenants, instead of those of one: the fair choice is among all of them.
        tenants: Option<Vec<Name>>,
        /// Where to look: the queue whose first group joined earliest is served first.
        queues: QueueNames,
        /// Who asks; for people to read.
        worker: Option<MaybeName>,
        /// How long the worker may be silent; a minute when absent.
        lease_ms: Option<SomeMillis>,
        /// At most this many, 1 when absent.
        jobs_max: Option<JobsMax>,
        /// How long to wait for the first; 0 and absent answer at once.
        wait_ms: Option<Wait>,
        /// Results need no token.
        without_token: Option<bool>,
    }
}

/// Queues to look in.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct QueueNames(pub(crate) Vec<Name>);

impl Schema for QueueNames {
    fn schema() -> Value {
        json!({ "type": "array", "items": Name::schema(), "minItems": 1 })
    }
}

/// Jobs of one answer; as many as the engine hands out at once.
pub(crate) type JobsMax = Ranged<1, 10_000>;

/// How long a poll may wait.
pub(crate) type Wait = Ranged<0, WAIT_MS_MAX>;

object! { in
    /// The job is done.
    Completion {
        /// With the key, the token of the activation; must be given when the job was activated with one.
        activation: Option<Whole<u32>>,
        /// Any JSON value, kept byte for byte.
        #[serde(default)]
        result: Payload,
        /// Documents that change with it, all or nothing.
        documents: Option<Vec<Object<NewDocument>>>,
    }
}

object! { in
    /// The attempt failed.
    JobFailure {
        /// With the key, the token of the activation.
        activation: Option<Whole<u32>>,
        /// What went wrong, for people.
        message: Option<String>,
        /// Retries that remain, when the worker decides.
        retries: Option<Whole<i32>>,
        /// How long to wait, when the worker decides.
        backoff_ms: Option<Millis>,
        /// Whether the attempt got something done.
        progressed: Option<bool>,
        /// Retrying cannot help.
        permanent: Option<bool>,
        /// Of a job of a flow: a JSON object, what the attempt leaves behind.
        #[serde(default)]
        variables: Payload,
    }
}

object! { in
    /// A business error, which is not retried.
    JobError {
        /// With the key, the token of the activation.
        activation: Option<Whole<u32>>,
        /// What kind of error.
        code: Name,
        /// What went wrong, for people.
        message: Option<String>,
    }
}

object! { in
    /// The worker puts the job back.
    PutBack {
        /// With the key, the token of the activation.
        activation: Option<Whole<u32>>,
        /// Not again before this long from now.
        delay_ms: Option<Millis>,
    }
}

object! { in
    /// The worker is still at it.
    Extension {
        /// With the key, the token of the activation.
        activation: Option<Whole<u32>>,
        /// The lease ends this long after now; a minute when absent.
        lease_ms: Option<SomeMillis>,
    }
}

object! { in
    /// How far the worker is.
    NewProgress {
        /// With the key, the token of the activation.
        activation: Option<Whole<u32>>,
        /// 0 to 100; larger is taken as 100.
        percent: Option<Whole<u32>>,
        /// What to show beside it; replaces the last one.
        note: Option<String>,
        /// Documents that change with it, all or nothing.
        documents: Option<Vec<Object<NewDocument>>>,
    }
}

object! { in
    /// What the worker has to say.
    LogLines {
        /// With the key, the token of the activation.
        activation: Option<Whole<u32>>,
        /// In order.
        lines: Vec<String>,
    }
}

object! { in
    /// The job is no longer wanted.
    Cancellation {
        /// Cancel at once even if the job's policy is cooperative.
        force: Option<bool>,
        /// Why, for people.
        reason: Option<String>,
    }
}

object! { in
    /// What changes of a job; what is absent stays.
    Change {
        /// When given, it must be the current activation.
        activation: Option<Whole<u32>>,
        /// Retries that remain. Does not make a waiting incident ready.
        retries: Option<Retries>,
        /// The new priority.
        priority: Option<Whole<i32>>,
        /// The lease ends this long after now.
        lease_ms: Option<SomeMillis>,
    }
}

object! { in
    /// A person says: try again.
    Resolution {
        /// Retries to set first.
        retries: Option<Retries>,
    }
}

object! { in
    /// The settings of a queue; what is absent gets its default.
    NewQueueSettings {
        /// Turns for the highest priority, then for the lowest; absent is strict priority.
        scheme: Option<Object<Scheme>>,
        /// The order of jobs with equal priority.
        order: Option<OrderName>,
        /// Retries that are due go first in their group.
        retries_first: Option<bool>,
        /// A job that waited this long goes before higher priorities of its group; 0 is off.
        aging_ms: Option<Millis>,
        /// The queue takes only jobs whose type is its name.
        one_type: Option<bool>,
        /// Active jobs per concurrency key without settings of its own; 0 is no limit.
        key_active_max: Option<Whole<u32>>,
        /// Activations per rate key without settings of its own.
        key_rate: Option<Object<Window>>,
        /// Finished jobs that are kept for look-ups; a thousand when absent.
        finished_max: Option<Whole<u32>>,
        /// How long they are kept; a day when absent.
        finished_ms: Option<Millis>,
    }
}

/// A counting scheme.
#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scheme {
    high: Turns,
    low: Turns,
}

/// Turns of a counting scheme; both together are at most a million.
type Turns = Ranged<0, 500_000>;

impl Schema for Scheme {
    fn schema() -> Value {
        reference("Scheme")
    }

    fn define(schemas: &mut Map<String, Value>) {
        let whole = json!({
            "type": "object",
            "description": "A counting scheme: turns for the highest priority, then for the lowest.",
            "properties": { "high": Turns::schema(), "low": Turns::schema() },
            "required": ["high", "low"],
            "anyOf": [
                { "properties": { "high": { "minimum": 1 } } },
                { "properties": { "low": { "minimum": 1 } } },
            ],
            "additionalProperties": false,
        });
        schemas.insert("Scheme".to_owned(), whole);
    }
}

/// A rate.
#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    max: WindowMax,
    window_ms: SomeMillis,
}

/// Activations of a window, as the engine bounds them.
type WindowMax = Ranged<1, 10_000>;

impl Schema for Window {
    fn schema() -> Value {
        reference("Window")
    }

    fn define(schemas: &mut Map<String, Value>) {
        let whole = json!({
            "type": "object",
            "description": "Never more than max activations in any span of window_ms.",
            "properties": { "max": WindowMax::schema(), "window_ms": SomeMillis::schema() },
            "required": ["max", "window_ms"],
            "additionalProperties": false,
        });
        schemas.insert("Window".to_owned(), whole);
    }
}

impl From<Window> for RateWindow {
    fn from(window: Window) -> RateWindow {
        RateWindow { max: narrow(window.max.0), window_ms: window.window_ms.0 }
    }
}

impl From<RateWindow> for Window {
    fn from(rate: RateWindow) -> Window {
        Window { max: Ranged(rate.max.into()), window_ms: Ranged(rate.window_ms) }
    }
}

object! { in
    /// The settings of a limit key; what is absent is no limit.
    NewLimit {
        /// Jobs of this key that may be active at once; 0 lets none start.
        active_max: Option<Whole<u32>>,
        /// Activations of this key per window.
        rate: Option<Object<Window>>,
    }
}

object! { in
    /// One change of a document.
    NewDocument {
        /// The wall of security; default when absent.
        tenant: Option<MaybeName>,
        /// What kind it is.
        kind: Name,
        /// Which one.
        id: Name,
        /// The version it must have: 0 is "must not exist"; absent is "whatever it is".
        expected_version: Option<Whole<u64>>,
        /// The new value, any JSON, kept byte for byte; absent deletes.
        #[serde(default)]
        value: Payload,
    }
}

// ── to commands ─────────────────────────────────────────────────────────────────────────────────

pub(crate) type Made<T> = Result<T, ApiError>;

/// The tenant, by default the default one.
pub(crate) fn tenant(tenant: Option<MaybeName>) -> Made<Box<str>> {
    let tenant = text("tenant", tenant)?;
    Ok(if tenant.is_empty() { TENANT_DEFAULT.into() } else { tenant })
}

/// A name as the schema has it. The engine checks again; here a whole batch is refused, there one
/// of its items.
pub(crate) fn name(field: &'static str, Name(name): Name) -> Made<Box<str>> {
    if name.is_empty() {
        return Err(Rejection::NameEmpty { field }.into());
    }
    text(field, Some(MaybeName(name)))
}

pub(crate) fn text(field: &'static str, name: Option<MaybeName>) -> Made<Box<str>> {
    let MaybeName(name) = name.unwrap_or(MaybeName(String::new()));
    let max = Bounds::default().name_bytes_max;
    if name.len() > max {
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let (max, given) = (wide(max), wide(name.len()));
        return Err(Rejection::TooLarge { bound: Bound::NameBytes, max, given }.into());
    }
    if name.contains('\0') {
        return Err(Rejection::OutOfRange { field, must: NAME_MUST }.into());
    }
    Ok(name.into())
}

/// The text of a value, or nothing.
pub(crate) fn shared(Payload(value): Payload) -> Arc<[u8]> {
    value.map_or_else(Arc::default, |value| Arc::from(value.get().as_bytes()))
}

/// A number whose range fits.
pub(crate) fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("its range was checked when it was read")
}

/// Retries as the engine counts them.
pub(crate) fn retries(given: Option<Retries>) -> Made<Option<i32>> {
    let number = given.map(|Ranged(number)| i32::try_from(number)).transpose();
    number.map_err(|_| {
        Rejection::OutOfRange { field: "retries", must: "from 0 to 2147483647" }.into()
    })
}

impl NewJob {
    pub(crate) fn command(self) -> Made<Command> {
        let due_ms = self.due_ms.map_or(0, |Ranged(ms)| ms);
        let delay_ms = self.delay_ms.map_or(0, |Ranged(ms)| ms);
        Ok(Command::CreateJob(CreateJob {
            queue: QueueName {
                tenant: tenant(self.tenant)?.into(),
                queue: name("queue", self.queue)?.into(),
            },
            job_type: text("type", self.r#type)?,
            group: text("group", self.group)?,
            priority: self.priority.map_or(0, |Whole(priority)| priority),
            retries: retries(self.retries)?.unwrap_or(RETRIES_DEFAULT),
            due: words::due(due_ms, delay_ms),
            payload: shared(self.payload),
            options: self
                .options
                .map(|Object(options)| options.options())
                .transpose()?
                .map(Box::new),
        }))
    }
}

impl NewJobOptions {
    pub(crate) fn options(self) -> Made<JobOptions> {
        let Payload(headers) = self.headers;
        let headers = headers.map(|value: Box<RawValue>| value.get().as_bytes().into());
        Ok(JobOptions {
            headers: headers.unwrap_or_default(),
            unique_key: text("unique key", self.unique_key)?,
            unique_hold_ms: self.unique_hold_ms.map_or(0, |Ranged(ms)| ms),
            request_id: text("request id", self.request_id)?,
            concurrency_key: text("concurrency key", self.concurrency_key)?,
            rate_key: text("rate key", self.rate_key)?,
            retry: self.retry.map_or(RetryPolicy::WorkerGiven, |Object(rule)| rule.into()),
            exhausted: self.exhausted.map_or(Exhausted::default(), Exhausted::from),
            deadlines: Deadlines {
                lease: self.lease_outcome.map_or(DeadlineOutcome::default(), Into::into),
                waiting: self.waiting.map(|Object(deadline)| deadline.pair()),
                attempt: self.attempt.map(|Object(deadline)| deadline.pair()),
                total: self.total.map(|Object(deadline)| deadline.pair()),
            },
            cancel: self.cancel.map_or(CancelPolicy::default(), CancelPolicy::from),
            dialect: Dialect::Native,
        })
    }
}

impl NewDeadline {
    fn pair(self) -> (u64, DeadlineOutcome) {
        (self.after_ms.0, self.outcome.into())
    }
}

impl From<ExhaustedName> for Exhausted {
    fn from(name: ExhaustedName) -> Exhausted {
        match name {
            ExhaustedName::Incident => Exhausted::Incident,
            ExhaustedName::Fail => Exhausted::Fail,
        }
    }
}

impl From<OutcomeName> for DeadlineOutcome {
    fn from(name: OutcomeName) -> DeadlineOutcome {
        match name {
            OutcomeName::Again => DeadlineOutcome::Again,
            OutcomeName::FailAttempt => DeadlineOutcome::FailAttempt,
            OutcomeName::End => DeadlineOutcome::End,
            OutcomeName::Alert => DeadlineOutcome::Alert,
        }
    }
}

impl From<CancelName> for CancelPolicy {
    fn from(name: CancelName) -> CancelPolicy {
        match name {
            CancelName::AtOnce => CancelPolicy::AtOnce,
            CancelName::Cooperative => CancelPolicy::Cooperative,
            CancelName::CooperativeCompletionCounts => CancelPolicy::CooperativeCompletionCounts,
        }
    }
}

impl From<RetryRule> for RetryPolicy {
    fn from(rule: RetryRule) -> RetryPolicy {
        match rule {
            RetryRule::WorkerGiven {} => RetryPolicy::WorkerGiven,
            RetryRule::Fixed { delay_ms, jitter_ms } => {
                RetryPolicy::Fixed { delay_ms: delay_ms.0, jitter_ms: jitter_ms.0 }
            }
            RetryRule::Linear { delay_ms, scale, cap_ms, jitter_ms } => RetryPolicy::Linear {
                delay_ms: delay_ms.0,
                scale: scale.0,
                cap_ms: cap_ms.0,
                jitter_ms: jitter_ms.0,
            },
            RetryRule::Exponential { delay_ms, base, cap_ms, jitter_ms, from_start } => {
                RetryPolicy::Exponential {
                    delay_ms: delay_ms.0,
                    base: base.0,
                    cap_ms: cap_ms.0,
                    jitter_ms: jitter_ms.0,
                    from_start,
                }
            }
            RetryRule::Attempts {
                complete_successive_max,
                complete_total_max,
                partial_successive_max,
                partial_total_max,
                delay_ms,
                base,
                cap_ms,
            } => RetryPolicy::Attempts {
                complete_successive_max: complete_successive_max.0,
                complete_total_max: complete_total_max.0,
                partial_successive_max: partial_successive_max.0,
                partial_total_max: partial_total_max.0,
                delay_ms: delay_ms.0,
                base: base.0,
                cap_ms: cap_ms.0,
            },
        }
    }
}

impl NewQueueSettings {
    pub(crate) fn settings(self) -> QueueSettings {
        let default = QueueSettings::DEFAULT;
        let priority = match self.scheme {
            None => PriorityRule::Strict,
            Some(Object(Scheme { high, low })) => {
                PriorityRule::Scheme { high: narrow(high.0), low: narrow(low.0) }
            }
        };
        QueueSettings {
            priority,
            order: self.order.map_or(default.order, |order| match order {
                OrderName::Ready => JobOrder::Ready,
                OrderName::Creation => JobOrder::Creation,
            }),
            retries_first: self.retries_first.unwrap_or(default.retries_first),
            aging_ms: self.aging_ms.map_or(default.aging_ms, |Ranged(ms)| ms),
            one_type: self.one_type.unwrap_or(default.one_type),
            key_active_max: self.key_active_max.map_or(default.key_active_max, |max| max.0),
            key_rate: self.key_rate.map(|Object(rate)| rate.into()),
            finished_max: self.finished_max.map_or(default.finished_max, |max| max.0),
            finished_ms: self.finished_ms.map_or(default.finished_ms, |Ranged(ms)| ms),
        }
    }
}

impl Scheme {
    pub(crate) fn of(rule: PriorityRule) -> Option<Scheme> {
        match rule {
            PriorityRule::Strict => None,
            PriorityRule::Scheme { high, low } => {
                Some(Scheme { high: Ranged(high.into()), low: Ranged(low.into()) })
            }
        }
    }
}

impl NewLimit {
    pub(crate) fn settings(self) -> LimitSettings {
        LimitSettings {
            active_max: self.active_max.map(|max| max.0),
            rate: self.rate.map(|Object(rate)| rate.into()),
        }
    }
}

impl NewDocument {
    fn write(self) -> Made<DocumentWrite> {
        let Payload(value) = self.value;
        Ok(DocumentWrite {
            tenant: tenant(self.tenant)?,
            kind: name("kind", self.kind)?,
            id: name("id", self.id)?,
            expected_version: self.expected_version.map(|version| version.0),
            bytes: value.map(|value| Arc::from(value.get().as_bytes())),
        })
    }
}

/// The documents of a result.
pub(crate) fn writes(documents: Option<Vec<Object<NewDocument>>>) -> Made<Vec<DocumentWrite>> {
    let documents = documents.unwrap_or_default();
    documents.into_iter().map(|Object(document)| document.write()).collect()
}

// ── queries ─────────────────────────────────────────────────────────────────────────────────────

/// The query of a list of jobs.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    tenant: Option<MaybeName>,
    queue: Option<MaybeName>,
    group: Option<MaybeName>,
    state: Option<StateName>,
    cursor: Option<u64>,
    limit: Option<u32>,
}

impl JobsQuery {
    pub(crate) fn filter(self) -> Made<JobFilter> {
        let some = |name: Box<str>| Some(name).filter(|name| !name.is_empty());
        Ok(JobFilter {
            tenant: Some(tenant(self.tenant)?),
            queue: some(text("queue", self.queue)?),
            group: some(text("group", self.group)?),
            state: self.state.map(StateName::name),
            cursor: self.cursor.unwrap_or(0),
            limit: crate::limit::page(self.limit.unwrap_or(0))?,
        })
    }
}

impl StateName {
    /// How the partition names the state.
    pub(crate) fn name(self) -> &'static str {
        match self {
            StateName::Scheduled => "scheduled",
            StateName::Ready => "ready",
            StateName::Active => "active",
            StateName::Backoff => "backoff",
            StateName::Incident => "incident",
            StateName::Completed => "completed",
            StateName::Failed => "failed",
            StateName::Cancelled => "cancelled",
        }
    }
}

/// A query that names a tenant.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantQuery {
    pub(crate) tenant: Option<MaybeName>,
}

impl TenantQuery {
    /// The tenant that is named beside a key.
    pub(crate) fn named(self) -> Made<Option<Box<str>>> {
        let named = text("tenant", self.tenant)?;
        Ok((!named.is_empty()).then_some(named))
    }
}

/// The query of a list of limit keys.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsQuery {
    pub(crate) tenant: Option<MaybeName>,
    pub(crate) after: Option<MaybeName>,
    pub(crate) limit: Option<u32>,
}

/// The query of a list of documents.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentsQuery {
    tenant: Option<MaybeName>,
    after: Option<MaybeName>,
    limit: Option<u32>,
}

impl DocumentsQuery {
    pub(crate) fn filter(self, kind: String) -> Made<DocumentFilter> {
        Ok(DocumentFilter {
            tenant: tenant(self.tenant)?,
            kind: name("kind", Name(kind))?,
            after: text("after", self.after)?,
            limit: crate::limit::page(self.limit.unwrap_or(0))?,
        })
    }
}
