//! A server, and requests to it.

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_server::settings::{FaceListen, Switch};
use windlass_server::{Config, ServerHandle, start};

/// Where the scenarios of the black box tests stand.
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/zeebe/processes");

/// A server and its directory.
pub(crate) struct Bench {
    pub(crate) server: ServerHandle,
    _dir: TempDir,
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
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
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
            zeebe_listen: FaceListen::On("127.0.0.1:0".parse().unwrap()),
            log_segment_mib: 16,
            log_reserve_segments: 1,
            shutdown_seconds: 5,
            builtin: Switch::Off,
            ..Config::default()
        };
        change(&mut config);
        Bench { server: start(config).await.unwrap(), _dir: dir }
    }

    /// One request on a connection of its own. `path` is what follows the prefix.
    pub(crate) async fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        let mut request =
            format!("{method} /v2{path} HTTP/1.1\r\nhost: windlass\r\nconnection: close\r\n");
        request.push_str(&format!("content-length: {}\r\n", body.len()));
        if !kind.is_empty() {
            request.push_str(&format!("content-type: {kind}\r\n"));
        }
        request.push_str("\r\n");
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

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.address()).await.unwrap()
    }

    /// A request with JSON, or without a body.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        match body {
            Some(body) => {
                self.send(method, path, "application/json", body.to_string().as_bytes()).await
            }
            None => self.send(method, path, "", b"").await,
        }
    }

    /// A POST that must succeed.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.ask("POST", path, Some(body)).await;
        assert!(answer.status < 300, "{path}: {answer:?} {}", answer.json());
        answer.json()
    }

    /// Deploys scenarios, by the names of their files.
    pub(crate) async fn deploy(&self, files: &[&str]) -> Value {
        let parts: Vec<(&str, Vec<u8>)> = files.iter().map(|name| (*name, read(name))).collect();
        let answer = self.deploy_parts(&parts).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    pub(crate) async fn deploy_parts(&self, files: &[(&str, Vec<u8>)]) -> Answer {
        let body = multipart(files, &[]);
        self.send("POST", "/deployments", MULTIPART, &body).await
    }

    /// Starts a process; its key.
    pub(crate) async fn create(&self, id: &str, variables: Value) -> String {
        let body = json!({ "processDefinitionId": id, "variables": variables });
        text(&self.post("/process-instances", body).await["processInstanceKey"])
    }

    /// The one job there is.
    pub(crate) async fn take(&self, job_type: &str) -> Value {
        let jobs = self.activate(json!({ "type": job_type })).await;
        let [job] = jobs.as_slice() else { panic!("one job is wanted: {jobs:?}") };
        job.clone()
    }

    /// Jobs, without waiting unless it says so.
    pub(crate) async fn activate(&self, asked: Value) -> Vec<Value> {
        let mut body = json!({
            "worker": "w", "timeout": 60_000, "maxJobsToActivate": 10, "requestTimeout": -1,
        });
        for (name, value) in asked.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.post("/jobs/activation", body).await["jobs"].as_array().unwrap().clone()
    }
}

pub(crate) const MULTIPART: &str = "multipart/form-data; boundary=xxBOUNDARYxx";

pub(crate) fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{SCENARIOS}/{name}")).unwrap()
}

/// The body of a form with files and fields.
pub(crate) fn multipart(files: &[(&str, Vec<u8>)], fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    let disposition = "--xxBOUNDARYxx\r\nContent-Disposition: form-data; name=";
    for (name, content) in files {
        let head = format!("{disposition}\"resources\"; filename=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    for (name, value) in fields {
        let part = format!("{disposition}\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(b"--xxBOUNDARYxx--\r\n");
    body
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The fields of an object, in alphabetical order.
pub(crate) fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// A key that names nothing.
pub(crate) const NOWHERE: &str = "2251799814685248";
