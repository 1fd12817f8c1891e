//! A port: HTTP/1.1 and HTTP/2 without TLS on one listener, a bounded number of connections, and an
//! end in good order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::patience::{Expectant, FIRST_WORD_WAIT_MAX};

/// Calls and streams at once on one HTTP/2 connection.
const STREAMS_PER_CONNECTION_MAX: u32 = 10_000;
/// What a peer may send ahead on one stream, and on one connection.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// The largest frame of HTTP/2: fewer, larger frames for batches.
const FRAME_BYTES_MAX: u32 = 64 << 10;
/// How long the head of an HTTP/1.1 request may take.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// A silent HTTP/2 peer is asked for a sign of life this often, and given this long.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEP_ALIVE_WAIT_MAX: Duration = Duration::from_secs(20);
/// A pause after a failed accept: the usual reason is that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// One port.
pub(crate) struct Port {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    /// Connections at once.
    pub(crate) connections_max: usize,
    /// What waits to be written on one stream before it is asked for more. What is in there counts
    /// as sent.
    pub(crate) send_buffer_bytes_max: usize,
}

/// What happens next at the door.
enum Next {
    Connection(io::Result<TcpStream>),
    Close,
}

/// Serves until `closing` turns true, then waits for open connections, at most `wait_max`.
pub(crate) async fn run(port: Port, mut closing: watch::Receiver<bool>, wait_max: Duration) {
    let Port { listener, router, connections_max, send_buffer_bytes_max } = port;
    let places = Arc::new(Semaphore::new(connections_max));
    let graceful = GracefulShutdown::new();
    let builder = builder(send_buffer_bytes_max);
    loop {
        let next = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Next::Close,
            accepted = accept(&listener, &places) => accepted,
        };
        let stream = match next {
            Next::Close => break,
            Next::Connection(Ok(stream)) => stream,
            Next::Connection(Err(error)) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        // Answers are small and must not wait for company.
        let _best_effort = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let stream = TokioIo::new(Expectant::new(stream, FIRST_WORD_WAIT_MAX));
        let connection = builder.serve_connection(stream, service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "a connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if timeout(wait_max, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open at the end of the shutdown time");
    }
}

async fn accept(listener: &TcpListener, places: &Semaphore) -> Next {
    // Only this loop takes places, so one that is free now is free after the accept.
    match places.acquire().await {
        Ok(place) => drop(place),
        Err(_) => return Next::Close,
    }
    Next::Connection(listener.accept().await.map(|(stream, _)| stream))
}

fn builder(send_buffer_bytes_max: usize) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_send_buf_size(send_buffer_bytes_max)
        .keep_alive_interval(KEEP_ALIVE_EVERY)
        .keep_alive_timeout(KEEP_ALIVE_WAIT_MAX);
    builder
}
