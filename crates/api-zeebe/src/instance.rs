//! Process instances: created, cancelled, changed.

use tonic::Status;
use windlass_gateway::Gateway;
use windlass_record::flow::{
    ActivateInstruction, CancelInstance, CreateInstance, FlowAnswer, FlowCommand, Key,
    MigrateInstance, ModifyInstance, MoveAncestor, MoveInstruction, NO_KEY, ProcessReference,
    SetVariables, TerminateInstruction, VariableInstruction,
};

use crate::change::{self, Change};
use crate::document::{self, Fetch};
use crate::flow::{self};
use crate::flow::{AskedOfFlows, ask, key, key_of, number, other_answer, refused, timed_out};
use crate::limit::REQUEST_MS_DEFAULT;
use crate::protocol as p;
use crate::protocol::modify_process_instance_request as modify;
use crate::queue::TENANT_DEFAULT;
use crate::refusal::not_yet;
use crate::{label, tenant};

pub(crate) async fn create_process_instance(
    gateway: &Gateway,
    given: p::CreateProcessInstanceRequest,
) -> Result<p::CreateProcessInstanceResponse, Status> {
    let (tags, business_id) = (given.tags.clone(), given.business_id.clone());
    let command = creation("CreateProcessInstance", given)?;
    let asked = AskedOfFlows::Create;
    match ask(gateway, asked, FlowCommand::CreateInstance(command)).await? {
        FlowAnswer::InstanceCreated { key, definition, process_id, version } => {
            Ok(p::CreateProcessInstanceResponse {
                process_definition_key: number(definition),
                bpmn_process_id: process_id.to_string(),
                version: flow::version(version),
                process_instance_key: number(key),
                tenant_id: TENANT_DEFAULT.to_owned(),
                tags,
                business_id,
            })
        }
        FlowAnswer::Done
        | FlowAnswer::Deployed(_)
        | FlowAnswer::Key(_)
        | FlowAnswer::Correlated { .. }
        | FlowAnswer::Evaluated(_)
        | FlowAnswer::UserTaskPending { .. }
        | FlowAnswer::Workflow(_) => Err(other_answer()),
    }
}

pub(crate) async fn create_process_instance_with_result(
    gateway: &Gateway,
    given: p::CreateProcessInstanceWithResultRequest,
) -> Result<p::CreateProcessInstanceWithResultResponse, Status> {
    let wait_ms = match u64::try_from(given.request_timeout) {
        Ok(0) | Err(_) => REQUEST_MS_DEFAULT,
        Ok(given) => given,
    };
    let request = given.request.unwrap_or_default();
    let (tags, business_id) = (request.tags.clone(), request.business_id.clone());
    let command = creation("CreateProcessInstanceWithResult", request)?;
    let run = gateway.run_instance(command, wait_ms).await;
    let run = run.map_err(|error| refused(AskedOfFlows::CreateAwaited, error))?;
    let variables = run.variables.ok_or_else(|| timed_out(wait_ms))?;
    Ok(p::CreateProcessInstanceWithResultResponse {
        process_definition_key: number(run.definition),
        bpmn_process_id: run.process_id.to_string(),
        version: flow::version(run.version),
        process_instance_key: number(run.key),
        variables: Fetch::new(given.fetch_variables).among(&variables),
        tenant_id: TENANT_DEFAULT.to_owned(),
        tags,
        business_id,
    })
}

/// What both ways to create have in common.
fn creation(rpc: &str, given: p::CreateProcessInstanceRequest) -> Result<CreateInstance, Status> {
    let tenant = tenant::one(rpc, &given.tenant_id)?;
    if !given.runtime_instructions.is_empty() {
        let missing = "an instance does not end behind an element of its own accord";
        return Err(not_yet(&format!("{rpc} with runtime instructions"), missing));
    }
    let variables = document::variables(&given.variables)?;
    label::check_tags(&given.tags)?;
    let business_id = given.business_id.unwrap_or_default();
    label::check_business_id(&business_id)?;
    let process = if given.bpmn_process_id.is_empty() {
        ProcessReference::Key(key(given.process_definition_key))
    } else {
        match u32::try_from(given.version) {
            Ok(version) => ProcessReference::Version(given.bpmn_process_id.into(), version),
            // Every negative version is the latest.
            Err(_) => ProcessReference::Latest(given.bpmn_process_id.into()),
        }
    };
    Ok(CreateInstance {
        tenant: tenant.into(),
        process,
        variables,
        start_at: given.start_instructions.into_iter().map(|at| at.element_id.into()).collect(),
        business_id: business_id.into(),
        tags: given.tags.into_iter().map(Into::into).collect(),
        awaited: false,
    })
}

pub(crate) async fn cancel_process_instance(
    gateway: &Gateway,
    given: p::CancelProcessInstanceRequest,
) -> Result<p::CancelProcessInstanceResponse, Status> {
    let command = CancelInstance { key: key(given.process_instance_key) };
    ask(gateway, AskedOfFlows::Cancel, FlowCommand::CancelInstance(command)).await?;
    Ok(p::CancelProcessInstanceResponse {})
}

pub(crate) async fn set_variables(
    gateway: &Gateway,
    given: p::SetVariablesRequest,
) -> Result<p::SetVariablesResponse, Status> {
    let command = SetVariables {
        scope: key(given.element_instance_key),
        variables: document::variables(&given.variables)?,
        local: given.local,
    };
    // The element may be a user task, whose listeners are asked first.
    let asked = AskedOfFlows::SetVariables;
    let change = Change {
        command: FlowCommand::SetVariables(command),
        intent: asked.intent(),
        what: format!("update variables for element with key '{}'", given.element_instance_key),
    };
    let answer = change::change(gateway, change, |error| refused(asked, error)).await?;
    Ok(p::SetVariablesResponse { key: key_of(&answer)? })
}

pub(crate) async fn modify_process_instance(
    gateway: &Gateway,
    given: p::ModifyProcessInstanceRequest,
) -> Result<p::ModifyProcessInstanceResponse, Status> {
    let activate: Result<Vec<_>, Status> =
        given.activate_instructions.into_iter().map(activation).collect();
    let terminate: Result<Vec<_>, Status> =
        given.terminate_instructions.into_iter().map(termination).collect();
    let moves: Result<Vec<_>, Status> = given.move_instructions.into_iter().map(movement).collect();
    let command = ModifyInstance {
        key: key(given.process_instance_key),
        activate: activate?,
        terminate: terminate?,
        moves: moves?,
    };
    ask(gateway, AskedOfFlows::Modify, FlowCommand::ModifyInstance(command)).await?;
    Ok(p::ModifyProcessInstanceResponse {})
}

fn activation(given: modify::ActivateInstruction) -> Result<ActivateInstruction, Status> {
    Ok(ActivateInstruction {
        element_id: given.element_id.into(),
        ancestor: ancestor(given.ancestor_element_instance_key),
        variables: variables(given.variable_instructions)?,
    })
}

fn variables(given: Vec<modify::VariableInstruction>) -> Result<Vec<VariableInstruction>, Status> {
    let one = |given: modify::VariableInstruction| {
        let variables = document::variables(&given.variables)?;
        Ok(VariableInstruction { variables, scope_id: given.scope_id.into() })
    };
    given.into_iter().map(one).collect()
}

/// Clients say "the one there is" with 0 or -1.
fn ancestor(given: i64) -> Key {
    match given {
        named @ 1.. => key(named),
        _ => NO_KEY,
    }
}

fn termination(given: modify::TerminateInstruction) -> Result<TerminateInstruction, Status> {
    ended(given.element_id, given.element_instance_key)
}

/// An element by its id or an element instance by its key.
fn ended(id: String, instance_key: i64) -> Result<TerminateInstruction, Status> {
    match (id.is_empty(), instance_key) {
        (false, 1..) => Err(Status::invalid_argument(
            "Expected an element id or an element instance key to say what ends, but both were given",
        )),
        (false, _) => Ok(TerminateInstruction::Element(id.into())),
        (true, instance_key) => Ok(TerminateInstruction::Instance(key(instance_key))),
    }
}

fn movement(given: modify::MoveInstruction) -> Result<MoveInstruction, Status> {
    let inferred = given.infer_ancestor_scope_from_source_hierarchy;
    let ancestor = match ancestor(given.ancestor_element_instance_key) {
        NO_KEY if inferred => MoveAncestor::SourceHierarchy,
        NO_KEY if given.use_source_parent_key_as_ancestor_scope_key => MoveAncestor::SourceParent,
        named => MoveAncestor::Instance(named),
    };
    Ok(MoveInstruction {
        source: ended(given.source_element_id, given.source_element_instance_key)?,
        target_id: given.target_element_id.into(),
        ancestor,
        variables: variables(given.variable_instructions)?,
    })
}

pub(crate) async fn migrate_process_instance(
    gateway: &Gateway,
    given: p::MigrateProcessInstanceRequest,
) -> Result<p::MigrateProcessInstanceResponse, Status> {
    // Without a plan there is no target, which is refused as one that does not exist.
    let plan = given.migration_plan.unwrap_or_default();
    let mappings = plan
        .mapping_instructions
        .into_iter()
        .map(|given| (given.source_element_id.into(), given.target_element_id.into()))
        .collect();
    let command = MigrateInstance {
        key: key(given.process_instance_key),
        definition: key(plan.target_process_definition_key),
        mappings,
    };
    ask(gateway, AskedOfFlows::Migrate, FlowCommand::MigrateInstance(command)).await?;
    Ok(p::MigrateProcessInstanceResponse {})
}

pub(crate) async fn assign_process_instance_business_id(
    _gateway: &Gateway,
    _given: p::AssignProcessInstanceBusinessIdRequest,
) -> Result<p::AssignProcessInstanceBusinessIdResponse, Status> {
    let missing = "a business id is given when the instance is created";
    Err(not_yet("AssignProcessInstanceBusinessId", missing))
}
