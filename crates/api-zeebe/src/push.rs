//! StreamActivatedJobs: jobs one by one as they become ready, until the client goes.
//!
//! The stream stands in the same line as polls and gets what waits already first. It may be given
//! a bounded number of jobs that it has not sent; a client that does not read gets no more.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tonic::Status;
use windlass_gateway::{Deliveries, Gateway, GatewayError, StreamControl};

use crate::handing::{Given, Handing};
use crate::limit::STREAM_UNSENT_JOBS_MAX;
use crate::protocol::{ActivatedJob, StreamActivatedJobsRequest};
use crate::refusal::{Asked, invalid, no_jobs};
use crate::tenant;

/// Sent jobs are made good together: every time costs a word to the partition.
const MADE_GOOD_AT: u32 = STREAM_UNSENT_JOBS_MAX / 4;

/// Opens the stream.
pub(crate) fn open(gateway: &Gateway, given: StreamActivatedJobsRequest) -> Result<Push, Status> {
    let filter = given.tenant_filter();
    let asked = Given {
        job_type: given.r#type,
        worker: given.worker,
        timeout: given.timeout,
        fetch: given.fetch_variable,
        with_lease: given.with_lease,
    };
    let tenant = tenant::of_worker("StreamActivatedJobs", &given.tenant_ids, filter)?;
    let handing = asked.handing(tenant).map_err(|why| invalid(Asked::ActivateJobs, why))?;
    let (control, deliveries) =
        gateway.open_stream(handing.wanted(), STREAM_UNSENT_JOBS_MAX).map_err(no_jobs)?;
    Ok(Push { gateway: gateway.clone(), handing, control, deliveries, sent: 0, over: false })
}

/// What the transport sends to a worker. When dropped, what it has not taken goes back.
pub(crate) struct Push {
    gateway: Gateway,
    handing: Handing,
    control: StreamControl<()>,
    deliveries: Deliveries<()>,
    /// Since the last time they were made good.
    sent: u32,
    over: bool,
}

impl Push {
    fn count_sent(&mut self) -> Result<(), GatewayError> {
        self.sent += 1;
        if self.sent < MADE_GOOD_AT {
            return Ok(());
        }
        self.control.add_credits(std::mem::take(&mut self.sent))
    }
}

impl Stream for Push {
    type Item = Result<ActivatedJob, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.over {
            let delivery = match ready!(self.deliveries.poll_next(context, 1, usize::MAX)) {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(no_jobs(error))));
                }
                None => break,
            };
            // One at most: that is what was asked for. Stops have no words on this wire.
            let Some(job) = delivery.jobs.into_iter().next() else { continue };
            let shown = self.handing.job(&self.gateway, &job);
            if let Err(error) = self.count_sent() {
                self.over = true;
                return Poll::Ready(Some(Err(no_jobs(error))));
            }
            if let Some(shown) = shown {
                return Poll::Ready(Some(Ok(shown)));
            }
        }
        self.over = true;
        Poll::Ready(None)
    }
}
