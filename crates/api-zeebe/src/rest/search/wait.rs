//! Jobs, incidents, user tasks and message subscriptions.

use axum::extract::State;
use serde_json::{Value as Json, json};
use windlass_gateway::read_model::names::ListenerEvent;
use windlass_gateway::read_model::search::{
    Incident, IncidentField, Job, JobField, MessageSubscription, UserTask, UserTaskField,
};
use windlass_gateway::read_model::{Field, Filter, Search, Test, Value, VariableScope};

use super::instance::{some, text};
use super::{Asked, Item, filter, find, page, time};
use crate::rest::Face;
use crate::rest::extract::{KeyPath, MaybeBody, Shown};
use crate::rest::problem::Answered;

/// What a job that belongs to no process says where a key must be.
const NO_KEY: &str = "-1";

/// What the work of an element says where a listener names its event.
const NO_EVENT: &str = "UNSPECIFIED";

fn some_or_none(key: Option<u64>) -> String {
    some(key).unwrap_or_else(|| NO_KEY.to_owned())
}

/// Headers are written as an object.
fn headers(json: &str) -> Json {
    serde_json::from_str(json).ok().filter(Json::is_object).unwrap_or_else(|| json!({}))
}

impl Item for Job {
    const NAME: &'static str = "Job";

    fn shown(self) -> Json {
        json!({
            "jobKey": text(self.key),
            "type": self.job_type,
            "kind": self.kind.name(),
            "listenerEventType": self.listener.map_or(NO_EVENT, ListenerEvent::name),
            "state": self.state.name(),
            "worker": self.worker.unwrap_or_default(),
            "retries": self.retries,
            "priority": self.priority,
            "deadline": self.deadline_ms.map(time::show),
            "errorCode": self.error_code,
            "errorMessage": self.error_message,
            "customHeaders": headers(&self.headers),
            "hasFailedWithRetriesLeft": self.failed_with_retries_left,
            "isDenied": null,
            "deniedReason": null,
            "elementId": self.element_id,
            "elementInstanceKey": some_or_none(self.element),
            "processInstanceKey": some_or_none(self.instance),
            "rootProcessInstanceKey": some(self.root),
            "processDefinitionKey": some_or_none(self.definition),
            "processDefinitionId": self.process_id.unwrap_or_default(),
            "businessId": self.business_id,
            "creationTime": time::show(self.created_ms),
            "lastUpdateTime": time::show(self.updated_ms),
            "endTime": self.end_ms.map(time::show),
            "tenantId": self.tenant,
        })
    }

    fn filter(name: &str, wanted: &Json) -> Answered<Option<Filter<JobField>>> {
        // The word for none is none in the read model.
        let is_none = name == JobField::ListenerEventType.name() && *wanted == json!(NO_EVENT);
        let none = Filter::Field(JobField::ListenerEventType, Test::Exists(false));
        Ok(is_none.then_some(none))
    }
}

impl Item for Incident {
    const NAME: &'static str = "Incident";

    fn shown(self) -> Json {
        json!({
            "incidentKey": text(self.key),
            "errorType": self.error_type,
            "errorMessage": self.message,
            "state": self.state.name(),
            "creationTime": time::show(self.created_ms),
            "elementId": self.element_id.unwrap_or_default(),
            "elementInstanceKey": some_or_none(self.element),
            "processInstanceKey": some_or_none(self.instance),
            "rootProcessInstanceKey": some(self.root),
            "processDefinitionKey": some_or_none(self.definition),
            "processDefinitionId": self.process_id.unwrap_or_default(),
            "jobKey": some(self.job),
            "tenantId": self.tenant,
        })
    }
}

/// Those of an element instance.
pub(super) async fn search_of_element(
    State(face): State<Face>,
    KeyPath(key): KeyPath,
    MaybeBody(asked): MaybeBody<Asked>,
) -> Answered<Shown<Json>> {
    let asked = filter::read::<Incident>(asked)?;
    let of_it = Filter::Field(IncidentField::ElementKey, Test::Equal(Value::Number(key)));
    let asked = Search { filter: Filter::All(vec![of_it, asked.filter]), ..asked };
    Ok(page(find::<Incident>(&face, asked).await?, Incident::shown))
}

impl Item for UserTask {
    const NAME: &'static str = "User task";

    fn shown(self) -> Json {
        json!({
            "userTaskKey": text(self.key),
            "name": self.name,
            "state": self.state.name(),
            "assignee": self.assignee,
            "candidateGroups": self.candidate_groups,
            "candidateUsers": self.candidate_users,
            "dueDate": self.due_date,
            "followUpDate": self.follow_up_date,
            "priority": self.priority,
            "formKey": some(self.form),
            "externalFormReference": self.form_reference,
            "customHeaders": headers(&self.headers),
            "creationDate": time::show(self.created_ms),
            "completionDate": self.completed_ms.map(time::show),
            "elementId": self.element_id,
            "elementInstanceKey": text(self.element),
            "processInstanceKey": text(self.instance),
            "rootProcessInstanceKey": text(self.root),
            "processDefinitionKey": text(self.definition),
            "processDefinitionId": self.process_id,
            "processDefinitionVersion": self.version,
            "processName": self.process_name,
            "businessId": self.business_id,
            "tags": self.tags,
            "tenantId": self.tenant,
        })
    }

    fn filter(name: &str, wanted: &Json) -> Answered<Option<Filter<UserTaskField>>> {
        match name {
            "$or" => filter::any::<UserTask>(wanted).map(Some),
            "processInstanceVariables" => {
                filter::variables(name, wanted, VariableScope::Instance).map(Some)
            }
            "localVariables" => filter::variables(name, wanted, VariableScope::Element).map(Some),
            "tags" => filter::has_all(UserTaskField::Tags, wanted).map(Some),
            _ => Ok(None),
        }
    }
}

impl Item for MessageSubscription {
    const NAME: &'static str = "Message subscription";

    fn shown(self) -> Json {
        json!({
            "messageSubscriptionKey": text(self.key),
            "messageSubscriptionType": self.kind.name(),
            "messageSubscriptionState": self.state.name(),
            "lastUpdatedDate": time::show(self.updated_ms),
            "messageName": self.message_name,
            "correlationKey": self.correlation_key,
            "elementId": self.element_id,
            "elementInstanceKey": some(self.element),
            "processInstanceKey": some(self.instance),
            "rootProcessInstanceKey": some(self.root),
            "processDefinitionKey": text(self.definition),
            "processDefinitionId": self.process_id,
            "processDefinitionName": self.process_name,
            "processDefinitionVersion": self.version,
            "businessId": self.business_id,
            "toolName": null,
            "toolProperties": {},
            "inboundConnectorType": null,
            "tenantId": self.tenant,
        })
    }
}
