//! Deploy resources: all or none. A definition whose id is there already becomes its next version,
//! unless every file of the deployment is the same to the byte as that of the newest one.

use std::sync::Arc;

use windlass_record::command::Bytes;
use windlass_record::flow::{
    DefinitionDeployed, DefinitionKind, DeployResources, Deployed, DeployedDefinition, FlowAnswer,
    FlowEvent, FlowRejection, Key, NodeName, SubscriptionKind, SubscriptionOpened,
};

use crate::feel::{Budget, Environment, Scope, Value};
use crate::graph::{Graph, Kind, Template, Text, Trigger};
use crate::kernel::Port;
use crate::kernel::waits::{close_one, due_of};
use crate::state::FlowState;
use crate::{bpmn, dmn};

/// What a file holds.
struct File<'a> {
    name: &'a str,
    bytes: &'a Bytes,
    definitions: Vec<Found>,
}

/// A definition in a file.
struct Found {
    kind: DefinitionKind,
    id: Text,
    name: Text,
    version_tag: Text,
    graph: Option<Arc<Graph>>,
}

/// Decides [`DeployResources`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &DeployResources,
) -> Result<FlowAnswer, FlowRejection> {
    if command.resources.is_empty() {
        return Err(FlowRejection::NothingToDeploy);
    }
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for (name, bytes) in &command.resources {
        match read(name, bytes) {
            Ok(definitions) => files.push(File { name, bytes, definitions }),
            Err(mut found) => problems.append(&mut found),
        }
    }
    check_across(port, &files, &mut problems);
    if !problems.is_empty() {
        return Err(FlowRejection::InvalidResource { problems: problems.join("\n").into() });
    }

    // Cannot fail from here.
    let same: Option<Vec<_>> =
        files.iter().map(|file| same_as_newest(port.state(), &command.tenant, file)).collect();
    if let Some(same) = same {
        let definitions = same.concat();
        let first = definitions.first().map_or(Key::NONE, |first| first.key);
        let deployment = port.state().definition(first).map(|definition| definition.deployment);
        let key = deployment.unwrap_or(first);
        return Ok(FlowAnswer::Deployed(Box::new(Deployed { key, definitions })));
    }
    let key = port.next_key();
    let mut definitions = Vec::new();
    for file in &files {
        deploy_file(port, &command.tenant, key, file, &mut definitions);
    }
    Ok(FlowAnswer::Deployed(Box::new(Deployed { key, definitions })))
}

/// What stands in a file, or its problems, a line each.
fn read(name: &str, bytes: &[u8]) -> Result<Vec<Found>, Vec<String>> {
    let plain = |kind, id: Text| Found {
        kind,
        id,
        name: name.into(),
        version_tag: Text::default(),
        graph: None,
    };
    if name.ends_with(".bpmn") || name.ends_with(".bpmn20.xml") {
        let compiled = bpmn::compile(bytes).map_err(|found| in_file(name, &found))?;
        let found = compiled.processes.into_iter().map(|graph| Found {
            kind: DefinitionKind::Process,
            id: graph.id.clone(),
            name: graph.name.clone(),
            version_tag: graph.version_tag.clone(),
            graph: Some(Arc::new(graph)),
        });
        return Ok(found.collect());
    }
    if name.ends_with(".dmn") {
        let model = dmn::parse(bytes).map_err(|found| in_file(name, &found))?;
        let mut found = vec![Found {
            kind: DefinitionKind::DecisionRequirements,
            id: model.id().into(),
            name: model.name().into(),
            version_tag: Text::default(),
            graph: None,
        }];
        found.extend(model.decisions().iter().map(|decision| Found {
            kind: DefinitionKind::Decision,
            id: decision.id.as_str().into(),
            name: decision.name.as_str().into(),
            version_tag: Text::default(),
            graph: None,
        }));
        return Ok(found);
    }
    if name.ends_with(".form") {
        let form: serde_json::Value = serde_json::from_slice(bytes)
            .map_err(|error| vec![format!("'{name}': the form is no JSON: {error}")])?;
        let id = form.get("id").and_then(serde_json::Value::as_str).unwrap_or_default();
        if id.trim().is_empty() {
            return Err(vec![format!(
                "'{name}': Expected the form id to be present, but none given"
            )]);
        }
        return Ok(vec![plain(DefinitionKind::Form, id.into())]);
    }
    if name.trim().is_empty() {
        return Err(vec![format!("'{name}': unknown resource type")]);
    }
    Ok(vec![plain(DefinitionKind::Resource, name.into())])
}

fn in_file<T: std::fmt::Display>(name: &str, problems: &[T]) -> Vec<String> {
    problems.iter().map(|problem| format!("'{name}': {problem}")).collect()
}

/// No two files of a deployment bring the same definition, and no two processes the same message.
fn check_across<P: Port>(_port: &P, files: &[File<'_>], problems: &mut Vec<String>) {
    let mut seen = std::collections::BTreeMap::new();
    for file in files {
        for found in &file.definitions {
            if let Some(other) = seen.insert((found.kind, found.id.clone()), file.name) {
                problems.push(format!(
                    "'{}': Duplicated id '{}' in one deployment: '{other}' has it too",
                    file.name, found.id
                ));
            }
        }
    }
}

/// What is there already, when the newest versions of all that a file brings come from the same bytes.
fn same_as_newest(
    state: &FlowState,
    tenant: &str,
    file: &File<'_>,
) -> Option<Vec<DeployedDefinition>> {
    let mut same = Vec::new();
    for found in &file.definitions {
        let key = state.latest(tenant, found.kind, &found.id)?;
        let resource = state.resource(state.definition(key)?.resource)?;
        if *resource.bytes != **file.bytes || &*resource.name != file.name {
            return None;
        }
        same.push(described(state, key)?);
    }
    Some(same)
}

/// A definition as clients see it.
pub(super) fn described(state: &FlowState, key: Key) -> Option<DeployedDefinition> {
    let definition = state.definition(key)?;
    let group_id = state.definition(definition.group).map(|group| group.id.clone());
    Some(DeployedDefinition {
        kind: definition.kind,
        key,
        id: definition.id.clone(),
        version: definition.version,
        version_tag: definition.version_tag.clone(),
        name: definition.name.clone(),
        resource: state.resource(definition.resource)?.name.clone(),
        group: definition.group,
        group_id: group_id.unwrap_or_default(),
    })
}

fn deploy_file<P: Port>(
    port: &mut P,
    tenant: &str,
    deployment: Key,
    file: &File<'_>,
    deployed: &mut Vec<DeployedDefinition>,
) {
    // The deployment's key is the first fresh one, so the file takes the one behind it.
    let fresh = port.next_key();
    let resource = if fresh == deployment { Key::from_raw(fresh.raw() + 1) } else { fresh };
    port.emit(FlowEvent::ResourceDeployed {
        key: resource,
        tenant,
        name: file.name,
        bytes: file.bytes,
    });
    let mut group = Key::NONE;
    for found in &file.definitions {
        let key = port.next_key();
        let newest = port.state().latest(tenant, found.kind, &found.id);
        let version = port.state().newest_version(tenant, found.kind, &found.id).saturating_add(1);
        let nodes: Vec<NodeName<'_>> =
            found.graph.iter().flat_map(|graph| &graph.nodes).map(named).collect();
        port.emit(FlowEvent::DefinitionDeployed(DefinitionDeployed {
            key,
            deployment,
            resource,
            tenant,
            kind: found.kind,
            id: &found.id,
            version,
            version_tag: &found.version_tag,
            name: &found.name,
            group: if found.kind == DefinitionKind::Decision { group } else { Key::NONE },
            nodes: nodes.into(),
        }));
        if found.kind == DefinitionKind::DecisionRequirements {
            group = key;
        }
        if let Some(graph) = &found.graph {
            if let Some(newest) = newest {
                close_starts(port, newest);
            }
            open_starts(port, key, graph);
        }
        deployed.extend(described(port.state(), key));
    }
}

fn named(node: &crate::graph::Node) -> NodeName<'_> {
    NodeName {
        id: (&*node.id).into(),
        name: (&*node.name).into(),
        element_type: node.element_type.into(),
    }
}

/// Start events of a version that is no longer the newest.
pub(super) fn close_starts<P: Port>(port: &mut P, definition: Key) {
    let starts: Vec<Key> =
        port.state().starts.get(&definition).into_iter().flatten().copied().collect();
    for key in starts {
        close_one(port, key);
    }
}

/// Start events of the newest version.
pub(super) fn open_starts<P: Port>(port: &mut P, definition: Key, graph: &Graph) {
    for node in &graph.node(crate::graph::NodeId::PROCESS).event_starts {
        let Kind::Start(start) = &graph.node(*node).kind else { continue };
        let (kind, name) = match &start.trigger {
            Some(Trigger::Timer(timer)) => {
                let value = constant(port, &timer.value);
                if let Some((due_ms, repetitions)) = due_of(timer.kind, &value, port.now_ms()) {
                    port.emit(FlowEvent::TimerArmed {
                        key: port.next_key(),
                        owner: definition,
                        node: node.0,
                        due_ms,
                        repetitions,
                    });
                }
                continue;
            }
            Some(Trigger::Message(message)) => {
                (SubscriptionKind::Message, constant(port, &message.name))
            }
            Some(Trigger::Signal(name)) => (SubscriptionKind::Signal, constant(port, name)),
            Some(_) | None => continue,
        };
        port.emit(FlowEvent::SubscriptionOpened(SubscriptionOpened {
            key: port.next_key(),
            owner: definition,
            node: node.0,
            kind,
            name: &name,
            correlation_key: "",
        }));
    }
}

/// What a start event says; no variables are there yet.
fn constant<P: Port>(port: &P, template: &Template) -> Text {
    struct Nothing;
    impl Scope for Nothing {
        fn get(&self, _name: &str) -> Option<Value> {
            None
        }
    }
    match template {
        Template::Static(text) => text.clone(),
        Template::Feel(expression) => {
            let environment = Environment { now_ms: port.now_ms(), seed: 0 };
            match expression.evaluate(&Nothing, &environment, &mut Budget::default()) {
                Ok(Value::Text(text)) => text,
                Ok(other) => other.to_json().trim_matches('"').into(),
                Err(_) => Text::default(),
            }
        }
    }
}
