//! The limits of the wire. What the engine and the gateway bound is not repeated here.

use std::time::Duration;

/// Bytes of one body from a client.
pub const BODY_BYTES_MAX: usize = 10 << 20;

/// Items of one page, and how many when the caller does not say.
pub const PAGE_ITEMS_MAX: usize = 100;
/// See [`PAGE_ITEMS_MAX`].
pub const PAGE_ITEMS_DEFAULT: usize = 20;

/// Documents of one kind that are looked at for a list.
pub const DOCUMENTS_MAX: usize = 100_000;

/// Connections of one tenant: what a list shows.
pub const CONNECTIONS_MAX: usize = DOCUMENTS_MAX;

/// Jobs that are looked at for a list: live ones, and those that ended.
pub const JOBS_MAX: usize = 100_000;

/// Bytes of a cron expression: each item of it is spread out.
pub const CRON_BYTES_MAX: usize = 1_000;

/// How often a change of a document is tried again that somebody else changed meanwhile.
pub const CHANGES_MAX: u32 = 8;

/// How long a request waits for a source to be asked which streams it has.
pub const DISCOVER_WAIT_MAX: Duration = Duration::from_secs(120);

/// How long a cancel waits for the worker to be done.
pub const CANCEL_WAIT_MAX: Duration = Duration::from_secs(5);

/// The pause before a job that is waited for is looked at again, at first and at last.
pub const LOOK_PAUSE_MIN: Duration = Duration::from_millis(5);
/// See [`LOOK_PAUSE_MIN`].
pub const LOOK_PAUSE_MAX: Duration = Duration::from_millis(250);

/// Attempts of one job that are summed; the newest, if there were more.
pub const ATTEMPTS_MAX: u32 = 100;

/// How long an access token is good.
pub const TOKEN_SECONDS: u64 = 3_600;

/// Clients that may be configured.
pub const CLIENTS_MAX: usize = 10_000;

/// Schemas in each other that are looked at for secrets, and how deep a configuration may be.
pub const DEPTH_MAX: usize = 64;

/// Bytes of a compiled pattern of a schema; what needs more is not looked at.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Branches of a schema that are looked at for one value; also all schemas that a configuration is held against.
pub const BRANCHES_MAX: usize = 10_000;

/// Pairs of items, as they were and as they are given, that are compared to find whose secrets the masks in a
/// list are.
pub const LIST_LOOKS_MAX: usize = 1_000_000;

/// Finished jobs of a queue that are kept for look-ups, unless somebody configured the queue.
pub const FINISHED_MAX: u32 = 10_000;

/// How long they are kept.
pub const FINISHED_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// Bytes of a name that somebody gives.
pub const NAME_BYTES_MAX: usize = 1_000;
