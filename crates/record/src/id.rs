//! Names of things: keys, log positions, handles.

use std::fmt;

/// Bits of a key that count inside a partition; the 13 bits above name the partition. The split
/// is the one Zeebe clients already decode, see `docs/decisions/0003-keys.md`.
pub const COUNTER_BITS: u32 = 51;

/// One log with its state machine. Numbered from 1, at most 8,191.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PartitionId(u16);

impl PartitionId {
    /// The only partition of a single-partition installation.
    pub const FIRST: PartitionId = PartitionId(1);

    /// A partition id, or `None` outside 1..=8191.
    pub fn new(id: u16) -> Option<PartitionId> {
        (1..1 << 13).contains(&id).then_some(PartitionId(id))
    }

    /// The number, 1..=8191.
    pub fn get(self) -> u16 {
        self.0
    }
}

/// Names a job (and every other numbered entity) for ever: partition above, counter below.
/// Keys of one partition grow in order of creation and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey(u64);

impl JobKey {
    /// "Nothing" where a key is expected: no entity has it.
    pub const NONE: JobKey = JobKey(0);

    /// The key with this counter in this partition.
    pub fn from_parts(partition: PartitionId, counter: u64) -> JobKey {
        debug_assert!(counter < 1 << COUNTER_BITS);
        JobKey(u64::from(partition.0) << COUNTER_BITS | counter)
    }

    /// The key a client sent. Any number is a key; most name nothing.
    pub fn from_raw(raw: u64) -> JobKey {
        JobKey(raw)
    }

    /// The number that clients see.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The counter inside the partition.
    pub fn counter(self) -> u64 {
        self.0 & ((1 << COUNTER_BITS) - 1)
    }

    /// The partition part, which may name no partition when the key came from a client.
    pub fn partition_raw(self) -> u64 {
        self.0 >> COUNTER_BITS
    }
}

/// Text: not every reader of JSON has numbers of 64 bits.
#[cfg(feature = "serde")]
impl serde::Serialize for JobKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a record in its partition's log: dense, one per frame, assigned before the append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Lsn(pub u64);

/// Who may append. Every opening of a partition starts a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Epoch(pub u32);

/// A queue inside its partition; stands for (tenant, name) in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QueueId(pub u32);

/// A limit key inside its partition; stands for (tenant, name) in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LimitId(pub u32);

/// Proof that its bearer was handed the job by one certain activation. Fences stale workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Token {
    /// The job.
    pub key: JobKey,
    /// The number of the activation, from 1. It never resets, not by an incident either.
    pub activation: u32,
}

/// Where the shell keeps a payload. Means nothing outside the process that made it, so it is
/// neither logged nor compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PayloadHandle(pub u32);

impl PayloadHandle {
    /// The handle of every empty payload.
    pub const EMPTY: PayloadHandle = PayloadHandle(u32::MAX);
}

/// A payload as the engine sees it: where it is and how long it is, never what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    /// Where the shell keeps the bytes.
    pub handle: PayloadHandle,
    /// How many bytes there are.
    pub len: u32,
}

/// How many bytes there are: where they are means nothing to others.
#[cfg(feature = "serde")]
impl serde::Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::shown::count(self.len, serializer)
    }
}

impl Payload {
    /// No bytes.
    pub const EMPTY: Payload = Payload { handle: PayloadHandle::EMPTY, len: 0 };
}

/// Two payloads are the same to the engine when they have the same length: handles are places in
/// one process's memory and differ after a restart.
impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self.len == other.len
    }
}

impl Eq for Payload {}

/// A hash that spreads a number over all bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_of_partition_one_is_the_one_zeebe_clients_expect() {
        assert_eq!(JobKey::from_parts(PartitionId::FIRST, 1).raw(), 2_251_799_813_685_249);
    }

    #[test]
    fn a_partition_id_fits_thirteen_bits() {
        assert_eq!(PartitionId::new(0), None);
        assert_eq!(PartitionId::new(8191).map(PartitionId::get), Some(8191));
        assert_eq!(PartitionId::new(8192), None);
    }
}
