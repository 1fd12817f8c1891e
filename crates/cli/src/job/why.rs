//! `windlass job why`: where a job is in its queue and why it is not running.

use clap::Args;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::output::fields;
use crate::show::state;
use crate::units::{grouped, moment};

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Key of the job
    key: u64,
}

pub(crate) async fn run(online: &Online, args: &WhyArgs) -> Result<(), Failure> {
    let why = online.client.why_job(args.key).await?;
    let mut value = json::why(&why);
    value["key"] = json::key(args.key);
    online.out.show(&value, || {
        let limit = if why.limit_key.is_empty() {
            String::new()
        } else {
            format!("{}: {} of {}", why.limit_key, why.limit_used, why.limit_max)
        };
        let before = |count: Option<u64>| count.map(grouped).unwrap_or_default();
        fields(&[
            ("why", why.text.clone()),
            ("state", state(why.state()).to_owned()),
            ("reason", why.reason.clone()),
            ("jobs before it", before(why.position)),
            ("of them in its lane", before(why.lane_rank)),
            ("until", why.until_ms.map(moment).unwrap_or_default()),
            ("worker", why.worker.clone()),
            ("waiting workers", why.waiting_workers.to_string()),
            ("limit", limit),
        ])
    })
}
