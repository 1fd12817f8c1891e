//! Waiting for jobs once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll as Progress};

use tokio::sync::oneshot;
use windlass_partition::request::{HandedJob, Poll, Refused, Request, WaiterId, Wanted};

use crate::error::GatewayError;
use crate::gateway::{Gateway, Shared, WaitingPlace};

/// A request for jobs that is answered once.
#[derive(Clone, Debug)]
pub struct PollRequest {
    /// What it asks for.
    pub wanted: Wanted,
    /// At most this many.
    pub jobs_max: u32,
    /// Stop before payloads exceed this.
    pub bytes_max: u64,
    /// How long to wait for the first; 0 is "answer at once".
    pub wait_ms: u64,
}

type Handed = Result<Vec<HandedJob>, Refused>;

impl Gateway {
    /// Waits for jobs: answered as soon as there is one, with nothing when the time is over.
    /// Dropping the future ends the wait, and jobs that were already on their way go back.
    pub async fn poll(&self, request: PollRequest) -> Result<Vec<HandedJob>, GatewayError> {
        self.shared.limits.wanted(&request.wanted)?;
        self.shared.limits.jobs(request.jobs_max)?;
        let place = self.shared.waiting_place()?;
        let mut shutting_down = self.shared.shutting_down.subscribe();
        if *shutting_down.borrow_and_update() {
            return Err(GatewayError::ShuttingDown);
        }
        let waiting = self.begin(request, place)?;
        let handed = tokio::select! {
            biased;
            handed = waiting => handed,
            // The drop of `waiting` gives back what may be on its way.
            _ = shutting_down.changed() => Ok(Vec::new()),
        };
        let jobs = handed.map_err(GatewayError::from)?;
        self.shared.metrics.handed_out(jobs.len());
        Ok(jobs)
    }

    fn begin(&self, request: PollRequest, place: WaitingPlace) -> Result<Waiting, GatewayError> {
        let (sender, answer) = oneshot::channel::<Handed>();
        let id = self.shared.next_waiter();
        let reply = Box::new(move |handed| match sender.send(handed) {
            Ok(()) | Err(Err(_)) => Vec::new(),
            Err(Ok(jobs)) => jobs,
        });
        let PollRequest { wanted, jobs_max, bytes_max, wait_ms } = request;
        let poll = Poll { id, wanted, jobs_max, bytes_max, wait_ms, reply };
        self.shared.submit(Request::Poll(poll))?;
        Ok(Waiting { shared: Arc::clone(&self.shared), id, answer, over: false, _place: place })
    }
}

/// A poll that waits. When dropped before its answer, nothing is left waiting and nothing is lost.
struct Waiting {
    shared: Arc<Shared>,
    id: WaiterId,
    answer: oneshot::Receiver<Handed>,
    over: bool,
    _place: WaitingPlace,
}

impl Future for Waiting {
    type Output = Handed;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Progress<Handed> {
        Pin::new(&mut self.answer).poll(context).map(|handed| {
            self.over = true;
            handed.unwrap_or(Err(Refused::Stopped))
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.answer.close();
        match self.answer.try_recv() {
            // It came between the last look and now.
            Ok(Ok(jobs)) => self.shared.give_back(&jobs),
            Ok(Err(_)) => {}
            Err(_) => {
                // When the partition has stopped nobody waits there.
                let _stopped = self.shared.submit(Request::EndPoll(self.id));
            }
        }
    }
}
