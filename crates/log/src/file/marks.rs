//! The two mark blocks: what is durable, and which segments there must be.

use std::path::Path;

use crate::batch::BLOCK_BYTES;
use crate::error::{Damage, Fault, Proof};
use crate::frame::LifeId;
use crate::fs::{File, FileSystem};
use crate::little_endian::{put, u16_at, u64_at};
use crate::{LogError, dir};

use super::layout::{self, BLOCK, BlockFault};

const MAGIC: [u8; 4] = *b"WLMK";

/// One mark block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) life: LifeId,
    pub(crate) partition: u16,
    /// Counts marks; the block is the sequence modulo two.
    pub(crate) sequence: u64,
    pub(crate) durable_lsn: u64,
    /// Segments below this one are trimmed, whether or not their files are gone yet.
    pub(crate) first_segment: u64,
    /// This segment's file exists.
    pub(crate) active_segment: u64,
    pub(crate) first_lsn: u64,
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        put(&mut block, 10, &self.partition.to_le_bytes());
        put(&mut block, 16, &self.life.raw().to_le_bytes());
        put(&mut block, 24, &self.sequence.to_le_bytes());
        put(&mut block, 32, &self.durable_lsn.to_le_bytes());
        put(&mut block, 40, &self.first_segment.to_le_bytes());
        put(&mut block, 48, &self.active_segment.to_le_bytes());
        put(&mut block, 56, &self.first_lsn.to_le_bytes());
        layout::seal_block(&mut block, MAGIC);
        block
    }

    fn decode(block: &[u8]) -> Result<Self, BlockFault> {
        layout::check_block(block, MAGIC)?;
        let fields = || {
            Some(Self {
                partition: u16_at(block, 10)?,
                life: LifeId::from_raw(u64_at(block, 16)?),
                sequence: u64_at(block, 24)?,
                durable_lsn: u64_at(block, 32)?,
                first_segment: u64_at(block, 40)?,
                active_segment: u64_at(block, 48)?,
                first_lsn: u64_at(block, 56)?,
            })
        };
        fields().ok_or(BlockFault::Unreadable)
    }

    fn offset(&self) -> u64 {
        (self.sequence % 2) * BLOCK
    }
}

/// The open file of marks.
#[derive(Debug)]
pub(crate) struct Marks {
    file: Box<dyn File>,
    newest: Mark,
}

impl Marks {
    /// Writes the first two marks, or replaces unreadable ones; atomic.
    pub(crate) fn create(fs: &dyn FileSystem, dir: &Path, mark: &Mark) -> Result<(), LogError> {
        let first = Mark { sequence: 0, ..*mark };
        let second = Mark { sequence: 1, ..*mark };
        let bytes = [first.encode(), second.encode()].concat();
        dir::replace_file(fs, dir, layout::MARKS_NEW, layout::MARKS, &bytes)
    }

    /// Reads the newer of the two marks. One unreadable block is what a crash may leave behind; two are damage.
    pub(crate) fn open(fs: &dyn FileSystem, dir: &Path) -> Result<Self, LogError> {
        let path = dir.join(layout::MARKS);
        let file = fs.open(&path).map_err(|error| LogError::io("open", &path, error))?;
        let mut newest: Option<Mark> = None;
        for offset in [0, BLOCK] {
            let mut block = vec![0; BLOCK_BYTES];
            file.read_at(&mut block, offset).map_err(|error| LogError::io("read", &path, error))?;
            match Mark::decode(&block) {
                Ok(mark) if mark.offset() != offset => {}
                Ok(mark) if newest.is_some_and(|newest| newest.sequence > mark.sequence) => {}
                Ok(mark) => newest = Some(mark),
                Err(fault) => fault.check_version(&path)?,
            }
        }
        let newest = newest.ok_or(Damage {
            file: path,
            offset: 0,
            lsn: 0,
            fault: Fault::Marks,
            proof: Proof::SyncedBeforeUse,
        })?;
        Ok(Self { file, newest })
    }

    pub(crate) fn newest(&self) -> &Mark {
        &self.newest
    }

    /// Writes a mark over the older block and syncs it. After an error the state on disk is unknown.
    pub(crate) fn write(&mut self, mark: &Mark) -> std::io::Result<()> {
        let mark = Mark { sequence: self.newest.sequence + 1, ..*mark };
        self.file.write_at(&mark.encode(), mark.offset())?;
        self.file.sync_data()?;
        self.newest = mark;
        Ok(())
    }
}
