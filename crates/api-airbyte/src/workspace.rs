//! Workspaces. One is there from the start and stays.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{NoContent, Shown, listed};
use crate::document::{Catalog, Connection, Definition, Destination, Kept, Source, Workspace};
use crate::extract::{At, Object, Page, Params, checked_name};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::token::Caller;
use crate::{WORKSPACE_DEFAULT, connection};

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/workspaces", get(list).post(create))
        .route("/workspaces/{workspace}", get(show).patch(update).delete(remove))
}

/// What a workspace is made of, or changed to.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    name: Option<String>,
    notifications: Option<Map<String, Value>>,
    region_id: Option<String>,
    organization_id: Option<String>,
}

/// Where the data lives when nobody says.
const RESIDENCY: &str = "auto";

/// The workspace that is there from the start.
pub(crate) fn default_workspace(now_ms: u64) -> Workspace {
    Workspace {
        workspace_id: WORKSPACE_DEFAULT.to_owned(),
        name: "Default Workspace".to_owned(),
        data_residency: RESIDENCY.to_owned(),
        created_at: now_ms,
        updated_at: now_ms,
        ..Workspace::default()
    }
}

fn shown(workspace: &Workspace) -> Value {
    json!({
        "workspaceId": workspace.workspace_id,
        "name": workspace.name,
        "dataResidency": workspace.data_residency,
        "notifications": workspace.notifications,
    })
}

async fn create(
    State(face): State<Face>,
    caller: Caller,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let name = given.name.ok_or_else(|| Failure::missing("name"))?;
    let mut workspace = default_workspace(face.now_ms().await?);
    workspace.workspace_id = face.new_id()?;
    workspace.name = checked_name(&name)?;
    workspace.notifications = given.notifications.unwrap_or_default();
    for (field, value) in [("regionId", given.region_id), ("organizationId", given.organization_id)]
    {
        if let Some(value) = value {
            workspace.rest.insert(field.to_owned(), value.into());
        }
    }
    face.make(&caller.tenant, &workspace).await?;
    Ok(Shown(shown(&workspace)))
}

async fn list(
    State(face): State<Face>,
    caller: Caller,
    params: Params,
    page: Page,
) -> Answered<Shown<Value>> {
    let found = face.wanted::<Workspace>(&caller.tenant, &params).await?;
    Ok(listed(found, &page, |found| shown(&found.is)))
}

async fn show(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<Shown<Value>> {
    let found = face.find::<Workspace>(&caller.tenant, &id).await?;
    Ok(Shown(shown(&found.is)))
}

async fn update(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let name = given.name.as_deref().map(checked_name).transpose()?;
    let changed = face
        .change(&caller.tenant, &id, |workspace: &mut Workspace| {
            if let Some(name) = &name {
                workspace.name.clone_from(name);
            }
            if let Some(notifications) = &given.notifications {
                workspace.notifications.clone_from(notifications);
            }
            if let Some(region) = &given.region_id {
                workspace.rest.insert("regionId".to_owned(), region.clone().into());
            }
            Ok(())
        })
        .await?;
    Ok(Shown(shown(&changed)))
}

/// With all that is in it.
async fn remove(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<NoContent> {
    let tenant = &caller.tenant;
    face.find::<Workspace>(tenant, &id).await?;
    if id == WORKSPACE_DEFAULT {
        return Err(Failure::conflict("The default workspace cannot be deleted."));
    }
    let connections = face.all::<Connection>(tenant).await?.into_iter().map(|found| found.is);
    let inside = connections.filter(|connection| connection.workspace_id == id);
    let inside: Vec<String> = inside.map(|connection| connection.connection_id).collect();
    connection::remove(&face, tenant, &inside).await?;
    let sources = empty::<Source>(&face, tenant, &id).await?;
    face.delete(tenant, Catalog::KIND, &sources).await?;
    empty::<Destination>(&face, tenant, &id).await?;
    empty::<Definition>(&face, tenant, &id).await?;
    face.delete(tenant, Workspace::KIND, &[id.into()]).await?;
    Ok(NoContent)
}

/// Removes all of a kind that is in a workspace; its ids.
async fn empty<T: Kept>(face: &Face, tenant: &str, workspace: &str) -> Answered<Vec<Box<str>>> {
    let found = face.all::<T>(tenant).await?;
    let inside = found.iter().filter(|found| found.is.workspace() == workspace);
    let ids: Vec<Box<str>> = inside.map(|found| found.is.id().into()).collect();
    face.delete(tenant, T::KIND, &ids).await?;
    Ok(ids)
}
