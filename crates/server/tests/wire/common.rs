//! What the tests of this folder share: a server on a free port with a directory of its own, a
//! gRPC client, and an HTTP client of forty lines.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::Channel;
use windlass_server::settings::{FaceListen, Switch};
use windlass_server::{Config, ServerHandle, start};
use windlass_worker::v1;
use windlass_worker::v1::windlass_client::WindlassClient;

pub(crate) type Grpc = WindlassClient<Channel>;

/// A server and its directory.
pub(crate) struct Bench {
    pub(crate) server: ServerHandle,
    pub(crate) dir: TempDir,
}

pub(crate) fn config(dir: &TempDir) -> Config {
    Config {
        data_dir: dir.path().join("data"),
        listen: "127.0.0.1:0".parse().unwrap(),
        zeebe_listen: FaceListen::Off,
        // Their polls are seen by tests that count those of others.
        builtin: Switch::Off,
        log_segment_mib: 16,
        log_reserve_segments: 1,
        shutdown_seconds: 5,
        ..Config::default()
    }
}

impl Bench {
    pub(crate) async fn start() -> Bench {
        Bench::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Bench {
        let dir = TempDir::new().unwrap();
        let mut config = config(&dir);
        change(&mut config);
        Bench { server: start(config).await.unwrap(), dir }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) async fn grpc(&self) -> Grpc {
        WindlassClient::connect(format!("http://{}", self.address())).await.unwrap()
    }

    pub(crate) async fn http(&self, method: &str, path: &str, body: &str) -> Answer {
        http(self.address(), method, path, &[], body.as_bytes()).await
    }

    pub(crate) async fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let answer = self.http(method, path, body).await;
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer.json()
    }
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
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap()
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
}

/// One request on a connection of its own.
pub(crate) async fn http(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request.push_str("host: windlass\r\n");
    }
    request.push_str(&format!("content-length: {}\r\n", body.len()));
    if !headers.iter().any(|(name, _)| *name == "content-type") && !body.is_empty() {
        request.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    // A server that refuses a large body may close before it has read it.
    let _refused = stream.write_all(body).await;
    let mut whole = Vec::new();
    let _reset = stream.read_to_end(&mut whole).await;
    let end = whole.windows(4).position(|part| part == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(whole[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: whole[end + 4..].to_vec() }
}

/// A job of a queue.
pub(crate) fn job(queue: &str) -> v1::NewJob {
    v1::NewJob { queue: queue.to_owned(), ..v1::NewJob::default() }
}

pub(crate) async fn create(grpc: &mut Grpc, job: v1::NewJob) -> u64 {
    let request = v1::CreateJobRequest { job: Some(job) };
    grpc.create_job(request).await.unwrap().into_inner().key
}

pub(crate) fn activation(queue: &str, jobs_max: u32) -> v1::ActivateJobsRequest {
    v1::ActivateJobsRequest {
        queues: vec![queue.to_owned()],
        worker: "w".to_owned(),
        jobs_max: Some(jobs_max),
        ..v1::ActivateJobsRequest::default()
    }
}

pub(crate) async fn take(grpc: &mut Grpc, queue: &str, jobs_max: u32) -> Vec<v1::Job> {
    grpc.activate_jobs(activation(queue, jobs_max)).await.unwrap().into_inner().jobs
}

pub(crate) async fn state(grpc: &mut Grpc, key: u64) -> v1::JobState {
    grpc.get_job(v1::GetJobRequest { key, ..Default::default() })
        .await
        .unwrap()
        .into_inner()
        .state()
}

/// Longer than anything here takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn code(status: &tonic::Status) -> &str {
    status.metadata().get("windlass-code").map_or("", |code| code.to_str().unwrap())
}
