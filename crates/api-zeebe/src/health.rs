//! `grpc.health.v1.Health`: whether the gateway can be called.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use windlass_gateway::Gateway;

use crate::SERVICE_NAME;
use crate::health_v1::health_check_response::ServingStatus;
use crate::health_v1::{HealthCheckRequest, HealthCheckResponse, health_server};

/// The service.
pub(crate) struct Health {
    gateway: Gateway,
}

impl Health {
    pub(crate) fn new(gateway: Gateway) -> Health {
        Health { gateway }
    }

    fn of(&self, service: &str) -> ServingStatus {
        if !service.is_empty() && service != SERVICE_NAME {
            ServingStatus::ServiceUnknown
        } else if self.gateway.is_shutting_down() {
            ServingStatus::NotServing
        } else {
            ServingStatus::Serving
        }
    }
}

fn said(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        match self.of(&service) {
            ServingStatus::ServiceUnknown => {
                Err(Status::not_found(format!("there is no service {service}")))
            }
            status @ (ServingStatus::Serving
            | ServingStatus::NotServing
            | ServingStatus::Unknown) => Ok(Response::new(said(status))),
        }
    }

    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        // It changes once at most.
        let (sender, receiver) = mpsc::channel(2);
        let status = self.of(&request.into_inner().service);
        let gateway = self.gateway.clone();
        tokio::spawn(async move {
            // A client that is gone does not want to know.
            let _gone = sender.try_send(Ok(said(status)));
            tokio::select! {
                () = sender.closed() => return,
                () = gateway.until_shut_down() => {}
            }
            if status == ServingStatus::Serving {
                let _gone = sender.try_send(Ok(said(ServingStatus::NotServing)));
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
