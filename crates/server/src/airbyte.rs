//! The Airbyte face, as a part of the server: its key, its clients, its routes.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use serde::Deserialize;
use windlass_api_airbyte::vault::{Vault, VaultError};
use windlass_api_airbyte::{Client, Settings, limit};
use windlass_gateway::Gateway;

use crate::data;
use crate::error::{ConfigError, ServeError};
use crate::settings::Config;

/// Where the key may be instead of in its file.
const KEY_VARIABLE: &str = "WINDLASS_AIRBYTE_KEY";

/// What says that there is no file of clients.
const OFF: &str = "off";

/// The vault of a data directory: with the key of the environment, or else that of the directory, which is made
/// if it is missing.
///
/// # Errors
///
/// When the key cannot be read or made, is none, or can be read by others.
fn vault(data_dir: &Path) -> Result<Vault, ServeError> {
    vault_by(data_dir, Vault::at)
}

/// The same for a runner: a key that is missing is not made.
///
/// # Errors
///
/// When there is none, too.
pub(crate) fn vault_there(data_dir: &Path) -> Result<Vault, ServeError> {
    vault_by(data_dir, Vault::read)
}

fn vault_by(
    data_dir: &Path,
    open: impl Fn(&Path) -> Result<Vault, VaultError>,
) -> Result<Vault, ServeError> {
    let opened = match std::env::var(KEY_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => Vault::of(&text),
        Ok(_) | Err(_) => open(&data::airbyte_key_path(data_dir)),
    };
    opened.map_err(ServeError::Vault)
}

/// The routes.
pub(crate) async fn router(gateway: &Gateway, config: &Config) -> Result<Router, ServeError> {
    let vault = Arc::new(vault(&config.data_dir)?);
    let clients = clients(config)?;
    let unserved = unserved(config, &clients);
    if !unserved.is_empty() {
        tracing::warn!(
            tenants = ?unserved,
            "the launcher of connectors works for the tenant default: jobs of these wait until somebody else takes them"
        );
    }
    let settings = Settings { vault, clients, retry: config.airbyte_retry() };
    let (router, started) = windlass_api_airbyte::open(gateway, settings).await;
    for problem in &started.problems {
        tracing::warn!(%problem, "something of Airbyte's face could not be brought in order");
    }
    if started.foreign_secrets > 0 {
        tracing::warn!(
            secrets = started.foreign_secrets,
            "secrets of connectors were sealed with another key: bring back airbyte.key, or give them anew"
        );
    }
    Ok(router)
}

/// Tenants of clients whose jobs the launcher of this server does not take.
fn unserved<'c>(config: &Config, clients: &'c [Client]) -> BTreeSet<&'c str> {
    let launched = config.connector_settings().map(|settings| settings.tenant);
    let tenants = clients.iter().map(|client| client.tenant.as_str());
    tenants
        .filter(|tenant| launched.as_deref().is_some_and(|launched| launched != *tenant))
        .collect()
}

/// The file of clients.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    client: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    secret: String,
    #[serde(default = "tenant")]
    tenant: String,
}

fn tenant() -> String {
    windlass_api_airbyte::TENANT_DEFAULT.to_owned()
}

/// Those who may ask; an empty file would let everybody in, and is refused.
fn clients(config: &Config) -> Result<Vec<Client>, ConfigError> {
    if config.airbyte_clients == OFF {
        return Ok(Vec::new());
    }
    let path = Path::new(&config.airbyte_clients);
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let file: File = toml::from_str(&text)
        .map_err(|source| ConfigError::Parse { path: path.to_owned(), source: Box::new(source) })?;
    let is_whole = |entry: &Entry| {
        !entry.id.is_empty() && !entry.secret.is_empty() && !entry.tenant.is_empty()
    };
    let count = file.client.len();
    if count == 0 || count > limit::CLIENTS_MAX || !file.client.iter().all(is_whole) {
        let (setting, must) = (
            "airbyte_clients",
            "a file of 1 to 10000 clients with an id, a secret and a tenant each",
        );
        return Err(ConfigError::Value { setting, must });
    }
    let mut ids = HashSet::new();
    if !file.client.iter().all(|entry| ids.insert(&*entry.id)) {
        let (setting, must) = ("airbyte_clients", "a file in which each client's id is there once");
        return Err(ConfigError::Value { setting, must });
    }
    let client = |entry: Entry| Client { id: entry.id, secret: entry.secret, tenant: entry.tenant };
    Ok(file.client.into_iter().map(client).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Switch;

    #[test]
    fn tenants_that_the_launcher_does_not_serve_are_said() {
        let client = |tenant: &str| Client {
            id: tenant.to_owned(),
            secret: "s".to_owned(),
            tenant: tenant.to_owned(),
        };
        let clients = [client("default"), client("b"), client("a"), client("b")];
        let mut config = Config { sandbox_program: Some("windlass".into()), ..Config::default() };
        assert_eq!(unserved(&config, &clients), BTreeSet::from(["a", "b"]));
        assert!(unserved(&config, &clients[..1]).is_empty());
        config.connectors = Switch::Off;
        assert!(unserved(&config, &clients).is_empty(), "another server has its own launcher");
    }
}
