//! The reader's acceptance rule: which frame may follow which.
//!
//! With this rule any totally ordered store of bytes that returns positions is a safe log, whoever writes to it:
//!
//! 1. A frame of the reader's epoch is accepted when its lsn is the last one plus one and its chain is the last crc.
//! 2. A frame of an older epoch is dropped: its writer was deposed, and nobody was told that it is durable.
//! 3. A higher epoch begins with its epoch frame, whose record says where the predecessors end. It takes the lsn right
//!    behind that end. Usually that is the last lsn plus one; when frames of the predecessor stand there already, they
//!    never counted and the epoch frame *replaces* them. Nothing else may replace an lsn.
//! 4. Anything else is damage.
//!
//! A sequence number alone is not enough: two writers that pipeline were seen to interleave, each one's message n + 1
//! matching after the other's message n.

use std::collections::VecDeque;

use crate::batch::Tail;
use crate::frame::{EpochRecord, Frame, FrameKind};

/// How far behind the last lsn an epoch frame may reach in order to replace frames. A deposed writer has one batch in
/// flight, so this is far more than it takes.
const REPLACED_FRAMES_MAX: usize = 64 * 1024;

/// What to do with a frame that is in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one.
    Accept,
    /// It is the next one, and frames from this lsn on that were accepted before never counted.
    Replace {
        /// The first lsn that is taken back.
        from_lsn: u64,
    },
    /// It was written by a deposed writer: skip it.
    Drop,
}

/// Why a frame cannot follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A frame is missing, or one is there twice.
    #[error("lsn {expected} should follow, lsn {found} does")]
    LsnOutOfOrder {
        /// Last lsn plus one.
        expected: u64,
        /// What the frame says.
        found: u64,
    },
    /// The frame continues another history.
    #[error("its chain does not continue the frame before it")]
    ChainBroken,
    /// A writer that did not announce itself.
    #[error("its epoch {0} was never announced by an epoch frame")]
    EpochNotAnnounced(u32),
    /// Two writers claim one epoch.
    #[error("epoch {0} is announced twice")]
    EpochAnnouncedTwice(u32),
    /// The epoch frame names an end that is not in front of it, or one out of reach.
    #[error("its epoch record contradicts its lsn")]
    EpochRecordInvalid,
}

/// Judges frames one after the other.
#[derive(Debug, Clone)]
pub struct Acceptor {
    last_lsn: u64,
    epoch: u32,
    /// Checksum of the last frame.
    chain: u32,
    /// Checksums of the frames before the last one, newest at the back.
    earlier_chains: VecDeque<u32>,
    /// Zero for stores in which a replaced frame is overwritten and never read.
    replaced_frames_max: usize,
}

impl Acceptor {
    /// For a store that keeps everything it was ever sent, frames of deposed writers too.
    #[must_use]
    pub fn starting_at(tail: &Tail) -> Self {
        Self {
            last_lsn: tail.last_lsn(),
            epoch: tail.epoch,
            chain: tail.chain,
            earlier_chains: VecDeque::new(),
            replaced_frames_max: REPLACED_FRAMES_MAX,
        }
    }

    /// For a store with one writer at a time that overwrites what it cuts off: nothing is ever replaced or dropped.
    #[must_use]
    pub(crate) fn for_single_writer(tail: &Tail) -> Self {
        Self { replaced_frames_max: 0, ..Self::starting_at(tail) }
    }

    /// The lsn that must come next.
    #[must_use]
    pub fn next_lsn(&self) -> u64 {
        self.last_lsn + 1
    }

    /// The epoch of the last accepted frame.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The checksum of the last accepted frame.
    #[must_use]
    pub fn chain(&self) -> u32 {
        self.chain
    }

    /// Judges the next frame; on `Accept` and `Replace` it becomes the last one.
    pub fn judge(&mut self, frame: &Frame<'_>) -> Result<Verdict, Refusal> {
        let header = &frame.header;
        if header.epoch < self.epoch {
            return Ok(Verdict::Drop);
        }
        if header.epoch == self.epoch {
            if header.kind == FrameKind::Epoch {
                return Err(Refusal::EpochAnnouncedTwice(header.epoch));
            }
            self.check_follows(frame)?;
            self.advance(frame);
            return Ok(Verdict::Accept);
        }
        self.judge_new_epoch(frame)
    }

    fn judge_new_epoch(&mut self, frame: &Frame<'_>) -> Result<Verdict, Refusal> {
        let header = &frame.header;
        if header.kind != FrameKind::Epoch {
            return Err(Refusal::EpochNotAnnounced(header.epoch));
        }
        let record = EpochRecord::decode(frame.payload).ok_or(Refusal::EpochRecordInvalid)?;
        if record.predecessor_last_lsn.checked_add(1) != Some(header.lsn) {
            return Err(Refusal::EpochRecordInvalid);
        }
        if header.lsn > self.last_lsn {
            self.check_follows(frame)?;
            self.advance(frame);
            return Ok(Verdict::Accept);
        }
        self.rewind_to(record.predecessor_last_lsn)?;
        self.check_follows(frame)?;
        self.advance(frame);
        Ok(Verdict::Replace { from_lsn: header.lsn })
    }

    fn check_follows(&self, frame: &Frame<'_>) -> Result<(), Refusal> {
        if frame.header.lsn != self.next_lsn() {
            let (expected, found) = (self.next_lsn(), frame.header.lsn);
            return Err(Refusal::LsnOutOfOrder { expected, found });
        }
        if frame.header.chain != self.chain {
            return Err(Refusal::ChainBroken);
        }
        Ok(())
    }

    fn advance(&mut self, frame: &Frame<'_>) {
        if self.replaced_frames_max > 0 {
            if self.earlier_chains.len() == self.replaced_frames_max {
                self.earlier_chains.pop_front();
            }
            self.earlier_chains.push_back(self.chain);
        }
        self.last_lsn = frame.header.lsn;
        self.epoch = frame.header.epoch;
        self.chain = frame.header.crc;
    }

    /// Takes back accepted frames behind `lsn`.
    fn rewind_to(&mut self, lsn: u64) -> Result<(), Refusal> {
        let taken_back = usize::try_from(self.last_lsn - lsn).unwrap_or(usize::MAX);
        let kept =
            self.earlier_chains.len().checked_sub(taken_back).ok_or(Refusal::EpochRecordInvalid)?;
        self.chain = self.earlier_chains.get(kept).copied().ok_or(Refusal::EpochRecordInvalid)?;
        self.earlier_chains.truncate(kept);
        self.last_lsn = lsn;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, BatchHeader, FrameCursor};
    use crate::frame::LifeId;

    const LIFE: LifeId = LifeId::from_raw(1);

    /// A batch of one writer: optionally its epoch frame, then data frames. Returns the bytes and the tail behind it.
    fn batch(tail: Tail, announce: bool, data_frames: u32) -> (Vec<u8>, Tail) {
        let mut builder = BatchBuilder::new();
        builder.start(&tail, 0);
        if announce {
            builder.epoch_frame(&EpochRecord {
                predecessor_epoch: tail.epoch - 1,
                predecessor_last_lsn: tail.last_lsn(),
                predecessor_time_ms: 0,
            });
        }
        for number in 0..data_frames {
            builder.frame(|buffer| buffer.extend_from_slice(&number.to_le_bytes()));
        }
        let mut batch = builder.finish();
        (batch.seal(tail.last_lsn()).to_vec(), batch.tail_after())
    }

    fn judge_all(acceptor: &mut Acceptor, bytes: &[u8]) -> Vec<Result<Verdict, Refusal>> {
        let mut cursor = FrameCursor::new(&BatchHeader::decode(bytes, LIFE).unwrap());
        let mut verdicts = Vec::new();
        while let Some(frame) = cursor.next(bytes) {
            verdicts.push(acceptor.judge(&frame.unwrap()));
        }
        verdicts
    }

    fn start(epoch: u32) -> Tail {
        Tail { epoch, ..Tail::at_creation(LIFE, 0, 1) }
    }

    #[test]
    fn frames_in_order_are_accepted() {
        let (bytes, tail) = batch(start(1), true, 3);
        let mut acceptor = Acceptor::starting_at(&start(0));
        assert_eq!(judge_all(&mut acceptor, &bytes), vec![Ok(Verdict::Accept); 4]);
        assert_eq!((acceptor.next_lsn(), acceptor.chain()), (tail.next_lsn, tail.chain));
    }

    #[test]
    fn a_deposed_writers_frames_are_dropped() {
        let (first, tail) = batch(start(1), true, 1);
        let (late, _) = batch(tail, false, 2);
        let (takeover, _) = batch(Tail { epoch: 2, ..tail }, true, 1);
        let mut acceptor = Acceptor::starting_at(&start(0));
        judge_all(&mut acceptor, &first);
        assert_eq!(judge_all(&mut acceptor, &takeover), vec![Ok(Verdict::Accept); 2]);
        assert_eq!(judge_all(&mut acceptor, &late), vec![Ok(Verdict::Drop); 2]);
    }

    #[test]
    fn an_epoch_replaces_only_behind_the_end_it_names() {
        let (first, tail) = batch(start(1), true, 1);
        let (late, _) = batch(tail, false, 2);
        let (takeover, tail_after) = batch(Tail { epoch: 2, ..tail }, true, 1);
        let mut acceptor = Acceptor::starting_at(&start(0));
        judge_all(&mut acceptor, &first);
        judge_all(&mut acceptor, &late);
        let verdicts = judge_all(&mut acceptor, &takeover);
        let from_lsn = tail.next_lsn;
        assert_eq!(verdicts, vec![Ok(Verdict::Replace { from_lsn }), Ok(Verdict::Accept)]);
        assert_eq!(acceptor.next_lsn(), tail_after.next_lsn);
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let (first, tail) = batch(start(1), true, 1);
        let cases = [
            (Tail { next_lsn: tail.next_lsn + 1, ..tail }, false, "gap"),
            (Tail { next_lsn: tail.next_lsn - 1, ..tail }, false, "repeat"),
            (Tail { chain: tail.chain ^ 1, ..tail }, false, "other history"),
            (Tail { epoch: 2, ..tail }, false, "epoch without announcement"),
            (Tail { epoch: 2, next_lsn: tail.next_lsn + 1, ..tail }, true, "epoch after a gap"),
            (Tail { epoch: 2, chain: tail.chain ^ 1, ..tail }, true, "epoch of another history"),
            (tail, true, "epoch announced twice"),
        ];
        for (next, announce, name) in cases {
            let mut acceptor = Acceptor::starting_at(&start(0));
            judge_all(&mut acceptor, &first);
            let (bytes, _) = batch(next, announce, 1);
            assert!(judge_all(&mut acceptor, &bytes)[0].is_err(), "{name}");
            assert_eq!(
                acceptor.next_lsn(),
                tail.next_lsn,
                "{name}: a refused frame changes nothing"
            );
        }
    }
}
