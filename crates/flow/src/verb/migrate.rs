//! Migrate an instance to another definition: what runs goes on under the elements it is mapped to.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::sync::Arc;

use windlass_record::flow::{
    DefinitionKind, FlowAnswer, FlowEvent, FlowRejection, Key, MigrateInstance,
};

use super::modify::members;
use crate::graph::{Graph, Kind, NodeId};
use crate::kernel::Port;
use crate::state::element::Phase;

/// Decides [`MigrateInstance`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &MigrateInstance,
) -> Result<FlowAnswer, FlowRejection> {
    let key = command.key;
    let state = port.state();
    let instance = state
        .element(key)
        .filter(|element| element.process.is_some())
        .ok_or(FlowRejection::InstanceNotFound { key })?;
    let source = instance.graph.clone();
    let target = state
        .definition(command.definition)
        .filter(|definition| definition.kind == DefinitionKind::Process)
        .and_then(|definition| definition.graph.clone())
        .ok_or(FlowRejection::DefinitionNotFound { key: command.definition })?;
    if instance.phase != Phase::Active {
        return Err(not_migratable(&source, key, NodeId::PROCESS, "is not active"));
    }
    let plan = plan(&source, &target, command)?;
    let mut nodes = vec![(0, 0)];
    for member in members(port, key) {
        check_member(port, &source, &target, &plan, key, member, &mut nodes)?;
    }
    nodes.sort_unstable();
    nodes.dedup();

    // Cannot fail from here.
    port.emit(FlowEvent::InstanceMigrated {
        instance: key,
        definition: command.definition,
        nodes: nodes.into(),
    });
    Ok(FlowAnswer::Done)
}

type Plan = BTreeMap<NodeId, NodeId>;

/// Adds where an element instance goes on, with all that it waits for and remembers.
fn check_member<P: Port>(
    port: &P,
    source: &Graph,
    target: &Graph,
    plan: &Plan,
    instance: Key,
    member: Key,
    nodes: &mut Vec<(u32, u32)>,
) -> Result<(), FlowRejection> {
    let state = port.state();
    let element = state.live(member);
    let refuse = |why| Err(not_migratable(source, instance, element.node, why));
    if element.node != NodeId::PROCESS {
        let mapped = mapped(source, target, plan, instance, element.node)?;
        nodes.push((element.node.0, mapped.0));
    }
    if !element.parked.is_empty() {
        return refuse("has tokens that wait at a gateway");
    }
    if !element.triggered.is_empty()
        || (element.begin_at.is_some() && element.phase == Phase::Entering)
    {
        return refuse("is about to go on");
    }
    let kept = element.kept.iter().map(|kept| kept.node);
    let waits = element.waits.iter().filter_map(|wait| {
        match (state.timers.get(wait), state.subscriptions.get(wait)) {
            (Some(timer), _) => Some(timer.node),
            (None, Some(subscription)) => Some(subscription.node),
            (None, None) => None,
        }
    });
    for node in kept.chain(waits).filter(|node| *node != element.node) {
        nodes.push((node.0, mapped_event(source, target, plan, instance, node)?.0));
    }
    Ok(())
}

fn plan(
    source: &Arc<Graph>,
    target: &Arc<Graph>,
    command: &MigrateInstance,
) -> Result<Plan, FlowRejection> {
    let mut plan = Plan::new();
    for (from, to) in &command.mappings {
        let wrong =
            |element: &str, why| FlowRejection::InvalidPlan { element: element.into(), why };
        let source =
            source.find(from).ok_or_else(|| wrong(from, "is not in the source process"))?;
        let target = target.find(to).ok_or_else(|| wrong(to, "is not in the target process"))?;
        if plan.insert(source, target).is_some() {
            return Err(wrong(from, "is mapped twice"));
        }
    }
    Ok(plan)
}

/// Where a live element goes on.
fn mapped(
    source: &Graph,
    target: &Graph,
    plan: &Plan,
    instance: Key,
    node: NodeId,
) -> Result<NodeId, FlowRejection> {
    let refuse = |why| Err(not_migratable(source, instance, node, why));
    let Some(to) = plan.get(&node).copied() else {
        return refuse("is active but has no mapping");
    };
    if matches!(source.node(node).kind, Kind::Exclusive | Kind::Inclusive | Kind::EventBased) {
        return refuse("is a gateway that cannot be migrated while it is active");
    }
    if discriminant(&source.node(node).kind) != discriminant(&target.node(to).kind) {
        return refuse("is mapped to an element of another type");
    }
    if source.node(node).repeat.is_some() != target.node(to).repeat.is_some() {
        return refuse("is a multi-instance on one side only");
    }
    let scope = source.node(node).scope;
    let scope = if scope == NodeId::PROCESS { Some(&NodeId::PROCESS) } else { plan.get(&scope) };
    if scope != Some(&target.node(to).scope) {
        return refuse("would change its flow scope");
    }
    Ok(to)
}

/// Where an open event goes on: as the plan says, or under the same id.
fn mapped_event(
    source: &Graph,
    target: &Graph,
    plan: &Plan,
    instance: Key,
    node: NodeId,
) -> Result<NodeId, FlowRejection> {
    plan.get(&node).copied().or_else(|| target.find(&source.node(node).id)).ok_or_else(|| {
        not_migratable(source, instance, node, "waits for an event that the target does not have")
    })
}

fn not_migratable(source: &Graph, instance: Key, node: NodeId, why: &'static str) -> FlowRejection {
    FlowRejection::NotMigratable { instance, element: source.node(node).id.clone(), why }
}
