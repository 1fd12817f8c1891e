//! The limits of the wire. What the engine and the gateway bound is not repeated here.

use std::time::Duration;

/// Bytes of one body from a client.
pub const BODY_BYTES_MAX: usize = 10 << 20;

/// Bytes of tasks in one answer to a poll, about; a single larger one goes alone.
pub const POLL_BYTES_MAX: u64 = 10 << 20;

/// The longest wait of a batch poll.
pub const POLL_WAIT_MS_MAX: i64 = 5_000;

/// How long a poll for one task waits.
pub const POLL_ONE_WAIT_MS: u64 = 100;

/// How long a worker may be silent whose task does not say.
pub const LEASE_MS_DEFAULT: u64 = 3_600_000;

/// Workers whose last poll is remembered, per type of task and domain.
pub const POLLERS_MAX: usize = 10_000;

/// Workflows of one bulk request.
pub const BULK_ITEMS_MAX: usize = 1_000;

/// The longest wait for a workflow that is run or signalled and answered with what became of it.
pub const RUN_WAIT_MAX: Duration = Duration::from_secs(600);

/// How long such a wait is when the caller does not say.
pub const RUN_SECONDS_DEFAULT: i64 = 10;

/// The pause before a workflow that is waited for is looked at again, at first and at last.
pub const LOOK_PAUSE_MIN: Duration = Duration::from_millis(2);
/// See [`LOOK_PAUSE_MIN`].
pub const LOOK_PAUSE_MAX: Duration = Duration::from_millis(50);

/// Workflows below the one that is waited for which are looked into.
pub const CHILDREN_MAX: usize = 1_000;

/// Looks at a workflow under test.
pub const TEST_LOOKS_MAX: u32 = 20_000;

/// A test ends when nothing could be done in this long.
pub const TEST_QUIET_MAX: Duration = Duration::from_secs(2);

/// Tests in each other.
pub const TEST_DEPTH_MAX: u32 = 20;
