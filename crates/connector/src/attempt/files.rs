//! Where connectors find what they are to read: files that nobody else may, gone behind the attempt.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::process::{Guard, Side};

/// A folder for one side of an attempt. Dropped, the files are removed, the folder too if it is empty.
#[derive(Debug)]
pub struct Files<'a> {
    folder: PathBuf,
    guard: Option<&'a Guard>,
    written: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    /// Makes the folder, for us alone. The guard removes its files if we cannot.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(attempt: &Path, side: Side, guard: Option<&'a Guard>) -> io::Result<Self> {
        let folder = std::path::absolute(attempt.join(side.name()))?;
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder, guard, written: Vec::new() })
    }

    /// Where the connector runs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file for us alone.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        // One that was left by a killed attempt may not be ours alone.
        let _ = fs::remove_file(&path);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        self.written.push(path.clone());
        if let Some(guard) = self.guard {
            guard.tell_secret(&path);
        }
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        for path in &self.written {
            let _ = fs::remove_file(path);
        }
        // A connector may have left something there.
        let _ = fs::remove_dir(&self.folder);
    }
}
