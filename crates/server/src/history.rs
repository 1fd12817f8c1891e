//! The read model behind the partition: the database in the data directory, and the adapter
//! between the partition's [`Follower`] and [`History`], which do not know of each other.
//!
//! A history that cannot be opened is no reason not to start: jobs run without it.

use std::path::Path;

use windlass_history::{History, Options, Origin};
use windlass_partition::{Followed, Follower, Record};

use crate::data::history_path;

/// Opens the history of a data directory; says why and gives none when it cannot.
pub(crate) fn open(data_dir: &Path, options: Options) -> Option<History> {
    let path = history_path(data_dir);
    match History::open(&path, options) {
        Ok(history) => Some(history),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                path = %path.display(),
                "failed to open the history: the server runs without it"
            );
            None
        }
    }
}

/// What the partition feeds.
pub(crate) struct Feed(pub(crate) History);

impl Follower for Feed {
    fn begin(&self, log: &Followed) -> u64 {
        self.0.begin(&Origin { life: log.life, durable_lsn: log.durable_lsn })
    }

    fn take(&self, record: &Record<'_>) {
        self.0.take(record.lsn, record.time_ms, record.payload);
    }

    fn leave_out(&self, time_ms: u64) -> bool {
        self.0.leave_out(time_ms)
    }

    fn miss(&self, first_lsn: u64, last_lsn: u64) {
        self.0.miss(first_lsn, last_lsn);
    }

    fn flush(&self, through_lsn: u64) -> u64 {
        self.0.flush(through_lsn)
    }

    fn idle(&self) -> bool {
        self.0.idle()
    }

    fn kept(&self) -> u64 {
        self.0.kept()
    }
}
