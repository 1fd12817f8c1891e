//! Cuts a damaged log behind its last good frame. **Loses durable data**, so nothing but a person who says so calls it.
//!
//! What is cut is kept: the rest of the segment is copied to a side file, later segments are renamed to side files. The
//! order of steps makes an interrupted repair a log that is still damaged, never one that looks whole with a hole in it.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::batch::Tail;
use crate::dir;
use crate::error::{Damage, Fault, LogError};
use crate::fs::FileSystem;
use crate::little_endian::to_usize;

use super::layout::{self, BLOCK, BlockFault, FileNames, SegmentHeader, segment_path};
use super::marks::{Mark, Marks};
use super::open;
use super::survey::{Depth, Survey, survey};

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairReport {
    /// What was wrong; nothing when there was nothing to repair.
    pub damage: Option<Damage>,
    /// The last lsn that the log holds now.
    pub last_lsn: u64,
    /// Lsns that are known to have been written and are gone. There may have been more.
    pub lost_lsns: Option<RangeInclusive<u64>>,
    /// Where the cut bytes are.
    pub side_files: Vec<PathBuf>,
    /// Both mark blocks were unreadable and were written anew from the segments.
    pub marks_rebuilt: bool,
}

/// Repairs the log in `dir`, which no process may have open. A log without damage is left as it is.
pub fn repair(fs: &dyn FileSystem, dir: &Path) -> Result<RepairReport, LogError> {
    let names = open::list(fs, dir)?;
    if !names.marks && names.segments.is_empty() {
        return Err(LogError::NotFound { dir: dir.to_owned() });
    }
    let _lock = dir::lock(fs, &dir.join(layout::LOCK), dir)?;
    let marks_rebuilt = rebuild_marks_if_unreadable(fs, dir, &names)?;
    let mut marks = Marks::open(fs, dir)?;
    let mark = *marks.newest();
    let survey = survey(fs, dir, &names, &mark, Depth::WholeLog, &mut |_, _, _, _| {})?;
    let Some(damage) = survey.damage.clone() else {
        let last_lsn = survey.walked.last().map_or(0, |last| last.walk.tail.last_lsn());
        let (lost_lsns, side_files) = (None, Vec::new());
        return Ok(RepairReport { damage: None, last_lsn, lost_lsns, side_files, marks_rebuilt });
    };
    // Without a single readable segment there is nothing to cut behind: this is a case for a backup.
    let Some(last) = survey.walked.last() else { return Err(damage.into()) };
    let (tail, active) = (last.walk.tail, last.header.number);
    let highest_lsn = highest_lsn(&survey, &tail);
    let lost = tail.next_lsn..=highest_lsn;
    let lost_lsns = (!lost.is_empty()).then_some(lost);

    let mut side_files = vec![copy_cut_bytes(fs, dir, &survey, &tail)?];
    for later in names.segments.iter().rev().filter(|number| **number > active) {
        let name = free_side_name(fs, dir, &tail, *later)?;
        dir::rename(fs, dir, &layout::segment_name(*later), &name)?;
        dir::sync(fs, dir)?;
        side_files.push(dir.join(name));
    }
    let first = survey.walked.first().expect("there is a last one").header;
    let cut = Mark {
        durable_lsn: tail.last_lsn(),
        active_segment: active,
        first_segment: first.number,
        first_lsn: first.before.next_lsn,
        ..mark
    };
    // Once for each block: no older mark may speak of what is gone.
    for _ in 0..2 {
        marks.write(&cut).map_err(|error| LogError::io("write", dir.join(layout::MARKS), error))?;
    }
    let names = open::list(fs, dir)?;
    let survey = Survey { stray_frames: true, ..survey };
    open::settle(fs, dir, &names, &mut marks, &survey)?;
    let damage = Some(damage);
    Ok(RepairReport { damage, last_lsn: tail.last_lsn(), lost_lsns, side_files, marks_rebuilt })
}

fn highest_lsn(survey: &Survey, tail: &Tail) -> u64 {
    let begun = survey.headers.iter().map(|header| header.before.last_lsn()).max();
    survey.highest_lsn_seen.max(begun.unwrap_or(0)).max(tail.last_lsn())
}

/// Copies everything behind the last good frame of the damaged segment to a side file.
fn copy_cut_bytes(
    fs: &dyn FileSystem,
    dir: &Path,
    survey: &Survey,
    tail: &Tail,
) -> Result<PathBuf, LogError> {
    let last = survey.walked.last().expect("the caller has checked");
    let path = segment_path(dir, last.header.number);
    let file = super::survey::open(fs, &path)?;
    let from = last.walk.fault_offset;
    let mut bytes = vec![0; to_usize(last.file_bytes.saturating_sub(from))];
    let count =
        file.read_at(&mut bytes, from).map_err(|error| LogError::io("read", &path, error))?;
    bytes.truncate(count);
    let name = free_side_name(fs, dir, tail, last.header.number)?;
    dir::replace_file(fs, dir, &format!("{name}.unfinished"), &name, &bytes)?;
    Ok(dir.join(name))
}

/// A repair that was interrupted may have left side files: they are never overwritten.
fn free_side_name(
    fs: &dyn FileSystem,
    dir: &Path,
    tail: &Tail,
    segment: u64,
) -> Result<String, LogError> {
    let taken = fs.list(dir).map_err(|error| LogError::io("list", dir, error))?;
    let mut names = (1..).map(|attempt| layout::cut_name(tail.next_lsn, segment, attempt));
    Ok(names.find(|name| !taken.contains(name)).expect("the directory is finite"))
}

/// When no mark can be read, what they say about the segments is taken from the segments. What they say about durability
/// is lost.
fn rebuild_marks_if_unreadable(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
) -> Result<bool, LogError> {
    let readable = if names.marks { Marks::open(fs, dir).map(drop) } else { Ok(()) };
    match readable {
        Ok(()) if names.marks => return Ok(false),
        Ok(()) => {}
        Err(LogError::Damaged(damage)) if damage.fault == Fault::Marks => {}
        Err(error) => return Err(error),
    }
    let mut headers = Vec::new();
    for number in &names.segments {
        let path = segment_path(dir, *number);
        let mut block = vec![0; to_usize(BLOCK)];
        super::survey::open(fs, &path)?
            .read_at(&mut block, 0)
            .map_err(|error| LogError::io("read", &path, error))?;
        match SegmentHeader::decode(&block) {
            Ok(header) if header.number == *number => headers.push(header),
            Ok(_) | Err(BlockFault::Unreadable) => {}
            Err(fault) => fault.check_version(&path)?,
        }
    }
    let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
        return Err(LogError::NotFound { dir: dir.to_owned() });
    };
    let mark = Mark {
        life: first.before.life,
        partition: first.before.partition,
        sequence: 0,
        durable_lsn: last.before.last_lsn(),
        first_segment: first.number,
        active_segment: last.number,
        first_lsn: first.before.next_lsn,
    };
    Marks::create(fs, dir, &mark)?;
    Ok(true)
}
