//! `windlass job update`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::units::{duration, millis};

#[derive(Debug, Args)]
#[group(id = "change", required = true, multiple = true, args = ["retries", "priority", "lease"])]
pub(crate) struct UpdateArgs {
    /// Key of the job
    key: u64,
    /// Retries that it has from now on
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Its new priority
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Let its lease end this long from now
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lease: Option<Duration>,
}

pub(crate) async fn run(online: &Online, args: &UpdateArgs) -> Result<(), Failure> {
    let key = args.key;
    let request = v1::UpdateJobRequest {
        key,
        retries: args.retries,
        priority: args.priority,
        lease_ms: args.lease.map(millis),
        ..v1::UpdateJobRequest::default()
    };
    online.client.update_job(request).await?;
    online.out.show(&json!({ "key": json::key(key), "updated": true }), || {
        format!("job {key} is updated")
    })
}
