//! Shows the frames of a log that no process has open, without decoding payloads.

use std::path::{Path, PathBuf};

use crate::dir;
use crate::error::{Damage, LogError};
use crate::frame::FrameKind;
use crate::fs::FileSystem;

use super::layout::{self, segment_path};
use super::marks::Marks;
use super::open;
use super::survey::{Depth, survey};

/// One frame and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedFrame {
    /// The segment's file.
    pub file: PathBuf,
    /// Where the frame's header begins in the file.
    pub offset: u64,
    /// The frame's number.
    pub lsn: u64,
    /// The first lsn of its batch.
    pub batch_first_lsn: u64,
    /// What its batch says was durable when it was written.
    pub batch_durable_lsn: u64,
    /// The record time of its batch.
    pub time_ms: u64,
    /// The writer's epoch.
    pub epoch: u32,
    /// The writer's partition.
    pub partition: u16,
    /// Data or epoch.
    pub kind: FrameKind,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// The frame's checksum.
    pub crc: u32,
}

/// Calls `visit` for every frame of the log in order, up to its end or the first damage, which is returned.
pub fn inspect(
    fs: &dyn FileSystem,
    dir: &Path,
    visit: &mut dyn FnMut(&InspectedFrame),
) -> Result<Option<Damage>, LogError> {
    let names = open::list(fs, dir)?;
    open::check_marks_exist(fs, dir, &names)?;
    let _lock = dir::lock(fs, &dir.join(layout::LOCK), dir)?;
    let marks = Marks::open(fs, dir)?;
    let mut show = |segment: u64,
                    offset: u64,
                    batch: &crate::batch::BatchHeader,
                    frame: &crate::frame::FrameHeader| {
        visit(&InspectedFrame {
            file: segment_path(dir, segment),
            offset,
            lsn: frame.lsn,
            batch_first_lsn: batch.first_lsn,
            batch_durable_lsn: batch.durable_lsn,
            time_ms: batch.time_ms,
            epoch: frame.epoch,
            partition: frame.partition,
            kind: frame.kind,
            payload_bytes: frame.length,
            crc: frame.crc,
        });
    };
    Ok(survey(fs, dir, &names, marks.newest(), Depth::WholeLog, &mut show)?.damage)
}
