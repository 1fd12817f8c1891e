//! What connectors say that is neither record nor state: logs, traces, new configurations.

use serde_json::value::RawValue;

use crate::failure::{Failure, FailureType, Origin};
use crate::journal::Journal;
use crate::observer::{Level, Observer};
use crate::pipe::shared::{Shared, for_log};
use crate::process::Side;
use crate::protocol::message::{Control, Envelope, Log, Trace, TraceError};

/// Takes a message in.
///
/// # Errors
/// If the attempt cannot go on: a configuration cannot be kept, or a stream is complete that nobody
/// asked for.
pub fn hear(shared: &Shared<'_>, side: Side, message: &Envelope<'_>) -> Result<(), Box<Failure>> {
    if let Some(log) = message.log {
        hear_log(shared.observer, side, log);
    } else if let Some(trace) = message.trace {
        return hear_trace(shared, side, trace);
    } else if let Some(control) = message.control {
        return hear_control(shared.journal, shared.observer, side, control);
    } else {
        let text = format!("a message of type {} is not expected here", message.kind);
        shared.observer.log(Some(side), Level::Warn, &text);
    }
    Ok(())
}

/// A line that is no message: programs print all kinds of things.
pub fn hear_noise(shared: &Shared<'_>, side: Side, line: &[u8]) {
    noise(shared.observer, side, line);
}

fn noise(observer: &dyn Observer, side: Side, line: &[u8]) {
    observer.log(Some(side), Level::Info, &for_log(line));
}

/// A line of its log.
pub fn hear_log(observer: &dyn Observer, side: Side, log: &RawValue) {
    match serde_json::from_str::<Log>(log.get()) {
        Ok(log) => {
            let level = Level::of_connector(&log.level);
            observer.log(Some(side), level, &for_log(log.message.as_bytes()));
            if let Some(stack) = log.stack_trace {
                observer.log(Some(side), level, &for_log(stack.as_bytes()));
            }
        }
        Err(_) => noise(observer, side, log.get().as_bytes()),
    }
}

fn hear_trace(shared: &Shared<'_>, side: Side, trace: &RawValue) -> Result<(), Box<Failure>> {
    let Ok(trace) = serde_json::from_str::<Trace>(trace.get()) else {
        hear_noise(shared, side, trace.get().as_bytes());
        return Ok(());
    };
    if let Some(error) = trace.error {
        shared.fail(hear_error(shared.observer, side, error, trace.emitted_at));
    }
    if side == Side::Source
        && let Some(estimate) = trace.estimate
    {
        shared.ledger().estimated(&estimate);
    }
    if side == Side::Source
        && let Some(status) = trace.stream_status
        && !shared.ledger().stream_status(&status)
    {
        let message = format!(
            "the source reports on the stream {}, which is not synced",
            status.stream_descriptor
        );
        shared.observer.log(Some(side), Level::Warn, &message);
        if status.status == "COMPLETE" {
            let failure = Failure::new(Origin::Source, FailureType::SystemError, message);
            return Err(Box::new(failure.stream(status.stream_descriptor)));
        }
    }
    Ok(())
}

/// What it says went wrong.
pub fn hear_error(
    observer: &dyn Observer,
    side: Side,
    error: TraceError,
    emitted_at: Option<f64>,
) -> Failure {
    let failure = Failure::of_trace(side.origin(), error, emitted_at);
    observer.log(Some(side), Level::Error, &for_log(failure.external_message.as_bytes()));
    failure
}

/// Its configuration has changed, and is kept before anything else happens.
///
/// # Errors
/// If it cannot be.
pub fn hear_control(
    journal: &dyn Journal,
    observer: &dyn Observer,
    side: Side,
    control: &RawValue,
) -> Result<(), Box<Failure>> {
    let parsed = serde_json::from_str::<Control<'_>>(control.get());
    let Some(config) = parsed.ok().and_then(|control| control.connector_config) else {
        let text = "a control message without a configuration is left out";
        observer.log(Some(side), Level::Warn, text);
        return Ok(());
    };
    journal.configuration(side, config.config.get()).map_err(|error| {
        let message = format!("the new configuration of the {} was not kept", side.name());
        let failure = Failure::new(Origin::Persistence, FailureType::SystemError, message);
        Box::new(failure.internal(error.message))
    })
}
