//! The file backend's [`Log`].

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::dir;
use crate::fs::{FileSystem, Lock};
use crate::little_endian::to_u64;
use crate::memory::{check_append, check_read};
use crate::{
    Batch, BatchBuilder, EpochOpened, EpochRecord, EpochRequest, Log, LogError, LogReader,
    LogStatus, Position, ReadFrom, Tail,
};

use super::housekeeping::{Books, SegmentEntry, Shared};
use super::layout::{self, BLOCK, Place, SegmentHeader, segment_path};
use super::marks::{Mark, Marks};
use super::open::{self, Active, NewLog};
use super::reader::FileReader;
use super::survey::{Depth, survey};

/// How a log uses its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLogOptions {
    /// Size of new segments, and the limit of a batch. A multiple of 4096.
    pub segment_bytes: u64,
    /// Segments that are kept ready, at least 1.
    pub reserve_segments: usize,
    /// Trimmed segments are kept as reserves up to this number; the rest is given back to the file system.
    pub recycled_segments_max: usize,
    /// A mark is written after so many batches, and always at idle.
    pub mark_batches: u32,
    /// Who does the chores.
    pub housekeeping: Housekeeping,
}

/// Who prepares segments and writes marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Housekeeping {
    /// A thread of the log, off the path of appends.
    Thread,
    /// The calls themselves, so that a simulation repeats.
    InLine,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 * 1024 * 1024,
            reserve_segments: 2,
            recycled_segments_max: 8,
            mark_batches: 1024,
            housekeeping: Housekeeping::Thread,
        }
    }
}

/// A log in a directory. One process has it open at a time.
#[derive(Debug)]
pub struct FileLog {
    shared: Arc<Shared>,
    writer: Mutex<Writer>,
    keeper: Option<JoinHandle<()>>,
    /// Released last.
    _lock: Box<dyn Lock>,
}

#[derive(Debug)]
struct Writer {
    active: Active,
    epoch_open: Option<u32>,
}

impl FileLog {
    /// Creates a log in `dir`, which is created too when it does not exist, and opens it.
    pub fn create(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        new: &NewLog,
        options: FileLogOptions,
    ) -> Result<Self, LogError> {
        open::check_segment_bytes(options.segment_bytes)?;
        if new.first_lsn == 0 {
            return Err(LogError::InvalidOption("lsns begin at 1"));
        }
        fs.create_dir_all(dir).map_err(|error| LogError::io("create", dir, error))?;
        let lock = dir::lock(fs.as_ref(), &dir.join(layout::LOCK), dir)?;
        open::create(fs.as_ref(), dir, new, options.segment_bytes)?;
        Self::open_locked(fs, dir, new.partition, options, lock)
    }

    /// Opens the log in `dir`, settling its end as the [module](super) describes.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        partition: u16,
        options: FileLogOptions,
    ) -> Result<Self, LogError> {
        open::check_segment_bytes(options.segment_bytes)?;
        if !Self::exists(fs.as_ref(), dir)? {
            open::check_marks_exist(fs.as_ref(), dir, &open::list(fs.as_ref(), dir)?)?;
        }
        let lock = dir::lock(fs.as_ref(), &dir.join(layout::LOCK), dir)?;
        Self::open_locked(fs, dir, partition, options, lock)
    }

    /// Whether a log was created in `dir`.
    pub fn exists(fs: &dyn FileSystem, dir: &Path) -> Result<bool, LogError> {
        Ok(open::list(fs, dir)?.marks)
    }

    fn open_locked(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        partition: u16,
        options: FileLogOptions,
        lock: Box<dyn Lock>,
    ) -> Result<Self, LogError> {
        if options.reserve_segments == 0 {
            return Err(LogError::InvalidOption("at least one segment is kept in reserve"));
        }
        let names = open::list(fs.as_ref(), dir)?;
        open::check_marks_exist(fs.as_ref(), dir, &names)?;
        let mut marks = Marks::open(fs.as_ref(), dir)?;
        let mark = *marks.newest();
        if mark.partition != partition {
            return Err(LogError::WrongLog { expected: mark.partition, found: partition });
        }
        let depth = Depth::LastSegment;
        let survey = survey(fs.as_ref(), dir, &names, &mark, depth, &mut |_, _, _, _| {})?;
        if let Some(damage) = survey.damage {
            return Err(damage.into());
        }
        let active = open::settle(fs.as_ref(), dir, &names, &mut marks, &survey)?;
        let reserves = open::keep_reserves(fs.as_ref(), dir, &names, &options)?;
        let entry = |header: &SegmentHeader| SegmentEntry {
            number: header.number,
            first_lsn: header.before.next_lsn,
            bytes: header.segment_bytes,
        };
        let books = Books {
            segments: survey.headers.iter().map(entry).collect(),
            active_offset: active.offset,
            durable_lsn: active.tail.last_lsn(),
            epoch: active.tail.epoch,
            time_ms: active.time_ms,
            next_reserve: reserves.last().copied().unwrap_or(0),
            reserves: reserves.into(),
            preparing_failed: false,
            poisoned: false,
            retired: Vec::new(),
            batches_unmarked: 0,
            stopping: false,
        };
        let shared = Arc::new(Shared::new(fs, dir.to_owned(), options, marks, books));
        let keeper = match options.housekeeping {
            Housekeeping::InLine => {
                shared.keep_in_line();
                None
            }
            Housekeeping::Thread => {
                let shared = Arc::clone(&shared);
                let thread = std::thread::Builder::new().name("log-keeper".to_owned());
                let spawned = thread.spawn(move || shared.keep());
                Some(spawned.map_err(|error| LogError::io("start a thread for", dir, error))?)
            }
        };
        let writer = Mutex::new(Writer { active, epoch_open: None });
        Ok(Self { shared, writer, keeper, _lock: lock })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().expect("no panic while the writer is locked")
    }

    fn chores_in_line(&self) {
        if self.shared.options.housekeeping == Housekeeping::InLine {
            self.shared.keep_in_line();
        }
    }

    /// Writes and syncs a batch that was checked.
    fn commit(&self, writer: &mut Writer, batch: &mut Batch) -> Result<Position, LogError> {
        let bytes = to_u64(batch.len_bytes());
        let begins_segment = writer.active.offset + bytes > writer.active.segment_bytes;
        let header = begins_segment.then(|| self.begin_segment(writer)).transpose()?;
        let active = &mut writer.active;
        let sealed = batch.seal(active.tail.last_lsn());
        let write = || {
            if let Some(header) = &header {
                active.file.write_at(&header.encode(), 0)?;
            }
            active.file.write_blocks(sealed, active.offset)?;
            active.file.sync_data()
        };
        write().map_err(|error| {
            self.shared.poison();
            LogError::WriteFailed(error)
        })?;

        // Durable. Cannot fail from here.
        let position = Place { segment: active.number, offset: active.offset }.position();
        active.offset += bytes;
        active.tail = batch.tail_after();
        active.time_ms = batch.time_ms();
        let mut books = self.shared.books();
        if let Some(header) = header {
            books.segments.push_back(SegmentEntry {
                number: header.number,
                first_lsn: header.before.next_lsn,
                bytes: header.segment_bytes,
            });
        }
        books.active_offset = active.offset;
        books.durable_lsn = active.tail.last_lsn();
        books.epoch = active.tail.epoch;
        books.time_ms = active.time_ms;
        books.batches_unmarked += 1;
        let is_mark_due = books.batches_unmarked == self.shared.options.mark_batches;
        drop(books);
        if is_mark_due {
            self.shared.ring();
        }
        self.chores_in_line();
        Ok(position)
    }

    /// Makes a reserve the active segment. Its header is returned, to be written with the first batch.
    fn begin_segment(&self, writer: &mut Writer) -> Result<SegmentHeader, LogError> {
        self.chores_in_line();
        let reserve = self.shared.take_reserve()?;
        let number = writer.active.number + 1;
        let (fs, dir) = (self.shared.fs.as_ref(), &self.shared.dir);
        let rename = || {
            let reserve_path = dir.join(layout::reserve_name(reserve));
            fs.rename(&reserve_path, &segment_path(dir, number))?;
            fs.sync_dir(dir)?;
            fs.open(&segment_path(dir, number))
        };
        let file = rename().map_err(|error| {
            self.shared.poison();
            LogError::WriteFailed(error)
        })?;
        self.shared.mark_with(|mark| Mark { active_segment: number, ..mark })?;
        let header = SegmentHeader {
            number,
            segment_bytes: self.shared.options.segment_bytes,
            before: writer.active.tail,
            time_ms: writer.active.time_ms,
        };
        writer.active.file = file;
        writer.active.number = number;
        writer.active.segment_bytes = header.segment_bytes;
        writer.active.offset = BLOCK;
        Ok(header)
    }

    fn check_not_poisoned(&self) -> Result<(), LogError> {
        if self.shared.books().poisoned { Err(LogError::Poisoned) } else { Ok(()) }
    }

    fn batch_bytes_max(&self) -> u64 {
        self.shared.options.segment_bytes - BLOCK
    }
}

impl Log for FileLog {
    fn open_epoch(&self, request: &EpochRequest) -> Result<EpochOpened, LogError> {
        let mut writer = self.writer();
        self.check_not_poisoned()?;
        let tail = writer.active.tail;
        if request.epoch <= tail.epoch {
            return Err(LogError::EpochTooLow { asked: request.epoch, last: tail.epoch });
        }
        let predecessor = EpochRecord {
            predecessor_epoch: tail.epoch,
            predecessor_last_lsn: tail.last_lsn(),
            predecessor_time_ms: writer.active.time_ms,
        };
        let mut builder = BatchBuilder::new();
        builder.start(&Tail { epoch: request.epoch, ..tail }, request.time_ms);
        builder.epoch_frame(&predecessor);
        let mut batch = builder.finish();
        let position = self.commit(&mut writer, &mut batch)?;
        writer.epoch_open = Some(request.epoch);
        Ok(EpochOpened { tail: batch.tail_after(), lsn: batch.first_lsn(), position, predecessor })
    }

    fn append(&self, batch: &mut Batch) -> Result<Position, LogError> {
        let mut writer = self.writer();
        self.check_not_poisoned()?;
        let bytes_max = self.batch_bytes_max();
        check_append(&writer.active.tail, writer.epoch_open, batch, bytes_max)?;
        self.commit(&mut writer, batch)
    }

    fn read(&self, from: &ReadFrom) -> Result<Box<dyn LogReader>, LogError> {
        {
            let books = self.shared.books();
            check_read(from, books.first_lsn(), books.durable_lsn)?;
        }
        Ok(Box::new(FileReader::new(Arc::clone(&self.shared), from)))
    }

    fn trim(&self, through_lsn: u64) -> Result<(), LogError> {
        let (retired, first) = {
            let mut books = self.shared.books();
            let mut retired = Vec::new();
            let needed_lsn = through_lsn.saturating_add(1);
            while books.segments.get(1).is_some_and(|next| next.first_lsn <= needed_lsn) {
                retired.extend(books.segments.pop_front().map(|segment| segment.number));
            }
            (retired, books.segments.front().copied())
        };
        let Some(first) = first.filter(|_| !retired.is_empty()) else { return Ok(()) };
        // Another trim may have gone further and been quicker.
        self.shared.mark_with(|mark| {
            if mark.first_segment >= first.number {
                return mark;
            }
            Mark { first_segment: first.number, first_lsn: first.first_lsn, ..mark }
        })?;
        self.shared.books().retired.extend(retired);
        self.shared.ring();
        self.chores_in_line();
        Ok(())
    }

    fn idle(&self) -> Result<(), LogError> {
        let is_marked = self.shared.books().batches_unmarked == 0;
        if !is_marked {
            self.shared.mark()?;
        }
        self.check_not_poisoned()?;
        self.chores_in_line();
        Ok(())
    }

    fn status(&self) -> LogStatus {
        let options = &self.shared.options;
        let books = self.shared.books();
        let full_segments = books.segments.len().saturating_sub(1);
        let full_bytes: u64 = books.segments.iter().take(full_segments).map(|s| s.bytes).sum();
        let active_bytes = books.segments.back().map_or(0, |active| active.bytes);
        let active_left = active_bytes.saturating_sub(books.active_offset);
        let is_short = books.reserves.len() < options.reserve_segments;
        LogStatus {
            first_lsn: books.first_lsn(),
            durable_lsn: books.durable_lsn,
            epoch: books.epoch,
            time_ms: books.time_ms,
            log_bytes: full_bytes + books.active_offset,
            reserve_bytes: active_left + to_u64(books.reserves.len()) * options.segment_bytes,
            batch_bytes_max: self.batch_bytes_max(),
            reserve_low: is_short && books.preparing_failed,
            poisoned: books.poisoned,
        }
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.shared.books().stopping = true;
        self.shared.ring();
        if let Some(keeper) = self.keeper.take() {
            // A keeper that panicked has poisoned the books' mutex; there is nothing to add while dropping.
            let _ = keeper.join();
        }
        let unmarked = self.shared.books().batches_unmarked > 0;
        if unmarked && !self.shared.books().poisoned {
            // The mark is a courtesy to the next open; without it the log is as durable as before.
            let _ = self.shared.mark();
        }
    }
}
