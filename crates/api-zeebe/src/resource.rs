//! Definitions: deployed, and deleted.

use tonic::Status;
use windlass_gateway::Gateway;
use windlass_record::command::Bytes;
use windlass_record::flow::{
    DefinitionKind, DeleteResource, DeployResources, Deployed, DeployedDefinition, FlowAnswer,
    FlowCommand, Key,
};
use windlass_record::rejection::RejectionKind;

use crate::flow::{AskedOfFlows, ask, key, number, other_answer, version};
use crate::protocol as p;
use crate::protocol::deployment::Metadata;
use crate::queue::TENANT_DEFAULT;
use crate::refusal::{not_yet, rejected_as};
use crate::tenant;

pub(crate) async fn deploy_resource(
    gateway: &Gateway,
    given: p::DeployResourceRequest,
) -> Result<p::DeployResourceResponse, Status> {
    let tenant = tenant::one("DeployResource", &given.tenant_id)?;
    let files = given.resources.into_iter().map(|file| (file.name, file.content));
    let deployed = deploy(gateway, tenant, files).await?;
    Ok(p::DeployResourceResponse {
        key: number(deployed.key),
        deployments: shown(&deployed.definitions),
        tenant_id: TENANT_DEFAULT.to_owned(),
    })
}

/// The older way, which knows processes only.
pub(crate) async fn deploy_process(
    gateway: &Gateway,
    given: p::DeployProcessRequest,
) -> Result<p::DeployProcessResponse, Status> {
    if let Some(other) = given.processes.iter().find(|file| !is_process(&file.name)) {
        let problem = format!(
            "Expected to deploy new resources, but encountered the following errors:\n'{}': \
             unknown resource type",
            other.name
        );
        return Err(rejected_as("CREATE", RejectionKind::InvalidArgument, &problem));
    }
    let files = given.processes.into_iter().map(|file| (file.name, file.definition));
    let deployed = deploy(gateway, TENANT_DEFAULT, files).await?;
    Ok(p::DeployProcessResponse {
        key: number(deployed.key),
        processes: deployed.definitions.iter().map(show_process).collect(),
    })
}

fn is_process(name: &str) -> bool {
    name.ends_with(".bpmn") || name.ends_with(".bpmn20.xml")
}

async fn deploy(
    gateway: &Gateway,
    tenant: &str,
    files: impl Iterator<Item = (String, impl AsRef<[u8]>)>,
) -> Result<Deployed, Status> {
    let resources =
        files.map(|(name, content)| (name.into(), Bytes::from(content.as_ref()))).collect();
    let command = DeployResources { tenant: tenant.into(), resources };
    let command = FlowCommand::DeployResources(command);
    match ask(gateway, AskedOfFlows::Deploy, command).await? {
        FlowAnswer::Deployed(deployed) => Ok(*deployed),
        FlowAnswer::Done
        | FlowAnswer::InstanceCreated { .. }
        | FlowAnswer::Key(_)
        | FlowAnswer::Correlated { .. }
        | FlowAnswer::Evaluated(_)
        | FlowAnswer::UserTaskPending { .. }
        | FlowAnswer::Workflow(_) => Err(other_answer()),
    }
}

/// In the order in which clients expect them: processes, decisions each before their graph, forms.
/// Other files have no place in the answer.
fn shown(definitions: &[DeployedDefinition]) -> Vec<p::Deployment> {
    let place_of = |key: Key| definitions.iter().position(|definition| definition.key == key);
    let mut ordered: Vec<_> = definitions
        .iter()
        .map(|definition| match definition.kind {
            DefinitionKind::Process => ((0, None, false), definition),
            DefinitionKind::Decision => ((1, place_of(definition.group), false), definition),
            DefinitionKind::DecisionRequirements => {
                ((1, place_of(definition.key), true), definition)
            }
            DefinitionKind::Form | DefinitionKind::Resource => ((2, None, false), definition),
        })
        .collect();
    ordered.sort_by_key(|(order, _)| *order);
    ordered
        .into_iter()
        .filter_map(|(_, definition)| show(definition))
        .map(|metadata| p::Deployment { metadata: Some(metadata) })
        .collect()
}

fn show(definition: &DeployedDefinition) -> Option<Metadata> {
    let tenant_id = TENANT_DEFAULT.to_owned();
    let version = version(definition.version);
    match definition.kind {
        DefinitionKind::Process => Some(Metadata::Process(show_process(definition))),
        DefinitionKind::Decision => Some(Metadata::Decision(p::DecisionMetadata {
            dmn_decision_id: definition.id.to_string(),
            dmn_decision_name: definition.name.to_string(),
            version,
            decision_key: number(definition.key),
            dmn_decision_requirements_id: definition.group_id.to_string(),
            decision_requirements_key: number(definition.group),
            tenant_id,
        })),
        DefinitionKind::DecisionRequirements => {
            Some(Metadata::DecisionRequirements(p::DecisionRequirementsMetadata {
                dmn_decision_requirements_id: definition.id.to_string(),
                dmn_decision_requirements_name: definition.name.to_string(),
                version,
                decision_requirements_key: number(definition.key),
                resource_name: definition.resource.to_string(),
                tenant_id,
            }))
        }
        DefinitionKind::Form => Some(Metadata::Form(p::FormMetadata {
            form_id: definition.id.to_string(),
            version,
            form_key: number(definition.key),
            resource_name: definition.resource.to_string(),
            tenant_id,
        })),
        DefinitionKind::Resource => None,
    }
}

fn show_process(definition: &DeployedDefinition) -> p::ProcessMetadata {
    p::ProcessMetadata {
        bpmn_process_id: definition.id.to_string(),
        version: version(definition.version),
        process_definition_key: number(definition.key),
        resource_name: definition.resource.to_string(),
        tenant_id: TENANT_DEFAULT.to_owned(),
    }
}

pub(crate) async fn delete_resource(
    gateway: &Gateway,
    given: p::DeleteResourceRequest,
) -> Result<p::DeleteResourceResponse, Status> {
    if given.delete_history == Some(true) {
        let missing = "what is remembered of it stays";
        return Err(not_yet("DeleteResource with its history", missing));
    }
    let command = DeleteResource { key: key(given.resource_key) };
    ask(gateway, AskedOfFlows::Delete, FlowCommand::DeleteResource(command)).await?;
    let resource_key = given.resource_key.to_string();
    Ok(p::DeleteResourceResponse { resource_key, batch_operation: None })
}
