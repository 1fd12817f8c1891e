//! A worker that describes files: size, SHA-256, lines, and what kind of file it seems to be. The
//! demo (`cargo xtask demo`) runs several of it.
//!
//! ```text
//! windlass job create describe '{"path": "/etc/hostname"}'
//! cargo run --release -p windlass-worker --example describe
//! ```
//!
//! `WINDLASS_SERVER`, `WINDLASS_QUEUE` (describe), `WINDLASS_WORKER` and `WINDLASS_CONCURRENCY` say
//! where and how. A payload may ask for trouble: `"fail_until_attempt": 3` fails the first two
//! attempts.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windlass_worker::{Client, Failure, Job, Worker, WorkerEvent};

/// Read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// How often a handler says how far it is.
const PROGRESS_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Wanted {
    path: PathBuf,
    #[serde(default)]
    fail_until_attempt: u32,
}

#[derive(Serialize)]
struct Description {
    bytes: u64,
    sha256: String,
    lines: u64,
    kind: &'static str,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::lazy(setting("WINDLASS_SERVER", "http://127.0.0.1:8080"))?;
    let worker = Worker::builder(client)
        .queue(setting("WINDLASS_QUEUE", "describe"))
        .worker(setting("WINDLASS_WORKER", "describe-rust"))
        .concurrency(setting("WINDLASS_CONCURRENCY", "4").parse()?)
        .blocking_handler(describe)
        .observe(|event| {
            if let WorkerEvent::Refused(refused) = event {
                eprintln!("job {}: {}", refused.result.key, refused.refusal);
            }
        })
        .build()?;
    let drained = worker.run_until(stop_asked()).await?;
    println!("{} completed, {} failed", drained.metrics.completed, drained.metrics.failed);
    Ok(())
}

/// Ctrl-C, or the signal of a service manager.
async fn stop_asked() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn describe(job: Job<Wanted>) -> Result<Description, Failure> {
    if job.attempt() < job.payload.fail_until_attempt {
        return Err(Failure::new(format!("attempt {} fails as asked", job.attempt())));
    }
    let path = &job.payload.path;
    match read(&job, path) {
        Ok(description) => Ok(description),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::permanent(format!("{} does not exist", path.display())))
        }
        Err(error) => Err(Failure::new(format!("failed to read {}: {error}", path.display()))),
    }
}

fn read(job: &Job<Wanted>, path: &Path) -> io::Result<Description> {
    let mut file = File::open(path)?;
    let expected = file.metadata()?.len().max(1);
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut hash, mut lines, mut bytes) = (Sha256::new(), 0, 0);
    let mut kind = None;
    loop {
        let count = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else { break };
        kind.get_or_insert_with(|| guess(path, part));
        hash.update(part);
        lines += u64::try_from(part.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(0);
        let before = bytes / PROGRESS_BYTES;
        bytes += u64::try_from(count).unwrap_or(0);
        if bytes / PROGRESS_BYTES > before {
            let percent = u8::try_from((bytes * 100 / expected).min(100)).unwrap_or(100);
            job.context().progress(percent, "reading");
            if job.context().cancelled().is_cancelled() {
                return Err(io::Error::other("stopped on request"));
            }
        }
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Description { bytes, sha256, lines, kind: kind.unwrap_or("empty") })
}

/// By the first bytes, then by the name.
fn guess(path: &Path, first: &[u8]) -> &'static str {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x7fELF", "application/x-elf"),
        (b"\x89PNG", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"!<arch>\n", "application/x-archive"),
        (b"#!", "text/x-script"),
    ];
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| first.starts_with(magic)) {
        return kind;
    }
    match path.extension().and_then(|ending| ending.to_str()).unwrap_or_default() {
        "rs" => "text/rust",
        "html" | "htm" => "text/html",
        "md" => "text/markdown",
        "json" => "application/json",
        "toml" => "application/toml",
        "js" | "mjs" => "text/javascript",
        "py" => "text/x-python",
        "c" | "h" | "cpp" | "hpp" => "text/x-c",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ if first.contains(&0) => "application/octet-stream",
        _ => "text/plain",
    }
}
