//! Ties the nodes of a process together: flows, boundaries, starts, compensation.

use super::extension;
use super::outline::{Item, Outline, Tag};
use super::report::{Report, quote};
use super::xml::{self, Element};
use crate::graph::{Flow, FlowId, Graph, Kind, Node, NodeId, Trigger};

/// Adds flows and all that nodes know of each other.
pub(super) fn tie(outline: &Outline<'_>, graph: &mut Graph, report: &mut Report) {
    flows(outline, graph, report);
    defaults(outline, graph, report);
    starts(outline, graph);
    boundaries(outline, graph);
    inclusive_joins(outline, graph);
    compensation(outline, graph, report);
}

fn node_mut(graph: &mut Graph, id: NodeId) -> Option<&mut Node> {
    graph.nodes.get_mut(usize::try_from(id.0).ok()?)
}

fn flows(outline: &Outline<'_>, graph: &mut Graph, report: &mut Report) {
    for element in outline.flows.iter().copied() {
        let from = end_of(outline, element, "sourceRef", report);
        let to = end_of(outline, element, "targetRef", report);
        let condition = condition(element, report);
        let (Some(from), Some(to)) = (from, to) else { continue };
        let id = FlowId(u32::try_from(graph.flows.len()).expect("the XML parser bounds its nodes"));
        let name = element.attribute("id").unwrap_or_default();
        graph.flows.push(Flow { id: name.into(), from, to, condition });
        if let Some(node) = node_mut(graph, from) {
            node.outgoing.push(id);
        }
        if let Some(node) = node_mut(graph, to) {
            node.incoming.push(id);
        }
    }
}

fn end_of(
    outline: &Outline<'_>,
    element: Element<'_>,
    attribute: &str,
    report: &mut Report,
) -> Option<NodeId> {
    let reference = xml::attribute(element, attribute).map(str::trim);
    let found = reference.and_then(|reference| outline.ids.get(reference)).copied();
    let found = found.filter(|id| *id != NodeId::PROCESS);
    if found.is_none() {
        let what = quote(reference.unwrap_or_default());
        report.error(element, format!("{attribute} {what} is no flow node of this process"));
    }
    found
}

fn condition(element: Element<'_>, report: &mut Report) -> Option<crate::feel::Expression> {
    let condition = xml::child(element, "conditionExpression")?;
    let text = xml::text_of(condition);
    extension::expression(report, condition, "conditionExpression", &text)
}

fn defaults(outline: &Outline<'_>, graph: &mut Graph, report: &mut Report) {
    // Elsewhere there are no conditions, and a default flow means nothing.
    let choosing = |item: &Item<'_>| matches!(item.tag, Tag::Exclusive | Tag::Inclusive);
    for (id, item) in outline.numbered().filter(|(_, item)| choosing(item)) {
        let Some(name) = xml::attribute(item.xml, "default") else { continue };
        let found = graph
            .get(id)
            .and_then(|node| node.outgoing.iter().find(|flow| *graph.flow(**flow).id == *name))
            .copied();
        if found.is_none() {
            let what = "does not leave this element";
            report.error(item.xml, format!("the default flow {} {what}", quote(name)));
        }
        if let Some(node) = node_mut(graph, id) {
            node.default_flow = found;
        }
    }
}

fn starts(outline: &Outline<'_>, graph: &mut Graph) {
    for (id, item) in outline.numbered() {
        let triggered = graph.get(id).is_some_and(
            |node| matches!(&node.kind, Kind::Start(start) if start.trigger.is_some()),
        );
        let Some(scope) = node_mut(graph, item.scope) else { continue };
        if item.tag == Tag::EventSubProcess {
            scope.event_scopes.push(id);
        } else if item.tag != Tag::StartEvent {
            continue;
        } else if triggered && item.scope == NodeId::PROCESS {
            scope.event_starts.push(id);
        } else if scope.start.is_none() {
            scope.start = Some(id);
        }
    }
}

fn boundaries(outline: &Outline<'_>, graph: &mut Graph) {
    for (id, _) in outline.numbered() {
        let Some(Kind::Boundary(boundary)) = graph.get(id).map(|node| &node.kind) else { continue };
        let host = boundary.host;
        if let Some(host) = node_mut(graph, host) {
            host.boundaries.push(id);
        }
    }
}

fn inclusive_joins(outline: &Outline<'_>, graph: &mut Graph) {
    for (id, item) in outline.numbered().filter(|(_, item)| item.tag == Tag::Inclusive) {
        let joins = graph.get(id).is_some_and(|node| node.incoming.len() > 1);
        if let Some(scope) = node_mut(graph, item.scope).filter(|_| joins) {
            scope.inclusive_joins.push(id);
        }
    }
}

fn compensation(outline: &Outline<'_>, graph: &mut Graph, report: &mut Report) {
    for (id, item) in outline.numbered() {
        let Some(Kind::Boundary(boundary)) = graph.get(id).map(|node| &node.kind) else { continue };
        if !is_compensation(&boundary.trigger) {
            continue;
        }
        let host = boundary.host;
        let name = xml::attribute(item.xml, "id").unwrap_or_default();
        let mut handlers = outline
            .associations
            .get(name)
            .into_iter()
            .flatten()
            .filter_map(|association| outline.find(*association, "targetRef"));
        let handler = handlers.next();
        let one = handler.filter(|_| handlers.next().is_none());
        let undoes = one.and_then(|one| graph.get(one)).is_some_and(|node| node.is_compensation);
        if !undoes {
            let what = "a compensation boundary event needs one association to an activity with \
                        isForCompensation=\"true\"";
            report.error(item.xml, what);
        }
        if let Some(host) = node_mut(graph, host) {
            host.compensation = one;
        }
    }
}

fn is_compensation(trigger: &Trigger) -> bool {
    matches!(trigger, Trigger::Compensation)
}
