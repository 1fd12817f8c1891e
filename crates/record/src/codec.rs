//! The encoding of events, version 1.
//!
//! ```text
//! frame payload = version u8, milliseconds since the batch's time, event*
//! event         = tag u8, fields in the order of the struct
//! integers      = LEB128; signed ones zigzagged first
//! text, bytes   = length, bytes
//! option        = 0, or 1 and the value
//! ```
//!
//! The version rule: a tag or a field's meaning never changes. A new event takes a new tag; a
//! changed event takes a new tag and the old one stays readable for ever. The version byte changes
//! only if the primitives do. `tests/fixtures` holds bytes written by each released version.
//!
//! Payload bytes stand in the frame but not in the event, which knows a handle: a [`Payloads`]
//! gives them out while encoding and takes them in while decoding.

mod events;
mod fields;
mod flow;
mod primitives;
mod schedule;
mod workflow;

pub use events::{decode_event, decode_outcome, encode_event, encode_outcome};
pub use fields::{decode_failures, decode_limit_settings, encode_failures, encode_limit_settings};
pub use fields::{decode_options, decode_queue_settings, encode_options, encode_queue_settings};
pub use flow::Field;
pub use primitives::{Decoder, Encoder};
pub use schedule::{
    decode_schedule_event, decode_schedule_settings, encode_schedule_event,
    encode_schedule_settings,
};

use crate::id::Payload;

/// The first byte of every frame payload written by this version.
pub const VERSION: u8 = 1;

/// Keeps payload bytes for the engine.
pub trait Payloads {
    /// The bytes of a payload that was kept.
    fn bytes(&self, payload: Payload) -> &[u8];
    /// Keeps bytes.
    fn keep(&mut self, bytes: &[u8]) -> Payload;
}

/// Bytes that no version of this program wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside a field.
    Truncated,
    /// A number does not fit its field.
    NumberTooLarge,
    /// Text is not UTF-8.
    NotText,
    /// No event or variant has this tag.
    UnknownTag {
        /// What was being read.
        field: &'static str,
        /// The tag.
        tag: u8,
    },
    /// The frame was written by a later version.
    UnknownVersion {
        /// Its version.
        version: u8,
    },
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Truncated => f.write_str("record ends inside a field"),
            DecodeError::NumberTooLarge => f.write_str("number does not fit its field"),
            DecodeError::NotText => f.write_str("text is not UTF-8"),
            DecodeError::UnknownTag { field, tag } => write!(f, "unknown tag {tag} of {field}"),
            DecodeError::UnknownVersion { version } => {
                write!(f, "record version {version} is newer than this program")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
