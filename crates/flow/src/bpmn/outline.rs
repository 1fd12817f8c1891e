//! What stands in a document and where: the elements of each process, numbered, and indexes of all
//! that other elements refer to. Nothing is made of them yet.

use std::collections::BTreeMap;

use roxmltree::Document;

use super::report::{Report, quote};
use super::xml::{self, BPMN, Element};
use crate::graph::NodeId;

/// Sub-processes in sub-processes.
const DEPTH_MAX: u32 = 64;

/// An index. Its keys are the author's: a tree cannot be flooded as hashing can.
pub(super) type Index<K, V> = BTreeMap<K, V>;

/// A document.
pub(super) struct Model<'a> {
    /// Messages, errors, signals and escalations by id.
    pub(super) roots: Index<&'a str, Element<'a>>,
    /// The executable processes.
    pub(super) processes: Vec<Outline<'a>>,
}

/// A process.
pub(super) struct Outline<'a> {
    /// By node number.
    pub(super) items: Vec<Item<'a>>,
    /// Sequence flows.
    pub(super) flows: Vec<Element<'a>>,
    /// Associations by source: they tell which activity compensates.
    pub(super) associations: Index<&'a str, Vec<Element<'a>>>,
    /// Node numbers by id.
    pub(super) ids: Index<&'a str, NodeId>,
    /// Catch events of links by scope and name.
    pub(super) links: Index<(NodeId, &'a str), NodeId>,
}

/// A flow node, or the process.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) xml: Element<'a>,
    pub(super) tag: Tag,
    pub(super) scope: NodeId,
    depth: u32,
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Process,
    SubProcess,
    EventSubProcess,
    StartEvent,
    EndEvent,
    CatchEvent,
    ThrowEvent,
    BoundaryEvent,
    Task,
    ManualTask,
    ServiceTask,
    UserTask,
    ScriptTask,
    BusinessRuleTask,
    SendTask,
    ReceiveTask,
    CallActivity,
    Exclusive,
    Parallel,
    Inclusive,
    EventBased,
    /// Reported; its contents are not looked at.
    Unsupported,
}

impl Tag {
    /// Whether events can be attached to it and compensation can undo it.
    pub(super) fn is_activity(self) -> bool {
        matches!(
            self,
            Tag::SubProcess
                | Tag::Task
                | Tag::ManualTask
                | Tag::ServiceTask
                | Tag::UserTask
                | Tag::ScriptTask
                | Tag::BusinessRuleTask
                | Tag::SendTask
                | Tag::ReceiveTask
                | Tag::CallActivity
                | Tag::Unsupported
        )
    }
}

impl<'a> Model<'a> {
    /// Reads a document.
    pub(super) fn read(document: &'a Document<'a>, report: &mut Report) -> Model<'a> {
        let mut model = Model { roots: Index::default(), processes: Vec::new() };
        let root = document.root_element();
        if !xml::is(root, "definitions") {
            report.refuse("this is not BPMN 2.0: it must begin with its 'definitions' element");
            return model;
        }
        check_ids(root, report);
        for element in xml::children(root) {
            match xml::name_of(element) {
                "message" | "error" | "signal" | "escalation" => {
                    if let Some(id) = xml::attribute(element, "id") {
                        model.roots.entry(id).or_insert(element);
                    }
                }
                "process" if xml::flag(element, "isExecutable", false) => {
                    model.processes.push(Outline::read(element, report));
                }
                // Collaborations, diagrams, data: nothing that runs.
                _ => {}
            }
        }
        if model.processes.is_empty() {
            report.refuse("there is no executable process: set isExecutable=\"true\"");
        }
        model
    }

    /// The message, error, signal or escalation that an attribute refers to. A missing one is
    /// reported; an absent attribute is not.
    pub(super) fn refer(
        &self,
        element: Element<'a>,
        attribute: &str,
        kind: &str,
        report: &mut Report,
    ) -> Option<Element<'a>> {
        let reference = xml::attribute(element, attribute)?.trim();
        // A reference may be qualified by a prefix.
        let local = reference.rsplit_once(':').map_or(reference, |(_, local)| local);
        let found = self.roots.get(reference).or_else(|| self.roots.get(local)).copied();
        let found = found.filter(|found| xml::is(*found, kind));
        if found.is_none() {
            report.error(
                element,
                format!("refers to the {kind} {}, which is not there", quote(reference)),
            );
        }
        found
    }
}

impl<'a> Outline<'a> {
    fn read(process: Element<'a>, report: &mut Report) -> Outline<'a> {
        let mut outline = Outline {
            items: Vec::new(),
            flows: Vec::new(),
            associations: Index::default(),
            ids: Index::default(),
            links: Index::default(),
        };
        if xml::attribute(process, "id").is_none() {
            report.error(process, "this process has no id");
        }
        let mut scopes: Index<u32, NodeId> = Index::default();
        scopes.insert(process.id().get(), NodeId::PROCESS);
        outline.push(Item { xml: process, tag: Tag::Process, scope: NodeId::PROCESS, depth: 0 });
        for element in
            process.descendants().filter(|node| node.tag_name().namespace() == Some(BPMN))
        {
            let Some(scope) = element.parent().and_then(|parent| scopes.get(&parent.id().get()))
            else {
                continue;
            };
            let Some(depth) = outline.item(*scope).map(|item| item.depth) else { continue };
            let Some(tag) = outline.classify(element, report) else { continue };
            let opens = matches!(tag, Tag::SubProcess | Tag::EventSubProcess);
            let too_deep = opens && depth >= DEPTH_MAX;
            if too_deep {
                let what = format!("sub-processes lie more than {DEPTH_MAX} deep in each other");
                report.error(element, what);
            }
            if xml::attribute(element, "id").is_none() {
                report.error(element, format!("this {} has no id", xml::name_of(element)));
            }
            let tag = if too_deep { Tag::Unsupported } else { tag };
            let id = outline.push(Item { xml: element, tag, scope: *scope, depth: depth + 1 });
            if opens && !too_deep {
                scopes.insert(element.id().get(), id);
            }
        }
        outline
    }

    /// What flow node it is. What is no flow node is kept elsewhere or ignored.
    fn classify(&mut self, element: Element<'a>, report: &mut Report) -> Option<Tag> {
        let name = xml::name_of(element);
        let tag = match name {
            "subProcess" if xml::flag(element, "triggeredByEvent", false) => Tag::EventSubProcess,
            "subProcess" => Tag::SubProcess,
            "startEvent" => Tag::StartEvent,
            "endEvent" => Tag::EndEvent,
            "intermediateCatchEvent" => Tag::CatchEvent,
            "intermediateThrowEvent" => Tag::ThrowEvent,
            "boundaryEvent" => Tag::BoundaryEvent,
            "task" => Tag::Task,
            "manualTask" => Tag::ManualTask,
            "serviceTask" => Tag::ServiceTask,
            "userTask" => Tag::UserTask,
            "scriptTask" => Tag::ScriptTask,
            "businessRuleTask" => Tag::BusinessRuleTask,
            "sendTask" => Tag::SendTask,
            "receiveTask" => Tag::ReceiveTask,
            "callActivity" => Tag::CallActivity,
            "exclusiveGateway" => Tag::Exclusive,
            "parallelGateway" => Tag::Parallel,
            "inclusiveGateway" => Tag::Inclusive,
            "eventBasedGateway" => Tag::EventBased,
            "sequenceFlow" => {
                self.flows.push(element);
                return None;
            }
            "association" => {
                if let Some(source) = xml::attribute(element, "sourceRef") {
                    self.associations.entry(source).or_default().push(element);
                }
                return None;
            }
            _ if IGNORED.contains(&name) => return None,
            _ => {
                report.error(element, format!("the element {} is not supported", quote(name)));
                Tag::Unsupported
            }
        };
        Some(tag)
    }

    fn push(&mut self, item: Item<'a>) -> NodeId {
        let id = NodeId(u32::try_from(self.items.len()).expect("the XML parser bounds its nodes"));
        self.items.push(item);
        if let Some(name) = xml::attribute(item.xml, "id") {
            self.ids.entry(name).or_insert(id);
        }
        if item.tag == Tag::CatchEvent
            && let Some(link) = xml::child(item.xml, "linkEventDefinition")
            && let Some(name) = xml::attribute(link, "name")
        {
            self.links.entry((item.scope, name)).or_insert(id);
        }
        id
    }

    /// An element by number.
    pub(super) fn item(&self, id: NodeId) -> Option<Item<'a>> {
        self.items.get(usize::try_from(id.0).ok()?).copied()
    }

    /// All elements with their numbers.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (NodeId, Item<'a>)> {
        (0..).map(NodeId).zip(self.items.iter().copied())
    }

    /// The flow node that an attribute refers to.
    pub(super) fn find(&self, element: Element<'a>, attribute: &str) -> Option<NodeId> {
        let reference = xml::attribute(element, attribute)?.trim();
        self.ids.get(reference).copied().filter(|id| *id != NodeId::PROCESS)
    }
}

/// Parts of a process that do not run, or are read with the element that they belong to.
const IGNORED: &[&str] = &[
    "artifact",
    "auditing",
    "completionCondition",
    "conditionalEventDefinition",
    "correlationSubscription",
    "dataInputAssociation",
    "dataObject",
    "dataObjectReference",
    "dataOutputAssociation",
    "dataStoreReference",
    "documentation",
    "extensionElements",
    "group",
    "humanPerformer",
    "incoming",
    "ioBinding",
    "ioSpecification",
    "laneSet",
    "monitoring",
    "multiInstanceLoopCharacteristics",
    "outgoing",
    "performer",
    "potentialOwner",
    "property",
    "resourceRole",
    "standardLoopCharacteristics",
    "supportedInterfaceRef",
    "supports",
    "textAnnotation",
];

fn check_ids(root: Element<'_>, report: &mut Report) {
    let mut seen: Index<&str, ()> = Index::default();
    let elements = root.descendants().filter(|node| node.tag_name().namespace() == Some(BPMN));
    for element in elements {
        if let Some(id) = xml::attribute(element, "id")
            && seen.insert(id, ()).is_some()
        {
            report.error(element, format!("the id {} is used twice", quote(id)));
        }
    }
}
