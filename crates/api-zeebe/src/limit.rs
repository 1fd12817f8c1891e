//! The limits of the wire. What the engine and the gateway bound is not repeated here.

/// Bytes of one message, both ways.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Bytes of what is sent stay this much below, as clients expect it.
const MESSAGE_BYTES_MARGIN: usize = 8 << 10;

/// Bytes of one message that we send.
pub const SENT_BYTES_MAX: usize = MESSAGE_BYTES_MAX - MESSAGE_BYTES_MARGIN;

/// Bytes of payloads that one look into the queue may hand to a poll. The poll looks again while it
/// wants more and the transport has taken what it got.
pub const POLL_BYTES_MAX: u64 = 2 << 20;

/// How long a poll waits when it does not say.
pub const WAIT_MS_DEFAULT: u64 = 10_000;

/// How long the end of a process is waited for when the caller does not say.
pub const REQUEST_MS_DEFAULT: u64 = 15_000;

/// Tags of a process instance.
pub const TAGS_MAX: usize = 10;

/// Characters of a tag.
pub const TAG_CHARS_MAX: usize = 100;

/// Characters of a business id.
pub const BUSINESS_ID_CHARS_MAX: usize = 256;

/// Jobs that a stream may have been given and not have sent. What is past it stays in the queue.
pub const STREAM_UNSENT_JOBS_MAX: u32 = 128;
