//! The way to what is sealed in documents. Whoever keeps the key implements it.

use serde_json::Value;

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
