//! `windlass status`: the state of the server.

use serde_json::json;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::fields;
use crate::units::{grouped, moment, short};

pub(crate) async fn run(online: &Online) -> Result<(), Failure> {
    let status = online.client.status().await?;
    let value = json!({
        "version": status.version,
        "health": status.health,
        "health_reason": json::some(&status.health_reason),
        "durability": status.durability,
        "partition": status.partition,
        "epoch": status.epoch,
        "lsn": status.lsn,
        "durable_lsn": status.durable_lsn,
        "checkpoint_lsn": status.checkpoint_lsn,
        "last_sync_ms": status.last_sync_ms,
        "live_jobs": status.live_jobs,
        "waiting_requests": status.waiting_requests,
        "uptime_ms": status.uptime_ms,
    });
    online.out.show(&value, || {
        let health = match status.health_reason.as_str() {
            "" => status.health.clone(),
            reason => format!("{}: {reason}", status.health),
        };
        fields(&[
            ("server", format!("{} {}", online.address, status.version)),
            ("health", health),
            ("durability", status.durability.clone()),
            ("live jobs", grouped(status.live_jobs.into())),
            ("waiting workers", status.waiting_requests.to_string()),
            ("up for", short(status.uptime_ms)),
            ("last sync", moment(status.last_sync_ms)),
            ("lsn", format!("{}, durable {}", status.lsn, status.durable_lsn)),
            ("checkpoint", format!("lsn {}", status.checkpoint_lsn)),
            ("partition", format!("{}, epoch {}", status.partition, status.epoch)),
        ])
    })
}
