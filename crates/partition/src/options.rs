//! How a partition runs.

use std::fmt;
use std::time::Duration;

use windlass_record::bound::Bounds;

use crate::finished::Room;

/// What an acknowledgement means. As text it is what answers and pages say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// What was acknowledged is on disk.
    #[default]
    Fsync,
    /// What was acknowledged will be: batches are collected for this long, then written and synced.
    /// Who dies before that, process or machine, has lost it. Batches are held back and not written
    /// without a sync, because the log proves by each batch that the one before it was durable.
    Interval(Duration),
}

impl Durability {
    /// Its name in settings and labels.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Fsync => "fsync",
            Durability::Interval(_) => "interval",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Fsync => f.write_str("fsync before every acknowledgement"),
            Durability::Interval(every) => write!(
                f,
                "interval: acknowledged before it is on disk; fsync at most every {} ms, and a crash \
                 loses what was acknowledged since the last one",
                every.as_millis()
            ),
        }
    }
}

/// How a partition runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits of the engine.
    pub bounds: Bounds,
    /// Commands that may wait for the loop, results apart.
    pub loop_commands_max: u64,
    /// Bytes of them.
    pub loop_bytes_max: u64,
    /// Bytes of a batch.
    pub batch_bytes_max: usize,
    /// Polls and streams that may wait.
    pub waiters_max: usize,
    /// A checkpoint is written this often when anything changed.
    pub checkpoint_every: Duration,
    /// And whenever the log grew by this.
    pub checkpoint_log_bytes: u64,
    /// Creates are refused when the log has grown by this since the last checkpoint.
    pub checkpoint_lag_bytes_max: u64,
    /// The log is kept for a follower that lags until it takes up this much.
    pub follow_log_bytes_max: u64,
    /// Payloads beyond this are evicted when a checkpoint holds them.
    pub payload_bytes_max: u64,
    /// Finished jobs that are remembered in all.
    pub finished_max: usize,
    /// Bytes of their results, messages, headers and logs.
    pub finished_bytes_max: u64,
    /// No lease ends before this after the partition came up.
    pub lease_grace: Duration,
    /// A stop waits this long for its last checkpoint.
    pub stop_wait_max: Duration,
    /// When answers leave.
    pub durability: Durability,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bounds: Bounds::default(),
            loop_commands_max: 65_536,
            loop_bytes_max: 256 << 20,
            batch_bytes_max: 4 << 20,
            waiters_max: 65_536,
            checkpoint_every: Duration::from_secs(10),
            checkpoint_log_bytes: 256 << 20,
            checkpoint_lag_bytes_max: 4 << 30,
            follow_log_bytes_max: 8 << 30,
            payload_bytes_max: 8 << 30,
            finished_max: 1_000_000,
            finished_bytes_max: 1 << 30,
            lease_grace: Duration::from_secs(10),
            stop_wait_max: Duration::from_secs(10),
            durability: Durability::Fsync,
        }
    }
}

impl Options {
    pub(crate) fn finished_room(&self) -> Room {
        Room { jobs_max: self.finished_max, bytes_max: self.finished_bytes_max }
    }
}
