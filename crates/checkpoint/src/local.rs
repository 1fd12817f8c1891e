//! The store in a directory: an LSM tree, written only by sorted ingestion.
//!
//! The tree is `lsm-tree`, the engine of fjall 3, without fjall around it. A checkpoint needs neither a
//! journal (the log is one) nor a second keyspace; and only on the tree itself can merging be driven,
//! slowed down and its errors seen. fjall asks for one merge per ingestion, lets its worker die of a full
//! disk, and preallocates a journal of 64 MiB; `docs/decisions` has the comparison.
//!
//! ```text
//! <path>/lock          held while the store or a view of it is alive
//! <path>/tree/current  which version is the newest, switched by rename
//! <path>/tree/v<N>     a version: the tables and their levels
//! <path>/tree/tables/  tables: sorted, immutable, a checksum on every block
//! ```
//!
//! A write streams its entries into new tables of level 0, the stamp first (its key sorts below all
//! others), syncs them, and switches the version. A thread of our own merges levels after each write, so
//! that a scan reads few runs and tombstones reach the bottom, where they vanish.
//!
//! The traps of the engine, and what is done about them here:
//!
//! * an ingestion out of order panics: order is checked before each entry;
//! * a dropped ingestion leaves its files behind: they are swept when nothing else can own them;
//! * a failed switch may have happened on disk but not in memory, and the next one would overwrite a
//!   version that is in force: the disk is asked, and the store takes no more writes if it says so, or
//!   none until it can be asked;
//! * the file of a version is believed without looking at its checksum: it is checked before opening;
//! * `clear()` races with merges: it is never called;
//! * old versions are dropped below a watermark that the caller names, and reading a dropped one
//!   panics: every read holds a pin, and the watermark is the lowest pin.
//!
//! Confessed: the sync at the end of each table is not paced, only the writing before it; `table_bytes`
//! bounds what one such sync may flush.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use lsm_tree::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    PartitioningPolicy, PinningPolicy, RestartIntervalPolicy,
};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard, IterGuardImpl,
    SeqNo, SequenceNumberCounter,
};

use crate::error::{Error, Result};
use crate::merge::Merger;
use crate::pace::{Pace, Purse};
use crate::range::KeyRange;
use crate::stamp::{Stamp, length};
use crate::store::{Checkpoint, Entry, EntryCheck, Pair, Pairs, RESERVED_PREFIX, View, Visit};

/// The stamp lies below every key that may be written.
const STAMP_KEY: [u8; 1] = [RESERVED_PREFIX];

/// The first key behind the store's own.
const FIRST_KEY: [u8; 1] = [RESERVED_PREFIX + 1];

/// Files kept open for reading.
const FILES_OPEN_MAX: usize = 256;

/// Bits of the Bloom filter per key: 1 % of the tables that lack a key are read all the same.
const FILTER_BITS_PER_KEY: f32 = 10.0;

/// How a store on disk works. What it does to tables holds for tables written from now on.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Memory for blocks read lately.
    pub cache_bytes: u64,
    /// Speed limit of [`Checkpoint::write`]; `None` for none.
    pub write_bytes_per_second: Option<u64>,
    /// Speed limit of merging in the background, counted in what is read; `None` for none. Should be
    /// well above the long-term average of what is written times five.
    pub merge_bytes_per_second: Option<u64>,
    /// Size of a block before compression: what one point read has to load.
    pub block_bytes: u32,
    /// Largest table that merging writes, and so what one sync flushes.
    pub table_bytes: u64,
    /// Compress what has been merged.
    pub compress: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 8 << 20,
            write_bytes_per_second: Some(128 << 20),
            merge_bytes_per_second: Some(192 << 20),
            block_bytes: 8 << 10,
            table_bytes: 8 << 20,
            compress: true,
        }
    }
}

/// What a store on disk looks like from outside, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalStatus {
    /// Tables in all levels.
    pub tables: usize,
    /// Sorted runs in level 0: each one is one more place a read has to look.
    pub level_0_runs: usize,
    /// Bytes of all tables.
    pub disk_bytes: u64,
    /// Entries in all tables, tombstones and superseded ones included.
    pub entries_stored: usize,
    /// Merges done since the store was opened.
    pub merges: u64,
    /// Why merging fails at present; it is tried again after the next write.
    pub merge_error: Option<String>,
}

/// A checkpoint store in a directory.
#[derive(Debug)]
pub struct LocalCheckpoint {
    store: Arc<Store>,
    merger: Merger,
    write_pace: Arc<Pace>,
    /// Held by the one write at a time.
    turn: Mutex<()>,
    newest: Mutex<Option<Stamp>>,
}

impl LocalCheckpoint {
    /// Opens the store in the directory `path`, or makes one.
    pub fn open(path: impl AsRef<Path>, options: &LocalOptions) -> Result<Self> {
        let write_pace = Pace::new(options.write_bytes_per_second);
        let merge_pace = Pace::new(options.merge_bytes_per_second);
        let store = Arc::new(Store::open(path.as_ref(), options, &merge_pace)?);
        let newest = Pin::new(&store).read_stamp()?;
        let merger = Merger::start(&store, merge_pace, options.table_bytes)?;
        Ok(Self { store, merger, write_pace, turn: Mutex::new(()), newest: Mutex::new(newest) })
    }

    /// Numbers for metrics.
    pub fn status(&self) -> LocalStatus {
        let tree = &self.store.tree;
        LocalStatus {
            tables: tree.table_count(),
            level_0_runs: tree.l0_run_count(),
            disk_bytes: tree.disk_space(),
            entries_stored: tree.approximate_len(),
            merges: self.store.merges.load(Ordering::Relaxed),
            merge_error: self.merger.error(),
        }
    }

    /// Waits until merging has nothing left to do: for tests and measurements.
    pub fn settle(&self) {
        self.merger.settle();
    }

    fn newest(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pin(&self) -> Pin {
        Pin::new(&self.store)
    }
}

impl Drop for LocalCheckpoint {
    fn drop(&mut self) {
        self.write_pace.stop();
        self.merger.stop();
    }
}

impl Checkpoint for LocalCheckpoint {
    fn write(
        &self,
        entries: &mut dyn Iterator<Item = Result<Entry<'_>>>,
        stamp: &Stamp,
    ) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.store.is_known() || self.merger.error().is_some() {
            self.merger.pause(|| self.store.check_standing().map(|()| self.store.sweep()))?;
        }
        stamp.check(self.newest().as_ref())?;
        self.merger.wait_for_room()?;
        // A merge may fail while this write streams.
        let check = || {
            if self.store.is_known() {
                return Ok(());
            }
            self.merger.pause(|| self.store.check_standing())
        };
        match self.store.ingest(entries, stamp, Purse::new(&self.write_pace), check) {
            Ok(()) => {
                *self.newest() = Some(stamp.clone());
                self.merger.wake();
                Ok(())
            }
            Err(error) => {
                self.store.after_failure();
                self.merger.pause(|| {
                    // Where the disk cannot be asked now, it is before the next write.
                    let _ = self.store.check_standing();
                    self.store.sweep();
                });
                Err(error)
            }
        }
    }

    fn snapshot(&self) -> Result<Box<dyn View>> {
        let pin = self.pin();
        let stamp = pin.read_stamp()?;
        Ok(Box::new(LocalView { pin, stamp }))
    }
}

impl View for LocalCheckpoint {
    fn stamp(&self) -> Option<Stamp> {
        self.newest().clone()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.pin().get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let pin = self.pin();
        keys.iter().map(|key| pin.get(key)).collect()
    }

    fn scan_with(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<()> {
        self.pin().scan_with(range, visit)
    }

    fn scan(&self, range: &KeyRange) -> Pairs<'_> {
        self.pin().into_pairs(range)
    }

    fn edges(&self, range: &KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pin().edges(range)
    }
}

/// A state that no longer changes, kept by its pin.
#[derive(Debug)]
struct LocalView {
    pin: Pin,
    stamp: Option<Stamp>,
}

impl View for LocalView {
    fn stamp(&self) -> Option<Stamp> {
        self.stamp.clone()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.pin.get(key)
    }

    fn scan_with(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<()> {
        self.pin.scan_with(range, visit)
    }

    fn scan(&self, range: &KeyRange) -> Pairs<'_> {
        self.pin.again().into_pairs(range)
    }

    fn edges(&self, range: &KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pin.edges(range)
    }
}

/// The tree and what guards it. Lives as long as the store or any view.
pub(crate) struct Store {
    pub(crate) tree: AnyTree,
    tree_path: PathBuf,
    /// The engine's count of visible versions: what a read that starts now sees is below it.
    visible: SequenceNumberCounter,
    /// How many reads hold each version.
    pins: Mutex<BTreeMap<SeqNo, u64>>,
    standing: Mutex<Standing>,
    pub(crate) merges: AtomicU64,
    _lock: File,
}

/// Whether the version in force on the disk is the one in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is.
    Known,
    /// A switch failed, and the disk could not be asked: it is, before anything is written.
    Unknown,
    /// It is not, or is damaged: no more writes until the store is opened again.
    Poisoned,
}

// Written by hand because the engine's tree has none.
impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("tree_path", &self.tree_path).finish_non_exhaustive()
    }
}

impl Store {
    fn open(path: &Path, options: &LocalOptions, merge_pace: &Arc<Pace>) -> Result<Self> {
        fs::create_dir_all(path)
            .map_err(|source| Error::Io { action: "make the checkpoint directory", source })?;
        let lock = lock(path)?;
        let tree_path = path.join("tree");
        VersionInForce::read(&tree_path)?;
        let sequence = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let tree = config(&tree_path, &sequence, &visible, options)
            .with_compaction_filter_factory(Some(Arc::new(PacedMerges(Arc::clone(merge_pace)))))
            .open()
            .map_err(|error| engine("open the checkpoint store", error))?;
        // The engine leaves its counters to the caller: behind everything that is stored.
        let next = tree.get_highest_seqno().map_or(0, |highest| highest + 1);
        sequence.fetch_max(next);
        visible.fetch_max(next);
        // The engine syncs what is in the tree's directory, not that there is one.
        sync_directory(path)?;
        path.parent().map_or(Ok(()), sync_directory)?;
        Ok(Self {
            tree,
            tree_path,
            visible,
            pins: Mutex::default(),
            standing: Mutex::new(Standing::Known),
            merges: AtomicU64::new(0),
            _lock: lock,
        })
    }

    /// Writes a run of them; it comes into force when `check` allows it.
    fn ingest(
        &self,
        entries: &mut dyn Iterator<Item = Result<Entry<'_>>>,
        stamp: &Stamp,
        mut purse: Purse,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let failed = |error| engine("write the checkpoint", error);
        let AnyTree::Standard(_) = &self.tree else {
            return Err(Error::Corrupt {
                what: "it separates values, which ours never do".to_owned(),
            });
        };
        let mut ingestion = self.tree.ingestion().map_err(failed)?;
        ingestion.write(STAMP_KEY, stamp.encode()).map_err(failed)?;
        let mut order = EntryCheck::default();
        for entry in entries {
            let entry = entry?;
            order.admit(&entry)?;
            let key = entry.key.as_ref();
            match &entry.value {
                Some(value) => {
                    purse.spend(length(key).saturating_add(length(value)));
                    ingestion.write(key, value.as_ref()).map_err(failed)?;
                }
                None => {
                    purse.spend(length(key));
                    ingestion.write_tombstone(key).map_err(failed)?;
                }
            }
        }
        check()?;
        ingestion.finish().map_err(failed)
    }

    /// Below this no version is read by anyone, now or later.
    pub(crate) fn watermark(&self) -> SeqNo {
        let pins = self.pins();
        let visible = self.visible.get();
        pins.keys().next().copied().unwrap_or(visible).min(visible)
    }

    /// After a failed write or merge: its switch may have happened on disk but not in memory, and the
    /// next one would overwrite the version in force.
    pub(crate) fn after_failure(&self) {
        let mut standing = self.standing();
        if *standing == Standing::Known {
            *standing = Standing::Unknown;
        }
    }

    /// Whether nothing has to be asked before a write.
    pub(crate) fn is_known(&self) -> bool {
        *self.standing() == Standing::Known
    }

    /// Fails where a switch of versions would not be safe. Must be called with none under way, by a write or by
    /// a merge, which would be between the disk and memory.
    pub(crate) fn check_standing(&self) -> Result<()> {
        let mut standing = self.standing();
        if *standing == Standing::Unknown {
            let in_memory = self.tree.current_version().id();
            *standing = match VersionInForce::read(&self.tree_path) {
                Ok(Some(on_disk)) if on_disk.id == in_memory => Standing::Known,
                Err(error @ Error::Io { .. }) => return Err(error),
                Ok(_) | Err(_) => Standing::Poisoned,
            };
        }
        match *standing {
            Standing::Known => Ok(()),
            Standing::Unknown | Standing::Poisoned => Err(Error::Poisoned),
        }
    }

    /// No write is safe until the store is opened again.
    pub(crate) fn poison(&self) {
        *self.standing() = Standing::Poisoned;
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes table files that belong to nothing: what failed writes and merges leave behind, which on a
    /// full disk is the space the next try needs. Must be called with no write and no merge running; does
    /// nothing while anyone reads, because readers own tables of older versions. Best effort: opening
    /// the store removes what is left.
    pub(crate) fn sweep(&self) {
        let pins = self.pins();
        if !pins.is_empty() || *self.standing() != Standing::Known {
            return;
        }
        let version = self.tree.current_version();
        let Ok(files) = fs::read_dir(self.tree_path.join("tables")) else { return };
        for file in files.flatten() {
            let id = file.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            if let Some(id) = id
                && !version.iter_tables().any(|table| table.id() == id)
            {
                // A file that stays is removed at the next opening.
                let _ = fs::remove_file(file.path());
            }
        }
    }

    fn pins(&self) -> MutexGuard<'_, BTreeMap<SeqNo, u64>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `current` says: `version u64 | xxh3-128 of its file | kind of hash u8, 0`, little endian.
struct VersionInForce {
    id: u64,
}

impl VersionInForce {
    /// Reads `current` and checks the version's file against it; the engine believes that file unchecked,
    /// and a damaged length in it would end the process. `None` if there is no store yet.
    fn read(tree_path: &Path) -> Result<Option<Self>> {
        let corrupt = |what: &str| Error::Corrupt { what: what.to_owned() };
        let failed = |source| Error::Io { action: "read the checkpoint's version", source };
        let current = match fs::read(tree_path.join("current")) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Tables are only made once `current` is there: with them, it was lost.
                let tables = fs::read_dir(tree_path.join("tables"));
                if tables.is_ok_and(|mut tables| tables.next().is_some()) {
                    return Err(corrupt("`current` is missing beside its tables"));
                }
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
        };
        let fields = current.split_first_chunk().and_then(|(id, rest)| {
            let (hash, kind) = rest.split_first_chunk()?;
            (kind == [0]).then_some((u64::from_le_bytes(*id), u128::from_le_bytes(*hash)))
        });
        let (id, hash) = fields.ok_or_else(|| corrupt("`current` is not as it was written"))?;
        let version = match fs::read(tree_path.join(format!("v{id}"))) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(corrupt("the version that `current` names is missing"));
            }
            Err(error) => return Err(failed(error)),
        };
        if xxhash_rust::xxh3::xxh3_128(&version) != hash {
            return Err(corrupt("the version's file does not match its checksum"));
        }
        Ok(Some(Self { id }))
    }
}

/// Makes what was made in a directory durable.
fn sync_directory(path: &Path) -> Result<()> {
    // The parent of a relative path of one part.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| Error::Io { action: "sync the checkpoint directory", source })
}

fn lock(path: &Path) -> Result<File> {
    let file = File::create(path.join("lock"))
        .map_err(|source| Error::Io { action: "open the checkpoint store's lock", source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => {
            Err(Error::Io { action: "lock the checkpoint store", source })
        }
    }
}

/// The two workloads are one full ordered scan at start, and point reads of keys that exist. Index and
/// filters are cut into blocks: read whole they would cost hundreds of kilobytes per cold read.
fn config(
    path: &Path,
    sequence: &SequenceNumberCounter,
    visible: &SequenceNumberCounter,
    options: &LocalOptions,
) -> Config {
    let filter = BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY);
    // Level 0 and the first merge are rewritten soon: compressing them is work thrown away.
    let compression = if options.compress {
        CompressionPolicy::new([CompressionType::None, CompressionType::None, CompressionType::Lz4])
    } else {
        CompressionPolicy::disabled()
    };
    Config::new(path, sequence.clone(), visible.clone())
        .use_cache(Arc::new(Cache::with_capacity_bytes(options.cache_bytes)))
        .use_descriptor_table(Some(Arc::new(DescriptorTable::new(FILES_OPEN_MAX))))
        .data_block_size_policy(BlockSizePolicy::all(options.block_bytes))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(16))
        .data_block_compression_policy(compression)
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(false))
        .filter_block_pinning_policy(PinningPolicy::all(false))
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(filter)))
}

/// A version held for reading.
#[derive(Debug)]
struct Pin {
    store: Arc<Store>,
    seqno: SeqNo,
}

impl Pin {
    fn new(store: &Arc<Store>) -> Self {
        // Read and entered under one lock, so that no watermark can pass in between.
        let mut pins = store.pins();
        let seqno = store.visible.get();
        *pins.entry(seqno).or_default() += 1;
        drop(pins);
        Self { store: Arc::clone(store), seqno }
    }

    /// A second pin of the same version.
    fn again(&self) -> Self {
        *self.store.pins().entry(self.seqno).or_default() += 1;
        Self { store: Arc::clone(&self.store), seqno: self.seqno }
    }

    fn read_stamp(&self) -> Result<Option<Stamp>> {
        let bytes = self.get(&STAMP_KEY)?;
        bytes.map(|bytes| Stamp::decode(&bytes)).transpose()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = self.store.tree.get(key, self.seqno);
        Ok(value.map_err(|error| engine("read the checkpoint", error))?.map(|value| value.to_vec()))
    }

    fn iter(&self, range: &KeyRange) -> Option<EngineIter> {
        let from = range.from.as_slice().max(&FIRST_KEY);
        let to = match &range.to {
            Some(to) if to.as_slice() <= from => return None,
            Some(to) => Bound::Excluded(to.as_slice()),
            None => Bound::Unbounded,
        };
        Some(self.store.tree.range::<&[u8], _>((Bound::Included(from), to), self.seqno, None))
    }

    fn scan_with(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<()> {
        for guard in self.iter(range).into_iter().flatten() {
            let (key, value) =
                guard.into_inner().map_err(|error| engine("scan the checkpoint", error))?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn into_pairs<'a>(self, range: &KeyRange) -> Pairs<'a> {
        Box::new(LocalPairs { iter: self.iter(range), _pin: self })
    }

    fn edges(&self, range: &KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let key = |guard: IterGuardImpl| {
            guard
                .key()
                .map_err(|error| engine("scan the checkpoint", error))
                .map(|key| key.to_vec())
        };
        let Some(mut iter) = self.iter(range) else { return Ok(None) };
        let Some(first) = iter.next().map(key).transpose()? else { return Ok(None) };
        let last = iter.next_back().map(key).transpose()?.unwrap_or_else(|| first.clone());
        Ok(Some((first, last)))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.store.pins();
        if let Some(count) = pins.get_mut(&self.seqno) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.seqno);
            }
        }
    }
}

type EngineIter = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send + 'static>;

struct LocalPairs {
    iter: Option<EngineIter>,
    _pin: Pin,
}

impl Iterator for LocalPairs {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        let guard = self.iter.as_mut()?.next()?;
        match guard.into_inner() {
            Ok((key, value)) => Some(Ok((key.to_vec(), value.to_vec()))),
            Err(error) => {
                self.iter = None;
                Some(Err(engine("scan the checkpoint", error)))
            }
        }
    }
}

/// The engine offers no speed limit for merging, but shows every entry of a merge to a filter: ours
/// keeps them all, and takes its time.
struct PacedMerges(Arc<Pace>);

impl Factory for PacedMerges {
    fn name(&self) -> &str {
        "pace"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(PacedMerge(Purse::new(&self.0)))
    }
}

struct PacedMerge(Purse);

impl CompactionFilter for PacedMerge {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if self.0.is_stopped() {
            // Abandons the merge; its inputs stay in force.
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        let bytes = length(item.key()).saturating_add(length(&item.value()?));
        self.0.spend(bytes);
        Ok(Verdict::Keep)
    }
}

/// Sorts the engine's errors: those of the operating system may be retried, all others mean that bytes
/// on disk are not what was written.
pub(crate) fn engine(action: &'static str, error: lsm_tree::Error) -> Error {
    let damage = [io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData];
    if let lsm_tree::Error::Io(io) = &error
        && !damage.contains(&io.kind())
    {
        return Error::Engine { action, source: Box::new(error) };
    }
    Error::Corrupt { what: format!("could not {action}: {}", words(&error)) }
}

/// The engine's own words are the names of its types.
fn words(error: &lsm_tree::Error) -> String {
    if let lsm_tree::Error::Io(error) = error {
        return error.to_string();
    }
    if matches!(error, lsm_tree::Error::Unrecoverable) {
        return "files that belong to it are missing, or do not fit together".to_owned();
    }
    if matches!(error, lsm_tree::Error::ChecksumMismatch { .. }) {
        return "a block does not have the checksum that it was written with".to_owned();
    }
    format!("a block of it cannot be read ({error:?})")
}
