//! Backups: one checkpoint as one stream of bytes, independent of the store it came from.
//!
//! # Format, version 1
//!
//! Little endian. A checksum is crc32c over the checksum before it and everything since: blocks can be
//! neither changed, dropped, repeated nor swapped, and the last checksum vouches for the whole.
//!
//! ```text
//! header   magic "WINDLBAK" | version u32 | stamp length u32 | stamp | checksum u32
//! block    length u32, not 0 | entries … | checksum u32        any number of times
//!          an entry: key length u32 | value length u32 | key | value
//! trailer  0 u32 | blocks u32 | entries u64 | bytes of keys and values u64 | checksum u32
//! ```
//!
//! Entries ascend strictly by key through the whole stream; nothing follows the trailer. Whether a reader
//! knows the version is said in the header, before anything else is believed. A version once released is
//! read for ever; `tests/` keeps a file of each.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::range::KeyRange;
use crate::stamp::{META_BYTES_MAX, Stamp, length};
use crate::store::{Checkpoint, Entry, KEY_BYTES_MAX, VALUE_BYTES_MAX, View};

const MAGIC: [u8; 8] = *b"WINDLBAK";
const VERSION: u32 = 1;

/// A block is closed when it has this many bytes; its last entry may make it longer.
const BLOCK_BYTES: usize = 256 << 10;

/// No block is longer: a block that is full but for one byte, and the largest entry.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX + 8;

/// Longest encoded stamp.
const STAMP_BYTES_MAX: usize = META_BYTES_MAX + 1_024;

/// How far a backup or restore has come, reported after each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Entries so far.
    pub entries: u64,
    /// Bytes of the stream so far.
    pub bytes: u64,
}

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The checkpoint it is.
    pub stamp: Stamp,
    /// Its entries.
    pub entries: u64,
    /// Length of the stream.
    pub bytes: u64,
}

/// Writes everything that `view` shows. Give it a snapshot: a store would do, but its stamp could be
/// newer than its entries. Making `output` durable is the caller's business.
pub fn write_backup(
    view: &dyn View,
    output: impl Write,
    mut progress: impl FnMut(Progress),
) -> Result<Summary> {
    let stamp = view.stamp().ok_or(Error::Empty)?;
    let mut writer = Writer::begin(output, &stamp)?;
    let mut failure = None;
    view.scan_with(&KeyRange::all(), &mut |key, value| match writer.add(key, value) {
        Ok(block_closed) => {
            if block_closed {
                progress(writer.progress());
            }
            ControlFlow::Continue(())
        }
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    if let Some(error) = failure {
        return Err(error);
    }
    let done = writer.end()?;
    progress(done);
    Ok(Summary { stamp, entries: done.entries, bytes: done.bytes })
}

/// Reads a backup into `store`, which must never have been written. All of it becomes visible at once, or
/// nothing: a backup that turns out damaged leaves the store empty.
pub fn restore_backup(
    input: impl Read,
    store: &dyn Checkpoint,
    mut progress: impl FnMut(Progress),
) -> Result<Summary> {
    if let Some(stamp) = store.stamp() {
        return Err(Error::NotEmpty { lsn: stamp.lsn });
    }
    let mut reader = Reader::begin(input)?;
    let stamp = reader.stamp.clone();
    let mut entries = std::iter::from_fn(|| {
        let next = reader.next_entry(&mut progress).transpose()?;
        Some(next.map(|(key, value)| Entry::put(key, value)))
    });
    store.write(&mut entries, &stamp)?;
    Ok(reader.summary())
}

/// Reads a backup to its end and checks all of it.
pub fn verify_backup(input: impl Read, mut progress: impl FnMut(Progress)) -> Result<Summary> {
    let mut reader = Reader::begin(input)?;
    let mut last_key = Vec::new();
    while let Some((key, _)) = reader.next_entry(&mut progress)? {
        if key <= last_key {
            return Err(reader.damaged_here("a key above the one before it"));
        }
        last_key = key;
    }
    Ok(reader.summary())
}

struct Writer<W> {
    output: W,
    checksum: u32,
    block: Vec<u8>,
    blocks: u32,
    content_bytes: u64,
    done: Progress,
}

impl<W: Write> Writer<W> {
    fn begin(output: W, stamp: &Stamp) -> Result<Self> {
        let stamp = stamp.encode();
        let mut writer = Self {
            output,
            checksum: 0,
            block: Vec::with_capacity(BLOCK_BYTES),
            blocks: 0,
            content_bytes: 0,
            done: Progress::default(),
        };
        let stamp_length = u32::try_from(stamp.len()).expect("a stamp's length is limited");
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&stamp_length.to_le_bytes())?;
        writer.put(&stamp)?;
        writer.put_checksum()?;
        Ok(writer)
    }

    /// Returns whether that closed a block.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let narrow = |bytes: &[u8]| u32::try_from(bytes.len()).expect("stores limit both lengths");
        self.block.extend_from_slice(&narrow(key).to_le_bytes());
        self.block.extend_from_slice(&narrow(value).to_le_bytes());
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        self.content_bytes += length(key) + length(value);
        self.done.entries += 1;
        let full = self.block.len() >= BLOCK_BYTES;
        if full {
            self.close_block()?;
        }
        Ok(full)
    }

    fn close_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let block_length = u32::try_from(block.len()).expect("a block's length is limited");
        self.put(&block_length.to_le_bytes())?;
        self.put(&block)?;
        self.put_checksum()?;
        self.block = block;
        self.block.clear();
        self.blocks += 1;
        Ok(())
    }

    fn end(mut self) -> Result<Progress> {
        self.close_block()?;
        self.put(&0_u32.to_le_bytes())?;
        self.put(&self.blocks.to_le_bytes())?;
        self.put(&self.done.entries.to_le_bytes())?;
        self.put(&self.content_bytes.to_le_bytes())?;
        self.put_checksum()?;
        self.output.flush().map_err(write_failed)?;
        Ok(self.done)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.put_plain(bytes)
    }

    fn put_checksum(&mut self) -> Result<()> {
        self.put_plain(&self.checksum.to_le_bytes())
    }

    fn put_plain(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(write_failed)?;
        self.done.bytes += length(bytes);
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.done
    }
}

fn write_failed(source: io::Error) -> Error {
    Error::Io { action: "write the backup", source }
}

struct Reader<R> {
    input: R,
    stamp: Stamp,
    checksum: u32,
    /// Where the part being read begins: what an error names.
    part_offset: u64,
    block: Vec<u8>,
    block_at: usize,
    blocks: u32,
    content_bytes: u64,
    ended: bool,
    done: Progress,
}

impl<R: Read> Reader<R> {
    fn begin(input: R) -> Result<Self> {
        let mut reader = Self {
            input,
            stamp: Stamp::default(),
            checksum: 0,
            part_offset: 0,
            block: Vec::new(),
            block_at: 0,
            blocks: 0,
            content_bytes: 0,
            ended: false,
            done: Progress::default(),
        };
        if reader.take::<8>()? != MAGIC {
            return Err(reader.damaged_here("the first bytes of a backup"));
        }
        // Believed before its checksum: another version may keep its checksum elsewhere.
        let version = u32::from_le_bytes(reader.take()?);
        if version != VERSION {
            return Err(Error::UnknownVersion {
                what: "the backup",
                found: version,
                known: VERSION,
            });
        }
        let stamp_length = u32::from_le_bytes(reader.take()?);
        let stamp = reader.take_long(stamp_length, STAMP_BYTES_MAX)?;
        reader.take_checksum()?;
        reader.stamp = Stamp::decode(&stamp)?;
        Ok(reader)
    }

    fn next_entry(
        &mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.ended {
            return Ok(None);
        }
        if self.block_at == self.block.len() && !self.next_block()? {
            self.ended = true;
            progress(self.done);
            return Ok(None);
        }
        let entry = self.entry_in_block().ok_or_else(|| self.damaged_here("whole entries"))?;
        self.content_bytes += length(&entry.0) + length(&entry.1);
        self.done.entries += 1;
        if self.block_at == self.block.len() {
            progress(self.done);
        }
        Ok(Some(entry))
    }

    fn entry_in_block(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let rest = self.block.get(self.block_at..)?;
        let (key_length, rest) = rest.split_first_chunk()?;
        let (value_length, rest) = rest.split_first_chunk()?;
        let key_length = usize::try_from(u32::from_le_bytes(*key_length)).ok()?;
        let value_length = usize::try_from(u32::from_le_bytes(*value_length)).ok()?;
        let (key, rest) = rest.split_at_checked(key_length)?;
        let (value, _) = rest.split_at_checked(value_length)?;
        let entry = (key.to_vec(), value.to_vec());
        self.block_at += 8 + key_length + value_length;
        Some(entry)
    }

    /// Reads and checks the next block; `false` if it was the trailer.
    fn next_block(&mut self) -> Result<bool> {
        self.part_offset = self.done.bytes;
        let block_length = u32::from_le_bytes(self.take()?);
        if block_length == 0 {
            self.trailer()?;
            return Ok(false);
        }
        self.block = self.take_long(block_length, BLOCK_BYTES_MAX)?;
        self.block_at = 0;
        self.take_checksum()?;
        self.blocks += 1;
        Ok(true)
    }

    fn trailer(&mut self) -> Result<()> {
        let blocks = u32::from_le_bytes(self.take()?);
        let entries = u64::from_le_bytes(self.take()?);
        let content_bytes = u64::from_le_bytes(self.take()?);
        self.take_checksum()?;
        if (blocks, entries, content_bytes) != (self.blocks, self.done.entries, self.content_bytes)
        {
            return Err(self.damaged_here("the counts of what came before"));
        }
        self.part_offset = self.done.bytes;
        let behind = self.input.read(&mut [0]).map_err(read_failed)?;
        if behind != 0 {
            return Err(self.damaged_here("the end"));
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take_plain()?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        Ok(bytes)
    }

    /// Reads `bytes` bytes, growing as they come: a damaged length must not become a huge allocation.
    fn take_long(&mut self, bytes: u32, bytes_max: usize) -> Result<Vec<u8>> {
        if usize::try_from(bytes).map_or(true, |bytes| bytes > bytes_max) {
            return Err(self.damaged_here("a length within its limit"));
        }
        let mut taken = Vec::new();
        let limited = &mut (&mut self.input).take(bytes.into());
        limited.read_to_end(&mut taken).map_err(read_failed)?;
        if length(&taken) != u64::from(bytes) {
            return Err(self.damaged_here("more bytes: the backup ends early"));
        }
        self.checksum = crc32c::crc32c_append(self.checksum, &taken);
        self.done.bytes += length(&taken);
        Ok(taken)
    }

    fn take_checksum(&mut self) -> Result<()> {
        if u32::from_le_bytes(self.take_plain()?) != self.checksum {
            return Err(self.damaged_here("bytes that match their checksum"));
        }
        Ok(())
    }

    fn take_plain<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|source| {
            if source.kind() == io::ErrorKind::UnexpectedEof {
                self.damaged_here("more bytes: the backup ends early")
            } else {
                read_failed(source)
            }
        })?;
        self.done.bytes += length(&bytes);
        Ok(bytes)
    }

    fn damaged_here(&self, expected: &'static str) -> Error {
        Error::BackupDamaged { offset: self.part_offset, expected }
    }

    fn summary(&self) -> Summary {
        Summary { stamp: self.stamp.clone(), entries: self.done.entries, bytes: self.done.bytes }
    }
}

fn read_failed(source: io::Error) -> Error {
    Error::Io { action: "read the backup", source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryCheckpoint;

    fn filled(entries: u32) -> MemoryCheckpoint {
        let store = MemoryCheckpoint::new();
        let stamp =
            Stamp { lsn: 9, position: 8, time_ms: 7, meta: b"m".to_vec(), ..Stamp::default() };
        let mut puts = (0..entries).map(|n| {
            let value = n.to_le_bytes().repeat(usize::try_from(n % 50).unwrap());
            Ok(Entry::put(format!("k{n:08}").into_bytes(), value))
        });
        store.write(&mut puts, &stamp).unwrap();
        store
    }

    fn backup(store: &MemoryCheckpoint) -> (Vec<u8>, Summary) {
        let mut bytes = Vec::new();
        let snapshot = store.snapshot().unwrap();
        let summary = write_backup(snapshot.as_ref(), &mut bytes, |_| {}).unwrap();
        (bytes, summary)
    }

    #[test]
    fn restores_what_was_backed_up() {
        for entries in [0, 1, 20_000] {
            let store = filled(entries);
            let (bytes, summary) = backup(&store);
            assert_eq!(summary.entries, u64::from(entries));
            assert_eq!(summary.bytes, length(&bytes));
            assert_eq!(verify_backup(bytes.as_slice(), |_| {}).unwrap(), summary);

            let other = MemoryCheckpoint::new();
            let mut last = Progress::default();
            assert_eq!(restore_backup(bytes.as_slice(), &other, |at| last = at).unwrap(), summary);
            assert_eq!(last, Progress { entries: summary.entries, bytes: summary.bytes });
            assert_eq!(other.disk().contents(), store.disk().contents());
            assert_eq!(other.stamp(), store.stamp());
        }
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed_and_leaves_nothing() {
        let (bytes, _) = backup(&filled(40));
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 0x04;
            for damaged in [flipped.as_slice(), &bytes[..index]] {
                let store = MemoryCheckpoint::new();
                let error = restore_backup(damaged, &store, |_| {}).unwrap_err();
                assert!(
                    matches!(error, Error::BackupDamaged { .. } | Error::UnknownVersion { .. }),
                    "byte {index}: {error}"
                );
                assert!(store.stamp().is_none() && store.disk().contents().is_empty());
                assert!(verify_backup(damaged, |_| {}).is_err());
            }
        }
    }

    #[test]
    fn an_error_names_the_damaged_block() {
        let (mut bytes, _) = backup(&filled(20_000));
        let index = bytes.len() / 2;
        bytes[index] ^= 1;
        let Err(Error::BackupDamaged { offset, .. }) = verify_backup(bytes.as_slice(), |_| {})
        else {
            panic!("damage was not noticed");
        };
        let index = u64::try_from(index).unwrap();
        assert!(offset <= index && index - offset < 300_000, "{offset} for {index}");
    }

    #[test]
    fn bytes_behind_the_end_are_damage() {
        let (mut bytes, _) = backup(&filled(3));
        bytes.push(0);
        assert!(verify_backup(bytes.as_slice(), |_| {}).unwrap_err().is_damage());
    }

    #[test]
    fn refuses_a_store_with_content_and_an_empty_source() {
        let store = filled(3);
        let (bytes, _) = backup(&store);
        let refused = restore_backup(bytes.as_slice(), &store, |_| {}).unwrap_err();
        assert!(matches!(refused, Error::NotEmpty { lsn: 9 }));
        let empty = MemoryCheckpoint::new();
        let refused = write_backup(&empty, Vec::new(), |_| {}).unwrap_err();
        assert!(matches!(refused, Error::Empty));
    }
}
