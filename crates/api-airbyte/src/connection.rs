//! Connections: what goes where, how, and when.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::answer::{NoContent, Shown, paged};
use crate::document::{
    ATTEMPT, Catalog, Configurations, Connection, Destination, Kept, NamespaceDefinition, STATE,
    SchemaUpdates, Source, Status, Stream, SyncMode, TimeUnit, Timing,
};
use crate::extract::{At, Object, Page, Params, checked_name};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::job::ask_to_end;
use crate::job_list;
use crate::limit::{CANCEL_WAIT_MAX, CONNECTIONS_MAX, CRON_BYTES_MAX, DOCUMENTS_MAX};
use crate::timing;
use crate::token::Caller;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/connections", get(list).post(create))
        .route("/connections/{id}", get(show).patch(patch).delete(delete))
}

/// What a connection is made of, or changed to.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    name: Option<String>,
    source_id: Option<String>,
    destination_id: Option<String>,
    status: Option<Status>,
    schedule: Option<GivenTiming>,
    configurations: Option<Configurations>,
    namespace_definition: Option<NamespaceDefinition>,
    namespace_format: Option<String>,
    prefix: Option<String>,
    non_breaking_schema_updates_behavior: Option<SchemaUpdates>,
    data_residency: Option<String>,
    tags: Option<Vec<Value>>,
}

/// A schedule as clients write it. `basic`, with its units, is for our own command line: the original
/// shows it and does not take it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenTiming {
    schedule_type: String,
    cron_expression: Option<String>,
    units: Option<u64>,
    time_unit: Option<TimeUnit>,
}

impl GivenTiming {
    fn timing(&self) -> Answered<Timing> {
        match (self.schedule_type.as_str(), &self.cron_expression, self.units, self.time_unit) {
            ("manual", ..) => Ok(Timing::Manual),
            ("cron", Some(expression), ..) if expression.len() > CRON_BYTES_MAX => {
                let detail = format!("The cronExpression is over {CRON_BYTES_MAX} bytes.");
                Err(Failure::invalid(detail))
            }
            ("cron", Some(expression), ..) if !expression.trim().is_empty() => {
                Ok(Timing::Cron { cron_expression: expression.trim().to_owned() })
            }
            ("cron", ..) => Err(Failure::invalid("A cron schedule needs a cronExpression.")),
            ("basic", _, Some(units), Some(time_unit)) => Ok(Timing::Basic { units, time_unit }),
            ("basic", ..) => Err(Failure::invalid("A basic schedule needs units and timeUnit.")),
            (other, ..) => {
                let detail = format!("The scheduleType must be manual or cron, not {other}.");
                Err(Failure::invalid(detail))
            }
        }
    }
}

impl TimeUnit {
    fn name(self) -> &'static str {
        match self {
            TimeUnit::Minutes => "MINUTES",
            TimeUnit::Hours => "HOURS",
            TimeUnit::Days => "DAYS",
            TimeUnit::Weeks => "WEEKS",
            TimeUnit::Months => "MONTHS",
        }
    }
}

impl Given {
    fn put_over(&self, connection: &mut Connection) -> Answered<()> {
        if let Some(name) = &self.name {
            connection.name = checked_name(name)?;
        }
        if let Some(schedule) = &self.schedule {
            connection.schedule = schedule.timing()?;
        }
        if let Some(configurations) = &self.configurations {
            connection.configurations = configurations.clone();
        }
        connection.status = self.status.unwrap_or(connection.status);
        if let Some(definition) = self.namespace_definition {
            connection.namespace_definition = definition;
        }
        if let Some(updates) = self.non_breaking_schema_updates_behavior {
            connection.non_breaking_schema_updates_behavior = updates;
        }
        if let Some(prefix) = &self.prefix {
            connection.prefix.clone_from(prefix);
        }
        for (given, kept) in [
            (&self.namespace_format, &mut connection.namespace_format),
            (&self.data_residency, &mut connection.data_residency),
        ] {
            if given.is_some() {
                kept.clone_from(given);
            }
        }
        if let Some(tags) = &self.tags {
            connection.tags.clone_from(tags);
        }
        check(connection)
    }
}

/// Refuses what no sync could do.
fn check(connection: &Connection) -> Answered<()> {
    if connection.namespace_definition == NamespaceDefinition::CustomFormat
        && connection.namespace_format.is_none()
    {
        return Err(Failure::invalid("A custom_format needs a namespaceFormat."));
    }
    let mut names = std::collections::HashSet::new();
    for stream in &connection.configurations.streams {
        if stream.name.is_empty() {
            return Err(Failure::invalid("A stream has no name."));
        }
        if !names.insert((&stream.name, stream.namespace.as_deref().unwrap_or_default())) {
            let detail = format!("The stream {} is configured twice.", stream.name);
            return Err(Failure::invalid(detail));
        }
    }
    Ok(())
}

/// As clients see it.
fn shown(connection: &Connection, catalog: Option<&Value>) -> Value {
    let schedule = match &connection.schedule {
        Timing::Manual => json!({ "scheduleType": "manual" }),
        Timing::Cron { cron_expression } => {
            json!({ "scheduleType": "cron", "cronExpression": cron_expression })
        }
        Timing::Basic { units, time_unit } => {
            json!({ "scheduleType": "basic", "basicTiming": format!("Every {units} {}", time_unit.name()) })
        }
    };
    let streams = if connection.configurations.streams.is_empty() {
        catalog.map(all_streams).unwrap_or_default()
    } else {
        connection.configurations.streams.iter().map(shown_stream).collect()
    };
    let mut shown = json!({
        "connectionId": connection.connection_id,
        "name": connection.name,
        "sourceId": connection.source_id,
        "destinationId": connection.destination_id,
        "workspaceId": connection.workspace_id,
        "status": connection.status,
        "schedule": schedule,
        "dataResidency": connection.data_residency.as_deref().unwrap_or("auto"),
        "configurations": { "streams": streams },
        "namespaceDefinition": connection.namespace_definition,
        "nonBreakingSchemaUpdatesBehavior": connection.non_breaking_schema_updates_behavior,
        "prefix": connection.prefix,
        "createdAt": connection.created_at / 1_000,
        "tags": connection.tags,
    });
    if let (Some(format), Some(fields)) = (&connection.namespace_format, shown.as_object_mut()) {
        fields.insert("namespaceFormat".to_owned(), format.clone().into());
    }
    shown
}

fn shown_stream(stream: &Stream) -> Value {
    let mut stream = stream.clone();
    stream.sync_mode.get_or_insert(SyncMode::FullRefreshOverwrite);
    stream.cursor_field.get_or_insert_default();
    stream.primary_key.get_or_insert_default();
    stream.selected_fields.get_or_insert_default();
    stream.mappers.get_or_insert_default();
    json!(stream)
}

/// What is synced when nobody said which streams.
fn all_streams(catalog: &Value) -> Vec<Value> {
    let streams = catalog.get("streams").and_then(Value::as_array).into_iter().flatten();
    let stream = |stream: &Value| {
        let text = |name: &str| stream.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, namespace) = (text("name")?, text("namespace"));
        Some(shown_stream(&Stream { name, namespace, ..Stream::default() }))
    };
    streams.filter_map(stream).collect()
}

/// The same, with what the source last showed where that is needed.
async fn shown_of(face: &Face, tenant: &str, connection: &Connection) -> Answered<Value> {
    if !connection.configurations.streams.is_empty() {
        return Ok(shown(connection, None));
    }
    let kept = face.read::<Catalog>(tenant, &connection.source_id).await?;
    Ok(shown(connection, kept.map(|kept| kept.is.catalog).as_ref()))
}

async fn create(
    State(face): State<Face>,
    caller: Caller,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let tenant = &caller.tenant;
    let source = given.source_id.as_deref().ok_or_else(|| Failure::missing("sourceId"))?;
    let destination =
        given.destination_id.as_deref().ok_or_else(|| Failure::missing("destinationId"))?;
    let source = face.find::<Source>(tenant, source).await?.is;
    let destination = face.find::<Destination>(tenant, destination).await?.is;
    if source.workspace() != destination.workspace() {
        let detail = "The source and the destination must be in the same workspace.";
        return Err(Failure::invalid(detail));
    }
    let now_ms = face.now_ms().await?;
    let mut connection = Connection {
        connection_id: face.new_id()?,
        name: format!("{} → {}", source.name(), destination.name()),
        workspace_id: source.workspace().to_owned(),
        created_at: now_ms,
        updated_at: now_ms,
        source_id: source.source_id,
        destination_id: destination.destination_id,
        ..Connection::default()
    };
    given.put_over(&mut connection)?;
    check_streams(&face, tenant, &connection).await?;
    timing::check(&face, &connection.schedule).await?;
    // Some that are made at once may get past it.
    let known = face.ids(tenant, Connection::KIND, "", CONNECTIONS_MAX).await?;
    if known.len() >= CONNECTIONS_MAX {
        let detail = format!("There are {CONNECTIONS_MAX} connections, and may be no more.");
        return Err(Failure::unprocessable(detail));
    }
    face.make(tenant, &connection).await?;
    if let Err(failure) = timing::put(&face, tenant, &connection.connection_id).await {
        // Who hears of a failure makes it again. What stays all the same gets its schedule at the next start.
        let _left = remove(&face, tenant, std::slice::from_ref(&connection.connection_id)).await;
        return Err(failure);
    }
    Ok(Shown(shown_of(&face, tenant, &connection).await?))
}

/// Refuses streams that the source does not have, if it has shown what it has.
async fn check_streams(face: &Face, tenant: &str, connection: &Connection) -> Answered<()> {
    let Some(kept) = face.read::<Catalog>(tenant, &connection.source_id).await? else {
        return Ok(());
    };
    let known = kept.is.catalog.get("streams").and_then(Value::as_array);
    let Some(known) = known else { return Ok(()) };
    for stream in &connection.configurations.streams {
        let is_it = |known: &Value| {
            let text = |name: &str| known.get(name).and_then(Value::as_str).unwrap_or_default();
            let namespace = stream.namespace.as_deref();
            text("name") == stream.name
                && namespace.is_none_or(|namespace| namespace == text("namespace"))
        };
        if !known.iter().any(is_it) {
            let detail = format!("The source has no stream {}.", stream.name);
            return Err(Failure::invalid(detail));
        }
    }
    Ok(())
}

async fn list(
    State(face): State<Face>,
    caller: Caller,
    params: Params,
    page: Page,
) -> Answered<Shown<Value>> {
    let tags = params.all("tagIds");
    let mut found = face.wanted::<Connection>(&caller.tenant, &params).await?;
    found.retain(|found| {
        let has_tag = |tag: &Value| {
            tag.get("tagId").and_then(Value::as_str).is_some_and(|id| tags.contains(&id))
        };
        tags.is_empty() || found.is.tags.iter().any(has_tag)
    });
    let (found, more) = page.part(found);
    let mut data = Vec::new();
    for found in found {
        data.push(shown_of(&face, &caller.tenant, &found.is).await?);
    }
    Ok(paged(data, more, &page))
}

async fn show(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<Shown<Value>> {
    let found = face.find::<Connection>(&caller.tenant, &id).await?;
    Ok(Shown(shown_of(&face, &caller.tenant, &found.is).await?))
}

async fn patch(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let tenant = &caller.tenant;
    // All that can be refused is refused before anything is written.
    let mut preview = face.find::<Connection>(tenant, &id).await?.is;
    given.put_over(&mut preview)?;
    if given.configurations.is_some() {
        check_streams(&face, tenant, &preview).await?;
    }
    if given.schedule.is_some() {
        timing::check(&face, &preview.schedule).await?;
    }
    let changed =
        face.change(tenant, &id, |connection: &mut Connection| given.put_over(connection)).await?;
    timing::put(&face, tenant, &changed.connection_id).await?;
    Ok(Shown(shown_of(&face, tenant, &changed).await?))
}

async fn delete(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<NoContent> {
    face.find::<Connection>(&caller.tenant, &id).await?;
    remove(&face, &caller.tenant, &[id]).await?;
    Ok(NoContent)
}

/// Takes connections away: nothing is started any more, their jobs are cancelled, all at once. What a job that
/// does not end soon still writes is swept away later, so that it can end in good order.
pub(crate) async fn remove(face: &Face, tenant: &str, connections: &[String]) -> Answered<()> {
    let mut ending = Vec::new();
    for id in connections {
        // In this order: who writes a schedule looks for its connection afterwards.
        face.delete(tenant, Connection::KIND, &[id.as_str().into()]).await?;
        timing::delete(face, tenant, id).await?;
        let live = job_list::live(face, tenant, id).await?;
        if let Some(job) = &live {
            // It may have ended meanwhile.
            let _ended = ask_to_end(face, job.key, "its connection was deleted").await;
        }
        ending.push((id, live.map(|job| job.key)));
    }
    let until = Instant::now() + CANCEL_WAIT_MAX;
    for (id, job) in ending {
        let has_ended = match job {
            Some(job) => face.job_ended(job, until).await?.is_some(),
            None => true,
        };
        if has_ended {
            forget(face, tenant, id).await?;
        }
    }
    Ok(())
}

/// Removes what the runner wrote about a connection that is gone.
pub(crate) async fn forget(face: &Face, tenant: &str, connection: &str) -> Answered<()> {
    face.delete(tenant, STATE, &[connection.into()]).await?;
    let attempts = face.ids(tenant, ATTEMPT, &format!("{connection}."), DOCUMENTS_MAX).await?;
    face.delete(tenant, ATTEMPT, &attempts).await
}
