//! `windlass log`: look into the log of a stopped server, and cut it behind damage.

mod verify;

use std::fs::File;
use std::io::IsTerminal;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_log::file::{InspectedFrame, inspect, repair};
use windlass_log::frame::FRAME_HEADER_BYTES;
use windlass_log::fs::OsFileSystem;
use windlass_log::{EpochRecord, FrameKind};
use windlass_record::codec::{Decoder, Payloads, VERSION, decode_event};
use windlass_record::{Payload, PayloadHandle};
use windlass_server::data;

use crate::failure::Failure;
use crate::offline::{DataDir, log_failure};
use crate::output::Output;
use crate::units::utc;

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Read all of the log and of the checkpoint, and say what state they are in
    Verify {
        #[command(flatten)]
        data: DataDir,
    },
    /// Print the frames and the events in them
    Inspect {
        #[command(flatten)]
        data: DataDir,
        /// From this lsn
        #[arg(long, default_value_t = 0, value_name = "LSN", hide_default_value = true)]
        from: u64,
        /// At most so many frames
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Only frames that mention this job
        #[arg(long, value_name = "KEY")]
        job: Option<u64>,
    },
    /// Cut a damaged log behind its last good frame. Loses data; what is cut is kept beside it
    Repair {
        #[command(flatten)]
        data: DataDir,
        /// Do it
        #[arg(long)]
        i_know_that_this_loses_data: bool,
    },
}

pub(crate) fn run(command: LogCommand, json: bool) -> Result<(), Failure> {
    let out = Output { json };
    match command {
        LogCommand::Verify { data } => verify::run(&data.data_dir, out),
        LogCommand::Inspect { data, from, limit, job } => {
            let wanted = Wanted { from, limit: limit.unwrap_or(u64::MAX), job };
            run_inspect(&data::log_dir(&data.data_dir), &wanted, out)
        }
        LogCommand::Repair { data, i_know_that_this_loses_data } => {
            if !i_know_that_this_loses_data {
                return Err(Failure::new("a repair loses data that was acknowledged").hint(
                    "look at `windlass log verify` first; if no backup is left, repeat this with \
                     --i-know-that-this-loses-data",
                ));
            }
            run_repair(&data::log_dir(&data.data_dir), out)
        }
    }
}

struct Wanted {
    from: u64,
    limit: u64,
    job: Option<u64>,
}

fn run_inspect(dir: &Path, wanted: &Wanted, out: Output) -> Result<(), Failure> {
    let mut printer = Printer { wanted, out, shown: 0, file: None, failure: None };
    let damage = inspect(&OsFileSystem, dir, &mut |frame| printer.frame(frame));
    let damage = damage.map_err(|error| log_failure(&error))?;
    match (printer.failure, damage) {
        (Some(failure), _) => Err(failure),
        (None, Some(damage)) => Err(Failure::damaged(damage.to_string())),
        (None, None) => Ok(()),
    }
}

struct Printer<'a> {
    wanted: &'a Wanted,
    out: Output,
    shown: u64,
    file: Option<(PathBuf, File)>,
    failure: Option<Failure>,
}

impl Printer<'_> {
    fn frame(&mut self, frame: &InspectedFrame) {
        let wanted = frame.lsn >= self.wanted.from && self.shown < self.wanted.limit;
        if wanted && self.failure.is_none() {
            self.failure = self.print(frame).err();
        }
    }

    fn print(&mut self, frame: &InspectedFrame) -> Result<(), Failure> {
        let payload = self.payload(frame)?;
        let events = match frame.kind {
            FrameKind::Data => events(&payload),
            FrameKind::Epoch => vec![epoch(&payload)],
        };
        if let Some(job) = self.wanted.job {
            let mention = format!("JobKey({job})");
            if !events.iter().any(|event| event.text.contains(&mention)) {
                return Ok(());
            }
        }
        self.shown += 1;
        let value = json!({
            "lsn": frame.lsn,
            "time_ms": frame.time_ms,
            "epoch": frame.epoch,
            "partition": frame.partition,
            "batch_first_lsn": frame.batch_first_lsn,
            "file": frame.file,
            "offset": frame.offset,
            "payload_bytes": frame.payload_bytes,
            "crc": frame.crc,
            "events": events.iter().map(|event| &event.value).collect::<Vec<_>>(),
        });
        self.out.show(&value, || {
            let head = format!("{}  {}  epoch {}", frame.lsn, utc(frame.time_ms), frame.epoch);
            let lines = events.iter().map(|event| format!("\n    {}", event.text));
            std::iter::once(head).chain(lines).collect()
        })
    }

    /// `inspect` has checked the bytes; it does not hand them out.
    fn payload(&mut self, frame: &InspectedFrame) -> Result<Vec<u8>, Failure> {
        let failed = |error| Failure::io(format!("read {}", frame.file.display()), error);
        if self.file.as_ref().is_none_or(|(path, _)| *path != frame.file) {
            let file = File::open(&frame.file).map_err(failed)?;
            self.file = Some((frame.file.clone(), file));
        }
        let mut payload = vec![0; usize::try_from(frame.payload_bytes).unwrap_or(0)];
        let header = u64::try_from(FRAME_HEADER_BYTES).unwrap_or(0);
        if let Some((_, file)) = &self.file {
            file.read_exact_at(&mut payload, frame.offset + header).map_err(failed)?;
        }
        Ok(payload)
    }
}

/// An event for people and for programs. What cannot be read is `{"unreadable": "why"}`.
struct Shown {
    text: String,
    value: Value,
}

impl Shown {
    fn new(text: String, value: Value) -> Self {
        Self { text, value }
    }

    fn unreadable(why: String) -> Self {
        let value = json!({ "unreadable": why });
        Self::new(why, value)
    }
}

fn epoch(payload: &[u8]) -> Shown {
    match EpochRecord::decode(payload) {
        Some(record) => {
            let value = json!({
                "predecessor_epoch": record.predecessor_epoch,
                "predecessor_last_lsn": record.predecessor_last_lsn,
                "predecessor_time_ms": record.predecessor_time_ms,
            });
            Shown::new(format!("{record:?}"), json!({ "epoch-began": value }))
        }
        None => Shown::unreadable("an epoch record that cannot be read".to_owned()),
    }
}

/// The events of a frame in the words of `windlass-record`. In front of them the partition writes how
/// long after its batch's record time the frame was decided.
fn events(payload: &[u8]) -> Vec<Shown> {
    let mut decoder = Decoder::new(payload);
    match decoder.u8().and_then(|version| Ok((version, decoder.u64()?))) {
        Ok((VERSION, _since_ms)) => {}
        Ok((version, _)) => {
            let why = format!("a frame of version {version}, newer than this program");
            return vec![Shown::unreadable(why)];
        }
        Err(error) => return vec![Shown::unreadable(error.to_string())],
    }
    let mut events = Vec::new();
    while !decoder.is_empty() {
        match decode_event(&mut decoder, &mut Lengths) {
            Ok(event) => {
                let value = serde_json::to_value(&event).expect("events are text and numbers");
                events.push(Shown::new(format!("{event:?}"), value));
            }
            Err(error) => {
                events.push(Shown::unreadable(format!("failed to decode: {error}")));
                break;
            }
        }
    }
    events
}

/// Keeps no bytes: an event shows how many there are.
struct Lengths;

impl Payloads for Lengths {
    fn bytes(&self, _: Payload) -> &[u8] {
        &[]
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Payload { handle: PayloadHandle::EMPTY, len }
    }
}

fn run_repair(dir: &Path, out: Output) -> Result<(), Failure> {
    let report = repair(&OsFileSystem, dir).map_err(|error| log_failure(&error))?;
    let lost = report.lost_lsns.as_ref().map(|lost| (*lost.start(), *lost.end()));
    let value = json!({
        "damage": report.damage.as_ref().map(ToString::to_string),
        "last_lsn": report.last_lsn,
        "lost_lsns": lost.map(|(from, to)| json!({ "from": from, "to": to })),
        "side_files": report.side_files,
        "marks_rebuilt": report.marks_rebuilt,
    });
    out.show(&value, || {
        if report.damage.is_none() && !report.marks_rebuilt {
            return "the log is not damaged; nothing was changed".to_owned();
        }
        let lost = match lost {
            Some((from, to)) => format!("lsns {from} to {to} are lost, perhaps more"),
            None => "no lsn is known to be lost".to_owned(),
        };
        let kept = report.side_files.iter().map(|file| format!("\n  {}", file.display()));
        let kept: String = kept.collect();
        format!("the log ends at lsn {} now; {lost}\nkept aside:{kept}", report.last_lsn)
    })?;
    if report.damage.is_some() && std::io::stderr().is_terminal() {
        eprintln!(
            "hint: the checkpoint may be newer than the log now; `windlass serve` will say so"
        );
    }
    Ok(())
}
