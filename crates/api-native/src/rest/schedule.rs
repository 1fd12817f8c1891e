//! Schedules as requests carry them and answers show them.

use serde_json::value::RawValue;
use windlass_gateway::request::{Run, RunOutcome, Schedule, ScheduleFilter};
use windlass_record::schedule::{
    CatchUp, FireCause, JobTemplate, Overlap, PutPause, ScheduleAction, ScheduleAnswer,
    ScheduleSettings, ScheduleTime, ScheduleTimes, SkipReason,
};

use super::input::{Made, NewJobOptions, name, retries, shared, tenant, text};
use super::output::{JobOptionsDetail, json};
use super::schema::{
    Key, MaybeName, Name, Object, Payload, Ranged, Retries, Schema, Time, Whole, names, object,
};
use crate::error::ApiError;
use crate::limit::RETRIES_DEFAULT;

/// Who owns a schedule that does not say.
const OWNER_DEFAULT: &str = "native";
/// Times of a preview that does not say.
const NEXT_DEFAULT: usize = 5;

object! { in
    /// What a schedule is from now on; what is absent gets its default. One of job and workflow must be there.
    NewSchedule {
        /// When it fires: at the earliest time of any expression.
        times: Vec<Object<NewScheduleTime>>,
        /// Not before this time, in milliseconds since 1970.
        starts_ms: Option<Time>,
        /// Not after this time.
        ends_ms: Option<Time>,
        /// What happens when the run before is not over; skip when absent.
        overlap: Option<OverlapName>,
        /// What happens to times that passed while nobody was there; one when absent.
        catch_up: Option<CatchUpName>,
        /// What a run is: a job.
        job: Option<Object<NewScheduleJob>>,
        /// What a run is: a workflow, by what its start takes.
        #[serde(default)]
        workflow: Payload,
        /// Whether it is paused from now on; as it is when absent.
        paused: Option<bool>,
        /// Why it is paused, for people.
        pause_reason: Option<String>,
        /// Who owns it; native when absent.
        owner: Option<MaybeName>,
        /// Any JSON value, kept byte for byte.
        #[serde(default)]
        spec: Payload,
    }
}

object! { in
    /// Times of the clocks of a zone.
    NewScheduleTime {
        /// Cron with seconds, a macro, a calendar event, or a cycle of ISO 8601.
        expression: String,
        /// The zone by its IANA name, or an offset; UTC when absent.
        zone: Option<String>,
    }
}

object! { in
    /// A job that is made again and again.
    NewScheduleJob {
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
        /// Any JSON value, kept byte for byte.
        #[serde(default)]
        payload: Payload,
        /// What most jobs do not have; no request id.
        options: Option<Object<NewJobOptions>>,
    }
}

object! { in
    /// Why a schedule is paused.
    SchedulePause {
        /// For people.
        reason: Option<String>,
    }
}

names! {
    /// What happens when a run is due and the one before is not over: it is skipped, it waits, it replaces the one before, or both run.
    OverlapName {
        Skip = "skip",
        Queue = "queue",
        Replace = "replace",
        Allow = "allow",
    }
}

names! {
    /// Which times are caught up that passed while nobody was there: none, the last one, or all up to a bound.
    CatchUpName {
        None = "none",
        One = "one",
        All = "all",
    }
}

names! {
    /// What was done about a time.
    RunOutcomeName {
        Started = "started",
        Queued = "queued",
        Skipped = "skipped",
        Failed = "failed",
    }
}

names! {
    /// Why a time was skipped: the run before is not over, as many wait as may, or it passed while nobody was there.
    SkipName {
        Running = "running",
        QueueFull = "queue-full",
        Missed = "missed",
    }
}

names! {
    /// Why something was done: the time came, somebody asked, or the run before is over.
    CauseName {
        Due = "due",
        Asked = "asked",
        Queued = "queued",
    }
}

object! { out
    /// A schedule as it was put.
    SchedulePut {
        /// Its key.
        key: Key,
        /// Its version, from 1.
        version: u64,
        /// When it fires next, in milliseconds since 1970; null when it does not.
        next_due_ms: Option<u64>,
    }
}

object! { out
    /// A page of schedules.
    ScheduleList {
        /// In order of their names.
        schedules: Vec<ScheduleDetail>,
        /// Pass as after to go on; null is the end.
        next: Option<String>,
    }
}

object! { out
    /// A schedule.
    ScheduleDetail {
        /// Its key.
        key: Key,
        /// The wall of security.
        tenant: String,
        /// Its name.
        name: String,
        /// From 1; grows by one with each put.
        version: u64,
        /// Who owns it.
        owner: String,
        /// What the owner keeps with it; null when there is none, or when it is not JSON.
        spec: Option<Box<RawValue>>,
        /// When it fires.
        times: Vec<ScheduleTimeDetail>,
        /// Not before this time, in milliseconds since 1970.
        starts_ms: Option<u64>,
        /// Not after this time.
        ends_ms: Option<u64>,
        /// What happens when the run before is not over.
        overlap: OverlapName,
        /// What happens to times that passed while nobody was there.
        catch_up: CatchUpName,
        /// What a run is, when it is a job.
        job: Option<ScheduleJobDetail>,
        /// What a run is, when it is a workflow.
        workflow: Option<Box<RawValue>>,
        /// Whether it is paused.
        paused: bool,
        /// Why it is paused.
        pause_reason: String,
        /// When it was made.
        created_ms: u64,
        /// When it was put, paused or resumed last.
        updated_ms: u64,
        /// When it fires next; null when it does not.
        next_due_ms: Option<u64>,
        /// The newest run, while it is not over.
        running: Option<Key>,
        /// The times of runs that wait for it, oldest first.
        queued: Vec<u64>,
        /// What became of its last times, oldest first.
        runs: Vec<RunDetail>,
        /// Runs that were started, in all.
        started: u64,
        /// Times that were skipped, in all.
        skipped: u64,
        /// Times at which nothing could be started, in all.
        failed: u64,
    }
}

object! { out
    /// Times of the clocks of a zone.
    ScheduleTimeDetail {
        /// The expression.
        expression: String,
        /// The zone; empty is UTC.
        zone: String,
    }
}

object! { out
    /// A job that is made again and again.
    ScheduleJobDetail {
        /// Where it waits.
        queue: String,
        /// What work it is; empty is the queue's name.
        r#type: String,
        /// Whose turn it uses.
        group: String,
        /// Its priority.
        priority: i32,
        /// Retries after the first attempt.
        retries: i32,
        /// The payload as it was given; null when there is none, or when it is not JSON.
        payload: Option<Box<RawValue>>,
        /// The payload when it is not JSON.
        payload_base64: Option<String>,
        /// What most jobs do not have.
        options: Option<JobOptionsDetail>,
    }
}

object! { out
    /// What became of a time.
    RunDetail {
        /// The time; of several that were skipped one after the other, the first.
        scheduled_for_ms: u64,
        /// When something was done about it, or about the last of them.
        at_ms: u64,
        /// Why then.
        cause: CauseName,
        /// What was done.
        outcome: RunOutcomeName,
        /// The job or workflow that was started.
        run: Option<Key>,
        /// Why it was skipped.
        why: Option<SkipName>,
        /// How many were skipped.
        count: u32,
        /// Why nothing could be started.
        message: String,
    }
}

object! { out
    /// What became of a run that was asked for.
    RunAnswer {
        /// What was done.
        outcome: RunOutcomeName,
        /// The job or workflow that was started.
        run: Option<Key>,
        /// Why it was skipped.
        why: Option<SkipName>,
    }
}

object! { out
    /// The next times of an expression.
    NextTimes {
        /// In milliseconds since 1970.
        times_ms: Vec<u64>,
    }
}

/// How many times a preview gives.
pub(crate) struct NextCount;

impl Schema for NextCount {
    fn schema() -> serde_json::Value {
        serde_json::json!({
            "type": "integer",
            "minimum": 0,
            "maximum": windlass_gateway::read::NEXT_TIMES_MAX,
        })
    }
}

/// The query of a list of schedules.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulesQuery {
    tenant: Option<MaybeName>,
    prefix: Option<MaybeName>,
    after: Option<MaybeName>,
    owner: Option<MaybeName>,
    limit: Option<u32>,
}

/// The query of a preview.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextQuery {
    expression: String,
    zone: Option<String>,
    count: Option<usize>,
    after_ms: Option<u64>,
}

// ── to commands ─────────────────────────────────────────────────────────────────────────────────

impl SchedulesQuery {
    pub(crate) fn filter(self) -> Made<ScheduleFilter> {
        let owner = text("owner", self.owner)?;
        Ok(ScheduleFilter {
            tenant: tenant(self.tenant)?,
            prefix: text("prefix", self.prefix)?,
            after: text("after", self.after)?,
            owner: (!owner.is_empty()).then_some(owner),
            limit: crate::limit::page(self.limit.unwrap_or(0))?,
        })
    }
}

impl NextQuery {
    /// The times, after when, and how many.
    pub(crate) fn asked(self) -> Made<(ScheduleTimes, Option<u64>, usize)> {
        let max = windlass_gateway::read::NEXT_TIMES_MAX;
        let count = self.count.unwrap_or(NEXT_DEFAULT);
        if count > max {
            let message = format!("count is at most {max}");
            return Err(ApiError::invalid("count-invalid", message));
        }
        let (expression, zone) = (self.expression.into(), self.zone.unwrap_or_default().into());
        let expressions = vec![ScheduleTime { expression, zone }];
        Ok((ScheduleTimes { expressions, ..ScheduleTimes::default() }, self.after_ms, count))
    }
}

impl NewSchedule {
    /// What it is, and whether it is paused.
    pub(crate) fn settings(self) -> Made<(ScheduleSettings, PutPause)> {
        let action = match (self.job, self.workflow.0) {
            (Some(Object(job)), None) => ScheduleAction::Job(Box::new(job.template()?)),
            (None, Some(request)) => ScheduleAction::Workflow { request: request.get().into() },
            (Some(_), Some(_)) | (None, None) => {
                let message = "a schedule has either a job or a workflow";
                return Err(ApiError::invalid("action-invalid", message));
            }
        };
        let pause = match (self.paused, self.pause_reason) {
            (None, _) => PutPause::AsItIs,
            (Some(false), _) => PutPause::Running,
            (Some(true), reason) => PutPause::Paused(reason.unwrap_or_default().into()),
        };
        let owner = text("owner", self.owner)?;
        let time = |Object(time): Object<NewScheduleTime>| ScheduleTime {
            expression: time.expression.into(),
            zone: time.zone.unwrap_or_default().into(),
        };
        let settings = ScheduleSettings {
            owner: if owner.is_empty() { OWNER_DEFAULT.into() } else { owner },
            spec: self.spec.0.map(|spec| spec.get().into()).unwrap_or_default(),
            times: ScheduleTimes {
                expressions: self.times.into_iter().map(time).collect(),
                starts_ms: self.starts_ms.map(|Ranged(ms)| ms),
                ends_ms: self.ends_ms.map(|Ranged(ms)| ms),
            },
            overlap: self.overlap.map_or(Overlap::default(), Overlap::from),
            catch_up: self.catch_up.map_or(CatchUp::default(), CatchUp::from),
            action,
        };
        Ok((settings, pause))
    }
}

impl NewScheduleJob {
    fn template(self) -> Made<JobTemplate> {
        let options = self.options.map(|Object(options)| options.options()).transpose()?;
        Ok(JobTemplate {
            queue: name("queue", self.queue)?,
            job_type: text("type", self.r#type)?,
            group: text("group", self.group)?,
            priority: self.priority.map_or(0, |Whole(priority)| priority),
            retries: retries(self.retries)?.unwrap_or(RETRIES_DEFAULT),
            payload: shared(self.payload),
            options: options.map(Box::new),
        })
    }
}

impl From<OverlapName> for Overlap {
    fn from(name: OverlapName) -> Overlap {
        match name {
            OverlapName::Skip => Overlap::Skip,
            OverlapName::Queue => Overlap::Queue,
            OverlapName::Replace => Overlap::Replace,
            OverlapName::Allow => Overlap::Allow,
        }
    }
}

impl From<CatchUpName> for CatchUp {
    fn from(name: CatchUpName) -> CatchUp {
        match name {
            CatchUpName::None => CatchUp::None,
            CatchUpName::One => CatchUp::One,
            CatchUpName::All => CatchUp::All,
        }
    }
}

// ── from views ──────────────────────────────────────────────────────────────────────────────────

impl From<Schedule> for ScheduleDetail {
    fn from(schedule: Schedule) -> ScheduleDetail {
        let settings = schedule.settings;
        let (job, workflow) = match settings.action {
            ScheduleAction::Job(template) => (Some(ScheduleJobDetail::from(*template)), None),
            ScheduleAction::Workflow { request } => (None, json(request.as_bytes()).0),
        };
        let time = |time: ScheduleTime| ScheduleTimeDetail {
            expression: time.expression.into(),
            zone: time.zone.into(),
        };
        ScheduleDetail {
            key: Key(schedule.key.raw()),
            tenant: schedule.name.tenant.into(),
            name: schedule.name.name.into(),
            version: schedule.version,
            owner: settings.owner.into(),
            spec: json(settings.spec.as_bytes()).0,
            times: settings.times.expressions.into_iter().map(time).collect(),
            starts_ms: settings.times.starts_ms,
            ends_ms: settings.times.ends_ms,
            overlap: match settings.overlap {
                Overlap::Skip => OverlapName::Skip,
                Overlap::Queue => OverlapName::Queue,
                Overlap::Replace => OverlapName::Replace,
                Overlap::Allow => OverlapName::Allow,
            },
            catch_up: match settings.catch_up {
                CatchUp::None => CatchUpName::None,
                CatchUp::One => CatchUpName::One,
                CatchUp::All => CatchUpName::All,
            },
            job,
            workflow,
            paused: schedule.paused.is_some(),
            pause_reason: schedule.paused.unwrap_or_default().into(),
            created_ms: schedule.created_ms,
            updated_ms: schedule.updated_ms,
            next_due_ms: schedule.next_due_ms,
            running: schedule.live.map(|key| Key(key.raw())),
            queued: schedule.queued.into(),
            runs: schedule.runs.into_iter().map(RunDetail::from).collect(),
            started: schedule.started,
            skipped: schedule.skipped,
            failed: schedule.failed,
        }
    }
}

impl From<JobTemplate> for ScheduleJobDetail {
    fn from(job: JobTemplate) -> ScheduleJobDetail {
        let (payload, payload_base64) = json(&job.payload);
        ScheduleJobDetail {
            queue: job.queue.into(),
            r#type: job.job_type.into(),
            group: job.group.into(),
            priority: job.priority,
            retries: job.retries,
            payload,
            payload_base64,
            options: job.options.map(|options| JobOptionsDetail::from(*options)),
        }
    }
}

impl From<Run> for RunDetail {
    fn from(run: Run) -> RunDetail {
        let mut detail = RunDetail {
            scheduled_for_ms: run.scheduled_for_ms,
            at_ms: run.at_ms,
            cause: match run.cause {
                FireCause::Due => CauseName::Due,
                FireCause::Asked => CauseName::Asked,
                FireCause::Queued => CauseName::Queued,
            },
            outcome: RunOutcomeName::Started,
            run: None,
            why: None,
            count: 1,
            message: String::new(),
        };
        match run.outcome {
            RunOutcome::Started(key) => detail.run = Some(Key(key.raw())),
            RunOutcome::Skipped(why, count) => {
                detail.outcome = RunOutcomeName::Skipped;
                (detail.why, detail.count) = (Some(why.into()), count);
            }
            RunOutcome::Failed(message) => {
                detail.outcome = RunOutcomeName::Failed;
                detail.message = message.into();
            }
        }
        detail
    }
}

impl From<SkipReason> for SkipName {
    fn from(why: SkipReason) -> SkipName {
        match why {
            SkipReason::Running => SkipName::Running,
            SkipReason::QueueFull => SkipName::QueueFull,
            SkipReason::Missed => SkipName::Missed,
        }
    }
}

impl RunAnswer {
    /// The answer to a run that was asked for; `None` if it is the answer to something else.
    pub(crate) fn of(answer: ScheduleAnswer) -> Option<RunAnswer> {
        let (outcome, run, why) = match answer {
            ScheduleAnswer::Started { run } => (RunOutcomeName::Started, Some(run), None),
            ScheduleAnswer::Queued => (RunOutcomeName::Queued, None, None),
            ScheduleAnswer::Skipped(why) => (RunOutcomeName::Skipped, None, Some(why)),
            ScheduleAnswer::Failed => (RunOutcomeName::Failed, None, None),
            ScheduleAnswer::Put { .. } | ScheduleAnswer::Done => return None,
        };
        Some(RunAnswer { outcome, run: run.map(|key| Key(key.raw())), why: why.map(Into::into) })
    }
}
