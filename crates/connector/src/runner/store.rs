//! Documents of the Airbyte face, as far as an attempt needs them. `docs/airbyte.md` has their fields.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use windlass_worker::{Client, Error, RefusalKind, v1};

use crate::observer::now_ms;
use crate::process::Side;
use crate::runner::folder::{Spec, Spooled};
use crate::summary::{StreamState, StreamStats};

/// Documents of a list that are asked for at once.
const PAGE: u32 = 500;
/// The kinds of documents, as the face calls them.
pub(crate) const ATTEMPT: &str = "airbyte.attempt";
pub(crate) const CATALOG: &str = "airbyte.catalog";
pub(crate) const CONNECTION: &str = "airbyte.connection";
pub(crate) const DEFINITION: &str = "airbyte.definition";
pub(crate) const STATE: &str = "airbyte.state";

/// The kind of a source or destination, and what names one elsewhere.
pub(crate) fn actor(side: Side) -> (&'static str, &'static str) {
    match side {
        Side::Source => ("airbyte.source", "sourceId"),
        Side::Destination => ("airbyte.destination", "destinationId"),
    }
}

/// Records in the destination, and those that it refused: whether an attempt got anywhere.
pub(crate) fn records_done(streams: &[StreamStats]) -> u64 {
    streams.iter().map(|stream| stream.records_committed + stream.records_rejected).sum()
}

/// Attempts of a connection that are kept: as many as the face adds up for one job.
const ATTEMPTS_MAX: usize = 100;
/// Streams in the document of an attempt; its totals are of all.
const STREAMS_MAX: usize = 2_000;
/// And how many of the oldest go at once.
const REMOVED_MAX: usize = 50;

/// The documents of a tenant.
#[derive(Debug, Clone)]
pub struct Store {
    /// The way to the server.
    pub client: Client,
    tenant: String,
}

/// A document, and its version.
#[derive(Debug, Clone)]
pub struct Document {
    /// A JSON object.
    pub value: Value,
    /// For compare-and-set; 0 is not there.
    pub version: u64,
}

impl Document {
    /// A text in it; empty if there is none.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number in it; 0 if there is none.
    #[must_use]
    pub fn number(&self, field: &str) -> u64 {
        self.value.get(field).and_then(Value::as_u64).unwrap_or(0)
    }
}

impl Store {
    /// Those of a tenant.
    #[must_use]
    pub fn new(client: Client, tenant: &str) -> Store {
        Store { client, tenant: tenant.to_owned() }
    }

    /// The scope of what is sealed in a document.
    #[must_use]
    pub fn scope(&self, kind: &str, id: &str) -> String {
        format!("{}/{kind}/{id}", self.tenant)
    }

    /// One document; without one, an empty object of version 0.
    ///
    /// # Errors
    /// If the server does not answer, or what it has is no JSON.
    pub async fn get(&self, kind: &str, id: &str) -> Result<Document, Error> {
        let (tenant, kind, id) = (self.tenant.clone(), kind.to_owned(), id.to_owned());
        match self.client.document(v1::GetDocumentRequest { tenant, kind, id }).await {
            Ok(view) => {
                let value = serde_json::from_slice(&view.value).map_err(Error::Json)?;
                Ok(Document { value, version: view.version })
            }
            Err(Error::Refused(refusal)) if refusal.kind == RefusalKind::NotFound => {
                Ok(Document { value: json!({}), version: 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// A write of a document.
    #[must_use]
    pub fn put(
        &self,
        kind: &str,
        id: &str,
        version: Option<u64>,
        value: &Value,
    ) -> v1::DocumentWrite {
        v1::DocumentWrite {
            tenant: self.tenant.clone(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            expected_version: version,
            value: Some(Bytes::from(value.to_string())),
        }
    }

    /// The jobs and attempts of a connection that are kept, oldest first.
    async fn attempts(&self, connection: &str) -> Result<Vec<(u64, u64)>, Error> {
        let prefix = format!("{connection}.");
        let (mut after_id, mut found) = (prefix.clone(), Vec::new());
        loop {
            let (tenant, kind) = (self.tenant.clone(), ATTEMPT.to_owned());
            let request = v1::ListDocumentsRequest { tenant, kind, after_id, limit: PAGE };
            let page = self.client.list_documents(request).await?;
            let ids = page.documents.into_iter().map(|document| document.id);
            found
                .extend(ids.take_while(|id| id.starts_with(&prefix)).filter_map(|id| numbers(&id)));
            if page.next_id.is_empty() || !page.next_id.starts_with(&prefix) {
                found.sort_unstable();
                return Ok(found);
            }
            after_id = page.next_id;
        }
    }

    /// The newest attempt of a connection before a job, if there is one. Of those that are kept, the
    /// oldest go when there are too many.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn attempt_before(
        &self,
        connection: &str,
        job: u64,
    ) -> Result<Option<Document>, Error> {
        let all = self.attempts(connection).await?;
        let id = |(job, attempt): (u64, u64)| format!("{connection}.{job}-{attempt}");
        let too_many = all.len().saturating_sub(ATTEMPTS_MAX).min(REMOVED_MAX);
        if too_many > 0 {
            let remove = |of: &(u64, u64)| v1::DocumentWrite {
                value: None,
                ..self.put(ATTEMPT, &id(*of), None, &Value::Null)
            };
            self.client.put_documents(all.iter().take(too_many).map(remove).collect()).await?;
        }
        match all.into_iter().rev().find(|(of, _)| *of < job) {
            Some(before) => self.get(ATTEMPT, &id(before)).await.map(Some),
            None => Ok(None),
        }
    }

    /// The state of a connection with a commit in it.
    #[must_use]
    pub fn state(&self, spec: &Spec, before: &Document, spooled: &Spooled) -> v1::DocumentWrite {
        let value = with_commit(spec, &before.value, spooled);
        self.put(STATE, spec.subject(), Some(before.version), &value)
    }

    /// The document of an attempt, as it is now.
    #[must_use]
    pub fn attempt(
        &self,
        spec: &Spec,
        spooled: &Spooled,
        streams: &[StreamStats],
        more: Map<String, Value>,
    ) -> v1::DocumentWrite {
        let mut value = json!({
            "connectionId": spec.subject(), "jobId": spec.job, "attempt": spec.attempt,
            "jobType": spec.text("jobType"), "status": "running", "sequence": spooled.sequence,
            "startedAt": spooled.started_ms, "updatedAt": now_ms(), "totals": totals(streams),
            "streams": streams.iter().take(STREAMS_MAX).map(stream).collect::<Value>(),
        });
        if let Value::Object(fields) = &mut value {
            fields.extend(more);
        }
        self.put(ATTEMPT, &spec.name(), None, &value)
    }
}

/// Whether a commit of an attempt goes on from the state that the server has: its own, or the one that it
/// began from. Nothing goes over what somebody else wrote.
pub(crate) fn is_next(spec: &Spec, spooled: &Spooled, now: &Document) -> bool {
    let theirs = now.text("attempt");
    let goes_on = theirs == spooled.before || theirs == spec.short_name();
    goes_on && spooled.sequence > now.number("sequence")
}

/// What the state of a connection is with a commit in it.
pub(crate) fn with_commit(spec: &Spec, before: &Value, spooled: &Spooled) -> Value {
    let mut value = before.clone();
    if let Value::Object(fields) = &mut value {
        let states = spooled.commit.state.iter();
        let states: Vec<Value> = states.filter_map(|it| serde_json::from_str(it).ok()).collect();
        let streams = spooled.generations.iter().map(|(stream, generation, minimum)| {
            let mut value = json!({ "name": stream.name, "generationId": generation,
                    "minimumGenerationId": minimum });
            name_space(&mut value, stream.namespace.as_deref());
            value
        });
        fields.insert("connectionId".to_owned(), spec.subject().into());
        fields.insert("attempt".to_owned(), spec.short_name().into());
        fields.insert("sequence".to_owned(), spooled.sequence.into());
        fields.insert("state".to_owned(), states.into());
        fields.insert("streams".to_owned(), streams.collect());
        fields.insert("updatedAt".to_owned(), now_ms().into());
    }
    value
}

/// The job and the attempt in the id of an attempt's document.
fn numbers(id: &str) -> Option<(u64, u64)> {
    let (job, attempt) = id.rsplit_once('.')?.1.split_once('-')?;
    Some((job.parse().ok()?, attempt.parse().ok()?))
}

/// What streams come to.
#[must_use]
pub fn totals(streams: &[StreamStats]) -> Value {
    let sum = |of: fn(&StreamStats) -> u64| streams.iter().map(of).sum::<u64>();
    json!({
        "recordsEmitted": sum(|it| it.records_emitted), "bytesEmitted": sum(|it| it.bytes_emitted),
        "recordsCommitted": sum(|it| it.records_committed),
        "bytesCommitted": sum(|it| it.bytes_committed),
        "recordsRejected": sum(|it| it.records_rejected),
        "recordsEstimated": sum(|it| it.estimated_records.unwrap_or(0)),
        "bytesEstimated": sum(|it| it.estimated_bytes.unwrap_or(0)),
    })
}

fn stream(stats: &StreamStats) -> Value {
    let status = match stats.status {
        StreamState::Pending | StreamState::Running => "running",
        StreamState::RateLimited => "rate_limited",
        StreamState::Complete => "complete",
        StreamState::Incomplete => "incomplete",
    };
    let mut value = json!({
        "name": stats.name, "status": status,
        "recordsEmitted": stats.records_emitted, "bytesEmitted": stats.bytes_emitted,
        "recordsCommitted": stats.records_committed, "bytesCommitted": stats.bytes_committed,
        "recordsRejected": stats.records_rejected,
    });
    name_space(&mut value, stats.namespace.as_deref());
    value
}

/// What is not known is absent.
fn name_space(value: &mut Value, namespace: Option<&str>) {
    if let (Some(namespace), Value::Object(fields)) = (namespace, value) {
        fields.insert("namespace".to_owned(), namespace.into());
    }
}
