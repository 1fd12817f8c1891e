//! The three kinds of handlers, brought into one form, and how they are run.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::convert::to_json;
use crate::failure::Failure;
use crate::flight::{Answer, Flight, panicked};
use crate::job::{Job, from_json};

/// A handler at work.
pub(crate) type Running = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Any handler.
pub(crate) type Handler = Arc<dyn Fn(Job<Bytes>) -> Running + Send + Sync>;

/// `async fn(Job<T>) -> Result<R, E>`.
pub(crate) fn typed<T, R, E, F, Fut>(handle: F) -> Handler
where
    T: DeserializeOwned + Send + 'static,
    R: Serialize,
    E: Into<Failure>,
    F: Fn(Job<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
{
    Arc::new(move |job| match read(job) {
        Ok(job) => {
            let handling = handle(job);
            Box::pin(async move { handling.await.map_err(Into::into).and_then(|r| write(&r)) })
        }
        Err(failure) => Box::pin(std::future::ready(Err(failure))),
    })
}

/// `fn(Job<T>) -> Result<R, E>` that may block.
pub(crate) fn blocking<T, R, E, F>(handle: F) -> Handler
where
    T: DeserializeOwned + Send + 'static,
    R: Serialize,
    E: Into<Failure>,
    F: Fn(Job<T>) -> Result<R, E> + Send + Sync + 'static,
{
    let handle = Arc::new(handle);
    Arc::new(move |job| {
        let handle = Arc::clone(&handle);
        let work = move || {
            let job = read(job)?;
            handle(job).map_err(Into::into).and_then(|result| write(&result))
        };
        Box::pin(async move {
            match tokio::task::spawn_blocking(work).await {
                Ok(answer) => answer,
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(_) => Err(Failure::release(std::time::Duration::ZERO)),
            }
        })
    })
}

/// `async fn(Job<Bytes>) -> Result<Bytes, E>`: bytes as they are, never copied.
pub(crate) fn raw<E, F, Fut>(handle: F) -> Handler
where
    E: Into<Failure>,
    F: Fn(Job<Bytes>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Bytes, E>> + Send + 'static,
{
    Arc::new(move |job| {
        let handling = handle(job);
        Box::pin(async move { handling.await.map_err(Into::into) })
    })
}

fn read<T: DeserializeOwned>(job: Job<Bytes>) -> Result<Job<T>, Failure> {
    let (payload, job) = job.split();
    match from_json(&payload) {
        Ok(payload) => Ok(job.with(payload)),
        // The same bytes will not read better next time.
        Err(error) => Err(Failure::permanent(format!("failed to read the payload: {error}"))),
    }
}

fn write(result: &impl Serialize) -> Answer {
    to_json(result).map_err(Failure::from)
}

/// A handler whose panic is its job's failure and nothing else's.
pub(crate) struct Guarded {
    running: Running,
    flight: Arc<Flight>,
}

impl Guarded {
    /// Calls the handler; it has not run yet.
    pub(crate) fn start(handler: &Handler, job: Job<Bytes>, flight: &Arc<Flight>) -> Self {
        let running = catch_unwind(AssertUnwindSafe(|| handler(job))).unwrap_or_else(|panic| {
            let failure = panicked(&flight.counters, &*panic);
            Box::pin(std::future::ready(Err(failure)))
        });
        Self { running, flight: Arc::clone(flight) }
    }

    /// Runs it up to its first wait. Many handlers have none, and so need no task of their own.
    pub(crate) fn run_now(&mut self) -> Option<Answer> {
        match Pin::new(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

impl Future for Guarded {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        // A handler that panicked is never polled again.
        match catch_unwind(AssertUnwindSafe(|| self.running.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(panicked(&self.flight.counters, &*panic))),
        }
    }
}
