//! One function per call: hands it to the module of its group.

use std::net::SocketAddr;

use tonic::{Request, Response, Status};
use windlass_gateway::Gateway;

use crate::activate::{self, Activation};
use crate::protocol as p;
use crate::protocol::gateway_server;
use crate::push::{self, Push};
use crate::{decision, instance, job, message, resource, topology};

/// The service.
pub(crate) struct Service {
    gateway: Gateway,
    /// Where clients are told that we are.
    address: SocketAddr,
}

impl Service {
    pub(crate) fn new(gateway: Gateway, address: SocketAddr) -> Service {
        Service { gateway, address }
    }
}

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl gateway_server::Gateway for Service {
    type ActivateJobsStream = Activation;

    async fn activate_jobs(
        &self,
        request: Request<p::ActivateJobsRequest>,
    ) -> Answered<Activation> {
        activate::activate(&self.gateway, request.into_inner()).map(Response::new)
    }

    type StreamActivatedJobsStream = Push;

    async fn stream_activated_jobs(
        &self,
        request: Request<p::StreamActivatedJobsRequest>,
    ) -> Answered<Push> {
        push::open(&self.gateway, request.into_inner()).map(Response::new)
    }

    async fn topology(
        &self,
        _request: Request<p::TopologyRequest>,
    ) -> Answered<p::TopologyResponse> {
        topology::topology(&self.gateway, self.address).await.map(Response::new)
    }

    async fn complete_job(
        &self,
        request: Request<p::CompleteJobRequest>,
    ) -> Answered<p::CompleteJobResponse> {
        job::complete(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn fail_job(&self, request: Request<p::FailJobRequest>) -> Answered<p::FailJobResponse> {
        job::fail(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn throw_error(
        &self,
        request: Request<p::ThrowErrorRequest>,
    ) -> Answered<p::ThrowErrorResponse> {
        job::throw_error(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn update_job_retries(
        &self,
        request: Request<p::UpdateJobRetriesRequest>,
    ) -> Answered<p::UpdateJobRetriesResponse> {
        job::update_retries(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn update_job_timeout(
        &self,
        request: Request<p::UpdateJobTimeoutRequest>,
    ) -> Answered<p::UpdateJobTimeoutResponse> {
        job::update_timeout(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn update_job_priority(
        &self,
        request: Request<p::UpdateJobPriorityRequest>,
    ) -> Answered<p::UpdateJobPriorityResponse> {
        job::update_priority(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn resolve_incident(
        &self,
        request: Request<p::ResolveIncidentRequest>,
    ) -> Answered<p::ResolveIncidentResponse> {
        job::resolve_incident(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn deploy_process(
        &self,
        request: Request<p::DeployProcessRequest>,
    ) -> Answered<p::DeployProcessResponse> {
        resource::deploy_process(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn deploy_resource(
        &self,
        request: Request<p::DeployResourceRequest>,
    ) -> Answered<p::DeployResourceResponse> {
        resource::deploy_resource(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn delete_resource(
        &self,
        request: Request<p::DeleteResourceRequest>,
    ) -> Answered<p::DeleteResourceResponse> {
        resource::delete_resource(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn create_process_instance(
        &self,
        request: Request<p::CreateProcessInstanceRequest>,
    ) -> Answered<p::CreateProcessInstanceResponse> {
        instance::create_process_instance(&self.gateway, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn create_process_instance_with_result(
        &self,
        request: Request<p::CreateProcessInstanceWithResultRequest>,
    ) -> Answered<p::CreateProcessInstanceWithResultResponse> {
        instance::create_process_instance_with_result(&self.gateway, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn cancel_process_instance(
        &self,
        request: Request<p::CancelProcessInstanceRequest>,
    ) -> Answered<p::CancelProcessInstanceResponse> {
        instance::cancel_process_instance(&self.gateway, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn set_variables(
        &self,
        request: Request<p::SetVariablesRequest>,
    ) -> Answered<p::SetVariablesResponse> {
        instance::set_variables(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn modify_process_instance(
        &self,
        request: Request<p::ModifyProcessInstanceRequest>,
    ) -> Answered<p::ModifyProcessInstanceResponse> {
        instance::modify_process_instance(&self.gateway, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn migrate_process_instance(
        &self,
        request: Request<p::MigrateProcessInstanceRequest>,
    ) -> Answered<p::MigrateProcessInstanceResponse> {
        instance::migrate_process_instance(&self.gateway, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn assign_process_instance_business_id(
        &self,
        request: Request<p::AssignProcessInstanceBusinessIdRequest>,
    ) -> Answered<p::AssignProcessInstanceBusinessIdResponse> {
        instance::assign_process_instance_business_id(&self.gateway, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn publish_message(
        &self,
        request: Request<p::PublishMessageRequest>,
    ) -> Answered<p::PublishMessageResponse> {
        message::publish_message(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn broadcast_signal(
        &self,
        request: Request<p::BroadcastSignalRequest>,
    ) -> Answered<p::BroadcastSignalResponse> {
        message::broadcast_signal(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn evaluate_conditional(
        &self,
        request: Request<p::EvaluateConditionalRequest>,
    ) -> Answered<p::EvaluateConditionalResponse> {
        message::evaluate_conditional(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn evaluate_decision(
        &self,
        request: Request<p::EvaluateDecisionRequest>,
    ) -> Answered<p::EvaluateDecisionResponse> {
        decision::evaluate_decision(&self.gateway, request.into_inner()).await.map(Response::new)
    }
}
