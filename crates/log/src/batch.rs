//! A batch: what one append writes and one sync makes durable. Format version 1.
//!
//! ```text
//! offset  size  field
//!      0     4  crc          crc32c of bytes 4..64, seeded by the log's life id
//!      4     4  magic        "WLBA"
//!      8     2  version      1
//!     10     2  zero
//!     12     4  count        frames in the batch
//!     16     8  life id
//!     24     8  first lsn
//!     32     8  durable lsn  the last lsn known to be durable when this batch was written
//!     40     8  time ms      record time of every frame in the batch
//!     48     4  bytes        bytes of frames behind this header, without the padding
//!     52     4  chain        crc of the frame before the first one
//!     56     4  epoch        leader epoch of the writer
//!     60     2  partition
//!     62     2  zero
//!     64     …  frames, then zeros up to a multiple of 4096
//! ```
//!
//! A batch begins and ends on a 4096-byte block. So a write never touches a block that holds durable data, whatever the
//! disk does to a block it was writing when the power failed; the kernel never has to read a block before it can write
//! it; and recovery finds headers by looking at blocks.
//!
//! Version rule: magic, version, life id and crc keep their places, and the crc its range, in every version, so that an
//! old program tells "newer than me" from "damaged" and never cuts off what it cannot read.
//!
//! # Building one
//!
//! The partition loop encodes events straight into the batch; nothing is copied between `emit` and the write.
//!
//! ```
//! use windlass_log::{BatchBuilder, LifeId, Tail};
//!
//! let tail = Tail::at_creation(LifeId::from_raw(1), 0, 1);
//! let mut builder = BatchBuilder::new();
//! builder.start(&tail, 1_700_000_000_000);
//! builder.frame(|buffer| buffer.extend_from_slice(b"an event"));
//! let refused = builder.try_frame(|buffer| {
//!     buffer.extend_from_slice(b"half an event");
//!     Err::<(), _>("changed my mind")
//! });
//! assert_eq!(refused, Err("changed my mind"));
//! let batch = builder.finish();
//! assert_eq!((batch.first_lsn(), batch.count()), (1, 1));
//!
//! // The next batch can be filled while this one is being made durable.
//! let mut next = BatchBuilder::new();
//! next.start(&batch.tail_after(), 1_700_000_000_001);
//! // … and once it is durable, its memory is used again.
//! let builder = BatchBuilder::recycle(batch);
//! # let _ = builder;
//! ```

use crate::frame::{FRAME_HEADER_BYTES, Frame, FrameFields, FrameKind, LifeId};
use crate::frame::{FrameFault, decode_frame, seal_frame};
use crate::little_endian::{array_at, put, to_u64, u16_at, u32_at, u64_at};

/// Bytes in front of the first frame.
pub const BATCH_HEADER_BYTES: usize = 64;

/// Batches begin and end on multiples of this.
pub const BLOCK_BYTES: usize = 4096;

/// The only version so far.
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"WLBA";

/// Where the next frame goes and what it must continue: everything a writer needs in order to start a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The log's life.
    pub life: LifeId,
    /// The partition the log belongs to.
    pub partition: u16,
    /// The epoch of the writer; 0 before the first one.
    pub epoch: u32,
    /// The lsn of the next frame.
    pub next_lsn: u64,
    /// The checksum of the last frame.
    pub chain: u32,
}

impl Tail {
    /// The tail of a log that holds nothing yet.
    #[must_use]
    pub fn at_creation(life: LifeId, partition: u16, first_lsn: u64) -> Self {
        Self { life, partition, epoch: 0, next_lsn: first_lsn, chain: life.seed() }
    }

    /// The last lsn in front of the tail.
    #[must_use]
    pub fn last_lsn(&self) -> u64 {
        self.next_lsn.saturating_sub(1)
    }
}

/// The decoded header of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The log's life.
    pub life: LifeId,
    /// Frames in the batch.
    pub count: u32,
    /// Lsn of the first frame.
    pub first_lsn: u64,
    /// What was known to be durable when the batch was written.
    pub durable_lsn: u64,
    /// Record time of the batch.
    pub time_ms: u64,
    /// Bytes of frames.
    pub frame_bytes: u32,
    /// Checksum of the frame before the first.
    pub chain: u32,
    /// The writer's epoch.
    pub epoch: u32,
    /// The writer's partition.
    pub partition: u16,
}

/// Why bytes are not a batch header of this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// Fewer bytes than a header has.
    #[error("the file ends inside a batch header")]
    Truncated,
    /// Zeros, or something else that never was a header.
    #[error("there is no batch header")]
    Absent,
    /// It was a header of this log once, or was never wholly written.
    #[error("the batch header's checksum does not match")]
    ChecksumMismatch,
    /// Written by a newer Windlass.
    #[error("the batch is written in format version {0}, which this version cannot read")]
    UnsupportedVersion(u16),
    /// The checksum holds but the fields contradict each other.
    #[error("the batch header contradicts itself")]
    Nonsense,
}

impl BatchHeader {
    /// Decodes a header at the start of `bytes`. Never panics.
    pub fn decode(bytes: &[u8], life: LifeId) -> Result<Self, HeaderFault> {
        let header: [u8; BATCH_HEADER_BYTES] = array_at(bytes, 0).ok_or(HeaderFault::Truncated)?;
        let absent = HeaderFault::Absent;
        if array_at(&header, 4).ok_or(absent)? != MAGIC {
            return Err(absent);
        }
        let crc = crc32c::crc32c_append(life.seed(), header.get(4..).ok_or(absent)?);
        if u32_at(&header, 0).ok_or(absent)? != crc {
            return Err(HeaderFault::ChecksumMismatch);
        }
        let version = u16_at(&header, 8).ok_or(absent)?;
        if version != FORMAT_VERSION {
            return Err(HeaderFault::UnsupportedVersion(version));
        }
        let decoded = Self::decode_fields(&header).ok_or(HeaderFault::Nonsense)?;
        let contradicts = decoded.life != life
            || decoded.count == 0
            || decoded.first_lsn == 0
            || decoded.first_lsn.checked_add(u64::from(decoded.count)).is_none()
            || decoded.durable_lsn >= decoded.first_lsn
            || u16_at(&header, 10) != Some(0)
            || u16_at(&header, 62) != Some(0);
        if contradicts { Err(HeaderFault::Nonsense) } else { Ok(decoded) }
    }

    fn decode_fields(header: &[u8]) -> Option<Self> {
        Some(Self {
            count: u32_at(header, 12)?,
            life: LifeId::from_raw(u64_at(header, 16)?),
            first_lsn: u64_at(header, 24)?,
            durable_lsn: u64_at(header, 32)?,
            time_ms: u64_at(header, 40)?,
            frame_bytes: u32_at(header, 48)?,
            chain: u32_at(header, 52)?,
            epoch: u32_at(header, 56)?,
            partition: u16_at(header, 60)?,
        })
    }

    /// Writes the header over the first bytes of `bytes`.
    pub(crate) fn encode_into(&self, bytes: &mut [u8]) {
        let mut header = [0; BATCH_HEADER_BYTES];
        put(&mut header, 4, &MAGIC);
        put(&mut header, 8, &FORMAT_VERSION.to_le_bytes());
        put(&mut header, 12, &self.count.to_le_bytes());
        put(&mut header, 16, &self.life.raw().to_le_bytes());
        put(&mut header, 24, &self.first_lsn.to_le_bytes());
        put(&mut header, 32, &self.durable_lsn.to_le_bytes());
        put(&mut header, 40, &self.time_ms.to_le_bytes());
        put(&mut header, 48, &self.frame_bytes.to_le_bytes());
        put(&mut header, 52, &self.chain.to_le_bytes());
        put(&mut header, 56, &self.epoch.to_le_bytes());
        put(&mut header, 60, &self.partition.to_le_bytes());
        let body = header.get(4..).expect("the header is 64 bytes");
        let crc = crc32c::crc32c_append(self.life.seed(), body);
        put(&mut header, 0, &crc.to_le_bytes());
        put(bytes, 0, &header);
    }

    /// The last lsn of the batch.
    #[must_use]
    pub fn last_lsn(&self) -> u64 {
        (self.first_lsn - 1).saturating_add(u64::from(self.count))
    }

    /// Bytes of header and frames, without padding.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        to_u64(BATCH_HEADER_BYTES) + u64::from(self.frame_bytes)
    }

    /// Bytes that the batch takes up.
    #[must_use]
    pub fn padded_bytes(&self) -> u64 {
        self.content_bytes().next_multiple_of(to_u64(BLOCK_BYTES))
    }
}

/// Fills one batch in place. Life: [`start`](Self::start), any number of frames, [`finish`](Self::finish).
#[derive(Debug)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    /// Where the batch begins in them: at a block of the memory, so that a disk can take it from there.
    begin: usize,
    started: Option<Started>,
}

#[derive(Debug, Clone, Copy)]
struct Started {
    first: Tail,
    next: Tail,
    seed: u32,
    time_ms: u64,
    count: u32,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// A builder with a buffer of its own.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: Vec::new(), begin: 0, started: None }
    }

    /// A builder that uses the memory of a batch that is done with.
    #[must_use]
    pub fn recycle(batch: Batch) -> Self {
        let mut bytes = batch.bytes;
        bytes.clear();
        Self { bytes, begin: 0, started: None }
    }

    /// Begins a batch at `tail`; whatever was in the builder is gone.
    pub fn start(&mut self, tail: &Tail, time_ms: u64) {
        self.bytes.clear();
        self.begin = self.first_block();
        self.bytes.resize(self.begin + BATCH_HEADER_BYTES, 0);
        let seed = tail.life.seed();
        self.started = Some(Started { first: *tail, next: *tail, seed, time_ms, count: 0 });
    }

    /// Adds one data frame. `encode` appends the payload to the buffer it is given, and only appends: the buffer holds
    /// the frames before it too.
    pub fn frame<R>(&mut self, encode: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let result: Result<R, std::convert::Infallible> =
            self.push_frame(FrameKind::Data, |buffer| Ok(encode(buffer)));
        match result {
            Ok(result) => result,
            Err(never) => match never {},
        }
    }

    /// As [`frame`](Self::frame), but when `encode` fails the frame is taken back as if it had never been begun.
    pub fn try_frame<R, E>(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.push_frame(FrameKind::Data, encode)
    }

    /// Adds the frame with which a writer announces its epoch; backends do this in `open_epoch`.
    pub(crate) fn epoch_frame(&mut self, record: &crate::frame::EpochRecord) {
        let result: Result<(), std::convert::Infallible> =
            self.push_frame(FrameKind::Epoch, |buffer| {
                record.encode(buffer);
                Ok(())
            });
        match result {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    fn push_frame<R, E>(
        &mut self,
        kind: FrameKind,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<R, E>,
    ) -> Result<R, E> {
        let started = self.started.as_mut().expect("start() comes before the first frame");
        let frame_at = self.bytes.len();
        let payload_at = frame_at + FRAME_HEADER_BYTES;
        self.bytes.resize(payload_at, 0);
        let result = match encode(&mut self.bytes) {
            Ok(result) => result,
            Err(error) => {
                self.bytes.truncate(frame_at);
                return Err(error);
            }
        };
        let frame = self.bytes.get_mut(frame_at..).expect("an encoder only appends");
        assert!(frame.len() >= FRAME_HEADER_BYTES, "an encoder only appends");
        let fields = FrameFields {
            lsn: started.next.next_lsn,
            epoch: started.next.epoch,
            chain: started.next.chain,
            index: started.count,
            partition: started.next.partition,
            kind,
        };
        started.next.chain = seal_frame(frame, started.seed, fields);
        started.next.next_lsn += 1;
        started.count += 1;
        Ok(result)
    }

    /// The lsn of the next frame.
    ///
    /// # Panics
    /// Before [`start`](Self::start).
    #[must_use]
    pub fn next_lsn(&self) -> u64 {
        self.started.as_ref().expect("start() comes first").next.next_lsn
    }

    /// Frames so far.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.started.as_ref().map_or(0, |started| started.count)
    }

    /// Bytes that an append would write now. Compare with [`LogStatus::batch_bytes_max`](crate::LogStatus).
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        (self.bytes.len() - self.begin).next_multiple_of(BLOCK_BYTES)
    }

    /// Closes the batch. A batch without frames is allowed here and refused by `append`.
    ///
    /// # Panics
    /// Before [`start`](Self::start).
    #[must_use]
    pub fn finish(mut self) -> Batch {
        let started = self.started.take().expect("start() comes before finish()");
        let frame_bytes = self.bytes.len() - self.begin - BATCH_HEADER_BYTES;
        let header = BatchHeader {
            life: started.first.life,
            count: started.count,
            first_lsn: started.first.next_lsn,
            durable_lsn: started.first.last_lsn(),
            time_ms: started.time_ms,
            frame_bytes: u32::try_from(frame_bytes).expect("a batch is far smaller than 4 GiB"),
            chain: started.first.chain,
            epoch: started.first.epoch,
            partition: started.first.partition,
        };
        self.bytes.resize(self.begin + self.len_bytes(), 0);
        self.align();
        Batch { bytes: self.bytes, begin: self.begin, header, tail_after: started.next }
    }

    /// Where the first block of the memory begins, in the bytes.
    fn first_block(&self) -> usize {
        self.bytes.as_ptr().align_offset(BLOCK_BYTES) % BLOCK_BYTES
    }

    /// Moves the batch to a block of the memory again, where the memory grew after the start. A larger batch than any
    /// before grows it; the memory is recycled, so that is rare.
    fn align(&mut self) {
        if self.first_block() == self.begin {
            return;
        }
        self.bytes.reserve(BLOCK_BYTES);
        let begin = self.first_block();
        let (old, end) = (self.begin..self.bytes.len(), begin + self.bytes.len() - self.begin);
        self.bytes.resize(end.max(self.bytes.len()), 0);
        self.bytes.copy_within(old, begin);
        self.bytes.truncate(end);
        self.begin = begin;
    }
}

/// A closed batch, ready for [`Log::append`](crate::Log::append).
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Where it begins in them.
    begin: usize,
    header: BatchHeader,
    tail_after: Tail,
}

impl Batch {
    /// Lsn of the first frame.
    #[must_use]
    pub fn first_lsn(&self) -> u64 {
        self.header.first_lsn
    }

    /// Lsn of the last frame.
    #[must_use]
    pub fn last_lsn(&self) -> u64 {
        self.header.last_lsn()
    }

    /// Frames in the batch.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.header.count
    }

    /// Bytes that an append writes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() - self.begin
    }

    /// Record time of the batch.
    #[must_use]
    pub fn time_ms(&self) -> u64 {
        self.header.time_ms
    }

    /// Where the batch after this one starts.
    #[must_use]
    pub fn tail_after(&self) -> Tail {
        self.tail_after
    }

    /// Where this batch starts.
    #[must_use]
    pub fn tail_before(&self) -> Tail {
        Tail {
            life: self.header.life,
            partition: self.header.partition,
            epoch: self.header.epoch,
            next_lsn: self.header.first_lsn,
            chain: self.header.chain,
        }
    }

    /// Stamps the header with what the log knows at this moment and returns the bytes to write.
    pub(crate) fn seal(&mut self, durable_lsn: u64) -> &[u8] {
        assert!(durable_lsn < self.header.first_lsn, "a batch cannot be durable before its append");
        self.header.durable_lsn = durable_lsn;
        let bytes = self.bytes.get_mut(self.begin..).expect("a batch begins within its bytes");
        self.header.encode_into(bytes);
        bytes
    }
}

/// Walks the frames of one batch in memory: `bytes` begin with the batch header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameCursor {
    life: LifeId,
    /// Offset of the next frame from the start of the batch.
    pub(crate) at: usize,
    end: usize,
}

impl FrameCursor {
    pub(crate) fn new(header: &BatchHeader) -> Self {
        let frame_bytes = usize::try_from(header.frame_bytes).expect("u32 fits usize");
        Self { life: header.life, at: BATCH_HEADER_BYTES, end: BATCH_HEADER_BYTES + frame_bytes }
    }

    /// The next frame, its fault, or nothing at the end of the batch.
    pub(crate) fn next<'a>(&mut self, bytes: &'a [u8]) -> Option<Result<Frame<'a>, FrameFault>> {
        if self.at >= self.end {
            return None;
        }
        let Some(rest) = bytes.get(self.at..self.end) else {
            return Some(Err(FrameFault::Truncated));
        };
        let frame = decode_frame(rest, self.life);
        if let Ok(frame) = &frame {
            self.at += frame.len_bytes();
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail() -> Tail {
        Tail::at_creation(LifeId::from_raw(5), 2, 10)
    }

    #[test]
    fn frames_are_dense_chained_and_indexed() {
        let mut builder = BatchBuilder::new();
        builder.start(&tail(), 99);
        for payload in [b"one".as_slice(), b"", b"three"] {
            builder.frame(|buffer| buffer.extend_from_slice(payload));
        }
        assert_eq!((builder.count(), builder.next_lsn(), builder.len_bytes()), (3, 13, 4096));
        let mut batch = builder.finish();
        let tail_after = batch.tail_after();
        let bytes = batch.seal(9).to_vec();

        let header = BatchHeader::decode(&bytes, tail().life).unwrap();
        assert_eq!((header.first_lsn, header.last_lsn(), header.time_ms), (10, 12, 99));
        let mut cursor = FrameCursor::new(&header);
        let mut chain = tail().chain;
        for index in 0..3 {
            let frame = cursor.next(&bytes).unwrap().unwrap();
            assert_eq!((frame.header.index, frame.header.batch_first_lsn()), (index, 10));
            assert_eq!(frame.header.chain, chain);
            chain = frame.header.crc;
        }
        assert!(cursor.next(&bytes).is_none());
        assert_eq!((tail_after.next_lsn, tail_after.chain), (13, chain));
    }

    /// However often the memory grew: the bytes are the same, and a disk can take them from where they are.
    #[test]
    fn a_batch_begins_at_a_block_of_the_memory() {
        let mut builder = BatchBuilder::new();
        for frames in [1, 40, 400, 4_000, 3] {
            builder.start(&tail(), 1);
            for frame in 0..frames {
                let payload = [u8::try_from(frame % 251).unwrap(); 100];
                builder.frame(|buffer| buffer.extend_from_slice(&payload));
            }
            let bytes = builder.len_bytes();
            let mut batch = builder.finish();
            assert_eq!((batch.len_bytes(), batch.count()), (bytes, frames));
            let sealed = batch.seal(9);
            assert_eq!(sealed.as_ptr().align_offset(BLOCK_BYTES), 0, "{frames} frames");
            assert_eq!(sealed.len(), bytes);
            let header = BatchHeader::decode(sealed, tail().life).unwrap();
            let mut cursor = FrameCursor::new(&header);
            for frame in 0..frames {
                let read = cursor.next(sealed).unwrap().unwrap();
                assert_eq!(read.payload, [u8::try_from(frame % 251).unwrap(); 100]);
            }
            assert!(cursor.next(sealed).is_none());
            builder = BatchBuilder::recycle(batch);
        }
    }

    #[test]
    fn a_frame_taken_back_leaves_no_trace() {
        let mut plain = BatchBuilder::new();
        plain.start(&tail(), 1);
        plain.frame(|buffer| buffer.push(1));
        let mut with_refusal = BatchBuilder::new();
        with_refusal.start(&tail(), 1);
        let refused = with_refusal.try_frame(|buffer| {
            buffer.extend_from_slice(&[9; 100]);
            Err::<(), _>(())
        });
        assert!(refused.is_err());
        with_refusal.frame(|buffer| buffer.push(1));
        assert_eq!(plain.finish().seal(9), with_refusal.finish().seal(9));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_seen() {
        let mut builder = BatchBuilder::new();
        builder.start(&tail(), 99);
        builder.frame(|buffer| buffer.push(1));
        let bytes = builder.finish().seal(9).to_vec();
        for bit in 0..BATCH_HEADER_BYTES * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(BatchHeader::decode(&damaged, tail().life).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut builder = BatchBuilder::new();
        builder.start(&tail(), 99);
        builder.frame(|buffer| buffer.push(1));
        let mut bytes = builder.finish().seal(9).to_vec();
        put(&mut bytes, 8, &2_u16.to_le_bytes());
        let crc = crc32c::crc32c_append(tail().life.seed(), &bytes[4..64]);
        put(&mut bytes, 0, &crc.to_le_bytes());
        let fault = BatchHeader::decode(&bytes, tail().life);
        assert_eq!(fault, Err(HeaderFault::UnsupportedVersion(2)));
    }
}
