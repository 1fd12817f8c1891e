//! Rows in memory between the events that change them and the transaction that writes them.
//!
//! What begins and ends within one transaction is written once, as it ended; that is most of what
//! a flow does. Live rows stay for the next events, up to [`KEPT_MAX`].

use rusqlite::Connection;
use rustc_hash::FxHashMap;

/// Rows of one table that stay in memory unchanged.
const KEPT_MAX: usize = 20_000;

/// A row.
pub(crate) trait Stored: Sized {
    /// Reads it back.
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>>;
    /// Writes one that is new.
    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()>;
    /// Writes what can change.
    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()>;
    /// Whether no further event is expected.
    fn is_done(&self) -> bool;
}

struct Held<R> {
    row: R,
    /// Not in the database yet.
    is_new: bool,
    is_dirty: bool,
}

/// Rows of one table.
pub(crate) struct Table<R> {
    rows: FxHashMap<u64, Held<R>>,
    dirty: Vec<u64>,
}

impl<R> Default for Table<R> {
    fn default() -> Table<R> {
        Table { rows: FxHashMap::default(), dirty: Vec::new() }
    }
}

impl<R: Stored> Table<R> {
    /// A row exists from now on.
    pub(crate) fn add(&mut self, key: u64, row: R) {
        self.rows.insert(key, Held { row, is_new: true, is_dirty: true });
        self.dirty.push(key);
    }

    /// The row, if there is one.
    pub(crate) fn get(&mut self, database: &Connection, key: u64) -> rusqlite::Result<Option<&R>> {
        self.hold(database, key)?;
        Ok(self.rows.get(&key).map(|held| &held.row))
    }

    /// The row, if there is one, to be changed.
    pub(crate) fn change(
        &mut self,
        database: &Connection,
        key: u64,
    ) -> rusqlite::Result<Option<&mut R>> {
        self.hold(database, key)?;
        let Some(held) = self.rows.get_mut(&key) else { return Ok(None) };
        if !held.is_dirty {
            held.is_dirty = true;
            self.dirty.push(key);
        }
        Ok(Some(&mut held.row))
    }

    fn hold(&mut self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        if self.rows.contains_key(&key) {
            return Ok(());
        }
        if let Some(row) = R::load(database, key)? {
            self.rows.insert(key, Held { row, is_new: false, is_dirty: false });
        }
        Ok(())
    }

    /// The row is not wanted. True if it was never written.
    pub(crate) fn drop_new(&mut self, key: u64) -> bool {
        let is_new = self.rows.get(&key).is_some_and(|held| held.is_new);
        self.rows.remove(&key);
        is_new
    }

    /// Whether anything changed that is not written.
    pub(crate) fn has_news(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes what changed.
    pub(crate) fn write(&mut self, database: &Connection) -> rusqlite::Result<()> {
        // In the order of keys, which is the order of the pages.
        self.dirty.sort_unstable();
        self.dirty.dedup();
        for key in self.dirty.drain(..) {
            let Some(held) = self.rows.get_mut(&key) else { continue };
            if held.is_new {
                held.row.insert(database, key)?;
            } else {
                held.row.update(database, key)?;
            }
            held.is_new = false;
            held.is_dirty = false;
            if held.row.is_done() {
                self.rows.remove(&key);
            }
        }
        if self.rows.len() > KEPT_MAX {
            self.rows = FxHashMap::default();
        }
        Ok(())
    }

    /// Forgets everything: the database was changed behind it, or a transaction was taken back.
    pub(crate) fn forget(&mut self) {
        self.rows.clear();
        self.dirty.clear();
    }
}
