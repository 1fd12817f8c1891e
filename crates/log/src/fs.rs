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
use std::io;
use std::path::Path;

use rustix::fs::OFlags;

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
struct OsFile(fs::File);

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
        Ok(Box::new(OsFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = fs::File::options().read(true).write(true).open(path)?;
        Ok(Box::new(OsFile(file)))
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

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset + crate::little_endian::to_u64(filled);
            match std::os::unix::fs::FileExt::read_at(&self.0, rest, at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    /// Past the page cache: nobody is about to read them, and copying them there costs more than writing them.
    fn write_zeros(&self, len_bytes: usize, offset: u64) -> io::Result<()> {
        /// What a disk asks of the memory that it takes bytes from.
        const ALIGN: usize = 4096;
        let memory = vec![0; len_bytes + ALIGN];
        let aligned = memory.as_ptr().align_offset(ALIGN);
        let zeros = memory.get(aligned..).and_then(|memory| memory.get(..len_bytes));
        let zeros = zeros.expect("there is room to align them");
        let flags = rustix::fs::fcntl_getfl(&self.0)?;
        // Some file systems cannot, or not with this length.
        let direct = rustix::fs::fcntl_setfl(&self.0, flags | OFlags::DIRECT)
            .is_ok_and(|()| self.write_at(zeros, offset).is_ok());
        rustix::fs::fcntl_setfl(&self.0, flags)?;
        if direct { Ok(()) } else { self.write_at(zeros, offset) }
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.0.set_len(len_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}
