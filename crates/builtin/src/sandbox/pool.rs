//! The pool: children that are started when they are needed and let go when they are not.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::frame::{HEAD_BYTES, Kind, head, read_head};
use super::{REQUEST_BYTES_MAX, RESULT_BYTES_MAX};

/// How long a child may take beyond its limit, to say so itself.
const GRACE: Duration = Duration::from_millis(500);

/// How the pool works.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The program and words that a child is started with: it calls [`serve`](super::serve).
    pub command: Vec<OsString>,
    /// Children at once.
    pub processes_max: usize,
    /// How long an evaluation may take.
    pub limit: Duration,
    /// How long a child without work is kept.
    pub idle: Duration,
}

/// Why an evaluation has no value.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The script is at fault, in its engine's words.
    #[error("script: {0}")]
    Script(String),
    /// A bound was reached.
    #[error("limit: {0}")]
    Limit(String),
    /// The world is at fault: another attempt may succeed.
    #[error("failed to run a sandbox")]
    Unavailable(#[source] io::Error),
}

/// Evaluates scripts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: PoolSettings,
    permits: Semaphore,
    /// The one used last is at the end, and is used first.
    idle: Mutex<Vec<(Sandbox, Instant)>>,
    /// Whether somebody looks after the idle ones.
    is_swept: AtomicBool,
}

/// A child. Dropped, it is killed.
#[derive(Debug)]
struct Sandbox {
    _child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Pool {
    /// A pool without children: the first evaluation starts the first one.
    #[must_use]
    pub fn new(settings: PoolSettings) -> Pool {
        let permits = Semaphore::new(settings.processes_max.max(1));
        let (idle, is_swept) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Pool { inner: Arc::new(Inner { settings, permits, idle, is_swept }) }
    }

    /// The result of an evaluation, both JSON; see the [crate](crate).
    pub async fn evaluate(&self, request: &[u8]) -> Result<Bytes, SandboxError> {
        if request.len() > REQUEST_BYTES_MAX {
            let most = REQUEST_BYTES_MAX >> 20;
            return Err(SandboxError::Limit(format!("the evaluation is larger than {most} MiB")));
        }
        // Never closed, so there always is a permit to come.
        let _permit = self.inner.permits.acquire().await;
        let idle = self.idle().pop();
        let mut sandbox = match idle {
            Some((sandbox, _)) => sandbox,
            None => self.start().map_err(SandboxError::Unavailable)?,
        };
        let limit = self.inner.settings.limit;
        let answer = match timeout(limit + GRACE, sandbox.ask(request, limit)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                return Err(SandboxError::Limit(
                    "the evaluation ended its process: too much memory, or calls too deep"
                        .to_owned(),
                ));
            }
            Err(_) => {
                let limit_ms = limit.as_millis();
                return Err(SandboxError::Limit(format!(
                    "the script took longer than {limit_ms} ms"
                )));
            }
        };
        self.keep(sandbox);
        answer
    }

    /// Children that wait for work.
    #[must_use]
    pub fn idle_processes(&self) -> usize {
        self.idle().len()
    }

    fn start(&self) -> io::Result<Sandbox> {
        let mut words = self.inner.settings.command.iter();
        let program = words.next().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(words)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Sandbox { _child: child, input, output })
    }

    fn keep(&self, sandbox: Sandbox) {
        self.idle().push((sandbox, Instant::now()));
        if !self.inner.is_swept.swap(true, Ordering::AcqRel) {
            tokio::spawn(sweep(Arc::downgrade(&self.inner)));
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Sandbox, Instant)>> {
        self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of children without work, until there are none.
async fn sweep(pool: std::sync::Weak<Inner>) {
    loop {
        let Some(inner) = pool.upgrade() else { return };
        let idle = inner.settings.idle;
        let left = {
            let mut children = inner.idle.lock().unwrap_or_else(PoisonError::into_inner);
            children.retain(|(_, since)| since.elapsed() < idle);
            if children.is_empty() {
                inner.is_swept.store(false, Ordering::Release);
                return;
            }
            children.iter().map(|(_, since)| idle.saturating_sub(since.elapsed())).min()
        };
        drop(inner);
        sleep(left.unwrap_or(idle)).await;
    }
}

impl Sandbox {
    async fn ask(
        &mut self,
        request: &[u8],
        limit: Duration,
    ) -> io::Result<Result<Bytes, SandboxError>> {
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        self.input.write_all(&head(limit_ms, request.len())).await?;
        self.input.write_all(request).await?;
        self.input.flush().await?;
        let mut first = [0; HEAD_BYTES];
        self.output.read_exact(&mut first).await?;
        let (kind, length) = read_head(first);
        let kind = Kind::of(kind).ok_or(io::ErrorKind::InvalidData)?;
        // The head of a value is a little more than the value.
        if length > RESULT_BYTES_MAX + 1024 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).await?;
        let text = |body: Vec<u8>| String::from_utf8_lossy(&body).into_owned();
        Ok(match kind {
            Kind::Value => Ok(body.into()),
            Kind::Script => Err(SandboxError::Script(text(body))),
            Kind::Limit => Err(SandboxError::Limit(text(body))),
        })
    }
}
