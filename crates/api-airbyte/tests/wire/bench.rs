//! A server, requests to it, and what the launcher would do.

use std::collections::HashSet;
use std::future::poll_fn;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use windlass_gateway::request::{HandedJob, JobFilter, Wanted};
use windlass_gateway::{Deliveries, Gateway, PollRequest, StreamControl};
use windlass_record::command::{
    Command, CompleteJob, DocumentWrite, FailJob, FailureKind, Lease, PutDocuments, QueueName,
    ReportProgress,
};
use windlass_record::id::{JobKey, Token};
use windlass_server::settings::{FaceListen, Switch};
use windlass_server::{Config, ServerHandle, start};

/// Longer than anything here takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const TENANT: &str = "default";

/// The workspace that is there from the start.
pub(crate) const WORKSPACE: &str = windlass_api_airbyte::WORKSPACE_DEFAULT;

/// An id that names nothing.
pub(crate) const NOWHERE: &str = "11111111-1111-4111-8111-111111111111";

/// A server and its directory.
pub(crate) struct Bench {
    server: Option<ServerHandle>,
    config: Config,
    pub(crate) dir: TempDir,
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// JSON, and all is well.
    pub(crate) fn shown(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// Status 204.
    pub(crate) fn gone(&self) {
        assert_eq!((self.status, self.body.len()), (204, 0), "{}", self.text());
    }

    /// A failure in its one shape; what it says.
    pub(crate) fn fails(&self, status: u16, name: &str) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!((self.status, &body["title"]), (status, &json!(name)), "{body}");
        assert_eq!(body["type"], format!("error:{name}"));
        assert_eq!(body["status"], status);
        text(&body["detail"])
    }
}

impl Bench {
    pub(crate) async fn start() -> Bench {
        Bench::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Bench {
        let dir = TempDir::new().unwrap();
        let mut config = Config {
            data_dir: dir.path().join("data"),
            listen: "127.0.0.1:0".parse().unwrap(),
            zeebe_listen: FaceListen::Off,
            builtin: Switch::Off,
            log_segment_mib: 16,
            log_reserve_segments: 1,
            shutdown_seconds: 5,
            ..Config::default()
        };
        change(&mut config);
        Bench { server: Some(start(config.clone()).await.unwrap()), config, dir }
    }

    /// The same data in a new server, after a crash.
    pub(crate) async fn again(&mut self) {
        self.again_with(|_| {}).await;
    }

    /// The same, with other settings.
    pub(crate) async fn again_with(&mut self, change: impl FnOnce(&mut Config)) {
        self.server.take().unwrap().kill().await;
        change(&mut self.config);
        self.server = Some(start(self.config.clone()).await.unwrap());
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        self.server.as_ref().unwrap().gateway()
    }

    /// One request on a connection of its own, with these lines in its head; the whole path.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        lines: &[&str],
        body: &[u8],
    ) -> Answer {
        let address = self.server.as_ref().unwrap().address();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: windlass\r\n");
        for line in lines {
            request.push_str(&format!("{line}\r\n"));
        }
        request.push_str("connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        // A server that refuses a large body may close before it has read it.
        let _refused = stream.write_all(body).await;
        let mut whole = Vec::new();
        let _reset = stream.read_to_end(&mut whole).await;
        let end =
            whole.windows(4).position(|part| part == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8(whole[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: whole[end + 4..].to_vec() }
    }

    /// A request with this text as JSON; `path` is what follows the prefix.
    pub(crate) async fn text(&self, method: &str, path: &str, body: &str) -> Answer {
        let length = format!("content-length: {}", body.len());
        let lines = ["content-type: application/json", &*length];
        self.send(method, &format!("/api/public/v1{path}"), &lines, body.as_bytes()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("/api/public/v1{path}"), &[], b"").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", &format!("/api/public/v1{path}"), &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.text("POST", path, &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.text("PUT", path, &body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.text("PATCH", path, &body.to_string()).await
    }

    /// A connector of ours.
    pub(crate) async fn define(&self, side: &str, name: &str) -> Value {
        let body = json!({ "name": name, "launch": { "kind": "command", "command": ["true"] } });
        let path = format!("/workspaces/{WORKSPACE}/definitions/{side}s");
        let made = self.post(&path, body).await.shown();
        // What it wants to know is somebody else's test.
        let job = self.take("airbyte.spec").await;
        self.complete(&job, json!({}), Vec::new()).await;
        made
    }

    /// A source of the built-in kind; its id.
    pub(crate) async fn source(&self) -> String {
        let configuration = json!({ "sourceType": "faker", "count": 10 });
        let body =
            json!({ "name": "src", "workspaceId": WORKSPACE, "configuration": configuration });
        text(&self.post("/sources", body).await.shown()["sourceId"])
    }

    /// A destination of a new kind; its id.
    pub(crate) async fn destination(&self) -> String {
        self.define("destination", "null").await;
        let configuration = json!({ "destinationType": "null" });
        let body =
            json!({ "name": "dst", "workspaceId": WORKSPACE, "configuration": configuration });
        text(&self.post("/destinations", body).await.shown()["destinationId"])
    }

    /// A connection of both, with these fields more.
    pub(crate) async fn connect(&self, more: Value) -> Value {
        let mut body =
            json!({ "sourceId": self.source().await, "destinationId": self.destination().await });
        let fields = body.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        self.post("/connections", body).await.shown()
    }

    /// Asks for a job of a connection.
    pub(crate) async fn sync(&self, connection: &str) -> Value {
        let body = json!({ "connectionId": connection, "jobType": "sync" });
        self.post("/jobs", body).await.shown()
    }

    /// The next job of a queue, as a launcher takes it.
    pub(crate) async fn take(&self, queue: &str) -> HandedJob {
        let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
        let request =
            PollRequest { wanted: wanted(queue), jobs_max: 1, bytes_max: 1 << 20, wait_ms };
        let mut jobs = self.gateway().poll(request).await.unwrap();
        jobs.pop().expect("a job")
    }

    /// How many jobs of a queue have not ended.
    pub(crate) async fn live(&self, queue: &str) -> usize {
        let filter = JobFilter {
            tenant: Some(TENANT.into()),
            queue: Some(queue.into()),
            limit: 100,
            ..JobFilter::default()
        };
        self.gateway().jobs(filter).await.unwrap().0.len()
    }

    /// Ends a job well, with documents.
    pub(crate) async fn complete(
        &self,
        job: &HandedJob,
        result: Value,
        documents: Vec<DocumentWrite>,
    ) {
        let result = result.to_string().into_bytes().into();
        let command = Command::CompleteJob(CompleteJob { lease: lease(job), result, documents });
        self.gateway().result(command).await.unwrap();
    }

    /// Ends an attempt badly.
    pub(crate) async fn fail(&self, job: &HandedJob, progressed: bool, permanent: bool) {
        let command = Command::FailJob(FailJob {
            lease: lease(job),
            message: "the source said no".into(),
            retries: None,
            backoff_ms: None,
            progressed,
            variables: Default::default(),
            kind: FailureKind::of(permanent),
        });
        self.gateway().result(command).await.unwrap();
    }

    /// Says how far an attempt is.
    pub(crate) async fn progress(&self, job: &HandedJob, documents: Vec<DocumentWrite>) {
        let note = "".into();
        let command = Command::ReportProgress(ReportProgress {
            lease: lease(job),
            percent: 1,
            note,
            documents,
        });
        self.gateway().result(command).await.unwrap();
    }

    /// What a worker of a queue hears from now on.
    pub(crate) fn stops(&self, queue: &str) -> Stops {
        let (open, deliveries) = self.gateway().open_stream(wanted(queue), 0).unwrap();
        Stops { _open: open, deliveries }
    }

    /// Documents as somebody else writes them.
    pub(crate) async fn put_documents(&self, documents: Vec<DocumentWrite>) {
        let put = Command::PutDocuments(PutDocuments { documents });
        self.gateway().command(put).await.unwrap();
    }

    /// A document, if it is there.
    pub(crate) async fn document(&self, kind: &str, id: &str) -> Option<(u64, Value)> {
        let name = windlass_gateway::read::DocumentName {
            tenant: TENANT.into(),
            kind: kind.into(),
            id: id.into(),
        };
        let found = self.gateway().document(name).await.unwrap();
        found.map(|(version, bytes)| (version, serde_json::from_slice(&bytes).unwrap()))
    }

    /// The job, which has this status. What was answered is there for everybody.
    pub(crate) async fn job(&self, job: &Value, status: &str) -> Value {
        let job = self.get(&format!("/jobs/{}", job["jobId"])).await.shown();
        assert_eq!(job["status"], status, "{job}");
        job
    }
}

/// Hears which jobs are to end, as a worker's stream does that takes none.
pub(crate) struct Stops {
    _open: StreamControl<()>,
    deliveries: Deliveries<()>,
}

impl Stops {
    /// Waits until all of these jobs are to end.
    pub(crate) async fn all(&self, jobs: &[HandedJob]) {
        let mut left: HashSet<JobKey> = jobs.iter().map(|job| job.key).collect();
        while !left.is_empty() {
            let next = poll_fn(|context| self.deliveries.poll_next(context, 1, 1 << 20));
            let delivery = timeout(PATIENCE, next).await.unwrap().unwrap().unwrap();
            for stop in delivery.stops {
                left.remove(&stop.key);
            }
        }
    }
}

fn wanted(queue: &str) -> Wanted {
    let queue = QueueName { tenant: TENANT.into(), queue: queue.into() };
    Wanted { queues: vec![queue], worker: "launcher".into(), lease_ms: 60_000, with_token: true }
}

fn lease(job: &HandedJob) -> Lease {
    Token { key: job.key, activation: job.activation }.into()
}

/// A document as the runner writes it.
pub(crate) fn write(kind: &str, id: &str, value: Value) -> DocumentWrite {
    DocumentWrite {
        tenant: TENANT.into(),
        kind: kind.into(),
        id: id.into(),
        expected_version: None,
        bytes: Some(value.to_string().into_bytes().into()),
    }
}

/// The payload of a job.
pub(crate) fn payload(job: &HandedJob) -> Value {
    serde_json::from_slice(&job.payload).unwrap()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}
