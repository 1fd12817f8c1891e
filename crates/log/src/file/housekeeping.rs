//! What goes on beside the appends: marks, and segments prepared ahead and taken back.
//!
//! A keeper thread does it; a simulation does it in line, so that it repeats. Locks are taken in the order writer,
//! marks, books, and the books are never held over anything that touches the disk.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::fs::FileSystem;
use crate::{LogError, dir};

use super::layout::{self, segment_path};
use super::log::{FileLogOptions, Housekeeping};
use super::marks::{Mark, Marks};
use super::open::fill_with_zeros;

/// How long the keeper waits before it tries again to prepare a segment on a full disk.
const PREPARE_RETRY: Duration = Duration::from_secs(1);

/// How long the keeper leaves the disk to the appends between two pieces of a segment.
const PREPARE_REST: Duration = Duration::from_millis(2);

/// What writer, readers and keeper share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) options: FileLogOptions,
    pub(crate) marks: Mutex<Marks>,
    books: Mutex<Books>,
    /// Rung whenever the books change in a way that somebody may wait for.
    changed: Condvar,
}

/// The facts about the log that are cheap to look up.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) segments: VecDeque<SegmentEntry>,
    /// Behind the last batch, in the active segment.
    pub(crate) active_offset: u64,
    pub(crate) durable_lsn: u64,
    pub(crate) epoch: u32,
    pub(crate) time_ms: u64,
    pub(crate) reserves: VecDeque<u64>,
    pub(crate) next_reserve: u64,
    /// The last attempt to prepare a segment failed.
    pub(crate) preparing_failed: bool,
    pub(crate) poisoned: bool,
    /// Trimmed, and no mark names them any more.
    pub(crate) retired: Vec<u64>,
    pub(crate) batches_unmarked: u32,
    pub(crate) stopping: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentEntry {
    pub(crate) number: u64,
    pub(crate) first_lsn: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Chore {
    Mark,
    TakeBack(Vec<u64>),
    Prepare(u64),
    Nothing,
    Stop,
}

impl Books {
    pub(crate) fn first_lsn(&self) -> u64 {
        self.segments.front().map_or(self.durable_lsn + 1, |segment| segment.first_lsn)
    }

    fn next_chore(&mut self, options: &FileLogOptions) -> Chore {
        if self.stopping || self.poisoned {
            return Chore::Stop;
        }
        if self.batches_unmarked >= options.mark_batches {
            return Chore::Mark;
        }
        if !self.retired.is_empty() {
            return Chore::TakeBack(std::mem::take(&mut self.retired));
        }
        if self.reserves.len() < options.reserve_segments {
            self.next_reserve += 1;
            return Chore::Prepare(self.next_reserve);
        }
        Chore::Nothing
    }
}

impl Shared {
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        dir: PathBuf,
        options: FileLogOptions,
        marks: Marks,
        books: Books,
    ) -> Self {
        let (marks, books) = (Mutex::new(marks), Mutex::new(books));
        Self { fs, dir, options, marks, books, changed: Condvar::new() }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic while the books are locked")
    }

    /// Wakes the keeper, and whoever waits for it.
    pub(crate) fn ring(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn poison(&self) {
        self.books().poisoned = true;
        self.ring();
    }

    /// The keeper's life.
    pub(crate) fn keep(&self) {
        loop {
            let chore = self.wait_for_chore();
            if chore == Chore::Stop {
                return;
            }
            if self.do_chore(chore).is_err() {
                drop(self.wait_a_moment(self.books()));
            }
        }
    }

    fn wait_for_chore(&self) -> Chore {
        let mut books = self.books();
        loop {
            let chore = books.next_chore(&self.options);
            if chore != Chore::Nothing {
                return chore;
            }
            books = self.wait_a_moment(books);
        }
    }

    fn wait_a_moment<'a>(&self, books: MutexGuard<'a, Books>) -> MutexGuard<'a, Books> {
        if books.stopping {
            return books;
        }
        let waited = self.changed.wait_timeout(books, PREPARE_RETRY);
        waited.expect("no panic while the books are locked").0
    }

    /// Does all chores that can be done now, in place of the keeper.
    pub(crate) fn keep_in_line(&self) {
        loop {
            let chore = self.books().next_chore(&self.options);
            if matches!(chore, Chore::Nothing | Chore::Stop) {
                return;
            }
            let is_prepare = matches!(chore, Chore::Prepare(_));
            if self.do_chore(chore).is_err() && is_prepare {
                return;
            }
        }
    }

    fn do_chore(&self, chore: Chore) -> Result<(), LogError> {
        match chore {
            Chore::Mark => self.mark(),
            Chore::TakeBack(segments) => self.take_back(segments),
            Chore::Prepare(number) => self.prepare(number),
            Chore::Nothing | Chore::Stop => Ok(()),
        }
    }

    /// Writes down what is durable now. A failure poisons the log: the disk is not to be trusted.
    pub(crate) fn mark(&self) -> Result<(), LogError> {
        self.mark_with(|mark| mark)
    }

    /// Writes a mark that `change` has changed.
    pub(crate) fn mark_with(&self, change: impl FnOnce(Mark) -> Mark) -> Result<(), LogError> {
        let mut marks = self.marks.lock().expect("no panic while the marks are locked");
        let mark = {
            let mut books = self.books();
            if books.poisoned {
                return Err(LogError::Poisoned);
            }
            books.batches_unmarked = 0;
            change(Mark { durable_lsn: books.durable_lsn, ..*marks.newest() })
        };
        marks.write(&mark).map_err(|error| {
            self.poison();
            LogError::WriteFailed(error)
        })
    }

    /// Trimmed segments become reserves, up to a number; the rest is removed. One that this fails for comes last
    /// in the next chore; in line, where that would be at once, it is left to the next open.
    fn take_back(&self, segments: Vec<u64>) -> Result<(), LogError> {
        let mut segments = segments.into_iter();
        let mut renamed = Vec::new();
        let mut taken_back = Ok(());
        let mut failed = None;
        while taken_back.is_ok()
            && let Some(number) = segments.next()
        {
            taken_back = self.take_back_file(number, &mut renamed);
            let again = taken_back.is_err() && self.options.housekeeping == Housekeeping::Thread;
            failed = again.then_some(number);
        }
        let synced = dir::sync(self.fs.as_ref(), &self.dir);
        let mut books = self.books();
        if synced.is_ok() {
            books.reserves.extend(renamed);
        }
        if books.reserves.len() >= self.options.reserve_segments {
            books.preparing_failed = false;
        }
        books.retired.extend(segments.chain(failed));
        drop(books);
        self.ring();
        let result = taken_back.and(synced);
        if let Err(error) = &result {
            tracing::warn!(error = %error, "failed to give back trimmed segments");
        }
        result
    }

    fn take_back_file(&self, number: u64, renamed: &mut Vec<u64>) -> Result<(), LogError> {
        let fs = self.fs.as_ref();
        let path = segment_path(&self.dir, number);
        let reserve = {
            let mut books = self.books();
            books.next_reserve += 1;
            let room = books.reserves.len() + renamed.len() < self.options.recycled_segments_max;
            room.then_some(books.next_reserve)
        };
        let right_size = || match fs.open(&path).and_then(|file| file.len_bytes()) {
            Ok(bytes) => Ok(bytes == self.options.segment_bytes),
            // Somebody was here before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(LogError::io("open", &path, error)),
        };
        match reserve {
            Some(reserve) if right_size()? => {
                let (from, to) = (layout::segment_name(number), layout::reserve_name(reserve));
                dir::rename(fs, &self.dir, &from, &to)?;
                renamed.push(reserve);
                Ok(())
            }
            Some(_) | None => dir::remove_if_exists(fs, &path),
        }
    }

    /// Fills a new reserve with zeros. A failure, a full disk above all, is noted and tried again later.
    fn prepare(&self, number: u64) -> Result<(), LogError> {
        let result = self.prepare_file(number);
        let mut books = self.books();
        match &result {
            Ok(()) => books.reserves.push_back(number),
            Err(error) if !books.preparing_failed => {
                tracing::warn!(error = %error, "failed to prepare a log segment; trying again");
            }
            Err(_) => {}
        }
        books.preparing_failed = result.is_err();
        drop(books);
        self.ring();
        result
    }

    fn prepare_file(&self, number: u64) -> Result<(), LogError> {
        let fs = self.fs.as_ref();
        let path = self.dir.join(layout::PREPARING);
        let prepare_error = |error| LogError::io("prepare", &path, error);
        let segment_bytes = self.options.segment_bytes;
        // Gives back what a failed attempt took, before it looks for room.
        let file = dir::create_anew(fs, &self.dir, layout::PREPARING)?;
        if fs.available_bytes(&self.dir).map_err(prepare_error)? < segment_bytes {
            return Err(LogError::NoSpace);
        }
        let fill = || {
            fill_with_zeros(file.as_ref(), 0, segment_bytes, || self.rest())?;
            file.sync_data()
        };
        if let Err(error) = fill() {
            // If even that fails, the next attempt does it.
            dir::remove_if_exists(fs, &path)?;
            return Err(prepare_error(error));
        }
        dir::rename(fs, &self.dir, layout::PREPARING, &layout::reserve_name(number))?;
        dir::sync(fs, &self.dir)
    }

    /// Between two pieces of a segment: the appends have the disk for a while, unless one of them may soon wait for
    /// this segment.
    fn rest(&self) {
        if self.options.housekeeping == Housekeeping::InLine {
            return;
        }
        let mut books = self.books();
        if books.batches_unmarked >= self.options.mark_batches {
            drop(books);
            // A failure has poisoned the log, which ends the keeper.
            let _poisoned = self.mark();
            books = self.books();
        }
        if !(books.reserves.is_empty() || books.stopping || books.poisoned) {
            let waited = self.changed.wait_timeout(books, PREPARE_REST);
            drop(waited.expect("no panic while the books are locked"));
        }
    }

    /// A prepared segment, waiting for the keeper if it only has to catch up.
    pub(crate) fn take_reserve(&self) -> Result<u64, LogError> {
        let mut books = self.books();
        loop {
            if books.poisoned {
                return Err(LogError::Poisoned);
            }
            if let Some(number) = books.reserves.pop_front() {
                self.ring();
                return Ok(number);
            }
            if books.preparing_failed || self.options.reserve_segments == 0 {
                return Err(LogError::NoSpace);
            }
            self.ring();
            books = self.changed.wait(books).expect("no panic while the books are locked");
        }
    }
}
