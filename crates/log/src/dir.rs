//! Small operations on a directory that more than one store needs.

use std::io;
use std::path::Path;

use crate::LogError;
use crate::fs::{File, FileSystem, Lock};

/// Takes the lock file at `path`, which guards `dir`.
pub(crate) fn lock(
    fs: &dyn FileSystem,
    path: &Path,
    dir: &Path,
) -> Result<Box<dyn Lock>, LogError> {
    fs.lock(path).map_err(|error| {
        if error.kind() == io::ErrorKind::WouldBlock {
            LogError::Locked { dir: dir.to_owned() }
        } else {
            LogError::io("lock", path, error)
        }
    })
}

/// Writes a small file so that after any crash its name holds the old bytes or the new ones, whole.
pub(crate) fn replace_file(
    fs: &dyn FileSystem,
    dir: &Path,
    name_new: &str,
    name: &str,
    bytes: &[u8],
) -> Result<(), LogError> {
    let path_new = dir.join(name_new);
    let write_error = |error| LogError::io("write", &path_new, error);
    let file = create_anew(fs, dir, name_new)?;
    file.write_at(bytes, 0).map_err(write_error)?;
    file.sync_data().map_err(write_error)?;
    rename(fs, dir, name_new, name)?;
    sync(fs, dir)
}

/// Creates a file that will be renamed once it is whole, in place of one that an earlier attempt left behind.
///
/// The removal is made durable first. Otherwise, where a directory's changes are not kept in order, the later rename
/// might survive without it, and give the final name to the old file.
pub(crate) fn create_anew(
    fs: &dyn FileSystem,
    dir: &Path,
    name: &str,
) -> Result<Box<dyn File>, LogError> {
    let path = dir.join(name);
    match fs.create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_if_exists(fs, &path)?;
            sync(fs, dir)?;
            fs.create(&path)
        }
        result => result,
    }
    .map_err(|error| LogError::io("create", path, error))
}

pub(crate) fn rename(
    fs: &dyn FileSystem,
    dir: &Path,
    from: &str,
    to: &str,
) -> Result<(), LogError> {
    let path = dir.join(from);
    fs.rename(&path, &dir.join(to)).map_err(|error| LogError::io("rename", path, error))
}

pub(crate) fn sync(fs: &dyn FileSystem, dir: &Path) -> Result<(), LogError> {
    fs.sync_dir(dir).map_err(|error| LogError::io("sync the directory", dir, error))
}

pub(crate) fn remove_if_exists(fs: &dyn FileSystem, path: &Path) -> Result<(), LogError> {
    match fs.remove(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(LogError::io("remove", path, error)),
    }
}
