//! Whole images under a name: the seam [`Snapshots`], with a backend in memory and one in a directory.
//!
//! A replicated log is trimmed behind the checkpoint, so a log alone cannot replace a dead node: the checkpoint must be
//! where the next node can get it. Names are ordinary file names; what is in a snapshot is the caller's business.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::LogError;
use crate::dir;
use crate::fs::{File, FileSystem};
use crate::little_endian::{array_at, put, to_u64, to_usize, u16_at, u32_at, u64_at};

/// A store of snapshots.
pub trait Snapshots: Send + Sync + fmt::Debug {
    /// Stores everything that `content` yields. MUST be atomic: after any crash the name holds what it held before, or
    /// all of the new content, durably when this returned `Ok`. Returns the size in bytes.
    fn put(&self, name: &str, content: &mut dyn Read) -> Result<u64, SnapshotError>;

    /// Opens a snapshot for reading. Damage MUST come out as an error of the reader, at its end at the latest.
    fn get(&self, name: &str) -> Result<Box<dyn Read + Send>, SnapshotError>;

    /// All snapshots, by name.
    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotError>;

    /// Removes a snapshot; it is no error when there is none.
    fn delete(&self, name: &str) -> Result<(), SnapshotError>;
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The name it was put under.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// A snapshot could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is none with this name.
    #[error("there is no snapshot {0}")]
    NotFound(String),
    /// Names are up to 200 of `a-z A-Z 0-9 - _ .`, and do not begin with a dot.
    #[error("{0:?} cannot name a snapshot")]
    InvalidName(String),
    /// The content could not be read to its end.
    #[error("failed to read the content of the snapshot")]
    Content(#[source] io::Error),
    /// The trailer is missing or does not fit.
    #[error("snapshot {0} is damaged")]
    Damaged(String),
    /// The store failed.
    #[error("failed to use the snapshot store")]
    Store(#[source] LogError),
}

const NAME_BYTES_MAX: usize = 200;

fn check_name(name: &str) -> Result<(), SnapshotError> {
    let valid = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if valid { Ok(()) } else { Err(SnapshotError::InvalidName(name.to_owned())) }
}

/// Snapshots for tests.
#[derive(Debug, Default)]
pub struct MemorySnapshots {
    by_name: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl Snapshots for MemorySnapshots {
    fn put(&self, name: &str, content: &mut dyn Read) -> Result<u64, SnapshotError> {
        check_name(name)?;
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(SnapshotError::Content)?;
        let len_bytes = to_u64(bytes.len());
        let mut by_name = self.by_name.lock().expect("no panic while the store is locked");
        by_name.insert(name.to_owned(), bytes.into());
        Ok(len_bytes)
    }

    fn get(&self, name: &str) -> Result<Box<dyn Read + Send>, SnapshotError> {
        check_name(name)?;
        let by_name = self.by_name.lock().expect("no panic while the store is locked");
        let bytes = by_name.get(name).ok_or_else(|| SnapshotError::NotFound(name.to_owned()))?;
        Ok(Box::new(io::Cursor::new(Arc::clone(bytes))))
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotError> {
        let by_name = self.by_name.lock().expect("no panic while the store is locked");
        let info = |(name, bytes): (&String, &Arc<[u8]>)| SnapshotInfo {
            name: name.clone(),
            bytes: to_u64(bytes.len()),
        };
        Ok(by_name.iter().map(info).collect())
    }

    fn delete(&self, name: &str) -> Result<(), SnapshotError> {
        check_name(name)?;
        self.by_name.lock().expect("no panic while the store is locked").remove(name);
        Ok(())
    }
}

/// Snapshots in a directory, one file each: the content, then a trailer.
///
/// ```text
///      0     4  crc32c of the content
///      4     4  magic "WLSN"
///      8     2  version 1
///     10     2  zero
///     12     8  bytes of content
/// ```
#[derive(Debug)]
pub struct FileSnapshots {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// One `put` at a time, since all use the same name for the unfinished file.
    putting: Mutex<()>,
}

const TRAILER_BYTES: usize = 20;
const MAGIC: [u8; 4] = *b"WLSN";
const VERSION: u16 = 1;
const SUFFIX: &str = ".snapshot";
const UNFINISHED: &str = ".unfinished";
const CHUNK_BYTES: usize = 256 * 1024;

impl FileSnapshots {
    /// Uses `dir`, which is created when it does not exist.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, SnapshotError> {
        let created = fs.create_dir_all(dir).map_err(|error| LogError::io("create", dir, error));
        created.map_err(SnapshotError::Store)?;
        Ok(Self { fs, dir: dir.to_owned(), putting: Mutex::new(()) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}{SUFFIX}"))
    }

    fn write_unfinished(&self, content: &mut dyn Read) -> Result<u64, SnapshotError> {
        let path = self.dir.join(UNFINISHED);
        let write_error = |error| SnapshotError::Store(LogError::io("write", &path, error));
        let file = dir::create_anew(self.fs.as_ref(), &self.dir, UNFINISHED);
        let file = file.map_err(SnapshotError::Store)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let (mut len_bytes, mut crc) = (0, 0);
        loop {
            let count = match content.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(SnapshotError::Content(error)),
            };
            let bytes = chunk.get(..count).expect("read() returns at most the buffer's length");
            file.write_at(bytes, len_bytes).map_err(write_error)?;
            crc = crc32c::crc32c_append(crc, bytes);
            len_bytes += to_u64(count);
        }
        let mut trailer = [0; TRAILER_BYTES];
        put(&mut trailer, 0, &crc.to_le_bytes());
        put(&mut trailer, 4, &MAGIC);
        put(&mut trailer, 8, &VERSION.to_le_bytes());
        put(&mut trailer, 12, &len_bytes.to_le_bytes());
        file.write_at(&trailer, len_bytes).map_err(write_error)?;
        file.sync_data().map_err(write_error)?;
        Ok(len_bytes)
    }

    fn open_file(&self, name: &str) -> Result<Box<dyn File>, SnapshotError> {
        let path = self.path(name);
        self.fs.open(&path).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                SnapshotError::NotFound(name.to_owned())
            } else {
                SnapshotError::Store(LogError::io("open", path, error))
            }
        })
    }
}

impl Snapshots for FileSnapshots {
    fn put(&self, name: &str, content: &mut dyn Read) -> Result<u64, SnapshotError> {
        check_name(name)?;
        let _one_at_a_time = self.putting.lock().expect("no panic while a snapshot is put");
        let len_bytes = self.write_unfinished(content)?;
        let fs = self.fs.as_ref();
        dir::rename(fs, &self.dir, UNFINISHED, &format!("{name}{SUFFIX}"))
            .and_then(|()| dir::sync(fs, &self.dir))
            .map_err(SnapshotError::Store)?;
        Ok(len_bytes)
    }

    fn get(&self, name: &str) -> Result<Box<dyn Read + Send>, SnapshotError> {
        check_name(name)?;
        let file = self.open_file(name)?;
        let read_error = |error| SnapshotError::Store(LogError::io("read", self.path(name), error));
        let damaged = || SnapshotError::Damaged(name.to_owned());
        let file_bytes = file.len_bytes().map_err(read_error)?;
        let len_bytes = file_bytes.checked_sub(to_u64(TRAILER_BYTES)).ok_or_else(damaged)?;
        let mut trailer = [0; TRAILER_BYTES];
        file.read_at(&mut trailer, len_bytes).map_err(read_error)?;
        let fits = array_at(&trailer, 4) == Some(MAGIC)
            && u16_at(&trailer, 8) == Some(VERSION)
            && u64_at(&trailer, 12) == Some(len_bytes);
        let crc_expected = u32_at(&trailer, 0).filter(|_| fits).ok_or_else(damaged)?;
        Ok(Box::new(SnapshotReader { file, at: 0, len_bytes, crc: 0, crc_expected }))
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotError> {
        let list_error = |error| SnapshotError::Store(LogError::io("list", &self.dir, error));
        let mut snapshots = Vec::new();
        for file_name in self.fs.list(&self.dir).map_err(list_error)? {
            let Some(name) = file_name.strip_suffix(SUFFIX).filter(|name| !name.is_empty()) else {
                continue;
            };
            let file_bytes = self.open_file(name)?.len_bytes().map_err(list_error)?;
            let bytes = file_bytes.saturating_sub(to_u64(TRAILER_BYTES));
            snapshots.push(SnapshotInfo { name: name.to_owned(), bytes });
        }
        snapshots.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(snapshots)
    }

    fn delete(&self, name: &str) -> Result<(), SnapshotError> {
        check_name(name)?;
        let fs = self.fs.as_ref();
        dir::remove_if_exists(fs, &self.path(name))
            .and_then(|()| dir::sync(fs, &self.dir))
            .map_err(SnapshotError::Store)
    }
}

#[derive(Debug)]
struct SnapshotReader {
    file: Box<dyn File>,
    at: u64,
    len_bytes: u64,
    crc: u32,
    crc_expected: u32,
}

impl Read for SnapshotReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = to_usize(self.len_bytes - self.at);
        let wanted = left.min(buffer.len());
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        let count = self.file.read_at(buffer, self.at)?;
        self.crc = crc32c::crc32c_append(self.crc, buffer.get(..count).unwrap_or_default());
        self.at += to_u64(count);
        let ended_early = count == 0 && wanted > 0;
        if ended_early || (self.at == self.len_bytes && self.crc != self.crc_expected) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the snapshot is damaged"));
        }
        Ok(count)
    }
}
