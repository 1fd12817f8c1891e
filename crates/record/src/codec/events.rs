//! One tag per event.

use std::borrow::Cow;

use super::fields::{
    decode_failures, decode_limit_settings, decode_options, decode_queue_settings, encode_failures,
    encode_limit_settings, encode_options, encode_queue_settings,
};
use super::flow::{decode_flow_event, encode_flow_event};
use super::schedule::{decode_schedule_event, encode_schedule_event};
use super::{DecodeError, Decoder, Encoder, Payloads};
use crate::event::{
    DeadlineKind, Event, IncidentKind, JobActivated, JobCreated, Outcome, ReadyCause,
};
use crate::id::{JobKey, LimitId, QueueId};

mod tag {
    //! The tags. Never renumbered, never reused.
    pub(super) const PARTITION_OPENED: u8 = 1;
    pub(super) const LEASES_MOVED: u8 = 2;
    pub(super) const QUEUE_CREATED: u8 = 3;
    pub(super) const QUEUE_CONFIGURED: u8 = 4;
    pub(super) const QUEUE_PAUSED: u8 = 5;
    pub(super) const LIMIT_CONFIGURED: u8 = 6;
    pub(super) const JOB_CREATED: u8 = 7;
    pub(super) const JOB_ACTIVATED: u8 = 8;
    pub(super) const JOB_RETURNED: u8 = 9;
    pub(super) const LEASE_EXTENDED: u8 = 10;
    pub(super) const JOB_PROGRESSED: u8 = 11;
    pub(super) const JOB_LOGGED: u8 = 12;
    pub(super) const JOB_RETRIED: u8 = 13;
    pub(super) const JOB_READIED: u8 = 14;
    pub(super) const JOB_RELEASED: u8 = 15;
    pub(super) const INCIDENT_RAISED: u8 = 16;
    pub(super) const INCIDENT_RESOLVED: u8 = 17;
    pub(super) const CANCEL_ASKED: u8 = 18;
    pub(super) const JOB_UPDATED: u8 = 19;
    pub(super) const JOB_ALERTED: u8 = 20;
    pub(super) const JOB_ENDED: u8 = 21;
    pub(super) const DOCUMENT_PUT: u8 = 22;
    pub(super) const DOCUMENT_DELETED: u8 = 23;
    pub(super) const RATE_FREED: u8 = 24;
    /// All events of flows; their own tag follows.
    pub(super) const FLOW: u8 = 25;
    /// All events of schedules; their own tag follows.
    pub(super) const SCHEDULE: u8 = 26;
}

/// Appends an event.
pub fn encode_event(event: &Event<'_>, payloads: &impl Payloads, buffer: &mut Vec<u8>) {
    let out = &mut Encoder::new(buffer);
    match event {
        Event::PartitionOpened { leases_to_ms } => {
            out.u8(tag::PARTITION_OPENED);
            out.u64(*leases_to_ms);
        }
        Event::LeasesMoved { by_ms } => {
            out.u8(tag::LEASES_MOVED);
            out.u64(*by_ms);
        }
        Event::QueueCreated { queue, tenant, name, settings } => {
            out.u8(tag::QUEUE_CREATED);
            out.u32(queue.0);
            out.str(tenant);
            out.str(name);
            encode_queue_settings(out, settings);
        }
        Event::QueueConfigured { queue, settings } => {
            out.u8(tag::QUEUE_CONFIGURED);
            out.u32(queue.0);
            encode_queue_settings(out, settings);
        }
        Event::QueuePaused { queue, paused } => {
            out.u8(tag::QUEUE_PAUSED);
            out.u32(queue.0);
            out.bool(*paused);
        }
        Event::RateFreed { limit } => {
            out.u8(tag::RATE_FREED);
            out.u32(limit.0);
        }
        Event::LimitConfigured { limit, tenant, name, settings, implied } => {
            out.u8(tag::LIMIT_CONFIGURED);
            out.u32(limit.0);
            out.str(tenant);
            out.str(name);
            encode_limit_settings(out, settings);
            out.bool(*implied);
        }
        Event::JobCreated(created) => {
            out.u8(tag::JOB_CREATED);
            encode_created(out, created, payloads);
        }
        Event::JobActivated(activated) => {
            out.u8(tag::JOB_ACTIVATED);
            out.u64(activated.key.raw());
            out.u32(activated.activation);
            out.u64(activated.deadline_ms);
            out.u64(activated.attempt_due_ms);
            out.bool(activated.with_token);
            out.u32(activated.scheme_count);
            out.str(activated.worker);
        }
        Event::JobReturned { key, turn, scheme_count } => {
            out.u8(tag::JOB_RETURNED);
            out.u64(key.raw());
            out.u64(*turn);
            out.u32(*scheme_count);
        }
        Event::LeaseExtended { key, deadline_ms } => {
            out.u8(tag::LEASE_EXTENDED);
            out.u64(key.raw());
            out.u64(*deadline_ms);
        }
        Event::JobProgressed { key, percent, note } => {
            out.u8(tag::JOB_PROGRESSED);
            out.u64(key.raw());
            out.u8(*percent);
            out.str(note);
        }
        Event::JobLogged { key, lines, dropped } => {
            out.u8(tag::JOB_LOGGED);
            out.u64(key.raw());
            out.u64(u64::try_from(lines.len()).expect("a length fits 64 bits"));
            for line in lines.iter() {
                out.str(line);
            }
            out.u32(*dropped);
        }
        Event::JobRetried { key, due_ms, retries, attempt, failures, message } => {
            out.u8(tag::JOB_RETRIED);
            out.u64(key.raw());
            out.u64(*due_ms);
            out.i32(*retries);
            out.u32(*attempt);
            encode_failures(out, failures);
            out.str(message);
        }
        Event::JobReadied { key, cause } => {
            out.u8(tag::JOB_READIED);
            out.u64(key.raw());
            out.u8(match cause {
                ReadyCause::Due => 0,
                ReadyCause::BackoffEnded => 1,
                ReadyCause::LeaseEnded => 2,
            });
        }
        Event::JobReleased { key, due_ms } => {
            out.u8(tag::JOB_RELEASED);
            out.u64(key.raw());
            out.u64(*due_ms);
        }
        Event::IncidentRaised { key, incident, kind, retries, failures, code, message } => {
            out.u8(tag::INCIDENT_RAISED);
            out.u64(key.raw());
            out.u64(incident.raw());
            encode_incident_kind(out, *kind);
            out.i32(*retries);
            encode_failures(out, failures);
            out.str(code);
            out.str(message);
        }
        Event::IncidentResolved { key, retries, attempt } => {
            out.u8(tag::INCIDENT_RESOLVED);
            out.u64(key.raw());
            out.i32(*retries);
            out.u32(*attempt);
        }
        Event::CancelAsked { key, reason } => {
            out.u8(tag::CANCEL_ASKED);
            out.u64(key.raw());
            out.str(reason);
        }
        Event::JobUpdated { key, retries, priority, deadline_ms } => {
            out.u8(tag::JOB_UPDATED);
            out.u64(key.raw());
            out.i32(*retries);
            out.i32(*priority);
            out.bool(deadline_ms.is_some());
            if let Some(deadline_ms) = deadline_ms {
                out.u64(*deadline_ms);
            }
        }
        Event::JobAlerted { key, deadline } => {
            out.u8(tag::JOB_ALERTED);
            out.u64(key.raw());
            out.u8(match deadline {
                DeadlineKind::Lease => 0,
                DeadlineKind::Waiting => 1,
                DeadlineKind::Attempt => 2,
                DeadlineKind::Total => 3,
            });
        }
        Event::JobEnded { key, outcome, result, message } => {
            out.u8(tag::JOB_ENDED);
            out.u64(key.raw());
            encode_outcome(out, *outcome);
            out.bytes(payloads.bytes(*result));
            out.str(message);
        }
        Event::DocumentPut { tenant, kind, id, version, bytes } => {
            out.u8(tag::DOCUMENT_PUT);
            out.str(tenant);
            out.str(kind);
            out.str(id);
            out.u64(*version);
            out.bytes(payloads.bytes(*bytes));
        }
        Event::DocumentDeleted { tenant, kind, id } => {
            out.u8(tag::DOCUMENT_DELETED);
            out.str(tenant);
            out.str(kind);
            out.str(id);
        }
        Event::Flow(event) => {
            out.u8(tag::FLOW);
            encode_flow_event(event, out);
        }
        Event::Schedule(event) => {
            out.u8(tag::SCHEDULE);
            encode_schedule_event(event, out);
        }
    }
}

/// Reads the next event.
pub fn decode_event<'a>(
    from: &mut Decoder<'a>,
    payloads: &mut impl Payloads,
) -> Result<Event<'a>, DecodeError> {
    Ok(match from.u8()? {
        tag::PARTITION_OPENED => Event::PartitionOpened { leases_to_ms: from.u64()? },
        tag::LEASES_MOVED => Event::LeasesMoved { by_ms: from.u64()? },
        tag::QUEUE_CREATED => Event::QueueCreated {
            queue: QueueId(from.u32()?),
            tenant: from.str()?,
            name: from.str()?,
            settings: decode_queue_settings(from)?,
        },
        tag::QUEUE_CONFIGURED => Event::QueueConfigured {
            queue: QueueId(from.u32()?),
            settings: decode_queue_settings(from)?,
        },
        tag::QUEUE_PAUSED => {
            Event::QueuePaused { queue: QueueId(from.u32()?), paused: from.bool()? }
        }
        tag::RATE_FREED => Event::RateFreed { limit: LimitId(from.u32()?) },
        tag::LIMIT_CONFIGURED => Event::LimitConfigured {
            limit: LimitId(from.u32()?),
            tenant: from.str()?,
            name: from.str()?,
            settings: decode_limit_settings(from)?,
            implied: from.bool()?,
        },
        tag::JOB_CREATED => Event::JobCreated(decode_created(from, payloads)?),
        tag::JOB_ACTIVATED => Event::JobActivated(JobActivated {
            key: key(from)?,
            activation: from.u32()?,
            deadline_ms: from.u64()?,
            attempt_due_ms: from.u64()?,
            with_token: from.bool()?,
            scheme_count: from.u32()?,
            worker: from.str()?,
        }),
        tag::JOB_RETURNED => {
            Event::JobReturned { key: key(from)?, turn: from.u64()?, scheme_count: from.u32()? }
        }
        tag::LEASE_EXTENDED => Event::LeaseExtended { key: key(from)?, deadline_ms: from.u64()? },
        tag::JOB_PROGRESSED => {
            Event::JobProgressed { key: key(from)?, percent: from.u8()?, note: from.str()? }
        }
        tag::JOB_LOGGED => decode_logged(from)?,
        tag::JOB_RETRIED => Event::JobRetried {
            key: key(from)?,
            due_ms: from.u64()?,
            retries: from.i32()?,
            attempt: from.u32()?,
            failures: decode_failures(from)?,
            message: from.str()?,
        },
        tag::JOB_READIED => Event::JobReadied {
            key: key(from)?,
            cause: match from.u8()? {
                0 => ReadyCause::Due,
                1 => ReadyCause::BackoffEnded,
                2 => ReadyCause::LeaseEnded,
                tag => return Err(DecodeError::UnknownTag { field: "ready cause", tag }),
            },
        },
        tag::JOB_RELEASED => Event::JobReleased { key: key(from)?, due_ms: from.u64()? },
        tag::INCIDENT_RAISED => Event::IncidentRaised {
            key: key(from)?,
            incident: key(from)?,
            kind: decode_incident_kind(from)?,
            retries: from.i32()?,
            failures: decode_failures(from)?,
            code: from.str()?,
            message: from.str()?,
        },
        tag::INCIDENT_RESOLVED => {
            Event::IncidentResolved { key: key(from)?, retries: from.i32()?, attempt: from.u32()? }
        }
        tag::CANCEL_ASKED => Event::CancelAsked { key: key(from)?, reason: from.str()? },
        tag::JOB_UPDATED => Event::JobUpdated {
            key: key(from)?,
            retries: from.i32()?,
            priority: from.i32()?,
            deadline_ms: if from.bool()? { Some(from.u64()?) } else { None },
        },
        tag::JOB_ALERTED => Event::JobAlerted {
            key: key(from)?,
            deadline: match from.u8()? {
                0 => DeadlineKind::Lease,
                1 => DeadlineKind::Waiting,
                2 => DeadlineKind::Attempt,
                3 => DeadlineKind::Total,
                tag => return Err(DecodeError::UnknownTag { field: "deadline kind", tag }),
            },
        },
        tag::JOB_ENDED => Event::JobEnded {
            key: key(from)?,
            outcome: decode_outcome(from)?,
            result: payloads.keep(from.bytes()?),
            message: from.str()?,
        },
        tag::DOCUMENT_PUT => Event::DocumentPut {
            tenant: from.str()?,
            kind: from.str()?,
            id: from.str()?,
            version: from.u64()?,
            bytes: payloads.keep(from.bytes()?),
        },
        tag::DOCUMENT_DELETED => {
            Event::DocumentDeleted { tenant: from.str()?, kind: from.str()?, id: from.str()? }
        }
        tag::FLOW => Event::Flow(decode_flow_event(from)?),
        tag::SCHEDULE => Event::Schedule(decode_schedule_event(from)?),
        tag => return Err(DecodeError::UnknownTag { field: "event", tag }),
    })
}

fn encode_created(out: &mut Encoder<'_>, created: &JobCreated<'_>, payloads: &impl Payloads) {
    out.u64(created.key.raw());
    out.u32(created.queue.0);
    out.str(created.job_type);
    out.str(created.group);
    out.i32(created.priority);
    out.i32(created.retries);
    out.u64(created.due_ms);
    out.bytes(payloads.bytes(created.payload));
    out.bool(created.options.is_some());
    if let Some(options) = &created.options {
        encode_limit(out, created.concurrency);
        encode_limit(out, created.rate);
        encode_options(out, options);
    }
}

fn decode_created<'a>(
    from: &mut Decoder<'a>,
    payloads: &mut impl Payloads,
) -> Result<JobCreated<'a>, DecodeError> {
    let mut created = JobCreated {
        key: key(from)?,
        queue: QueueId(from.u32()?),
        job_type: from.str()?,
        group: from.str()?,
        priority: from.i32()?,
        retries: from.i32()?,
        due_ms: from.u64()?,
        payload: payloads.keep(from.bytes()?),
        concurrency: None,
        rate: None,
        options: None,
    };
    if from.bool()? {
        created.concurrency = decode_limit(from)?;
        created.rate = decode_limit(from)?;
        created.options = Some(Cow::Owned(decode_options(from)?));
    }
    Ok(created)
}

/// 0 is none, else the number and one.
fn encode_incident_kind(out: &mut Encoder<'_>, kind: IncidentKind) {
    out.u8(match kind {
        IncidentKind::NoRetries => 0,
        IncidentKind::ErrorNotCaught => 1,
        IncidentKind::Permanent => 2,
        IncidentKind::TooLarge => 3,
    });
}

fn decode_incident_kind(from: &mut Decoder<'_>) -> Result<IncidentKind, DecodeError> {
    Ok(match from.u8()? {
        0 => IncidentKind::NoRetries,
        1 => IncidentKind::ErrorNotCaught,
        2 => IncidentKind::Permanent,
        3 => IncidentKind::TooLarge,
        tag => return Err(DecodeError::UnknownTag { field: "incident kind", tag }),
    })
}

fn encode_limit(out: &mut Encoder<'_>, limit: Option<LimitId>) {
    out.u64(limit.map_or(0, |limit| u64::from(limit.0) + 1));
}

fn decode_limit(from: &mut Decoder<'_>) -> Result<Option<LimitId>, DecodeError> {
    match from.u64()?.checked_sub(1) {
        None => Ok(None),
        Some(id) => Ok(Some(LimitId(u32::try_from(id).map_err(|_| DecodeError::NumberTooLarge)?))),
    }
}

fn decode_logged<'a>(from: &mut Decoder<'a>) -> Result<Event<'a>, DecodeError> {
    let key = key(from)?;
    let count = from.u64()?;
    let mut lines = Vec::new();
    for _ in 0..count {
        lines.push(Cow::Borrowed(from.str()?));
    }
    Ok(Event::JobLogged { key, lines: Cow::Owned(lines), dropped: from.u32()? })
}

fn key(from: &mut Decoder<'_>) -> Result<JobKey, DecodeError> {
    Ok(JobKey::from_raw(from.u64()?))
}

/// Appends how a job ended.
pub fn encode_outcome(out: &mut Encoder<'_>, outcome: Outcome) {
    out.u8(match outcome {
        Outcome::Completed => 0,
        Outcome::CompletedWithErrors => 1,
        Outcome::Failed => 2,
        Outcome::FailedForGood => 3,
        Outcome::TimedOut => 4,
        Outcome::Cancelled => 5,
        Outcome::Skipped => 6,
    });
}

/// Reads how a job ended.
pub fn decode_outcome(from: &mut Decoder<'_>) -> Result<Outcome, DecodeError> {
    Ok(match from.u8()? {
        0 => Outcome::Completed,
        1 => Outcome::CompletedWithErrors,
        2 => Outcome::Failed,
        3 => Outcome::FailedForGood,
        4 => Outcome::TimedOut,
        5 => Outcome::Cancelled,
        6 => Outcome::Skipped,
        tag => return Err(DecodeError::UnknownTag { field: "outcome", tag }),
    })
}
