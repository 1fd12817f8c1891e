//! Containers that may be there: known by a mark, found by their labels, removed by force.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};

use crate::docker::daemon::{self, DockerError};
use crate::docker::{ATTEMPT_LABEL, SIDE_LABEL};
use crate::durable;
use crate::process::Side;
use crate::process::sweep::until_gone;

/// The name of a mark.
const MARK: &str = "container";

/// Says that a side of an attempt may have a container: made, durably, before it has one.
#[derive(Debug)]
pub struct Mark(PathBuf);

impl Mark {
    /// Makes it in the folder of a side.
    ///
    /// # Errors
    /// If it cannot be written: then nothing must be started.
    pub fn make(folder: &Path) -> io::Result<Self> {
        let path = folder.join(MARK);
        durable::write(&path, b"")?;
        Ok(Self(path))
    }

    /// It is known that there is none.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Removes what an attempt has left, if a mark in its folder says that there may be something. Says whether
/// all is gone.
#[must_use]
pub fn sweep_marked(folder: &Path, attempt: &str, patience: Duration) -> bool {
    let marks = [Side::Source, Side::Destination].map(|side| folder.join(side.name()).join(MARK));
    if !marks.iter().any(|mark| mark.exists()) {
        return true;
    }
    let is_gone = sweep(attempt, None, patience);
    if is_gone {
        marks.into_iter().for_each(|mark| Mark(mark).remove());
    }
    is_gone
}

/// The containers of an attempt, or of one side of it, whether they run or not.
///
/// # Errors
/// If the daemon does not say: then nobody knows that there are none.
pub fn find(attempt: &str, side: Option<Side>) -> Result<Vec<String>, DockerError> {
    daemon::block_on(async {
        let docker = daemon::connect().await?;
        let mut labels = vec![format!("{ATTEMPT_LABEL}={attempt}")];
        labels.extend(side.map(|side| format!("{SIDE_LABEL}={}", side.name())));
        let filters = HashMap::from([("label".to_owned(), labels)]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let list = docker.list_containers(Some(options)).await;
        let list = list.map_err(DockerError::refused("list the containers"))?;
        Ok(list.into_iter().filter_map(|container| container.id).collect())
    })
}

/// Removes what is found, again and again until nothing is, or `patience` is over. Says whether all is gone.
#[must_use]
pub fn sweep(attempt: &str, side: Option<Side>, patience: Duration) -> bool {
    let end = |id: String| {
        // What is gone already, or about to, is what we want; the next look tells.
        let _ = daemon::block_on(async { remove(&daemon::connect().await?, &id).await });
    };
    until_gone(patience, || find(attempt, side), end)
}

/// Kills a container, and forgets it with its volumes.
pub(super) async fn remove(docker: &bollard::Docker, id: &str) -> Result<(), DockerError> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match docker.remove_container(id, Some(options)).await {
        Ok(()) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
        Err(error) => Err(DockerError::refused("remove the container")(error)),
    }
}
