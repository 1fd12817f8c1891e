//! What the destination says: states that it gives back, and everything else.

use std::sync::mpsc::SyncSender;

use crate::failure::{Failure, FailureType, Origin};
use crate::observer::Level;
use crate::pipe::ledger::Acknowledged;
use crate::pipe::lines::{Filled, Lines};
use crate::pipe::shared::{Shared, for_log};
use crate::pipe::speech;
use crate::process::Side;
use crate::process::wire::Wire;
use crate::protocol::line::{self, Line};

/// Reads until the destination closes its output. `news` wakes whoever commits.
///
/// # Errors
/// If the attempt cannot go on.
pub fn run(
    shared: &Shared<'_>,
    wire: &Wire,
    line_bytes_max: usize,
    news: &SyncSender<()>,
) -> Result<(), Box<Failure>> {
    let mut lines = Lines::new(line_bytes_max);
    loop {
        let filled = lines.fill(wire).map_err(|error| {
            let message = "the output of the destination cannot be read";
            Box::new(
                Failure::new(Origin::Replication, FailureType::SystemError, message)
                    .internal(error.to_string()),
            )
        })?;
        let (range, is_end) = match filled {
            Filled::Lines(range) => (range, false),
            Filled::End(range) => (range, true),
            Filled::Stopped => return Ok(()),
            Filled::TooLong => return Err(Box::new(too_long(Side::Destination, line_bytes_max))),
        };
        shared.destination.now();
        shared.observer.heard();
        for line in lines.bytes(range).split(|byte| *byte == b'\n') {
            take(shared, line, news)?;
        }
        if is_end {
            return Ok(());
        }
    }
}

/// A line that is longer than one may be.
#[must_use]
pub fn too_long(side: Side, line_bytes_max: usize) -> Failure {
    let message = format!(
        "the {} wrote a line of more than {} MiB, which is the limit",
        side.name(),
        line_bytes_max >> 20
    );
    Failure::new(side.origin(), FailureType::SystemError, message)
}

fn take(shared: &Shared<'_>, line: &[u8], news: &SyncSender<()>) -> Result<(), Box<Failure>> {
    match line::read(line) {
        Line::Message(message) => match message.state {
            Some(state) => acknowledge(shared, state.get(), news),
            None => speech::hear(shared, Side::Destination, &message)?,
        },
        Line::Record(_) => {
            let text = "a record from a destination is left out";
            shared.observer.log(Some(Side::Destination), Level::Warn, text);
        }
        Line::Invalid(_) => speech::hear_noise(shared, Side::Destination, line),
        Line::Blank => {}
    }
    Ok(())
}

fn acknowledge(shared: &Shared<'_>, state: &str, news: &SyncSender<()>) {
    let outcome = shared.ledger().acknowledged(state);
    let log = |level, what: &str| {
        let text = format!("{what}: {}", for_log(state.as_bytes()));
        shared.observer.log(Some(Side::Destination), level, &text);
    };
    match outcome {
        Ok(Acknowledged::New) => {
            // If there is news already, this is part of it.
            let _ = news.try_send(());
        }
        Ok(Acknowledged::Again) => log(Level::Debug, "a state that was acknowledged before"),
        Ok(Acknowledged::Unknown) => log(Level::Warn, "a state that was never sent"),
        Err(error) => log(Level::Warn, &error.to_string()),
    }
}
