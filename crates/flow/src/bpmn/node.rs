//! Nodes: what every flow node has. What only events or tasks have is read by [`super::event`] and
//! [`super::task`].

use super::extension::check_known;
use super::outline::{Item, Model, Outline, Tag};
use super::report::Report;
use super::xml;
use crate::graph::{Graph, Kind, Node, NodeId, Repeat};

/// Reads the elements of one process.
pub(super) struct Reader<'m, 'a> {
    pub(super) model: &'m Model<'a>,
    pub(super) outline: &'m Outline<'a>,
    pub(super) report: &'m mut Report,
}

/// The nodes of a process; its flows come later.
pub(super) fn graph<'a>(model: &Model<'a>, outline: &Outline<'a>, report: &mut Report) -> Graph {
    let mut reader = Reader { model, outline, report };
    let nodes: Vec<Node> = outline.items.iter().map(|item| reader.node(*item)).collect();
    let process = outline.item(NodeId::PROCESS).map(|item| item.xml);
    let tag = process.and_then(|process| xml::extension(process, "versionTag"));
    let tag = tag.and_then(|tag| xml::attribute(tag, "value")).unwrap_or_default();
    Graph {
        id: nodes.first().map(|node| node.id.clone()).unwrap_or_default(),
        name: nodes.first().map(|node| node.name.clone()).unwrap_or_default(),
        version_tag: tag.into(),
        nodes,
        flows: Vec::new(),
    }
}

impl<'a> Reader<'_, 'a> {
    fn node(&mut self, item: Item<'a>) -> Node {
        let Item { xml: element, tag, scope, .. } = item;
        check_known(element, self.report);
        // What could not be read was reported: the graph will not be used.
        let kind = self.kind(item).unwrap_or(Kind::PassThrough);
        let (inputs, outputs) = self.mappings(element);
        let (on_start, on_end) = self.listeners(element);
        Node {
            id: element.attribute("id").unwrap_or_default().into(),
            name: element.attribute("name").unwrap_or_default().into(),
            kind,
            element_type: element_type(tag),
            scope,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            default_flow: None,
            inputs,
            outputs,
            boundaries: Vec::new(),
            event_scopes: Vec::new(),
            inclusive_joins: Vec::new(),
            start: None,
            event_starts: Vec::new(),
            repeat: self.repeat(item),
            on_start,
            on_end,
            compensation: None,
            is_compensation: xml::flag(element, "isForCompensation", false),
            job_priority: (tag == Tag::Process).then(|| self.job_priority(element)).flatten(),
        }
    }

    fn kind(&mut self, item: Item<'a>) -> Option<Kind> {
        let element = item.xml;
        match item.tag {
            Tag::Process => Some(Kind::Process),
            Tag::SubProcess => Some(Kind::SubProcess),
            Tag::EventSubProcess => Some(Kind::EventSubProcess),
            Tag::StartEvent => self.start_event(item),
            Tag::EndEvent => self.throw(item).map(Kind::End),
            Tag::CatchEvent => self.catch_event(element),
            Tag::ThrowEvent => self.throw(item).map(Kind::Throw),
            Tag::BoundaryEvent => self.boundary_event(element),
            Tag::Task | Tag::ManualTask | Tag::Unsupported => Some(Kind::PassThrough),
            Tag::ServiceTask => self.service_task(element),
            Tag::UserTask => self.user_task(element),
            Tag::ScriptTask => self.script_task(element),
            Tag::BusinessRuleTask => self.business_rule_task(element),
            Tag::SendTask => self.send_task(element),
            Tag::ReceiveTask => self.receive_task(element),
            Tag::CallActivity => self.call_activity(element),
            Tag::Exclusive => Some(Kind::Exclusive),
            Tag::Parallel => Some(Kind::Parallel),
            Tag::Inclusive => Some(Kind::Inclusive),
            Tag::EventBased => Some(Kind::EventBased),
        }
    }

    fn repeat(&mut self, item: Item<'a>) -> Option<Box<Repeat>> {
        let element = item.xml;
        if let Some(standard) = xml::child(element, "standardLoopCharacteristics") {
            self.report.error(standard, "a standard loop is not supported: use multi-instance");
        }
        let outer = xml::child(element, "multiInstanceLoopCharacteristics")?;
        if !item.tag.is_activity() {
            self.report.error(outer, "only an activity can be multi-instance");
            return None;
        }
        let Some(inner) = xml::extension(outer, "loopCharacteristics") else {
            self.report.error(outer, "a multi-instance needs zeebe:loopCharacteristics");
            return None;
        };
        let completion = xml::child(outer, "completionCondition")
            .map(|condition| (condition, xml::text_of(condition)))
            .filter(|(_, text)| !text.is_empty());
        let completion_condition = completion
            .and_then(|(element, text)| self.expression(element, "completionCondition", &text));
        let collection = self.required_expression(inner, "inputCollection");
        let output_element = self.optional_expression(inner, "outputElement");
        let output_collection = xml::attribute(inner, "outputCollection").unwrap_or_default();
        let collects = !output_collection.is_empty();
        if collects != xml::attribute(inner, "outputElement").is_some() {
            let what = "outputCollection and outputElement must both be given, or neither";
            self.report.error(inner, what);
        }
        Some(Box::new(Repeat {
            sequential: xml::flag(outer, "isSequential", false),
            input_collection: collection?,
            input_element: xml::attribute(inner, "inputElement").unwrap_or_default().into(),
            output_collection: output_collection.into(),
            output_element,
            completion_condition,
        }))
    }
}

/// As Zeebe names it.
fn element_type(tag: Tag) -> &'static str {
    match tag {
        Tag::Process => "PROCESS",
        Tag::SubProcess => "SUB_PROCESS",
        Tag::EventSubProcess => "EVENT_SUB_PROCESS",
        Tag::StartEvent => "START_EVENT",
        Tag::EndEvent => "END_EVENT",
        Tag::CatchEvent => "INTERMEDIATE_CATCH_EVENT",
        Tag::ThrowEvent => "INTERMEDIATE_THROW_EVENT",
        Tag::BoundaryEvent => "BOUNDARY_EVENT",
        Tag::Task => "TASK",
        Tag::ManualTask => "MANUAL_TASK",
        Tag::ServiceTask => "SERVICE_TASK",
        Tag::UserTask => "USER_TASK",
        Tag::ScriptTask => "SCRIPT_TASK",
        Tag::BusinessRuleTask => "BUSINESS_RULE_TASK",
        Tag::SendTask => "SEND_TASK",
        Tag::ReceiveTask => "RECEIVE_TASK",
        Tag::CallActivity => "CALL_ACTIVITY",
        Tag::Exclusive => "EXCLUSIVE_GATEWAY",
        Tag::Parallel => "PARALLEL_GATEWAY",
        Tag::Inclusive => "INCLUSIVE_GATEWAY",
        Tag::EventBased => "EVENT_BASED_GATEWAY",
        Tag::Unsupported => "UNSPECIFIED",
    }
}
