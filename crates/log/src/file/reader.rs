//! Reads durable frames out of segments, while others append and trim.

use std::sync::Arc;

use crate::accept::Acceptor;
use crate::batch::{BATCH_HEADER_BYTES, BatchHeader, Tail};
use crate::error::{Damage, Fault, Proof};
use crate::frame::{EpochRecord, FrameKind, decode_frame};
use crate::fs::File;
use crate::memory::entry;
use crate::walk::BatchWalk;
use crate::{Entry, LogError, LogReader, ReadFrom};

use super::housekeeping::Shared;
use super::layout::{BLOCK, Place, SegmentHeader, segment_path};
use super::survey::{load_batch, open};

#[derive(Debug)]
pub(crate) struct FileReader {
    shared: Arc<Shared>,
    next_lsn: u64,
    near: Option<Place>,
    at: Option<OpenSegment>,
    /// The batch that is being read; its bytes are in `buffer`.
    batch: Option<BatchWalk>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct OpenSegment {
    file: Box<dyn File>,
    header: SegmentHeader,
    /// Where the current batch is, or the next one.
    offset: u64,
    acceptor: Acceptor,
}

/// What the books say about the next thing to do.
enum Next {
    NothingYet,
    Segment(u64),
    Batch,
}

impl FileReader {
    pub(crate) fn new(shared: Arc<Shared>, from: &ReadFrom) -> Self {
        let near = from.near.map(Place::of);
        Self { shared, next_lsn: from.lsn, near, at: None, batch: None, buffer: Vec::new() }
    }

    fn look_at_books(&self) -> Result<Next, LogError> {
        let books = self.shared.books();
        if self.next_lsn > books.durable_lsn {
            return Ok(Next::NothingYet);
        }
        let first_lsn = books.first_lsn();
        if self.next_lsn < first_lsn {
            return Err(LogError::Trimmed { lsn: self.next_lsn, first_lsn });
        }
        let wanted_lsn =
            self.at.as_ref().map_or(self.next_lsn, |segment| segment.acceptor.next_lsn());
        let behind = books.segments.partition_point(|segment| segment.first_lsn <= wanted_lsn);
        let segment = behind.checked_sub(1).and_then(|index| books.segments.get(index));
        let segment = segment.ok_or(LogError::Trimmed { lsn: self.next_lsn, first_lsn })?;
        match &self.at {
            Some(at) if at.header.number == segment.number => Ok(Next::Batch),
            Some(_) | None => Ok(Next::Segment(segment.number)),
        }
    }

    fn open_segment(&mut self, number: u64) -> Result<(), LogError> {
        let path = segment_path(&self.shared.dir, number);
        let expected = self.at.take().map(|segment| segment.acceptor);
        let opened = open(self.shared.fs.as_ref(), &path).and_then(|file| {
            let mut block = vec![0; crate::batch::BLOCK_BYTES];
            file.read_at(&mut block, 0).map_err(|error| LogError::io("read", &path, error))?;
            Ok((file, SegmentHeader::decode(&block)))
        });
        let (file, header) = opened.map_err(|error| self.trimmed_or(error))?;
        let header = match header {
            Ok(header) if header.number == number => header,
            Ok(header) => {
                let fault = Fault::SegmentMisplaced { found: header.number };
                return Err(self.damage(number, 0, fault));
            }
            Err(fault) => {
                fault.check_version(&path)?;
                return Err(self.damage(number, 0, Fault::SegmentHeader));
            }
        };
        let continues = expected.as_ref().is_none_or(|last| {
            last.next_lsn() == header.before.next_lsn && last.chain() == header.before.chain
        });
        if !continues {
            return Err(self.damage(number, 0, Fault::SegmentOutOfOrder));
        }
        let mut segment = OpenSegment {
            file,
            offset: BLOCK,
            acceptor: Acceptor::for_single_writer(&header.before),
            header,
        };
        if let Some(near) = self.near.take().filter(|near| near.segment == number) {
            self.jump(&mut segment, near);
        }
        self.at = Some(segment);
        Ok(())
    }

    /// Goes to a batch that a position names, unless it is not, or no longer, what the position says.
    fn jump(&mut self, segment: &mut OpenSegment, near: Place) {
        let life = segment.header.before.life;
        let (file, bytes) = (segment.file.as_ref(), segment.header.segment_bytes);
        let loaded = load_batch(file, life, near.offset, bytes, &mut self.buffer);
        let header = BatchHeader::decode(&self.buffer, life);
        let (Ok(()), Ok(header)) = (loaded, header) else { return };
        let first = self.buffer.get(BATCH_HEADER_BYTES..).unwrap_or_default();
        let Ok(first) = decode_frame(first, life) else { return };
        if header.first_lsn > self.next_lsn || header.first_lsn < segment.header.before.next_lsn {
            return;
        }
        let epoch_before = match first.header.kind {
            FrameKind::Data => Some(header.epoch),
            FrameKind::Epoch => {
                EpochRecord::decode(first.payload).map(|record| record.predecessor_epoch)
            }
        };
        let Some(epoch) = epoch_before else { return };
        segment.offset = near.offset;
        segment.acceptor = Acceptor::for_single_writer(&Tail {
            life,
            partition: header.partition,
            epoch,
            next_lsn: header.first_lsn,
            chain: header.chain,
        });
    }

    fn load_batch(&mut self) -> Result<(), LogError> {
        let Some(segment) = &mut self.at else { return Ok(()) };
        let (number, offset, life) =
            (segment.header.number, segment.offset, segment.header.before.life);
        let path = segment_path(&self.shared.dir, number);
        let bytes = segment.header.segment_bytes;
        load_batch(segment.file.as_ref(), life, offset, bytes, &mut self.buffer)
            .map_err(|error| LogError::io("read", path, error))?;
        match BatchWalk::begin(&self.buffer, life, &segment.acceptor) {
            Ok(walk) => self.batch = Some(walk),
            Err(fault) => return Err(self.damage(number, offset, fault)),
        }
        Ok(())
    }

    /// A frame that cannot be read is damage, unless its segment was trimmed, and used again, while we read.
    fn damage(&self, segment: u64, offset: u64, fault: Fault) -> LogError {
        let durable_lsn = self.shared.books().durable_lsn;
        let file = segment_path(&self.shared.dir, segment);
        let proof = Proof::Acknowledged { durable_lsn };
        let lsn = self.at.as_ref().map_or(self.next_lsn, |at| at.acceptor.next_lsn());
        self.trimmed_or(Damage { file, offset, lsn, fault, proof }.into())
    }

    fn trimmed_or(&self, error: LogError) -> LogError {
        let first_lsn = self.shared.books().first_lsn();
        if self.next_lsn < first_lsn {
            return LogError::Trimmed { lsn: self.next_lsn, first_lsn };
        }
        error
    }
}

impl LogReader for FileReader {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, LogError> {
        let passed = loop {
            let (Some(batch), Some(segment)) = (&mut self.batch, &mut self.at) else {
                match self.look_at_books()? {
                    Next::NothingYet => return Ok(None),
                    Next::Segment(number) => self.open_segment(number)?,
                    Next::Batch => self.load_batch()?,
                }
                continue;
            };
            match batch.step(&self.buffer, &mut segment.acceptor) {
                Ok(Some(passed)) if passed.header.lsn < self.next_lsn => {}
                Ok(Some(passed)) => break passed,
                Ok(None) => {
                    segment.offset += batch.header.padded_bytes();
                    self.batch = None;
                }
                Err(bad) => {
                    let offset = segment.offset + crate::little_endian::to_u64(bad.at);
                    let number = segment.header.number;
                    return Err(self.damage(number, offset, bad.fault));
                }
            }
        };
        self.next_lsn = passed.header.lsn + 1;
        let batch = self.batch.as_ref().expect("the frame was found in this batch");
        let segment = self.at.as_ref().expect("the batch was found in this segment");
        let place = Place { segment: segment.header.number, offset: segment.offset };
        Ok(Some(entry(&passed, batch, place.position(), &self.buffer)))
    }
}
