//! `windlass limit`: bounds on keys that jobs name.

use clap::Subcommand;
use serde_json::json;
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::queue::{Rate, rate};

#[derive(Debug, Subcommand)]
pub(crate) enum LimitCommand {
    /// Set the limits of a key; those left out end
    Set {
        /// The key, as jobs name it
        name: String,
        /// Jobs of it that may be active at once
        #[arg(long, value_name = "N")]
        active_max: Option<u32>,
        /// Activations per window, such as 100/1m
        #[arg(long, value_name = "N/TIME", value_parser = rate)]
        rate: Option<Rate>,
    },
}

pub(crate) async fn run(online: &Online, command: LimitCommand) -> Result<(), Failure> {
    let LimitCommand::Set { name, active_max, rate } = command;
    let request = v1::ConfigureLimitRequest {
        tenant: online.tenant.clone(),
        name: name.clone(),
        active_max,
        rate: rate.map(Rate::window),
    };
    online.client.configure_limit(request).await?;
    online.out.show(&json!({ "name": name, "set": true }), || format!("limit {name} is set"))
}
