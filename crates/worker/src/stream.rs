//! The work stream without a worker around it: jobs in batches one way, results and credits the
//! other. A [`Worker`](crate::Worker) is built on it; a program that wants the last bit of speed, or
//! its own scheduling, uses it directly.
//!
//! ```no_run
//! # async fn example() -> Result<(), windlass_worker::Error> {
//! use windlass_worker::{Client, v1};
//!
//! let client = Client::connect("http://127.0.0.1:8080").await?;
//! let hello = v1::Hello { queues: vec!["resize".to_owned()], ..v1::Hello::default() };
//! let mut stream = client.work(hello, 256).await?;
//! while let Some(received) = stream.next().await? {
//!     let done = received.jobs.iter().map(|job| (job.into(), job.payload.clone()));
//!     stream.sender().complete_all(done, received.jobs.len());
//! }
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tonic::Streaming;

use crate::client::Client;
use crate::convert::Token;
use crate::error::Error;
use crate::outbox::{Outbox, Outgoing, RefusedResult};
use crate::v1::{self, result::Outcome};

/// A server that does not answer a new stream within this time counts as unreachable.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// One open stream. It does not reconnect; results that were not answered are with its sender.
#[derive(Debug)]
pub struct WorkStream {
    sender: WorkSender,
    incoming: Streaming<v1::ServerMessage>,
}

/// Says things on a stream. Cheap to clone; nothing here waits: what is said leaves as soon as the
/// connection takes it, together with everything that was said by then.
#[derive(Debug, Clone)]
pub struct WorkSender {
    outbox: Arc<Outbox>,
}

/// What one message of the server brought.
#[derive(Debug, Default)]
pub struct Received {
    /// Jobs, each of which has used one credit.
    pub jobs: Vec<v1::Job>,
    /// How many more results are durable now (or refused), in the order in which they were said.
    pub answered: usize,
    /// Those of them that were refused.
    pub refused: Vec<RefusedResult>,
    /// Jobs that should stop.
    pub stops: Vec<v1::Stop>,
    /// The answer to the hello.
    pub welcome: Option<v1::Welcome>,
}

impl Client {
    /// Opens a work stream with its first credits.
    pub async fn work(&self, hello: v1::Hello, credits: u32) -> Result<WorkStream, Error> {
        let outbox = Arc::<Outbox>::default();
        let outgoing = outbox.attach(hello, credits);
        WorkStream::open(self, outbox, outgoing).await
    }
}

impl WorkStream {
    /// Opens a stream that says what `outgoing`, attached to `outbox`, gives out.
    pub(crate) async fn open(
        client: &Client,
        outbox: Arc<Outbox>,
        outgoing: Outgoing,
    ) -> Result<Self, Error> {
        let mut rpc = client.rpc();
        let opening = tokio::time::timeout(OPEN_TIMEOUT, rpc.work(outgoing)).await;
        let answer = opening
            .map_err(|_| Error::Unreachable { message: "no answer to a new stream".to_owned() })?;
        Ok(Self { sender: WorkSender { outbox }, incoming: answer?.into_inner() })
    }

    /// The sending side.
    #[must_use]
    pub fn sender(&self) -> &WorkSender {
        &self.sender
    }

    /// The next message; nothing when the server has ended the stream. Loses nothing when dropped
    /// half way.
    pub async fn next(&mut self) -> Result<Option<Received>, Error> {
        let Some(message) = self.incoming.message().await? else { return Ok(None) };
        let v1::ServerMessage { jobs, results, refused, stops, welcome } = message;
        let (answered, refused) = self.sender.outbox.answered(results, refused)?;
        Ok(Some(Received { jobs, answered, refused, stops, welcome }))
    }
}

impl WorkSender {
    /// Adds to the number of jobs that the server may send.
    pub fn add_credits(&self, credits: u32) {
        self.outbox.push_all([], credits);
    }

    /// Completes a job and gives its slot back.
    pub fn complete(&self, token: Token, result: Bytes) {
        self.complete_all([(token, result)], 1);
    }

    /// Completes jobs and gives back `credits` slots. The iterator must not use this sender: it runs
    /// under its lock.
    pub fn complete_all(&self, results: impl IntoIterator<Item = (Token, Bytes)>, credits: usize) {
        let results = results.into_iter().map(|(token, result)| {
            let complete = v1::Complete { result, documents: Vec::new() };
            result_of(token, Outcome::Complete(complete))
        });
        self.outbox.push_all(results, u32::try_from(credits).unwrap_or(u32::MAX));
    }

    /// Says any results and gives back `credits` slots. The iterator must not use this sender.
    pub fn push_all(&self, results: impl IntoIterator<Item = v1::Result>, credits: u32) {
        self.outbox.push_all(results, credits);
    }

    /// Moves the end of the lease of these jobs to the stream's lease time from now.
    pub fn heartbeat(&self, tokens: impl IntoIterator<Item = Token>) {
        self.outbox.heartbeat(tokens.into_iter().map(v1::Token::from));
    }

    /// Asks the server to send no more jobs.
    pub fn drain(&self) {
        self.outbox.drain();
    }

    /// Ends the stream behind everything said so far.
    pub fn close(&self) {
        self.outbox.close();
    }

    /// Results that the server has not counted yet.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.outbox.unanswered()
    }
}

/// A result on its way.
pub(crate) fn result_of(token: Token, outcome: Outcome) -> v1::Result {
    v1::Result { key: token.key, activation: token.activation, outcome: Some(outcome) }
}
