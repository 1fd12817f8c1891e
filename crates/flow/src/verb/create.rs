//! Create an instance of a process.

use windlass_record::flow::{
    CreateInstance, DefinitionKind, FlowAnswer, FlowEvent, FlowRejection, InstanceStarted, Key,
    ProcessReference,
};

use crate::graph::{Graph, Kind, NodeId};
use crate::kernel::Port;
use crate::kernel::variables::{set, split};

/// Decides [`CreateInstance`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &CreateInstance,
) -> Result<FlowAnswer, FlowRejection> {
    let definition = find(port, &command.tenant, &command.process)?;
    let variables = split(&command.variables)?;
    let state = port.state();
    let found = state.definition(definition);
    let Some((found, graph)) = found.and_then(|found| Some((found, found.graph.clone()?))) else {
        return Err(FlowRejection::DefinitionNotFound { key: definition });
    };
    let (process_id, version) = (found.id.clone(), found.version);
    let starts = starts(&graph, command)?;
    let business = (found.tenant.clone(), (&*command.business_id).into());
    if !command.business_id.is_empty()
        && let Some(holder) = state.business_ids.get(&business)
    {
        return Err(FlowRejection::BusinessIdTaken { id: business.1, holder: *holder });
    }

    // Cannot fail from here.
    let key = port.next_key();
    port.emit(FlowEvent::InstanceStarted(InstanceStarted {
        key,
        definition,
        parent: Key::NONE,
        root: key,
        starts: starts.into(),
        business_id: &command.business_id,
        tags: command.tags.iter().map(|tag| (&**tag).into()).collect::<Vec<_>>().into(),
        awaited: command.awaited,
        started_by: "",
    }));
    set(port, key, &variables);
    Ok(FlowAnswer::InstanceCreated { key, definition, process_id, version })
}

/// The definition that is meant.
fn find<P: Port>(port: &P, tenant: &str, process: &ProcessReference) -> Result<Key, FlowRejection> {
    let state = port.state();
    match process {
        ProcessReference::Key(key) => state
            .definition(*key)
            .filter(|it| it.kind == DefinitionKind::Process && &*it.tenant == tenant)
            .map(|_| *key)
            .ok_or(FlowRejection::DefinitionNotFound { key: *key }),
        ProcessReference::Latest(id) => state
            .latest(tenant, DefinitionKind::Process, id)
            .ok_or_else(|| FlowRejection::ProcessNotFound { id: (&**id).into() }),
        ProcessReference::Version(id, version) => state
            .all_versions(tenant, DefinitionKind::Process, id)
            .iter()
            .copied()
            .find(|key| state.definition(*key).is_some_and(|it| it.version == *version))
            .ok_or_else(|| FlowRejection::VersionNotFound {
                id: (&**id).into(),
                version: *version,
            }),
    }
}

/// The nodes to start at.
fn starts(graph: &Graph, command: &CreateInstance) -> Result<Vec<u32>, FlowRejection> {
    if command.start_at.is_empty() {
        let start = graph.node(NodeId::PROCESS).start;
        let start = start.ok_or_else(|| FlowRejection::NoNoneStart { id: graph.id.clone() })?;
        return Ok(vec![start.0]);
    }
    command.start_at.iter().map(|id| Ok(enterable(graph, id)?.0)).collect()
}

/// A node that can be entered by hand.
pub(super) fn enterable(graph: &Graph, id: &str) -> Result<NodeId, FlowRejection> {
    let node = graph
        .find(id)
        .filter(|node| *node != NodeId::PROCESS)
        .ok_or_else(|| FlowRejection::ElementNotFound { id: id.into() })?;
    let unsuitable = |why| Err(FlowRejection::ElementUnsuitable { id: id.into(), why });
    let kind = &graph.node(node).kind;
    if matches!(kind, Kind::Start(_)) {
        return unsuitable("it is a start event");
    }
    if matches!(kind, Kind::Boundary(_)) {
        return unsuitable("it is a boundary event");
    }
    if matches!(kind, Kind::EventSubProcess) {
        return unsuitable("it is an event sub-process");
    }
    let mut scope = graph.node(node).scope;
    while scope != NodeId::PROCESS {
        if graph.node(scope).repeat.is_some() {
            return unsuitable("it is inside a multi-instance");
        }
        scope = graph.node(scope).scope;
    }
    for flow in &graph.node(node).incoming {
        if matches!(graph.node(graph.flow(*flow).from).kind, Kind::EventBased) {
            return unsuitable("it stands behind an event-based gateway");
        }
    }
    Ok(node)
}
