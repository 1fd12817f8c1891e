//! The process that stands in for a container: this program again, as a helper.
//!
//! It makes the container, forwards its streams and SIGTERM, removes it, and ends with its exit code. Killed, it
//! leaves the container to the sweep of whoever killed it, or to the guard. What it says itself goes to its
//! standard error, and so to the end of the connector's.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfig, HostConfigLogConfig, ImageConfig,
    ResourcesUlimits,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, KillContainerOptionsBuilder, UploadToContainerOptionsBuilder,
    WaitContainerOptions,
};
use bollard::{Docker, body_full};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_stream::{Stream, StreamExt as _};

use crate::docker::daemon::{self, DockerError};
use crate::docker::{ATTEMPT_LABEL, Image, SIDE_LABEL, sweep};
use crate::process::environment::PROXIES;
use crate::process::exit::OOM_KILLED;

/// Where a container finds the files of its connector.
pub const FILES: &str = "/windlass";
/// The task of a stand-in: a variable, for its environment has secrets that others would read in its words.
pub(crate) const TASK: &str = "WINDLASS_CONTAINER";
/// What a container starts where its image has no ENTRYPOINT, as in Kubernetes.
const BY_VARIABLE: [&str; 4] =
    ["/bin/sh", "-c", "eval \"$AIRBYTE_ENTRYPOINT \\\"\\$@\\\"\"", "connector"];
/// Bytes that go to a container at once.
const BUFFER_BYTES: usize = 256 << 10;
/// What a container ends with that was out of memory.
const KILLED: i64 = 137;

/// Everything that a container is started with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) image: Image,
    pub(crate) attempt: String,
    pub(crate) side: String,
    /// Behind the entry point. Those that name one of `files` are changed to what it is called in there.
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// The folder whose files the container gets.
    pub(crate) files: PathBuf,
    pub(crate) has_input: bool,
    pub(crate) memory_bytes_max: Option<u64>,
    pub(crate) cpu_seconds_max: Option<u64>,
    pub(crate) files_max: u64,
}

/// Runs a container to its end, and returns its exit code.
pub(crate) fn stand_in() -> Result<u8, String> {
    let task = std::env::var(TASK).map_err(|_| "a stand-in has no task".to_owned())?;
    let task: Task = serde_json::from_str(&task).map_err(|error| error.to_string())?;
    let code = daemon::block_on(run(&task)).map_err(|error| error.to_string())?;
    // There are no others.
    Ok(u8::try_from(code).unwrap_or(1))
}

async fn run(task: &Task) -> Result<i64, DockerError> {
    let world =
        |what| move |error: io::Error| DockerError::Refused { what, why: error.to_string() };
    // From now on a SIGTERM waits until the container is there.
    let asked = signal(SignalKind::terminate()).map_err(world("wait for signals"))?;
    let docker = daemon::connect().await?;
    let id = create(&docker, task).await?;
    let ended = start(&docker, task, &id, asked).await;
    let gone = sweep::remove(&docker, &id).await;
    let ended = ended?;
    gone?;
    Ok(judge(task, &ended))
}

async fn create(docker: &Docker, task: &Task) -> Result<String, DockerError> {
    let image = docker.inspect_image(&task.image.name).await;
    let image = image.map_err(DockerError::refused("look for the image"))?;
    let entry = entry_of(image.config.unwrap_or_default());
    let entry = entry.ok_or_else(|| DockerError::NoConnector(task.image.name.clone()))?;
    let made = docker.create_container(None, body(task, entry)).await;
    Ok(made.map_err(DockerError::refused("make the container"))?.id)
}

/// Its own entry point as `Some(None)`, or what is to be instead; `None` if there is no way in.
#[expect(clippy::option_option, reason = "no way in, and the image's own way, are two answers")]
fn entry_of(image: ImageConfig) -> Option<Option<Vec<String>>> {
    if image.entrypoint.is_some_and(|words| !words.is_empty()) {
        return Some(None);
    }
    let variables = image.env.unwrap_or_default();
    let named = variables.iter().any(|entry| {
        entry.strip_prefix("AIRBYTE_ENTRYPOINT=").is_some_and(|words| !words.trim().is_empty())
    });
    named.then(|| Some(BY_VARIABLE.map(str::to_owned).to_vec()))
}

fn body(task: &Task, entrypoint: Option<Vec<String>>) -> ContainerCreateBody {
    let labels = [(ATTEMPT_LABEL, &task.attempt), (SIDE_LABEL, &task.side)];
    let variables = task.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let words = task.words.iter().map(|word| within(&task.files, word));
    ContainerCreateBody {
        image: Some(task.image.name.clone()),
        entrypoint,
        cmd: Some(words.collect()),
        env: Some(variables.collect()),
        labels: Some(labels.map(|(name, value)| (name.to_owned(), value.clone())).into()),
        attach_stdin: Some(task.has_input),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(task.has_input),
        // Closed once we close our end.
        stdin_once: Some(task.has_input),
        host_config: Some(host(task)),
        ..ContainerCreateBody::default()
    }
}

fn host(task: &Task) -> HostConfig {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let limit = |name: &str, bound: u64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(number(bound)),
        hard: Some(number(bound)),
    };
    let mut ulimits = vec![limit("core", 0), limit("nofile", task.files_max)];
    ulimits.extend(task.cpu_seconds_max.map(|seconds| limit("cpu", seconds)));
    let memory = task.memory_bytes_max.map(number);
    #[expect(clippy::cast_possible_truncation, reason = "as many processors as no machine has")]
    let nano_cpus = task.image.cpus.map(|cpus| (cpus * 1e9) as i64);
    HostConfig {
        // Something has to reap what connectors leave, and to hand on signals.
        init: Some(true),
        memory,
        // As much with swap as without it: none.
        memory_swap: memory,
        nano_cpus,
        network_mode: task.image.network.clone(),
        binds: Some(task.image.mounts.clone()),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ulimits: Some(ulimits),
        ..HostConfig::default()
    }
}

/// What a file is called in the container; other words stay.
fn within(files: &Path, word: &str) -> String {
    match Path::new(word).strip_prefix(files).ok().and_then(Path::to_str) {
        Some(name) if !name.is_empty() => format!("{FILES}/{name}"),
        Some(_) | None => word.to_owned(),
    }
}

async fn start(
    docker: &Docker,
    task: &Task,
    id: &str,
    mut asked: Signal,
) -> Result<ContainerInspectResponse, DockerError> {
    let archive = archive(&task.files).map_err(|error| DockerError::Refused {
        what: "read the connector's files",
        why: error.to_string(),
    })?;
    let options = UploadToContainerOptionsBuilder::default().path("/").build();
    let sent = docker.upload_to_container(id, Some(options), body_full(archive.into())).await;
    sent.map_err(DockerError::refused("give the container its files"))?;
    // Attached before it says anything.
    let options = AttachContainerOptionsBuilder::default()
        .stream(true)
        .stdin(task.has_input)
        .stdout(true)
        .stderr(true)
        .build();
    let attached = docker.attach_container(id, Some(options)).await;
    let attached = attached.map_err(DockerError::refused("attach to the container"))?;
    let started = docker.start_container(id, None).await;
    started.map_err(DockerError::refused("start the container"))?;
    let (daemon, name) = (docker.clone(), id.to_owned());
    let signals = tokio::spawn(async move {
        while asked.recv().await.is_some() {
            let term = KillContainerOptionsBuilder::default().signal("SIGTERM").build();
            // One that has ended needs none.
            let _ = daemon.kill_container(&name, Some(term)).await;
        }
    });
    let input = task.has_input.then(|| tokio::spawn(feed(attached.input)));
    let heard = hear(attached.output).await;
    if let Err(error) = heard {
        // Nobody listens any more: it has no business either.
        let _ = sweep::remove(docker, id).await;
        return Err(DockerError::Refused {
            what: "hand on what the container says",
            why: error.to_string(),
        });
    }
    let ended = ended(docker, id).await;
    signals.abort();
    if let Some(input) = input {
        input.abort();
    }
    ended
}

/// Our standard input to the container's.
async fn feed(mut input: Pin<Box<dyn AsyncWrite + Send>>) -> io::Result<()> {
    let mut from = Receiver::from_owned_fd(own(io::stdin())?)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        input.write_all(bytes).await?;
    }
    input.shutdown().await
}

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// What the container says, to ours.
async fn hear(mut output: Output) -> io::Result<()> {
    let mut out = Sender::from_owned_fd(own(io::stdout())?)?;
    let mut errors = Sender::from_owned_fd(own(io::stderr())?)?;
    while let Some(said) = output.next().await {
        match said.map_err(io::Error::other)? {
            LogOutput::StdOut { message } | LogOutput::Console { message } => {
                out.write_all(&message).await?;
            }
            LogOutput::StdErr { message } => errors.write_all(&message).await?,
            LogOutput::StdIn { .. } => {}
        }
    }
    Ok(())
}

fn own(stream: impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

/// Its output is over; so will it be.
async fn ended(docker: &Docker, id: &str) -> Result<ContainerInspectResponse, DockerError> {
    let mut waits = std::pin::pin!(docker.wait_container(id, None::<WaitContainerOptions>));
    // Any code but 0 comes as an error; what it was is asked for below.
    let _ = waits.next().await;
    let state = docker.inspect_container(id, None).await;
    state.map_err(DockerError::refused("ask how the container ended"))
}

fn judge(task: &Task, ended: &ContainerInspectResponse) -> i64 {
    let state = ended.state.clone().unwrap_or_default();
    let code = state.exit_code.unwrap_or(1);
    if state.oom_killed == Some(true) && code != 0 {
        let bound = task
            .memory_bytes_max
            .map_or_else(String::new, |bytes| format!(": it has {} MiB", bytes >> 20));
        let _ = writeln!(io::stderr(), "the container was out of memory {OOM_KILLED}{bound}");
        return KILLED;
    }
    code
}

/// The files of a folder, and their folder, for a container that has another user and another root.
fn archive(folder: &Path) -> io::Result<Vec<u8>> {
    let mut archive = Vec::new();
    let top = FILES.trim_start_matches('/');
    member(&mut archive, &format!("{top}/"), b'5', &[]);
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The mark is no file of the connector's.
        if path.is_file() && name.ends_with(".json") {
            member(&mut archive, &format!("{top}/{name}"), b'0', &std::fs::read(&path)?);
        }
    }
    archive.resize(archive.len() + 2 * BLOCK_BYTES, 0);
    Ok(archive)
}

const BLOCK_BYTES: usize = 512;

/// One of a tar: a header of 512 bytes in the format `ustar`, then the bytes, filled up to a whole block.
/// Everybody in the container may read it; a folder may be written to.
fn member(archive: &mut Vec<u8>, name: &str, kind: u8, bytes: &[u8]) {
    let mode = if kind == b'5' { "0000777" } else { "0000444" };
    let mut header = [0_u8; BLOCK_BYTES];
    let mut put = |at: usize, text: &[u8]| {
        if let Some(field) = header.get_mut(at..at + text.len()) {
            field.copy_from_slice(text);
        }
    };
    put(0, name.as_bytes());
    put(100, mode.as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", bytes.len()).as_bytes());
    put(136, b"00000000000");
    // The sum is taken with spaces in its own place.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    if let Some(field) = header.get_mut(148..156) {
        field.copy_from_slice(sum.as_bytes());
    }
    archive.extend(header);
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK_BYTES), 0);
}

/// What a container gets of our environment, before its own: the ways out of this network.
pub(crate) fn handed_on() -> HashMap<String, String> {
    let set = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    PROXIES.iter().filter_map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_other_names_in_a_container() {
        let files = Path::new("/data/attempts/a/work/source");
        let word = |word: &str| within(files, word);
        assert_eq!(word("/data/attempts/a/work/source/config.json"), "/windlass/config.json");
        for same in ["--config", "read", "/data/attempts/a/work/source", "/etc/passwd"] {
            assert_eq!(word(same), same);
        }
    }

    #[test]
    fn ways_into_an_image() {
        let words = |words: &[&str]| Some(words.iter().map(|it| (*it).to_owned()).collect());
        let image = |entry: &[&str], env: &[&str]| ImageConfig {
            entrypoint: words(entry),
            env: words(env),
            ..ImageConfig::default()
        };
        assert_eq!(entry_of(image(&["x"], &[])), Some(None));
        let by_variable = entry_of(image(&[], &["A=1", "AIRBYTE_ENTRYPOINT=python /x.py"]));
        assert!(matches!(by_variable, Some(Some(words)) if words.len() == 4));
        for none in [image(&[], &["AIRBYTE_ENTRYPOINT= "]), ImageConfig::default()] {
            assert_eq!(entry_of(none), None);
        }
    }

    /// By the tar of this machine, which knows the format better than we do.
    #[test]
    fn an_archive_is_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), "{\"a\":1}").unwrap();
        std::fs::write(folder.path().join("container"), "").unwrap();
        let file = folder.path().join("x.tar");
        std::fs::write(&file, archive(folder.path()).unwrap()).unwrap();
        let tar = |words: &[&str]| {
            let said = std::process::Command::new("tar").args(words).arg("-f").arg(&file).output();
            let said = said.unwrap();
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
            String::from_utf8(said.stdout).unwrap()
        };
        assert_eq!(tar(&["-t"]), "windlass/\nwindlass/config.json\n");
        assert_eq!(tar(&["-x", "-O"]), "{\"a\":1}");
    }
}
