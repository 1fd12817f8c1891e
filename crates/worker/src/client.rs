//! The client: one lazily connecting channel, a method per call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tonic::transport::{Channel, Endpoint};

use crate::convert::{Token, ms};
use crate::error::{Error, Refusal};
use crate::v1::{self, windlass_client::WindlassClient};

/// A server that does not take a connection within this time counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent connection is asked for a sign of life this often.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// And is given up when none comes.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that one stream may have under way: enough to keep a fast link busy.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// The same for the connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// The largest message that is read: a full activation of large payloads.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// A client of one server. Cheap to clone; clones share a connection, which is made at the first
/// call and made again after it broke.
#[derive(Debug, Clone)]
pub struct Client {
    rpc: WindlassClient<Channel>,
    address: Arc<str>,
    /// Whose jobs keys may name; empty: anybody's.
    tenant: Arc<str>,
}

/// A job was created, or its request id was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// The job.
    pub key: u64,
    /// It is the job that an earlier create with this request id made.
    pub existing: bool,
}

/// What a sign of life learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// When the lease ends, in milliseconds since the Unix epoch.
    pub deadline_ms: u64,
    /// The worker should stop.
    pub cancel_asked: bool,
}

impl Client {
    /// A client of the server at `address`, for instance `http://127.0.0.1:8080`, without connecting
    /// yet: a worker may start before its server.
    ///
    /// Must be called within a tokio runtime.
    pub fn lazy(address: impl Into<String>) -> Result<Self, Error> {
        let address = address.into();
        let endpoint = Endpoint::from_shared(address.clone())
            .map_err(|source| Error::Address { address: address.clone(), source })?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let rpc = WindlassClient::new(endpoint.connect_lazy())
            .max_decoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self { rpc, address: address.into(), tenant: Arc::default() })
    }

    /// The same, and asks the server for a sign of life.
    pub async fn connect(address: impl Into<String>) -> Result<Self, Error> {
        let client = Self::lazy(address)?;
        client.status().await?;
        Ok(client)
    }

    /// The address it was made with.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same client, which knows only jobs of this tenant where a key says which job it is. Whoever
    /// has not asked for this reaches the jobs of all tenants.
    #[must_use]
    pub fn of_tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = tenant.into();
        self
    }

    fn owner(&self) -> String {
        String::from(&*self.tenant)
    }

    fn own(&self, tenant: &mut String) {
        if tenant.is_empty() {
            tenant.push_str(&self.tenant);
        }
    }

    /// The generated client, for what has no method here.
    #[must_use]
    pub fn rpc(&self) -> WindlassClient<Channel> {
        self.rpc.clone()
    }

    // ── creating ──

    /// Creates one job.
    pub async fn create_job(&self, job: v1::NewJob) -> Result<Created, Error> {
        let request = v1::CreateJobRequest { job: Some(job) };
        let answer = self.rpc().create_job(request).await?.into_inner();
        Ok(Created { key: answer.key, existing: answer.existing })
    }

    /// Creates many, each for itself: a result per job, in order.
    pub async fn create_jobs(
        &self,
        jobs: Vec<v1::NewJob>,
    ) -> Result<Vec<Result<Created, Refusal>>, Error> {
        let count = jobs.len();
        let answer = self.rpc().create_jobs(v1::CreateJobsRequest { jobs }).await?.into_inner();
        if answer.results.len() != count {
            return Err(Error::Protocol("a result per job was expected"));
        }
        let results = answer.results.into_iter().map(|result| match result.refusal {
            Some(refusal) => Err(Refusal::from(refusal)),
            None => Ok(Created { key: result.key, existing: result.existing }),
        });
        Ok(results.collect())
    }

    // ── working, call by call; a worker uses a stream instead ──

    /// Takes jobs, waiting up to `wait_ms` for the first.
    pub async fn activate_jobs(
        &self,
        request: v1::ActivateJobsRequest,
    ) -> Result<Vec<v1::Job>, Error> {
        Ok(self.rpc().activate_jobs(request).await?.into_inner().jobs)
    }

    /// Completes a job, and writes documents in the same moment.
    pub async fn complete_job(
        &self,
        token: Token,
        result: Bytes,
        documents: Vec<v1::DocumentWrite>,
    ) -> Result<(), Error> {
        let Token { key, activation } = token;
        let activation = Some(activation);
        let request = v1::CompleteJobRequest { key, activation, result, documents };
        self.rpc().complete_job(request).await?;
        Ok(())
    }

    /// Fails a job's attempt.
    pub async fn fail_job(&self, token: Token, fail: v1::Fail) -> Result<(), Error> {
        let Token { key, activation } = token;
        let request = v1::FailJobRequest { key, activation: Some(activation), fail: Some(fail) };
        self.rpc().fail_job(request).await?;
        Ok(())
    }

    /// Ends a job with an error of its domain.
    pub async fn throw_error(&self, token: Token, throw: v1::Throw) -> Result<(), Error> {
        let Token { key, activation } = token;
        let request =
            v1::ThrowErrorRequest { key, activation: Some(activation), throw: Some(throw) };
        self.rpc().throw_error(request).await?;
        Ok(())
    }

    /// Puts a job back.
    pub async fn release_job(&self, token: Token, delay: Duration) -> Result<(), Error> {
        let Token { key, activation } = token;
        let request =
            v1::ReleaseJobRequest { key, activation: Some(activation), delay_ms: ms(delay) };
        self.rpc().release_job(request).await?;
        Ok(())
    }

    /// Moves the end of a lease to `lease` from now.
    pub async fn extend_lease(&self, token: Token, lease: Duration) -> Result<Lease, Error> {
        let Token { key, activation } = token;
        let request =
            v1::ExtendLeaseRequest { key, activation: Some(activation), lease_ms: ms(lease) };
        let answer = self.rpc().extend_lease(request).await?.into_inner();
        Ok(Lease { deadline_ms: answer.deadline_ms, cancel_asked: answer.cancel_asked })
    }

    /// Says how far a job is, and writes documents in the same moment.
    pub async fn report_progress(
        &self,
        token: Token,
        progress: v1::Progress,
    ) -> Result<Lease, Error> {
        let Token { key, activation } = token;
        let request = v1::ReportProgressRequest {
            key,
            activation: Some(activation),
            progress: Some(progress),
        };
        let answer = self.rpc().report_progress(request).await?.into_inner();
        Ok(Lease { deadline_ms: answer.deadline_ms, cancel_asked: answer.cancel_asked })
    }

    /// Adds lines to a job's log.
    pub async fn append_log(&self, token: Token, lines: Vec<String>) -> Result<Lease, Error> {
        let Token { key, activation } = token;
        let request = v1::AppendLogRequest { key, activation: Some(activation), lines };
        let answer = self.rpc().append_log(request).await?.into_inner();
        Ok(Lease { deadline_ms: answer.deadline_ms, cancel_asked: answer.cancel_asked })
    }

    // ── steering ──

    /// Cancels a job. `true`: its worker was asked, and the job ends when it has stopped.
    pub async fn cancel_job(&self, mut request: v1::CancelJobRequest) -> Result<bool, Error> {
        self.own(&mut request.tenant);
        Ok(self.rpc().cancel_job(request).await?.into_inner().pending)
    }

    /// Changes retries, priority or the end of the lease.
    pub async fn update_job(&self, mut request: v1::UpdateJobRequest) -> Result<(), Error> {
        self.own(&mut request.tenant);
        self.rpc().update_job(request).await?;
        Ok(())
    }

    /// Resolves an incident; `key` is its own or its job's.
    pub async fn resolve_incident(&self, key: u64, retries: Option<u32>) -> Result<(), Error> {
        let request = v1::ResolveIncidentRequest { key, retries, tenant: self.owner() };
        self.rpc().resolve_incident(request).await?;
        Ok(())
    }

    // ── looking ──

    /// One job.
    pub async fn job(&self, key: u64) -> Result<v1::JobView, Error> {
        Ok(self.rpc().get_job(v1::GetJobRequest { key, tenant: self.owner() }).await?.into_inner())
    }

    /// A page of jobs.
    pub async fn list_jobs(
        &self,
        request: v1::ListJobsRequest,
    ) -> Result<v1::ListJobsResponse, Error> {
        Ok(self.rpc().list_jobs(request).await?.into_inner())
    }

    /// Where a job is in its queue, and why it is not running.
    pub async fn why_job(&self, key: u64) -> Result<v1::WhyJobResponse, Error> {
        Ok(self.rpc().why_job(v1::WhyJobRequest { key, tenant: self.owner() }).await?.into_inner())
    }

    /// All queues of a tenant; empty is the default one.
    pub async fn queues(&self, tenant: &str) -> Result<Vec<v1::QueueView>, Error> {
        let request = v1::ListQueuesRequest { tenant: tenant.to_owned() };
        Ok(self.rpc().list_queues(request).await?.into_inner().queues)
    }

    /// Gives a queue its settings.
    pub async fn configure_queue(&self, request: v1::ConfigureQueueRequest) -> Result<(), Error> {
        self.rpc().configure_queue(request).await?;
        Ok(())
    }

    /// Stops or resumes the hand-out of a queue.
    pub async fn pause_queue(&self, request: v1::PauseQueueRequest) -> Result<(), Error> {
        self.rpc().pause_queue(request).await?;
        Ok(())
    }

    /// Gives a limit key its settings.
    pub async fn configure_limit(&self, request: v1::ConfigureLimitRequest) -> Result<(), Error> {
        self.rpc().configure_limit(request).await?;
        Ok(())
    }

    /// One limit key.
    pub async fn limit(&self, request: v1::GetLimitRequest) -> Result<v1::LimitView, Error> {
        Ok(self.rpc().get_limit(request).await?.into_inner())
    }

    /// A page of limit keys.
    pub async fn list_limits(
        &self,
        request: v1::ListLimitsRequest,
    ) -> Result<v1::ListLimitsResponse, Error> {
        Ok(self.rpc().list_limits(request).await?.into_inner())
    }

    // ── documents ──

    /// Writes documents, all or none; their new versions.
    pub async fn put_documents(
        &self,
        documents: Vec<v1::DocumentWrite>,
    ) -> Result<Vec<u64>, Error> {
        let request = v1::PutDocumentsRequest { documents };
        Ok(self.rpc().put_documents(request).await?.into_inner().versions)
    }

    /// One document.
    pub async fn document(
        &self,
        request: v1::GetDocumentRequest,
    ) -> Result<v1::DocumentView, Error> {
        Ok(self.rpc().get_document(request).await?.into_inner())
    }

    /// A page of documents, without their values.
    pub async fn list_documents(
        &self,
        request: v1::ListDocumentsRequest,
    ) -> Result<v1::ListDocumentsResponse, Error> {
        Ok(self.rpc().list_documents(request).await?.into_inner())
    }

    /// The state of the server.
    pub async fn status(&self) -> Result<v1::StatusView, Error> {
        Ok(self.rpc().get_status(v1::GetStatusRequest {}).await?.into_inner())
    }
}
