//! What handlers share, and how they read and write documents.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use windlass_gateway::read::{DocumentFilter, DocumentName};
use windlass_gateway::request::{DocumentView, JobView};
use windlass_gateway::{Gateway, GatewayError};
use windlass_record::command::{Command, DocumentWrite, PutDocuments};
use windlass_record::id::JobKey;
use windlass_record::rejection::Rejection;

use crate::Settings;
use crate::document::Kept;
use crate::extract::Params;
use crate::failure::{Answered, Failure};
use crate::limit::{CHANGES_MAX, DOCUMENTS_MAX, LOOK_PAUSE_MAX, LOOK_PAUSE_MIN};

/// See the module.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) gateway: Gateway,
    pub(crate) settings: Arc<Settings>,
    /// Tenants that have what is there from the start.
    pub(crate) seeded: Arc<Mutex<HashSet<String>>>,
}

/// A document, and the version that was read.
#[derive(Clone, Debug)]
pub(crate) struct Found<T> {
    pub(crate) version: u64,
    pub(crate) is: T,
}

/// Ids, or documents, of one page.
const PAGE: usize = 1_000;

/// Documents that one command may change.
const DELETES_AT_ONCE: usize = 64;

impl Face {
    /// Reads a document; `None` if there is none.
    pub(crate) async fn read<T: Kept>(&self, tenant: &str, id: &str) -> Answered<Option<Found<T>>> {
        let found = self.raw(tenant, T::KIND, id).await?;
        found.map(|(version, bytes)| parsed(version, &bytes, T::KIND, id)).transpose()
    }

    /// The same; not to be there is a failure.
    pub(crate) async fn find<T: Kept>(&self, tenant: &str, id: &str) -> Answered<Found<T>> {
        self.read(tenant, id).await?.ok_or_else(|| Failure::not_found(T::WHAT, id))
    }

    /// A document of any kind. What could be no id names none.
    pub(crate) async fn raw(
        &self,
        tenant: &str,
        kind: &str,
        id: &str,
    ) -> Answered<Option<(u64, Arc<[u8]>)>> {
        let name = DocumentName { tenant: tenant.into(), kind: kind.into(), id: id.into() };
        Ok(self.gateway.document(name).await?)
    }

    /// All documents of a kind, by id. One that cannot be read is passed over: it must not hide the others.
    pub(crate) async fn all<T: Kept>(&self, tenant: &str) -> Answered<Vec<Found<T>>> {
        let mut found = Vec::new();
        let mut after = Some(Box::default());
        while let Some(from) = after.take_if(|_| found.len() < DOCUMENTS_MAX) {
            let (documents, next) = self.some(tenant, from).await?;
            found.extend(documents.into_iter().filter_map(|(_, found)| found));
            after = next;
        }
        found.truncate(DOCUMENTS_MAX);
        Ok(found)
    }

    /// Ids of a kind behind this one, each with its document if that can be read, and where more are.
    pub(crate) async fn some<T: Kept>(
        &self,
        tenant: &str,
        after: Box<str>,
    ) -> Answered<(Vec<(Box<str>, Option<Found<T>>)>, Option<Box<str>>)> {
        let filter =
            DocumentFilter { tenant: tenant.into(), kind: T::KIND.into(), after, limit: PAGE };
        let (documents, more) = self.gateway.whole_documents(filter).await?;
        let read = |it: DocumentView| {
            let found = parsed::<T>(it.version, &it.bytes, T::KIND, &it.id).ok();
            (it.id, found)
        };
        let found: Vec<_> = documents.into_iter().map(read).collect();
        let next = found.last().filter(|_| more).map(|(id, _)| id.clone());
        Ok((found, next))
    }

    /// The same, in the workspaces that a list is asked for; in any, if it names none.
    pub(crate) async fn wanted<T: Kept>(
        &self,
        tenant: &str,
        params: &Params,
    ) -> Answered<Vec<Found<T>>> {
        let workspaces = params.all("workspaceIds");
        let mut found = self.all::<T>(tenant).await?;
        found.retain(|found| workspaces.is_empty() || workspaces.contains(&found.is.workspace()));
        Ok(found)
    }

    /// Ids of a kind that begin so, at most so many, and at most what a partition has of documents.
    pub(crate) async fn ids(
        &self,
        tenant: &str,
        kind: &str,
        prefix: &str,
        at_most: usize,
    ) -> Answered<Vec<Box<str>>> {
        let mut ids: Vec<Box<str>> = Vec::new();
        let mut after: Box<str> = prefix.into();
        loop {
            let filter =
                DocumentFilter { tenant: tenant.into(), kind: kind.into(), after, limit: PAGE };
            let page = self.gateway.documents(filter).await?;
            let Some((last, _)) = page.documents.last() else { return Ok(ids) };
            after = last.clone();
            let is_last = !page.more || !last.starts_with(prefix);
            let matching = page.documents.into_iter().map(|(id, _)| id);
            ids.extend(matching.filter(|id| id.starts_with(prefix)));
            if is_last || ids.len() >= at_most {
                ids.truncate(at_most);
                return Ok(ids);
            }
        }
    }

    /// Writes a document that must not exist.
    pub(crate) async fn make<T: Kept>(&self, tenant: &str, document: &T) -> Answered<()> {
        let written = self.put(tenant, document, 0).await;
        written.map_err(|error| match error {
            Missed::Changed => Failure::conflict(format!("The {} exists already.", T::WHAT)),
            Missed::Failed(failure) => failure,
        })
    }

    /// Changes a document, again if somebody else changed it meanwhile. The document as it is then.
    pub(crate) async fn change<T: Kept>(
        &self,
        tenant: &str,
        id: &str,
        mut change: impl FnMut(&mut T) -> Answered<()>,
    ) -> Answered<T> {
        for _ in 0..CHANGES_MAX {
            let Found { version, mut is } = self.find::<T>(tenant, id).await?;
            change(&mut is)?;
            is.touch(self.now_ms().await?);
            match self.put(tenant, &is, version).await {
                Ok(()) => return Ok(is),
                Err(Missed::Changed) => {}
                Err(Missed::Failed(failure)) => return Err(failure),
            }
        }
        Err(Failure::try_again_later(format!("The {} is being changed by others.", T::WHAT)))
    }

    async fn put<T: Kept>(&self, tenant: &str, document: &T, expected: u64) -> Result<(), Missed> {
        let bytes = serde_json::to_vec(document)
            .map_err(|error| Missed::Failed(Failure::internal(error.to_string())))?;
        let write = DocumentWrite {
            tenant: tenant.into(),
            kind: T::KIND.into(),
            id: document.id().into(),
            expected_version: Some(expected),
            bytes: Some(bytes.into()),
        };
        let command = Command::PutDocuments(PutDocuments { documents: vec![write] });
        match self.gateway.command(command).await {
            Ok(_) => Ok(()),
            Err(GatewayError::Rejected(Rejection::DocumentVersion { .. })) => Err(Missed::Changed),
            Err(error) => Err(Missed::Failed(error.into())),
        }
    }

    /// Deletes documents of a kind. What is not there is gone.
    pub(crate) async fn delete(&self, tenant: &str, kind: &str, ids: &[Box<str>]) -> Answered<()> {
        for ids in ids.chunks(DELETES_AT_ONCE) {
            let write = |id: &str| DocumentWrite {
                tenant: tenant.into(),
                kind: kind.into(),
                id: id.into(),
                expected_version: None,
                bytes: None,
            };
            let documents = ids.iter().map(|id| write(id)).collect();
            self.gateway.command(Command::PutDocuments(PutDocuments { documents })).await?;
        }
        Ok(())
    }

    /// The time of the partition.
    pub(crate) async fn now_ms(&self) -> Answered<u64> {
        Ok(self.gateway.now_ms().await?)
    }

    /// A new id.
    pub(crate) fn new_id(&self) -> Answered<String> {
        Ok(self.settings.vault.new_id()?)
    }

    /// A job, live or remembered.
    pub(crate) async fn job(&self, key: JobKey) -> Answered<Option<Box<JobView>>> {
        Ok(self.gateway.job(key).await?)
    }

    /// A job once it has ended; `None` if it did not until then, or is not known.
    pub(crate) async fn job_ended(
        &self,
        key: JobKey,
        until: Instant,
    ) -> Answered<Option<Box<JobView>>> {
        let look = || async {
            Ok(match self.job(key).await? {
                Some(job) if job.outcome.is_none() => None,
                ended => Some(ended),
            })
        };
        Ok(repeated(until, look).await?.flatten())
    }
}

/// Looks again and again until something is there, with growing pauses; `None` when the time is over.
async fn repeated<T, F>(until: Instant, look: impl Fn() -> F) -> Answered<Option<T>>
where
    F: Future<Output = Answered<Option<T>>>,
{
    let mut pause = LOOK_PAUSE_MIN;
    loop {
        if let Some(found) = look().await? {
            return Ok(Some(found));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(LOOK_PAUSE_MAX);
    }
}

/// Why a document was not written.
enum Missed {
    /// It does not have the expected version.
    Changed,
    Failed(Failure),
}

/// Reads the bytes of a document.
pub(crate) fn parsed<T: DeserializeOwned>(
    version: u64,
    bytes: &[u8],
    kind: &str,
    id: &str,
) -> Answered<Found<T>> {
    let is = serde_json::from_slice(bytes).map_err(|error| {
        Failure::internal(format!("failed to read the document {kind} {id}: {error}"))
    })?;
    Ok(Found { version, is })
}
