//! `cargo xtask tidy`: the rules of the house that a program can check, each a small pure function over
//! the files of the repository.
//!
//! * [`arrows`]: which crate may use which;
//! * [`banned`]: what the pure crates may not call, and what nobody leaves behind;
//! * [`shape`]: what a source file looks like, and that it is compiled at all;
//! * [`functions`]: long functions may only get fewer and shorter;
//! * [`generated`]: what is generated is up to date.
//!
//! The same rules run as a test of this crate, so that `cargo test` holds them.

mod arrows;
mod banned;
mod functions;
mod generated;
mod shape;

use std::path::{Path, PathBuf};

use crate::rust_source::Source;
use crate::workspace;

/// One broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) file: PathBuf,
    /// 0 if it is about the whole file.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) what: String,
}

impl Finding {
    fn new(file: &Path, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, rule, what: what.into() }
    }
}

/// What the rules look at.
pub(crate) struct Tree {
    /// All files, relative to the root.
    files: Vec<PathBuf>,
    /// The Rust files among them, with their contents.
    rust: Vec<(PathBuf, Source)>,
}

impl Tree {
    fn read() -> Result<Self, String> {
        let files = workspace::files()?;
        let mut rust = Vec::new();
        for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "rs")) {
            let text = std::fs::read_to_string(workspace::root().join(file))
                .map_err(|error| format!("failed to read {}: {error}", file.display()))?;
            rust.push((file.clone(), Source::new(text)));
        }
        Ok(Self { files, rust })
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let rust = files.iter().filter(|(name, _)| name.ends_with(".rs"));
        Self {
            files: files.iter().map(|(name, _)| PathBuf::from(name)).collect(),
            rust: rust
                .map(|(name, text)| (PathBuf::from(name), Source::new((*text).to_owned())))
                .collect(),
        }
    }
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {}
        ["--update"] => functions::update(&Tree::read()?)?,
        _ => return Err("tidy has one option: --update".to_owned()),
    }
    let findings = check()?;
    for finding in &findings {
        let place = match finding.line {
            0 => finding.file.display().to_string(),
            line => format!("{}:{line}", finding.file.display()),
        };
        println!("{place}: {}: {}", finding.rule, finding.what);
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("tidy: {} findings", findings.len())) }
}

fn check() -> Result<Vec<Finding>, String> {
    let tree = Tree::read()?;
    let mut findings = arrows::check(&arrows::edges()?);
    findings.extend(banned::check(&tree));
    findings.extend(shape::check(&tree));
    findings.extend(functions::check(&tree, &functions::allowed()?));
    findings.extend(generated::check(&tree)?);
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let findings = super::check().unwrap();
        let lines: Vec<String> = findings
            .iter()
            .map(|f| format!("{}:{}: {}: {}", f.file.display(), f.line, f.rule, f.what))
            .collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }
}
