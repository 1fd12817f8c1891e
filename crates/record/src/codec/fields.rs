//! Structs inside events: options, settings, policies, counters.

use super::{DecodeError, Decoder, Encoder};
use crate::command::JobOptions;
use crate::event::FailureCounts;
use crate::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};

/// Appends options.
pub fn encode_options(out: &mut Encoder<'_>, options: &JobOptions) {
    out.bytes(&options.headers);
    out.str(&options.unique_key);
    out.u64(options.unique_hold_ms);
    out.str(&options.request_id);
    out.str(&options.concurrency_key);
    out.str(&options.rate_key);
    encode_retry(out, &options.retry);
    out.u8(match options.exhausted {
        Exhausted::Incident => 0,
        Exhausted::Fail => 1,
    });
    encode_deadlines(out, &options.deadlines);
    out.u8(match options.cancel {
        CancelPolicy::AtOnce => 0,
        CancelPolicy::Cooperative => 1,
        CancelPolicy::CooperativeCompletionCounts => 2,
    });
    out.u8(match options.dialect {
        Dialect::Native => 0,
        Dialect::Zeebe => 1,
        Dialect::Conductor => 2,
        Dialect::Airbyte => 3,
    });
}

/// Reads options.
pub fn decode_options(from: &mut Decoder<'_>) -> Result<JobOptions, DecodeError> {
    Ok(JobOptions {
        headers: from.bytes()?.into(),
        unique_key: from.str()?.into(),
        unique_hold_ms: from.u64()?,
        request_id: from.str()?.into(),
        concurrency_key: from.str()?.into(),
        rate_key: from.str()?.into(),
        retry: decode_retry(from)?,
        exhausted: match from.u8()? {
            0 => Exhausted::Incident,
            1 => Exhausted::Fail,
            tag => return Err(DecodeError::UnknownTag { field: "exhausted", tag }),
        },
        deadlines: decode_deadlines(from)?,
        cancel: match from.u8()? {
            0 => CancelPolicy::AtOnce,
            1 => CancelPolicy::Cooperative,
            2 => CancelPolicy::CooperativeCompletionCounts,
            tag => return Err(DecodeError::UnknownTag { field: "cancel policy", tag }),
        },
        dialect: match from.u8()? {
            0 => Dialect::Native,
            1 => Dialect::Zeebe,
            2 => Dialect::Conductor,
            3 => Dialect::Airbyte,
            tag => return Err(DecodeError::UnknownTag { field: "dialect", tag }),
        },
    })
}

fn encode_retry(out: &mut Encoder<'_>, retry: &RetryPolicy) {
    match *retry {
        RetryPolicy::WorkerGiven => out.u8(0),
        RetryPolicy::Fixed { delay_ms, jitter_ms } => {
            out.u8(1);
            out.u64(delay_ms);
            out.u64(jitter_ms);
        }
        RetryPolicy::Linear { delay_ms, scale, cap_ms, jitter_ms } => {
            out.u8(2);
            out.u64(delay_ms);
            out.u32(scale);
            out.u64(cap_ms);
            out.u64(jitter_ms);
        }
        RetryPolicy::Exponential { delay_ms, base, cap_ms, jitter_ms, from_start } => {
            out.u8(3);
            out.u64(delay_ms);
            out.u32(base);
            out.u64(cap_ms);
            out.u64(jitter_ms);
            out.bool(from_start);
        }
        RetryPolicy::Attempts {
            complete_successive_max,
            complete_total_max,
            partial_successive_max,
            partial_total_max,
            delay_ms,
            base,
            cap_ms,
        } => {
            out.u8(4);
            out.u32(complete_successive_max);
            out.u32(complete_total_max);
            out.u32(partial_successive_max);
            out.u32(partial_total_max);
            out.u64(delay_ms);
            out.u32(base);
            out.u64(cap_ms);
        }
    }
}

fn decode_retry(from: &mut Decoder<'_>) -> Result<RetryPolicy, DecodeError> {
    Ok(match from.u8()? {
        0 => RetryPolicy::WorkerGiven,
        1 => RetryPolicy::Fixed { delay_ms: from.u64()?, jitter_ms: from.u64()? },
        2 => RetryPolicy::Linear {
            delay_ms: from.u64()?,
            scale: from.u32()?,
            cap_ms: from.u64()?,
            jitter_ms: from.u64()?,
        },
        3 => RetryPolicy::Exponential {
            delay_ms: from.u64()?,
            base: from.u32()?,
            cap_ms: from.u64()?,
            jitter_ms: from.u64()?,
            from_start: from.bool()?,
        },
        4 => RetryPolicy::Attempts {
            complete_successive_max: from.u32()?,
            complete_total_max: from.u32()?,
            partial_successive_max: from.u32()?,
            partial_total_max: from.u32()?,
            delay_ms: from.u64()?,
            base: from.u32()?,
            cap_ms: from.u64()?,
        },
        tag => return Err(DecodeError::UnknownTag { field: "retry policy", tag }),
    })
}

fn encode_deadlines(out: &mut Encoder<'_>, deadlines: &Deadlines) {
    encode_deadline_outcome(out, deadlines.lease);
    for deadline in [deadlines.waiting, deadlines.attempt, deadlines.total] {
        match deadline {
            None => out.u8(0),
            Some((after_ms, outcome)) => {
                out.u8(1);
                out.u64(after_ms);
                encode_deadline_outcome(out, outcome);
            }
        }
    }
}

fn decode_deadlines(from: &mut Decoder<'_>) -> Result<Deadlines, DecodeError> {
    let lease = decode_deadline_outcome(from)?;
    let mut one = || -> Result<Option<(u64, DeadlineOutcome)>, DecodeError> {
        if !from.bool()? {
            return Ok(None);
        }
        Ok(Some((from.u64()?, decode_deadline_outcome(from)?)))
    };
    Ok(Deadlines { lease, waiting: one()?, attempt: one()?, total: one()? })
}

fn encode_deadline_outcome(out: &mut Encoder<'_>, outcome: DeadlineOutcome) {
    out.u8(match outcome {
        DeadlineOutcome::Again => 0,
        DeadlineOutcome::FailAttempt => 1,
        DeadlineOutcome::End => 2,
        DeadlineOutcome::Alert => 3,
    });
}

fn decode_deadline_outcome(from: &mut Decoder<'_>) -> Result<DeadlineOutcome, DecodeError> {
    Ok(match from.u8()? {
        0 => DeadlineOutcome::Again,
        1 => DeadlineOutcome::FailAttempt,
        2 => DeadlineOutcome::End,
        3 => DeadlineOutcome::Alert,
        tag => return Err(DecodeError::UnknownTag { field: "deadline outcome", tag }),
    })
}

/// Appends the settings of a queue.
pub fn encode_queue_settings(out: &mut Encoder<'_>, settings: &QueueSettings) {
    match settings.priority {
        PriorityRule::Strict => out.u8(0),
        PriorityRule::Scheme { high, low } => {
            out.u8(1);
            out.u32(high);
            out.u32(low);
        }
    }
    out.u8(match settings.order {
        JobOrder::Ready => 0,
        JobOrder::Creation => 1,
    });
    out.bool(settings.retries_first);
    out.u64(settings.aging_ms);
    out.bool(settings.one_type);
    out.u32(settings.key_active_max);
    encode_rate(out, settings.key_rate);
    out.u32(settings.finished_max);
    out.u64(settings.finished_ms);
}

/// Reads the settings of a queue.
pub fn decode_queue_settings(from: &mut Decoder<'_>) -> Result<QueueSettings, DecodeError> {
    Ok(QueueSettings {
        priority: match from.u8()? {
            0 => PriorityRule::Strict,
            1 => PriorityRule::Scheme { high: from.u32()?, low: from.u32()? },
            tag => return Err(DecodeError::UnknownTag { field: "priority rule", tag }),
        },
        order: match from.u8()? {
            0 => JobOrder::Ready,
            1 => JobOrder::Creation,
            tag => return Err(DecodeError::UnknownTag { field: "job order", tag }),
        },
        retries_first: from.bool()?,
        aging_ms: from.u64()?,
        one_type: from.bool()?,
        key_active_max: from.u32()?,
        key_rate: decode_rate(from)?,
        finished_max: from.u32()?,
        finished_ms: from.u64()?,
    })
}

/// Appends the settings of a limit key.
pub fn encode_limit_settings(out: &mut Encoder<'_>, settings: &LimitSettings) {
    match settings.active_max {
        None => out.u8(0),
        Some(max) => {
            out.u8(1);
            out.u32(max);
        }
    }
    encode_rate(out, settings.rate);
}

/// Reads the settings of a limit key.
pub fn decode_limit_settings(from: &mut Decoder<'_>) -> Result<LimitSettings, DecodeError> {
    let active_max = if from.bool()? { Some(from.u32()?) } else { None };
    Ok(LimitSettings { active_max, rate: decode_rate(from)? })
}

fn encode_rate(out: &mut Encoder<'_>, rate: Option<RateWindow>) {
    match rate {
        None => out.u8(0),
        Some(rate) => {
            out.u8(1);
            out.u32(rate.max);
            out.u64(rate.window_ms);
        }
    }
}

fn decode_rate(from: &mut Decoder<'_>) -> Result<Option<RateWindow>, DecodeError> {
    if !from.bool()? {
        return Ok(None);
    }
    Ok(Some(RateWindow { max: from.u32()?, window_ms: from.u64()? }))
}

/// Appends failure counts.
pub fn encode_failures(out: &mut Encoder<'_>, failures: &FailureCounts) {
    out.u32(failures.complete_successive);
    out.u32(failures.complete_total);
    out.u32(failures.partial_successive);
    out.u32(failures.partial_total);
}

/// Reads failure counts.
pub fn decode_failures(from: &mut Decoder<'_>) -> Result<FailureCounts, DecodeError> {
    Ok(FailureCounts {
        complete_successive: from.u32()?,
        complete_total: from.u32()?,
        partial_successive: from.u32()?,
        partial_total: from.u32()?,
    })
}
