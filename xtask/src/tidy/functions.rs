//! Long functions may only get fewer and shorter.
//!
//! The list `xtask/tidy/long-functions.txt` holds the shipped functions over the limit, one a line:
//! `file function lines # why it may be`. A flat function may be long; then somebody writes it in by hand
//! and says why. `tidy --update` takes out what is gone and lowers what has shrunk, and adds nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::generated::is_generated;
use super::{Finding, Tree};
use crate::rust_source::Source;
use crate::workspace;

const RULE: &str = "function length";
const LIST: &str = "xtask/tidy/long-functions.txt";
const LINES_MAX: usize = 70;

const HEAD: &str = "\
# Shipped functions over 70 lines: file, function, lines, # why it may be. This list only shrinks:
# `cargo xtask tidy --update` takes out and lowers. A new line is written by hand, with its reason.
";

/// A function that is allowed to be long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allowed {
    lines: usize,
    reason: String,
}

pub(super) type List = BTreeMap<(PathBuf, String), Allowed>;

pub(super) fn allowed() -> Result<List, String> {
    match fs::read_to_string(workspace::root().join(LIST)) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(List::new()),
        Err(error) => Err(format!("failed to read {LIST}: {error}")),
    }
}

fn parse(text: &str) -> Result<List, String> {
    let mut list = List::new();
    for (number, line) in text.lines().enumerate() {
        let (entry, reason) = line.split_once('#').unwrap_or((line, ""));
        let words: Vec<&str> = entry.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [file, function, lines] => {
                let lines = lines
                    .parse()
                    .map_err(|_| format!("{LIST}:{}: {lines} is no number", number + 1))?;
                let key = (PathBuf::from(file), (*function).to_owned());
                list.insert(key, Allowed { lines, reason: reason.trim().to_owned() });
            }
            _ => return Err(format!("{LIST}:{}: expected `file function lines`", number + 1)),
        }
    }
    Ok(list)
}

/// The long functions: of several with one name in a file, the longest. With the line each begins at.
fn long(tree: &Tree) -> BTreeMap<(PathBuf, String), (usize, usize)> {
    let mut long = BTreeMap::new();
    for (file, source) in &tree.rust {
        if !in_shipped_source(file) || is_generated(&source.text) {
            continue;
        }
        for function in Source::functions(&source.shipped()) {
            if function.lines > LINES_MAX {
                let slot = long.entry((file.clone(), function.name)).or_insert((0, 0));
                *slot = (*slot).max((function.lines, function.line));
            }
        }
    }
    long
}

fn in_shipped_source(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "src")
}

pub(super) fn check(tree: &Tree, allowed: &List) -> Vec<Finding> {
    let long = long(tree);
    let mut findings = Vec::new();
    for ((file, name), (lines, line)) in &long {
        let entry = allowed.get(&(file.clone(), name.clone()));
        if entry.is_none_or(|entry| *lines > entry.lines) {
            let limit = entry.map_or(LINES_MAX, |entry| entry.lines);
            let what = format!(
                "`{name}` has {lines} lines, more than {limit}: move straight parts into helpers, or, if it \
                 is flat, write it into {LIST} with the reason"
            );
            findings.push(Finding::new(file, *line, RULE, what));
        }
    }
    for ((file, name), entry) in allowed {
        let now = long.get(&(file.clone(), name.clone())).map_or(0, |(lines, _)| *lines);
        if now < entry.lines {
            let what = format!(
                "`{name}` of {} has got shorter: run `cargo xtask tidy --update`",
                file.display()
            );
            findings.push(Finding::new(Path::new(LIST), 0, RULE, what));
        }
        if entry.reason.is_empty() {
            let what = format!("`{name}` of {} stands there without a reason", file.display());
            findings.push(Finding::new(Path::new(LIST), 0, RULE, what));
        }
    }
    findings
}

/// Takes out what is gone and lowers what has shrunk.
pub(super) fn update(tree: &Tree) -> Result<(), String> {
    let list = shrink(&long(tree), allowed()?);
    let mut text = HEAD.to_owned();
    for ((file, name), Allowed { lines, reason }) in list {
        let reason = if reason.is_empty() { String::new() } else { format!(" # {reason}") };
        let line = format!("{} {name} {lines}{reason}", file.display());
        writeln!(text, "{line}").map_err(|error| error.to_string())?;
    }
    fs::write(workspace::root().join(LIST), text)
        .map_err(|error| format!("failed to write {LIST}: {error}"))
}

fn shrink(long: &BTreeMap<(PathBuf, String), (usize, usize)>, allowed: List) -> List {
    allowed
        .into_iter()
        .filter_map(|(key, entry)| {
            let (now, _) = long.get(&key)?;
            Some((key, Allowed { lines: entry.lines.min(*now), reason: entry.reason }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(lines: usize) -> Tree {
        let text = format!("//! .\nfn f() {{\n{}}}\n", "x;\n".repeat(lines.saturating_sub(2)));
        Tree::of(&[("a/src/lib.rs", &text)])
    }

    fn findings(lines: usize, list: &str) -> usize {
        check(&tree(lines), &parse(list).unwrap()).len()
    }

    #[test]
    fn the_ratchet_turns_one_way() {
        assert_eq!(findings(70, ""), 0);
        assert_eq!(findings(71, ""), 1);
        assert_eq!(findings(80, "a/src/lib.rs f 80 # flat"), 0);
        assert_eq!(findings(81, "a/src/lib.rs f 80 # flat"), 1);
        assert_eq!(findings(79, "a/src/lib.rs f 80 # flat"), 1);
        assert_eq!(findings(20, "a/src/lib.rs f 80 # flat"), 1);
        assert_eq!(findings(80, "a/src/lib.rs f 80"), 1);
    }

    #[test]
    fn updating_only_shrinks() {
        let list = |text| parse(text).unwrap();
        let long = long(&tree(75));
        let kept = shrink(&long, list("a/src/lib.rs f 80 # flat\na/src/lib.rs gone 90 # flat"));
        assert_eq!(kept, list("a/src/lib.rs f 75 # flat"));
        assert_eq!(
            shrink(&long, list("a/src/lib.rs f 72 # flat")),
            list("a/src/lib.rs f 72 # flat")
        );
        assert_eq!(shrink(&long, List::new()), List::new());
    }
}
