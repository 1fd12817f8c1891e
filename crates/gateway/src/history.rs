//! Searches in the read model, for faces: on threads that may block, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use windlass_history::search::{ProcessInstance, Task, Workflow};
use windlass_history::{Entity, Found, Gap, History, HistoryError, Search, Status, WorkflowSearch};

use crate::error::GatewayError;
use crate::gateway::Gateway;

/// Searches at once; further ones wait for a place.
const SEARCHES_MAX: usize = 2;
/// Searches that may wait for a place; further ones are refused.
const SEARCHES_WAITING_MAX: usize = 1_000;

/// The way to the read model; cheap to clone.
#[derive(Clone)]
pub struct Searches {
    history: History,
    /// Those that run.
    places: Arc<Semaphore>,
    /// Those that run or wait.
    queue: Arc<Semaphore>,
}

/// Why a search found nothing.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The server runs without a history.
    #[error("the history is switched off")]
    Off,
    /// Too many searches wait.
    #[error("too many searches: {max} are waiting, try again later")]
    Overloaded {
        /// How many may.
        max: usize,
    },
    /// The history refused it, or failed.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The partition did not say how far it is.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The search panicked.
    #[error("the search has failed: this is a defect of Windlass")]
    Panicked,
}

impl Searches {
    pub(crate) fn new(history: History) -> Searches {
        Searches {
            history,
            places: Arc::new(Semaphore::new(SEARCHES_MAX)),
            queue: Arc::new(Semaphore::new(SEARCHES_MAX + SEARCHES_WAITING_MAX)),
        }
    }

    /// Runs a search.
    pub async fn search<E: Entity>(
        &self,
        search: Search<E::Field>,
    ) -> Result<Found<E>, SearchError> {
        self.run(move |history| history.search(&search)).await
    }

    /// Reads one, by its key.
    pub async fn get<E: Entity>(&self, key: u64) -> Result<Option<E>, SearchError> {
        self.run(move |history| history.get(key)).await
    }

    /// Finds workflows in Conductor's words: how many there are, and a page.
    pub async fn search_workflows(
        &self,
        search: WorkflowSearch,
    ) -> Result<(u64, Vec<Workflow>), SearchError> {
        self.run(move |history| history.search_workflows(&search)).await
    }

    /// Finds workflows that have tasks which pass: how many there are, and a page.
    pub async fn search_workflows_by_tasks(
        &self,
        search: WorkflowSearch,
    ) -> Result<(u64, Vec<Workflow>), SearchError> {
        self.run(move |history| history.search_workflows_by_tasks(&search)).await
    }

    /// Finds tasks in Conductor's words: how many there are, and a page.
    pub async fn search_tasks(
        &self,
        search: WorkflowSearch,
    ) -> Result<(u64, Vec<Task>), SearchError> {
        self.run(move |history| history.search_tasks(&search)).await
    }

    /// A workflow that the core has let go of, as Conductor's clients see it: JSON text.
    pub async fn workflow_json(
        &self,
        key: u64,
        with_tasks: bool,
    ) -> Result<Option<String>, SearchError> {
        self.run(move |history| history.workflow_json(key, with_tasks)).await
    }

    /// A task of such a workflow: JSON text.
    pub async fn task_json(&self, key: u64) -> Result<Option<String>, SearchError> {
        self.run(move |history| history.task_json(key)).await
    }

    /// All of a variable's value, by its key.
    pub async fn variable_value(&self, key: u64) -> Result<Option<String>, SearchError> {
        self.run(move |history| history.variable_value(key)).await
    }

    /// The name and the bytes of the file that a definition stands in.
    pub async fn resource(
        &self,
        definition: u64,
    ) -> Result<Option<(String, Vec<u8>)>, SearchError> {
        self.run(move |history| history.resource(definition)).await
    }

    /// The instance and those that called it, the outermost first.
    pub async fn call_chain(&self, instance: u64) -> Result<Vec<ProcessInstance>, SearchError> {
        /// Instances that call one another.
        const DEPTH_MAX: usize = 1_000;
        self.run(move |history| {
            let mut chain = Vec::new();
            let mut next = Some(instance);
            while let Some(key) = next.filter(|_| chain.len() < DEPTH_MAX) {
                let Some(found) = history.get::<ProcessInstance>(key)? else { break };
                next = found.parent;
                chain.push(found);
            }
            chain.reverse();
            Ok(chain)
        })
        .await
    }

    /// What the history lacks.
    pub async fn gaps(&self) -> Result<Vec<Gap>, SearchError> {
        self.run(|history| history.gaps()).await
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        self.history.status()
    }

    /// Waits until the history has everything up to this lsn.
    pub async fn wait_for(&self, lsn: u64, at_most: Duration) -> Result<(), SearchError> {
        let (sender, covered) = oneshot::channel();
        self.history.when_covered(lsn, move || {
            // Whoever waited may have given up.
            let _gone = sender.send(());
        });
        match timeout(at_most, covered).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                let covered = self.history.covered();
                Err(HistoryError::NotYet { wanted: lsn, covered }.into())
            }
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&History) -> windlass_history::Result<T> + Send + 'static,
    ) -> Result<T, SearchError> {
        let Ok(_waiting) = Arc::clone(&self.queue).try_acquire_owned() else {
            return Err(SearchError::Overloaded { max: SEARCHES_WAITING_MAX });
        };
        let place = Arc::clone(&self.places).acquire_owned().await;
        let history = self.history.clone();
        let asked = spawn_blocking(move || {
            let answer = ask(&history);
            drop(place);
            answer
        });
        Ok(asked.await.map_err(|_| SearchError::Panicked)??)
    }
}

impl Gateway {
    /// The read model, if the server has one.
    pub fn searches(&self) -> Result<&Searches, SearchError> {
        self.shared.searches.as_ref().ok_or(SearchError::Off)
    }

    /// Waits until the history has everything that was answered before this call: what a search
    /// finds after it includes what the caller wrote.
    pub async fn searches_after_now(&self, at_most: Duration) -> Result<&Searches, SearchError> {
        let searches = self.searches()?;
        // The newest record and not the newest durable one: what was answered under
        // `--durability interval` may still be on its way.
        let lsn = self.status().await?.lsn;
        searches.wait_for(lsn, at_most).await?;
        Ok(searches)
    }
}
