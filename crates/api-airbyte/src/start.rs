//! What happens at the start. When the server starts, schedules are brought in line with their connections,
//! secrets that only a newer spec marks are sealed, and what a connection that is gone left behind is swept
//! away. When a tenant first asks for something,
//! what it has from the start is written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_record::command::{Command, ConfigureQueue, QueueName};
use windlass_record::policy::QueueSettings;

use crate::definition::built_in;
use crate::document::{ATTEMPT, Acting, Connection, Definition, Destination, Kept, STATE, Source};
use crate::face::{Face, Found};
use crate::failure::{Answered, Failure};
use crate::job::{CHECK_QUEUE, DISCOVER_QUEUE, SPEC_QUEUE, SYNC_QUEUE};
use crate::limit::{FINISHED_MAX, FINISHED_MS};
use crate::vault::sealed_text;
use crate::workspace::default_workspace;
use crate::{TENANT_DEFAULT, connection, job_list, scope, timing};

/// What a start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Secrets that were sealed with another key, and cannot be opened with this one.
    pub foreign_secrets: usize,
    /// What could not be brought in order. It keeps nobody from working with the rest.
    pub problems: Vec<String>,
}

/// Brings in order what a stop may have left.
pub(crate) async fn start(face: &Face) -> Started {
    let mut tenants: BTreeSet<&str> =
        face.settings.clients.iter().map(|client| client.tenant.as_str()).collect();
    if tenants.is_empty() {
        tenants.insert(TENANT_DEFAULT);
    }
    let mut started = Started::default();
    for tenant in tenants {
        if let Err(failure) = align(face, tenant, &mut started).await {
            started.problems.push(failure.to_string());
        }
        for sealed in [
            seal::<Source>(face, tenant, &mut started).await,
            seal::<Destination>(face, tenant, &mut started).await,
        ] {
            if let Err(failure) = sealed {
                started.problems.push(failure.to_string());
            }
        }
    }
    started
}

/// Makes sure that a tenant has what is there from the start.
pub(crate) async fn ready(face: &Face, tenant: &str) -> Answered<()> {
    let mut seeded = face.seeded.lock().await;
    if !seeded.contains(tenant) {
        seed(face, tenant).await?;
        seeded.insert(tenant.to_owned());
    }
    Ok(())
}

/// Queues, the workspace, the definitions, where they are missing.
async fn seed(face: &Face, tenant: &str) -> Answered<()> {
    for queue in [SYNC_QUEUE, DISCOVER_QUEUE, CHECK_QUEUE, SPEC_QUEUE] {
        let settings = QueueSettings {
            finished_max: FINISHED_MAX,
            finished_ms: FINISHED_MS,
            ..QueueSettings::DEFAULT
        };
        let queue = QueueName { tenant: tenant.into(), queue: queue.into() };
        let command = ConfigureQueue { queue, settings, seed_only: true };
        face.gateway.command(Command::ConfigureQueue(command)).await?;
    }
    let now_ms = face.now_ms().await?;
    make_missing(face, tenant, &default_workspace(now_ms)).await?;
    for definition in built_in(now_ms) {
        make_missing(face, tenant, &definition).await?;
    }
    Ok(())
}

async fn make_missing<T: Kept>(face: &Face, tenant: &str, document: &T) -> Answered<()> {
    if face.raw(tenant, T::KIND, document.id()).await?.is_none() {
        face.make(tenant, document).await?;
    }
    Ok(())
}

/// A crash may have come between a connection and its schedule, or between it and what it left.
async fn align(face: &Face, tenant: &str, started: &mut Started) -> Answered<()> {
    let mut schedules = timing::all(face, tenant).await?;
    // All of them, however many: what belongs to none of them is removed.
    let (mut known, mut after) = (BTreeSet::new(), Some(Box::default()));
    while let Some(from) = after {
        let (connections, next) = face.some::<Connection>(tenant, from).await?;
        for (id, found) in connections {
            let old = schedules.remove(&*id);
            let aligned = match &found {
                Some(found) => timing::align(face, tenant, &found.is, old.as_ref()).await,
                // It is there all the same, and says itself why it cannot be read.
                None => timing::put(face, tenant, &id).await,
            };
            if let Err(failure) = aligned {
                started.problems.push(format!("connection {id}: {failure}"));
            }
            known.insert(id);
        }
        after = next;
    }
    for connection in schedules.keys() {
        if let Err(failure) = timing::delete(face, tenant, connection).await {
            started.problems.push(format!("the schedule of {connection}: {failure}"));
        }
    }
    sweep(face, tenant, &known, started).await
}

/// Removes what connections left behind that are gone.
async fn sweep(
    face: &Face,
    tenant: &str,
    known: &BTreeSet<Box<str>>,
    started: &mut Started,
) -> Answered<()> {
    let mut left: BTreeSet<String> = BTreeSet::new();
    for kind in [STATE, ATTEMPT] {
        for id in face.ids(tenant, kind, "", usize::MAX).await? {
            let connection = id.split('.').next().unwrap_or_default();
            if !known.contains(connection) {
                left.insert(connection.to_owned());
            }
        }
    }
    for gone in left {
        // A runner that is still there ends in good order first.
        if job_list::live(face, tenant, &gone).await?.is_none()
            && let Err(failure) = connection::forget(face, tenant, &gone).await
        {
            started.problems.push(format!("what {gone} left behind: {failure}"));
        }
    }
    Ok(())
}

/// Seals what a spec that became known since marks, and counts the secrets of another key.
async fn seal<T: Acting>(face: &Face, tenant: &str, started: &mut Started) -> Answered<()> {
    let all: Vec<Found<T>> = face.all::<T>(tenant).await?;
    if all.is_empty() {
        return Ok(());
    }
    let known = face.all::<Definition>(tenant).await?;
    let specs: BTreeMap<String, Option<Value>> =
        known.into_iter().map(|found| (found.is.definition_id, found.is.spec)).collect();
    for Found { is: kept, .. } in &all {
        let actor = kept.actor();
        started.foreign_secrets += foreign(face.settings.vault.key_name(), &actor.configuration);
        let spec = specs.get(&actor.definition_id).and_then(Option::as_ref);
        if let Err(failure) = seal_one(face, tenant, kept, spec).await {
            started.problems.push(format!("{} {}: {failure}", T::WHAT, kept.id()));
        }
    }
    Ok(())
}

async fn seal_one<T: Acting>(
    face: &Face,
    tenant: &str,
    kept: &T,
    spec: Option<&Value>,
) -> Answered<()> {
    let scope = scope(tenant, T::KIND, kept.id());
    let seal = |configuration: &mut Value| {
        face.settings.vault.seal(&scope, configuration, spec).map_err(Failure::from)
    };
    let mut sealed = kept.actor().configuration.clone();
    seal(&mut sealed)?;
    if sealed != kept.actor().configuration {
        let change = |kept: &mut T| seal(&mut kept.actor_mut().configuration);
        face.change(tenant, kept.id(), change).await?;
    }
    Ok(())
}

/// How many secrets of another key a configuration has.
fn foreign(key: &str, configuration: &Value) -> usize {
    let here = format!("1.{key}.");
    let (mut values, mut count) = (vec![configuration], 0);
    while let Some(value) = values.pop() {
        match sealed_text(value) {
            Some(text) => count += usize::from(!text.starts_with(&here)),
            None => {
                values.extend(value.as_object().into_iter().flat_map(|fields| fields.values()));
                values.extend(value.as_array().into_iter().flatten());
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_another_key_are_counted() {
        let sealed = |key: &str| json!({ "$sealed": format!("1.{key}.text") });
        let given = json!({ "a": sealed("k"), "b": [sealed("x"), { "c": sealed("y") }], "d": 1 });
        assert_eq!(foreign("k", &given), 2);
    }
}
