//! The limits of the wires. What the engine and the gateway bound is not repeated here.

use std::time::Duration;

use windlass_record::bound::{Bound, Bounds};
use windlass_record::rejection::Rejection;

/// Bytes of one gRPC message from a client, and of one REST body: the largest payload fits, also as base64, and
/// what stands around it.
pub(crate) fn message_bytes_max(bounds: &Bounds) -> usize {
    const AROUND_BYTES: usize = 1 << 20;
    (bounds.payload_bytes_max / 3 * 4).saturating_add(AROUND_BYTES)
}

/// Bytes of payloads in one answer to a poll; a single larger job goes alone. Leaves room for what
/// stands around payloads, so that clients with the usual limit of 4 MiB can read the answer.
pub const POLL_BYTES_MAX: u64 = 2 << 20;

/// Jobs in one message of a work stream.
pub const STREAM_JOBS_MAX: usize = 512;

/// Bytes of jobs in one message of a work stream, about; a single larger job goes alone.
pub const STREAM_BYTES_MAX: usize = 1 << 20;

/// How long a work stream may be open before its hello.
pub const HELLO_WAIT_MAX: Duration = Duration::from_secs(10);

/// The longest wait of a poll.
pub const WAIT_MS_MAX: u64 = 10 * 60 * 1000;

/// Items of one page of a list.
pub const PAGE_ITEMS_MAX: u32 = 1_000;

/// Items of a page when the request does not say.
pub const PAGE_ITEMS_DEFAULT: u32 = 100;

/// The lease when the request does not say.
pub const LEASE_MS_DEFAULT: u64 = 60_000;

/// Retries when the request does not say.
pub const RETRIES_DEFAULT: i32 = 3;

/// The tenant when the request does not say.
pub const TENANT_DEFAULT: &str = "default";

/// Items of a page that asks for `limit`; 0 is "does not say".
pub(crate) fn page(limit: u32) -> Result<usize, Rejection> {
    let limit = if limit == 0 { PAGE_ITEMS_DEFAULT } else { limit };
    if limit > PAGE_ITEMS_MAX {
        let (max, given) = (u64::from(PAGE_ITEMS_MAX), u64::from(limit));
        return Err(Rejection::TooLarge { bound: Bound::PageItems, max, given });
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}
