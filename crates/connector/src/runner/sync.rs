//! An attempt of a sync or a clear, made of documents.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_worker::Error;

use crate::attempt::generation::{self, Generations, Purpose};
use crate::attempt::{Attempt, Begun, Connector, Steps, run};
use crate::docker::Image;
use crate::failure::{Failure, FailureType, Origin};
use crate::observer::{Level, Observer as _};
use crate::package::Wanted;
use crate::process::{Command, Helper, Program, Side};
use crate::protocol::catalog::{Catalog, Mapping, NamespaceRule};
use crate::protocol::message::Descriptor;
use crate::runner::folder::{Folder, Found, Marker, Outcome, Spec, Spooled};
use crate::runner::log::Log;
use crate::runner::secrets::{Keeper, Secrets, differing};
use crate::runner::spool::{Home, Spool};
use crate::runner::store::{self, Document, Store};
use crate::{Cancel, Limits, Status};

/// Why an attempt could not be made.
#[derive(Debug)]
pub enum NotMade {
    /// The server did not answer.
    Server(Error),
    /// What it has does not make one.
    Wrong(Box<Failure>),
    /// A connector is to be installed first.
    Missing(Wanted),
}

impl From<Error> for NotMade {
    fn from(error: Error) -> NotMade {
        NotMade::Server(error)
    }
}

fn wrong(message: impl Into<String>) -> NotMade {
    let kind = FailureType::ConfigError;
    NotMade::Wrong(Box::new(Failure::new(Origin::AirbytePlatform, kind, message)))
}

/// A source or destination, ready to be started.
#[derive(Debug, Clone)]
pub struct Actor {
    /// Its document.
    pub document: Document,
    /// Where that is.
    pub home: Home,
    /// Its connector, secrets included.
    pub connector: Connector,
    /// Texts that no log may have.
    pub secrets: Vec<String>,
}

impl Actor {
    /// Reads a source or destination, and opens its secrets.
    ///
    /// # Errors
    /// If it is not there, or cannot be started as it is.
    pub async fn load(
        store: &Store,
        spec: &Spec,
        secrets: &dyn Secrets,
        side: Side,
        id: &str,
    ) -> Result<Actor, NotMade> {
        let (kind, _) = store::actor(side);
        let document = store.get(kind, id).await?;
        if document.version == 0 {
            return Err(wrong(format!("there is no {} {id}", side.name())));
        }
        let definition = store.get(store::DEFINITION, document.text("definitionId")).await?;
        let command = command(spec, &definition)?;
        let sealed = document.value.get("configuration").cloned().unwrap_or_else(|| json!({}));
        let mut config = sealed.clone();
        let opened = secrets.open(&store.scope(kind, id), &mut config);
        opened.map_err(|why| {
            wrong(format!("the secrets of the {} are closed: {why}", side.name()))
        })?;
        let specification = definition.value.pointer("/spec/connectionSpecification").cloned();
        let home = Home { kind, id: id.to_owned(), specification };
        let mut found = differing(&sealed, &config);
        let values = command.environment.iter().flat_map(|(_, value)| value.lines());
        found.extend(values.map(str::to_owned));
        Ok(Actor { document, home, connector: Connector { command, config }, secrets: found })
    }
}

/// The last commit of an attempt that ended while the server was away for longer than its lease: it is in
/// its folder only, and follows the state that the server has.
fn left_over(spec: &Spec, state: &Document) -> Option<(Spec, Spooled)> {
    let (prefix, own) = (format!("{}.", spec.subject()), spec.name());
    let folders = std::fs::read_dir(Folder::root(&spec.data)).ok()?;
    let left = folders.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name();
        name.to_str().filter(|name| name.starts_with(&prefix) && **name != *own)?;
        let (folder, earlier) = Folder::open(&entry.path()).ok()?;
        let spooled = folder.spooled().ok()??;
        store::is_next(&earlier, &spooled, state).then_some((earlier, spooled))
    });
    left.max_by_key(|(_, spooled)| spooled.sequence)
}

/// How the connector of a definition is started.
///
/// # Errors
/// If nothing here can start it.
pub fn command(spec: &Spec, definition: &Document) -> Result<Command, NotMade> {
    let launch = definition.value.get("launch").cloned().unwrap_or_default();
    let text = |field: &str| launch.get(field).and_then(Value::as_str).unwrap_or_default();
    let environment = launch.get("environment").and_then(Value::as_object);
    let environment = environment
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    match text("kind") {
        "command" => {
            let words = launch.get("command").and_then(Value::as_array);
            let words: Vec<String> = words
                .into_iter()
                .flatten()
                .filter_map(|it| Some(it.as_str()?.to_owned()))
                .collect();
            if words.is_empty() {
                return Err(wrong("the connector's definition has an empty command"));
            }
            let directory = Some(text("directory")).filter(|it| !it.is_empty());
            let program = Program::Local { words, directory: directory.map(PathBuf::from) };
            Ok(Command { program, environment })
        }
        "python" => {
            let [version, program] = ["version", "program"]
                .map(|field| Some(text(field)).filter(|text| !text.is_empty()));
            let wanted = Wanted::new(text("package"), version, program);
            let wanted = wanted.map_err(|error| wrong(error.to_string()))?;
            let Some(words) = wanted.installed(&spec.data) else {
                return Err(NotMade::Missing(wanted));
            };
            let program = Program::Local { words, directory: None };
            Ok(Command { program, environment })
        }
        "docker" => {
            let image: Result<Image, _> = serde_json::from_value(launch.clone());
            let image = image.map_err(|error| wrong(format!("the image is strange: {error}")))?;
            let image = image.checked().map_err(|error| wrong(error.to_string()))?;
            Ok(Command { program: Program::Image(image), environment })
        }
        kind => Err(wrong(format!("a connector cannot be started as '{kind}' here"))),
    }
}

/// Everything that an attempt of a sync is made of.
pub struct Sync {
    connection: Document,
    source: Option<Actor>,
    destination: Actor,
    catalog: Document,
    /// With what an attempt before acknowledged and could not send.
    state: Document,
    /// Whose state the server has.
    before: String,
    purpose: Purpose,
    checks: bool,
}

impl Sync {
    /// Reads it.
    ///
    /// # Errors
    /// If the server does not answer, or something is missing.
    pub async fn load(store: &Store, spec: &Spec, secrets: &dyn Secrets) -> Result<Sync, NotMade> {
        let id = spec.text("connectionId");
        let connection = store.get(store::CONNECTION, id).await?;
        if connection.version == 0 {
            return Err(wrong(format!("there is no connection {id}")));
        }
        let purpose = purpose(spec);
        let source_id = connection.text("sourceId");
        let load = |side, id| Actor::load(store, spec, secrets, side, id);
        let source = match purpose {
            Purpose::Clear => None,
            Purpose::Sync | Purpose::Refresh { .. } => Some(load(Side::Source, source_id).await?),
        };
        let destination = load(Side::Destination, connection.text("destinationId")).await?;
        let catalog = store.get(store::CATALOG, source_id).await?;
        let mut state = store.get(store::STATE, id).await?;
        let before = state.text("attempt").to_owned();
        if let Some((earlier, spooled)) = left_over(spec, &state) {
            state.value = store::with_commit(&earlier, &state.value, &spooled);
        }
        let last = store.attempt_before(id, spec.job).await?;
        // Behind a failure it may be the configuration that is wrong.
        let failed = last.is_some_and(|last| last.text("status") != "succeeded");
        let checks = spec.attempt > 1 || failed;
        Ok(Sync { connection, source, destination, catalog, state, before, purpose, checks })
    }

    /// Texts that no log may have.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let source = self.source.as_ref().map(|it| it.secrets.clone()).unwrap_or_default();
        [source, self.destination.secrets.clone()].concat()
    }

    /// Its journal.
    #[must_use]
    pub fn spool(&self, folder: &Folder, spec: &Spec, store: &Store, keeper: Keeper) -> Spool {
        let homes = (self.source.as_ref().map(|it| it.home.clone()), self.destination.home.clone());
        let state = (self.state.clone(), self.before.clone());
        Spool::new(folder.clone(), spec.clone(), store.clone(), keeper, homes, state)
    }

    /// Runs it to its end, on this thread.
    #[must_use]
    pub fn run(
        &self,
        folder: &Folder,
        spec: &Spec,
        helper: Helper,
        (spool, log, cancel): (&Spool, &Log, &Cancel),
    ) -> Outcome {
        let platform = |error: io::Error| {
            let message = "the folder of the attempt cannot be written";
            let failure = Failure::new(Origin::AirbytePlatform, FailureType::SystemError, message);
            failure.internal(error.to_string())
        };
        let work = match folder.work().and_then(|work| folder.mark(Marker::Running).map(|()| work))
        {
            Ok(work) => work,
            Err(error) => return failed(platform(error)),
        };
        // A clear discovers nothing: the catalog is what the source last showed.
        let begun = match self.source {
            Some(_) => Ok(Begun { catalog: json!({ "streams": [] }), state: Vec::new() }),
            None => {
                let known = self.catalog.value.get("catalog").cloned().unwrap_or_default();
                self.begin(spec, &known, spool, log)
            }
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(failure) => return failed(*failure),
        };
        let begin = |discovered: &Value| self.begin(spec, discovered, spool, log);
        let attempt = Attempt {
            name: spec.name(),
            folder: work,
            helper,
            source: self.source.as_ref().map(|it| it.connector.clone()),
            destination: self.destination.connector.clone(),
            catalog: begun.catalog,
            discovered: Some(&begin),
            selected: self.selected(),
            mapping: self.mapping(),
            state: begun.state,
            steps: Steps {
                check_source: self.checks,
                check_destination: self.checks,
                discover: self.source.is_some(),
            },
            limits: limits(spec),
        };
        let mut outcome = outcome(run(attempt, spool, log, cancel));
        if let (Some(found), Some(source)) = (&mut outcome.found, &self.source) {
            found.version = source.document.version;
        }
        outcome
    }

    /// The catalog to sync by, of what was discovered, and the state to start from: both are durable
    /// before anything runs.
    fn begin(
        &self,
        spec: &Spec,
        discovered: &Value,
        spool: &Spool,
        log: &Log,
    ) -> Result<Begun, Box<Failure>> {
        let config = |message: String| {
            Box::new(Failure::new(Origin::AirbytePlatform, FailureType::ConfigError, message))
        };
        let configured = self.configured(spec, discovered, log);
        let read = Catalog::new(&configured, &self.mapping());
        let read = read.map_err(|error| config(error.to_string()))?;
        let mut generations = self.generations();
        let mut state = self.states();
        let is_first = !self.state.text("attempt").starts_with(&format!("{}-", spec.job));
        generation::begin(&self.purpose, is_first, &read, &mut generations, &mut state);
        let catalog = generation::stamp(&self.purpose, &configured, &read, &generations, spec.job);
        let minimum = |stream: &Descriptor| {
            catalog["streams"][read.find(stream)?]["minimum_generation_id"].as_u64()
        };
        let kept = generations.iter().map(|(stream, generation)| {
            (stream.clone(), *generation, minimum(stream).unwrap_or(0))
        });
        let kept = kept.collect();
        spool.begin(state.clone(), kept).map_err(|error| {
            let message = "the beginning of the attempt was not kept";
            let failure = Failure::new(Origin::Persistence, FailureType::SystemError, message);
            Box::new(failure.internal(error.message))
        })?;
        Ok(Begun { catalog, state })
    }

    fn generations(&self) -> Generations {
        let streams = self.state.value.get("streams").and_then(Value::as_array);
        let generation =
            |stream: &Value| Some((descriptor(stream)?, stream.get("generationId")?.as_u64()?));
        streams.into_iter().flatten().filter_map(generation).collect()
    }

    fn states(&self) -> Vec<Arc<str>> {
        let states = self.state.value.get("state").and_then(Value::as_array);
        states.into_iter().flatten().map(|it| Arc::from(it.to_string())).collect()
    }

    fn mapping(&self) -> Mapping {
        let namespace = match self.connection.text("namespaceDefinition") {
            "source" => NamespaceRule::Source,
            "custom_format" => {
                NamespaceRule::Custom(self.connection.text("namespaceFormat").to_owned())
            }
            _ => NamespaceRule::Destination,
        };
        Mapping { namespace, prefix: self.connection.text("prefix").to_owned() }
    }

    fn wanted(&self) -> Option<&Vec<Value>> {
        let streams = self.connection.value.pointer("/configurations/streams")?.as_array()?;
        (!streams.is_empty()).then_some(streams)
    }

    fn selected(&self) -> Vec<(Descriptor, Vec<String>)> {
        let fields = |stream: &Value| {
            let fields = stream.get("selectedFields")?.as_array().filter(|it| !it.is_empty())?;
            let top = |field: &Value| Some(field.pointer("/fieldPath/0")?.as_str()?.to_owned());
            Some((descriptor(stream)?, fields.iter().filter_map(top).collect()))
        };
        self.wanted().into_iter().flatten().filter_map(fields).collect()
    }

    /// The configured catalog: the streams that the connection wants, as the source shows them.
    fn configured(&self, spec: &Spec, discovered: &Value, log: &Log) -> Value {
        let shown: BTreeMap<Descriptor, &Value> = discovered
            .get("streams")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|stream| Some((descriptor(stream)?, stream)))
            .collect();
        let all = json!({});
        let wanted: Vec<(Descriptor, &Value)> = match self.wanted() {
            Some(wanted) => {
                wanted.iter().filter_map(|stream| Some((descriptor(stream)?, stream))).collect()
            }
            None => shown.keys().map(|name| (name.clone(), &all)).collect(),
        };
        let asked = spec.payload.get("streams").and_then(Value::as_array);
        let asked: Option<Vec<Descriptor>> =
            asked.map(|streams| streams.iter().filter_map(descriptor).collect());
        let is_clear = self.source.is_none();
        let mut streams = Vec::new();
        for (name, settings) in wanted {
            if is_clear && asked.as_ref().is_some_and(|asked| !asked.contains(&name)) {
                continue;
            }
            let stream = match shown.get(&name) {
                Some(stream) => (*stream).clone(),
                // What is gone from the source can still be cleared.
                None if is_clear => json!({ "name": name.name, "namespace": name.namespace,
                    "json_schema": {}, "supported_sync_modes": ["full_refresh"] }),
                None => {
                    let text =
                        format!("the source no longer shows the stream {name}: it is left out");
                    log.log(None, Level::Warn, &text);
                    continue;
                }
            };
            streams.push(configured_stream(stream, settings));
        }
        json!({ "streams": streams })
    }
}

fn configured_stream(stream: Value, settings: &Value) -> Value {
    let mode = settings.get("syncMode").and_then(Value::as_str).unwrap_or_default();
    let (read, write) = match mode {
        "full_refresh_append" => ("full_refresh", "append"),
        // Deduplicated within the generation that stays.
        "full_refresh_overwrite_deduped" => ("full_refresh", "append_dedup"),
        "full_refresh_update" => ("full_refresh", "update"),
        "full_refresh_soft_delete" => ("full_refresh", "soft_delete"),
        "incremental_append" => ("incremental", "append"),
        "incremental_deduped_history" => ("incremental", "append_dedup"),
        "incremental_update" => ("incremental", "update"),
        "incremental_soft_delete" => ("incremental", "soft_delete"),
        _ => ("full_refresh", "overwrite"),
    };
    let own = |field: &str, source: &str| {
        let own = settings.get(field).filter(|it| it.as_array().is_some_and(|it| !it.is_empty()));
        own.or_else(|| stream.get(source)).cloned().unwrap_or_else(|| json!([]))
    };
    let (cursor, key) = (
        own("cursorField", "default_cursor_field"),
        own("primaryKey", "source_defined_primary_key"),
    );
    json!({ "stream": stream, "sync_mode": read, "destination_sync_mode": write,
            "cursor_field": cursor, "primary_key": key })
}

fn purpose(spec: &Spec) -> Purpose {
    let streams = spec.payload.get("streams").and_then(Value::as_array);
    let streams = streams.into_iter().flatten().filter_map(descriptor).collect();
    match spec.text("jobType") {
        "clear" | "reset" => Purpose::Clear,
        "refresh" => Purpose::Refresh { streams, truncate: spec.text("refreshMode") != "merge" },
        _ => Purpose::Sync,
    }
}

fn descriptor(stream: &Value) -> Option<Descriptor> {
    let namespace = stream.get("namespace").and_then(Value::as_str).unwrap_or_default();
    Some(Descriptor::new(stream.get("name")?.as_str()?, namespace))
}

/// How much connectors of an attempt may take.
#[must_use]
pub fn limits(spec: &Spec) -> Limits {
    let seconds = std::time::Duration::from_secs;
    Limits {
        memory_bytes_max: spec.memory_bytes_max,
        source_silence_max: seconds(spec.source_silence_s),
        destination_silence_max: seconds(spec.destination_silence_s),
        exit_grace: seconds(spec.exit_grace_s),
        ..Limits::default()
    }
}

/// What an attempt that never began comes to.
#[must_use]
pub fn failed(failure: Failure) -> Outcome {
    outcome(crate::Summary::never_began(failure))
}

fn outcome(mut summary: crate::Summary) -> Outcome {
    let found = summary.catalog.take();
    // Not later than this: a newer one wins.
    let found = found.map(|value| Found { value, version: 0, at_ms: summary.started_at });
    let message = summary.failures.first().map(|it| it.external_message.clone());
    let result = json!({
        "status": summary.status, "startedAt": summary.started_at, "endedAt": summary.ended_at,
        "totals": store::totals(&summary.streams), "checksums": summary.checksums,
    });
    Outcome {
        succeeded: summary.status == Status::Completed,
        cancelled: summary.status == Status::Cancelled,
        permanent: summary.permanent,
        message: message.unwrap_or_default(),
        summary: Some(summary),
        result,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Commit;
    use crate::runner::folder::tests::spec;

    #[test]
    fn what_an_attempt_could_not_send_is_gone_on_from() {
        let data = tempfile::tempdir().unwrap();
        let state = |attempt: &str, sequence: u64| Document {
            value: json!({ "attempt": attempt, "sequence": sequence, "other": 1 }),
            version: 3,
        };
        let mut earlier = spec(data.path());
        let folder = Folder::create(&earlier).unwrap();
        let commit = Commit { state: vec![Arc::from("{\"n\":1}")], ..Commit::default() };
        let before = "5-1".to_owned();
        folder.spool(&Spooled { sequence: 9, commit, before, ..Spooled::default() }).unwrap();
        let mut now = spec(data.path());
        now.attempt += 1;
        let (found, spooled) = left_over(&now, &state("5-1", 7)).unwrap();
        assert_eq!((found.short_name(), spooled.sequence), ("7-2".to_owned(), 9));
        let value = store::with_commit(&found, &state("5-1", 7).value, &spooled);
        assert_eq!((&value["state"], &value["attempt"]), (&json!([{ "n": 1 }]), &json!("7-2")));
        assert_eq!(value["other"], 1);
        // A part of it arrived, all of it, or somebody else went on.
        assert!(left_over(&now, &state("7-2", 8)).is_some());
        assert!(left_over(&now, &state("7-2", 9)).is_none());
        assert!(left_over(&now, &state("6-1", 7)).is_none());
        // It is not its own past, nor that of another connection.
        assert!(left_over(&earlier, &state("5-1", 7)).is_none());
        now.payload = json!({ "connectionId": "c-2" });
        assert!(left_over(&now, &state("5-1", 7)).is_none());
        earlier.attempt = 1;
        folder.forget_spooled().unwrap();
        now.payload = earlier.payload;
        assert!(left_over(&now, &state("5-1", 7)).is_none());
    }
}
