//! `windlass limit`: bounds on keys that jobs name.

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::{fields, table};
use crate::queue::{Rate, rate};
use crate::units::short;

/// Asked for at once.
const PAGE_MAX: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum LimitCommand {
    /// Set the limits of a key; those left out end
    Set {
        /// The key, as jobs name it
        name: String,
        /// Jobs of it that may be active at once; 0 lets none start
        #[arg(long, value_name = "N")]
        active_max: Option<u32>,
        /// Activations per window, such as 100/1m; at least 1
        #[arg(long, value_name = "N/TIME", value_parser = rate)]
        rate: Option<Rate>,
    },
    /// List the keys that have limits, set or by their queue
    List {
        /// Names after this one
        #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
        after: String,
        /// At most so many
        #[arg(long, default_value_t = 100, value_name = "N")]
        limit: u32,
    },
    /// Show a key: its limits, and how much of them is used
    Get {
        /// The key, as jobs name it
        name: String,
    },
}

pub(crate) async fn run(online: &Online, command: LimitCommand) -> Result<(), Failure> {
    match command {
        LimitCommand::Set { name, active_max, rate } => set(online, name, active_max, rate).await,
        LimitCommand::List { after, limit } => list(online, after, limit).await,
        LimitCommand::Get { name } => {
            let request = v1::GetLimitRequest { tenant: online.tenant.clone(), name };
            let limit = online.client.limit(request).await?;
            online.out.show(&json::limit(&limit), || {
                fields(&[
                    ("limit", limit.name.clone()),
                    ("active", of(limit.active, limit.active_max)),
                    ("activated", activated(&limit)),
                    ("set by", set_by(&limit).to_owned()),
                ])
            })
        }
    }
}

async fn set(
    online: &Online,
    name: String,
    active_max: Option<u32>,
    rate: Option<Rate>,
) -> Result<(), Failure> {
    let request = v1::ConfigureLimitRequest {
        tenant: online.tenant.clone(),
        name: name.clone(),
        active_max,
        rate: rate.map(Rate::window),
    };
    online.client.configure_limit(request).await?;
    online.out.show(&json!({ "name": name, "set": true }), || match active_max {
        Some(0) => format!("limit {name} is set: no job of it starts"),
        _ => format!("limit {name} is set"),
    })
}

async fn list(online: &Online, after: String, count_max: u32) -> Result<(), Failure> {
    let mut request = v1::ListLimitsRequest {
        tenant: online.tenant.clone(),
        after_name: after,
        ..v1::ListLimitsRequest::default()
    };
    let mut limits = Vec::new();
    loop {
        let left = count_max.saturating_sub(u32::try_from(limits.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        request.limit = left.min(PAGE_MAX);
        let page = online.client.list_limits(request.clone()).await?;
        limits.extend(page.limits);
        request.after_name = page.next_name;
        if request.after_name.is_empty() {
            break;
        }
    }
    let listed: Vec<Value> = limits.iter().map(json::limit).collect();
    let value = json!({ "limits": listed, "next": json::some(&request.after_name) });
    online.out.show(&value, || {
        if limits.is_empty() {
            return "no limits; `windlass limit set` makes one".to_owned();
        }
        let row = |limit: &v1::LimitView| {
            let active = of(limit.active, limit.active_max);
            vec![limit.name.clone(), active, activated(limit), set_by(limit).to_owned()]
        };
        let rows: Vec<Vec<String>> = limits.iter().map(row).collect();
        let mut text = table(&["limit", "active", "activated", "set by"], &rows);
        if !request.after_name.is_empty() {
            text.push_str(&format!("\nthere are more: --after {}", request.after_name));
        }
        text
    })
}

/// `3 of 8`, or `3` where any number may.
fn of(used: u32, max: Option<u32>) -> String {
    max.map_or_else(|| used.to_string(), |max| format!("{used} of {max}"))
}

/// `97 of 100 in 60.0 s`; nothing where nobody counts.
fn activated(limit: &v1::LimitView) -> String {
    let counted = |rate: v1::RateWindow| {
        format!("{} of {} in {}", limit.activated, rate.max, short(rate.window_ms))
    };
    limit.rate.map(counted).unwrap_or_default()
}

fn set_by(limit: &v1::LimitView) -> &'static str {
    if limit.of_queue { "its queue" } else { "hand" }
}
