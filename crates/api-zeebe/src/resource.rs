//! Definitions: deployed, and deleted.

use tonic::Status;
use windlass_gateway::Gateway;

use crate::protocol as p;
use crate::refusal::not_yet;

/// Why all of them are refused for now.
const MISSING: &str = "processes are not executed yet";

pub(crate) async fn deploy_resource(
    _gateway: &Gateway,
    _given: p::DeployResourceRequest,
) -> Result<p::DeployResourceResponse, Status> {
    Err(not_yet("DeployResource", MISSING))
}

pub(crate) async fn deploy_process(
    _gateway: &Gateway,
    _given: p::DeployProcessRequest,
) -> Result<p::DeployProcessResponse, Status> {
    Err(not_yet("DeployProcess", MISSING))
}

pub(crate) async fn delete_resource(
    _gateway: &Gateway,
    _given: p::DeleteResourceRequest,
) -> Result<p::DeleteResourceResponse, Status> {
    Err(not_yet("DeleteResource", MISSING))
}
