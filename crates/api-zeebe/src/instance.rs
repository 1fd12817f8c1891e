//! Process instances: created, cancelled, changed.

use tonic::Status;
use windlass_gateway::Gateway;

use crate::protocol as p;
use crate::refusal::not_yet;

/// Why all of them are refused for now.
const MISSING: &str = "processes are not executed yet";

pub(crate) async fn create_process_instance(
    _gateway: &Gateway,
    _given: p::CreateProcessInstanceRequest,
) -> Result<p::CreateProcessInstanceResponse, Status> {
    Err(not_yet("CreateProcessInstance", MISSING))
}

pub(crate) async fn create_process_instance_with_result(
    _gateway: &Gateway,
    _given: p::CreateProcessInstanceWithResultRequest,
) -> Result<p::CreateProcessInstanceWithResultResponse, Status> {
    Err(not_yet("CreateProcessInstanceWithResult", MISSING))
}

pub(crate) async fn cancel_process_instance(
    _gateway: &Gateway,
    _given: p::CancelProcessInstanceRequest,
) -> Result<p::CancelProcessInstanceResponse, Status> {
    Err(not_yet("CancelProcessInstance", MISSING))
}

pub(crate) async fn set_variables(
    _gateway: &Gateway,
    _given: p::SetVariablesRequest,
) -> Result<p::SetVariablesResponse, Status> {
    Err(not_yet("SetVariables", MISSING))
}

pub(crate) async fn modify_process_instance(
    _gateway: &Gateway,
    _given: p::ModifyProcessInstanceRequest,
) -> Result<p::ModifyProcessInstanceResponse, Status> {
    Err(not_yet("ModifyProcessInstance", MISSING))
}

pub(crate) async fn migrate_process_instance(
    _gateway: &Gateway,
    _given: p::MigrateProcessInstanceRequest,
) -> Result<p::MigrateProcessInstanceResponse, Status> {
    Err(not_yet("MigrateProcessInstance", MISSING))
}

pub(crate) async fn assign_process_instance_business_id(
    _gateway: &Gateway,
    _given: p::AssignProcessInstanceBusinessIdRequest,
) -> Result<p::AssignProcessInstanceBusinessIdResponse, Status> {
    Err(not_yet("AssignProcessInstanceBusinessId", MISSING))
}
