//! ActivateJobs: waits for jobs once, and sends them in as many messages as they need.
//!
//! Jobs that were handed out and not taken by the transport when the call ends go back, ready at
//! once; what the transport has taken keeps its lease.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use prost::Message;
use tonic::Status;
use windlass_gateway::request::HandedJob;
use windlass_gateway::{Gateway, GatewayError, PollRequest};

use crate::handing::{Given, Handing};
use crate::limit::{POLL_BYTES_MAX, SENT_BYTES_MAX, WAIT_MS_DEFAULT};
use crate::protocol::{ActivateJobsRequest, ActivateJobsResponse};
use crate::refusal::{Asked, invalid, no_jobs};
use crate::tenant;

type Waiting = Pin<Box<dyn Future<Output = Result<Vec<HandedJob>, GatewayError>> + Send>>;

/// Begins the answer.
pub(crate) fn activate(
    gateway: &Gateway,
    given: ActivateJobsRequest,
) -> Result<Activation, Status> {
    let (filter, wait_ms) = (given.tenant_filter(), wait_ms(given.request_timeout));
    let jobs_left = u32::try_from(given.max_jobs_to_activate).unwrap_or(0);
    let asked = Given {
        job_type: given.r#type,
        worker: given.worker,
        timeout: given.timeout,
        fetch: given.fetch_variable,
        with_lease: given.with_lease,
    };
    let tenant = tenant::of_worker("ActivateJobs", &given.tenant_ids, filter)?;
    let handing = asked.handing(tenant).map_err(|why| invalid(Asked::ActivateJobs, why))?;
    if jobs_left == 0 {
        let why = "Expected to activate at least one job, but the greatest number is less than one";
        return Err(invalid(Asked::ActivateJobs, why));
    }
    let gateway = gateway.clone();
    let mut activation =
        Activation { gateway, handing, jobs_left, jobs: VecDeque::new(), next: Next::End };
    activation.look(wait_ms);
    Ok(activation)
}

pub(crate) fn wait_ms(request_timeout: i64) -> u64 {
    match request_timeout {
        0 => WAIT_MS_DEFAULT,
        given => u64::try_from(given).unwrap_or(0),
    }
}

/// The messages of one answer.
pub(crate) struct Activation {
    gateway: Gateway,
    handing: Handing,
    jobs_left: u32,
    /// Handed out and not sent.
    jobs: VecDeque<HandedJob>,
    next: Next,
}

/// What follows when nothing is left to send.
enum Next {
    Wait(Waiting),
    /// There may be more than fitted into one look.
    LookAgain,
    End,
}

impl Activation {
    fn look(&mut self, wait_ms: u64) {
        let request = PollRequest {
            wanted: self.handing.wanted(),
            jobs_max: self.jobs_left.min(self.gateway.limits().bounds.activation_jobs_max),
            bytes_max: POLL_BYTES_MAX,
            wait_ms,
        };
        let gateway = self.gateway.clone();
        self.next = Next::Wait(Box::pin(async move { gateway.poll(request).await }));
    }

    fn take_in(&mut self, jobs: Vec<HandedJob>) {
        let bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
        self.jobs_left =
            self.jobs_left.saturating_sub(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
        // Only when bytes may have ended the look, and not the end of the queue.
        let cut_short = u64::try_from(bytes).unwrap_or(u64::MAX) > POLL_BYTES_MAX / 2;
        self.next = if cut_short && self.jobs_left > 0 { Next::LookAgain } else { Next::End };
        self.jobs.extend(jobs);
    }

    /// As many jobs as fit; `None` when none are left.
    fn message(&mut self) -> Option<ActivateJobsResponse> {
        let mut message = ActivateJobsResponse::default();
        let mut bytes = 0;
        while let Some(job) = self.jobs.pop_front() {
            let Some(shown) = self.handing.job(&self.gateway, &job) else { continue };
            bytes += shown.encoded_len() + FRAME_BYTES;
            if bytes > SENT_BYTES_MAX && !message.jobs.is_empty() {
                self.jobs.push_front(job);
                break;
            }
            message.jobs.push(shown);
        }
        (!message.jobs.is_empty()).then_some(message)
    }
}

/// What stands around a job in a message, at most.
const FRAME_BYTES: usize = 6;

impl Stream for Activation {
    type Item = Result<ActivateJobsResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(message) = self.message() {
                return Poll::Ready(Some(Ok(message)));
            }
            match &mut self.next {
                Next::End => return Poll::Ready(None),
                Next::LookAgain => self.look(0),
                Next::Wait(waiting) => match ready!(waiting.as_mut().poll(context)) {
                    Ok(jobs) => self.take_in(jobs),
                    Err(error) => {
                        self.next = Next::End;
                        return Poll::Ready(Some(Err(no_jobs(error))));
                    }
                },
            }
        }
    }
}

impl Drop for Activation {
    fn drop(&mut self) {
        self.gateway.give_back(self.jobs.make_contiguous());
    }
}
