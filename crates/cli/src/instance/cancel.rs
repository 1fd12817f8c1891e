//! `windlass instance cancel`.

use clap::Args;
use serde_json::json;

use super::owned;
use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::rest::Rest;

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Keys of the instances
    #[arg(required = true)]
    keys: Vec<u64>,
}

pub(crate) async fn run(online: &Online, args: &CancelArgs) -> Result<(), Failure> {
    let rest = Rest::new(online);
    for key in &args.keys {
        if !online.tenant.is_empty() {
            owned(online, &rest, &key.to_string()).await?;
        }
        let path = format!("process-instances/{key}/cancellation");
        rest.post(&path, &json!({})).await.map_err(|failure| {
            failure
                .hint_if_refused(format!("`windlass instance get {key}` says whether it has ended"))
        })?;
        let value = json!({ "key": json::key(*key), "cancelled": true });
        online.out.show(&value, || format!("{key} is cancelled"))?;
    }
    Ok(())
}
