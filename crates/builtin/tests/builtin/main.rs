//! The built-in workers from outside: sandboxes as processes, requests over real sockets.

#![allow(clippy::unwrap_used, reason = "a test")]

mod differential;
mod requests;
mod sandboxes;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_builtin::sandbox::{Pool, PoolSettings, SandboxError};

/// The example of this crate that is a sandbox; it is built with the tests.
fn sandbox() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/sandbox")
}

fn pool(processes_max: usize, limit: Duration) -> Pool {
    let command = vec![sandbox().into()];
    Pool::new(PoolSettings { command, processes_max, limit, idle: Duration::from_millis(300) })
}

async fn evaluate(
    pool: &Pool,
    language: &str,
    form: &str,
    script: &str,
    input: &Value,
) -> Result<Value, SandboxError> {
    let request = json!({
        "language": language, "form": form, "script": script, "bindings": {"$": input},
    });
    let answer = pool.evaluate(request.to_string().as_bytes()).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}
