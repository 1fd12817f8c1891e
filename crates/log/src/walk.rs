//! Walking one batch in memory with all checks: the one way in which readers, recovery and the offline tools look at
//! bytes, so that they cannot disagree.

use std::ops::Range;

use crate::accept::{Acceptor, Verdict};
use crate::batch::{BatchHeader, FrameCursor};
use crate::error::Fault;
use crate::frame::{FrameHeader, LifeId};

/// A batch that continues the log so far. The bytes stay with the caller and are given to each step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchWalk {
    pub(crate) header: BatchHeader,
    cursor: FrameCursor,
    passed: u32,
}

/// A frame that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub(crate) header: FrameHeader,
    /// Where the frame's payload is in the batch's bytes.
    pub(crate) payload: Range<usize>,
}

/// A frame that was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkFault {
    /// Where in the batch.
    pub(crate) at: usize,
    pub(crate) fault: Fault,
}

impl BatchWalk {
    /// Reads the header at the start of `bytes`; it must continue what the acceptor has seen.
    pub(crate) fn begin(bytes: &[u8], life: LifeId, acceptor: &Acceptor) -> Result<Self, Fault> {
        let header = BatchHeader::decode(bytes, life).map_err(Fault::BatchHeader)?;
        if header.first_lsn != acceptor.next_lsn() || header.chain != acceptor.chain() {
            return Err(Fault::BatchOutOfOrder);
        }
        Ok(Self::begin_anywhere(header))
    }

    /// Walks a batch whose place in the history the caller knows.
    pub(crate) fn begin_anywhere(header: BatchHeader) -> Self {
        Self { header, cursor: FrameCursor::new(&header), passed: 0 }
    }

    /// Offset of the next frame from the start of the batch.
    pub(crate) fn at(&self) -> usize {
        self.cursor.at
    }

    /// Frames accepted so far.
    pub(crate) fn passed(&self) -> u32 {
        self.passed
    }

    /// The next frame, or nothing when the batch is whole.
    pub(crate) fn step(
        &mut self,
        bytes: &[u8],
        acceptor: &mut Acceptor,
    ) -> Result<Option<Passed>, WalkFault> {
        let at = self.cursor.at;
        let bad = |fault| WalkFault { at, fault };
        let frame = match self.cursor.next(bytes) {
            Some(frame) => frame.map_err(|fault| bad(Fault::Frame(fault)))?,
            None => return self.check_end().map(|()| None).map_err(bad),
        };
        if self.passed == self.header.count || frame.header.index != self.passed {
            return Err(bad(Fault::BatchMismatch));
        }
        let batch_writer = (self.header.epoch, self.header.partition);
        if (frame.header.epoch, frame.header.partition) != batch_writer {
            return Err(bad(Fault::ForeignFrame));
        }
        match acceptor.judge(&frame).map_err(|refusal| bad(Fault::OutOfOrder(refusal)))? {
            Verdict::Accept => {}
            Verdict::Replace { .. } | Verdict::Drop => return Err(bad(Fault::ForeignFrame)),
        }
        self.passed += 1;
        let payload = self.cursor.at - frame.payload.len()..self.cursor.at;
        Ok(Some(Passed { header: frame.header, payload }))
    }

    /// The padding behind the last frame carries nothing and is not looked at: damage there does no harm.
    fn check_end(&self) -> Result<(), Fault> {
        if self.passed == self.header.count { Ok(()) } else { Err(Fault::BatchMismatch) }
    }
}
