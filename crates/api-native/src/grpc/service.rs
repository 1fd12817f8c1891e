//! One function per call: map, ask the gateway, map back.

use std::sync::Arc;

use bytes::Bytes;
use tonic::{Request, Response, Status, Streaming};
use windlass_gateway::read::{DocumentFilter, DocumentName};
use windlass_gateway::request::{Answer, HandedJob};
use windlass_gateway::{Gateway, PollRequest};
use windlass_record::command::{CancelJob, Command, PutDocuments, ResolveIncident, UpdateJob};
use windlass_record::id::JobKey;
use windlass_record::rejection::Rejection;

use super::status::refusal;
use super::work::WorkStream;
use super::{ask, show, work};
use crate::batch::give_each;
use crate::error::{ApiError, limit_not_found};
use crate::limit::{POLL_BYTES_MAX, page};
use crate::v1::windlass_server::Windlass;
use crate::words::of_tenant;
use crate::{VERSION, activation, v1};

/// The service.
pub(super) struct Service {
    gateway: Gateway,
}

type Answered<T> = Result<Response<T>, Status>;

const MISMATCH: &str = "the partition answers a command with its own kind of answer";

impl Service {
    pub(super) fn new(gateway: Gateway) -> Service {
        Service { gateway }
    }

    async fn command(&self, command: Command) -> Result<Answer, ApiError> {
        Ok(self.gateway.command(command).await?)
    }

    async fn result(&self, command: Command) -> Result<Answer, ApiError> {
        Ok(self.gateway.result(command).await?)
    }

    /// A result whose answer is how long the lease goes on.
    async fn held(&self, command: Command) -> Result<(u64, bool), ApiError> {
        let Answer::Held { deadline_ms, cancel_asked } = self.result(command).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok((deadline_ms, cancel_asked))
    }
}

fn answer<T>(message: T) -> Answered<T> {
    Ok(Response::new(message))
}

#[tonic::async_trait]
impl Windlass for Service {
    async fn create_job(
        &self,
        request: Request<v1::CreateJobRequest>,
    ) -> Answered<v1::CreateJobResponse> {
        let job = request.into_inner().job.ok_or_else(|| ApiError::missing("job"))?;
        let Answer::Created { key, existing } = self.command(ask::create(job)?).await? else {
            unreachable!("{MISMATCH}")
        };
        answer(v1::CreateJobResponse { key: key.raw(), existing })
    }

    async fn create_jobs(
        &self,
        request: Request<v1::CreateJobsRequest>,
    ) -> Answered<v1::CreateJobsResponse> {
        let commands = ask::create_all(request.into_inner().jobs);
        let refuse =
            |error| v1::CreateResult { refusal: Some(refusal(error)), ..Default::default() };
        let results = give_each(&self.gateway, commands, refuse, create_result);
        answer(v1::CreateJobsResponse { results: results.await.map_err(ApiError::from)? })
    }

    async fn activate_jobs(
        &self,
        request: Request<v1::ActivateJobsRequest>,
    ) -> Answered<v1::ActivateJobsResponse> {
        let given = request.into_inner();
        let names_tenants = !given.tenants.is_empty();
        let (tenants, queues) = (ask::names(given.tenants), ask::names(given.queues));
        let limits = self.gateway.limits();
        let queues = activation::queues(limits, given.tenant.into(), tenants, queues)?;
        let mut wanted = ask::wanted(queues, given.worker, given.lease_ms);
        wanted.with_token = !given.without_token;
        let poll = PollRequest {
            wanted,
            jobs_max: given.jobs_max.unwrap_or(1),
            bytes_max: POLL_BYTES_MAX,
            wait_ms: ask::wait(given.wait_ms)?,
        };
        let jobs = self.gateway.poll(poll).await.map_err(ApiError::from)?;
        let shown = |job: HandedJob| {
            let tenant = if names_tenants { String::from(&*job.tenant) } else { String::new() };
            v1::Job { tenant, ..show::job(job) }
        };
        answer(v1::ActivateJobsResponse { jobs: jobs.into_iter().map(shown).collect() })
    }

    type WorkStream = WorkStream;

    async fn work(&self, request: Request<Streaming<v1::WorkerMessage>>) -> Answered<WorkStream> {
        answer(work::open(&self.gateway, request.into_inner()).await?)
    }

    async fn complete_job(
        &self,
        request: Request<v1::CompleteJobRequest>,
    ) -> Answered<v1::CompleteJobResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        let complete = v1::Complete { result: given.result, documents: given.documents };
        self.result(ask::complete(lease, complete)).await?;
        answer(v1::CompleteJobResponse {})
    }

    async fn fail_job(
        &self,
        request: Request<v1::FailJobRequest>,
    ) -> Answered<v1::FailJobResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        self.result(ask::fail(lease, given.fail.unwrap_or_default())).await?;
        answer(v1::FailJobResponse {})
    }

    async fn throw_error(
        &self,
        request: Request<v1::ThrowErrorRequest>,
    ) -> Answered<v1::ThrowErrorResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        self.result(ask::throw(lease, given.throw.unwrap_or_default())).await?;
        answer(v1::ThrowErrorResponse {})
    }

    async fn release_job(
        &self,
        request: Request<v1::ReleaseJobRequest>,
    ) -> Answered<v1::ReleaseJobResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        self.result(ask::release(lease, given.delay_ms)).await?;
        answer(v1::ReleaseJobResponse {})
    }

    async fn extend_lease(
        &self,
        request: Request<v1::ExtendLeaseRequest>,
    ) -> Answered<v1::ExtendLeaseResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        let (deadline_ms, cancel_asked) = self.held(ask::extend(lease, given.lease_ms)).await?;
        answer(v1::ExtendLeaseResponse { deadline_ms, cancel_asked })
    }

    async fn report_progress(
        &self,
        request: Request<v1::ReportProgressRequest>,
    ) -> Answered<v1::ReportProgressResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        let progress = given.progress.unwrap_or_default();
        let (deadline_ms, cancel_asked) = self.held(ask::progress(lease, progress)).await?;
        answer(v1::ReportProgressResponse { deadline_ms, cancel_asked })
    }

    async fn append_log(
        &self,
        request: Request<v1::AppendLogRequest>,
    ) -> Answered<v1::AppendLogResponse> {
        let given = request.into_inner();
        let lease = ask::lease(given.key, given.activation);
        let (deadline_ms, cancel_asked) = self.held(ask::append_log(lease, given.lines)).await?;
        answer(v1::AppendLogResponse { deadline_ms, cancel_asked })
    }

    async fn cancel_job(
        &self,
        request: Request<v1::CancelJobRequest>,
    ) -> Answered<v1::CancelJobResponse> {
        let given = request.into_inner();
        let command = Command::CancelJob(CancelJob {
            key: JobKey::from_raw(given.key),
            force: given.force,
            reason: given.reason.into(),
            tenant: ask::some_tenant(given.tenant),
        });
        let pending = self.result(command).await? == Answer::CancelPending;
        answer(v1::CancelJobResponse { pending })
    }

    async fn update_job(
        &self,
        request: Request<v1::UpdateJobRequest>,
    ) -> Answered<v1::UpdateJobResponse> {
        let given = request.into_inner();
        let command = Command::UpdateJob(UpdateJob {
            key: JobKey::from_raw(given.key),
            activation: given.activation,
            retries: ask::some_retries(given.retries)?,
            priority: given.priority,
            lease_ms: given.lease_ms,
            tenant: ask::some_tenant(given.tenant),
        });
        self.command(command).await?;
        answer(v1::UpdateJobResponse {})
    }

    async fn resolve_incident(
        &self,
        request: Request<v1::ResolveIncidentRequest>,
    ) -> Answered<v1::ResolveIncidentResponse> {
        let given = request.into_inner();
        let command = Command::ResolveIncident(ResolveIncident {
            key: JobKey::from_raw(given.key),
            retries: ask::some_retries(given.retries)?,
            tenant: ask::some_tenant(given.tenant),
        });
        self.command(command).await?;
        answer(v1::ResolveIncidentResponse {})
    }

    async fn get_job(&self, request: Request<v1::GetJobRequest>) -> Answered<v1::JobView> {
        let given = request.into_inner();
        let (key, tenant) = (JobKey::from_raw(given.key), ask::some_tenant(given.tenant));
        let view = self.gateway.job(key).await.map_err(ApiError::from)?;
        let view = of_tenant(view, tenant.as_deref(), |view| &view.tenant);
        let view = view.ok_or(ApiError::from(Rejection::JobNotFound { key }))?;
        answer(show::job_view(*view))
    }

    async fn list_jobs(
        &self,
        request: Request<v1::ListJobsRequest>,
    ) -> Answered<v1::ListJobsResponse> {
        let filter = ask::job_filter(request.into_inner())?;
        let (jobs, next_cursor) = self.gateway.jobs(filter).await.map_err(ApiError::from)?;
        let jobs = jobs.into_iter().map(show::job_view).collect();
        answer(v1::ListJobsResponse { jobs, next_cursor })
    }

    async fn why_job(&self, request: Request<v1::WhyJobRequest>) -> Answered<v1::WhyJobResponse> {
        let given = request.into_inner();
        let (key, tenant) = (JobKey::from_raw(given.key), ask::some_tenant(given.tenant));
        let view = self.gateway.why(key).await.map_err(ApiError::from)?;
        let view = of_tenant(view, tenant.as_deref(), |view| &view.tenant);
        let view = view.ok_or(ApiError::from(Rejection::JobNotFound { key }))?;
        answer(show::why_view(*view))
    }

    async fn list_queues(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Answered<v1::ListQueuesResponse> {
        let tenant = ask::tenant(request.into_inner().tenant);
        let queues = self.gateway.queues(Some(tenant)).await.map_err(ApiError::from)?;
        answer(v1::ListQueuesResponse { queues: queues.iter().map(show::queue_view).collect() })
    }

    async fn configure_queue(
        &self,
        request: Request<v1::ConfigureQueueRequest>,
    ) -> Answered<v1::ConfigureQueueResponse> {
        self.command(ask::configure_queue(request.into_inner())).await?;
        answer(v1::ConfigureQueueResponse {})
    }

    async fn pause_queue(
        &self,
        request: Request<v1::PauseQueueRequest>,
    ) -> Answered<v1::PauseQueueResponse> {
        self.command(ask::pause_queue(request.into_inner())).await?;
        answer(v1::PauseQueueResponse {})
    }

    async fn configure_limit(
        &self,
        request: Request<v1::ConfigureLimitRequest>,
    ) -> Answered<v1::ConfigureLimitResponse> {
        self.command(ask::configure_limit(request.into_inner())).await?;
        answer(v1::ConfigureLimitResponse {})
    }

    async fn get_limit(&self, request: Request<v1::GetLimitRequest>) -> Answered<v1::LimitView> {
        let given = request.into_inner();
        let found = self.gateway.limit_key(ask::tenant(given.tenant), given.name.into());
        let found = found.await.map_err(ApiError::from)?.ok_or_else(limit_not_found)?;
        answer(show::limit_view(&found))
    }

    async fn list_limits(
        &self,
        request: Request<v1::ListLimitsRequest>,
    ) -> Answered<v1::ListLimitsResponse> {
        let given = request.into_inner();
        let (tenant, limit) = (ask::tenant(given.tenant), page(given.limit));
        let limit = limit.map_err(ApiError::from)?;
        let found = self.gateway.limit_keys(tenant, given.after_name.into(), limit);
        let (limits, more) = found.await.map_err(ApiError::from)?;
        let last_name = limits.last().map(|limit| String::from(&*limit.name));
        let next_name = last_name.filter(|_| more).unwrap_or_default();
        let limits = limits.iter().map(show::limit_view).collect();
        answer(v1::ListLimitsResponse { limits, next_name })
    }

    async fn put_documents(
        &self,
        request: Request<v1::PutDocumentsRequest>,
    ) -> Answered<v1::PutDocumentsResponse> {
        let documents = request.into_inner().documents;
        let documents = documents.into_iter().map(ask::document_write).collect();
        let command = Command::PutDocuments(PutDocuments { documents });
        let Answer::Versions(versions) = self.command(command).await? else {
            unreachable!("{MISMATCH}")
        };
        answer(v1::PutDocumentsResponse { versions })
    }

    async fn get_document(
        &self,
        request: Request<v1::GetDocumentRequest>,
    ) -> Answered<v1::DocumentView> {
        let v1::GetDocumentRequest { tenant, kind, id } = request.into_inner();
        let tenant = ask::tenant(tenant);
        let name = DocumentName {
            tenant: tenant.clone(),
            kind: kind.as_str().into(),
            id: id.as_str().into(),
        };
        let found = self.gateway.document(name).await.map_err(ApiError::from)?;
        let (version, value) = found.ok_or_else(document_not_found)?;
        let (tenant, value) = (tenant.into(), Bytes::from_owner(value));
        answer(v1::DocumentView { tenant, kind, id, version, value })
    }

    async fn list_documents(
        &self,
        request: Request<v1::ListDocumentsRequest>,
    ) -> Answered<v1::ListDocumentsResponse> {
        let given = request.into_inner();
        let tenant: Arc<str> = ask::tenant(given.tenant).into();
        let filter = DocumentFilter {
            tenant: Box::from(&*tenant),
            kind: given.kind.as_str().into(),
            after: given.after_id.into(),
            limit: page(given.limit).map_err(ApiError::from)?,
        };
        let found = self.gateway.documents(filter).await.map_err(ApiError::from)?;
        let last_id = found.documents.last().map(|(id, _)| String::from(&**id));
        let next_id = last_id.filter(|_| found.more).unwrap_or_default();
        let shown = found.documents.into_iter().map(|(id, version)| v1::DocumentView {
            tenant: String::from(&*tenant),
            kind: given.kind.clone(),
            id: id.into(),
            version,
            value: Bytes::new(),
        });
        answer(v1::ListDocumentsResponse { documents: shown.collect(), next_id })
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Answered<v1::StatusView> {
        let status = self.gateway.status().await.map_err(ApiError::from)?;
        let health = if status.refusing.is_some() { "refusing-creates" } else { "serving" };
        answer(v1::StatusView {
            version: VERSION.to_owned(),
            partition: u32::from(status.partition),
            epoch: status.epoch,
            lsn: status.lsn,
            durable_lsn: status.durable_lsn,
            checkpoint_lsn: status.checkpoint_lsn,
            durability: self.gateway.durability().to_string(),
            last_sync_ms: status.last_sync_ms,
            live_jobs: status.live_jobs,
            waiting_requests: status.waiters,
            uptime_ms: u64::try_from(self.gateway.uptime().as_millis()).unwrap_or(u64::MAX),
            health: health.to_owned(),
            health_reason: status.refusing.map(|why| why.to_string()).unwrap_or_default(),
        })
    }
}

fn create_result(answer: Result<Answer, windlass_gateway::request::Refused>) -> v1::CreateResult {
    match answer {
        Ok(Answer::Created { key, existing }) => {
            v1::CreateResult { key: key.raw(), existing, refusal: None }
        }
        Ok(_) => unreachable!("{MISMATCH}"),
        Err(refused) => {
            v1::CreateResult { key: 0, existing: false, refusal: Some(refusal(refused)) }
        }
    }
}

fn document_not_found() -> ApiError {
    ApiError::not_found("document-not-found", "no document has this kind and id")
}
