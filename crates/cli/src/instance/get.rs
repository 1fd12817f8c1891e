//! `windlass instance get`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::owned;
use crate::args::Online;
use crate::failure::Failure;
use crate::output::fields;
use crate::rest::{Rest, shown, text};

/// Variables and incidents that are shown.
const SHOWN_MAX: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Key of the instance
    key: u64,
}

pub(crate) async fn run(online: &Online, args: &GetArgs) -> Result<(), Failure> {
    let (rest, key) = (Rest::new(online), args.key.to_string());
    let instance = owned(online, &rest, &key).await?;
    let of_it = json!({ "processInstanceKey": key });
    let own = json!({ "processInstanceKey": key, "scopeKey": key });
    let by_name = json!([{ "field": "name", "order": "ASC" }]);
    let variables =
        rest.search("variables?truncateValues=false", &own, &by_name, SHOWN_MAX).await?;
    let incidents = rest.search("incidents", &of_it, &json!([]), SHOWN_MAX).await?;
    let variables = values(&variables);
    let value = json!({ "instance": instance, "variables": variables, "incidents": incidents });
    online.out.show(&value, || {
        let mut text = fields(&[
            ("key", shown(&instance, "processInstanceKey")),
            ("process", process(&instance)),
            ("state", state(&instance)),
            ("started", shown(&instance, "startDate")),
            ("ended", shown(&instance, "endDate")),
            ("parent", shown(&instance, "parentProcessInstanceKey")),
            ("business id", shown(&instance, "businessId")),
            ("tenant", shown(&instance, "tenantId")),
            ("variables", Value::Object(variables.clone()).to_string()),
        ]);
        for incident in &incidents {
            text.push_str(&incident_text(incident));
        }
        text
    })
}

/// `order, version 2`.
pub(super) fn process(instance: &Value) -> String {
    let version = shown(instance, "processDefinitionVersion");
    format!("{}, version {version}", text(instance, "processDefinitionId"))
}

/// In lower case, and whether a person is waited for.
pub(super) fn state(instance: &Value) -> String {
    let state = text(instance, "state").to_lowercase();
    let has_incident = instance.get("hasIncident").and_then(Value::as_bool).unwrap_or_default();
    if has_incident { format!("{state}, with incidents") } else { state }
}

/// Values travel as JSON in a text.
fn values(variables: &[Value]) -> Map<String, Value> {
    let value = |variable: &Value| {
        let given = text(variable, "value");
        serde_json::from_str(given).unwrap_or_else(|_| json!(given))
    };
    let named = |variable: &Value| (text(variable, "name").to_owned(), value(variable));
    variables.iter().map(named).collect()
}

fn incident_text(incident: &Value) -> String {
    let key = shown(incident, "incidentKey");
    let state = text(incident, "state");
    let next = match state {
        "ACTIVE" | "PENDING" => format!("; `windlass incident resolve {key}` lets it go on"),
        _ => String::new(),
    };
    format!(
        "incident {key} at {}, {}, {}: {}{next}\n",
        text(incident, "elementId"),
        text(incident, "errorType").to_lowercase().replace('_', "-"),
        state.to_lowercase(),
        text(incident, "errorMessage"),
    )
}
