//! Events: what they wait for and what they do.

use super::node::Reader;
use super::outline::{Item, Tag};
use super::report::quote;
use super::xml::{self, Element};
use crate::feel::{Budget, Context, Environment, Value};
use crate::graph::{
    Action, Boundary, Kind, MessageCatch, MessageThrow, NodeId, Start, Template, Text, Timer,
    TimerKind, Trigger,
};
use crate::schedule;

/// Where something is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Catch,
    Boundary,
    Process,
    EventSubProcess,
}

impl Place {
    /// The definitions that may stand here.
    fn allowed(self) -> &'static [&'static str] {
        match self {
            Place::Catch => &["message", "timer", "signal", "link"],
            Place::Boundary => &["message", "timer", "signal", "error", "escalation", "compensate"],
            Place::Process => &["message", "timer", "signal"],
            Place::EventSubProcess => &["message", "timer", "signal", "error", "escalation"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Place::Catch => "an intermediate catch event",
            Place::Boundary => "a boundary event",
            Place::Process => "the start event of a process",
            Place::EventSubProcess => "the start event of an event sub-process",
        }
    }
}

impl<'a> Reader<'_, 'a> {
    pub(super) fn start_event(&mut self, item: Item<'a>) -> Option<Kind> {
        let element = item.xml;
        let definition = self.definition(element)?;
        let scope = self.outline.item(item.scope).map_or(Tag::Process, |scope| scope.tag);
        let interrupting = xml::flag(element, "isInterrupting", true);
        let trigger = match (definition, scope) {
            (None, Tag::EventSubProcess) => {
                let what = "an event sub-process must start with one of message, timer, signal, \
                            error and escalation";
                self.report.error(element, what);
                return None;
            }
            (None, _) => None,
            (Some(definition), Tag::SubProcess) => {
                let what = "a sub-process must start with a none start event";
                self.report.error(definition, what);
                return None;
            }
            (Some(definition), Tag::EventSubProcess) => {
                Some(self.trigger(definition, Place::EventSubProcess, interrupting)?)
            }
            (Some(definition), _) => {
                let trigger = self.trigger(definition, Place::Process, false)?;
                Some(self.named(definition, trigger)?)
            }
        };
        let form = xml::extension(element, "formDefinition");
        let form_id = form.and_then(|form| xml::attribute(form, "formId")).unwrap_or_default();
        Some(Kind::Start(Start { trigger, interrupting, form_id: form_id.into() }))
    }

    /// What starts a process is known before there are variables: the name of a message or a signal
    /// is computed here.
    fn named(&mut self, definition: Element<'a>, mut trigger: Trigger) -> Option<Trigger> {
        let (Trigger::Message(MessageCatch { name, .. }) | Trigger::Signal(name)) = &mut trigger
        else {
            return Some(trigger);
        };
        if let Template::Feel(expression) = name {
            let environment = Environment { now_ms: 0, seed: 0 };
            let value =
                expression.evaluate(&Context::default(), &environment, &mut Budget::default());
            let Ok(Value::Text(text)) = value else {
                let what = "the name that a process is started by must be text, and cannot depend on \
                            variables";
                self.report.error(definition, what);
                return None;
            };
            *name = Template::Static(text);
        }
        Some(trigger)
    }

    pub(super) fn catch_event(&mut self, element: Element<'a>) -> Option<Kind> {
        let Some(definition) = self.definition(element)? else {
            self.report.error(element, "an intermediate catch event needs an event definition");
            return None;
        };
        self.trigger(definition, Place::Catch, true).map(Kind::Catch)
    }

    pub(super) fn boundary_event(&mut self, element: Element<'a>) -> Option<Kind> {
        let interrupting = xml::flag(element, "cancelActivity", true);
        let Some(definition) = self.definition(element)? else {
            self.report.error(element, "a boundary event needs an event definition");
            return None;
        };
        let trigger = self.trigger(definition, Place::Boundary, interrupting);
        let Some(host) = self.outline.find(element, "attachedToRef") else {
            self.report.error(element, "a boundary event must be attached to an activity");
            return None;
        };
        Some(Kind::Boundary(Boundary { host, trigger: trigger?, interrupting }))
    }

    /// What a throw or end event does.
    pub(super) fn throw(&mut self, item: Item<'a>) -> Option<Action> {
        let element = item.xml;
        let Some(definition) = self.definition(element)? else { return Some(Action::None) };
        let end = item.tag == Tag::EndEvent;
        match xml::name_of(definition) {
            "messageEventDefinition" => self.throw_message(element, definition),
            "signalEventDefinition" => self.signal(definition).map(Action::Signal),
            "escalationEventDefinition" => {
                self.code(definition, "escalation").map(Action::Escalation)
            }
            "errorEventDefinition" if end => self.code(definition, "error").map(Action::Error),
            "terminateEventDefinition" if end => Some(Action::Terminate),
            "linkEventDefinition" if !end => self.link(item.scope, definition).map(Action::Link),
            "compensateEventDefinition" => self.compensate(item.scope, definition),
            name => {
                let kind = name.strip_suffix("EventDefinition").unwrap_or(name);
                let place = if end { "an end event" } else { "an intermediate throw event" };
                self.unsupported(definition, kind, place);
                None
            }
        }
    }

    /// The one event definition of an event, if it has any. More than one is reported: `None`.
    fn definition(&mut self, element: Element<'a>) -> Option<Option<Element<'a>>> {
        let is_definition =
            |name: &str| name.ends_with("EventDefinition") || name == "eventDefinitionRef";
        let mut all = xml::children(element).filter(|child| is_definition(xml::name_of(*child)));
        let first = all.next();
        if all.next().is_some() {
            self.report.error(element, "an event with several definitions is not supported");
            return None;
        }
        Some(first)
    }

    fn unsupported(&mut self, definition: Element<'a>, kind: &str, place: &str) {
        self.report
            .error(definition, format!("the event {} is not supported in {place}", quote(kind)));
    }

    fn trigger(
        &mut self,
        definition: Element<'a>,
        place: Place,
        interrupting: bool,
    ) -> Option<Trigger> {
        let name = xml::name_of(definition);
        let kind = name.strip_suffix("EventDefinition").unwrap_or(name);
        if !place.allowed().contains(&kind) {
            self.unsupported(definition, kind, place.name());
            return None;
        }
        match kind {
            "message" => {
                self.message_catch(definition, place != Place::Process).map(Trigger::Message)
            }
            "timer" => self.timer(definition, place, interrupting).map(Trigger::Timer),
            "signal" => self.signal(definition).map(Trigger::Signal),
            "error" => {
                if !interrupting {
                    self.report.error(definition, "an error event must be interrupting");
                }
                self.caught_code(definition, "error").map(Trigger::Error)
            }
            "escalation" => self.caught_code(definition, "escalation").map(Trigger::Escalation),
            "link" => {
                let name = self.required_text(definition, "name")?;
                Some(Trigger::Link(name.into()))
            }
            _ => Some(Trigger::Compensation),
        }
    }

    /// The message that an event definition or a receive task refers to.
    pub(super) fn message_catch(
        &mut self,
        element: Element<'a>,
        correlated: bool,
    ) -> Option<MessageCatch> {
        let message = self.message(element)?;
        let name = self.required_value(message, "name");
        if !correlated {
            return Some(MessageCatch { name: name?, correlation_key: None });
        }
        let Some(subscription) = xml::extension(message, "subscription") else {
            self.report.error(message, "a message that is waited for needs a zeebe:subscription");
            return None;
        };
        let key = self.required_expression(subscription, "correlationKey");
        Some(MessageCatch { name: name?, correlation_key: Some(Template::Feel(key?)) })
    }

    fn message(&mut self, element: Element<'a>) -> Option<Element<'a>> {
        if xml::attribute(element, "messageRef").is_none() {
            self.report.error(element, "must refer to a message");
        }
        self.model.refer(element, "messageRef", "message", self.report)
    }

    fn throw_message(&mut self, element: Element<'a>, definition: Element<'a>) -> Option<Action> {
        let published = xml::extension(definition, "publishMessage")
            .or_else(|| xml::extension(element, "publishMessage"));
        let task = xml::extension(element, "taskDefinition");
        match (published, task) {
            (Some(publish), None) => {
                self.publish(definition, publish).map(Box::new).map(Action::Message)
            }
            (None, Some(task)) => self.job(element, task).map(Action::Job),
            (Some(_), Some(_)) | (None, None) => {
                let what = "a message throw event needs either a zeebe:publishMessage or a \
                            zeebe:taskDefinition";
                self.report.error(element, what);
                None
            }
        }
    }

    /// The message that `element` refers to, published as `publish` says.
    pub(super) fn publish(
        &mut self,
        element: Element<'a>,
        publish: Element<'a>,
    ) -> Option<MessageThrow> {
        let message = self.message(element);
        let name = message.and_then(|message| self.required_value(message, "name"));
        let correlation_key = self.required_value(publish, "correlationKey");
        let message_id = self.optional_value(publish, "messageId");
        let time_to_live = self.optional_value(publish, "timeToLive");
        if let Some(Template::Static(text)) = &time_to_live
            && let Err(error) = schedule::parse_duration(text)
        {
            self.report.error(publish, format!("timeToLive {error}"));
        }
        Some(MessageThrow {
            name: name?,
            correlation_key: correlation_key?,
            message_id,
            time_to_live,
        })
    }

    fn signal(&mut self, definition: Element<'a>) -> Option<Template> {
        if xml::attribute(definition, "signalRef").is_none() {
            self.report.error(definition, "must refer to a signal");
        }
        let signal = self.model.refer(definition, "signalRef", "signal", self.report)?;
        self.required_value(signal, "name")
    }

    /// The code of an error or an escalation that is thrown.
    fn code(&mut self, definition: Element<'a>, kind: &str) -> Option<Template> {
        let reference = format!("{kind}Ref");
        if xml::attribute(definition, &reference).is_none() {
            self.report.error(definition, format!("must refer to an {kind}"));
        }
        let root = self.model.refer(definition, &reference, kind, self.report)?;
        self.required_value(root, &format!("{kind}Code"))
    }

    /// The code that is caught; `Some(None)` is every code.
    fn caught_code(&mut self, definition: Element<'a>, kind: &str) -> Option<Option<Text>> {
        let reference = format!("{kind}Ref");
        if xml::attribute(definition, &reference).is_none() {
            return Some(None);
        }
        let root = self.model.refer(definition, &reference, kind, self.report)?;
        let code = xml::attribute(root, &format!("{kind}Code"));
        if code.is_some_and(|code| code.starts_with('=')) {
            let what = format!("the code of an {kind} that is caught must not be an expression");
            self.report.error(definition, what);
            return None;
        }
        Some(code.map(Text::from))
    }

    fn link(&mut self, scope: NodeId, definition: Element<'a>) -> Option<NodeId> {
        let name = self.required_text(definition, "name")?;
        let target = self.outline.links.get(&(scope, name)).copied();
        if target.is_none() {
            let what =
                format!("there is no catch event for the link {} in this scope", quote(name));
            self.report.error(definition, what);
        }
        target
    }

    fn compensate(&mut self, scope: NodeId, definition: Element<'a>) -> Option<Action> {
        if !xml::flag(definition, "waitForCompletion", true) {
            let what = "compensation that is not waited for is not supported";
            self.report.error(definition, what);
        }
        if xml::attribute(definition, "activityRef").is_none() {
            return Some(Action::Compensate(None));
        }
        let target = self.outline.find(definition, "activityRef");
        let activity = target
            .and_then(|target| self.outline.item(target))
            .is_some_and(|item| item.scope == scope && item.tag.is_activity());
        if !activity {
            self.report.error(definition, "must refer to an activity of the same scope");
            return None;
        }
        Some(Action::Compensate(target))
    }

    fn timer(
        &mut self,
        definition: Element<'a>,
        place: Place,
        interrupting: bool,
    ) -> Option<Timer> {
        let kinds = [
            ("timeDuration", TimerKind::Duration),
            ("timeDate", TimerKind::Date),
            ("timeCycle", TimerKind::Cycle),
        ];
        let mut given = kinds.into_iter().filter_map(|(name, kind)| {
            let element = xml::child(definition, name)?;
            Some((element, name, kind))
        });
        let (Some((element, name, kind)), None) = (given.next(), given.next()) else {
            let what = "a timer needs one of timeDuration, timeDate and timeCycle";
            self.report.error(definition, what);
            return None;
        };
        if kind == TimerKind::Cycle && (place == Place::Catch || interrupting) {
            let what = match place {
                Place::Catch => "an intermediate catch event cannot wait for a timeCycle",
                Place::Boundary | Place::Process | Place::EventSubProcess => {
                    "an interrupting timer cannot have a timeCycle"
                }
            };
            self.report.error(definition, what);
        }
        let text = xml::text_of(element);
        let value = self.value(element, name, &text)?;
        if let Template::Static(text) = &value {
            let error = match kind {
                TimerKind::Duration => schedule::parse_delay(text).err(),
                TimerKind::Date => schedule::parse_date(text).err(),
                TimerKind::Cycle => schedule::parse_cycle(text).err(),
            };
            if let Some(error) = error {
                self.report.error(element, format!("{name}: {error}"));
            }
        }
        Some(Timer { kind, value })
    }
}
