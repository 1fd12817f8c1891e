//! Talks to a peer's Node client under `xtask/bench/peers`: the shape goes in, figures come out.

use std::path::Path;

use serde_json::{Value, json};

use super::failure::{Failure, Result};
use super::measure::{Figures, Load, Pickup, Shape};
use super::server::{self, LineClient};

/// Runs one shape through the client in `scripts` against the server on `port`.
pub(crate) fn measure(scripts: &Path, port: u16, shape: Shape) -> Result<Figures> {
    let mut command = server::guarded("node", None);
    command.current_dir(scripts).arg("peer.mjs").env("NODE_ENV", "production");
    let mut client = LineClient::start(command)?;
    let (load, in_flight, per_s) = match shape.load {
        Load::Closed { in_flight } => ("closed", Some(in_flight), None),
        Load::Enqueue => ("enqueue", None, None),
        Load::Open { per_s } => ("open", None, Some(per_s)),
    };
    let request = json!({
        "load": load,
        "in_flight": in_flight,
        "per_s": per_s,
        "warmup_ms": shape.warmup.as_secs_f64() * 1e3,
        "window_ms": shape.window.as_secs_f64() * 1e3,
    });
    let answer = client.ask(&json!({ "server": { "port": port }, "shape": request }))?;
    let number = |value: &Value, name: &str| {
        let found = value.get(name).and_then(Value::as_f64);
        found.ok_or_else(|| Failure::new(format!("the client's answer lacks {name}")))
    };
    let pickup_ms = match answer.get("pickup_ms").filter(|pickup| pickup.is_object()) {
        Some(pickup) => Some(Pickup { p50: number(pickup, "p50")?, p99: number(pickup, "p99")? }),
        None => None,
    };
    Ok(Figures {
        rate_per_s: number(&answer, "rate_per_s")?,
        pickup_ms,
        jobs: number(&answer, "jobs")? as u64,
        inexact: answer.get("inexact").and_then(Value::as_str).map(str::to_owned),
    })
}

/// Version of a package as installed for a client.
pub(crate) fn package_version(scripts: &Path, package: &str) -> String {
    let path = scripts.join("node_modules").join(package).join("package.json");
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .and_then(|manifest| manifest.get("version")?.as_str().map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}
