//! How a partition runs.

use std::time::Duration;

use windlass_record::bound::Bounds;

/// What an acknowledgement means, in words, for answers and pages.
pub const DURABILITY: &str = "fsync before every acknowledgement";

/// How a partition runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits of the engine.
    pub bounds: Bounds,
    /// Commands that may wait for the loop, results apart.
    pub loop_commands_max: u64,
    /// Bytes of them.
    pub loop_bytes_max: u64,
    /// Commands decided in one batch before it is handed to the log.
    pub batch_commands_max: usize,
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
    /// No lease ends before this after the partition came up.
    pub lease_grace: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bounds: Bounds::default(),
            loop_commands_max: 65_536,
            loop_bytes_max: 256 << 20,
            batch_commands_max: 4_096,
            batch_bytes_max: 4 << 20,
            waiters_max: 65_536,
            checkpoint_every: Duration::from_secs(10),
            checkpoint_log_bytes: 256 << 20,
            checkpoint_lag_bytes_max: 4 << 30,
            follow_log_bytes_max: 8 << 30,
            payload_bytes_max: 8 << 30,
            finished_max: 1_000_000,
            lease_grace: Duration::from_secs(10),
        }
    }
}
