//! From the source's output to the destination's input.

use std::io;
use std::ops::Range;
use std::sync::mpsc::Receiver;

use crate::failure::{Failure, FailureType, Origin};
use crate::observer::{Level, now_ms};
use crate::pipe::answers::too_long;
use crate::pipe::ledger::{StateRefused, Tally};
use crate::pipe::lines::{Filled, Lines};
use crate::pipe::outlet::Outlet;
use crate::pipe::rewrite::{self, Rewrite};
use crate::pipe::sample::Sampler;
use crate::pipe::shared::{Shared, for_log};
use crate::pipe::speech;
use crate::process::Side;
use crate::process::wire::{Stop, Wire, Written};
use crate::protocol::line::{self, Line, RecordLine};
use crate::protocol::message::{Descriptor, Envelope};

/// Up to so many streams are looked through one after the other, without a hash.
const FEW_STREAMS: usize = 16;

/// Why the pump has ended. The destination's input is closed in each case.
#[derive(Debug)]
pub enum PumpEnd {
    /// Everything was sent, with the streams' completion.
    Done,
    /// The source failed; what it sent before was sent on.
    SourceFailed,
    /// The destination reads no more.
    DestinationClosed,
    /// Somebody wanted us to stop.
    Stopped,
    /// The attempt cannot go on.
    Failed(Box<Failure>),
}

/// What the pump works with.
#[derive(Debug)]
pub struct Ends {
    /// From the source's output.
    pub source: Wire,
    /// To the destination's input.
    pub destination: Wire,
    /// Ends both.
    pub stop: Stop,
    /// Of one line.
    pub line_bytes_max: usize,
    /// Picks records to be looked at.
    pub sampler: Sampler,
    /// How the source ended: well or not.
    pub source_ended: Receiver<bool>,
}

/// Reads the source's output to its end, calls `at_end`, waits to hear how the source ended, completes the
/// streams, and closes the destination's input.
pub fn run(shared: &Shared<'_>, ends: Ends, at_end: impl FnOnce()) -> PumpEnd {
    let Ends { source, destination, stop, line_bytes_max, sampler, source_ended } = ends;
    let mut lines = Lines::new(line_bytes_max);
    let mut pump = Pump::new(shared, destination, sampler);
    loop {
        shared.reading.now();
        let filled = lines.fill(&source);
        shared.reading.clear();
        let (range, is_end) = match filled {
            Ok(Filled::Lines(range)) => (range, false),
            Ok(Filled::End(range)) => (range, true),
            Ok(Filled::Stopped) => return PumpEnd::Stopped,
            Ok(Filled::TooLong) => {
                pump.rest();
                return PumpEnd::Failed(Box::new(too_long(Side::Source, line_bytes_max)));
            }
            Err(error) => return PumpEnd::Failed(Box::new(unreadable(&error))),
        };
        shared.observer.heard();
        let buffer = lines.bytes(0..range.end);
        if let Err(failure) = pump.batch(buffer, range, !is_end) {
            pump.rest();
            return PumpEnd::Failed(failure);
        }
        match pump.outlet.end() {
            Some(Written::Closed) => return PumpEnd::DestinationClosed,
            Some(Written::Stopped) => return PumpEnd::Stopped,
            Some(Written::All) | None if stop.is_stopped() => return PumpEnd::Stopped,
            Some(Written::All) | None => {}
        }
        if is_end {
            at_end();
            return pump.finish(&source_ended);
        }
    }
}

fn unreadable(error: &io::Error) -> Failure {
    let message = "the output of the source cannot be read";
    Failure::new(Origin::Replication, FailureType::SystemError, message).internal(error.to_string())
}

struct Pump<'a> {
    shared: &'a Shared<'a>,
    outlet: Outlet<'a>,
    /// Counted since the books were told.
    tallies: Vec<Tally>,
    /// By stream.
    rewrites: Vec<Option<Rewrite>>,
    sampler: Sampler,
    /// Records mostly come in runs.
    last_stream: usize,
    has_beat: bool,
}

impl<'a> Pump<'a> {
    fn new(shared: &'a Shared<'a>, destination: Wire, sampler: Sampler) -> Self {
        let streams = &shared.catalog.streams;
        Self {
            shared,
            outlet: Outlet::new(destination, &shared.writing),
            tallies: vec![Tally::default(); streams.len()],
            rewrites: streams.iter().map(Rewrite::of).collect(),
            sampler,
            last_stream: 0,
            has_beat: false,
        }
    }

    /// The lines of a range of the buffer. `has_feed`: the last one ends with a line feed too.
    fn batch(
        &mut self,
        buffer: &[u8],
        range: Range<usize>,
        has_feed: bool,
    ) -> Result<(), Box<Failure>> {
        let mut from = range.start;
        let bytes = buffer.get(range.clone()).unwrap_or_default();
        for feed in memchr::memchr_iter(b'\n', bytes) {
            let to = range.start + feed + 1;
            self.line(buffer, from..to)?;
            from = to;
        }
        if !has_feed && from < range.end {
            self.line(buffer, from..range.end)?;
            if self.outlet.keeps_to(range.end) {
                self.outlet.put(buffer, &[b"\n"]);
            }
        }
        self.outlet.settle(buffer);
        self.rest();
        Ok(())
    }

    /// Everything that was counted and gathered goes to where it belongs.
    fn rest(&mut self) {
        self.shared.ledger().count(&mut self.tallies);
        self.outlet.flush();
        if std::mem::take(&mut self.has_beat) {
            self.shared.source.now();
        }
    }

    fn line(&mut self, buffer: &[u8], part: Range<usize>) -> Result<(), Box<Failure>> {
        let text = buffer.get(part.clone()).unwrap_or_default();
        match line::read(text) {
            Line::Record(record) => self.record(buffer, part, &record),
            Line::Message(message) => self.message(buffer, &message),
            Line::Invalid(_) => {
                speech::hear_noise(self.shared, Side::Source, text);
                Ok(())
            }
            Line::Blank => Ok(()),
        }
    }

    fn record(
        &mut self,
        buffer: &[u8],
        part: Range<usize>,
        record: &RecordLine<'_>,
    ) -> Result<(), Box<Failure>> {
        self.has_beat = true;
        let Some(index) = self.find(record) else { return Err(unknown_stream(record)) };
        let Some(tally) = self.tallies.get_mut(index) else { return Ok(()) };
        if record.is_empty() {
            tally.filtered += 1;
            return Ok(());
        }
        tally.records += 1;
        tally.bytes += u64::try_from(record.data.len()).unwrap_or(u64::MAX);
        self.sampler.pass(index, record.data);
        if let Some(stream) = self.shared.catalog.streams.get(index)
            && stream.needs_key()
            && rewrite::lacks_key(record.data, &stream.primary_key)
        {
            return Err(without_key(&stream.descriptor));
        }
        let Some(rewrite) = self.rewrites.get(index).and_then(Option::as_ref) else {
            self.outlet.keep(buffer, part);
            return Ok(());
        };
        let text = buffer.get(part).unwrap_or_default();
        let bytes = u64::try_from(record.data.len()).unwrap_or(u64::MAX);
        match rewrite.apply(text.trim_ascii(), record) {
            Some(changed) => self.outlet.put(buffer, &[&changed]),
            None => {
                // Its data is no object: nobody could select from it.
                if let Some(tally) = self.tallies.get_mut(index) {
                    tally.records -= 1;
                    tally.bytes -= bytes;
                    tally.filtered += 1;
                }
                speech::hear_noise(self.shared, Side::Source, text);
            }
        }
        Ok(())
    }

    fn find(&mut self, record: &RecordLine<'_>) -> Option<usize> {
        let streams = &self.shared.catalog.streams;
        let is = |descriptor: &Descriptor| {
            is_same(&descriptor.name, &record.stream)
                && is_same(descriptor.namespace(), &record.namespace)
        };
        if streams.get(self.last_stream).is_some_and(|stream| is(&stream.descriptor)) {
            return Some(self.last_stream);
        }
        let found = if streams.len() <= FEW_STREAMS {
            streams.iter().position(|stream| is(&stream.descriptor))
        } else {
            self.shared.catalog.find(&Descriptor::new(&record.stream, &record.namespace))
        };
        self.last_stream = found?;
        found
    }

    fn message(&mut self, buffer: &[u8], message: &Envelope<'_>) -> Result<(), Box<Failure>> {
        match message.state {
            Some(state) => self.state(buffer, state.get()),
            None => {
                // Statuses and estimates are about the records before them.
                self.shared.ledger().count(&mut self.tallies);
                speech::hear(self.shared, Side::Source, message)
            }
        }
    }

    fn state(&mut self, buffer: &[u8], text: &str) -> Result<(), Box<Failure>> {
        self.has_beat = true;
        let sent = {
            let mut ledger = self.shared.ledger();
            ledger.count(&mut self.tallies);
            ledger.sent(text)
        };
        match sent {
            Ok(line) => self.outlet.put(buffer, &[line.as_bytes()]),
            Err(error @ StateRefused::Mixed { .. }) => {
                let kind = FailureType::SystemError;
                return Err(Box::new(Failure::new(Origin::Source, kind, error.to_string())));
            }
            Err(error @ (StateRefused::Malformed(_) | StateRefused::UnknownStream(_))) => {
                let text = format!("a state is left out: {error}: {}", for_log(text.as_bytes()));
                self.shared.observer.log(Some(Side::Source), Level::Warn, &text);
            }
        }
        Ok(())
    }

    /// The source's output is over.
    fn finish(mut self, source_ended: &Receiver<bool>) -> PumpEnd {
        // Whoever should tell us is gone only when the attempt is broken off.
        let Ok(well) = source_ended.recv() else { return PumpEnd::Stopped };
        if !well {
            return PumpEnd::SourceFailed;
        }
        if let Some(stream) = self.shared.ledger().incomplete().into_iter().next() {
            return PumpEnd::Failed(incomplete(stream));
        }
        let missing = self.shared.ledger().missing();
        for state in missing {
            if let Err(failure) = self.state(&[], &state) {
                return PumpEnd::Failed(failure);
            }
        }
        for stream in &self.shared.catalog.streams {
            let line = completion(&stream.mapped);
            self.outlet.put(&[], &[line.as_bytes()]);
        }
        self.rest();
        match self.outlet.end() {
            None | Some(Written::All) => PumpEnd::Done,
            Some(Written::Closed) => PumpEnd::DestinationClosed,
            Some(Written::Stopped) => PumpEnd::Stopped,
        }
    }
}

/// Names are a few bytes: a call to compare them took a tenth of a record's time.
fn is_same(left: &str, right: &str) -> bool {
    left.len() == right.len() && left.bytes().zip(right.bytes()).all(|(left, right)| left == right)
}

/// Tells the destination that a stream is complete: only now it may drop older generations.
fn completion(stream: &Descriptor) -> String {
    let trace = serde_json::json!({"type": "TRACE", "trace": {
        "type": "STREAM_STATUS", "emitted_at": now_ms(),
        "stream_status": {"stream_descriptor": stream, "status": "COMPLETE"}}});
    format!("{trace}\n")
}

fn unknown_stream(record: &RecordLine<'_>) -> Box<Failure> {
    let stream = Descriptor::new(&record.stream, &record.namespace);
    let message = format!("the source sent a record of the stream {stream}, which is not synced");
    Box::new(Failure::new(Origin::Source, FailureType::SystemError, message).stream(stream))
}

fn incomplete(stream: Descriptor) -> Box<Failure> {
    let message = format!(
        "the source ended as if all was well, but said that the stream {stream} is incomplete"
    );
    Box::new(Failure::new(Origin::Source, FailureType::SystemError, message).stream(stream))
}

fn without_key(stream: &Descriptor) -> Box<Failure> {
    let message = format!(
        "the source sent a record of the stream {stream} without any field of its primary key, by which \
         it is to be deduplicated"
    );
    Box::new(Failure::new(Origin::Source, FailureType::SystemError, message).stream(stream.clone()))
}
