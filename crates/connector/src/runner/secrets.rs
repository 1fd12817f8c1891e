//! The way to what is sealed in documents. Whoever keeps the key implements it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::journal::JournalError;
use crate::process::Side;
use crate::runner::folder::Folder;
use crate::runner::log::Log;
use crate::runner::spool::Home;

/// Opens and seals secrets of configurations.
pub trait Secrets: Send + Sync {
    /// Opens what is sealed, in place. The scope names the document: `<tenant>/<kind>/<id>`.
    ///
    /// # Errors
    /// If it was sealed with another key, or somewhere else: why, for people.
    fn open(&self, scope: &str, configuration: &mut Value) -> Result<(), String>;

    /// Seals what is secret by the connector's specification, in place.
    ///
    /// # Errors
    /// If it cannot be sealed: why, for people.
    fn seal(
        &self,
        scope: &str,
        configuration: &mut Value,
        specification: Option<&Value>,
    ) -> Result<(), String>;
}

/// Keeps the new configurations of an attempt: sealed, and out of its log.
#[derive(Clone)]
pub struct Keeper {
    /// Who seals them.
    pub secrets: Arc<dyn Secrets>,
    /// What must have nothing of them from then on.
    pub log: Arc<Log>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Keeps one that a connector said, in the attempt's folder.
    pub(crate) fn keep(
        &self,
        folder: &Folder,
        (scope, home): (&str, &Home),
        side: Side,
        config: &str,
    ) -> Result<(), JournalError> {
        let opened: Value = serde_json::from_str(config)
            .map_err(|error| JournalError::new("read the new configuration", &error))?;
        let mut sealed = opened.clone();
        let done = self.secrets.seal(scope, &mut sealed, home.specification.as_ref());
        done.map_err(|message| JournalError { message })?;
        self.log.hide(differing(&sealed, &opened));
        let kept = folder.spool_configuration(side, &sealed);
        kept.map_err(|error| JournalError::new("keep the new configuration", &error))
    }
}

/// Texts of a configuration that are sealed; of longer ones each line, as logs have them.
pub(crate) fn differing(sealed: &Value, opened: &Value) -> Vec<String> {
    let mut found = Vec::new();
    differ(sealed, opened, &mut found);
    found
}

fn differ(sealed: &Value, opened: &Value, found: &mut Vec<String>) {
    match (sealed, opened) {
        (sealed, opened) if sealed == opened => {}
        // What is sealed as a whole is an object too, of another field.
        (Value::Object(sealed), Value::Object(opened)) if sealed.keys().eq(opened.keys()) => {
            let pairs = sealed.values().zip(opened.values());
            pairs.for_each(|(sealed, opened)| differ(sealed, opened, found));
        }
        (Value::Array(sealed), Value::Array(opened)) => {
            let pairs = sealed.iter().zip(opened);
            pairs.for_each(|(sealed, opened)| differ(sealed, opened, found));
        }
        (_, Value::String(text)) => found.extend(text.lines().map(str::to_owned)),
        (_, Value::Object(fields)) => {
            fields.values().for_each(|field| differ(&Value::Null, field, found));
        }
        (_, Value::Array(items)) => {
            items.iter().for_each(|item| differ(&Value::Null, item, found));
        }
        (_, Value::Null | Value::Bool(_) | Value::Number(_)) => found.push(opened.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_sealed_is_found() {
        let seal = json!({ "$sealed": "v1" });
        let sealed = json!({ "a": "open", "b": seal, "c": seal, "d": [1, seal], "e": seal });
        let opened = json!({ "a": "open", "b": "token", "c": { "one": "within" }, "d": [1, 23],
            "e": "first\nsecond\n" });
        let found = differing(&sealed, &opened);
        assert_eq!(found, ["token", "within", "23", "first", "second"]);
    }
}
