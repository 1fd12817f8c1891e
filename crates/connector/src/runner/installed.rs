//! Connectors that `windlass connector add` installed: `<data>/connectors/<name>/manifest.json`.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The words that start what was installed from a package.
///
/// # Errors
/// If it is not installed here: what to do, for people.
pub fn command(data: &Path, package: &str) -> Result<Vec<String>, String> {
    let folders = fs::read_dir(data.join("connectors")).into_iter().flatten();
    for folder in folders.filter_map(Result::ok) {
        let Ok(manifest) = fs::read(folder.path().join("manifest.json")) else { continue };
        let Ok(manifest) = serde_json::from_slice::<Value>(&manifest) else { continue };
        let installed = manifest.get("package").and_then(Value::as_str).unwrap_or_default();
        if bare(installed) != bare(package) {
            continue;
        }
        let words = manifest.get("command").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<String> = words.filter_map(|it| Some(it.as_str()?.to_owned())).collect();
        if !words.is_empty() {
            return Ok(words);
        }
    }
    let name = package.strip_prefix("airbyte-").unwrap_or(package);
    Err(format!("{package} is not installed here: `windlass connector add {name}` installs it"))
}

/// The name of a package, without a version.
fn bare(package: &str) -> String {
    let name = package.split(|it: char| "=<>!~ [;@".contains(it)).next().unwrap_or_default();
    name.replace('_', "-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_whatever_its_version() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("connectors/source-faker");
        fs::create_dir_all(&folder).unwrap();
        let manifest =
            r#"{"package": "airbyte_source-faker==7.2.1", "command": ["/x/source-faker"]}"#;
        fs::write(folder.join("manifest.json"), manifest).unwrap();
        assert_eq!(command(data.path(), "airbyte-source-faker").unwrap(), ["/x/source-faker"]);
        let missing = command(data.path(), "airbyte-source-file").unwrap_err();
        assert!(missing.contains("`windlass connector add source-file`"), "{missing}");
    }
}
