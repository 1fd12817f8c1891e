//! Bytes in events that are shown: how many there are. What stands in them is somebody's data.

use serde::ser::{SerializeMap, Serializer};

/// `{ "bytes": 12 }`.
pub(crate) fn count<S: Serializer>(len: u32, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("bytes", &len)?;
    map.end()
}

/// The same, of a field with the bytes themselves.
pub(crate) fn bytes<S: Serializer>(
    bytes: &impl AsRef<[u8]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    count(u32::try_from(bytes.as_ref().len()).unwrap_or(u32::MAX), serializer)
}
