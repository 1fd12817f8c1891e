//! The worker's connection: up, being opened, or waiting to be opened again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::error::{Error, RefusalKind};
use crate::flight::Flight;
use crate::metrics::add;
use crate::stream::{Received, WorkStream};
use crate::v1;
use crate::worker::WorkerEvent;

type Opening = Pin<Box<dyn Future<Output = Result<WorkStream, Error>> + Send>>;

pub(crate) struct Link {
    flight: Arc<Flight>,
    hello: v1::Hello,
    backoff: Backoff,
    state: State,
}

enum State {
    Down { until: Instant },
    Opening(Opening),
    // Boxed: by far the largest.
    Up(Box<WorkStream>),
}

/// What happened on a link.
pub(crate) enum LinkEvent {
    Received(Received),
    Opened(Result<WorkStream, Error>),
    Broken(Option<Error>),
    TimeToOpen,
}

impl Link {
    pub(crate) fn new(flight: Arc<Flight>, hello: v1::Hello) -> Self {
        let state = State::Down { until: Instant::now() };
        Self { flight, hello, backoff: Backoff::new(), state }
    }

    /// The next thing that happens. Loses nothing when dropped half way.
    pub(crate) async fn event(&mut self) -> LinkEvent {
        match &mut self.state {
            State::Down { until } => {
                sleep_until(*until).await;
                LinkEvent::TimeToOpen
            }
            State::Opening(opening) => LinkEvent::Opened(opening.await),
            State::Up(stream) => match stream.next().await {
                Ok(Some(received)) => LinkEvent::Received(received),
                Ok(None) => LinkEvent::Broken(None),
                Err(error) => LinkEvent::Broken(Some(error)),
            },
        }
    }

    /// Moves on; what a message brought is for the worker. An error is one that no retry heals.
    pub(crate) fn handle(
        &mut self,
        event: LinkEvent,
        observe: &dyn Fn(&WorkerEvent<'_>),
    ) -> Result<Option<Received>, Error> {
        match event {
            LinkEvent::Received(received) => {
                // It lives: only now, since a server may also accept streams and drop them.
                self.backoff.reset();
                return Ok(Some(received));
            }
            LinkEvent::TimeToOpen => {
                let outgoing = self.flight.attach(self.hello.clone());
                let flight = Arc::clone(&self.flight);
                self.state = State::Opening(Box::pin(async move {
                    WorkStream::open(&flight.client, Arc::clone(&flight.outbox), outgoing).await
                }));
            }
            LinkEvent::Opened(Ok(stream)) => {
                add(&self.flight.counters.connections, 1);
                observe(&WorkerEvent::Connected { address: self.flight.client.address() });
                self.state = State::Up(Box::new(stream));
            }
            LinkEvent::Opened(Err(error)) if is_final(&error) => return Err(error),
            LinkEvent::Opened(Err(error)) => self.down(Some(&error), observe),
            LinkEvent::Broken(Some(error)) if is_final(&error) => return Err(error),
            LinkEvent::Broken(error) => {
                add(&self.flight.counters.connections_lost, 1);
                self.down(error.as_ref(), observe);
            }
        }
        Ok(None)
    }

    fn down(&mut self, error: Option<&Error>, observe: &dyn Fn(&WorkerEvent<'_>)) {
        let wait = self.backoff.next();
        observe(&WorkerEvent::Disconnected { error, retry_in: wait });
        self.state = State::Down { until: Instant::now() + wait };
    }
}

/// Trying again would be told the same.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Refused(refusal) => match refusal.kind {
            RefusalKind::InvalidArgument
            | RefusalKind::NotFound
            | RefusalKind::AlreadyExists
            | RefusalKind::FailedPrecondition
            | RefusalKind::Denied
            | RefusalKind::Unimplemented => true,
            RefusalKind::ResourceExhausted | RefusalKind::Unavailable | RefusalKind::Internal => {
                false
            }
        },
        Error::Unreachable { .. } | Error::Protocol(_) => false,
        Error::Address { .. } | Error::Json(_) | Error::Stopped | Error::Invalid(_) => true,
    }
}
