//! What the file backend needs from a file system, and nothing else.
//!
//! This is the seam at which the simulator takes the place of the operating system: `windlass-sim` implements it with a
//! disk that forgets, tears and reorders whatever was not synced. So each method says what it promises **after a loss
//! of power**, not only while the machine runs:
//!
//! * Bytes written are durable after `sync_data` of their file returned `Ok`, not before. Until then each of them may
//!   be old or new, in any combination and any order of sectors.
//! * A name (`create`, `rename`, `remove`) is durable after `sync_dir` of its directory returned `Ok`. Syncing a file
//!   does not make its name durable.
//! * After `sync_data` failed, nothing is known about the bytes written since the last good one, **and a later sync
//!   that succeeds proves nothing about them**: kernels forget which pages they failed to write. Whoever goes on must
//!   write the bytes again.

use std::fmt;
use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;

use crate::batch::BLOCK_BYTES;
use crate::little_endian::to_u64;

/// A file system. Object-safe, shared between threads.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Creates a directory and its parents, where they do not exist.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Creates an empty file for reading and writing; MUST fail when the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// The names of the files in a directory, in any order; `NotFound` when there is no such directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Gives a file another name in the same directory, atomically, in place of a file that has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name. Handles that are open keep working.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Bytes that can still be allocated where `dir` is.
    fn available_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Locks `path`, which is created when it does not exist, against every other process and every other call, until
    /// the lock is dropped or the process ends. MUST fail with `WouldBlock` when it is taken.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
}

/// An open file.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads into the front of `buffer` and returns how many bytes; fewer than asked only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes`; the file grows when they reach past its end.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// The same for bytes that are hardly read again: past the system's cache, where it has a way. Whole blocks at a
    /// block's place, from memory that begins at one, take that way.
    fn write_blocks(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)
    }

    /// Writes so many zeros, all of which the disk then has a place for. Cheaper than writing bytes, where the system
    /// has a way.
    fn write_zeros(&self, len_bytes: usize, offset: u64) -> io::Result<()> {
        self.write_at(&vec![0; len_bytes], offset)
    }

    /// Cuts the file, or grows it with zeros that may not be backed by disk space.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;

    /// Makes everything written so far durable, the length too. An error is final, see the module's third promise.
    fn sync_data(&self) -> io::Result<()>;

    /// The length of the file.
    fn len_bytes(&self) -> io::Result<u64>;
}

/// A lock that is held until it is dropped.
pub trait Lock: Send + Sync + fmt::Debug {}

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFileSystem;

#[derive(Debug)]
struct OsFile {
    file: fs::File,
    /// The same file once more, past the page cache; nothing where that cannot be.
    direct: OnceLock<Option<fs::File>>,
    /// It took the flag, and then not the write.
    refuses_direct: AtomicBool,
}

/// Zeros to write; a disk takes them from here again and again.
#[repr(align(4096))]
struct Zeros([u8; 16 * BLOCK_BYTES]);

const _: () = assert!(align_of::<Zeros>() == BLOCK_BYTES);

static ZEROS: Zeros = Zeros([0; 16 * BLOCK_BYTES]);

#[derive(Debug)]
struct OsLock(#[allow(dead_code, reason = "held for its lock, which ends with the file")] fs::File);

impl Lock for OsLock {}

impl FileSystem for OsFileSystem {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(dir)?;
        // The new directory's own name must be durable too, up to the first ancestor that was there before; syncing
        // all of them is simpler than knowing which, and this runs once in a log's life.
        for ancestor in dir.ancestors().skip(1) {
            let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            match self.sync_dir(ancestor) {
                // An ancestor that we may not read was not created by us.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
                result => result?,
            }
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = fs::File::options().read(true).write(true).create_new(true).open(path)?;
        Ok(Box::new(OsFile::new(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = fs::File::options().read(true).write(true).open(path)?;
        Ok(Box::new(OsFile::new(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // Our own names are ASCII; whatever is not UTF-8 is not ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<u64> {
        let stats = rustix::fs::statvfs(dir)?;
        Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file =
            fs::File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(OsLock(file))),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl OsFile {
    fn new(file: fs::File) -> OsFile {
        OsFile { file, direct: OnceLock::new(), refuses_direct: AtomicBool::new(false) }
    }

    fn direct(&self) -> Option<&fs::File> {
        let open = || {
            // By the handle and not by the name, which may be another file's by now.
            let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
            fs::File::options().write(true).custom_flags(flags).open(path).ok()
        };
        let direct = self.direct.get_or_init(open).as_ref();
        direct.filter(|_| !self.refuses_direct.load(Ordering::Relaxed))
    }
}

/// Whether the file system says that it cannot do this, not that it failed. The rest of a short write may be no
/// whole blocks.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset + to_u64(filled);
            match FileExt::read_at(&self.file, rest, at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_blocks(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_block = bytes.as_ptr().align_offset(BLOCK_BYTES) == 0
            && bytes.len().is_multiple_of(BLOCK_BYTES);
        if !is_block || !offset.is_multiple_of(to_u64(BLOCK_BYTES)) {
            return self.write_at(bytes, offset);
        }
        let direct = self.direct().map(|direct| direct.write_all_at(bytes, offset));
        match direct {
            None => self.write_at(bytes, offset),
            Some(Err(error)) if is_refusal(&error) => {
                self.refuses_direct.store(true, Ordering::Relaxed);
                self.write_at(bytes, offset)
            }
            Some(result) => result,
        }
    }

    /// Past the page cache: nobody is about to read them, and copying them there costs more than writing them.
    fn write_zeros(&self, len_bytes: usize, offset: u64) -> io::Result<()> {
        let slices = [IoSlice::new(&ZEROS.0); 16];
        let mut written = 0;
        while written < len_bytes {
            let at = offset + to_u64(written);
            let left = len_bytes - written;
            let whole = slices.get(..(left / ZEROS.0.len()).min(slices.len())).unwrap_or_default();
            let direct = if whole.is_empty() { None } else { self.direct() };
            written += match direct.map(|direct| rustix::io::pwritev(direct, whole, at)) {
                Some(Ok(count)) if count > 0 => count,
                // Whatever was wrong, this write, or the sync behind it, says so too.
                Some(_) | None => {
                    let rest = ZEROS.0.get(..left).unwrap_or(&ZEROS.0);
                    self.write_at(rest, at)?;
                    rest.len()
                }
            };
        }
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Past the cache or not: whoever reads the file sees what was written last.
    #[test]
    fn blocks_zeros_and_bytes_are_read_back_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        // Where there is a file system in memory, one that may not know the way past the cache.
        let shared = tempfile::tempdir_in("/dev/shm");
        for dir in [Some(dir.path()), shared.as_ref().ok().map(|dir| dir.path())] {
            let Some(dir) = dir else { continue };
            let file = OsFileSystem.create(&dir.join("file")).unwrap();
            let mut expected = vec![0; 40 * BLOCK_BYTES + 17];
            file.write_zeros(expected.len(), 0).unwrap();
            let memory: Vec<u8> =
                (0..8 * BLOCK_BYTES).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let aligned = memory.as_ptr().align_offset(BLOCK_BYTES);
            let writes = [
                (aligned..aligned + 2 * BLOCK_BYTES, 3 * BLOCK_BYTES),
                (aligned..aligned + 2 * BLOCK_BYTES, 4 * BLOCK_BYTES),
                (aligned + 1..aligned + 1 + BLOCK_BYTES, 5 * BLOCK_BYTES),
                (aligned..aligned + BLOCK_BYTES, 7 * BLOCK_BYTES + 5),
                (aligned..aligned + 100, 9 * BLOCK_BYTES),
                (aligned..aligned + BLOCK_BYTES, 39 * BLOCK_BYTES),
            ];
            let mut read = vec![1; expected.len()];
            for (bytes, at) in writes {
                file.write_blocks(&memory[bytes.clone()], to_u64(at)).unwrap();
                expected[at..at + bytes.len()].copy_from_slice(&memory[bytes]);
                // What is read stands in the cache from then on, and the next write goes past it.
                assert_eq!(file.read_at(&mut read, 0).unwrap(), expected.len());
                assert!(read == expected, "after the write at {at}");
            }
            file.sync_data().unwrap();
            let again = OsFileSystem.open(&dir.join("file")).unwrap();
            assert_eq!(again.read_at(&mut read, 0).unwrap(), expected.len());
            assert!(read == expected);
        }
    }
}
