//! Tasks: jobs, scripts, decisions, calls and people.

use super::extension::{headers, json};
use super::node::Reader;
use super::report::quote;
use super::xml::{self, Element};
use crate::feel::Value;
use crate::graph::{
    Action, Binding, Call, Decision, JobSpec, Kind, Script, Template, Text, UserTask,
};
use crate::schedule;

/// The type of the jobs of user tasks that are no native ones.
const USER_TASK_TYPE: &str = "io.camunda.zeebe:userTask";

impl<'a> Reader<'_, 'a> {
    pub(super) fn service_task(&mut self, element: Element<'a>) -> Option<Kind> {
        let Some(definition) = xml::extension(element, "taskDefinition") else {
            self.report.error(element, "a service task needs a zeebe:taskDefinition");
            return None;
        };
        self.job(element, definition).map(Kind::Job)
    }

    pub(super) fn script_task(&mut self, element: Element<'a>) -> Option<Kind> {
        let script = self.either(element, "script", "taskDefinition")?;
        if xml::name_of(script) == "taskDefinition" {
            return self.job(element, script).map(Kind::Job);
        }
        let expression = self.required_expression(script, "expression");
        let result_variable = self.required_text(script, "resultVariable")?.into();
        Some(Kind::Script(Script { expression: expression?, result_variable }))
    }

    pub(super) fn business_rule_task(&mut self, element: Element<'a>) -> Option<Kind> {
        let decision = self.either(element, "calledDecision", "taskDefinition")?;
        if xml::name_of(decision) == "taskDefinition" {
            return self.job(element, decision).map(Kind::Job);
        }
        let decision_id = self.required_value(decision, "decisionId");
        let result_variable = self.required_text(decision, "resultVariable");
        let binding = self.binding(decision);
        Some(Kind::Decision(Box::new(Decision {
            decision_id: decision_id?,
            binding: binding?,
            result_variable: result_variable?.into(),
        })))
    }

    pub(super) fn send_task(&mut self, element: Element<'a>) -> Option<Kind> {
        let what = self.either(element, "publishMessage", "taskDefinition")?;
        if xml::name_of(what) == "taskDefinition" {
            return self.job(element, what).map(Kind::Job);
        }
        let message = self.publish(element, what)?;
        Some(Kind::Throw(Action::Message(Box::new(message))))
    }

    pub(super) fn receive_task(&mut self, element: Element<'a>) -> Option<Kind> {
        self.message_catch(element, true).map(Kind::Receive)
    }

    pub(super) fn call_activity(&mut self, element: Element<'a>) -> Option<Kind> {
        let Some(called) = xml::extension(element, "calledElement") else {
            self.report.error(element, "a call activity needs a zeebe:calledElement");
            return None;
        };
        let process_id = self.required_value(called, "processId");
        let binding = self.binding(called);
        Some(Kind::Call(Box::new(Call {
            process_id: process_id?,
            binding: binding?,
            child_variables: xml::flag(called, "propagateAllChildVariables", true),
            parent_variables: xml::flag(called, "propagateAllParentVariables", true),
        })))
    }

    pub(super) fn user_task(&mut self, element: Element<'a>) -> Option<Kind> {
        let assignment = xml::extension(element, "assignmentDefinition");
        let mut of = |element: Option<Element<'a>>, name: &str| {
            element.and_then(|element| self.optional_value(element, name))
        };
        let schedule = xml::extension(element, "taskSchedule");
        let form = xml::extension(element, "formDefinition");
        let mut task = UserTask {
            assignee: of(assignment, "assignee"),
            candidate_groups: of(assignment, "candidateGroups"),
            candidate_users: of(assignment, "candidateUsers"),
            due_date: of(schedule, "dueDate"),
            follow_up_date: of(schedule, "followUpDate"),
            priority: of(xml::extension(element, "priorityDefinition"), "priority"),
            form_id: of(form, "formId"),
            form_key: of(form, "externalReference"),
            form_binding: Binding::Latest,
            headers: json(&headers(element)),
            listeners: Vec::new(),
        };
        if task.form_key.is_none() {
            task.form_key = of(form, "formKey");
        }
        if let Some(form) = form {
            self.check_form(form, &task);
            task.form_binding = self.binding(form)?;
        }
        self.check_user_task(element, &task);
        if xml::extension(element, "userTask").is_some() {
            task.listeners = self.task_listeners(element);
            return Some(Kind::UserTask(Box::new(task)));
        }
        Some(Kind::Job(self.user_task_job(element, task)))
    }

    fn check_form(&mut self, form: Element<'a>, task: &UserTask) {
        match (&task.form_id, &task.form_key) {
            (Some(_), Some(_)) => {
                self.report.error(form, "formDefinition names two forms: formId and another");
            }
            (None, None) => {
                self.report.error(
                    form,
                    "formDefinition needs one of formId, formKey and externalReference",
                );
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }

    fn check_user_task(&mut self, element: Element<'a>, task: &UserTask) {
        for (name, value) in [("dueDate", &task.due_date), ("followUpDate", &task.follow_up_date)] {
            if let Some(Template::Static(text)) = value
                && let Err(error) = schedule::parse_date(text)
            {
                self.report.error(element, format!("{name} {error}"));
            }
        }
        if let Some(Template::Static(text)) = &task.priority
            && !text.trim().parse().is_ok_and(|priority: u8| priority <= 100)
        {
            let message = format!("priority {} is not a number between 0 and 100", quote(text));
            self.report.error(element, message);
        }
    }

    /// Where there is no `zeebe:userTask`, a worker gets a job that tells all this in headers.
    fn user_task_job(&mut self, element: Element<'a>, task: UserTask) -> JobSpec {
        let entries = [
            ("assignee", task.assignee),
            ("candidateGroups", task.candidate_groups),
            ("candidateUsers", task.candidate_users),
            ("dueDate", task.due_date),
            ("followUpDate", task.follow_up_date),
            ("formKey", task.form_key),
        ];
        let mut fixed: Vec<(String, Text)> = Vec::new();
        let mut computed = Vec::new();
        for (name, value) in entries {
            let name = format!("io.camunda.zeebe:{name}");
            match value {
                Some(Template::Static(text)) if name.contains("candidate") => {
                    fixed.push((name, list(&text)));
                }
                Some(Template::Static(text)) => fixed.push((name, text)),
                Some(Template::Feel(_)) => computed.extend(value.map(|value| (name.into(), value))),
                None => {}
            }
        }
        let mut all = headers(element);
        all.extend(fixed.iter().map(|(name, value)| (name.as_str(), &**value)));
        JobSpec {
            job_type: Template::Static(USER_TASK_TYPE.into()),
            retries: Template::Static("1".into()),
            priority: self.job_priority(element),
            headers: json(&all),
            computed_headers: computed,
        }
    }

    /// The one of two extensions that must be there alone.
    pub(super) fn either(
        &mut self,
        element: Element<'a>,
        one: &str,
        other: &str,
    ) -> Option<Element<'a>> {
        match (xml::extension(element, one), xml::extension(element, other)) {
            (Some(found), None) | (None, Some(found)) => Some(found),
            (Some(_), Some(_)) | (None, None) => {
                let name = xml::name_of(element);
                let what = format!("{name} needs either a zeebe:{one} or a zeebe:{other}");
                self.report.error(element, what);
                None
            }
        }
    }
}

/// Text with commas as a JSON list.
fn list(text: &str) -> Text {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Value::list(items.map(Value::text).collect()).to_json().into()
}
