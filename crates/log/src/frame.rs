//! A frame: one lsn, one payload, one checksum. Format version 1.
//!
//! ```text
//! offset  size  field
//!      0     4  crc        crc32c of bytes 4.. to the end of the payload, seeded by the log's life id
//!      4     4  length     bytes of payload behind this header
//!      8     8  lsn        dense, one per frame, assigned before the append
//!     16     4  epoch      the leader epoch of the writer
//!     20     4  chain      crc of the frame before this one
//!     24     4  index      place of the frame in its batch, so `lsn - index` is the batch's first lsn
//!     28     2  partition
//!     30     1  kind       1 data, 2 epoch
//!     31     1  zero
//!     32     …  payload
//! ```
//!
//! All integers are little-endian. Why each field that looks redundant is there:
//!
//! * **crc is seeded** by the log's life id, a random number that never leaves the machine. Payloads come from users;
//!   without the seed a payload could contain bytes that look like a frame of the future and make recovery believe
//!   that durable data was lost.
//! * **chain** ties a frame to its predecessor: a frame at the right lsn from a history that was cut off is refused.
//! * **index** lets a single surviving frame name the batch it came from. A batch is only written after the one before
//!   it was synced, so a frame of a later batch proves that everything before that batch was durable, even when the
//!   batch's own header is gone.
//!
//! Version rule: the version stands in the batch header, and a batch holds frames of one version. This layout is read
//! for ever; a change is a new version beside it, with a fixture in `tests/fixtures`.

use crate::little_endian::{put, to_u64, u16_at, u32_at, u64_at};

/// Bytes in front of each payload.
pub const FRAME_HEADER_BYTES: usize = 32;

/// Bytes of the largest payload that the format allows. Callers have far lower limits of their own.
pub const PAYLOAD_BYTES_MAX: usize = 48 * 1024 * 1024;

/// Names one log from its creation on; random, so that bytes of another log, or bytes made up by a user, are never
/// taken for ours. Never shown outside the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LifeId(u64);

impl LifeId {
    /// A life id given by a test or a simulation that must repeat.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// A fresh one from the randomness that the operating system gives to hash maps.
    #[must_use]
    pub fn random() -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self(RandomState::new().hash_one("windlass log life"))
    }

    /// The number itself, for writing it down.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// What every frame checksum of this log starts from, and the chain value of its very first frame.
    #[must_use]
    pub fn seed(self) -> u32 {
        crc32c::crc32c(&self.0.to_le_bytes())
    }
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The payload is the partition's.
    Data,
    /// The payload is an [`EpochRecord`]: a new writer announces itself.
    Epoch,
}

impl FrameKind {
    const fn code(self) -> u8 {
        match self {
            Self::Data => 1,
            Self::Epoch => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Data),
            2 => Some(Self::Epoch),
            _ => None,
        }
    }
}

/// Everything in front of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Checksum of the rest of the frame.
    pub crc: u32,
    /// Bytes of payload.
    pub length: u32,
    /// The frame's number.
    pub lsn: u64,
    /// The writer's leader epoch.
    pub epoch: u32,
    /// Checksum of the frame before.
    pub chain: u32,
    /// Place in its batch.
    pub index: u32,
    /// The partition that wrote it.
    pub partition: u16,
    /// What the payload is.
    pub kind: FrameKind,
}

impl FrameHeader {
    /// The first lsn of the batch that this frame was written in.
    #[must_use]
    pub fn batch_first_lsn(&self) -> u64 {
        self.lsn.saturating_sub(u64::from(self.index))
    }
}

/// A frame whose checksum holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The decoded header.
    pub header: FrameHeader,
    /// The payload.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Header and payload together.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.payload.len()
    }
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The bytes end before the frame does.
    #[error("the frame reaches past the end of its batch")]
    Truncated,
    /// Header or payload changed since they were written, or were never wholly written.
    #[error("the frame's checksum does not match")]
    ChecksumMismatch,
    /// The checksum holds, but the fields make no sense to this version.
    #[error("the frame's kind is unknown")]
    UnknownKind,
}

/// Decodes the frame at the start of `bytes` and checks its checksum. Never panics, whatever the bytes are.
pub fn decode_frame(bytes: &[u8], life: LifeId) -> Result<Frame<'_>, FrameFault> {
    let length = u32_at(bytes, 4).ok_or(FrameFault::Truncated)?;
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(FRAME_HEADER_BYTES))
        .ok_or(FrameFault::Truncated)?;
    let checked = bytes.get(4..end).ok_or(FrameFault::Truncated)?;
    let crc = u32_at(bytes, 0).ok_or(FrameFault::Truncated)?;
    if crc32c::crc32c_append(life.seed(), checked) != crc {
        return Err(FrameFault::ChecksumMismatch);
    }
    let payload = bytes.get(FRAME_HEADER_BYTES..end).ok_or(FrameFault::Truncated)?;
    let header = decode_header(bytes, crc, length).ok_or(FrameFault::UnknownKind)?;
    Ok(Frame { header, payload })
}

fn decode_header(bytes: &[u8], crc: u32, length: u32) -> Option<FrameHeader> {
    if bytes.get(31).copied()? != 0 {
        return None;
    }
    Some(FrameHeader {
        crc,
        length,
        lsn: u64_at(bytes, 8)?,
        epoch: u32_at(bytes, 16)?,
        chain: u32_at(bytes, 20)?,
        index: u32_at(bytes, 24)?,
        partition: u16_at(bytes, 28)?,
        kind: FrameKind::from_code(bytes.get(30).copied()?)?,
    })
}

/// What a writer knows when it closes a frame; length and checksum are worked out from the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameFields {
    pub(crate) lsn: u64,
    pub(crate) epoch: u32,
    pub(crate) chain: u32,
    pub(crate) index: u32,
    pub(crate) partition: u16,
    pub(crate) kind: FrameKind,
}

/// Fills in the header of a frame whose payload is already in place. `frame` is header and payload; returns the
/// checksum, which is the next frame's chain.
pub(crate) fn seal_frame(frame: &mut [u8], seed: u32, fields: FrameFields) -> u32 {
    let payload_bytes = frame.len() - FRAME_HEADER_BYTES;
    assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a payload of {payload_bytes} bytes is a bug");
    let length = u32::try_from(payload_bytes).expect("PAYLOAD_BYTES_MAX fits u32");

    let mut header = [0; FRAME_HEADER_BYTES];
    put(&mut header, 4, &length.to_le_bytes());
    put(&mut header, 8, &fields.lsn.to_le_bytes());
    put(&mut header, 16, &fields.epoch.to_le_bytes());
    put(&mut header, 20, &fields.chain.to_le_bytes());
    put(&mut header, 24, &fields.index.to_le_bytes());
    put(&mut header, 28, &fields.partition.to_le_bytes());
    put(&mut header, 30, &[fields.kind.code()]);
    put(frame, 0, &header);

    let crc = crc32c::crc32c_append(seed, frame.get(4..).expect("a frame has a header"));
    put(frame, 0, &crc.to_le_bytes());
    crc
}

/// The payload of an epoch frame: who wrote before, and where that writer's frames end.
///
/// ```text
///      0     1  version               1
///      1     4  predecessor epoch     0 when there was none
///      5     8  predecessor last lsn  the last lsn that counts of all earlier epochs
///     13     8  predecessor time ms   record time of that lsn, 0 when there was none
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochRecord {
    /// The epoch before this one; 0 when this is the first.
    pub predecessor_epoch: u32,
    /// Frames of earlier epochs count up to and including this lsn.
    pub predecessor_last_lsn: u64,
    /// Record time of the last batch before this epoch, in ms.
    pub predecessor_time_ms: u64,
}

impl EpochRecord {
    const VERSION: u8 = 1;
    const BYTES: usize = 21;

    /// Appends the record to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.push(Self::VERSION);
        buffer.extend_from_slice(&self.predecessor_epoch.to_le_bytes());
        buffer.extend_from_slice(&self.predecessor_last_lsn.to_le_bytes());
        buffer.extend_from_slice(&self.predecessor_time_ms.to_le_bytes());
    }

    /// The record, unless the bytes are something else. Later versions may append fields.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < Self::BYTES || bytes.first().copied()? == 0 {
            return None;
        }
        Some(Self {
            predecessor_epoch: u32_at(bytes, 1)?,
            predecessor_last_lsn: u64_at(bytes, 5)?,
            predecessor_time_ms: u64_at(bytes, 13)?,
        })
    }
}

/// Whether `bytes` could begin a frame with an lsn in `lsns`, judged by fields alone. Recovery asks this at every byte
/// of a tail before it pays for a checksum.
pub(crate) fn looks_like_frame(bytes: &[u8], lsns: std::ops::RangeInclusive<u64>) -> bool {
    u64_at(bytes, 8).is_some_and(|lsn| lsns.contains(&lsn))
        && u32_at(bytes, 4).is_some_and(|length| {
            u64::from(length) <= to_u64(bytes.len().saturating_sub(FRAME_HEADER_BYTES))
        })
        && bytes.get(30).is_some_and(|code| FrameKind::from_code(*code).is_some())
        && bytes.get(31) == Some(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: LifeId = LifeId::from_raw(7);

    fn frame_bytes(payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; FRAME_HEADER_BYTES];
        bytes.extend_from_slice(payload);
        let fields = FrameFields {
            lsn: 42,
            epoch: 3,
            chain: 9,
            index: 2,
            partition: 1,
            kind: FrameKind::Data,
        };
        seal_frame(&mut bytes, LIFE.seed(), fields);
        bytes
    }

    #[test]
    fn a_frame_reads_back() {
        let bytes = frame_bytes(b"payload");
        let frame = decode_frame(&bytes, LIFE).unwrap();
        assert_eq!(frame.payload, b"payload");
        assert_eq!(frame.header.lsn, 42);
        assert_eq!(frame.header.batch_first_lsn(), 40);
        assert_eq!(frame.len_bytes(), bytes.len());
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = frame_bytes(b"payload");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_frame(&damaged, LIFE).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_of_another_life_is_refused() {
        let bytes = frame_bytes(b"payload");
        let other = LifeId::from_raw(8);
        assert_eq!(decode_frame(&bytes, other), Err(FrameFault::ChecksumMismatch));
    }

    #[test]
    fn an_epoch_record_reads_back() {
        let record =
            EpochRecord { predecessor_epoch: 1, predecessor_last_lsn: 2, predecessor_time_ms: 3 };
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(EpochRecord::decode(&bytes), Some(record));
        assert_eq!(EpochRecord::decode(&bytes[1..]), None);
    }
}
