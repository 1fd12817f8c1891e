//! Delete a resource: a definition that nothing runs by is forgotten.

use windlass_record::flow::{
    DefinitionKind, DeleteResource, FlowAnswer, FlowEvent, FlowRejection, Key,
};

use super::deploy::{close_starts, open_starts};
use crate::kernel::Port;

/// Decides [`DeleteResource`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &DeleteResource,
) -> Result<FlowAnswer, FlowRejection> {
    let key = command.key;
    let state = port.state();
    let Some(definition) = state.definition(key) else {
        return Err(FlowRejection::ResourceNotFound { key });
    };
    if let Some(instances) = state.instances_of.get(&key)
        && let Some(instance) = instances.first()
    {
        return Err(FlowRejection::ResourceInUse { key, instance: *instance });
    }
    let (tenant, kind, id) = (definition.tenant.clone(), definition.kind, definition.id.clone());
    let mut gone = vec![key];
    if kind == DefinitionKind::DecisionRequirements {
        let mut decisions: Vec<Key> = state
            .definitions()
            .filter(|(_, other)| other.group == key)
            .map(|(decision, _)| decision)
            .collect();
        decisions.sort_unstable();
        gone.extend(decisions);
    }

    // Cannot fail from here.
    for key in gone {
        close_starts(port, key);
        port.emit(FlowEvent::DefinitionDeleted { key });
    }
    // The version before it is the newest again.
    if kind == DefinitionKind::Process
        && let Some(newest) = port.state().latest(&tenant, kind, &id)
        && !port.state().starts.contains_key(&newest)
        && let Some(graph) = port.state().definition(newest).and_then(|it| it.graph.clone())
    {
        open_starts(port, newest, &graph);
    }
    Ok(FlowAnswer::Done)
}
