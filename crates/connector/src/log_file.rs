//! A log in a file that is bounded: when it is full it becomes the older one, of which there is one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The file, open.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl LogFile {
    /// Goes on with the file at `path`, or begins it, for its owner alone. It and the older one, `.old`,
    /// have `bytes_max` each, about.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path, bytes_max: u64) -> io::Result<LogFile> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        Ok(LogFile { path: path.to_owned(), file, bytes, bytes_max })
    }

    /// Adds a line. A log that cannot be written holds nothing up.
    pub fn write(&mut self, line: &str) {
        if self.bytes > self.bytes_max
            && fs::rename(&self.path, self.path.with_extension("old")).is_ok()
            && let Ok(file) = append(&self.path)
        {
            self.file = file;
            self.bytes = 0;
        }
        if self.file.write_all(format!("{line}\n").as_bytes()).is_ok() {
            self.bytes += u64::try_from(line.len()).unwrap_or(0) + 1;
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_becomes_the_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = LogFile::open(&path, 10).unwrap();
        for line in ["one and", "two and", "three"] {
            log.write(line);
        }
        assert_eq!(
            fs::read_to_string(folder.path().join("log.old")).unwrap(),
            "one and\ntwo and\n"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        LogFile::open(&path, 10).unwrap().write("four");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\nfour\n");
    }
}
