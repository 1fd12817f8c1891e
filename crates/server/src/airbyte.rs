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
use crate::settings::{Config, Switch};

/// Where the key may be instead of in its file.
const KEY_VARIABLE: &str = "WINDLASS_AIRBYTE_KEY";

/// Queues of connectors of one tenant that one request for jobs names, at most.
const QUEUES_MAX: usize = 3;

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
pub(crate) async fn router(
    gateway: &Gateway,
    config: &Config,
    clients: Vec<Client>,
) -> Result<Router, ServeError> {
    let vault = Arc::new(vault(&config.data_dir)?);
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

/// Tenants whose connectors are launched: the default one, which is there before there are clients, and those of
/// clients.
pub(crate) fn tenants(config: &Config, clients: &[Client]) -> Vec<String> {
    let (served, unserved) = served(clients, (config.batch_items_max / QUEUES_MAX).max(1));
    if !unserved.is_empty() {
        tracing::warn!(
            served = served.len(),
            tenants = ?unserved,
            "the launcher of connectors has more tenants than it can ask for: jobs of these wait until somebody else takes them"
        );
    }
    served
}

/// The tenants that there are, as many as one request for jobs may name, and the others.
fn served(clients: &[Client], tenants_max: usize) -> (Vec<String>, Vec<String>) {
    let first = tenant();
    let others: BTreeSet<&String> = clients.iter().map(|client| &client.tenant).collect();
    let others = others.into_iter().filter(|tenant| **tenant != first).cloned();
    let mut served: Vec<String> = std::iter::once(first.clone()).chain(others).collect();
    let unserved = served.split_off(served.len().min(tenants_max));
    (served, unserved)
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

/// Those who may ask, where that face is there; an empty file would let everybody in, and is refused.
pub(crate) fn clients(config: &Config) -> Result<Vec<Client>, ConfigError> {
    if config.airbyte == Switch::Off || config.airbyte_clients == OFF {
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

    #[test]
    fn tenants_are_served_once_and_not_too_many() {
        let client = |tenant: String| Client { id: tenant.clone(), secret: "s".to_owned(), tenant };
        let clients = |tenants: &[&str]| -> Vec<Client> {
            tenants.iter().map(|it| client((*it).to_owned())).collect()
        };
        let (served_now, unserved) = served(&clients(&["b", "default", "a", "b"]), 3);
        assert_eq!(
            (served_now, unserved.len()),
            (vec!["default".into(), "a".into(), "b".into()], 0)
        );
        assert_eq!(served(&[], 1).0, ["default"]);
        let (served, unserved) = served(&clients(&["c", "a", "b"]), 2);
        assert_eq!(
            (served, unserved),
            (vec!["default".into(), "a".into()], vec!["b".into(), "c".into()])
        );
    }
}
