//! The stamp of a checkpoint: which state it is, and where the log goes on behind it.
//!
//! # Stored form
//!
//! Little endian, written into the store under the store's own key and into every backup:
//!
//! ```text
//! version u16 = 1 | format u32 | lsn u64 | position u64 | time_ms u64 | checksum u64
//! | meta length u32 | meta | crc32c u32 of all before it
//! ```
//!
//! A new field gets a new version; a version once released is read for ever.

use crate::error::{Error, Result};

/// Longest `meta` of a stamp.
pub const META_BYTES_MAX: usize = 1 << 20;

const VERSION: u16 = 1;

/// What a checkpoint says about itself. The store keeps it and never looks into it, except that `lsn`
/// may not go back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The state holds every record up to and including this one.
    pub lsn: u64,
    /// Where the log goes on: what the log backend returned, opaque here.
    pub position: u64,
    /// Record time of the state.
    pub time_ms: u64,
    /// Checksum of the state, verified by whoever loads it.
    pub checksum: u64,
    /// Version of the entries' encoding, chosen by whoever writes them.
    pub format: u32,
    /// Anything else that belongs to exactly this checkpoint, small.
    pub meta: Vec<u8>,
}

impl Stamp {
    pub(crate) fn check(&self, newest: Option<&Self>) -> Result<()> {
        if self.meta.len() > META_BYTES_MAX {
            return Err(Error::ValueTooLarge {
                index: 0,
                bytes: length(&self.meta),
                bytes_max: u64::try_from(META_BYTES_MAX).unwrap_or(u64::MAX),
            });
        }
        match newest {
            Some(stored) if stored.lsn > self.lsn => {
                Err(Error::StampBackwards { stored: stored.lsn, new: self.lsn })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let meta_length =
            u32::try_from(self.meta.len()).expect("meta was checked against its limit");
        let mut bytes = Vec::with_capacity(50 + self.meta.len());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&self.lsn.to_le_bytes());
        bytes.extend_from_slice(&self.position.to_le_bytes());
        bytes.extend_from_slice(&self.time_ms.to_le_bytes());
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        bytes.extend_from_slice(&meta_length.to_le_bytes());
        bytes.extend_from_slice(&self.meta);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged =
            || Error::Corrupt { what: "its stamp does not match its checksum".to_owned() };
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(damaged());
        }
        let (version, rest) = body.split_first_chunk::<2>().ok_or_else(damaged)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::UnknownVersion {
                what: "the checkpoint's stamp",
                found: version.into(),
                known: VERSION.into(),
            });
        }
        Self::decode_fields(rest).ok_or_else(damaged)
    }

    fn decode_fields(bytes: &[u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first_chunk()?;
        let (lsn, rest) = rest.split_first_chunk()?;
        let (position, rest) = rest.split_first_chunk()?;
        let (time_ms, rest) = rest.split_first_chunk()?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let (meta_length, meta) = rest.split_first_chunk()?;
        if usize::try_from(u32::from_le_bytes(*meta_length)).ok()? != meta.len() {
            return None;
        }
        Some(Self {
            lsn: u64::from_le_bytes(*lsn),
            position: u64::from_le_bytes(*position),
            time_ms: u64::from_le_bytes(*time_ms),
            checksum: u64::from_le_bytes(*checksum),
            format: u32::from_le_bytes(*format),
            meta: meta.to_vec(),
        })
    }
}

pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp {
            lsn: 7,
            position: 1 << 40,
            time_ms: 3,
            checksum: 4,
            format: 5,
            meta: b"abc".to_vec(),
        }
    }

    #[test]
    fn survives_its_encoding() {
        assert_eq!(Stamp::decode(&stamp().encode()).unwrap(), stamp());
        assert_eq!(Stamp::decode(&Stamp::default().encode()).unwrap(), Stamp::default());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = stamp().encode();
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 0x10;
            assert!(Stamp::decode(&flipped).is_err(), "byte {index}");
            assert!(Stamp::decode(&bytes[..index]).is_err(), "cut at {index}");
        }
    }

    // Written down once and never changed: stores of released versions hold these bytes.
    #[test]
    fn version_1_stays_readable() {
        let bytes = [
            1, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0,
            0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 97, 98, 99,
        ];
        assert_eq!(stamp().encode()[..bytes.len()], bytes);
    }
}
