//! Reading and writing little-endian integers at fixed places, without a panic on short input.

/// The `N` bytes at `at`, or nothing when the input ends before them.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// Overwrites the bytes at `at`. The caller has sized the buffer.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes
        .get_mut(at..at + value.len())
        .expect("the caller sized the buffer for this fixed layout")
        .copy_from_slice(value);
}

/// `usize` is 32 or 64 bits wide on every target we build for.
pub(crate) fn to_u64(count: usize) -> u64 {
    u64::try_from(count).expect("usize fits u64")
}

/// The count as `usize`; sizes of batches and segments are bounded far below 4 GiB.
pub(crate) fn to_usize(count: u64) -> usize {
    usize::try_from(count).expect("sizes are bounded below usize::MAX")
}
