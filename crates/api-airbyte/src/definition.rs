//! Definitions: which connectors there are, and how each is started.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Shown, listed};
use crate::document::{Acting, Definition, Destination, Kept, Launch, Side, Source, Workspace};
use crate::extract::{At, Object, Page, Params, checked_name};
use crate::face::{Face, Found};
use crate::failure::{Answered, Failure};
use crate::token::Caller;
use crate::{job, secret};

pub(crate) fn routes() -> Router<Face> {
    Router::new().route("/workspaces/{workspace}/definitions/{side}", get(list).post(create)).route(
        "/workspaces/{workspace}/definitions/{side}/{id}",
        get(show).put(update).delete(remove),
    )
}

/// Connectors that are known from the start: id, side, type, name, package.
const BUILT_IN: [(&str, Side, &str, &str, &str); 3] = [
    (
        "dfd88b22-b603-4c3d-aad7-3701784586b1",
        Side::Source,
        "faker",
        "Sample Data (Faker)",
        "airbyte-source-faker",
    ),
    (
        "778daa7c-feaf-4db6-96f3-70fd645acc77",
        Side::Source,
        "file",
        "File (CSV, JSON, Excel, Feather, Parquet)",
        "airbyte-source-file",
    ),
    (
        "00000000-0000-4000-8000-0000000000a1",
        Side::Source,
        "hardcoded-records",
        "Hardcoded Records",
        "airbyte-source-hardcoded-records",
    ),
];

/// The definitions that are there from the start.
pub(crate) fn built_in(now_ms: u64) -> impl Iterator<Item = Definition> {
    BUILT_IN.into_iter().map(move |(id, actor_type, connector_type, name, package)| Definition {
        definition_id: id.to_owned(),
        actor_type,
        connector_type: connector_type.to_owned(),
        name: name.to_owned(),
        workspace_id: String::new(),
        builtin: true,
        documentation_url: None,
        docker_repository: package.replacen('-', "/", 1),
        docker_image_tag: "latest".to_owned(),
        launch: Launch::Python { package: package.to_owned(), version: None, program: None },
        spec: None,
        spec_at: None,
        created_at: now_ms,
        updated_at: now_ms,
        rest: Map::new(),
    })
}

/// What a definition is made of, or changed to. `launch` and `type` are ours.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    name: Option<String>,
    docker_repository: Option<String>,
    docker_image_tag: Option<String>,
    documentation_url: Option<String>,
    #[serde(rename = "type")]
    connector_type: Option<String>,
    launch: Option<Launch>,
}

/// Parts of the path.
#[derive(Deserialize)]
struct Place {
    workspace: String,
    side: String,
}

/// The same, of one definition.
#[derive(Deserialize)]
struct OnePlace {
    workspace: String,
    side: String,
    id: String,
}

fn side(name: &str) -> Answered<Side> {
    match name {
        "sources" => Ok(Side::Source),
        "destinations" => Ok(Side::Destination),
        _ => Err(Failure::no_such_path(&format!("/definitions/{name}"))),
    }
}

fn shown(definition: &Definition) -> Value {
    let mut shown = json!({
        "id": definition.definition_id,
        "name": definition.name,
        "dockerRepository": definition.docker_repository,
        "dockerImageTag": definition.docker_image_tag,
        "type": definition.connector_type,
        "launch": definition.launch,
    });
    if let (Some(url), Some(fields)) = (&definition.documentation_url, shown.as_object_mut()) {
        fields.insert("documentationUrl".to_owned(), url.clone().into());
    }
    // What a program gets in its environment may be secret.
    if let Some(Value::Object(environment)) = shown.pointer_mut("/launch/environment") {
        environment.values_mut().for_each(|value| *value = crate::vault::MASK.into());
    }
    shown
}

impl Definition {
    /// Whether a workspace may use it.
    fn is_for(&self, workspace: &str) -> bool {
        self.workspace_id.is_empty() || self.workspace_id == workspace
    }
}

/// The definition that a new source or destination names by id, or else by its type. One of the
/// workspace counts more than one of all.
pub(crate) async fn resolved(
    face: &Face,
    tenant: &str,
    side: Side,
    workspace: &str,
    (id, connector_type): (Option<&str>, Option<&str>),
) -> Answered<Definition> {
    if let Some(id) = id {
        return named(face, tenant, side, workspace, id).await.map(|found| found.is);
    }
    let field = side.type_field();
    let Some(connector_type) = connector_type else {
        let detail = format!("Either definitionId or configuration.{field} is required.");
        return Err(Failure::invalid(detail));
    };
    let short = short_type(side, connector_type);
    let all = face.all::<Definition>(tenant).await?;
    let fits = all.into_iter().map(|found| found.is).filter(|definition| {
        definition.actor_type == side
            && definition.is_for(workspace)
            && definition.connector_type == short
    });
    fits.max_by_key(|definition| (!definition.workspace_id.is_empty(), definition.created_at))
        .ok_or_else(|| {
            Failure::invalid(format!(
                "No {} has the type {connector_type}; define it first, under definitions.",
                side.definition()
            ))
        })
}

/// `source-faker` is called `faker`.
pub(crate) fn short_type(side: Side, connector_type: &str) -> String {
    let name = connector_type.to_lowercase();
    name.strip_prefix(&format!("{}-", side.name())).unwrap_or(&name).to_owned()
}

async fn named(
    face: &Face,
    tenant: &str,
    side: Side,
    workspace: &str,
    id: &str,
) -> Answered<Found<Definition>> {
    let found = face.read::<Definition>(tenant, id).await?;
    let found = found.filter(|found| found.is.actor_type == side && found.is.is_for(workspace));
    found.ok_or_else(|| Failure::not_found(side.definition(), id))
}

async fn list(
    State(face): State<Face>,
    caller: Caller,
    At(place): At<Place>,
    params: Params,
    page: Page,
) -> Answered<Shown<Value>> {
    let side = side(&place.side)?;
    face.find::<Workspace>(&caller.tenant, &place.workspace).await?;
    let name = params.find("name").map(str::to_lowercase);
    let mut found = face.all::<Definition>(&caller.tenant).await?;
    found.retain(|found| {
        let matches = |name: &String| found.is.name.to_lowercase().contains(name.as_str());
        found.is.actor_type == side
            && found.is.is_for(&place.workspace)
            && name.as_ref().is_none_or(matches)
    });
    Ok(listed(found, &page, |found| shown(&found.is)))
}

async fn create(
    State(face): State<Face>,
    caller: Caller,
    At(place): At<Place>,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let side = side(&place.side)?;
    face.find::<Workspace>(&caller.tenant, &place.workspace).await?;
    let name = given.name.as_deref();
    let name = checked_name(name.ok_or_else(|| Failure::missing("name"))?)?;
    let repository = given.docker_repository.unwrap_or_default();
    let tag = given.docker_image_tag.unwrap_or_default();
    let launch = given.launch.map(|launch| unmasked(launch, None)).transpose()?;
    let launch = launch_of(launch, &repository, &tag)?;
    let last = repository.rsplit('/').next().filter(|last| !last.is_empty());
    let from_name = name.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-");
    let connector_type = given.connector_type.as_deref().or(last).unwrap_or(&from_name);
    let now_ms = face.now_ms().await?;
    let definition = Definition {
        definition_id: face.new_id()?,
        actor_type: side,
        connector_type: short_type(side, connector_type),
        name,
        workspace_id: place.workspace,
        builtin: false,
        documentation_url: given.documentation_url,
        docker_repository: repository,
        docker_image_tag: tag,
        launch,
        spec: None,
        spec_at: None,
        created_at: now_ms,
        updated_at: now_ms,
        rest: Map::new(),
    };
    face.make(&caller.tenant, &definition).await?;
    // The definition is made whatever becomes of this: whoever uses it asks again.
    let _late = job::ask_for_spec(&face, &caller.tenant, &definition).await;
    Ok(Shown(shown(&definition)))
}

fn launch_of(given: Option<Launch>, repository: &str, tag: &str) -> Answered<Launch> {
    let launch = match given {
        Some(launch) => launch,
        None if repository.is_empty() || tag.is_empty() => {
            let detail = "dockerRepository and dockerImageTag are required, or launch.";
            return Err(Failure::invalid(detail));
        }
        None => Launch::of_image(format!("{repository}:{tag}")),
    };
    let empty = match &launch {
        Launch::Command { command, .. } => command.first().is_none_or(String::is_empty),
        Launch::Python { package, .. } => package.is_empty(),
        Launch::Docker { image, .. } => image.is_empty(),
    };
    if empty {
        Err(Failure::invalid("launch says nothing that can be started."))
    } else {
        Ok(launch)
    }
}

/// A launch as a client gave it, with what was kept before where it sent the mask back.
fn unmasked(mut launch: Launch, before: Option<&Launch>) -> Answered<Launch> {
    let before = before.and_then(Launch::environment);
    for (name, text) in launch.environment_mut().into_iter().flatten() {
        let kept = before.and_then(|before| before.get(name)).map(|kept| json!(kept));
        let mut value = json!(text);
        secret::unmasked(&mut value, kept.as_ref(), &format!("launch.environment.{name}"))?;
        if let Value::String(kept) = value {
            *text = kept;
        }
    }
    Ok(launch)
}

async fn show(
    State(face): State<Face>,
    caller: Caller,
    At(place): At<OnePlace>,
) -> Answered<Shown<Value>> {
    let side = side(&place.side)?;
    let found = named(&face, &caller.tenant, side, &place.workspace, &place.id).await?;
    Ok(Shown(shown(&found.is)))
}

/// What the old connector said of itself counts until a new one has said it.
async fn update(
    State(face): State<Face>,
    caller: Caller,
    At(place): At<OnePlace>,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let side = side(&place.side)?;
    let tenant = &caller.tenant;
    named(&face, tenant, side, &place.workspace, &place.id).await?;
    let name = given.name.as_deref().map(checked_name).transpose()?;
    let changed = face
        .change(tenant, &place.id, |definition: &mut Definition| {
            let launch = definition.launch.clone();
            if let Some(name) = &name {
                definition.name.clone_from(name);
            }
            if let Some(launch) = given.launch.clone() {
                let before = Some(&definition.launch);
                definition.launch = launch_of(Some(unmasked(launch, before)?), "", "")?;
            }
            // Behind the launch: who reads a definition and changes its tag sends the old image too.
            if let Some(tag) = &given.docker_image_tag {
                retag(definition, tag)?;
            }
            if given.documentation_url.is_some() {
                definition.documentation_url.clone_from(&given.documentation_url);
            }
            if definition.launch != launch {
                definition.spec_at = None;
            }
            Ok(())
        })
        .await?;
    // Also when somebody was asked already: that answer is about what was changed now.
    if changed.spec_at.is_none() {
        job::ask_for_spec(&face, tenant, &changed).await?;
    }
    Ok(Shown(shown(&changed)))
}

/// Gives a definition another tag, and its image with it.
fn retag(definition: &mut Definition, tag: &str) -> Answered<()> {
    if tag == definition.docker_image_tag {
        return Ok(());
    }
    if let Launch::Docker { image, .. } = &mut definition.launch {
        if definition.docker_repository.is_empty() || tag.is_empty() {
            return Err(Failure::invalid(
                "A dockerImageTag needs a dockerRepository to belong to, and must not be empty.",
            ));
        }
        *image = format!("{}:{tag}", definition.docker_repository);
    }
    tag.clone_into(&mut definition.docker_image_tag);
    Ok(())
}

/// Answers with what it was, as the original does.
async fn remove(
    State(face): State<Face>,
    caller: Caller,
    At(place): At<OnePlace>,
) -> Answered<Shown<Value>> {
    let (side, tenant) = (side(&place.side)?, &caller.tenant);
    let found = named(&face, tenant, side, &place.workspace, &place.id).await?;
    if found.is.builtin {
        return Err(Failure::conflict("A definition that is built in cannot be deleted."));
    }
    let is_used = match side {
        Side::Source => is_used_by::<Source>(&face, tenant, &place.id).await?,
        Side::Destination => is_used_by::<Destination>(&face, tenant, &place.id).await?,
    };
    if is_used {
        return Err(Failure::conflict(format!("The definition is used by a {}.", side.name())));
    }
    face.delete(tenant, Definition::KIND, &[place.id.into()]).await?;
    Ok(Shown(shown(&found.is)))
}

async fn is_used_by<T: Acting>(face: &Face, tenant: &str, id: &str) -> Answered<bool> {
    let all = face.all::<T>(tenant).await?;
    Ok(all.iter().any(|found| found.is.actor().definition_id == id))
}
