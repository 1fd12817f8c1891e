//! The worker's stream: jobs one way; results, heartbeats and credits the other way.
//!
//! A task reads what the worker says; each message becomes one hand-over of commands. The transport
//! takes what has come together for the worker whenever it can send: jobs, answers and stops of
//! that moment leave as one message.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tonic::{Status, Streaming};
use windlass_gateway::request::{Answer, Refused};
use windlass_gateway::{Deliveries, Delivery, Gateway, GatewayError, StreamControl};
use windlass_record::command::Command;
use windlass_record::id::{JobKey, Token};

use super::status::refusal;
use super::{ask, show};
use crate::error::ApiError;
use crate::limit::{HELLO_WAIT_MAX, STREAM_BYTES_MAX, STREAM_JOBS_MAX};
use crate::{VERSION, activation, v1};

/// What one message of a worker was about; comes back with its answers.
struct Said {
    /// Jobs of its results, in order.
    results: Box<[JobKey]>,
    /// Its heartbeats, in order, behind the results.
    heartbeats: Box<[Token]>,
}

/// Opens a stream with its first message.
pub(super) async fn open(
    gateway: &Gateway,
    mut inbound: Streaming<v1::WorkerMessage>,
) -> Result<WorkStream, Status> {
    let first = timeout(HELLO_WAIT_MAX, inbound.message())
        .await
        .map_err(|_| ApiError::invalid("hello-missing", "no hello came on the work stream"))??;
    let Some(mut first) = first else {
        return Err(
            ApiError::invalid("hello-missing", "the work stream ended without hello").into()
        );
    };
    let hello = first.hello.take().ok_or_else(|| {
        ApiError::invalid("hello-missing", "the first message of a work stream must carry hello")
    })?;
    let lease_ms = (hello.lease_ms > 0).then_some(hello.lease_ms);
    let (tenant, queues) = (hello.tenant.into(), ask::names(hello.queues));
    let queues = activation::queues(gateway.limits(), tenant, Vec::new(), queues)?;
    let wanted = ask::wanted(queues, hello.worker, lease_ms);
    let welcome = v1::Welcome { version: VERSION.to_owned(), lease_ms: wanted.lease_ms };
    let lease_ms = wanted.lease_ms;

    let credits = std::mem::take(&mut first.credits);
    let (control, deliveries) = gateway.open_stream(wanted, credits).map_err(ApiError::from)?;
    let end = Arc::new(OnceLock::new());
    let reader = Reader { control, lease_ms, end: Arc::clone(&end) };
    let reading = tokio::spawn(reader.read(first, inbound)).abort_handle();
    Ok(WorkStream { deliveries, reading, end, welcome: Some(welcome), results: 0, over: false })
}

/// Reads what a worker says.
struct Reader {
    control: StreamControl<Said>,
    lease_ms: u64,
    /// Why the server ends the stream, if it does.
    end: Arc<OnceLock<Status>>,
}

impl Reader {
    /// Ends when the worker has closed its side, or said something that ends the stream.
    async fn read(self, first: v1::WorkerMessage, mut inbound: Streaming<v1::WorkerMessage>) {
        let mut message = first;
        loop {
            if let Err(status) = self.hear(message).await {
                return self.end_with(status);
            }
            message = match inbound.message().await {
                Ok(Some(message)) => message,
                Ok(None) => return,
                // The connection died, or a message could not be read.
                Err(status) => return self.end_with(status),
            };
            if message.hello.is_some() {
                let error =
                    ApiError::invalid("hello-repeated", "only the first message carries hello");
                return self.end_with(error.into());
            }
        }
    }

    async fn hear(&self, message: v1::WorkerMessage) -> Result<(), Status> {
        let v1::WorkerMessage { hello: _, credits, results, heartbeats, drain } = message;
        if !(results.is_empty() && heartbeats.is_empty()) {
            let (commands, said) = self.commands(results, heartbeats)?;
            self.control.results(commands, said).await.map_err(ApiError::from)?;
        }
        self.control.add_credits(credits).map_err(ApiError::from)?;
        if drain {
            self.control.drain();
        }
        Ok(())
    }

    fn commands(
        &self,
        results: Vec<v1::Result>,
        heartbeats: Vec<v1::Token>,
    ) -> Result<(Vec<Command>, Said), ApiError> {
        let keys = results.iter().map(|result| JobKey::from_raw(result.key)).collect();
        let tokens: Box<[Token]> = heartbeats.into_iter().map(token).collect();
        let mut commands = Vec::with_capacity(results.len() + tokens.len());
        for result in results {
            commands.push(ask::result(result)?);
        }
        commands.extend(tokens.iter().map(|&token| ask::extend(token.into(), self.lease_ms)));
        Ok((commands, Said { results: keys, heartbeats: tokens }))
    }

    fn end_with(self, status: Status) {
        // Set once: this is the only place. The drop of the control lets the transport see it.
        let _first = self.end.set(status);
    }
}

fn token(token: v1::Token) -> Token {
    Token { key: JobKey::from_raw(token.key), activation: token.activation }
}

/// What the transport sends to a worker.
pub(super) struct WorkStream {
    deliveries: Deliveries<Said>,
    reading: AbortHandle,
    end: Arc<OnceLock<Status>>,
    welcome: Option<v1::Welcome>,
    /// Durable results so far.
    results: u64,
    over: bool,
}

impl Stream for WorkStream {
    type Item = Result<v1::ServerMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Some(welcome) = self.welcome.take() {
            let message = v1::ServerMessage { welcome: Some(welcome), ..Default::default() };
            return Poll::Ready(Some(Ok(message)));
        }
        let next = ready!(self.deliveries.poll_next(context, STREAM_JOBS_MAX, STREAM_BYTES_MAX));
        let message = match next {
            Some(Ok(delivery)) => self.message(delivery),
            Some(Err(error)) => Err(error),
            None => {
                self.over = true;
                return Poll::Ready(self.end.get().cloned().map(Err));
            }
        };
        self.over = message.is_err();
        Poll::Ready(Some(message.map_err(|error| ApiError::from(error).into())))
    }
}

impl WorkStream {
    fn message(&mut self, delivery: Delivery<Said>) -> Result<v1::ServerMessage, GatewayError> {
        let mut message = v1::ServerMessage {
            jobs: delivery.jobs.into_iter().map(show::job).collect(),
            ..Default::default()
        };
        for stop in delivery.stops {
            message.stops.push(v1::Stop {
                key: stop.key.raw(),
                activation: stop.activation,
                lease_lost: false,
            });
        }
        for (said, answers) in delivery.answers {
            self.answer(&said, &answers, &mut message)?;
        }
        message.results = self.results;
        Ok(message)
    }

    /// Answers one message of the worker.
    fn answer(
        &mut self,
        said: &Said,
        answers: &[Result<Answer, Refused>],
        message: &mut v1::ServerMessage,
    ) -> Result<(), GatewayError> {
        let (to_results, to_heartbeats) =
            answers.split_at_checked(said.results.len()).ok_or(GatewayError::Stopped)?;
        for (&key, answer) in said.results.iter().zip(to_results) {
            match answer {
                Ok(_) => {}
                // Neither durable nor refused: the worker must ask again.
                Err(Refused::Stopped) => return Err(GatewayError::Stopped),
                Err(Refused::Rejected(rejection)) => message.refused.push(v1::RefusedResult {
                    index: self.results,
                    key: key.raw(),
                    refusal: Some(refusal(rejection.clone())),
                }),
            }
            self.results += 1;
        }
        for (token, answer) in said.heartbeats.iter().zip(to_heartbeats) {
            let lease_lost = match answer {
                Ok(Answer::Held { cancel_asked: true, .. }) => false,
                Ok(_) => continue,
                Err(Refused::Stopped) => return Err(GatewayError::Stopped),
                Err(Refused::Rejected(_)) => true,
            };
            let (key, activation) = (token.key.raw(), token.activation);
            message.stops.push(v1::Stop { key, activation, lease_lost });
        }
        Ok(())
    }
}

impl Drop for WorkStream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
