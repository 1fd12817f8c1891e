//! Rules that only the whole process shows.

use std::collections::BTreeSet;

use super::outline::{Index, Item, Outline, Tag};
use super::report::{Report, quote};
use super::xml::{self, Element};
use crate::graph::{Action, Boundary, Flow, Graph, Kind, Node, NodeId, Start, Template, Trigger};

/// Reports what is wrong with a process whose elements are right.
pub(super) fn check(outline: &Outline<'_>, graph: &Graph, report: &mut Report) {
    let handlers = graph.nodes.iter().filter_map(|node| node.compensation).collect();
    let mut checker = Checker { outline, graph, handlers, report };
    checker.starts();
    checker.flows();
    for ((id, item), node) in outline.numbered().zip(&graph.nodes) {
        checker.ends(item, node);
        checker.gateway(item, node);
        checker.boundary(item, node);
        checker.compensation(id, item, node);
        checker.never_entered(item, node);
        checker.same_triggers(item, node);
    }
    checker.links();
}

struct Checker<'c, 'a> {
    outline: &'c Outline<'a>,
    graph: &'c Graph,
    /// What compensates something.
    handlers: BTreeSet<NodeId>,
    report: &'c mut Report,
}

impl<'a> Checker<'_, 'a> {
    fn item(&self, id: NodeId) -> Option<Item<'a>> {
        self.outline.item(id)
    }

    /// How scopes begin.
    fn starts(&mut self) {
        let mut counts: Index<NodeId, (usize, usize)> = Index::default();
        for (_, item) in self.outline.numbered().filter(|(_, item)| item.tag == Tag::StartEvent) {
            let (all, none) = counts.entry(item.scope).or_default();
            *all += 1;
            if !xml::children(item.xml)
                .any(|child| xml::name_of(child).ends_with("EventDefinition"))
            {
                *none += 1;
            }
        }
        for (id, item) in self.outline.numbered() {
            let (all, none) = counts.get(&id).copied().unwrap_or_default();
            let what = if item.tag == Tag::Process && all == 0 {
                "a process needs a start event"
            } else if item.tag == Tag::Process && none > 1 {
                "a process has at most one none start event"
            } else if item.tag == Tag::SubProcess && all != 1 {
                "a sub-process needs exactly one start event"
            } else if item.tag == Tag::EventSubProcess && all != 1 {
                "an event sub-process needs exactly one start event"
            } else {
                continue;
            };
            self.report.error(item.xml, what);
        }
    }

    fn flows(&mut self) {
        let mut flows = self.graph.flows.iter();
        for element in self.outline.flows.iter().copied() {
            // Flows with unknown ends were reported and are not in the graph.
            let known = ["sourceRef", "targetRef"]
                .iter()
                .all(|end| self.outline.find(element, end).is_some());
            let Some(flow) = flows.as_slice().first().filter(|_| known) else { continue };
            flows.next();
            self.flow(element, flow);
        }
    }

    fn flow(&mut self, element: Element<'a>, flow: &Flow) {
        let (Some(from), Some(to)) = (self.item(flow.from), self.item(flow.to)) else { return };
        if from.scope != to.scope {
            self.report.error(element, "a sequence flow must not leave or enter a sub-process");
        }
        let chooses = matches!(from.tag, Tag::Exclusive | Tag::Inclusive);
        let conditional = xml::child(element, "conditionExpression").is_some();
        if conditional && !chooses && from.tag != Tag::Unsupported {
            let what = "a condition is supported behind exclusive and inclusive gateways only";
            self.report.error(element, what);
        }
        let node = self.graph.node(flow.from);
        let default = xml::attribute(from.xml, "default");
        let is_default = default.is_some() && default == xml::attribute(element, "id");
        if chooses && is_default && conditional {
            self.report.error(element, "the default flow must not have a condition");
        }
        if chooses && !is_default && !conditional && node.outgoing.len() > 1 {
            let what = "must have a condition or be the default flow of its gateway";
            self.report.error(element, what);
        }
    }

    /// Where flows must not lead, and where they must not begin.
    fn ends(&mut self, item: Item<'a>, node: &Node) {
        let entered = !node.incoming.is_empty();
        let left = !node.outgoing.is_empty();
        let what = if item.tag == Tag::StartEvent && entered {
            "a start event must not have incoming flows"
        } else if item.tag == Tag::EndEvent && left {
            "an end event must not have outgoing flows"
        } else if item.tag == Tag::BoundaryEvent && entered {
            "a boundary event must not have incoming flows"
        } else if item.tag == Tag::EventSubProcess && (entered || left) {
            "an event sub-process must not have incoming or outgoing flows"
        } else {
            return;
        };
        self.report.error(item.xml, what);
    }

    fn gateway(&mut self, item: Item<'a>, node: &Node) {
        if item.tag != Tag::EventBased {
            return;
        }
        if node.outgoing.len() < 2 {
            self.report.error(item.xml, "an event-based gateway needs at least two outgoing flows");
        }
        let mut targets = Vec::new();
        for flow in &node.outgoing {
            let target = self.graph.flow(*flow).to;
            let Some(behind) = self.item(target) else { continue };
            let node = self.graph.node(target);
            let waits = behind.tag == Tag::ReceiveTask
                || (behind.tag == Tag::CatchEvent
                    && !matches!(&node.kind, Kind::Catch(Trigger::Link(_))));
            let id = quote(&node.id);
            if !waits {
                let what = "behind an event-based gateway there are only receive tasks and catch \
                            events of messages, timers and signals, not";
                self.report.error(item.xml, format!("{what} {id}"));
            } else if node.incoming.len() > 1 {
                let what = "behind an event-based gateway, must have no other incoming flow";
                self.report.error(item.xml, format!("{id}, {what}"));
            }
            targets.push(target);
        }
        self.distinct(&targets);
    }

    fn boundary(&mut self, item: Item<'a>, node: &Node) {
        if item.tag != Tag::BoundaryEvent {
            return;
        }
        let compensates = xml::child(item.xml, "compensateEventDefinition").is_some();
        if compensates && !node.outgoing.is_empty() {
            let what = "a compensation boundary event has an association instead of outgoing flows";
            self.report.error(item.xml, what);
        }
        if !compensates && node.outgoing.is_empty() {
            self.report.error(item.xml, "a boundary event needs an outgoing flow");
        }
        let Kind::Boundary(Boundary { host, .. }) = &node.kind else { return };
        let Some(host) = self.item(*host) else { return };
        if host.scope != item.scope || !host.tag.is_activity() {
            let what = "a boundary event must be attached to an activity of its scope";
            self.report.error(item.xml, what);
        }
    }

    fn compensation(&mut self, id: NodeId, item: Item<'a>, node: &Node) {
        if let Kind::Throw(Action::Compensate(Some(target)))
        | Kind::End(Action::Compensate(Some(target))) = &node.kind
        {
            let inside = self.item(*target).is_some_and(|item| item.tag == Tag::SubProcess);
            if !inside && self.graph.node(*target).compensation.is_none() {
                let what = "the activity to undo needs a compensation boundary event";
                self.report.error(item.xml, what);
            }
        }
        if !node.is_compensation {
            return;
        }
        if !node.incoming.is_empty() || !node.outgoing.is_empty() {
            let what = "an activity for compensation must not have incoming or outgoing flows";
            self.report.error(item.xml, what);
        }
        if !node.boundaries.is_empty() {
            let what = "an activity for compensation must not have boundary events";
            self.report.error(item.xml, what);
        }
        if !item.tag.is_activity() {
            self.report.error(item.xml, "only an activity can be for compensation");
        }
        if !self.handlers.contains(&id) {
            let what = "no compensation boundary event leads to this activity";
            self.report.warning(item.xml, what);
        }
    }

    fn never_entered(&mut self, item: Item<'a>, node: &Node) {
        let begins = matches!(
            item.tag,
            Tag::Process | Tag::EventSubProcess | Tag::StartEvent | Tag::BoundaryEvent
        );
        let jumped_to = matches!(&node.kind, Kind::Catch(Trigger::Link(_)));
        if node.incoming.is_empty() && !begins && !jumped_to && !node.is_compensation {
            self.report.warning(item.xml, "is never entered: no flow leads here");
        }
    }

    /// Events that wait at the same time must wait for different things.
    fn same_triggers(&mut self, item: Item<'a>, node: &Node) {
        if item.tag == Tag::Process {
            self.distinct(&node.event_starts);
        }
        self.distinct(&node.boundaries);
        let starts: Vec<NodeId> = node
            .event_scopes
            .iter()
            .filter_map(|scope| self.graph.get(*scope).and_then(|scope| scope.start))
            .collect();
        self.distinct(&starts);
    }

    fn distinct(&mut self, events: &[NodeId]) {
        let mut seen = BTreeSet::new();
        for event in events {
            let (Some(item), Some(node)) = (self.item(*event), self.graph.get(*event)) else {
                continue;
            };
            let Some((kind, name)) = awaited(&node.kind) else { continue };
            if !seen.insert((kind, name)) {
                let what = match name {
                    Some(name) => {
                        format!("another event here waits for the {kind} {}", quote(name))
                    }
                    None => format!("another event here waits for every {kind}"),
                };
                self.report.error(item.xml, what);
            }
        }
    }

    fn links(&mut self) {
        let mut thrown = BTreeSet::new();
        for node in &self.graph.nodes {
            if let Kind::Throw(Action::Link(target)) = &node.kind {
                thrown.insert(*target);
            }
        }
        let mut seen = BTreeSet::new();
        for ((id, item), node) in self.outline.numbered().zip(&self.graph.nodes) {
            let Kind::Catch(Trigger::Link(name)) = &node.kind else { continue };
            if !seen.insert((item.scope, name)) {
                let what =
                    format!("another catch event of this scope has the link {}", quote(name));
                self.report.error(item.xml, what);
            } else if !thrown.contains(&id) {
                let what = format!("no throw event of this scope has the link {}", quote(name));
                self.report.warning(item.xml, what);
            }
        }
    }
}

/// What an event waits for, if that is known before it runs; `None` is all of the kind.
fn awaited(kind: &Kind) -> Option<(&'static str, Option<&str>)> {
    if let Kind::Receive(message) = kind {
        return static_name("message", &message.name);
    }
    let (Kind::Start(Start { trigger: Some(trigger), .. })
    | Kind::Boundary(Boundary { trigger, .. })
    | Kind::Catch(trigger)) = kind
    else {
        return None;
    };
    match trigger {
        Trigger::Message(message) => static_name("message", &message.name),
        Trigger::Signal(name) => static_name("signal", name),
        Trigger::Error(code) => Some(("error", code.as_deref())),
        Trigger::Escalation(code) => Some(("escalation", code.as_deref())),
        Trigger::Compensation => Some(("compensation", None)),
        Trigger::Timer(_) | Trigger::Link(_) => None,
    }
}

fn static_name<'n>(
    kind: &'static str,
    name: &'n Template,
) -> Option<(&'static str, Option<&'n str>)> {
    match name {
        Template::Static(name) => Some((kind, Some(name))),
        Template::Feel(_) => None,
    }
}
