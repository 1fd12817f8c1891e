//! What happens at the start. When the server starts, schedules are brought in line with their connections,
//! and what a connection that is gone left behind is swept away. When a tenant first asks for something,
//! what it has from the start is written.

use std::collections::BTreeSet;

use windlass_record::command::{Command, ConfigureQueue, QueueName};
use windlass_record::policy::QueueSettings;

use crate::definition::built_in;
use crate::document::{ATTEMPT, Acting, Connection, Destination, Kept, STATE, Source};
use crate::face::{Face, Found};
use crate::failure::{Answered, Failure};
use crate::job::{CHECK_QUEUE, DISCOVER_QUEUE, SPEC_QUEUE, SYNC_QUEUE};
use crate::limit::{DOCUMENTS_MAX, FINISHED_MAX, FINISHED_MS};
use crate::vault::sealed_text;
use crate::workspace::default_workspace;
use crate::{TENANT_DEFAULT, connection, job_list, timing};

/// What a start found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Connections, of all tenants.
    pub connections: usize,
    /// Secrets that were sealed with another key, and cannot be opened with this one.
    pub foreign_secrets: usize,
}

/// It could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl From<Failure> for StartError {
    fn from(failure: Failure) -> StartError {
        StartError(failure.to_string())
    }
}

pub(crate) async fn start(face: &Face) -> Result<Started, StartError> {
    let mut tenants: BTreeSet<&str> =
        face.settings.clients.iter().map(|client| client.tenant.as_str()).collect();
    if tenants.is_empty() {
        tenants.insert(TENANT_DEFAULT);
    }
    let mut started = Started::default();
    for tenant in tenants {
        started.connections += align(face, tenant).await?;
        started.foreign_secrets += foreign::<Source>(face, tenant).await?;
        started.foreign_secrets += foreign::<Destination>(face, tenant).await?;
    }
    Ok(started)
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
async fn align(face: &Face, tenant: &str) -> Answered<usize> {
    let connections = face.all::<Connection>(tenant).await?;
    for found in &connections {
        timing::put(face, tenant, &found.is).await?;
    }
    let known: BTreeSet<&str> = connections.iter().map(|found| found.is.id()).collect();
    for connection in timing::scheduled(face, tenant).await? {
        if !known.contains(connection.as_str()) {
            timing::delete(face, tenant, &connection).await?;
        }
    }
    let mut left: BTreeSet<String> = BTreeSet::new();
    for kind in [STATE, ATTEMPT] {
        for id in face.ids(tenant, kind, "", DOCUMENTS_MAX).await? {
            let connection = id.split('.').next().unwrap_or_default();
            if !known.contains(connection) {
                left.insert(connection.to_owned());
            }
        }
    }
    if left.is_empty() {
        return Ok(connections.len());
    }
    let live = job_list::jobs(face, tenant, None, |job| job.outcome.is_none()).await?;
    for gone in left {
        // A runner that is still there ends in good order first.
        if !live.iter().any(|job| *job.unique_key == *gone) {
            connection::forget(face, tenant, &gone).await?;
        }
    }
    Ok(connections.len())
}

/// How many secrets of another key there are.
async fn foreign<T: Acting>(face: &Face, tenant: &str) -> Answered<usize> {
    let all: Vec<Found<T>> = face.all::<T>(tenant).await?;
    let here = format!("1.{}.", face.settings.vault.key_name());
    let mut count = 0;
    for found in &all {
        let mut values = vec![&found.is.actor().configuration];
        while let Some(value) = values.pop() {
            match sealed_text(value) {
                Some(text) => count += usize::from(!text.starts_with(&here)),
                None => {
                    values.extend(value.as_object().into_iter().flat_map(|fields| fields.values()));
                    values.extend(value.as_array().into_iter().flatten());
                }
            }
        }
    }
    Ok(count)
}
