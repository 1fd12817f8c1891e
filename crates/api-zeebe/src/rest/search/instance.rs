//! Process instances and element instances.

use axum::extract::State;
use serde_json::{Value as Json, json};
use windlass_gateway::read_model::search::{
    ElementInstance, ElementInstanceField, Incident, IncidentField, JobField, PAGE_ITEMS_MAX,
    ProcessInstance, ProcessInstanceField, VALUES_MAX,
};
use windlass_gateway::read_model::{Filter, Page, Search, Start, Test, Value, VariableScope};

use super::{Asked, Item, filter, find, not_found, one, page, refused, time, up_to_date};
use crate::rest::Face;
use crate::rest::extract::{KeyPath, MaybeBody, Shown};
use crate::rest::problem::Answered;

/// A key as text.
pub(super) fn text(key: u64) -> String {
    key.cast_signed().to_string()
}

/// A key as text, if there is one.
pub(super) fn some(key: Option<u64>) -> Option<String> {
    key.map(text)
}

impl Item for ProcessInstance {
    const NAME: &'static str = "Process instance";

    fn shown(self) -> Json {
        json!({
            "processInstanceKey": text(self.key),
            "processDefinitionId": self.process_id,
            "processDefinitionName": self.process_name,
            "processDefinitionVersion": self.version,
            "processDefinitionVersionTag": self.version_tag,
            "processDefinitionKey": text(self.definition),
            "parentProcessInstanceKey": some(self.parent),
            "parentElementInstanceKey": some(self.parent_element),
            "rootProcessInstanceKey": text(self.root),
            "startDate": time::show(self.start_ms),
            "endDate": self.end_ms.map(time::show),
            "suspendedDate": null,
            "state": self.state.name(),
            "hasIncident": self.has_incident,
            "tenantId": self.tenant,
            "tags": self.tags,
            "businessId": self.business_id,
        })
    }

    fn filter(name: &str, wanted: &Json) -> Answered<Option<Filter<ProcessInstanceField>>> {
        let has_element = |field, wanted| -> Answered<_> {
            Ok(Some(Filter::HasElement(Box::new(filter::field(field, wanted)?))))
        };
        match name {
            "$or" => filter::any::<ProcessInstance>(wanted).map(Some),
            "variables" => filter::variables(name, wanted, VariableScope::Instance).map(Some),
            "tags" => filter::has_all(ProcessInstanceField::Tags, wanted).map(Some),
            "elementId" => has_element(ElementInstanceField::ElementId, wanted),
            "elementInstanceState" => has_element(ElementInstanceField::State, wanted),
            "hasElementInstanceIncident" => has_element(ElementInstanceField::HasIncident, wanted),
            "errorMessage" => {
                let message = filter::field(IncidentField::ErrorMessage, wanted)?;
                let active = Test::Equal("ACTIVE".into());
                let active = Filter::Field(IncidentField::State, active);
                Ok(Some(Filter::HasIncident(Box::new(Filter::All(vec![message, active])))))
            }
            "hasRetriesLeft" => {
                let left = filter::field(JobField::HasFailedWithRetriesLeft, wanted)?;
                Ok(Some(Filter::HasJob(Box::new(left))))
            }
            // There are no batch operations, so nothing belongs to one.
            "batchOperationId" | "batchOperationKey" => Ok(Some(Filter::Any(Vec::new()))),
            _ => Ok(None),
        }
    }
}

impl Item for ElementInstance {
    const NAME: &'static str = "Element instance";

    fn shown(self) -> Json {
        json!({
            "elementInstanceKey": text(self.key),
            "processInstanceKey": text(self.instance),
            "rootProcessInstanceKey": text(self.root),
            "processDefinitionKey": text(self.definition),
            "processDefinitionId": self.process_id,
            "elementName": self.name.as_ref().unwrap_or(&self.element_id),
            "elementId": self.element_id,
            "type": self.element_type,
            "state": self.state.name(),
            "startDate": time::show(self.start_ms),
            "endDate": self.end_ms.map(time::show),
            "hasIncident": self.incident.is_some(),
            "incidentKey": some(self.incident),
            "tenantId": self.tenant,
        })
    }

    fn filter(name: &str, wanted: &Json) -> Answered<Option<Filter<ElementInstanceField>>> {
        match name {
            "$or" => filter::any::<ElementInstance>(wanted).map(Some),
            _ => Ok(None),
        }
    }
}

/// The instances that called one another, the outermost first.
pub(super) async fn call_hierarchy(
    State(face): State<Face>,
    KeyPath(key): KeyPath,
) -> Answered<Shown<Json>> {
    let searches = up_to_date(&face).await?;
    let chain = searches.call_chain(key.cast_unsigned()).await.map_err(refused)?;
    if chain.is_empty() {
        return Err(not_found(ProcessInstance::NAME, key));
    }
    let entries = chain.into_iter().map(|instance| {
        let name = instance.process_name.unwrap_or(instance.process_id);
        json!({
            "processInstanceKey": text(instance.key),
            "processDefinitionKey": text(instance.definition),
            "processDefinitionName": name,
        })
    });
    Ok(Shown(entries.collect()))
}

/// Those of an instance, and of what it called.
pub(super) async fn search_incidents(
    State(face): State<Face>,
    KeyPath(key): KeyPath,
    MaybeBody(asked): MaybeBody<Asked>,
) -> Answered<Shown<Json>> {
    one::<ProcessInstance>(&face, key).await?;
    let asked = filter::read::<Incident>(asked)?;
    let instances = Test::In(called(&face, key).await?);
    let of_these = Filter::Field(IncidentField::ProcessInstanceKey, instances);
    let asked = Search { filter: Filter::All(vec![of_these, asked.filter]), ..asked };
    Ok(page(find::<Incident>(&face, asked).await?, Incident::shown))
}

/// An instance, those that it called, those that they called and so on; a bounded number.
async fn called(face: &Face, key: i64) -> Answered<Vec<Value>> {
    let searches = face.gateway.searches().map_err(refused)?;
    let mut all = vec![Value::Number(key)];
    let mut callers = all.clone();
    // Half of what a search may name, so that the filter has room for its own.
    while !callers.is_empty() && all.len() < VALUES_MAX / 2 {
        let room = u32::try_from(VALUES_MAX / 2 - all.len()).unwrap_or(PAGE_ITEMS_MAX);
        let of_these = Filter::Field(ProcessInstanceField::ParentKey, Test::In(callers));
        let page = Page { limit: room, start: Start::Offset(0) };
        let asked = Search { filter: of_these, sort: Vec::new(), page };
        let found = searches.search::<ProcessInstance>(asked).await.map_err(refused)?;
        callers = found.items.iter().map(|instance| Value::key(instance.key)).collect();
        all.extend(callers.iter().cloned());
    }
    Ok(all)
}
