//! Cycles without a wait state: a token in one would run for ever in one go.
//!
//! As in Zeebe a cycle is refused if all its elements pass at once and one of them is more than a
//! gateway: an undefined or manual task, a script, an intermediate throw event that is done at once,
//! a call of a process of the same document, which leads to that process's start event. Conditions
//! are not looked at. A cycle of gateways alone is only warned of.

use super::outline::{Index, Item, Outline, Tag};
use super::report::{Report, quote};
use crate::graph::{Action, Graph, Kind, Node, NodeId, Template, Trigger};

/// Elements of a cycle that a message names.
const NAMES_MAX: usize = 10;

/// Reports each knot of cycles once, at its first element that is no gateway.
pub(super) fn check(outlines: &[Outline<'_>], graphs: &[Graph], report: &mut Report) {
    let places = Places::of(outlines, graphs);
    let steps = places.steps();
    for knot in Search::of(&steps).knots() {
        let is_more =
            |place: &NodeId| places.get(*place).is_some_and(|(_, node)| !is_gateway(&node.kind));
        let first = knot.iter().copied().find(is_more);
        let Some(at) = first.or_else(|| knot.first().copied()) else { continue };
        let Some((item, _)) = places.get(at) else { continue };
        let path = places.names(&steps.around(at, &knot));
        match first {
            Some(_) => report.error(item.xml, format!("this cycle has no wait state: {path}")),
            None => report.warning(item.xml, format!("this cycle of gateways never waits: {path}")),
        }
    }
}

fn is_gateway(kind: &Kind) -> bool {
    matches!(kind, Kind::Exclusive | Kind::Parallel | Kind::Inclusive)
}

/// Whether a token leaves it in the same step in which it came.
fn passes(item: Item<'_>, node: &Node) -> bool {
    // What could not be read passes, too, but was reported.
    let task = matches!(item.tag, Tag::Task | Tag::ManualTask);
    let at_once = is_gateway(&node.kind)
        || (task && matches!(&node.kind, Kind::PassThrough))
        || matches!(&node.kind, Kind::Script(_) | Kind::Catch(Trigger::Link(_)))
        || matches!(&node.kind, Kind::Throw(Action::None | Action::Link(_)))
        || matches!(&node.kind, Kind::Start(_) | Kind::Call(_));
    at_once && node.on_start.is_empty() && node.on_end.is_empty()
}

/// The nodes of all processes of a document, numbered through; here a [`NodeId`] is such a number.
struct Places<'p, 'a> {
    all: Vec<(Item<'a>, &'p Node)>,
    /// Of each process: its graph, and the number of its first node.
    processes: Vec<(&'p Graph, u32)>,
}

impl<'p, 'a> Places<'p, 'a> {
    fn of(outlines: &[Outline<'a>], graphs: &'p [Graph]) -> Places<'p, 'a> {
        let mut places = Places { all: Vec::new(), processes: Vec::new() };
        for (outline, graph) in outlines.iter().zip(graphs) {
            let base = u32::try_from(places.all.len()).expect("the XML parser bounds its nodes");
            places.processes.push((graph, base));
            places.all.extend(outline.items.iter().copied().zip(&graph.nodes));
        }
        places
    }

    fn get(&self, place: NodeId) -> Option<(Item<'a>, &'p Node)> {
        self.all.get(usize::try_from(place.0).ok()?).copied()
    }

    fn passes(&self, place: NodeId) -> bool {
        self.get(place).is_some_and(|(item, node)| passes(item, node))
    }

    fn steps(&self) -> Steps {
        let starts: Index<&str, NodeId> = self
            .processes
            .iter()
            .filter_map(|(graph, base)| {
                let start = graph.nodes.first()?.start?;
                Some((&*graph.id, NodeId(base + start.0)))
            })
            .collect();
        let mut steps = Vec::with_capacity(self.all.len());
        for (graph, base) in &self.processes {
            for node in &graph.nodes {
                let place = NodeId(u32::try_from(steps.len()).expect("these are all places"));
                let here = |to: NodeId| NodeId(base + to.0);
                let mut to = Vec::new();
                if let Kind::Call(call) = &node.kind {
                    // It goes on when the called process ends, which is not looked at.
                    to.extend(called(&call.process_id, &starts));
                } else {
                    to.extend(node.outgoing.iter().map(|flow| here(graph.flow(*flow).to)));
                }
                if let Kind::Throw(Action::Link(target)) = &node.kind {
                    to.push(here(*target));
                }
                to.retain(|to| self.passes(place) && self.passes(*to));
                steps.push(to);
            }
        }
        Steps(steps)
    }

    fn names(&self, path: &[NodeId]) -> String {
        let ids = path.iter().filter_map(|place| self.get(*place)).map(|(_, node)| quote(&node.id));
        let mut names: Vec<String> = ids.take(NAMES_MAX).collect();
        if path.len() > NAMES_MAX {
            names.push("...".to_owned());
        }
        names.join(" > ")
    }
}

/// The start of a called process, if it is of the same document.
fn called(process_id: &Template, starts: &Index<&str, NodeId>) -> Option<NodeId> {
    match process_id {
        Template::Static(id) => starts.get(&**id).copied(),
        Template::Feel(_) => None,
    }
}

/// Where a token goes from each node, if both pass it on at once.
struct Steps(Vec<Vec<NodeId>>);

impl Steps {
    fn from(&self, id: NodeId) -> &[NodeId] {
        let steps = usize::try_from(id.0).ok().and_then(|index| self.0.get(index));
        steps.map(Vec::as_slice).unwrap_or_default()
    }

    /// The shortest way through a knot from a node back to itself.
    fn around(&self, start: NodeId, knot: &[NodeId]) -> Vec<NodeId> {
        let mut came_from: Index<NodeId, NodeId> = Index::default();
        let mut wave = vec![start];
        while !wave.is_empty() && !came_from.contains_key(&start) {
            let mut after = Vec::new();
            for from in wave {
                for to in self.from(from).iter().copied() {
                    if knot.binary_search(&to).is_ok() && !came_from.contains_key(&to) {
                        came_from.insert(to, from);
                        after.push(to);
                    }
                }
            }
            wave = after;
        }
        let mut path = vec![start];
        let mut at = start;
        while let Some(from) = came_from.get(&at).copied() {
            path.push(from);
            at = from;
            if at == start {
                break;
            }
        }
        path.reverse();
        path
    }
}

/// Tarjan's search for strongly connected components, without recursion.
struct Search<'s> {
    steps: &'s Steps,
    marks: Vec<Mark>,
    open: Vec<NodeId>,
    count: u32,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    /// When the node was found; 0 is not yet.
    found: u32,
    /// The earliest open node that it leads back to.
    low: u32,
    is_open: bool,
}

impl<'s> Search<'s> {
    fn of(steps: &'s Steps) -> Search<'s> {
        let marks = vec![Mark::default(); steps.0.len()];
        Search { steps, marks, open: Vec::new(), count: 0 }
    }

    /// Sets of nodes that all lead to each other, each in the order of the document.
    fn knots(mut self) -> Vec<Vec<NodeId>> {
        let mut knots = Vec::new();
        for (id, _) in (0..).map(NodeId).zip(&self.steps.0) {
            if self.mark(id).found == 0 {
                self.walk(id, &mut knots);
            }
        }
        knots.sort();
        knots
    }

    fn walk(&mut self, root: NodeId, knots: &mut Vec<Vec<NodeId>>) {
        let mut path = vec![(root, self.enter(root))];
        while let Some((id, successors)) = path.last_mut() {
            let id = *id;
            if let Some(to) = successors.pop() {
                let Mark { found, is_open, .. } = *self.mark(to);
                if found == 0 {
                    let successors = self.enter(to);
                    path.push((to, successors));
                } else if is_open {
                    self.lead_back(id, found);
                }
                continue;
            }
            path.pop();
            let Mark { found, low, .. } = *self.mark(id);
            if let Some((parent, _)) = path.last() {
                self.lead_back(*parent, low);
            }
            if found == low {
                self.close(id, knots);
            }
        }
    }

    /// Marks a node as found; gives where it leads.
    fn enter(&mut self, id: NodeId) -> Vec<NodeId> {
        self.count += 1;
        *self.mark(id) = Mark { found: self.count, low: self.count, is_open: true };
        self.open.push(id);
        self.steps.from(id).to_vec()
    }

    fn lead_back(&mut self, id: NodeId, to: u32) {
        let mark = self.mark(id);
        mark.low = mark.low.min(to);
    }

    /// All that was opened since `id` is one component.
    fn close(&mut self, id: NodeId, knots: &mut Vec<Vec<NodeId>>) {
        let mut knot = Vec::new();
        while let Some(last) = self.open.pop() {
            self.mark(last).is_open = false;
            knot.push(last);
            if last == id {
                break;
            }
        }
        if knot.len() > 1 || self.steps.from(id).contains(&id) {
            knot.sort_unstable();
            knots.push(knot);
        }
    }

    fn mark(&mut self, id: NodeId) -> &mut Mark {
        usize::try_from(id.0)
            .ok()
            .and_then(|index| self.marks.get_mut(index))
            .expect("node numbers come from this graph")
    }
}
