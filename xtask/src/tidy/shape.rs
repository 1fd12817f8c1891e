//! What a source file looks like, and that it is compiled at all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::generated::is_generated;
use super::{Finding, Tree};
use crate::rust_source::Source;

/// Longer files need a reason. Aim for half of it.
const LINES_MAX: usize = 800;

/// How the reason begins, in the first comment of the file.
const REASON: &str = "long:";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in &tree.rust {
        if is_generated(&source.text) {
            continue;
        }
        if !source.text.trim_start().starts_with("//!") {
            let what = "the file must begin with `//!`: say what it is for, before the code";
            findings.push(Finding::new(file, 1, "first words", what));
        }
        let lines = source.text.lines().count();
        if lines > LINES_MAX && !gives_a_reason(&source.text) {
            let what = format!(
                "{lines} lines, more than {LINES_MAX}: split it by responsibility, or give the reason in \
                 its first comment, in a line that begins with `{REASON}`"
            );
            findings.push(Finding::new(file, 0, "file length", what));
        }
    }
    findings.extend(dead_files(tree));
    findings
}

fn gives_a_reason(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .take_while(|line| line.is_empty() || line.starts_with("//"))
        .any(|line| line.trim_start_matches(['/', '!', ' ']).starts_with(REASON))
}

/// Rust files below a `src` that no `mod` leads to.
fn dead_files(tree: &Tree) -> Vec<Finding> {
    let source_of = |file: &Path| tree.rust.iter().find(|(name, _)| name == file);
    let mut alive = BTreeSet::new();
    let mut open: Vec<PathBuf> =
        tree.rust.iter().map(|(file, _)| file).filter(|file| is_root(file)).cloned().collect();
    while let Some(file) = open.pop() {
        let Some((_, source)) = source_of(&file) else { continue };
        if !alive.insert(file.clone()) {
            continue;
        }
        open.extend(children(&file, source).into_iter().filter(|child| source_of(child).is_some()));
    }
    tree.rust
        .iter()
        .filter(|(file, _)| in_src(file) && !alive.contains(file))
        .map(|(file, _)| {
            let what =
                "no `mod` leads here, so it is not compiled: name it in its parent, or remove it";
            Finding::new(file, 0, "dead file", what)
        })
        .collect()
}

fn in_src(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "src")
}

/// Where a crate begins: what cargo compiles by itself.
fn is_root(file: &Path) -> bool {
    let parent = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = file.file_name().and_then(|name| name.to_str());
    match (parent, name) {
        (Some("src"), Some("lib.rs" | "main.rs")) | (_, Some("build.rs")) => true,
        (Some("bin" | "fuzz_targets"), Some(_)) => true,
        // A module `tests` of a crate has files below it that are no crates of their own.
        (Some("tests" | "examples" | "benches"), Some(_)) => !in_src(file),
        (Some(_) | None, Some(_) | None) => false,
    }
}

/// The files that the modules of `file` may be in, and those it includes.
fn children(file: &Path, source: &Source) -> Vec<PathBuf> {
    let directory = file.parent().unwrap_or(Path::new(""));
    let stem = file.file_stem().unwrap_or_default();
    let is_mod = is_root(file) || stem == "mod";
    let inner = if is_mod { directory.to_owned() } else { directory.join(stem) };
    let mut children = Vec::new();
    for module in source.modules() {
        let within = match module.path.split_last() {
            Some((_, around)) => around.iter().fold(inner.clone(), |path, name| path.join(name)),
            None => continue,
        };
        match (&module.file, module.path.last()) {
            (Some(path), _) => children.push(directory.join(path)),
            (None, Some(name)) => {
                children.push(within.join(format!("{name}.rs")));
                children.push(within.join(name).join("mod.rs"));
            }
            (None, None) => {}
        }
    }
    for include in source.text.split("include!(\"").skip(1) {
        if let Some((path, _)) = include.split_once('"') {
            children.push(directory.join(path));
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> Vec<(String, &'static str)> {
        let findings = check(&Tree::of(files));
        findings.into_iter().map(|f| (f.file.display().to_string(), f.rule)).collect()
    }

    #[test]
    fn files_begin_with_what_they_are_for() {
        let found = rules(&[
            ("a/src/lib.rs", "//! Yes.\nmod b;\nmod c;"),
            ("a/src/b.rs", "use x;"),
            ("a/src/c.rs", "// @generated from x crc32c:0 bytes:0\nuse x;"),
        ]);
        assert_eq!(found, [("a/src/b.rs".to_owned(), "first words")]);
    }

    #[test]
    fn long_files_give_a_reason() {
        let long = format!("//! Yes.\n{}", "\n".repeat(900));
        let reason = format!("//! Yes.\n//!\n//! long: a table.\n{}", "\n".repeat(900));
        assert_eq!(rules(&[("src/lib.rs", &long)]), [("src/lib.rs".to_owned(), "file length")]);
        assert_eq!(rules(&[("src/lib.rs", &reason)]), []);
    }

    #[test]
    fn every_file_is_reached() {
        let found = rules(&[
            ("a/src/lib.rs", "//! .\nmod b;\nmod c { mod d; }\n#[path = \"odd.rs\"] mod e;"),
            ("a/src/b.rs", "//! .\nmod f;"),
            ("a/src/b/f.rs", "//! ."),
            ("a/src/c/d.rs", "//! ."),
            ("a/src/odd.rs", "//! ."),
            ("a/src/bin/g.rs", "//! ."),
            ("a/src/h.rs", "//! ."),
            ("a/src/f.rs", "//! ."),
            ("a/tests/i.rs", "//! ."),
        ]);
        let dead = |name: &str| (name.to_owned(), "dead file");
        assert_eq!(found, [dead("a/src/h.rs"), dead("a/src/f.rs")]);
    }
}
