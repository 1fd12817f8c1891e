//! When checkpoints are written, and how far the one under way is.

use windlass_log::Position;
use windlass_record::bound::Bound;
use windlass_record::rejection::Rejection;

use super::Run;
use crate::checkpoint::{Order, Written};
use crate::commit::Work;

/// Frozen images written in one round.
const IMAGES_PER_ROUND_MAX: usize = 256;

/// Where checkpoints stand.
pub(super) struct CheckpointState {
    pub(super) number: u32,
    /// Of the newest durable one.
    pub(super) lsn: u64,
    pub(super) time_ms: u64,
    pub(super) took_ms: u64,
    /// Log bytes appended since the newest freeze.
    pub(super) bytes_since: u64,
    /// Log bytes appended since the freeze of the newest durable one.
    pub(super) lag_bytes: u64,
    pub(super) last_us: u64,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    Idle,
    /// Images are being collected. Behind them the log is read from this position.
    Collecting(Position),
    /// They are whole and wait for the log to be durable up to them.
    Waiting(Box<Order>),
    /// The writer has them.
    Writing,
}

impl CheckpointState {
    pub(super) fn new(lsn: u64, time_ms: u64) -> CheckpointState {
        CheckpointState {
            number: 0,
            lsn,
            time_ms,
            took_ms: 0,
            bytes_since: 0,
            lag_bytes: 0,
            last_us: 0,
            stage: Stage::Idle,
        }
    }
}

impl Run {
    /// Moves the checkpoint on by a bounded amount of work. True if there is more to do at once.
    pub(super) fn step_checkpoint(&mut self) -> bool {
        match std::mem::replace(&mut self.checkpoint.stage, Stage::Idle) {
            Stage::Idle => {
                if self.checkpoint_due() {
                    self.freeze();
                    return true;
                }
                false
            }
            Stage::Collecting(position) => {
                let Some((images, checksum)) = self.core.collect(IMAGES_PER_ROUND_MAX) else {
                    self.checkpoint.stage = Stage::Collecting(position);
                    return true;
                };
                self.checkpoint.stage =
                    Stage::Waiting(Box::new(Order { images, position, checksum }));
                self.step_checkpoint()
            }
            Stage::Waiting(order) if self.durable_lsn >= order.images.lsn => {
                tracing::debug!(
                    lsn = order.images.lsn,
                    images = order.images.len(),
                    "writing a checkpoint"
                );
                self.checkpoint.stage = Stage::Writing;
                // The commit thread ends after the loop.
                let _ = self.work.send(Work::Checkpoint(order));
                false
            }
            Stage::Waiting(order) => {
                self.checkpoint.stage = Stage::Waiting(order);
                false
            }
            Stage::Writing => {
                self.checkpoint.stage = Stage::Writing;
                false
            }
        }
    }

    fn checkpoint_due(&self) -> bool {
        let state = &self.checkpoint;
        if !self.callers.is_empty() {
            return true;
        }
        let mut log_bytes_max = self.options.checkpoint_log_bytes;
        if matches!(self.core.refusing, Some(Rejection::Exhausted { bound: Bound::LogSpace, .. })) {
            // What is trimmed behind it is the room in which work can drain.
            log_bytes_max = log_bytes_max.min(self.log.status().batch_bytes_max / 4);
        }
        let every_us = u64::try_from(self.options.checkpoint_every.as_micros()).unwrap_or(u64::MAX);
        let elapsed_us = self.source.read().monotonic_us.saturating_sub(state.last_us);
        state.bytes_since >= log_bytes_max || (state.bytes_since > 0 && elapsed_us >= every_us)
    }

    fn freeze(&mut self) {
        self.checkpoint.number += 1;
        self.checkpoint.bytes_since = 0;
        self.checkpoint.last_us = self.source.read().monotonic_us;
        self.callers_frozen.append(&mut self.callers);
        self.core.freeze(self.checkpoint.number);
        self.checkpoint.stage = Stage::Collecting(self.position);
    }

    /// What is kept for the next checkpoint is of no use while nothing changes.
    pub(super) fn give_back_memory(&mut self) {
        if matches!(self.checkpoint.stage, Stage::Idle) && self.checkpoint.bytes_since == 0 {
            self.core.spent_images = None;
        }
    }

    pub(super) fn checkpoint_written(&mut self, written: Written) {
        self.checkpoint.stage = Stage::Idle;
        self.checkpoint.lsn = written.lsn;
        self.checkpoint.time_ms = written.time_ms;
        let took_us = self.source.read().monotonic_us.saturating_sub(self.checkpoint.last_us);
        self.checkpoint.took_ms = took_us.div_ceil(1_000).max(1);
        self.checkpoint.lag_bytes = self.checkpoint.bytes_since;
        let lsn = written.lsn;
        self.core.written(written);
        // Who hears of it may create at once, in this very round.
        self.refuse_or_not();
        for caller in self.callers_frozen.drain(..) {
            // It may have given up.
            let _ = caller.send(lsn);
        }
    }
}
