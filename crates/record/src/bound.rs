//! Every queue, body, batch, name and log has a limit, and every limit has a name.

use std::fmt;

/// Names a limit in a rejection, so that a client learns which one it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Bytes of a tenant, queue, type, group, worker, key or document name.
    NameBytes,
    /// Bytes of a job's payload, a result, a document, a deployed file, or an object of variables.
    PayloadBytes,
    /// Bytes of a job's headers.
    HeaderBytes,
    /// Bytes of an error message; a longer one is cut, never refused.
    MessageBytes,
    /// Items in one batch.
    BatchItems,
    /// Jobs that are not final, in one partition.
    LiveJobs,
    /// Items of a page of a list.
    PageItems,
    /// Queues in one partition.
    Queues,
    /// Distinct job types in one partition.
    JobTypes,
    /// Distinct limit keys in one partition.
    LimitKeys,
    /// Activations in one rate window.
    RateWindowSize,
    /// Log lines kept per attempt; further ones are counted, not kept.
    LogLinesPerAttempt,
    /// Bytes of one log line; a longer one is cut.
    LogLineBytes,
    /// Documents in one partition.
    Documents,
    /// Documents changed by one command.
    DocumentsPerCommand,
    /// Jobs one activation may hand out.
    ActivationJobs,
    /// The longest delay, lease, backoff, deadline or hold.
    DurationMs,
    /// Requests waiting for a job in one partition.
    Waiters,
    /// Commands waiting for the partition loop.
    LoopCommands,
    /// Bytes of commands waiting for the partition loop.
    LoopBytes,
    /// Free space of the log: below its reserve, creates are refused so that work can drain.
    LogSpace,
    /// How far checkpoints may lag behind the log before creates are refused.
    CheckpointLag,
    /// Items of one multi-instance.
    LoopItems,
    /// Bytes of variables that one step of a flow writes.
    VariableBytes,
    /// Call activities in each other.
    CallDepth,
    /// Live process instances below one.
    CalledInstances,
    /// Elements that one scope enters before any of its elements waits.
    ElementsWithoutWait,
    /// Bytes that the record of one command may take in the log.
    RecordBytes,
    /// Bytes of commands that were handed in together.
    BatchBytes,
    /// Schedules in one partition.
    Schedules,
    /// Expressions of one schedule.
    ScheduleExpressions,
    /// Bytes of all texts and payloads of one schedule.
    ScheduleBytes,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::NameBytes => "bytes of a name",
            Bound::PayloadBytes => "bytes of a payload",
            Bound::HeaderBytes => "bytes of headers",
            Bound::MessageBytes => "bytes of a message",
            Bound::BatchItems => "items of a batch",
            Bound::LiveJobs => "live jobs of a partition",
            Bound::PageItems => "items of a page",
            Bound::Queues => "queues of a partition",
            Bound::JobTypes => "job types of a partition",
            Bound::LimitKeys => "limit keys of a partition",
            Bound::RateWindowSize => "activations of a rate window",
            Bound::LogLinesPerAttempt => "log lines of an attempt",
            Bound::LogLineBytes => "bytes of a log line",
            Bound::Documents => "documents of a partition",
            Bound::DocumentsPerCommand => "documents of a command",
            Bound::ActivationJobs => "jobs of an activation",
            Bound::DurationMs => "milliseconds of a duration",
            Bound::Waiters => "waiting requests of a partition",
            Bound::LoopCommands => "commands waiting for the partition",
            Bound::LoopBytes => "bytes waiting for the partition",
            Bound::LogSpace => "free space of the log",
            Bound::CheckpointLag => "checkpoint lag",
            Bound::LoopItems => "items of a multi-instance",
            Bound::VariableBytes => "bytes of variables",
            Bound::CallDepth => "call activities in each other",
            Bound::CalledInstances => "live process instances below one",
            Bound::ElementsWithoutWait => "elements entered without a wait state",
            Bound::RecordBytes => "bytes of a record",
            Bound::BatchBytes => "bytes of a batch",
            Bound::Schedules => "schedules of a partition",
            Bound::ScheduleExpressions => "expressions of a schedule",
            Bound::ScheduleBytes => "bytes of a schedule",
        })
    }
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
