//! Call activities: another process runs, and its end is theirs.

use windlass_record::bound::Bound;
use windlass_record::flow::{DefinitionKind, FlowEvent, FlowIncidentKind, InstanceStarted, Key};

use crate::graph::{Binding, Call, Kind, Text};
use crate::kernel::{Port, Stuck, expression, message, variables};
use crate::state::element::Phase;

pub(super) fn activate<P: Port>(port: &mut P, key: Key, call: &Call) -> Result<(), Stuck> {
    let id = expression::text(port, &call.process_id, key, "called process")?;
    let missing = |message: String| Stuck::new(FlowIncidentKind::CalledElement, message);
    let found = bound(port, key, DefinitionKind::Process, &id, &call.binding);
    let definition = found.ok_or_else(|| {
        missing(format!(
            "Expected process with BPMN process id '{id}' to be deployed, but not found."
        ))
    })?;
    let graph = port
        .state()
        .definition(definition)
        .and_then(|definition| definition.graph.clone())
        .ok_or_else(|| missing(format!("process '{id}' cannot be read by this version")))?;
    let start = graph.node(crate::graph::NodeId::PROCESS).start.ok_or_else(|| {
        missing(format!("Expected process with BPMN process id '{id}' to have a none start event, but not found."))
    })?;
    let element = port.state().live(key);
    let root = instance_root(port, element.instance);
    let given: Vec<(Text, Text)> = if call.parent_variables {
        port.state().visible_variables(key).into_iter().collect()
    } else {
        variables::own(port, key)
    };
    variables::check_fits(port, &given)?;
    check_depth(port, key, root)?;
    super::wait_with_boundaries(port, key)?;
    let child = port.next_key();
    port.emit(FlowEvent::InstanceStarted(InstanceStarted {
        key: child,
        definition,
        parent: key,
        root,
        starts: vec![start.0].into(),
        business_id: "",
        tags: Vec::new().into(),
        awaited: false,
        started_by: "",
    }));
    variables::set(port, child, &given);
    Ok(())
}

/// Processes that call each other without end are stopped.
fn check_depth<P: Port>(port: &P, key: Key, root: Key) -> Result<(), Stuck> {
    let state = port.state();
    let bounds = port.bounds();
    let kind = FlowIncidentKind::CalledElement;
    let mut depth = 0;
    let mut at = key;
    while let Some(element) = state.element(at) {
        let instance = state.element(element.instance).and_then(|it| it.process.as_ref());
        at = instance.map_or(Key::NONE, |process| process.parent);
        depth += 1;
        if depth > bounds.call_depth_max {
            let (bound, max) = (Bound::CallDepth, bounds.call_depth_max);
            return Err(Stuck::past(
                kind,
                "processes seem to call each other for ever",
                bound,
                max,
            ));
        }
    }
    let called = state.element(root).map_or(0, |root| root.called_instances);
    if called >= bounds.called_instances_max {
        let (bound, max) = (Bound::CalledInstances, bounds.called_instances_max);
        return Err(Stuck::past(kind, "one instance called too many others", bound, max));
    }
    Ok(())
}

fn instance_root<P: Port>(port: &P, instance: Key) -> Key {
    let process = port.state().live(instance).process.as_ref();
    process.map_or(instance, |process| process.root)
}

/// The version of a definition that an element means.
pub(crate) fn bound<P: Port>(
    port: &P,
    element: Key,
    kind: DefinitionKind,
    id: &str,
    binding: &Binding,
) -> Option<Key> {
    let state = port.state();
    let own = state.definition(state.live(element).definition)?;
    match binding {
        Binding::Latest => state.latest(&own.tenant, kind, id),
        Binding::Deployment => {
            let of_deployment = |key: &Key| {
                state.definition(*key).is_some_and(|it| it.deployment == own.deployment)
            };
            let versions = state.all_versions(&own.tenant, kind, id);
            versions.iter().copied().rev().find(of_deployment)
        }
        Binding::VersionTag(tag) => {
            let tagged =
                |key: &Key| state.definition(*key).is_some_and(|it| it.version_tag == *tag);
            state.all_versions(&own.tenant, kind, id).iter().copied().rev().find(tagged)
        }
    }
}

/// A process instance is done: so is the call activity that it ran for.
pub(crate) fn instance_completed<P: Port>(port: &mut P, key: Key) {
    let element = port.state().live(key);
    let parent = element.process.as_ref().map_or(Key::NONE, |process| process.parent);
    let left = variables::own(port, key);
    let freed = message::lock_of(port, key);
    port.emit(FlowEvent::ElementCompleted { key });
    if let Some(freed) = freed {
        message::start_next(port, &freed);
    }
    let Some(caller) = port.state().element(parent) else { return };
    if caller.phase != Phase::Active {
        return;
    }
    let graph = caller.graph.clone();
    let node = graph.node(caller.node);
    let mut left = left;
    if let (Some(repeat), true) = (&node.repeat, caller.loop_counter > 0) {
        // The child got copies of the loop's own variables; those of its siblings are not its.
        let own = [&*repeat.input_element, &*repeat.output_collection, "loopCounter"];
        left.retain(|(name, _)| !own.contains(&&**name));
    }
    if let Kind::Call(call) = &node.kind
        && (call.child_variables || !node.outputs.is_empty())
    {
        variables::deliver(port, parent, &left);
    }
    port.emit(FlowEvent::ElementCompleting { key: parent });
}
