//! Finds the Java that peers run on.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::failure::{Failure, Result};
use super::server;

/// The oldest that they run on.
const JAVA_MIN: u32 = 21;
/// Where Debian and its like keep Javas that are not on the path.
const JAVAS: &str = "/usr/lib/jvm";

/// The newest Java that is new enough.
pub(super) fn find() -> Result<PathBuf> {
    let named = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    let entries = std::fs::read_dir(JAVAS).ok().into_iter().flatten().flatten();
    let kept = entries.map(|entry| entry.path().join("bin/java"));
    let all = named.into_iter().chain(server::find("java")).chain(kept);
    let mut javas: Vec<(u32, PathBuf)> = all
        .filter(|java| java.is_file())
        .filter_map(|java| Some((major(&java)?, java)))
        .filter(|(major, _)| *major >= JAVA_MIN)
        .collect();
    javas.sort();
    javas.pop().map(|(_, java)| java).ok_or_else(|| {
        Failure::new(format!("no Java {JAVA_MIN} or newer in JAVA_HOME, on the path or in {JAVAS}"))
    })
}

/// Its words go to standard error: `openjdk version "25.0.1" ...`.
pub(super) fn major(java: &Path) -> Option<u32> {
    let output = Command::new(java).arg("-version").output().ok()?;
    major_in(&String::from_utf8_lossy(&output.stderr))
}

fn major_in(words: &str) -> Option<u32> {
    let version = words.split('"').nth(1)?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_major_version_of_java() {
        for (words, major) in [
            ("openjdk version \"17.0.15\" 2025-04-15", Some(17)),
            ("openjdk version \"25-ea\" 2025-09-16", Some(25)),
            ("no java", None),
        ] {
            assert_eq!(super::major_in(words), major, "{words}");
        }
    }
}
