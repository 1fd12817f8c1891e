//! Creates a log, and brings one that was surveyed into the state in which appends may go on.

use std::path::{Path, PathBuf};

use crate::batch::{BATCH_HEADER_BYTES, BatchHeader, HeaderFault, Tail};
use crate::dir;
use crate::error::{Damage, Fault, Proof};
use crate::fs::{File, FileSystem};
use crate::little_endian::{to_u64, to_usize};
use crate::{FileLogOptions, LifeId, LogError};

use super::layout::{self, BLOCK, FileNames, SEGMENT_BYTES_MAX, SegmentHeader, segment_path};
use super::marks::{Mark, Marks};
use super::survey::{Survey, load_batch};

/// What a new log is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLog {
    /// Names the log for ever; [`LifeId::random`] but in simulations.
    pub life: LifeId,
    /// The partition it belongs to.
    pub partition: u16,
    /// The lsn of its first frame: 1, or one more than the lsn of the checkpoint that is restored.
    pub first_lsn: u64,
}

pub(crate) fn list(fs: &dyn FileSystem, dir: &Path) -> Result<FileNames, LogError> {
    match fs.list(dir) {
        Ok(names) => Ok(FileNames::sort(&names)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(FileNames::default()),
        Err(error) => Err(LogError::io("list", dir, error)),
    }
}

/// Without marks there is no log, unless the marks were lost.
pub(crate) fn check_marks_exist(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
) -> Result<(), LogError> {
    if names.marks {
        return Ok(());
    }
    if is_unfinished_creation(fs, dir, names)? {
        return Err(LogError::NotFound { dir: dir.to_owned() });
    }
    let file = dir.join(layout::MARKS);
    Err(Damage { file, offset: 0, lsn: 0, fault: Fault::Marks, proof: Proof::SyncedBeforeUse }
        .into())
}

/// A creation that was interrupted leaves at most one segment, and no batch in it.
fn is_unfinished_creation(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
) -> Result<bool, LogError> {
    match names.segments.as_slice() {
        [] => Ok(true),
        [only] => {
            let path = segment_path(dir, *only);
            let file = super::survey::open(fs, &path)?;
            let mut blocks = vec![0; 2 * to_usize(BLOCK)];
            file.read_at(&mut blocks, 0).map_err(|error| LogError::io("read", &path, error))?;
            let (_, batch) = blocks.split_at(to_usize(BLOCK));
            let Ok(header) = SegmentHeader::decode(&blocks) else {
                return Ok(batch.iter().all(|byte| *byte == 0));
            };
            Ok(BatchHeader::decode(batch, header.before.life) == Err(HeaderFault::Absent))
        }
        _ => Ok(false),
    }
}

/// Writes the first segment and then, atomically, the marks that make it a log.
pub(crate) fn create(
    fs: &dyn FileSystem,
    dir: &Path,
    new: &NewLog,
    segment_bytes: u64,
) -> Result<(), LogError> {
    let names = list(fs, dir)?;
    if names.marks || !is_unfinished_creation(fs, dir, &names)? {
        return Err(LogError::AlreadyExists { dir: dir.to_owned() });
    }
    for number in &names.segments {
        dir::remove_if_exists(fs, &segment_path(dir, *number))?;
    }
    let header = SegmentHeader {
        number: 1,
        segment_bytes,
        before: Tail::at_creation(new.life, new.partition, new.first_lsn),
        time_ms: 0,
    };
    let path = dir.join(layout::PREPARING);
    let prepare_error = |error| LogError::io("prepare", &path, error);
    let file = dir::create_anew(fs, dir, layout::PREPARING)?;
    fill_with_zeros(file.as_ref(), 0, segment_bytes, || {}).map_err(prepare_error)?;
    file.write_at(&header.encode(), 0).map_err(prepare_error)?;
    file.sync_data().map_err(prepare_error)?;
    dir::rename(fs, dir, layout::PREPARING, &layout::segment_name(header.number))?;
    dir::sync(fs, dir)?;
    let mark = Mark {
        life: new.life,
        partition: new.partition,
        sequence: 0,
        durable_lsn: header.before.last_lsn(),
        first_segment: header.number,
        active_segment: header.number,
        first_lsn: new.first_lsn,
    };
    Marks::create(fs, dir, &mark)
}

pub(crate) fn check_segment_bytes(segment_bytes: u64) -> Result<(), LogError> {
    let in_range = (2 * BLOCK..=SEGMENT_BYTES_MAX).contains(&segment_bytes);
    if !in_range || !segment_bytes.is_multiple_of(BLOCK) {
        return Err(LogError::InvalidOption(
            "a segment is a multiple of 4096 bytes, from 8 KiB to 4 GiB",
        ));
    }
    Ok(())
}

/// Written at once: the most of it that a sync of the log waits for.
const ZEROS_BYTES: usize = 256 * 1024;

/// Synced every so often, so that the kernel never has more than this to write when the log wants to sync.
const UNSYNCED_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Calls `between` behind every piece.
pub(crate) fn fill_with_zeros(
    file: &dyn File,
    from: u64,
    to: u64,
    between: impl Fn(),
) -> std::io::Result<()> {
    let (mut at, mut synced_at) = (from, from);
    while at < to {
        let bytes = ZEROS_BYTES.min(to_usize(to - at));
        file.write_zeros(bytes, at)?;
        at += to_u64(bytes);
        if at - synced_at >= UNSYNCED_BYTES_MAX {
            file.sync_data()?;
            synced_at = at;
        }
        between();
    }
    Ok(())
}

/// The segment that appends go to.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) file: Box<dyn File>,
    pub(crate) number: u64,
    pub(crate) segment_bytes: u64,
    /// Where the next batch goes.
    pub(crate) offset: u64,
    pub(crate) tail: Tail,
    pub(crate) time_ms: u64,
}

/// Makes the end that the survey found the true end: everything in front of it durable, nothing behind it readable.
/// `survey` has at least one segment; whether it is damaged is the caller's decision. Interrupted anywhere, it can be
/// done again.
pub(crate) fn settle(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
    marks: &mut Marks,
    survey: &Survey,
) -> Result<Active, LogError> {
    let last = survey.walked.last().expect("a log without a readable segment is damaged");
    let number = last.header.number;
    let path = segment_path(dir, number);
    let write_error = |error| LogError::io("settle the end of", &path, error);
    let file = super::survey::open(fs, &path)?;
    let proven_lsn = marks.newest().durable_lsn;
    let active = settle_file(file, last, proven_lsn, survey.stray_frames).map_err(write_error)?;

    let mark =
        Mark { durable_lsn: active.tail.last_lsn(), active_segment: number, ..*marks.newest() };
    marks.write(&mark).map_err(|error| LogError::io("write", dir.join(layout::MARKS), error))?;

    let stale = |segment: &&u64| **segment > number || **segment < mark.first_segment;
    for segment in names.segments.iter().filter(stale) {
        dir::remove_if_exists(fs, &segment_path(dir, *segment))?;
    }
    dir::remove_if_exists(fs, &dir.join(layout::PREPARING))?;
    dir::remove_if_exists(fs, &dir.join(layout::MARKS_NEW))?;
    dir::sync(fs, dir)?;
    Ok(active)
}

fn settle_file(
    file: Box<dyn File>,
    last: &super::survey::WalkedSegment,
    proven_lsn: u64,
    stray_frames: bool,
) -> std::io::Result<Active> {
    let (header, walk) = (&last.header, &last.walk);
    let mut offset = walk.offset;
    let is_proven = proven_lsn >= walk.tail.last_lsn();
    let kept = walk.partial.filter(|partial| partial.frames > 0);
    let mut bytes = Vec::new();
    if let Some(kept) = kept {
        load_batch(file.as_ref(), header.before.life, offset, header.segment_bytes, &mut bytes)?;
        cut_batch(&mut bytes, &kept.header, kept.frames, kept.content_bytes);
        file.write_at(&bytes, offset)?;
        offset += to_u64(bytes.len());
    } else if let Some((at, _)) = walk.last_batch.filter(|_| !is_proven) {
        load_batch(file.as_ref(), header.before.life, at, header.segment_bytes, &mut bytes)?;
        file.write_at(&bytes, at)?;
    }
    // The header is written together with the first batch, so it is as unproven as that one.
    let written_at = if kept.is_some() { Some(walk.offset) } else { walk.last_batch.map(|b| b.0) };
    if written_at.is_none() || (written_at == Some(BLOCK) && !is_proven) {
        file.write_at(&header.encode(), 0)?;
    }
    if stray_frames || walk.partial.is_some() || last.file_bytes < header.segment_bytes {
        fill_with_zeros(file.as_ref(), offset, header.segment_bytes, || {})?;
    }
    file.sync_data()?;
    Ok(Active {
        file,
        number: header.number,
        segment_bytes: header.segment_bytes,
        offset,
        tail: walk.tail,
        time_ms: walk.time_ms,
    })
}

/// Makes a batch of its first `frames` frames, which end at `content_bytes`.
fn cut_batch(bytes: &mut Vec<u8>, header: &BatchHeader, frames: u32, content_bytes: usize) {
    bytes.truncate(content_bytes);
    bytes.resize(content_bytes.next_multiple_of(to_usize(BLOCK)), 0);
    let frame_bytes = u32::try_from(content_bytes - BATCH_HEADER_BYTES);
    let frame_bytes = frame_bytes.expect("less than the batch had, which is a u32");
    BatchHeader { count: frames, frame_bytes, ..*header }.encode_into(bytes);
}

/// Reserves whose size is right, as many as may be kept; the others are removed.
pub(crate) fn keep_reserves(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
    options: &FileLogOptions,
) -> Result<Vec<u64>, LogError> {
    let kept_max = options.recycled_segments_max.max(options.reserve_segments);
    let mut kept = Vec::new();
    for number in &names.reserves {
        let path: PathBuf = dir.join(layout::reserve_name(*number));
        let file = super::survey::open(fs, &path)?;
        let file_bytes = file.len_bytes().map_err(|error| LogError::io("read", &path, error))?;
        if file_bytes == options.segment_bytes && kept.len() < kept_max {
            kept.push(*number);
        } else {
            dir::remove_if_exists(fs, &path)?;
        }
    }
    Ok(kept)
}
