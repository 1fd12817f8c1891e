//! What is generated is up to date.
//!
//! A generated file says in one of its first lines from what it was made:
//!
//! ```text
//! @generated from <path> crc32c:<8 hex digits> bytes:<length>
//! ```
//!
//! behind whatever begins a comment there. Path from the root, checksum and length of that file as it
//! was. Nobody has to run the generator to see that it must be run again.
//!
//! Documents that a test compares with the text their source generates are in [`DOCUMENTS`]; the rule here
//! only sees to it that there is such a test.

use std::path::{Path, PathBuf};

use super::{Finding, Tree};
use crate::workspace;

const RULE: &str = "generated";
const MARK: &str = concat!("@gener", "ated from ");

/// A document, and the crate of which a test reads it and compares.
const DOCUMENTS: &[(&str, &str)] = &[("docs/job-lifecycle.md", "crates/engine")];

/// Lines in which the mark may stand.
const HEAD_LINES: usize = 5;

/// Endings of files in which a mark is looked for.
const ENDINGS: &[&str] =
    &["rs", "md", "html", "js", "mjs", "ts", "py", "json", "toml", "yaml", "css"];

/// Does the file call itself generated?
pub(super) fn is_generated(text: &str) -> bool {
    mark(text).is_some()
}

fn mark(text: &str) -> Option<(usize, &str)> {
    let lines = text.lines().take(HEAD_LINES).enumerate();
    lines.map(|(number, line)| (number + 1, line)).find_map(|(number, line)| {
        let at = line.find(MARK)?;
        // Only a comment's opening may stand before it.
        let before = line.get(..at)?;
        let is_comment = before.len() <= 8 && !before.contains(|c: char| c.is_alphanumeric());
        is_comment.then(|| (number, line.get(at + MARK.len()..).unwrap_or_default()))
    })
}

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !ENDINGS.contains(&ending) {
            continue;
        }
        let read = |path: &Path| std::fs::read(workspace::root().join(path));
        let bytes =
            read(file).map_err(|error| format!("failed to read {}: {error}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some((line, rest)) = mark(&text)
            && let Err(what) = compare(rest, |path| read(path).ok())
        {
            findings.push(Finding::new(file, line, RULE, what));
        }
    }
    findings.extend(untested_documents(tree));
    Ok(findings)
}

/// Compares what a mark says with its source as it is.
fn compare(said: &str, read: impl Fn(&Path) -> Option<Vec<u8>>) -> Result<(), String> {
    let words: Vec<&str> = said.split_whitespace().take(3).collect();
    let [path, checksum, bytes] = words.as_slice() else {
        return Err(format!("the mark must read `{MARK}<path> crc32c:<hex> bytes:<length>`"));
    };
    let source =
        read(Path::new(path)).ok_or_else(|| format!("its source {path} does not exist"))?;
    let now =
        (format!("crc32c:{:08x}", crc32c::crc32c(&source)), format!("bytes:{}", source.len()));
    if (now.0.as_str(), now.1.as_str()) == (checksum, bytes) {
        Ok(())
    } else {
        Err(format!("{path} is now {} {}: generate this file again", now.0, now.1))
    }
}

fn untested_documents(tree: &Tree) -> Vec<Finding> {
    let untested = DOCUMENTS.iter().filter(|(document, home)| {
        let name =
            Path::new(document).file_name().and_then(|name| name.to_str()).unwrap_or(document);
        let exists = tree.files.contains(&PathBuf::from(document));
        let tested = tree.rust.iter().any(|(file, source)| {
            let lines = source.text.lines().map(str::trim);
            file.starts_with(home)
                && lines.filter(|line| !line.starts_with("//")).any(|line| line.contains(name))
        });
        exists && !tested
    });
    untested
        .map(|(document, home)| {
            let what = format!("no test of {home} compares it with the text it is generated from");
            Finding::new(Path::new(document), 0, RULE, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_comment_near_the_top() {
        assert!(is_generated(&format!("// {MARK}x crc32c:0 bytes:0\n")));
        assert!(is_generated(&format!("<!-- {MARK}x crc32c:0 bytes:0 -->\n")));
        assert!(!is_generated(&format!("let a = \"{MARK}x\";")));
        assert!(!is_generated(&format!("\n\n\n\n\n// {MARK}x crc32c:0 bytes:0\n")));
    }

    #[test]
    fn a_changed_source_is_noticed() {
        let read = |path: &Path| (path == Path::new("a")).then(|| b"123456789".to_vec());
        assert_eq!(compare("a crc32c:e3069283 bytes:9 -->", read), Ok(()));
        assert!(compare("a crc32c:e3069284 bytes:9", read).is_err());
        assert!(compare("a crc32c:e3069283 bytes:8", read).is_err());
        assert!(compare("b crc32c:e3069283 bytes:9", read).is_err());
        assert!(compare("a", read).is_err());
    }

    #[test]
    fn a_document_needs_its_test() {
        let document = ("docs/job-lifecycle.md", "");
        let comment = ("crates/engine/src/a.rs", "//! See job-lifecycle.md\n");
        let test =
            ("crates/engine/tests/b.rs", "let page = include_str!(\"../docs/job-lifecycle.md\");");
        assert_eq!(untested_documents(&Tree::of(&[document, comment])).len(), 1);
        assert_eq!(untested_documents(&Tree::of(&[document, test])).len(), 0);
        assert_eq!(untested_documents(&Tree::of(&[comment])).len(), 0);
    }
}
