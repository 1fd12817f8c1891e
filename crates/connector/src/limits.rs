//! How much a connector may take, how long it may be silent, how much is kept of it.

use std::time::Duration;

/// Bounds of an attempt. All of them have a value that is good for most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one line of a connector; a longer one fails the attempt.
    pub line_bytes_max: usize,
    /// Memory of each connector in bytes, as `RLIMIT_DATA`; `None` for no bound.
    pub memory_bytes_max: Option<u64>,
    /// Processor time of each process of a connector in seconds; `None` for no bound.
    pub cpu_seconds_max: Option<u64>,
    /// Open files of each process of a connector.
    pub files_max: u64,
    /// How long a source may send neither record nor state while somebody would take it.
    pub source_silence_max: Duration,
    /// How long a destination may take nothing, or say nothing once its input is closed.
    pub destination_silence_max: Duration,
    /// Between the end of a connector's output and its exit, and between SIGTERM and SIGKILL.
    pub exit_grace: Duration,
    /// How long the processes that a connector left behind may keep its output open.
    pub leftover_grace: Duration,
    /// `spec`, `check` and `discover`.
    pub operation_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes_max: 128 << 20,
            memory_bytes_max: None,
            cpu_seconds_max: None,
            files_max: 4_096,
            source_silence_max: Duration::from_secs(10_800),
            destination_silence_max: Duration::from_secs(86_400),
            exit_grace: Duration::from_secs(60),
            leftover_grace: Duration::from_secs(2),
            operation_max: Duration::from_secs(9 * 60),
        }
    }
}
