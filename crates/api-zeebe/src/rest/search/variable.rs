//! Variables. Values are cut short in searches unless the query says otherwise.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use windlass_gateway::read_model::search::{ElementInstance, UserTask, Variable, VariableField};
use windlass_gateway::read_model::{Filter, Search, Test, Value};

use super::instance::text;
use super::{Asked, Item, filter, find, one, page, refused};
use crate::rest::Face;
use crate::rest::extract::{KeyPath, MaybeBody, Shown};
use crate::rest::problem::{Answered, Problem};

/// Bytes of values that are shown whole in one answer.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// Scopes inside one another.
const SCOPES_MAX: usize = 1_000;

impl Item for Variable {
    const NAME: &'static str = "Variable";

    fn shown(self) -> Json {
        json!({
            "variableKey": text(self.key),
            "name": self.name,
            "value": self.value,
            "isTruncated": self.is_truncated,
            "scopeKey": text(self.scope),
            "processInstanceKey": text(self.instance),
            "rootProcessInstanceKey": text(self.root),
            "tenantId": self.tenant,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Values {
    truncate_values: Option<bool>,
}

type Asking = Result<Query<Values>, QueryRejection>;

pub(super) async fn search(
    State(face): State<Face>,
    query: Asking,
    MaybeBody(asked): MaybeBody<Asked>,
) -> Answered<Shown<Json>> {
    answer(&face, query, filter::read::<Variable>(asked)?).await
}

/// Those that a user task sees: of its own scope, and of those around it.
pub(super) async fn search_of_task(
    State(face): State<Face>,
    KeyPath(key): KeyPath,
    query: Asking,
    MaybeBody(asked): MaybeBody<Asked>,
) -> Answered<Shown<Json>> {
    let asked = filter::read::<Variable>(asked)?;
    let task = one::<UserTask>(&face, key).await?;
    let searches = face.gateway.searches().map_err(refused)?;
    let mut scopes = vec![Value::key(task.instance)];
    let mut scope = task.element;
    while scope != task.instance && scopes.len() < SCOPES_MAX {
        scopes.push(Value::key(scope));
        let element = searches.get::<ElementInstance>(scope).await.map_err(refused)?;
        let Some(element) = element else { break };
        scope = element.scope;
    }
    let seen = Filter::Field(VariableField::ScopeKey, Test::In(scopes));
    let asked = Search { filter: Filter::All(vec![seen, asked.filter]), ..asked };
    answer(&face, query, asked).await
}

async fn answer(face: &Face, query: Asking, asked: Search<VariableField>) -> Answered<Shown<Json>> {
    let Query(query) = query.map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
    let mut found = find::<Variable>(face, asked).await?;
    if query.truncate_values == Some(false) {
        let mut bytes = 0;
        for variable in found.items.iter_mut().filter(|variable| variable.is_truncated) {
            show_whole(face, variable).await?;
            bytes += variable.value.len();
            if bytes > VALUE_BYTES_MAX {
                let detail = "The values are too large for one answer: ask for fewer at once.";
                return Err(Problem::invalid(detail));
            }
        }
    }
    Ok(page(found, Variable::shown))
}

pub(super) async fn show(State(face): State<Face>, KeyPath(key): KeyPath) -> Answered<Shown<Json>> {
    let mut variable = one::<Variable>(&face, key).await?;
    show_whole(&face, &mut variable).await?;
    let mut shown = variable.shown();
    if let Some(members) = shown.as_object_mut() {
        members.remove("isTruncated");
    }
    Ok(Shown(shown))
}

async fn show_whole(face: &Face, variable: &mut Variable) -> Answered<()> {
    let searches = face.gateway.searches().map_err(refused)?;
    if let Some(value) = searches.variable_value(variable.key).await.map_err(refused)? {
        variable.value = value;
        variable.is_truncated = false;
    }
    Ok(())
}
