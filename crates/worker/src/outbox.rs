//! What a worker has to say, until the server has it for good.
//!
//! There is no queue of messages: everything that accumulates while the connection is busy leaves as
//! one message, as soon as the connection takes one. So batches are as large as the load makes them,
//! and a lone result leaves at once.
//!
//! A result is kept from the moment it is said until the server has counted it as durable. A new
//! stream begins with the results that the last one left unanswered; their tokens make that safe.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use prost::Message;

use crate::error::{Error, Refusal};
use crate::v1::{self, result::Outcome};

/// Results in one message.
const MESSAGE_RESULTS_MAX: usize = 1_000;
/// Bytes of results in one message; one result alone may be larger. Servers read 4 MiB and more.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Heartbeats in one message. Servers take 10,000 items in one, results and heartbeats together.
const MESSAGE_HEARTBEATS_MAX: usize = 9_000;
/// Results that wait to be sent before progress and log lines are dropped.
const WAITING_NOTES_MAX: usize = 10_000;
/// Bytes of progress and log lines that wait to be sent before more are dropped.
const WAITING_NOTES_BYTES_MAX: usize = 16 << 20;
/// Lines of one job that are joined into one log result.
const LOG_LINES_MAX: usize = 100;

/// Shared by the streams of one worker, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Which stream may take; the ones before it end.
    generation: u64,
    waker: Option<Waker>,
    hello: Option<v1::Hello>,
    credits: u32,
    waiting: VecDeque<v1::Result>,
    /// Text of progress and log lines among them.
    waiting_notes_bytes: usize,
    heartbeats: VecDeque<v1::Token>,
    drain: bool,
    closed: bool,
    /// Taken by the present stream and not yet counted by the server, in order.
    sent: VecDeque<v1::Result>,
    /// Results of the present stream that the server has counted.
    counted: u64,
}

/// A result that the server refused.
#[derive(Debug)]
pub struct RefusedResult {
    /// The result as it was sent.
    pub result: v1::Result,
    /// Why.
    pub refusal: Refusal,
}

impl Outbox {
    /// Begins a stream. What the last one left unanswered comes first, in order.
    pub(crate) fn attach(self: &Arc<Self>, hello: v1::Hello, credits: u32) -> Outgoing {
        let mut state = self.lock();
        let State { sent, waiting, waiting_notes_bytes, .. } = &mut *state;
        while let Some(result) = sent.pop_back() {
            *waiting_notes_bytes += note_bytes(&result);
            waiting.push_front(result);
        }
        state.generation += 1;
        state.hello = Some(hello);
        state.credits = credits;
        state.heartbeats.clear();
        state.counted = 0;
        let generation = state.generation;
        state.wake();
        Outgoing { outbox: Arc::clone(self), generation }
    }

    /// Says results, and that `credits` slots are free.
    pub(crate) fn push_all(&self, results: impl IntoIterator<Item = v1::Result>, credits: u32) {
        let mut state = self.lock();
        state.waiting.extend(results);
        state.credits = state.credits.saturating_add(credits);
        state.wake();
    }

    /// Says what may be lost when the server is away for long: `false` if it was dropped.
    pub(crate) fn push_note(&self, note: v1::Result) -> bool {
        let mut state = self.lock();
        let bytes = state.waiting_notes_bytes + note_bytes(&note);
        if state.waiting.len() >= WAITING_NOTES_MAX || bytes > WAITING_NOTES_BYTES_MAX {
            return false;
        }
        state.waiting_notes_bytes = bytes;
        state.join_or_push(note);
        state.wake();
        true
    }

    pub(crate) fn heartbeat(&self, tokens: impl IntoIterator<Item = v1::Token>) {
        let mut state = self.lock();
        state.heartbeats.extend(tokens);
        state.wake();
    }

    pub(crate) fn drain(&self) {
        let mut state = self.lock();
        state.drain = true;
        state.wake();
    }

    /// Ends the stream when everything waiting is sent.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake();
    }

    /// Results that the server has not counted yet.
    pub(crate) fn unanswered(&self) -> usize {
        let state = self.lock();
        state.waiting.len() + state.sent.len()
    }

    /// The server has counted `counted` results of this stream, of them some as refused. Returns how
    /// many are new, and the refused.
    pub(crate) fn answered(
        &self,
        counted: u64,
        refused: Vec<v1::RefusedResult>,
    ) -> Result<(usize, Vec<RefusedResult>), Error> {
        let mut state = self.lock();
        let mut returned = Vec::with_capacity(refused.len());
        for refusal in refused {
            let place = refusal.index.checked_sub(state.counted);
            let place = place.and_then(|place| usize::try_from(place).ok());
            let result = place.and_then(|place| state.sent.get(place)).cloned();
            let result = result.ok_or(Error::Protocol("it refused a result that was not sent"))?;
            let refusal = refusal.refusal.unwrap_or_default().into();
            returned.push(RefusedResult { result, refusal });
        }
        // A message without news of results may leave the count out.
        let new = usize::try_from(counted.saturating_sub(state.counted)).unwrap_or(usize::MAX);
        if new > state.sent.len() {
            return Err(Error::Protocol("it counted more results than were sent"));
        }
        state.sent.drain(..new);
        state.counted = state.counted.max(counted);
        Ok((new, returned))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Log lines of one job leave as one result; of progress without documents only the newest counts.
    fn join_or_push(&mut self, note: v1::Result) {
        if let Some(last) = self.waiting.back_mut()
            && (last.key, last.activation) == (note.key, note.activation)
        {
            match (&mut last.outcome, &note.outcome) {
                (Some(Outcome::Log(log)), Some(Outcome::Log(more)))
                    if log.lines.len() < LOG_LINES_MAX =>
                {
                    log.lines.extend(more.lines.iter().cloned());
                    return;
                }
                (Some(Outcome::Progress(old)), Some(Outcome::Progress(new)))
                    if old.documents.is_empty() =>
                {
                    self.waiting_notes_bytes -= old.note.len();
                    old.clone_from(new);
                    return;
                }
                _ => {}
            }
        }
        self.waiting.push_back(note);
    }

    fn take(&mut self) -> Option<v1::WorkerMessage> {
        let nothing = self.hello.is_none()
            && self.credits == 0
            && self.waiting.is_empty()
            && self.heartbeats.is_empty()
            && !self.drain;
        if nothing {
            return None;
        }
        let heartbeats = self.heartbeats.len().min(MESSAGE_HEARTBEATS_MAX);
        Some(v1::WorkerMessage {
            hello: self.hello.take(),
            credits: std::mem::take(&mut self.credits),
            results: self.take_results(),
            heartbeats: self.heartbeats.drain(..heartbeats).collect(),
            drain: std::mem::take(&mut self.drain),
        })
    }

    fn take_results(&mut self) -> Vec<v1::Result> {
        let count_max = self.waiting.len().min(MESSAGE_RESULTS_MAX);
        let mut results = Vec::with_capacity(count_max);
        let mut bytes = 0;
        while results.len() < count_max {
            let Some(next) = self.waiting.front() else { break };
            bytes += next.encoded_len();
            if bytes > MESSAGE_BYTES_MAX && !results.is_empty() {
                break;
            }
            let Some(next) = self.waiting.pop_front() else { break };
            self.waiting_notes_bytes -= note_bytes(&next);
            self.sent.push_back(next.clone());
            results.push(next);
        }
        results
    }
}

/// The text of progress and of log lines.
fn note_bytes(result: &v1::Result) -> usize {
    match &result.outcome {
        Some(Outcome::Log(log)) => log.lines.iter().map(String::len).sum(),
        Some(Outcome::Progress(progress)) => progress.note.len(),
        Some(Outcome::Complete(_) | Outcome::Fail(_) | Outcome::Throw(_) | Outcome::Release(_))
        | None => 0,
    }
}

/// One stream's view of the outbox.
#[derive(Debug)]
pub(crate) struct Outgoing {
    outbox: Arc<Outbox>,
    generation: u64,
}

impl Stream for Outgoing {
    type Item = v1::WorkerMessage;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.outbox.lock();
        if state.generation != self.generation {
            return Poll::Ready(None);
        }
        if let Some(message) = state.take() {
            return Poll::Ready(Some(message));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(key: u64) -> v1::Result {
        let outcome = Some(Outcome::Complete(v1::Complete::default()));
        v1::Result { key, activation: 1, outcome }
    }

    fn log(key: u64, line: &str) -> v1::Result {
        let outcome = Some(Outcome::Log(v1::Log { lines: vec![line.to_owned()] }));
        v1::Result { key, activation: 1, outcome }
    }

    fn next(outgoing: &mut Outgoing) -> Poll<Option<v1::WorkerMessage>> {
        Pin::new(outgoing).poll_next(&mut Context::from_waker(Waker::noop()))
    }

    fn keys(message: &v1::WorkerMessage) -> Vec<u64> {
        message.results.iter().map(|result| result.key).collect()
    }

    fn taken(outgoing: &mut Outgoing) -> v1::WorkerMessage {
        let Poll::Ready(Some(message)) = next(outgoing) else { panic!("a message was expected") };
        message
    }

    #[test]
    fn what_accumulated_leaves_as_one_message() {
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 4);
        outbox.push_all([complete(1), complete(2)], 2);
        outbox.push_all([complete(3)], 1);
        outbox.heartbeat([v1::Token { key: 9, activation: 1 }]);
        let message = taken(&mut outgoing);
        assert!(message.hello.is_some());
        assert_eq!((message.credits, keys(&message)), (7, vec![1, 2, 3]));
        assert_eq!(message.heartbeats.len(), 1);
        assert!(next(&mut outgoing).is_pending());
        assert_eq!(outbox.unanswered(), 3);
    }

    #[test]
    fn a_message_is_bounded_in_results_and_bytes() {
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 0);
        outbox.push_all((0..2_500).map(complete), 0);
        let counts: Vec<usize> = (0..3).map(|_| taken(&mut outgoing).results.len()).collect();
        assert_eq!(counts, [1_000, 1_000, 500]);

        let large = |key| {
            let result = vec![0; MESSAGE_BYTES_MAX].into();
            let complete = v1::Complete { result, documents: Vec::new() };
            v1::Result { key, activation: 1, outcome: Some(Outcome::Complete(complete)) }
        };
        outbox.push_all([large(1), large(2)], 0);
        assert_eq!(keys(&taken(&mut outgoing)), [1]);
        assert_eq!(keys(&taken(&mut outgoing)), [2]);
    }

    #[test]
    fn a_new_stream_begins_with_what_the_last_one_left_unanswered() {
        let outbox = Arc::new(Outbox::default());
        let mut first = outbox.attach(v1::Hello::default(), 0);
        outbox.push_all((1..=4).map(complete), 0);
        assert_eq!(keys(&taken(&mut first)), [1, 2, 3, 4]);
        assert_eq!(outbox.answered(2, Vec::new()).unwrap().0, 2);
        outbox.push_all([complete(5)], 0);

        let mut second = outbox.attach(v1::Hello::default(), 0);
        assert!(matches!(next(&mut first), Poll::Ready(None)));
        assert_eq!(keys(&taken(&mut second)), [3, 4, 5]);
        assert_eq!(outbox.answered(3, Vec::new()).unwrap().0, 3);
        assert_eq!(outbox.unanswered(), 0);
    }

    #[test]
    fn a_refusal_names_the_result_by_its_place() {
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 0);
        outbox.push_all((10..14).map(complete), 0);
        drop(taken(&mut outgoing));
        outbox.answered(1, Vec::new()).unwrap();
        let refused = |index| vec![v1::RefusedResult { index, ..v1::RefusedResult::default() }];
        let (new, returned) = outbox.answered(3, refused(2)).unwrap();
        assert_eq!((new, returned.first().map(|refused| refused.result.key)), (2, Some(12)));
        assert!(matches!(outbox.answered(3, refused(0)), Err(Error::Protocol(_))));
        assert!(matches!(outbox.answered(9, Vec::new()), Err(Error::Protocol(_))));
    }

    #[test]
    fn notes_are_joined_and_bounded() {
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 0);
        for line in ["a", "b"] {
            assert!(outbox.push_note(log(1, line)));
        }
        assert!(outbox.push_note(log(2, "c")));
        let message = taken(&mut outgoing);
        assert_eq!(keys(&message), [1, 2]);
        assert_eq!(
            message.results[0].outcome,
            Some(Outcome::Log(v1::Log { lines: vec!["a".to_owned(), "b".to_owned()] }))
        );
        outbox.push_all((0..10_000).map(complete), 0);
        assert!(!outbox.push_note(log(3, "too much")));
    }

    #[test]
    fn notes_are_bounded_in_bytes_while_the_server_is_away() {
        let progress = |note: &str| {
            let progress = v1::Progress { note: note.to_owned(), ..v1::Progress::default() };
            v1::Result { key: 2, activation: 1, outcome: Some(Outcome::Progress(progress)) }
        };
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 0);
        let line = "x".repeat(4_096);
        let kept = (0..).take_while(|_| outbox.push_note(log(1, &line))).count();
        assert_eq!(kept, WAITING_NOTES_BYTES_MAX / 4_096);
        assert!(!outbox.push_note(progress("a")));
        outbox.push_all([complete(3)], 0);
        let mut lines = 0;
        while let Poll::Ready(Some(message)) = next(&mut outgoing) {
            lines += message.results.iter().map(note_bytes).sum::<usize>() / 4_096;
        }
        assert_eq!((lines, outbox.lock().waiting_notes_bytes), (kept, 0));

        // What was sent and not counted waits again.
        drop(outbox.attach(v1::Hello::default(), 0));
        assert!(!outbox.push_note(progress("a")));
        outbox.lock().waiting.clear();
        outbox.lock().waiting_notes_bytes = 0;
        for note in ["one", "second"] {
            assert!(outbox.push_note(progress(note)));
        }
        assert_eq!(outbox.lock().waiting_notes_bytes, "second".len(), "the first was replaced");
    }

    #[test]
    fn a_message_is_one_that_servers_take() {
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 0);
        outbox.push_all((0..1_500).map(complete), 0);
        outbox.heartbeat((0..12_000).map(|key| v1::Token { key, activation: 1 }));
        let items = |message: &v1::WorkerMessage| message.results.len() + message.heartbeats.len();
        let sizes = [taken(&mut outgoing), taken(&mut outgoing)].map(|message| items(&message));
        assert_eq!(sizes, [10_000, 3_500]);
    }

    #[test]
    fn a_closed_outbox_ends_its_stream_behind_the_last_message() {
        let outbox = Arc::new(Outbox::default());
        let mut outgoing = outbox.attach(v1::Hello::default(), 0);
        outbox.push_all([complete(1)], 0);
        outbox.close();
        assert_eq!(keys(&taken(&mut outgoing)), [1]);
        assert!(matches!(next(&mut outgoing), Poll::Ready(None)));
    }
}
