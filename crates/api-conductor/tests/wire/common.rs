//! A server, and requests to it.

use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_server::settings::{FaceListen, Switch};
use windlass_server::{Config, ServerHandle, start};

/// Longer than anything here takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

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

    /// An answer with this status, and without a body.
    pub(crate) fn is_empty(&self, status: u16) {
        assert_eq!((self.status, self.text().as_str()), (status, ""), "{self:?}");
    }

    /// Plain text.
    pub(crate) fn plain(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("text/plain;charset=UTF-8"));
        self.text()
    }

    /// JSON, and all is well.
    pub(crate) fn shown(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// A failure in its one shape.
    pub(crate) fn fails(&self, status: u16, message: &str) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let body = self.json();
        assert_eq!((self.status, &body["message"]), (status, &json!(message)), "{body}");
        assert_eq!(body["status"], status);
        assert_eq!(body["retryable"], false);
        assert!(!body["instance"].as_str().unwrap().is_empty());
        body
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
            // Its workers wait too, and are not what is tested here.
            builtin: Switch::Off,
            log_segment_mib: 16,
            log_reserve_segments: 1,
            shutdown_seconds: 5,
            ..Config::default()
        };
        change(&mut config);
        Bench { server: start(config).await.unwrap(), _dir: dir }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.address()).await.unwrap()
    }

    /// One request on a connection of its own, with these lines in its head.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        lines: &[&str],
        body: &[u8],
    ) -> Answer {
        let mut stream = self.connect().await;
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
        self.send(method, &format!("/api{path}"), &lines, body.as_bytes()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("/api{path}"), &[], b"").await
    }

    pub(crate) async fn bare(&self, method: &str, path: &str) -> Answer {
        self.send(method, &format!("/api{path}"), &["content-length: 0"], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.text("POST", path, &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.text("PUT", path, &body.to_string()).await
    }

    /// Defines a workflow with these tasks.
    pub(crate) async fn define(&self, name: &str, tasks: Value) {
        let body = json!({ "name": name, "version": 1, "tasks": tasks });
        self.post("/metadata/workflow", body).await.is_empty(200);
    }

    /// Starts a workflow; its id.
    pub(crate) async fn run(&self, name: &str, input: Value) -> String {
        self.post("/workflow", json!({ "name": name, "input": input })).await.plain()
    }

    /// A workflow with its tasks.
    pub(crate) async fn workflow(&self, id: &str) -> Value {
        self.get(&format!("/workflow/{id}")).await.shown()
    }

    /// The one task that waits.
    pub(crate) async fn take(&self, task_type: &str) -> Value {
        let found = self.get(&format!("/tasks/poll/{task_type}?workerid=w")).await;
        found.shown()
    }

    /// Reports on a task.
    pub(crate) async fn update(&self, task: &Value, status: &str, output: Value) -> Answer {
        let body = json!({
            "workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"],
            "status": status, "outputData": output, "workerId": "w",
        });
        self.post("/tasks", body).await
    }

    /// Returns once so many polls wait.
    pub(crate) async fn until_waiters(&self, count: usize) {
        let began = Instant::now();
        while self.server.gateway().waiters() != count {
            assert!(began.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The workflow, once it has this status.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        let began = Instant::now();
        loop {
            let workflow = self.workflow(id).await;
            if workflow["status"] == status {
                return workflow;
            }
            assert!(began.elapsed() < PATIENCE, "{workflow}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A simple task; its name is its reference too.
pub(crate) fn simple(name: &str) -> Value {
    json!({ "name": name, "taskReferenceName": name, "type": "SIMPLE" })
}

/// A task that waits for ever.
pub(crate) fn wait(name: &str) -> Value {
    json!({ "name": name, "taskReferenceName": name, "type": "WAIT" })
}

/// How long something took.
pub(crate) async fn timed<T>(what: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    (what.await, began.elapsed())
}

/// The fields of an object, in alphabetical order.
pub(crate) fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// An id that names nothing, and one that is none of ours.
pub(crate) const NOWHERE: [&str; 2] = ["w123", "00000000-0000-4000-8000-000000000000"];
