//! `windlass job cancel`.

use clap::Args;
use serde_json::json;
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Key of the job
    key: u64,
    /// Take it from its worker, also where a cancel would ask it first
    #[arg(long)]
    force: bool,
    /// Why
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

pub(crate) async fn run(online: &Online, args: CancelArgs) -> Result<(), Failure> {
    let key = args.key;
    let (force, reason) = (args.force, args.reason);
    let request = v1::CancelJobRequest { key, force, reason, ..v1::CancelJobRequest::default() };
    let pending = online.client.cancel_job(request).await?;
    online.out.show(&json!({ "key": json::key(key), "pending": pending }), || {
        if pending {
            format!("the worker of job {key} was asked to stop; --force does not wait for it")
        } else {
            format!("job {key} is cancelled")
        }
    })
}
