//! The events of schedules: one tag each below the tag that all of them share. Tags are never
//! renumbered, and the order of fields never changes.

use std::borrow::Cow;

use super::fields::{decode_options, encode_options};
use super::flow::Field;
use super::{DecodeError, Decoder, Encoder};
use crate::id::JobKey;
use crate::schedule::{
    CatchUp, FireCause, FireOutcome, JobTemplate, Overlap, ScheduleAction, ScheduleEvent,
    ScheduleFired, ScheduleSettings, ScheduleTime, ScheduleTimes, SkipReason,
};

mod tag {
    //! The tags. Never renumbered, never reused.
    pub(super) const SET: u8 = 1;
    pub(super) const DELETED: u8 = 2;
    pub(super) const PAUSED: u8 = 3;
    pub(super) const RESUMED: u8 = 4;
    pub(super) const FIRED: u8 = 5;
}

/// Appends an event of a schedule.
pub fn encode_schedule_event(event: &ScheduleEvent<'_>, out: &mut Encoder<'_>) {
    match event {
        ScheduleEvent::Set { schedule, tenant, name, version, settings, paused, next_due_ms } => {
            out.u8(tag::SET);
            schedule.encode(out);
            out.str(tenant);
            out.str(name);
            out.u64(*version);
            encode_schedule_settings(out, settings);
            paused.encode(out);
            next_due_ms.encode(out);
        }
        ScheduleEvent::Deleted { schedule } => {
            out.u8(tag::DELETED);
            schedule.encode(out);
        }
        ScheduleEvent::Paused { schedule, reason } => {
            out.u8(tag::PAUSED);
            schedule.encode(out);
            out.str(reason);
        }
        ScheduleEvent::Resumed { schedule, next_due_ms } => {
            out.u8(tag::RESUMED);
            schedule.encode(out);
            next_due_ms.encode(out);
        }
        ScheduleEvent::Fired(fired) => {
            out.u8(tag::FIRED);
            fired.schedule.encode(out);
            out.u64(fired.scheduled_for_ms);
            fired.cause.encode(out);
            fired.outcome.encode(out);
            fired.next_due_ms.encode(out);
            out.u32(fired.caught_up);
        }
    }
}

/// Takes an event of a schedule.
pub fn decode_schedule_event<'a>(from: &mut Decoder<'a>) -> Result<ScheduleEvent<'a>, DecodeError> {
    Ok(match from.u8()? {
        tag::SET => ScheduleEvent::Set {
            schedule: JobKey::decode(from)?,
            tenant: from.str()?,
            name: from.str()?,
            version: from.u64()?,
            settings: Cow::Owned(decode_schedule_settings(from)?),
            paused: Field::decode(from)?,
            next_due_ms: Field::decode(from)?,
        },
        tag::DELETED => ScheduleEvent::Deleted { schedule: JobKey::decode(from)? },
        tag::PAUSED => {
            ScheduleEvent::Paused { schedule: JobKey::decode(from)?, reason: from.str()? }
        }
        tag::RESUMED => ScheduleEvent::Resumed {
            schedule: JobKey::decode(from)?,
            next_due_ms: Field::decode(from)?,
        },
        tag::FIRED => ScheduleEvent::Fired(ScheduleFired {
            schedule: JobKey::decode(from)?,
            scheduled_for_ms: from.u64()?,
            cause: Field::decode(from)?,
            outcome: Field::decode(from)?,
            next_due_ms: Field::decode(from)?,
            caught_up: from.u32()?,
        }),
        tag => return Err(DecodeError::UnknownTag { field: "event of a schedule", tag }),
    })
}

/// Appends what a schedule is.
pub fn encode_schedule_settings(out: &mut Encoder<'_>, settings: &ScheduleSettings) {
    out.str(&settings.owner);
    out.str(&settings.spec);
    let times = &settings.times;
    out.u64(u64::try_from(times.expressions.len()).expect("a length fits 64 bits"));
    for time in &times.expressions {
        out.str(&time.expression);
        out.str(&time.zone);
    }
    times.starts_ms.encode(out);
    times.ends_ms.encode(out);
    out.u8(match settings.overlap {
        Overlap::Skip => 0,
        Overlap::Queue => 1,
        Overlap::Replace => 2,
        Overlap::Allow => 3,
    });
    out.u8(match settings.catch_up {
        CatchUp::None => 0,
        CatchUp::One => 1,
        CatchUp::All => 2,
    });
    match &settings.action {
        ScheduleAction::Job(job) => {
            out.u8(1);
            out.str(&job.queue);
            out.str(&job.job_type);
            out.str(&job.group);
            out.i32(job.priority);
            out.i32(job.retries);
            out.bytes(&job.payload);
            out.bool(job.options.is_some());
            if let Some(options) = &job.options {
                encode_options(out, options);
            }
        }
        ScheduleAction::Workflow { request } => {
            out.u8(2);
            out.str(request);
        }
    }
}

/// Takes what a schedule is.
pub fn decode_schedule_settings(from: &mut Decoder<'_>) -> Result<ScheduleSettings, DecodeError> {
    Ok(ScheduleSettings {
        owner: from.str()?.into(),
        spec: from.str()?.into(),
        times: decode_times(from)?,
        overlap: match from.u8()? {
            0 => Overlap::Skip,
            1 => Overlap::Queue,
            2 => Overlap::Replace,
            3 => Overlap::Allow,
            tag => return Err(DecodeError::UnknownTag { field: "overlap", tag }),
        },
        catch_up: match from.u8()? {
            0 => CatchUp::None,
            1 => CatchUp::One,
            2 => CatchUp::All,
            tag => return Err(DecodeError::UnknownTag { field: "catch-up", tag }),
        },
        action: match from.u8()? {
            1 => ScheduleAction::Job(Box::new(JobTemplate {
                queue: from.str()?.into(),
                job_type: from.str()?.into(),
                group: from.str()?.into(),
                priority: from.i32()?,
                retries: from.i32()?,
                payload: from.bytes()?.into(),
                options: if from.bool()? { Some(Box::new(decode_options(from)?)) } else { None },
            })),
            2 => ScheduleAction::Workflow { request: from.str()?.into() },
            tag => return Err(DecodeError::UnknownTag { field: "action of a schedule", tag }),
        },
    })
}

fn decode_times(from: &mut Decoder<'_>) -> Result<ScheduleTimes, DecodeError> {
    let mut expressions = Vec::new();
    for _ in 0..from.u64()? {
        let (expression, zone) = (from.str()?.into(), from.str()?.into());
        expressions.push(ScheduleTime { expression, zone });
    }
    let (starts_ms, ends_ms) = (Field::decode(from)?, Field::decode(from)?);
    Ok(ScheduleTimes { expressions, starts_ms, ends_ms })
}

impl<'a> Field<'a> for FireCause {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u8(match self {
            FireCause::Due => 0,
            FireCause::Asked => 1,
            FireCause::Queued => 2,
        });
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(match from.u8()? {
            0 => FireCause::Due,
            1 => FireCause::Asked,
            2 => FireCause::Queued,
            tag => return Err(DecodeError::UnknownTag { field: "cause of a run", tag }),
        })
    }
}

impl<'a> Field<'a> for SkipReason {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u8(match self {
            SkipReason::Running => 0,
            SkipReason::QueueFull => 1,
            SkipReason::Missed => 2,
        });
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(match from.u8()? {
            0 => SkipReason::Running,
            1 => SkipReason::QueueFull,
            2 => SkipReason::Missed,
            tag => return Err(DecodeError::UnknownTag { field: "reason to skip", tag }),
        })
    }
}

impl<'a> Field<'a> for FireOutcome<'a> {
    fn encode(&self, out: &mut Encoder<'_>) {
        match self {
            FireOutcome::Started { run } => {
                out.u8(0);
                run.encode(out);
            }
            FireOutcome::Queued { alone } => {
                out.u8(1);
                out.bool(*alone);
            }
            FireOutcome::Skipped { why, count } => {
                out.u8(2);
                why.encode(out);
                out.u32(*count);
            }
            FireOutcome::Failed { message } => {
                out.u8(3);
                out.str(message);
            }
        }
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(match from.u8()? {
            0 => FireOutcome::Started { run: JobKey::decode(from)? },
            1 => FireOutcome::Queued { alone: from.bool()? },
            2 => FireOutcome::Skipped { why: Field::decode(from)?, count: from.u32()? },
            3 => FireOutcome::Failed { message: from.str()? },
            tag => return Err(DecodeError::UnknownTag { field: "outcome of a time", tag }),
        })
    }
}
