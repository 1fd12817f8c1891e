//! `windlass job get`.

use clap::Args;

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::show::job_text;

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Key of the job
    key: u64,
}

pub(crate) async fn run(online: &Online, args: &GetArgs) -> Result<(), Failure> {
    let job = online.client.job(args.key).await?;
    online.out.show(&json::job(&job), || job_text(&job))
}
