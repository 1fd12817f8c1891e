//! Opens a partition: the newest checkpoint, then the log behind it.

use std::ops::ControlFlow;

use crossbeam_channel::{Sender, bounded};
use windlass_checkpoint::{Checkpoint, KeyRange, View};
use windlass_engine::{Engine, LoadError, State};
use windlass_log::{EpochOpened, EpochRequest, FrameKind, Log, LogError, Position, ReadFrom};
use windlass_record::codec::{DecodeError, Decoder, VERSION, decode_event};
use windlass_record::id::PartitionId;

use crate::clock::Reading;
use crate::core::Core;
use crate::finished::{self, Finished};
use crate::options::Options;
use crate::parts::Parts;
use crate::payload::PayloadStore;

/// Why a partition did not open. Nothing was changed but for the epoch.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log could not be opened or read.
    #[error("failed to read the log")]
    Log(#[from] LogError),
    /// The checkpoint could not be read.
    #[error("failed to read the checkpoint")]
    Checkpoint(#[from] windlass_checkpoint::Error),
    /// The checkpoint holds something that makes no sense.
    #[error("failed to load the image with key {key:02x?} of the checkpoint")]
    Image {
        /// Its key.
        key: Vec<u8>,
        /// Why.
        source: LoadError,
    },
    /// The checkpoint was written by a later version.
    #[error("the checkpoint has format {format}, which is newer than this program")]
    NewerCheckpoint {
        /// Its format.
        format: u32,
    },
    /// The checkpoint is whole but not what was written.
    #[error("the state of the checkpoint has checksum {found:016x} and not {expected:016x}")]
    Checksum {
        /// As it was written.
        expected: u64,
        /// As it was read.
        found: u64,
    },
    /// The log begins behind the checkpoint: what is between is lost.
    #[error("the checkpoint ends at lsn {checkpoint_lsn} and the log begins at lsn {first_lsn}")]
    Gap {
        /// The last record of the checkpoint.
        checkpoint_lsn: u64,
        /// The first record of the log.
        first_lsn: u64,
    },
    /// The checkpoint holds records that the log does not.
    #[error("the checkpoint ends at lsn {checkpoint_lsn}, behind the log's end at {durable_lsn}")]
    Ahead {
        /// The last record of the checkpoint.
        checkpoint_lsn: u64,
        /// The last record of the log.
        durable_lsn: u64,
    },
    /// An image is not whole.
    #[error("a part of the image under {key:02x?} is missing")]
    Part {
        /// Its key.
        key: Vec<u8>,
    },
    /// A record makes no sense.
    #[error("failed to decode the record with lsn {lsn}")]
    Record {
        /// Which.
        lsn: u64,
        /// Why.
        source: DecodeError,
    },
    /// A thread of the partition could not be started.
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
}

impl OpenError {
    /// Is there something in the log or the checkpoint that cannot be right?
    pub fn is_damage(&self) -> bool {
        match self {
            OpenError::Log(error) => error.is_damage(),
            OpenError::Checkpoint(error) => error.is_damage(),
            OpenError::NewerCheckpoint { .. } | OpenError::Thread(_) => false,
            OpenError::Image { .. }
            | OpenError::Checksum { .. }
            | OpenError::Gap { .. }
            | OpenError::Ahead { .. }
            | OpenError::Part { .. }
            | OpenError::Record { .. } => true,
        }
    }
}

/// What an opening found.
pub struct Recovered {
    /// The partition, to be opened with [`Core::open`].
    pub core: Core,
    /// The time of the newest record.
    pub last_ms: u64,
    /// The last record of the checkpoint.
    pub checkpoint_lsn: u64,
    /// The time of its state; 0 when there is none.
    pub checkpoint_ms: u64,
    /// The last record of the log.
    pub durable_lsn: u64,
    /// Where it is.
    pub position: Position,
    /// Records replayed.
    pub replayed: u64,
}

/// Loads the checkpoint, begins a new epoch, replays the log behind the checkpoint.
pub fn recover(
    log: &dyn Log,
    checkpoint: &dyn Checkpoint,
    options: &Options,
    reading: Reading,
) -> Result<Recovered, OpenError> {
    let mut engine = Engine::new(PartitionId::FIRST, options.bounds);
    let mut payloads = PayloadStore::default();
    let mut finished = Finished::default();
    let mut parts = Parts::default();
    let loaded = (&mut engine, &mut payloads, &mut finished);
    let (checkpoint_lsn, near) = load(checkpoint, loaded, &mut parts)?;

    let status = log.status();
    if status.durable_lsn < checkpoint_lsn {
        let durable_lsn = status.durable_lsn;
        return Err(OpenError::Ahead { checkpoint_lsn, durable_lsn });
    }
    if status.first_lsn > checkpoint_lsn + 1 {
        return Err(OpenError::Gap { checkpoint_lsn, first_lsn: status.first_lsn });
    }
    let time_ms = engine.state().last_ms().max(status.time_ms).max(reading.wall_ms);
    let opened = log.open_epoch(&EpochRequest { epoch: status.epoch + 1, time_ms })?;

    let from = ReadFrom { lsn: checkpoint_lsn + 1, near };
    let replayed =
        replay(log, from, &opened, (&mut engine, &mut payloads, &mut finished), options)?;
    let last_ms = engine.state().last_ms().max(status.time_ms);
    let mut core = Core::new(
        engine,
        payloads,
        finished,
        (opened.tail, status.batch_bytes_max),
        options.clone(),
    );
    core.parts = parts;
    Ok(Recovered {
        core,
        last_ms,
        checkpoint_lsn,
        checkpoint_ms: checkpoint.stamp().map_or(0, |stamp| stamp.time_ms),
        durable_lsn: opened.lsn,
        position: opened.position,
        replayed,
    })
}

fn load(
    checkpoint: &dyn Checkpoint,
    (engine, payloads, finished): (&mut Engine, &mut PayloadStore, &mut Finished),
    parts: &mut Parts,
) -> Result<(u64, Option<Position>), OpenError> {
    let Some(stamp) = checkpoint.stamp() else { return Ok((0, None)) };
    if stamp.format > u32::from(windlass_engine::state::image::IMAGE_VERSION) {
        return Err(OpenError::NewerCheckpoint { format: stamp.format });
    }
    let view = checkpoint.snapshot()?;
    for tag in State::LOAD_ORDER {
        load_images(&*view, tag, |key, value| {
            let value = parts.whole(&*view, key, value)?;
            let loaded = engine.load(key, &value, &mut |key, len| payloads.keep_stored(key, len));
            loaded.map_err(|source| OpenError::Image { key: key.to_vec(), source })
        })?;
    }
    engine.finish_load();
    load_images(&*view, finished::TAG, |key, value| {
        finished.load(key, value, payloads).map_err(|source| OpenError::Image {
            key: key.to_vec(),
            source: LoadError::Malformed(source),
        })
    })?;
    let found = engine.checksum();
    if found != stamp.checksum {
        return Err(OpenError::Checksum { expected: stamp.checksum, found });
    }
    let near = (stamp.position != 0).then(|| Position::from_raw(stamp.position));
    Ok((stamp.lsn, near))
}

/// Gives all images with this tag to `take`, in order. A thread of its own reads and unpacks them
/// while they are taken in: both are work for a core.
fn load_images(
    view: &dyn View,
    tag: u8,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    std::thread::scope(|scope| {
        let (chunks_out, chunks) = bounded::<Chunk>(CHUNKS_AHEAD_MAX);
        let reader = scope.spawn(move || read_chunks(view, tag, &chunks_out));
        for chunk in &chunks {
            chunk.each(&mut take)?;
        }
        match reader.join() {
            Ok(read) => Ok(read?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Chunks that are read before they are taken in.
const CHUNKS_AHEAD_MAX: usize = 8;
/// Bytes of a chunk.
const CHUNK_BYTES: usize = 1 << 20;

/// Images, packed.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Chunk {
    fn each(
        &self,
        take: &mut impl FnMut(&[u8], &[u8]) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let mut rest = &*self.bytes;
        let mut at = 0;
        for &(key_end, value_end) in &self.ends {
            let (key, after) = rest.split_at(key_end - at);
            let (value, after) = after.split_at(value_end - key_end);
            take(key, value)?;
            rest = after;
            at = value_end;
        }
        Ok(())
    }
}

fn read_chunks(
    view: &dyn View,
    tag: u8,
    chunks: &Sender<Chunk>,
) -> windlass_checkpoint::Result<()> {
    let mut chunk = Chunk::default();
    view.scan_with(&KeyRange::prefix([tag]), &mut |key, value| {
        chunk.bytes.extend_from_slice(key);
        let key_end = chunk.bytes.len();
        chunk.bytes.extend_from_slice(value);
        chunk.ends.push((key_end, chunk.bytes.len()));
        if chunk.bytes.len() < CHUNK_BYTES {
            return ControlFlow::Continue(());
        }
        match chunks.send(std::mem::take(&mut chunk)) {
            Ok(()) => ControlFlow::Continue(()),
            // Whoever takes them in has failed.
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    // As above.
    let _ = chunks.send(chunk);
    Ok(())
}

fn replay(
    log: &dyn Log,
    from: ReadFrom,
    opened: &EpochOpened,
    (engine, payloads, finished): (&mut Engine, &mut PayloadStore, &mut Finished),
    options: &Options,
) -> Result<u64, OpenError> {
    let mut replayed = 0;
    if from.lsn > opened.lsn {
        return Ok(replayed);
    }
    let mut reader = log.read(&from)?;
    let mut freed = Vec::new();
    let mut served = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        let lsn = entry.lsn;
        if entry.kind == FrameKind::Data {
            let damaged = |source| OpenError::Record { lsn, source };
            let mut from = Decoder::new(entry.payload);
            let version = from.u8().map_err(damaged)?;
            if version != VERSION {
                return Err(damaged(DecodeError::UnknownVersion { version }));
            }
            let now_ms = entry.time_ms + from.u64().map_err(damaged)?;
            while !from.is_empty() {
                let event = decode_event(&mut from, payloads).map_err(damaged)?;
                engine.replay(now_ms, &event);
            }
            replayed += 1;
            engine.take_served(&mut served);
            served.clear();
            let effects = engine.effects();
            effects.alerts.clear();
            effects.cancels.clear();
            effects.lost.clear();
            freed.append(&mut effects.freed);
            let ended_jobs = std::mem::take(&mut effects.ended);
            // Who waited for these went with the process that ran before.
            engine.take_ended_instances();
            engine.take_ended_transitions();
            for ended in ended_jobs {
                finished.push(engine.state(), ended, options.finished_room(), &mut freed);
            }
            for payload in freed.drain(..) {
                payloads.free(payload);
            }
        }
        if lsn >= opened.lsn {
            break;
        }
    }
    Ok(replayed)
}
