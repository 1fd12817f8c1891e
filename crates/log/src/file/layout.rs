//! Names of files, header blocks of segments, and positions. The spec is the [module](super)'s doc.

use std::path::{Path, PathBuf};

use crate::batch::{BLOCK_BYTES, FORMAT_VERSION, Tail};
use crate::frame::LifeId;
use crate::little_endian::{array_at, put, u16_at, u32_at, u64_at};
use crate::{LogError, Position};

/// Bytes of a block, as a file offset.
pub(crate) const BLOCK: u64 = 4096;

pub(crate) const MARKS: &str = "marks";
pub(crate) const MARKS_NEW: &str = "marks.new";
pub(crate) const LOCK: &str = "lock";
pub(crate) const PREPARING: &str = "preparing";

pub(crate) fn segment_name(number: u64) -> String {
    format!("segment-{number:010}.log")
}

pub(crate) fn reserve_name(number: u64) -> String {
    format!("reserve-{number:010}")
}

/// Where `repair` keeps a segment, or a piece of one, that it cut off at `lsn`.
pub(crate) fn cut_name(lsn: u64, segment: u64, attempt: u32) -> String {
    format!("cut-at-lsn-{lsn}-segment-{segment:010}-{attempt}")
}

/// The files of a log directory, sorted by what they are for.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    pub(crate) marks: bool,
    /// Numbers of segments, ascending.
    pub(crate) segments: Vec<u64>,
    /// Numbers of reserves, ascending.
    pub(crate) reserves: Vec<u64>,
}

impl FileNames {
    pub(crate) fn sort(names: &[String]) -> Self {
        let mut sorted = Self::default();
        for name in names {
            if name == MARKS {
                sorted.marks = true;
            } else if let Some(number) = number_in(name, "segment-", ".log") {
                sorted.segments.push(number);
            } else if let Some(number) = number_in(name, "reserve-", "") {
                sorted.reserves.push(number);
            }
        }
        sorted.segments.sort_unstable();
        sorted.reserves.sort_unstable();
        sorted
    }
}

fn number_in(name: &str, prefix: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let all_digits = digits.len() >= 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { digits.parse().ok() } else { None }
}

/// What a header or mark block could not be read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockFault {
    Unreadable,
    UnsupportedVersion(u16),
}

impl BlockFault {
    /// A newer version is an error of its own; everything else is for the caller to judge.
    pub(crate) fn check_version(self, file: &Path) -> Result<(), LogError> {
        match self {
            Self::Unreadable => Ok(()),
            Self::UnsupportedVersion(version) => {
                Err(LogError::UnsupportedVersion { file: file.to_owned(), version })
            }
        }
    }
}

/// Puts magic, version and checksum into a block whose fields are in place.
pub(crate) fn seal_block(block: &mut [u8], magic: [u8; 4]) {
    put(block, 4, &magic);
    put(block, 8, &FORMAT_VERSION.to_le_bytes());
    let crc = crc32c::crc32c(block.get(4..).expect("a block is larger than its checksum"));
    put(block, 0, &crc.to_le_bytes());
}

/// Checks magic, version and checksum.
pub(crate) fn check_block(block: &[u8], magic: [u8; 4]) -> Result<(), BlockFault> {
    let body = block.get(4..BLOCK_BYTES).ok_or(BlockFault::Unreadable)?;
    let whole = array_at(block, 4) == Some(magic) && u32_at(block, 0) == Some(crc32c::crc32c(body));
    match u16_at(block, 8).filter(|_| whole) {
        Some(FORMAT_VERSION) => Ok(()),
        Some(version) => Err(BlockFault::UnsupportedVersion(version)),
        None => Err(BlockFault::Unreadable),
    }
}

/// The first block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u64,
    pub(crate) segment_bytes: u64,
    /// What stands in front of the segment's first frame.
    pub(crate) before: Tail,
    /// Record time of the frame before.
    pub(crate) time_ms: u64,
}

const SEGMENT_MAGIC: [u8; 4] = *b"WLSG";

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        put(&mut block, 10, &self.before.partition.to_le_bytes());
        put(&mut block, 12, &self.before.epoch.to_le_bytes());
        put(&mut block, 16, &self.before.life.raw().to_le_bytes());
        put(&mut block, 24, &self.number.to_le_bytes());
        put(&mut block, 32, &self.before.next_lsn.to_le_bytes());
        put(&mut block, 40, &self.time_ms.to_le_bytes());
        put(&mut block, 48, &self.before.chain.to_le_bytes());
        put(&mut block, 56, &self.segment_bytes.to_le_bytes());
        seal_block(&mut block, SEGMENT_MAGIC);
        block
    }

    pub(crate) fn decode(block: &[u8]) -> Result<Self, BlockFault> {
        check_block(block, SEGMENT_MAGIC)?;
        Self::decode_fields(block).ok_or(BlockFault::Unreadable)
    }

    fn decode_fields(block: &[u8]) -> Option<Self> {
        Some(Self {
            number: u64_at(block, 24)?,
            segment_bytes: u64_at(block, 56)?,
            before: Tail {
                life: LifeId::from_raw(u64_at(block, 16)?),
                partition: u16_at(block, 10)?,
                epoch: u32_at(block, 12)?,
                next_lsn: u64_at(block, 32)?,
                chain: u32_at(block, 48)?,
            },
            time_ms: u64_at(block, 40)?,
        })
    }
}

/// A place in a segment. Positions pack the segment's number above 24 bits of block number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

const POSITION_BLOCK_BITS: u32 = 24;

/// No larger segment, so that a position fits.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

impl Place {
    pub(crate) fn position(self) -> Position {
        Position::from_raw((self.segment << POSITION_BLOCK_BITS) | (self.offset / BLOCK))
    }

    pub(crate) fn of(position: Position) -> Self {
        let raw = position.to_raw();
        let block = raw & ((1 << POSITION_BLOCK_BITS) - 1);
        Self { segment: raw >> POSITION_BLOCK_BITS, offset: block * BLOCK }
    }
}

pub(crate) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(segment_name(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::little_endian::to_u64;

    #[test]
    fn names_are_read_back_and_others_left_alone() {
        let names = [
            segment_name(7),
            segment_name(12_345_678_901),
            reserve_name(3),
            MARKS.to_owned(),
            "segment-1.log".to_owned(),
            "segment-00000000x7.log".to_owned(),
            cut_name(1, 2, 3),
        ];
        let sorted = FileNames::sort(&names);
        assert_eq!(sorted.segments, [7, 12_345_678_901]);
        assert_eq!(sorted.reserves, [3]);
        assert!(sorted.marks);
    }

    #[test]
    fn a_segment_header_reads_back_and_sees_every_flipped_bit() {
        let header = SegmentHeader {
            number: 9,
            segment_bytes: 65_536,
            before: Tail { epoch: 4, ..Tail::at_creation(LifeId::from_raw(1), 2, 3) },
            time_ms: 5,
        };
        let block = header.encode();
        assert_eq!(SegmentHeader::decode(&block), Ok(header));
        for bit in 0..block.len() * 8 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn positions_are_in_the_order_of_the_log() {
        let places = [(1, 4096), (1, 8192), (2, 4096), (300, SEGMENT_BYTES_MAX - 4096)];
        let mut last = Position::from_raw(0);
        for (segment, offset) in places {
            let place = Place { segment, offset };
            assert_eq!(Place::of(place.position()), place);
            assert!(place.position() > last);
            last = place.position();
        }
        assert_eq!(to_u64(BLOCK_BYTES), BLOCK);
    }
}
