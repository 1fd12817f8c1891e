//! A server in this process that does what a test tells it, message by message.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

#[path = "../../../api-native/src/generated/windlass.v1.rs"]
pub(crate) mod v1;

use v1::windlass_server::{Windlass, WindlassServer};

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Fake {
    pub(crate) address: String,
    sessions: mpsc::UnboundedReceiver<Session>,
    pub(crate) creates: Arc<Mutex<Creates>>,
    /// Jobs that were put back by a call.
    pub(crate) released: Arc<Mutex<Vec<u64>>>,
}

/// How create-jobs answers.
#[derive(Default)]
pub(crate) struct Creates {
    /// The batches seen.
    pub(crate) batches: Vec<Vec<v1::NewJob>>,
    /// So many calls are answered with unavailable first.
    pub(crate) unavailable: u32,
}

/// One work stream, seen from the server.
pub(crate) struct Session {
    pub(crate) incoming: Streaming<v1::WorkerMessage>,
    pub(crate) outgoing: mpsc::UnboundedSender<Result<v1::ServerMessage, Status>>,
}

#[derive(Clone)]
struct Service {
    sessions: mpsc::UnboundedSender<Session>,
    creates: Arc<Mutex<Creates>>,
    released: Arc<Mutex<Vec<u64>>>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (opened, sessions) = mpsc::unbounded_channel();
        let (creates, released) = (Arc::default(), Arc::default());
        let service = Service {
            sessions: opened,
            creates: Arc::clone(&creates),
            released: Arc::clone(&released),
        };
        let serving = tonic::transport::Server::builder()
            .add_service(WindlassServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        Self { address, sessions, creates, released }
    }

    /// The next stream that a worker opens.
    pub(crate) async fn session(&mut self) -> Session {
        tokio::time::timeout(PATIENCE, self.sessions.recv()).await.unwrap().unwrap()
    }
}

impl Session {
    pub(crate) async fn message(&mut self) -> v1::WorkerMessage {
        let message = tokio::time::timeout(PATIENCE, self.incoming.message()).await;
        message.expect("no message came").unwrap().expect("the worker closed its stream")
    }

    /// Messages until so many results have come.
    pub(crate) async fn results(&mut self, count: usize) -> Vec<v1::Result> {
        let mut results = Vec::new();
        while results.len() < count {
            results.extend(self.message().await.results);
        }
        assert_eq!(results.len(), count);
        results
    }

    pub(crate) fn send(&self, message: v1::ServerMessage) {
        self.outgoing.send(Ok(message)).unwrap();
    }

    pub(crate) fn send_jobs(&self, jobs: impl IntoIterator<Item = v1::Job>) {
        self.send(v1::ServerMessage {
            jobs: jobs.into_iter().collect(),
            ..v1::ServerMessage::default()
        });
    }

    /// So many results of this stream are durable.
    pub(crate) fn answer(&self, results: u64) {
        self.send(v1::ServerMessage { results, ..v1::ServerMessage::default() });
    }

    pub(crate) fn break_off(self) {
        let _ = self.outgoing.send(Err(Status::unavailable("the server went away")));
    }
}

pub(crate) fn job(key: u64, payload: &str) -> v1::Job {
    v1::Job {
        key,
        activation: 1,
        queue: "q".to_owned(),
        r#type: "q".to_owned(),
        attempt: 1,
        payload: payload.as_bytes().to_vec().into(),
        ..v1::Job::default()
    }
}

macro_rules! unscripted {
    ($($name:ident($request:ident) -> $response:ident;)*) => {
        #[tonic::async_trait]
        impl Windlass for Service {
            type WorkStream = UnboundedReceiverStream<Result<v1::ServerMessage, Status>>;

            async fn work(
                &self,
                request: Request<Streaming<v1::WorkerMessage>>,
            ) -> Result<Response<Self::WorkStream>, Status> {
                let (outgoing, sent) = mpsc::unbounded_channel();
                let session = Session { incoming: request.into_inner(), outgoing };
                self.sessions.send(session).map_err(|_| Status::unavailable("the test ended"))?;
                Ok(Response::new(UnboundedReceiverStream::new(sent)))
            }

            async fn create_jobs(
                &self,
                request: Request<v1::CreateJobsRequest>,
            ) -> Result<Response<v1::CreateJobsResponse>, Status> {
                let jobs = request.into_inner().jobs;
                // A loaded server: callers that come meanwhile must share the next batch.
                tokio::task::yield_now().await;
                let mut creates = self.creates.lock().unwrap();
                creates.batches.push(jobs.clone());
                if creates.unavailable > 0 {
                    creates.unavailable -= 1;
                    return Err(Status::unavailable("not now"));
                }
                let results = jobs.iter().map(|job| match job.payload.first() {
                    Some(&key) => v1::CreateResult { key: key.into(), ..Default::default() },
                    None => v1::CreateResult {
                        refusal: Some(v1::Refusal {
                            code: "empty".to_owned(),
                            grpc_code: 3,
                            ..Default::default()
                        }),
                        ..Default::default()
                    },
                });
                Ok(Response::new(v1::CreateJobsResponse { results: results.collect() }))
            }

            async fn release_job(
                &self,
                request: Request<v1::ReleaseJobRequest>,
            ) -> Result<Response<v1::ReleaseJobResponse>, Status> {
                self.released.lock().unwrap().push(request.into_inner().key);
                Ok(Response::new(v1::ReleaseJobResponse::default()))
            }

            async fn extend_lease(
                &self,
                _: Request<v1::ExtendLeaseRequest>,
            ) -> Result<Response<v1::ExtendLeaseResponse>, Status> {
                Ok(Response::new(v1::ExtendLeaseResponse::default()))
            }

            $(async fn $name(
                &self,
                _: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                Err(Status::unimplemented("the fake server has no script for this"))
            })*
        }
    };
}

unscripted! {
    create_job(CreateJobRequest) -> CreateJobResponse;
    activate_jobs(ActivateJobsRequest) -> ActivateJobsResponse;
    complete_job(CompleteJobRequest) -> CompleteJobResponse;
    fail_job(FailJobRequest) -> FailJobResponse;
    throw_error(ThrowErrorRequest) -> ThrowErrorResponse;
    report_progress(ReportProgressRequest) -> ReportProgressResponse;
    append_log(AppendLogRequest) -> AppendLogResponse;
    cancel_job(CancelJobRequest) -> CancelJobResponse;
    update_job(UpdateJobRequest) -> UpdateJobResponse;
    resolve_incident(ResolveIncidentRequest) -> ResolveIncidentResponse;
    get_job(GetJobRequest) -> JobView;
    list_jobs(ListJobsRequest) -> ListJobsResponse;
    why_job(WhyJobRequest) -> WhyJobResponse;
    list_queues(ListQueuesRequest) -> ListQueuesResponse;
    configure_queue(ConfigureQueueRequest) -> ConfigureQueueResponse;
    pause_queue(PauseQueueRequest) -> PauseQueueResponse;
    configure_limit(ConfigureLimitRequest) -> ConfigureLimitResponse;
    get_limit(GetLimitRequest) -> LimitView;
    list_limits(ListLimitsRequest) -> ListLimitsResponse;
    put_documents(PutDocumentsRequest) -> PutDocumentsResponse;
    get_document(GetDocumentRequest) -> DocumentView;
    list_documents(ListDocumentsRequest) -> ListDocumentsResponse;
    get_status(GetStatusRequest) -> StatusView;
}
