//! Which crate may use which: the table of `DESIGN.md` 3, held against `cargo metadata`.
//!
//! Only what is shipped counts: for its tests a crate may use any other.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Finding;
use crate::workspace;

const RULE: &str = "arrows";

/// A crate and the crates of ours that it may use. Moving one of these is a decision record first.
const ARROWS: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("flow", &["record"]),
    ("engine", &["record", "flow"]),
    ("log", &[]),
    ("checkpoint", &[]),
    ("partition", &["record", "engine", "log", "checkpoint"]),
    ("history", &["record"]),
    ("gateway", &["record", "partition", "history"]),
    ("api-native", &["record", "gateway"]),
    ("api-zeebe", &["record", "gateway"]),
    ("api-conductor", &["record", "gateway"]),
    ("api-airbyte", &["record", "gateway"]),
    ("worker", &[]),
    ("builtin", &["worker"]),
    ("connector", &["worker"]),
    ("console", &[]),
    ("resident", &[]),
    (
        "server",
        &[
            "api-native",
            "api-zeebe",
            "api-conductor",
            "api-airbyte",
            "gateway",
            "partition",
            "log",
            "checkpoint",
            "history",
            "builtin",
            "connector",
            "worker",
            "console",
        ],
    ),
    ("cli", &["server", "worker", "connector", "log", "checkpoint", "record", "flow", "resident"]),
    (
        "sim",
        &[
            "record",
            "flow",
            "engine",
            "log",
            "checkpoint",
            "partition",
            "history",
            "gateway",
            "api-native",
            "api-zeebe",
            "api-conductor",
            "api-airbyte",
            "worker",
            "builtin",
            "connector",
            "console",
        ],
    ),
    // The bench drives our own SDK, behind a feature.
    ("xtask", &["worker"]),
];

/// Names that say nothing, and so gather everything.
const NAMES_REFUSED: &[&str] = &["common", "util", "utils", "types", "shared"];

/// A package of the workspace.
#[derive(Debug, Default)]
pub(super) struct Package {
    /// Without `windlass-`.
    name: String,
    manifest: PathBuf,
    uses: Vec<String>,
}

pub(super) fn edges() -> Result<Vec<Package>, String> {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let metadata = workspace::output(&workspace::cargo(), &args)?;
    let metadata: Value = serde_json::from_str(&metadata)
        .map_err(|error| format!("failed to read cargo's metadata: {error}"))?;
    let root = workspace::root();
    let packages = list(&metadata, "packages").iter().map(|package| {
        let manifest = PathBuf::from(text(package, "manifest_path"));
        let ours = list(package, "dependencies").iter().filter(|dependency| {
            text(dependency, "kind") != "dev" && !text(dependency, "path").is_empty()
        });
        Package {
            name: short(text(package, "name")),
            manifest: manifest.strip_prefix(&root).unwrap_or(&manifest).to_owned(),
            uses: ours.map(|dependency| short(text(dependency, "name"))).collect(),
        }
    });
    Ok(packages.collect())
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn short(name: &str) -> String {
    name.strip_prefix("windlass-").unwrap_or(name).to_owned()
}

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let mut finding = |what: String| {
            findings.push(Finding::new(&package.manifest, 0, RULE, what));
        };
        if NAMES_REFUSED.contains(&package.name.as_str()) {
            finding(format!("no crate is called {}: name what it does", package.name));
        }
        let directory = package.manifest.parent().and_then(Path::file_name);
        if directory.is_none_or(|directory| directory != package.name.as_str()) {
            finding(format!("the directory of {} is not called like it", package.name));
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            finding(format!(
                "{} is not in the table of arrows: decide what it may use, record the decision, and add \
                 it to xtask/src/tidy/arrows.rs",
                package.name
            ));
            continue;
        };
        for used in package.uses.iter().filter(|used| !allowed.contains(&used.as_str())) {
            finding(format!(
                "{} may not use {used}; it may use: {}. A new arrow needs a decision record first",
                package.name,
                if allowed.is_empty() { "nothing of ours".to_owned() } else { allowed.join(", ") }
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: PathBuf::from(format!("crates/{name}/Cargo.toml")),
            uses: uses.iter().map(|used| (*used).to_owned()).collect(),
        }
    }

    #[test]
    fn arrows_of_the_table_are_fine_and_others_are_not() {
        assert_eq!(check(&[package("partition", &["engine", "log"])]), []);
        let findings = check(&[
            package("api-zeebe", &["gateway", "engine"]),
            package("record", &["sim"]),
            package("util", &[]),
        ]);
        assert_eq!(findings.len(), 4, "{findings:?}");
    }

    #[test]
    fn the_table_has_no_circle_and_no_unknown_name() {
        for (position, (name, uses)) in ARROWS.iter().enumerate() {
            for used in *uses {
                let at = ARROWS.iter().position(|(other, _)| other == used);
                assert!(at.is_some_and(|at| at < position), "{name} -> {used}");
            }
        }
    }
}
