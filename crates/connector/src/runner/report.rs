//! Tells the server how an attempt ended: from its folder alone, so that whoever finds the folder can.
//!
//! Said twice it counts once: a job that is no longer ours is one that was reported, or that somebody
//! else has by now.

use serde_json::{Map, Value, json};
use windlass_worker::{Error, Refusal, RefusalKind, Token, v1};

use crate::failure::{Failure, FailureType};
use crate::observer::now_ms;
use crate::process::Side;
use crate::runner::folder::{Folder, Found, Outcome, Spec, Spooled};
use crate::runner::question::FOUND_BYTES_MAX;
use crate::runner::spool::{Home, put_configuration};
use crate::runner::store::{
    CATALOG, CONNECTION, DEFINITION, Document, STATE, Store, actor, is_next, records_done,
};
use crate::runner::{DISCOVER_QUEUE, SPEC_QUEUE, SYNC_QUEUE};
use crate::summary::StreamStats;

/// How often a document that others write meanwhile is written again.
pub(crate) const ROUNDS_MAX: u32 = 10;

// A message to the server holds 4 MiB: the state of a sync, which has a bound of its own, and these.
/// Bytes of a job's result; what is larger is told without its details.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Bytes of the failures in an attempt's document; further ones are in its folder only.
const FAILURES_BYTES_MAX: usize = 512 << 10;

/// Reports the outcome in a folder, and notes that it did.
///
/// # Errors
/// If the server does not answer, or will take it only later.
pub async fn report(store: &Store, folder: &Folder, spec: &Spec) -> Result<(), Error> {
    let outcome = match folder.outcome() {
        Ok(Some(outcome)) => outcome,
        // Nothing is known of it, or nothing that can be read.
        Ok(None) | Err(_) => lost("the runner of the attempt died"),
    };
    configurations(store, folder, spec).await?;
    catalog(store, spec, &outcome).await?;
    let spooled = folder.spooled().ok().flatten();
    let progressed = records_done(streams(&outcome, spooled.as_ref())) > 0;
    let mut rounds = 0;
    let ended = loop {
        let documents = documents(store, spec, &outcome, spooled.as_ref()).await?;
        match end(store, spec, &outcome, documents, progressed).await {
            Err(Error::Refused(refusal))
                if refusal.code == "document-version" && rounds < ROUNDS_MAX =>
            {
                rounds += 1;
            }
            ended => break ended,
        }
    };
    let is_kept = match ended {
        Ok(()) => false,
        // The next attempt takes it from the folder.
        Err(Error::Refused(refusal)) if is_over(&refusal) => match &spooled {
            Some(spooled) => is_next(spec, spooled, &store.get(STATE, spec.subject()).await?),
            None => false,
        },
        Err(error) => return Err(error),
    };
    let forgotten = if is_kept { Ok(()) } else { folder.forget_spooled() };
    if let Err(error) = forgotten.and_then(|()| folder.set_reported()) {
        tracing::warn!(%error, folder = %folder.path().display(), "the folder cannot be written");
    }
    Ok(())
}

fn is_over(refusal: &Refusal) -> bool {
    let kinds = matches!(refusal.kind, RefusalKind::NotFound | RefusalKind::FailedPrecondition);
    kinds && refusal.code != "document-version"
}

/// An outcome for an attempt whose runner is gone.
#[must_use]
pub fn lost(message: &str) -> Outcome {
    Outcome {
        succeeded: false,
        cancelled: false,
        summary: None,
        result: json!({}),
        message: message.to_owned(),
        permanent: false,
        found: None,
    }
}

async fn configurations(store: &Store, folder: &Folder, spec: &Spec) -> Result<(), Error> {
    for side in [Side::Source, Side::Destination] {
        let (kind, field) = actor(side);
        let Ok(Some(configuration)) = folder.configuration(side) else { continue };
        let mut id = spec.text(field).to_owned();
        if id.is_empty() {
            let connection = store.get(CONNECTION, spec.text("connectionId")).await?;
            connection.text(field).clone_into(&mut id);
        }
        let home = Home { kind, id, specification: None };
        match put_configuration(store, &home, configuration.clone()).await {
            Ok(()) => {}
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                // The attempt ended, whatever becomes of it.
                tracing::warn!(%error, attempt = spec.name(), "a new configuration was refused");
                continue;
            }
        }
        if let Err(error) = folder.forget_configuration(side, &configuration) {
            tracing::warn!(%error, folder = %folder.path().display(), "the folder cannot be written");
        }
    }
    Ok(())
}

/// The counts of an attempt: those of its summary, or of the last commit if there is none.
fn streams<'a>(outcome: &'a Outcome, spooled: Option<&'a Spooled>) -> &'a [StreamStats] {
    match (&outcome.summary, spooled) {
        (Some(summary), _) => &summary.streams,
        (None, Some(spooled)) => &spooled.commit.streams,
        (None, None) => &[],
    }
}

/// What is written in the moment that the job ends.
async fn documents(
    store: &Store,
    spec: &Spec,
    outcome: &Outcome,
    spooled: Option<&Spooled>,
) -> Result<Vec<v1::DocumentWrite>, Error> {
    let mut documents = Vec::new();
    if &*spec.queue == SYNC_QUEUE {
        if let Some(spooled) = spooled {
            let now = store.get(STATE, spec.subject()).await?;
            if is_next(spec, spooled, &now) {
                documents.push(store.state(spec, &now, spooled));
            }
        }
        let streams = streams(outcome, spooled);
        let none = Spooled { started_ms: now_ms(), ..Spooled::default() };
        let last = spooled.unwrap_or(&none);
        documents.push(store.attempt(spec, last, streams, ended(outcome, streams)));
    }
    if let (SPEC_QUEUE, Some(found)) = (&*spec.queue, &outcome.found) {
        let id = spec.text("definitionId");
        let mut definition = store.get(DEFINITION, id).await?;
        if specify(&mut definition, found) {
            let version = Some(definition.version);
            documents.push(store.put(DEFINITION, id, version, &definition.value));
        }
    }
    Ok(documents)
}

/// Puts into a definition what its connector said. What one of before said is nobody's: who changed the
/// definition has asked again.
fn specify(definition: &mut Document, found: &Found) -> bool {
    let is_asked = definition.version > 0 && definition.version == found.version;
    let fields = definition.value.as_object_mut().filter(|_| is_asked);
    let Some(fields) = fields else { return false };
    fields.insert("spec".to_owned(), found.value.clone());
    fields.insert("specAt".to_owned(), found.at_ms.into());
    true
}

/// Keeps the catalog that was found, unless a newer one is kept. By itself: with a state it may be more than a
/// message holds.
async fn catalog(store: &Store, spec: &Spec, outcome: &Outcome) -> Result<(), Error> {
    let Some(found) = &outcome.found else { return Ok(()) };
    let source = match &*spec.queue {
        SYNC_QUEUE => store.get(CONNECTION, spec.subject()).await?.text("sourceId").to_owned(),
        DISCOVER_QUEUE => spec.text("sourceId").to_owned(),
        _ => return Ok(()),
    };
    if source.is_empty() {
        return Ok(());
    }
    if found.value.to_string().len() > FOUND_BYTES_MAX {
        tracing::warn!(source, "a catalog is too large to be kept");
        return Ok(());
    }
    let value = json!({ "sourceId": source, "catalog": found.value,
        "configurationVersion": found.version, "discoveredAt": found.at_ms });
    for _ in 0..ROUNDS_MAX {
        let kept = store.get(CATALOG, &source).await?;
        if kept.number("discoveredAt") > found.at_ms {
            return Ok(());
        }
        let write = store.put(CATALOG, &source, Some(kept.version), &value);
        match store.client.put_documents(vec![write]).await {
            Ok(_) => return Ok(()),
            Err(Error::Refused(refusal)) if refusal.code == "document-version" => {}
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, source, "a catalog was refused");
                return Ok(());
            }
        }
    }
    tracing::warn!(source, "a catalog is written by others all the time, and was not kept");
    Ok(())
}

/// What an attempt's document says more when it has ended.
fn ended(outcome: &Outcome, streams: &[StreamStats]) -> Map<String, Value> {
    let committed: u64 = streams.iter().map(|it| it.records_committed).sum();
    let summary = outcome.summary.as_ref();
    let failures = match summary {
        Some(summary) => failures(&summary.failures),
        None if outcome.message.is_empty() => Vec::new(),
        None => vec![json!({ "failureOrigin": "airbyte_platform", "failureType": "system_error",
            "externalMessage": outcome.message, "timestamp": now_ms() })],
    };
    let mut more = Map::new();
    let status = if outcome.succeeded { "succeeded" } else { "failed" };
    more.insert("status".to_owned(), status.into());
    more.insert("endedAt".to_owned(), now_ms().into());
    more.insert("failures".to_owned(), failures.into());
    more.insert("partialSuccess".to_owned(), (!outcome.succeeded && committed > 0).into());
    if let Some(summary) = summary {
        more.insert("startedAt".to_owned(), summary.started_at.into());
    }
    more
}

/// The first ones, as many as there is room for.
fn failures(all: &[Failure]) -> Vec<Value> {
    let mut bytes = 0;
    let has_room = |shown: &Value| {
        bytes += shown.to_string().len();
        bytes <= FAILURES_BYTES_MAX
    };
    all.iter().map(failure).take_while(has_room).collect()
}

/// As the face shows it.
fn failure(failure: &Failure) -> Value {
    let mut value = json!(failure);
    if let Value::Object(fields) = &mut value {
        let retryable = failure.failure_type != FailureType::ConfigError;
        fields.insert("retryable".to_owned(), retryable.into());
    }
    value
}

async fn end(
    store: &Store,
    spec: &Spec,
    outcome: &Outcome,
    documents: Vec<v1::DocumentWrite>,
    progressed: bool,
) -> Result<(), Error> {
    let token = Token { key: spec.job, activation: spec.activation };
    if outcome.succeeded {
        let mut result = outcome.result.to_string();
        if result.len() > RESULT_BYTES_MAX {
            result = json!({ "status": "completed" }).to_string();
        }
        return store.client.complete_job(token, result.into(), documents).await;
    }
    if !documents.is_empty() {
        let note = String::new();
        let progress = v1::Progress { percent: 0, note, documents };
        store.client.report_progress(token, progress).await?;
    }
    let message = match &*outcome.message {
        "" => "the attempt failed".to_owned(),
        message => message.chars().take(2_000).collect(),
    };
    let permanent = outcome.permanent;
    let fail = v1::Fail { message, progressed, permanent, ..v1::Fail::default() };
    store.client.fail_job(token, fail).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_connector_of_before_says_is_not_kept() {
        let found = |version| Found { value: json!({ "new": 1 }), version, at_ms: 7 };
        let before = json!({ "spec": { "old": 1 }, "future": 1 });
        let mut definition = Document { value: before.clone(), version: 3 };
        assert!(!specify(&mut definition, &found(2)));
        assert_eq!(definition.value, before);
        assert!(specify(&mut definition, &found(3)));
        let after = json!({ "spec": { "new": 1 }, "future": 1, "specAt": 7 });
        assert_eq!(definition.value, after);
        let mut none = Document { value: json!({}), version: 0 };
        assert!(!specify(&mut none, &found(0)), "it is deleted");
    }
}
