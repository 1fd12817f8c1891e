//! Every queue, body, batch, name and log has a limit, and every limit has a name.

use std::fmt;

/// Makes the bounds from one row each: `Name = "stable-name", "what is counted", setting`, the setting
/// being the one of the server that it follows, as in `windlass.toml`; `None` where it is fixed.
macro_rules! bounds {
    ($($(#[$doc:meta])* $bound:ident = $name:literal, $words:literal, $setting:expr;)*) => {
        /// Names a limit in a rejection, so that a client learns which one it met.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Bound {
            $($(#[$doc])* $bound,)*
        }

        impl Bound {
            /// All of them.
            pub const ALL: &[Bound] = &[$(Bound::$bound),*];

            /// Its stable name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Bound::$bound => $name,)*
                }
            }

            /// The setting of the server that it follows, as in `windlass.toml`; `None`: it is fixed.
            pub fn setting(self) -> Option<&'static str> {
                match self {
                    $(Bound::$bound => $setting,)*
                }
            }
        }

        /// What is counted, in words.
        impl fmt::Display for Bound {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Bound::$bound => $words,)*
                })
            }
        }
    };
}

bounds! {
    /// Bytes of a tenant, queue, type, group, worker, key or document name.
    NameBytes = "name-bytes", "bytes of a name", None;
    /// Bytes of a job's payload, a result, a document, a deployed file, or an object of variables.
    PayloadBytes = "payload-bytes", "bytes of a payload", Some("payload_bytes_max");
    /// Bytes of a job's headers.
    HeaderBytes = "header-bytes", "bytes of headers", None;
    /// Bytes of an error message; a longer one is cut, never refused.
    MessageBytes = "message-bytes", "bytes of a message", None;
    /// Bytes of one REST body or one gRPC message; they follow those of a payload.
    BodyBytes = "body-bytes", "bytes of a body", Some("payload_bytes_max");
    /// Items in one batch.
    BatchItems = "batch-items", "items of a batch", Some("batch_items_max");
    /// Jobs that are not final, in one partition.
    LiveJobs = "live-jobs", "live jobs of a partition", Some("live_jobs_max");
    /// Items of a page of a list.
    PageItems = "page-items", "items of a page", None;
    /// Queues in one partition.
    Queues = "queues", "queues of a partition", Some("queues_max");
    /// Distinct job types in one partition.
    JobTypes = "job-types", "job types of a partition", None;
    /// Distinct limit keys in one partition.
    LimitKeys = "limit-keys", "limit keys of a partition", None;
    /// Activations in one rate window.
    RateWindowSize = "rate-window-size", "activations of a rate window", None;
    /// Log lines kept per attempt; further ones are counted, not kept.
    LogLinesPerAttempt = "log-lines-per-attempt", "log lines of an attempt", None;
    /// Bytes of one log line; a longer one is cut.
    LogLineBytes = "log-line-bytes", "bytes of a log line", None;
    /// Documents in one partition.
    Documents = "documents", "documents of a partition", None;
    /// Documents changed by one command.
    DocumentsPerCommand = "documents-per-command", "documents of a command", None;
    /// Jobs one activation may hand out.
    ActivationJobs = "activation-jobs", "jobs of an activation", None;
    /// The longest delay, lease, backoff, deadline or hold.
    DurationMs = "duration-ms", "milliseconds of a duration", None;
    /// Requests waiting for a job in one partition.
    Waiters = "waiters", "waiting requests of a partition", Some("waiters_max");
    /// Commands waiting for the partition loop.
    LoopCommands = "loop-commands", "commands waiting for the partition", Some("loop_commands_max");
    /// Bytes of commands waiting for the partition loop.
    LoopBytes = "loop-bytes", "bytes waiting for the partition", Some("loop_mib_max");
    /// Free space of the log: below its reserve, creates are refused so that work can drain.
    LogSpace = "log-space", "free space of the log", None;
    /// How far checkpoints may lag behind the log before creates are refused.
    CheckpointLag = "checkpoint-lag", "checkpoint lag", Some("checkpoint_lag_mib_max");
    /// Items of one multi-instance.
    LoopItems = "loop-items", "items of a multi-instance", None;
    /// Bytes of variables that one step of a flow writes.
    VariableBytes = "variable-bytes", "bytes of variables", None;
    /// Call activities in each other.
    CallDepth = "call-depth", "call activities in each other", None;
    /// Live process instances below one.
    CalledInstances = "called-instances", "live process instances below one", None;
    /// Elements that one scope enters before any of its elements waits.
    ElementsWithoutWait = "elements-without-wait", "elements entered without a wait state", None;
    /// Bytes that the record of one command may take in the log.
    RecordBytes = "record-bytes", "bytes of a record", None;
    /// Bytes of commands that were handed in together.
    BatchBytes = "batch-bytes", "bytes of a batch", None;
    /// Schedules in one partition.
    Schedules = "schedules", "schedules of a partition", None;
    /// Expressions of one schedule.
    ScheduleExpressions = "schedule-expressions", "expressions of a schedule", None;
    /// Bytes of all texts and payloads of one schedule.
    ScheduleBytes = "schedule-bytes", "bytes of a schedule", None;
}

/// The limits that the engine holds, with their defaults. They are configuration of the process:
/// a lowered one refuses new work and never touches what is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// See [`Bound::NameBytes`].
    pub name_bytes_max: usize,
    /// See [`Bound::PayloadBytes`].
    pub payload_bytes_max: usize,
    /// See [`Bound::HeaderBytes`].
    pub header_bytes_max: usize,
    /// See [`Bound::MessageBytes`].
    pub message_bytes_max: usize,
    /// See [`Bound::LiveJobs`].
    pub live_jobs_max: u32,
    /// See [`Bound::Queues`].
    pub queues_max: u32,
    /// See [`Bound::JobTypes`].
    pub job_types_max: u32,
    /// See [`Bound::LimitKeys`].
    pub limit_keys_max: u32,
    /// See [`Bound::RateWindowSize`].
    pub rate_window_size_max: u32,
    /// See [`Bound::LogLinesPerAttempt`].
    pub log_lines_per_attempt_max: u32,
    /// See [`Bound::LogLineBytes`].
    pub log_line_bytes_max: usize,
    /// See [`Bound::Documents`].
    pub documents_max: u32,
    /// See [`Bound::DocumentsPerCommand`].
    pub documents_per_command_max: usize,
    /// See [`Bound::ActivationJobs`].
    pub activation_jobs_max: u32,
    /// See [`Bound::DurationMs`].
    pub duration_ms_max: u64,
    /// Request ids remembered at once; past it the oldest is forgotten before its time.
    pub request_ids_max: u32,
    /// How long a request id is remembered.
    pub request_id_ms: u64,
    /// Groups without jobs whose scheme counter is kept; past it the oldest is forgotten.
    pub idle_groups_max: u32,
    /// See [`Bound::LoopItems`].
    pub loop_items_max: u32,
    /// See [`Bound::VariableBytes`].
    pub variable_bytes_max: usize,
    /// See [`Bound::CallDepth`].
    pub call_depth_max: u32,
    /// See [`Bound::CalledInstances`].
    pub called_instances_max: u32,
    /// See [`Bound::ElementsWithoutWait`].
    pub elements_without_wait_max: u32,
    /// See [`Bound::Schedules`].
    pub schedules_max: u32,
    /// See [`Bound::ScheduleExpressions`].
    pub schedule_expressions_max: usize,
    /// Runs of one schedule that wait for the one before; further ones are skipped.
    pub schedule_queued_max: usize,
    /// Runs that one schedule catches up after an outage; further ones are skipped.
    pub schedule_catch_up_max: u32,
    /// A time that is found later than this passed while nobody was there.
    pub schedule_late_ms_max: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1000;
        Bounds {
            name_bytes_max: 256,
            payload_bytes_max: 4 << 20,
            header_bytes_max: 64 << 10,
            message_bytes_max: 10_000,
            live_jobs_max: 100_000_000,
            queues_max: 100_000,
            job_types_max: 100_000,
            limit_keys_max: 1_000_000,
            rate_window_size_max: 10_000,
            log_lines_per_attempt_max: 1_000,
            log_line_bytes_max: 4_096,
            documents_max: 1_000_000,
            documents_per_command_max: 64,
            activation_jobs_max: 10_000,
            duration_ms_max: 100 * YEAR_MS,
            request_ids_max: 1_000_000,
            request_id_ms: 10 * 60 * 1000,
            idle_groups_max: 10_000,
            loop_items_max: 100_000,
            variable_bytes_max: 4 << 20,
            call_depth_max: 1_000,
            called_instances_max: 100_000,
            elements_without_wait_max: 100_000,
            schedules_max: 100_000,
            schedule_expressions_max: 32,
            schedule_queued_max: 100,
            schedule_catch_up_max: 1_000,
            schedule_late_ms_max: 60_000,
        }
    }
}

/// The longest start of a text that fits and ends between characters.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}
