//! The `zeebe:` extensions that many elements share: values, mappings, jobs, listeners.

use windlass_record::flow::UserTaskEvent;

use super::node::Reader;
use super::report::{Report, quote};
use super::xml::{self, Element, ZEEBE};
use crate::feel::{self, Expression, Value};
use crate::graph::{Binding, JobSpec, Listener, Mapping, TaskListener, Template, Text};

/// What a job is retried without being told.
const RETRIES: &str = "3";

/// Extensions that have an effect, or are known to have none.
const KNOWN: &[&str] = &[
    "assignmentDefinition",
    "calledDecision",
    "calledElement",
    "executionListeners",
    "formDefinition",
    "ioMapping",
    "jobPriorityDefinition",
    "loopCharacteristics",
    "priorityDefinition",
    "properties",
    "publishMessage",
    "script",
    "subscription",
    "taskDefinition",
    "taskHeaders",
    "taskListeners",
    "taskSchedule",
    "userTask",
    "userTaskForm",
    "versionTag",
];

/// Warns of extensions without an effect.
pub(super) fn check_known(element: Element<'_>, report: &mut Report) {
    for extension in xml::extensions(element) {
        let name = xml::name_of(extension);
        if !KNOWN.contains(&name) {
            report.warning(extension, format!("zeebe:{} is not known here", name));
        }
    }
    if let Some(listeners) = xml::extension(element, "taskListeners")
        && xml::extension(element, "userTask").is_none()
        && xml::zeebe_children(listeners).next().is_some()
    {
        report.error(listeners, "task listeners are for user tasks that have a zeebe:userTask");
    }
    let other = xml::child(element, "extensionElements")
        .into_iter()
        .flat_map(|extensions| extensions.children())
        .find(|child| {
            let namespace = child.tag_name().namespace().unwrap_or_default();
            child.is_element() && namespace != ZEEBE && namespace.contains("camunda.org/schema/1.0")
        });
    if let Some(other) = other {
        report.warning(other, "extensions of Camunda 7 have no effect");
    }
}

/// An expression; static text is refused. `what` is the attribute.
pub(super) fn expression(
    report: &mut Report,
    element: Element<'_>,
    what: &str,
    text: &str,
) -> Option<Expression> {
    let Some(source) = text.strip_prefix('=') else {
        let message = format!("{what} {} must be an expression: begin it with =", quote(text));
        report.error(element, message);
        return None;
    };
    match feel::parse(source) {
        Ok(expression) => Some(expression),
        Err(error) => {
            let (message, position) = (error.message, error.position);
            let text = quote(text);
            let message = format!("{what} {text} is not FEEL: {message}, at position {position}");
            report.error(element, message);
            None
        }
    }
}

impl<'a> Reader<'_, 'a> {
    /// A value: text that begins with `=` is an expression. `what` is the attribute.
    pub(super) fn value(
        &mut self,
        element: Element<'a>,
        what: &str,
        text: &str,
    ) -> Option<Template> {
        if text.starts_with('=') {
            self.expression(element, what, text).map(Template::Feel)
        } else {
            Some(Template::Static(text.into()))
        }
    }

    /// The value of an attribute that may be absent or empty.
    pub(super) fn optional_value(&mut self, element: Element<'a>, name: &str) -> Option<Template> {
        let text = xml::attribute(element, name)?;
        self.value(element, name, text)
    }

    /// The value of an attribute that must say something.
    pub(super) fn required_value(&mut self, element: Element<'a>, name: &str) -> Option<Template> {
        let text = self.required_text(element, name)?;
        self.value(element, name, text)
    }

    /// An attribute that must say something.
    pub(super) fn required_text(&mut self, element: Element<'a>, name: &str) -> Option<&'a str> {
        let text = xml::attribute(element, name);
        if text.is_none() {
            let element_name = xml::name_of(element);
            self.report.error(element, format!("{element_name} needs the attribute {name}"));
        }
        text
    }

    /// An expression; static text is refused.
    pub(super) fn expression(
        &mut self,
        element: Element<'a>,
        what: &str,
        text: &str,
    ) -> Option<Expression> {
        expression(self.report, element, what, text)
    }

    /// The expression of an attribute that must say something.
    pub(super) fn required_expression(
        &mut self,
        element: Element<'a>,
        name: &str,
    ) -> Option<Expression> {
        let text = self.required_text(element, name)?;
        self.expression(element, name, text)
    }

    /// The expression of an attribute that may be absent or empty.
    pub(super) fn optional_expression(
        &mut self,
        element: Element<'a>,
        name: &str,
    ) -> Option<Expression> {
        let text = xml::attribute(element, name)?;
        self.expression(element, name, text)
    }

    /// The job of an element that has a `zeebe:taskDefinition`.
    pub(super) fn job(&mut self, element: Element<'a>, definition: Element<'a>) -> Option<JobSpec> {
        let job_type = self.required_value(definition, "type");
        let retries = self.retries(definition);
        Some(JobSpec {
            job_type: job_type?,
            retries: retries?,
            priority: self.job_priority(element),
            headers: json(&headers(element)),
            computed_headers: Vec::new(),
        })
    }

    fn retries(&mut self, definition: Element<'a>) -> Option<Template> {
        let text = xml::attribute(definition, "retries").unwrap_or(RETRIES);
        if !text.starts_with('=') && text.trim().parse::<i32>().is_err() {
            self.report.error(definition, format!("retries {} is not a number", quote(text)));
        }
        self.value(definition, "retries", text)
    }

    /// The priority of an element's jobs.
    pub(super) fn job_priority(&mut self, element: Element<'a>) -> Option<Template> {
        let definition = xml::extension(element, "jobPriorityDefinition")?;
        let text = self.required_text(definition, "priority")?;
        if !text.starts_with('=') && text.trim().parse::<i32>().is_err() {
            self.report.error(definition, format!("priority {} is not a number", quote(text)));
        }
        self.value(definition, "priority", text)
    }

    /// Inputs and outputs. As in Zeebe an input may be static text, and an output may not.
    pub(super) fn mappings(&mut self, element: Element<'a>) -> (Vec<Mapping>, Vec<Mapping>) {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let Some(mapping) = xml::extension(element, "ioMapping") else { return (inputs, outputs) };
        for entry in xml::zeebe_children(mapping) {
            match xml::name_of(entry) {
                "input" => {
                    let source = self.required_value(entry, "source");
                    inputs.extend(self.mapping(entry, source));
                }
                "output" => {
                    let source = self.required_expression(entry, "source").map(Template::Feel);
                    outputs.extend(self.mapping(entry, source));
                }
                other => {
                    self.report.warning(entry, format!("zeebe:{other} is not known here"));
                }
            }
        }
        (inputs, outputs)
    }

    fn mapping(&mut self, entry: Element<'a>, source: Option<Template>) -> Option<Mapping> {
        let target = self.required_text(entry, "target")?.trim();
        let path: Vec<Text> = target.split('.').map(Text::from).collect();
        if !path.iter().all(|name| is_name(name)) {
            let message = format!("target {} must be a name or a path like a.b", quote(target));
            self.report.error(entry, message);
            return None;
        }
        Some(Mapping { source: source?, target: path })
    }

    /// Execution listeners, before and after the element's work.
    pub(super) fn listeners(&mut self, element: Element<'a>) -> (Vec<Listener>, Vec<Listener>) {
        let (mut start, mut end) = (Vec::new(), Vec::new());
        let Some(list) = xml::extension(element, "executionListeners") else { return (start, end) };
        for entry in xml::zeebe_children(list) {
            let listener = self.listener(element, entry);
            match xml::attribute(entry, "eventType") {
                Some("start") => start.extend(listener),
                Some("end") => end.extend(listener),
                Some(other) => {
                    let what =
                        format!("the listener's eventType {} is not supported", quote(other));
                    self.report.error(entry, what);
                }
                None => self.report.error(entry, "executionListener needs the attribute eventType"),
            }
        }
        (start, end)
    }

    /// Listeners of a user task, in the order of the document.
    pub(super) fn task_listeners(&mut self, element: Element<'a>) -> Vec<TaskListener> {
        let mut listeners = Vec::new();
        let Some(list) = xml::extension(element, "taskListeners") else { return listeners };
        for entry in xml::zeebe_children(list) {
            let listener = self.listener(element, entry);
            let event = match xml::attribute(entry, "eventType") {
                Some("creating") => UserTaskEvent::Creating,
                Some("assigning") => UserTaskEvent::Assigning,
                Some("updating") => UserTaskEvent::Updating,
                Some("completing") => UserTaskEvent::Completing,
                Some("canceling") => UserTaskEvent::Canceling,
                Some(other) => {
                    let what = "is none of creating, assigning, updating, completing and canceling";
                    let message = format!("the listener's eventType {} {what}", quote(other));
                    self.report.error(entry, message);
                    continue;
                }
                None => {
                    self.report.error(entry, "taskListener needs the attribute eventType");
                    continue;
                }
            };
            listeners.extend(listener.map(|listener| TaskListener { event, job: listener.job }));
        }
        listeners
    }

    fn listener(&mut self, element: Element<'a>, entry: Element<'a>) -> Option<Listener> {
        let job_type = self.required_value(entry, "type");
        let retries = self.retries(entry);
        let own = xml::zeebe_children(entry).find(|own| xml::name_of(*own) == "taskHeaders");
        let headers = json(&own.map(entries).unwrap_or_default());
        let priority = self.job_priority(element);
        let job = JobSpec {
            job_type: job_type?,
            retries: retries?,
            priority,
            headers,
            computed_headers: Vec::new(),
        };
        Some(Listener { job })
    }

    /// Which version of a definition an element means.
    pub(super) fn binding(&mut self, element: Element<'a>) -> Option<Binding> {
        match xml::attribute(element, "bindingType") {
            None | Some("latest") => Some(Binding::Latest),
            Some("deployment") => Some(Binding::Deployment),
            Some("versionTag") => {
                let tag = self.required_text(element, "versionTag")?;
                Some(Binding::VersionTag(tag.into()))
            }
            Some(other) => {
                let what = "is none of latest, deployment and versionTag";
                self.report.error(element, format!("bindingType {} {what}", quote(other)));
                None
            }
        }
    }
}

/// The headers of an element, in their order.
pub(super) fn headers<'a>(element: Element<'a>) -> Vec<(&'a str, &'a str)> {
    xml::extension(element, "taskHeaders").map(entries).unwrap_or_default()
}

fn entries<'a>(list: Element<'a>) -> Vec<(&'a str, &'a str)> {
    xml::zeebe_children(list)
        .filter(|header| xml::name_of(*header) == "header")
        .filter_map(|header| Some((xml::attribute(header, "key")?, header.attribute("value")?)))
        .collect()
}

/// A JSON object of text; nothing if there are no entries. Of equal keys the last one counts.
pub(super) fn json(headers: &[(&str, &str)]) -> Text {
    if headers.is_empty() {
        return Text::default();
    }
    let entries = headers.iter().map(|(key, value)| ((*key).into(), Value::text(value))).collect();
    Value::context(entries).to_json().into()
}

/// Whether a variable can be called so.
fn is_name(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|first| first.is_alphabetic() || first == '_')
        && text.chars().all(|next| next.is_alphanumeric() || next == '_')
}
