//! A disk in memory that keeps exactly what the file system seam promises, and nothing more.
//!
//! There are two versions of everything: what programs see **now**, and what is **durable**. A write changes the first;
//! only a sync carries it to the second. At a loss of power each write that was not synced is, by chance, kept, lost, or
//! torn at sectors of 512 bytes, independently of the writes before it, so that a later write may survive an earlier one.
//! Names that were not synced may be lost too, from some point on or one by one.
//!
//! A sync that fails behaves as kernels do: some of the bytes have reached the disk, programs go on seeing all of them,
//! and later syncs succeed without ever writing them again.
//!
//! Simplified: directories are durable when created, and reads never fail.
//!
//! ```
//! use std::path::Path;
//! use windlass_log::fs::FileSystem;
//! use windlass_sim::{CrashPoint, Restart, SimDisk};
//!
//! let disk = SimDisk::new(42);
//! let dir = Path::new("/data");
//! disk.create_dir_all(dir)?;
//! let file = disk.create(&dir.join("file"))?;
//! file.write_at(b"never synced", 0)?;
//! disk.crash_at(CrashPoint::Sync(1));
//! assert!(file.sync_data().is_err());
//! disk.restart(Restart::PowerLoss);
//! assert!(disk.list(dir)?.len() <= 1);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use windlass_log::fs::{File, FileSystem, Lock};

use crate::random::Random;

/// What disks write as one.
pub const SECTOR_BYTES: usize = 512;

/// When the machine stops: at the n-th operation of a kind from now, counted from 1. That operation fails, and so does
/// everything after it; whether it took effect is left to chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// At a write or a change of a file's length.
    Write(u64),
    /// At a sync of a file.
    Sync(u64),
    /// At a create, rename or remove.
    Name(u64),
    /// At a sync of a directory.
    DirectorySync(u64),
    /// At any of these.
    Operation(u64),
}

/// What a restart leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// The machine lost power: what was not synced is up to chance.
    PowerLoss,
    /// Only the process ended: programs see everything it wrote, also what is not durable.
    ProcessKilled,
}

/// Operations so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Writes and changes of length.
    pub writes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Creates, renames and removes.
    pub names: u64,
    /// Syncs of directories.
    pub directory_syncs: u64,
}

impl OperationCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.writes + self.syncs + self.names + self.directory_syncs
    }
}

/// A handle on a simulated disk; clones are handles on the same one.
#[derive(Debug, Clone)]
pub struct SimDisk {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Debug)]
struct Disk {
    random: Random,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names_now: BTreeMap<PathBuf, u64>,
    names_durable: BTreeMap<PathBuf, u64>,
    names_pending: Vec<NameChange>,
    directories: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    /// Handles of an earlier life of the machine are dead.
    life: u64,
    crashed: bool,
    counts: OperationCounts,
    crash_at: Option<Trigger>,
    sync_failure_at: Option<u64>,
    capacity_bytes: Option<u64>,
}

#[derive(Debug, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Debug, Clone)]
enum NameChange {
    Create { path: PathBuf, inode: u64 },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Sync,
    Name,
    DirectorySync,
}

/// A crash point in absolute counts.
#[derive(Debug, Clone, Copy)]
struct Trigger {
    kind: Option<Kind>,
    at: u64,
}

impl SimDisk {
    /// An empty disk whose faults follow from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let disk = Disk {
            random: Random::new(seed),
            inodes: BTreeMap::new(),
            next_inode: 1,
            names_now: BTreeMap::new(),
            names_durable: BTreeMap::new(),
            names_pending: Vec::new(),
            directories: BTreeSet::new(),
            locks: BTreeSet::new(),
            life: 0,
            crashed: false,
            counts: OperationCounts::default(),
            crash_at: None,
            sync_failure_at: None,
            capacity_bytes: None,
        };
        Self { disk: Arc::new(Mutex::new(disk)) }
    }

    /// Sets when the machine stops; an earlier setting is forgotten.
    pub fn crash_at(&self, point: CrashPoint) {
        let mut disk = self.lock_disk();
        let (kind, count) = match point {
            CrashPoint::Write(count) => (Some(Kind::Write), count),
            CrashPoint::Sync(count) => (Some(Kind::Sync), count),
            CrashPoint::Name(count) => (Some(Kind::Name), count),
            CrashPoint::DirectorySync(count) => (Some(Kind::DirectorySync), count),
            CrashPoint::Operation(count) => (None, count),
        };
        let at = disk.count(kind) + count;
        disk.crash_at = Some(Trigger { kind, at });
    }

    /// Stops the machine at once.
    pub fn crash_now(&self) {
        self.lock_disk().crashed = true;
    }

    /// Whether the machine has stopped.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.lock_disk().crashed
    }

    /// Starts the machine again. Handles and locks of its earlier life are dead.
    pub fn restart(&self, restart: Restart) {
        let mut disk = self.lock_disk();
        if restart == Restart::PowerLoss {
            disk.lose_power();
        }
        disk.life += 1;
        disk.crashed = false;
        disk.crash_at = None;
        disk.locks.clear();
    }

    /// The n-th sync of a file from now on fails; the machine goes on.
    pub fn fail_sync_at(&self, count: u64) {
        let mut disk = self.lock_disk();
        disk.sync_failure_at = Some(disk.counts.syncs + count);
    }

    /// Nothing breaks any more, until told again.
    pub fn clear_faults(&self) {
        let mut disk = self.lock_disk();
        disk.crash_at = None;
        disk.sync_failure_at = None;
    }

    /// How many bytes all files may have together.
    pub fn set_capacity_bytes(&self, capacity_bytes: Option<u64>) {
        self.lock_disk().capacity_bytes = capacity_bytes;
    }

    /// Operations since the disk was made.
    #[must_use]
    pub fn counts(&self) -> OperationCounts {
        self.lock_disk().counts
    }

    /// The paths of all files.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.lock_disk().names_now.keys().cloned().collect()
    }

    /// The content of a file as programs see it.
    #[must_use]
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let disk = self.lock_disk();
        let inode = disk.names_now.get(path)?;
        disk.inodes.get(inode).map(|inode| inode.now.clone())
    }

    /// Replaces the content of an existing file, durably: rot, or a hand in the wrong place.
    pub fn set_content(&self, path: &Path, content: Vec<u8>) {
        let mut disk = self.lock_disk();
        let number = disk.names_now.get(path).copied();
        if let Some(inode) = number.and_then(|number| disk.inodes.get_mut(&number)) {
            inode.pending.clear();
            inode.durable.clone_from(&content);
            inode.now = content;
        }
    }

    /// Flips one bit of a file, durably. Returns false where there is none.
    pub fn flip_bit(&self, path: &Path, offset: usize, bit: u32) -> bool {
        let Some(mut content) = self.content(path) else { return false };
        let Some(byte) = content.get_mut(offset) else { return false };
        *byte ^= 1_u8.rotate_left(bit);
        self.set_content(path, content);
        true
    }

    /// Another disk with the same content, all of it durable, and chance of its own.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let copy = Self::new(seed);
        let disk = self.lock_disk();
        let mut copied = copy.lock_disk();
        copied.next_inode = disk.next_inode;
        copied.directories.clone_from(&disk.directories);
        copied.names_now.clone_from(&disk.names_now);
        copied.names_durable.clone_from(&disk.names_now);
        for (number, inode) in &disk.inodes {
            let (now, durable) = (inode.now.clone(), inode.now.clone());
            copied.inodes.insert(*number, Inode { now, durable, pending: Vec::new() });
        }
        drop(copied);
        copy
    }

    fn lock_disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().expect("no panic while the disk is locked")
    }

    fn file(&self, inode: u64, life: u64) -> Box<dyn File> {
        Box::new(SimFile { disk: self.clone(), inode, life })
    }
}

fn stopped() -> io::Error {
    io::Error::other("the simulated machine has stopped")
}

impl Disk {
    fn count(&self, kind: Option<Kind>) -> u64 {
        match kind {
            Some(Kind::Write) => self.counts.writes,
            Some(Kind::Sync) => self.counts.syncs,
            Some(Kind::Name) => self.counts.names,
            Some(Kind::DirectorySync) => self.counts.directory_syncs,
            None => self.counts.total(),
        }
    }

    fn check_running(&self) -> io::Result<()> {
        if self.crashed { Err(stopped()) } else { Ok(()) }
    }

    /// Counts an operation; the caller lets it take effect as far as it does before it reports the crash.
    fn begin(&mut self, kind: Kind) -> io::Result<()> {
        self.check_running()?;
        match kind {
            Kind::Write => self.counts.writes += 1,
            Kind::Sync => self.counts.syncs += 1,
            Kind::Name => self.counts.names += 1,
            Kind::DirectorySync => self.counts.directory_syncs += 1,
        }
        let trigger = self.crash_at.filter(|trigger| trigger.kind.is_none_or(|only| only == kind));
        if trigger.is_some_and(|trigger| self.count(trigger.kind) >= trigger.at) {
            self.crashed = true;
        }
        Ok(())
    }

    fn change_names(&mut self, change: NameChange) -> io::Result<()> {
        apply_name(&mut self.names_now, &change);
        self.names_pending.push(change);
        self.check_running()
    }

    fn used_bytes(&self) -> u64 {
        self.names_now.values().filter_map(|number| self.inodes.get(number)).map(len_of).sum()
    }

    fn available_bytes(&self) -> u64 {
        self.capacity_bytes
            .map_or(u64::MAX / 2, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    fn lose_power(&mut self) {
        let pending = std::mem::take(&mut self.names_pending);
        let kept_in_order = self.random.in_range(0..to_u64(pending.len()) + 1);
        let one_by_one = self.random.chance(50);
        for (change, index) in pending.iter().zip(0..) {
            let kept = if one_by_one { self.random.chance(50) } else { index < kept_in_order };
            if kept {
                apply_name(&mut self.names_durable, change);
            }
        }
        self.names_now.clone_from(&self.names_durable);
        let used: BTreeSet<u64> = self.names_now.values().copied().collect();
        self.inodes.retain(|number, _| used.contains(number));
        for inode in self.inodes.values_mut() {
            inode.half_write(&mut self.random);
            inode.now.clone_from(&inode.durable);
        }
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).expect("usize fits u64")
}

fn to_usize(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

fn len_of(inode: &Inode) -> u64 {
    to_u64(inode.now.len())
}

/// A change whose file is not there, because an earlier change was lost, is lost too.
fn apply_name(names: &mut BTreeMap<PathBuf, u64>, change: &NameChange) {
    match change {
        NameChange::Create { path, inode } => {
            names.insert(path.clone(), *inode);
        }
        NameChange::Rename { from, to } => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        NameChange::Remove { path } => {
            names.remove(path);
        }
    }
}

impl NameChange {
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Create { path, .. } | Self::Remove { path } => path.parent(),
            Self::Rename { to, .. } => to.parent(),
        }
    }
}

impl Inode {
    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    /// Carries an arbitrary part of what is pending to the durable state and forgets the rest.
    fn half_write(&mut self, random: &mut Random) {
        for change in self.pending.drain(..) {
            match change {
                Change::SetLen(_) => {
                    if random.chance(50) {
                        apply(&mut self.durable, &change);
                    }
                }
                Change::Write { offset, bytes } => {
                    let kept_percent = [0, 50, 90, 100];
                    let choice = random.in_range(0..4);
                    let choice = usize::try_from(choice).unwrap_or_default();
                    let percent = kept_percent.get(choice).copied().unwrap_or_default();
                    for (at, sector) in sectors(offset, &bytes) {
                        if random.chance(percent) {
                            let bytes = sector.to_vec();
                            apply(&mut self.durable, &Change::Write { offset: at, bytes });
                        }
                    }
                }
            }
        }
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::SetLen(len) => content.resize(*len, 0),
        Change::Write { offset, bytes } => {
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content.get_mut(*offset..end).expect("just resized").copy_from_slice(bytes);
        }
    }
}

/// The pieces of a write that lie in different sectors of the file.
fn sectors(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    let tail = rest.chunks(SECTOR_BYTES).scan(offset + first, |at, sector| {
        let start = *at;
        *at += sector.len();
        Some((start, sector))
    });
    std::iter::once((offset, head)).chain(tail)
}

impl FileSystem for SimDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        disk.check_running()?;
        disk.directories.extend(dir.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let mut disk = self.lock_disk();
        disk.begin(Kind::Name)?;
        if disk.names_now.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !path.parent().is_some_and(|dir| disk.directories.contains(dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inode = disk.next_inode;
        disk.next_inode += 1;
        disk.inodes.insert(inode, Inode::default());
        disk.change_names(NameChange::Create { path: path.to_owned(), inode })?;
        Ok(self.file(inode, disk.life))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let disk = self.lock_disk();
        disk.check_running()?;
        let inode = disk.names_now.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(*inode, disk.life))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let disk = self.lock_disk();
        disk.check_running()?;
        if !disk.directories.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let in_dir = disk.names_now.keys().filter(|path| path.parent() == Some(dir));
        let name = |path: &PathBuf| path.file_name()?.to_str().map(str::to_owned);
        Ok(in_dir.filter_map(name).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        disk.begin(Kind::Name)?;
        if !disk.names_now.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.change_names(NameChange::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        disk.check_running()?;
        if !disk.names_now.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.begin(Kind::Name)?;
        disk.change_names(NameChange::Remove { path: path.to_owned() })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.lock_disk();
        disk.begin(Kind::DirectorySync)?;
        disk.check_running()?;
        let pending = std::mem::take(&mut disk.names_pending);
        for change in pending {
            if change.directory() == Some(dir) {
                apply_name(&mut disk.names_durable, &change);
            } else {
                disk.names_pending.push(change);
            }
        }
        Ok(())
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let disk = self.lock_disk();
        disk.check_running()?;
        Ok(disk.available_bytes())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut disk = self.lock_disk();
        disk.check_running()?;
        if !disk.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { disk: self.clone(), path: path.to_owned(), life: disk.life }))
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
    life: u64,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut disk = self.disk.lock_disk();
        if disk.life == self.life {
            disk.locks.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: u64,
    life: u64,
}

impl SimFile {
    fn lock_disk(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk.lock_disk();
        if disk.life == self.life { Ok(disk) } else { Err(stopped()) }
    }

    fn change(&self, change: Change, grown_len: usize) -> io::Result<()> {
        let mut disk = self.lock_disk()?;
        disk.begin(Kind::Write)?;
        let available_bytes = disk.available_bytes();
        let inode = disk.inodes.get_mut(&self.inode).ok_or_else(stopped)?;
        let growth = grown_len.saturating_sub(inode.now.len());
        if to_u64(growth) > available_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inode.change(change);
        disk.check_running()
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.lock_disk()?;
        disk.check_running()?;
        let inode = disk.inodes.get(&self.inode).ok_or_else(stopped)?;
        let content = inode.now.get(to_usize(offset)?..).unwrap_or_default();
        let count = content.len().min(buffer.len());
        let (from, into) = (content.get(..count), buffer.get_mut(..count));
        into.expect("not longer").copy_from_slice(from.expect("not longer"));
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = to_usize(offset)?;
        self.change(Change::Write { offset, bytes: bytes.to_vec() }, offset + bytes.len())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let len = to_usize(len_bytes)?;
        self.change(Change::SetLen(len), len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.lock_disk()?;
        disk.begin(Kind::Sync)?;
        disk.check_running()?;
        let fails = disk.sync_failure_at == Some(disk.counts.syncs);
        let disk = &mut *disk;
        let inode = disk.inodes.get_mut(&self.inode).ok_or_else(stopped)?;
        if fails {
            inode.half_write(&mut disk.random);
            return Err(io::Error::other("the simulated disk failed to write"));
        }
        inode.sync();
        Ok(())
    }

    fn len_bytes(&self) -> io::Result<u64> {
        let disk = self.lock_disk()?;
        disk.check_running()?;
        disk.inodes.get(&self.inode).map(len_of).ok_or_else(stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "/data";

    fn disk_with_file(seed: u64) -> (SimDisk, Box<dyn File>) {
        let disk = SimDisk::new(seed);
        let dir = Path::new(DIR);
        disk.create_dir_all(dir).unwrap();
        let file = disk.create(&dir.join("file")).unwrap();
        disk.sync_dir(dir).unwrap();
        (disk, file)
    }

    fn content(disk: &SimDisk) -> Vec<u8> {
        disk.content(&Path::new(DIR).join("file")).unwrap()
    }

    #[test]
    fn what_is_synced_survives() {
        for seed in 0..20 {
            let (disk, file) = disk_with_file(seed);
            file.write_at(&[7; 5000], 100).unwrap();
            file.sync_data().unwrap();
            disk.restart(Restart::PowerLoss);
            assert_eq!(content(&disk)[100..], [7; 5000]);
            assert!(file.sync_data().is_err(), "handles of an earlier life are dead");
        }
    }

    #[test]
    fn what_is_not_synced_is_torn_at_sectors() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..200 {
            let (disk, file) = disk_with_file(seed);
            file.write_at(&[0; 2048], 0).unwrap();
            file.sync_data().unwrap();
            file.write_at(&[7; 2048], 0).unwrap();
            disk.restart(Restart::PowerLoss);
            let content = content(&disk);
            let sectors: Vec<u8> = content.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect();
            assert!(content.chunks(SECTOR_BYTES).all(|s| s == [0; 512] || s == [7; 512]));
            outcomes.insert(sectors);
        }
        assert!(outcomes.contains([0; 4].as_slice()) && outcomes.contains([7; 4].as_slice()));
        assert!(outcomes.contains([0, 7, 7, 7].as_slice()), "a hole in front");
    }

    #[test]
    fn a_failed_sync_is_forgotten() {
        let mut lost = 0;
        for seed in 0..50 {
            let (disk, file) = disk_with_file(seed);
            file.write_at(&[7; 512], 0).unwrap();
            disk.fail_sync_at(1);
            assert!(file.sync_data().is_err());
            assert!(file.sync_data().is_ok(), "the next one succeeds and proves nothing");
            assert_eq!(content(&disk), [7; 512], "programs go on seeing the bytes");
            disk.restart(Restart::PowerLoss);
            lost += u32::from(content(&disk).is_empty());
        }
        assert!(lost > 0);
    }

    #[test]
    fn names_that_are_not_synced_may_be_lost() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..50 {
            let (disk, _file) = disk_with_file(seed);
            let dir = Path::new(DIR);
            disk.rename(&dir.join("file"), &dir.join("renamed")).unwrap();
            disk.restart(Restart::PowerLoss);
            outcomes.insert(disk.list(dir).unwrap());
        }
        assert_eq!(outcomes.len(), 2);
    }

    #[test]
    fn a_full_disk_says_so() {
        let (disk, file) = disk_with_file(1);
        disk.set_capacity_bytes(Some(1000));
        file.write_at(&[1; 1000], 0).unwrap();
        let error = file.write_at(&[1; 2], 999).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        file.write_at(&[2; 1000], 0).unwrap();
    }
}
