//! Connectors, as a part of the server: the launcher in its process, and the runner as a process of its
//! own, which gets at secrets by the key that the face keeps.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;
use windlass_api_airbyte::Client;
use windlass_api_airbyte::vault::Vault;
use windlass_connector::process::Helper;
use windlass_connector::runner::{self, Folder, Handle, Secrets};

use crate::airbyte::{tenants, vault_there};
use crate::builtin::reachable;
use crate::settings::Config;

/// Starts the launcher, if it is wanted. It connects by itself.
pub(crate) fn start(config: &Config, clients: &[Client], address: SocketAddr) -> Option<Handle> {
    let mut settings = config.connector_settings()?;
    settings.tenants = tenants(config, clients);
    let endpoint = format!("http://{}", reachable(address));
    match runner::launcher::run(settings, &endpoint) {
        Ok(handle) => Some(handle),
        Err(error) => {
            tracing::warn!(%error, "the launcher of connectors did not start");
            None
        }
    }
}

/// Runs the attempt in a folder: a whole program, to be called first thing. `helper` are the words with
/// which this program is a helper of connectors.
pub fn runner(folder: &Path, helper: &[&str]) -> ExitCode {
    match sealed(folder, helper) {
        Ok((helper, secrets)) => runner::process::run(folder, helper, secrets),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn sealed(folder: &Path, helper: &[&str]) -> Result<(Helper, Arc<dyn Secrets>), String> {
    let (_, spec) = Folder::open(folder).map_err(|error| error.to_string())?;
    // This program as it runs, whatever an upgrade put in its place.
    let program = PathBuf::from("/proc/self/exe");
    let words = helper.iter().map(OsString::from).collect();
    let vault = vault_there(&spec.data).map_err(|error| error.to_string())?;
    Ok((Helper { program, words }, Arc::new(Sealed(vault))))
}

/// What the face's vault seals and opens.
struct Sealed(Vault);

impl Secrets for Sealed {
    fn open(&self, scope: &str, configuration: &mut Value) -> Result<(), String> {
        self.0.open(scope, configuration).map_err(|error| error.to_string())
    }

    fn seal(
        &self,
        scope: &str,
        configuration: &mut Value,
        specification: Option<&Value>,
    ) -> Result<(), String> {
        self.0.seal(scope, configuration, specification).map_err(|error| error.to_string())
    }
}
