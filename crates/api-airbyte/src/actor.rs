//! Sources and destinations, which are the same but for their names. Secrets are sealed before a document
//! is written and masked in every answer.

use std::collections::HashMap;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{NoContent, Shown, paged};
use crate::definition::{resolved, short_type};
use crate::document::{
    Acting, Actor, Catalog, Connection, Definition, Destination, Kept, Side, Source, Workspace,
};
use crate::extract::{At, Object, Page, Params, checked_name};
use crate::face::{Face, Found};
use crate::failure::{Answered, Failure};
use crate::token::Caller;
use crate::vault::{VaultError, is_sealed};
use crate::{connection, job, schema, scope, secret};

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/sources", get(list::<Source>).post(create::<Source>))
        .route(
            "/sources/{id}",
            get(show::<Source>).patch(patch::<Source>).put(put::<Source>).delete(remove::<Source>),
        )
        .route("/destinations", get(list::<Destination>).post(create::<Destination>))
        .route(
            "/destinations/{id}",
            get(show::<Destination>)
                .patch(patch::<Destination>)
                .put(put::<Destination>)
                .delete(remove::<Destination>),
        )
}

/// What a source or destination is made of, or changed to.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    name: Option<String>,
    workspace_id: Option<String>,
    definition_id: Option<String>,
    configuration: Option<Map<String, Value>>,
    resource_allocation: Option<Value>,
}

/// As clients see it.
fn shown<T: Acting>(kept: &T, spec: Option<&Value>) -> Value {
    let actor = kept.actor();
    let mut shown = json!({
        format!("{}Id", T::SIDE.name()): kept.id(),
        "name": actor.name,
        T::SIDE.type_field(): kept.connector_type(),
        "definitionId": actor.definition_id,
        "workspaceId": actor.workspace_id,
        "configuration": secret::masked(actor.configuration.clone(), spec),
        "createdAt": actor.created_at / 1_000,
    });
    if let (Some(given), Some(fields)) = (&actor.resource_allocation, shown.as_object_mut()) {
        fields.insert("resourceAllocation".to_owned(), given.clone());
    }
    shown
}

/// The same, with the spec of its connector, if that is known.
async fn shown_of<T: Acting>(face: &Face, tenant: &str, kept: &T) -> Answered<Shown<Value>> {
    let spec = spec_of(face, tenant, &kept.actor().definition_id).await?;
    Ok(Shown(shown(kept, spec.as_ref())))
}

/// Refuses a configuration that is not what its connector asks for. Where nobody knows that, nothing is refused;
/// what the connector of before asked for counts for nothing.
fn check(configuration: &Value, definition: Option<&Definition>) -> Answered<()> {
    let known = definition.filter(|definition| definition.spec_at.is_some());
    let Some(spec) = known.and_then(|known| known.spec.as_ref()) else { return Ok(()) };
    let wrong = schema::wrong(configuration, spec);
    if wrong.is_empty() {
        return Ok(());
    }
    let detail = "The provided configuration does not fulfill the specification of its connector:";
    Err(Failure::unprocessable(format!("{detail} {}.", wrong.join(", "))))
}

async fn spec_of(face: &Face, tenant: &str, definition: &str) -> Answered<Option<Value>> {
    let found = face.read::<Definition>(tenant, definition).await?;
    Ok(found.and_then(|found| found.is.spec))
}

/// Takes the type out of a configuration, where clients write it.
fn take_type(side: Side, configuration: &mut Map<String, Value>) -> Option<String> {
    let snake = format!("{}_type", side.name());
    [side.type_field(), snake.as_str()]
        .into_iter()
        .filter_map(|field| configuration.shift_remove(field))
        .find_map(|value| value.as_str().map(str::to_owned))
}

async fn create<T: Acting>(
    State(face): State<Face>,
    caller: Caller,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let tenant = &caller.tenant;
    let name = checked_name(&given.name.ok_or_else(|| Failure::missing("name"))?)?;
    let workspace = given.workspace_id.ok_or_else(|| Failure::missing("workspaceId"))?;
    let mut configuration = given.configuration.ok_or_else(|| Failure::missing("configuration"))?;
    face.find::<Workspace>(tenant, &workspace).await?;
    let connector_type = take_type(T::SIDE, &mut configuration);
    let named = (given.definition_id.as_deref(), connector_type.as_deref());
    let definition = resolved(&face, tenant, T::SIDE, &workspace, named).await?;
    let spec = definition.spec.as_ref();
    let id = face.new_id()?;
    let mut configuration = Value::Object(configuration);
    secret::unmasked(&mut configuration, None, "configuration")?;
    check(&configuration, Some(&definition))?;
    seal::<T>(&face, &scope(tenant, T::KIND, &id), &mut configuration, spec)?;
    if definition.spec_at.is_none() {
        // For the next time; now names say what is secret.
        job::ask_for_spec(&face, tenant, &definition).await?;
    }
    let now_ms = face.now_ms().await?;
    let actor = Actor {
        workspace_id: workspace,
        definition_id: definition.definition_id.clone(),
        name,
        configuration,
        resource_allocation: given.resource_allocation,
        created_at: now_ms,
        updated_at: now_ms,
        rest: Map::new(),
    };
    let made = T::made(id, definition.connector_type.clone(), actor);
    face.make(tenant, &made).await?;
    Ok(Shown(shown(&made, spec)))
}

fn seal<T: Acting>(
    face: &Face,
    scope: &str,
    configuration: &mut Value,
    spec: Option<&Value>,
) -> Answered<()> {
    face.settings.vault.seal(scope, configuration, spec).map_err(|error| {
        if matches!(error, VaultError::Deep) {
            Failure::invalid(error.to_string())
        } else {
            Failure::from(error)
        }
    })
}

async fn list<T: Acting>(
    State(face): State<Face>,
    caller: Caller,
    params: Params,
    page: Page,
) -> Answered<Shown<Value>> {
    let found = face.wanted::<T>(&caller.tenant, &params).await?;
    let (found, more) = page.part(found);
    let (mut specs, mut data) = (HashMap::new(), Vec::new());
    for Found { is: kept, .. } in &found {
        let definition = &*kept.actor().definition_id;
        if !specs.contains_key(definition) {
            specs.insert(definition, spec_of(&face, &caller.tenant, definition).await?);
        }
        data.push(shown(kept, specs.get(definition).and_then(Option::as_ref)));
    }
    Ok(paged(data, more, &page))
}

async fn show<T: Acting>(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<Shown<Value>> {
    let found = face.find::<T>(&caller.tenant, &id).await?;
    shown_of(&face, &caller.tenant, &found.is).await
}

/// What a change does to the configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// What is not given stays.
    Merge,
    /// What is not given is gone.
    Replace,
}

/// What is not given stays, also within the configuration.
async fn patch<T: Acting>(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    change::<T>(&face, &caller.tenant, &id, given, How::Merge).await
}

async fn put<T: Acting>(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    for (field, is_there) in
        [("name", given.name.is_some()), ("configuration", given.configuration.is_some())]
    {
        if !is_there {
            return Err(Failure::missing(field));
        }
    }
    change::<T>(&face, &caller.tenant, &id, given, How::Replace).await
}

async fn change<T: Acting>(
    face: &Face,
    tenant: &str,
    id: &str,
    mut given: Given,
    how: How,
) -> Answered<Shown<Value>> {
    let found: Found<T> = face.find(tenant, id).await?;
    let definition = face.read(tenant, &found.is.actor().definition_id).await?;
    let definition: Option<Definition> = definition.map(|found| found.is);
    let spec = definition.as_ref().and_then(|definition| definition.spec.clone());
    let name = given.name.as_deref().map(checked_name).transpose()?;
    let connector_type = given.configuration.as_mut().and_then(|fields| take_type(T::SIDE, fields));
    if connector_type.is_some_and(|given| short_type(T::SIDE, &given) != found.is.connector_type())
    {
        let detail = format!("The {} of a {} cannot change.", T::SIDE.type_field(), T::WHAT);
        return Err(Failure::invalid(detail));
    }
    if given.workspace_id.is_some_and(|given| given != found.is.workspace()) {
        return Err(Failure::invalid(format!("The workspaceId of a {} cannot change.", T::WHAT)));
    }
    let scope = scope(tenant, T::KIND, id);
    let changed = face
        .change(tenant, id, |kept: &mut T| {
            let actor = kept.actor_mut();
            if let Some(name) = &name {
                actor.name.clone_from(name);
            }
            if let Some(configuration) = given.configuration.clone() {
                let mut before = std::mem::take(&mut actor.configuration);
                if how == How::Merge {
                    unseal_whole(face, &scope, &mut before)?;
                }
                let mut after = configured(before, configuration, how)?;
                check(&after, definition.as_ref())?;
                seal::<T>(face, &scope, &mut after, spec.as_ref())?;
                actor.configuration = after;
            }
            if let Some(allocation) = &given.resource_allocation {
                actor.resource_allocation = Some(allocation.clone());
            }
            Ok(())
        })
        .await?;
    Ok(Shown(shown(&changed, spec.as_ref())))
}

/// A configuration that is a secret as a whole, as those are that too much describes, is opened: fields
/// that were put beside what is sealed would damage it.
fn unseal_whole(face: &Face, scope: &str, configuration: &mut Value) -> Answered<()> {
    if !is_sealed(configuration) {
        return Ok(());
    }
    face.settings.vault.open(scope, configuration).map_err(|error| {
        Failure::conflict(format!(
            "The configuration cannot be opened; PUT gives it anew: {error}."
        ))
    })
}

/// The configuration after a change.
fn configured(before: Value, given: Map<String, Value>, how: How) -> Answered<Value> {
    let mut given = Value::Object(given);
    secret::unmasked(&mut given, Some(&before), "configuration")?;
    match (how, before, given) {
        (How::Merge, Value::Object(mut before), Value::Object(given)) => {
            secret::merge(&mut before, given);
            Ok(Value::Object(before))
        }
        (How::Merge | How::Replace, _, given) => Ok(given),
    }
}

/// Its connections go with it.
async fn remove<T: Acting>(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<NoContent> {
    let tenant = &caller.tenant;
    face.find::<T>(tenant, &id).await?;
    let connections = face.all::<Connection>(tenant).await?.into_iter().map(|found| found.is);
    let its = connections.filter(|connection| match T::SIDE {
        Side::Source => connection.source_id == id,
        Side::Destination => connection.destination_id == id,
    });
    let its: Vec<String> = its.map(|connection| connection.connection_id).collect();
    connection::remove(&face, tenant, &its).await?;
    let ids = [Box::from(id)];
    face.delete(tenant, T::KIND, &ids).await?;
    if T::SIDE == Side::Source {
        face.delete(tenant, Catalog::KIND, &ids).await?;
    }
    Ok(NoContent)
}
