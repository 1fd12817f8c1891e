//! Which streams a source has, from what it last showed or by asking it.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use windlass_gateway::request::JobView;

use crate::answer::Shown;
use crate::document::{Catalog, Definition, Destination, Source};
use crate::extract::Params;
use crate::face::{Face, Found};
use crate::failure::{Answered, Failure};
use crate::job;
use crate::job::{JobStatus, Made};
use crate::limit::DISCOVER_WAIT_MAX;
use crate::token::Caller;

pub(crate) fn routes() -> Router<Face> {
    Router::new().route("/streams", get(list))
}

/// How a stream can be read and written: the mode, what the source must be able to, what the destination.
const MODES: [(&str, &str, &str); 9] = [
    ("full_refresh_append", "full_refresh", "append"),
    ("full_refresh_overwrite", "full_refresh", "overwrite"),
    ("full_refresh_overwrite_deduped", "full_refresh", "append_dedup"),
    ("full_refresh_update", "full_refresh", "update"),
    ("full_refresh_soft_delete", "full_refresh", "soft_delete"),
    ("incremental_append", "incremental", "append"),
    ("incremental_deduped_history", "incremental", "append_dedup"),
    ("incremental_update", "incremental", "update"),
    ("incremental_soft_delete", "incremental", "soft_delete"),
];

/// What a destination is taken to understand that has not said.
const UNTOLD: [&str; 3] = ["append", "overwrite", "append_dedup"];

/// How deep fields of a schema are listed.
const FIELD_DEPTH_MAX: usize = 10;

/// Fields of one stream that are listed.
const FIELDS_MAX: usize = 10_000;

async fn list(State(face): State<Face>, caller: Caller, params: Params) -> Answered<Shown<Value>> {
    let tenant = &caller.tenant;
    let source = face.find::<Source>(tenant, params.required("sourceId")?).await?;
    let written = match params.find("destinationId") {
        Some(id) => written_modes(&face, tenant, id).await?,
        None => UNTOLD.map(str::to_owned).to_vec(),
    };
    let catalog = catalog(&face, tenant, &source, params.flag("ignoreCache")?).await?;
    let streams = catalog.get("streams").and_then(Value::as_array);
    let streams = streams.into_iter().flatten();
    Ok(Shown(streams.map(|stream| properties(stream, &written)).collect()))
}

/// The modes that a destination's connector says it understands.
async fn written_modes(face: &Face, tenant: &str, id: &str) -> Answered<Vec<String>> {
    let destination = face.find::<Destination>(tenant, id).await?.is;
    let definition = face.read::<Definition>(tenant, &destination.actor.definition_id).await?;
    let spec = definition.and_then(|found| found.is.spec).unwrap_or_default();
    let said = spec.get("supported_destination_sync_modes").and_then(Value::as_array);
    let said: Vec<String> =
        said.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(if said.is_empty() { UNTOLD.map(str::to_owned).to_vec() } else { said })
}

/// What the source shows. What it showed under another configuration does not count.
async fn catalog(
    face: &Face,
    tenant: &str,
    source: &Found<Source>,
    ignore_cache: bool,
) -> Answered<Value> {
    let id = &source.is.source_id;
    if !ignore_cache && let Some(kept) = kept(face, tenant, source).await? {
        return Ok(kept.catalog);
    }
    let until = Instant::now() + DISCOVER_WAIT_MAX;
    let kept = asked(face, tenant, source, ignore_cache, until).await?;
    // Who was asking already may have begun before the configuration changed. Not more often: one that
    // connectors themselves change is never that which was asked about.
    let source = face.find::<Source>(tenant, id).await?;
    if kept.configuration_version == source.version {
        return Ok(kept.catalog);
    }
    Ok(asked(face, tenant, &source, ignore_cache, until).await?.catalog)
}

/// What the source showed last, if that was under this configuration.
async fn kept(face: &Face, tenant: &str, source: &Found<Source>) -> Answered<Option<Catalog>> {
    let kept = face.read::<Catalog>(tenant, &source.is.source_id).await?.map(|kept| kept.is);
    Ok(kept.filter(|kept| kept.configuration_version == source.version))
}

/// What the source shows when it is asked.
async fn asked(
    face: &Face,
    tenant: &str,
    source: &Found<Source>,
    ignore_cache: bool,
    until: Instant,
) -> Answered<Catalog> {
    let (id, workspace) = (&source.is.source_id, &source.is.actor.workspace_id);
    let ended = loop {
        let (job, is_ours) = match job::ask_for_streams(face, tenant, workspace, id).await? {
            Made::New(job) => (job, true),
            Made::Held(job) => (job, false),
        };
        // Another's job may have ended since we looked; then nobody waits for this one.
        if is_ours
            && !ignore_cache
            && let Some(kept) = kept(face, tenant, source).await?
        {
            let _taken_already = job::ask_to_end(face, job, "the source was just asked").await;
            return Ok(kept);
        }
        let Some(ended) = face.job_ended(job, until).await? else {
            let detail = "The source has not shown its streams yet; it is still being asked.";
            return Err(Failure::new(StatusCode::GATEWAY_TIMEOUT, "try-again-later", detail));
        };
        // Whoever made it may not have needed it.
        if is_ours || JobStatus::of(&ended) != JobStatus::Cancelled {
            break ended;
        }
    };
    if JobStatus::of(&ended) != JobStatus::Succeeded {
        return Err(not_shown(&ended));
    }
    let kept = face.read::<Catalog>(tenant, id).await?;
    let missing = || Failure::internal("the source was asked for its streams, and none were kept");
    Ok(kept.ok_or_else(missing)?.is)
}

fn not_shown(job: &JobView) -> Failure {
    let message = if job.message.is_empty() { "nobody said why" } else { &*job.message };
    Failure::unprocessable(format!("The source could not be asked for its streams: {message}"))
}

/// A stream as clients see it.
fn properties(stream: &Value, written: &[String]) -> Value {
    let read = stream.get("supported_sync_modes").and_then(Value::as_array);
    let read: Vec<&str> = read.into_iter().flatten().filter_map(Value::as_str).collect();
    let modes = MODES.iter().filter(|(_, from, to)| {
        let read = read.contains(from) || (read.is_empty() && *from == "full_refresh");
        read && written.iter().any(|mode| mode == to)
    });
    let modes: Vec<&str> = modes.map(|(name, _, _)| *name).collect();
    let mut fields = Vec::new();
    if let Some(schema) = stream.get("json_schema") {
        list_fields(schema, &mut Vec::new(), &mut fields);
    }
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            shown.insert(name.to_owned(), value);
        }
    };
    let of = |name: &str| stream.get(name).cloned().unwrap_or_default();
    put("streamName", of("name"));
    put("streamnamespace", of("namespace"));
    put("syncModes", json!(modes));
    put("defaultCursorField", or_empty(of("default_cursor_field")));
    put("sourceDefinedCursorField", or_false(of("source_defined_cursor")));
    put("sourceDefinedPrimaryKey", or_empty(of("source_defined_primary_key")));
    put("propertyFields", json!(fields));
    Value::Object(shown)
}

fn or_empty(value: Value) -> Value {
    if value.is_null() { json!([]) } else { value }
}

fn or_false(value: Value) -> Value {
    if value.is_null() { Value::Bool(false) } else { value }
}

/// Paths of all fields, those that have fields of their own before these.
fn list_fields(schema: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    if path.len() >= FIELD_DEPTH_MAX {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        if out.len() >= FIELDS_MAX {
            return;
        }
        path.push(name.clone());
        out.push(path.clone());
        list_fields(field, path, out);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_the_modes_that_both_ends_have() {
        let stream = json!({
            "name": "users", "supported_sync_modes": ["full_refresh", "incremental"],
            "source_defined_primary_key": [["id"]],
            "json_schema": { "properties": { "id": {}, "a": { "properties": { "b": {} } } } },
        });
        let shown = properties(&stream, &["append".to_owned(), "append_dedup".to_owned()]);
        let modes = json!([
            "full_refresh_append",
            "full_refresh_overwrite_deduped",
            "incremental_append",
            "incremental_deduped_history",
        ]);
        assert_eq!(shown["syncModes"], modes);
        assert_eq!(shown["propertyFields"], json!([["id"], ["a"], ["a", "b"]]));
        assert_eq!(shown["sourceDefinedPrimaryKey"], json!([["id"]]));
        assert_eq!(shown["defaultCursorField"], json!([]));
        assert_eq!(shown.get("streamnamespace"), None);
    }
}
