//! What one sees of a sync: a line that moves while it runs, the log in a file, the sums in the end.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use windlass_connector::file_journal::Book;
use windlass_connector::log_file::LogFile;
use windlass_connector::summary::{Progress, StreamState, StreamStats};
use windlass_connector::{Level, Observer, Side, Status, Summary};

use crate::failure::Failure;
use crate::output::{Output, table};
use crate::units::{grouped, millis, now_ms, short, utc};

/// Bytes of the log, and of the one before, which is kept beside it.
const LOG_BYTES_MAX: u64 = 25 << 20;
/// Between two lines where nobody sees a line move.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Takes what people may want to see.
pub(crate) struct Screen {
    log: Mutex<LogFile>,
    bar: ProgressBar,
    verbose: bool,
    /// Where no line can move: when the last one was printed.
    lines: Option<Mutex<Instant>>,
    began: Instant,
}

impl Screen {
    pub(crate) fn new(folder: &Path, verbose: bool, json: bool) -> Result<Self, Failure> {
        let path = folder.join("sync.log");
        let failed = |error| Failure::io(format!("write {}", path.display()), error);
        let log = LogFile::open(&path, LOG_BYTES_MAX).map_err(failed)?;
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let moves = std::io::stderr().is_terminal();
        let lines = (!moves && !json).then(|| Mutex::new(Instant::now()));
        Ok(Self { log: Mutex::new(log), bar, verbose, lines, began: Instant::now() })
    }

    /// What is done now.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        if self.lines.is_some() {
            eprintln!("{what}");
        }
        self.write(None, Level::Info, what);
    }

    /// Nothing moves any more.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn write(&self, side: Option<Side>, level: Level, text: &str) {
        let side = side.map_or("windlass", Side::name);
        let line = format!("{} {side} {} {text}", utc(now_ms()), level.name());
        // A full disk is the journal's to notice; a log is not worth a failure.
        self.log.lock().unwrap_or_else(PoisonError::into_inner).write(&line);
    }
}

impl Observer for Screen {
    fn log(&self, side: Option<Side>, level: Level, text: &str) {
        self.write(side, level, text);
        if self.verbose || level == Level::Error {
            let side = side.map_or("windlass", Side::name);
            self.bar.suspend(|| eprintln!("{side} {}: {text}", level.name()));
        }
    }

    fn step(&self, name: &str) {
        self.say(name);
    }

    fn progress(&self, progress: &Progress) {
        let line = line(progress, self.began.elapsed());
        if let Some(last) = &self.lines {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() >= LINE_EVERY {
                *last = Instant::now();
                eprintln!("{line}");
            }
        }
        self.bar.set_message(line);
        self.bar.tick();
    }
}

/// Records, speed, streams, the last commit, how long it will still take.
fn line(progress: &Progress, elapsed: Duration) -> String {
    let (records, bytes, committed) = progress.totals();
    let seconds = elapsed.as_secs_f64().max(0.001);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (per_second, mb_per_second) = (records as f64 / seconds, bytes as f64 / 1e6 / seconds);
    let complete = progress.streams.iter().filter(|stream| stream.status == StreamState::Complete);
    let mut text = format!(
        "{} records, {mb_per_second:.1} MB/s, {per_second:.0}/s, {} of {} streams, {} committed",
        grouped(records),
        complete.count(),
        progress.streams.len(),
        grouped(committed),
    );
    if progress.committed_ms > 0 {
        text.push_str(&format!(" {} ago", short(now_ms().saturating_sub(progress.committed_ms))));
    }
    if let Some(left) = left(progress, records, elapsed) {
        text.push_str(&format!(", {} left", short(millis(left))));
    }
    text
}

/// By what the source thinks is to come, if it says so of everything.
fn left(progress: &Progress, records: u64, elapsed: Duration) -> Option<Duration> {
    let whole = match progress.estimate {
        Some((rows, _)) => rows?,
        None => {
            let rows = progress.streams.iter().map(|stream| stream.estimated_records);
            rows.sum::<Option<u64>>().filter(|sum| *sum > 0)?
        }
    };
    if records == 0 || whole <= records {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let factor = (whole - records) as f64 / records as f64;
    Some(elapsed.mul_f64(factor))
}

/// The sums, on standard output.
pub(crate) fn show(summary: &Summary, book: &Book, json: bool) -> Result<(), Failure> {
    let mut value = serde_json::to_value(summary)
        .map_err(|error| Failure::new(format!("failed to print the summary: {error}")))?;
    if let Some(value) = value.as_object_mut() {
        value.insert("sync".to_owned(), json!(book.sync));
        value.insert("attempt".to_owned(), json!(book.attempt));
        value.insert("earlier".to_owned(), json!(book.earlier));
    }
    Output { json }.show(&value, || {
        let rows: Vec<Vec<String>> = summary.streams.iter().map(row).collect();
        let status = match summary.status {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        };
        let took = short(summary.ended_at.saturating_sub(summary.started_at));
        let attempt = match book.attempt {
            0 => String::new(),
            attempt => format!(", attempt {}", attempt + 1),
        };
        let head = ["stream", "emitted", "committed", "refused", "bytes", "status"];
        format!("sync {}{attempt}: {status} in {took}\n{}", book.sync, table(&head, &rows))
    })
}

fn row(stream: &StreamStats) -> Vec<String> {
    let status = match stream.status {
        StreamState::Pending => "pending",
        StreamState::Running => "running",
        StreamState::RateLimited => "rate limited",
        StreamState::Complete => "complete",
        StreamState::Incomplete => "incomplete",
    };
    vec![
        stream.descriptor().to_string(),
        grouped(stream.records_emitted),
        grouped(stream.records_committed),
        grouped(stream.records_rejected),
        grouped(stream.bytes_emitted),
        status.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_will_still_take() {
        let stream =
            |estimated| StreamStats { estimated_records: estimated, ..StreamStats::default() };
        let mut progress =
            Progress { streams: vec![stream(Some(100)), stream(Some(100))], ..Progress::default() };
        let second = Duration::from_secs(1);
        assert_eq!(left(&progress, 50, second), Some(Duration::from_secs(3)));
        assert_eq!(left(&progress, 200, second), None);
        progress.streams.push(stream(None));
        assert_eq!(left(&progress, 50, second), None, "one of them is not known");
        progress.estimate = Some((Some(100), None));
        assert_eq!(left(&progress, 50, second), Some(second));
    }
}
