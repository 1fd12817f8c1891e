//! `GET /windlass/v1/backup`: the state of now as one checksummed stream, while work goes on. A
//! stream that was cut short has no trailer, and `windlass restore --check` says so.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use windlass_checkpoint::backup::write_backup;
use windlass_partition::Checkpoints;

/// Backups under way at once.
const BACKUPS_MAX: usize = 1;
/// Parts that wait for the network.
const PARTS_AHEAD_MAX: usize = 8;
/// Bytes of a part.
const PART_BYTES: usize = 256 << 10;

/// The route.
pub(crate) fn router(checkpoints: Checkpoints) -> Router {
    let places = Arc::new(Semaphore::new(BACKUPS_MAX));
    Router::new().route("/windlass/v1/backup", get(backup)).with_state((checkpoints, places))
}

async fn backup(State((checkpoints, places)): State<(Checkpoints, Arc<Semaphore>)>) -> Response {
    let Ok(place) = places.try_acquire_owned() else {
        let problem = serde_json::json!({
            "type": "about:blank",
            "title": "Too Many Requests",
            "status": 429,
            "code": "exhausted",
            "detail": "another backup is under way: try again when it has ended",
        });
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        return (StatusCode::TOO_MANY_REQUESTS, kind, problem.to_string()).into_response();
    };
    let (parts, stream) = mpsc::channel(PARTS_AHEAD_MAX);
    tokio::task::spawn_blocking(move || write(&checkpoints, parts, place));
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    (kind, Body::from_stream(ReceiverStream::new(stream))).into_response()
}

type Part = Result<Bytes, io::Error>;

fn write(checkpoints: &Checkpoints, parts: mpsc::Sender<Part>, place: OwnedSemaphorePermit) {
    let mut output = Parts { parts, part: Vec::new() };
    let written =
        checkpoints.snapshot().and_then(|view| write_backup(&*view, &mut output, |_progress| {}));
    let end = match written {
        Ok(_summary) => output.send(),
        Err(error) => {
            let words = io::Error::other(error.to_string());
            output.parts.blocking_send(Err(words)).map_err(gone)
        }
    };
    if end.is_err() {
        tracing::warn!("a backup was abandoned by its client");
    }
    drop(place);
}

/// Gathers what is written into parts of the body.
struct Parts {
    parts: mpsc::Sender<Part>,
    part: Vec<u8>,
}

impl Parts {
    fn send(&mut self) -> io::Result<()> {
        if self.part.is_empty() {
            return Ok(());
        }
        let part = Bytes::from(std::mem::take(&mut self.part));
        self.parts.blocking_send(Ok(part)).map_err(gone)
    }
}

impl io::Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.part.extend_from_slice(bytes);
        if self.part.len() >= PART_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

fn gone<T>(_unsent: mpsc::error::SendError<T>) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone")
}
