//! Reads a whole log that no process has open, and says what state it is in. Changes nothing.

use std::path::{Path, PathBuf};

use crate::dir;
use crate::error::{Damage, Fault, LogError};
use crate::fs::FileSystem;

use super::layout::{self, segment_path};
use super::marks::Marks;
use super::open;
use super::survey::{Depth, WalkedSegment, survey};

/// What `windlass log verify` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// The partition the log belongs to.
    pub partition: u16,
    /// The newest mark: everything up to here was durable.
    pub marked_durable_lsn: u64,
    /// Segments in order, up to the one with the damage.
    pub segments: Vec<SegmentReport>,
    /// Segments kept ready.
    pub reserve_segments: usize,
    /// How the log ends; nothing when it is damaged.
    pub tail: Option<TailReport>,
    /// The first damage to durable data. Such a log refuses to open.
    pub damage: Option<Damage>,
}

impl VerifyReport {
    /// The last lsn that can be read.
    #[must_use]
    pub fn last_lsn(&self) -> Option<u64> {
        self.segments.last().map(|segment| segment.last_lsn)
    }
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its file.
    pub file: PathBuf,
    /// Its first lsn.
    pub first_lsn: u64,
    /// Its last lsn that can be read; one less than the first when it is empty.
    pub last_lsn: u64,
    /// Whole batches.
    pub batches: u64,
    /// Good frames.
    pub frames: u64,
    /// Bytes up to the end of the last whole batch.
    pub used_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailReport {
    /// Behind a whole batch, with nothing of a later one.
    Clean,
    /// With a batch that was never finished and not acknowledged, as a crash leaves it. The next open drops the rest of
    /// it. (The doc of [`file`](crate::file) names the one case in which it was acknowledged.)
    Unfinished {
        /// The file.
        file: PathBuf,
        /// Where the good frames end.
        offset: u64,
        /// The first lsn that is not there.
        lsn: u64,
        /// What stands there.
        fault: Fault,
    },
}

/// Reads every frame of the log in `dir`.
pub fn verify(fs: &dyn FileSystem, dir: &Path) -> Result<VerifyReport, LogError> {
    let names = open::list(fs, dir)?;
    open::check_marks_exist(fs, dir, &names)?;
    let _lock = dir::lock(fs, &dir.join(layout::LOCK), dir)?;
    let marks = Marks::open(fs, dir)?;
    let mark = *marks.newest();
    let survey = survey(fs, dir, &names, &mark, Depth::WholeLog, &mut |_, _, _, _| {})?;
    let report = |walked: &WalkedSegment| SegmentReport {
        file: segment_path(dir, walked.header.number),
        first_lsn: walked.header.before.next_lsn,
        last_lsn: walked.walk.tail.last_lsn(),
        batches: walked.walk.batches,
        frames: walked.walk.frames,
        used_bytes: walked.walk.offset,
        file_bytes: walked.file_bytes,
    };
    let tail = survey.walked.last().filter(|_| survey.damage.is_none()).map(|last| {
        if !survey.stray_frames && last.walk.partial.is_none() {
            return TailReport::Clean;
        }
        TailReport::Unfinished {
            file: segment_path(dir, last.header.number),
            offset: last.walk.fault_offset,
            lsn: last.walk.tail.next_lsn,
            fault: last.walk.fault.clone(),
        }
    });
    Ok(VerifyReport {
        partition: mark.partition,
        marked_durable_lsn: mark.durable_lsn,
        segments: survey.walked.iter().map(report).collect(),
        reserve_segments: names.reserves.len(),
        tail,
        damage: survey.damage,
    })
}
