//! The binary from outside: a server of its own for each test, asked over the command line as people
//! and scripts do.

#![allow(clippy::unwrap_used, reason = "a test may stop here")]

mod damage;
mod json;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass");
/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    process: Child,
    address: String,
    dir: TempDir,
}

impl Server {
    fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    fn start_in(dir: TempDir) -> Self {
        Self::start_at(dir, "127.0.0.1:0")
    }

    /// As after a crash: on the same data, at the same address.
    fn kill_and_start_again(mut self) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        let listen = self.address.trim_start_matches("http://").to_owned();
        Self::start_at(dir, &listen)
    }

    fn start_at(dir: TempDir, listen: &str) -> Self {
        Self::start_with_zeebe(dir, listen, "off")
    }

    /// With the API for processes.
    fn start_with_processes() -> Self {
        Self::start_with_zeebe(tempfile::tempdir().unwrap(), "127.0.0.1:0", "127.0.0.1:0")
    }

    fn start_with_zeebe(dir: TempDir, listen: &str, zeebe: &str) -> Self {
        let ready = dir.path().join("ready");
        let mut process = Command::new(PROGRAM)
            .args([
                "serve",
                "--listen",
                listen,
                "--log-level",
                "warn",
                "--connectors",
                "off",
                "--log-segment-mib",
            ])
            .args(["16", "--log-reserve-segments", "1", "--zeebe-listen", zeebe, "--ready-file"])
            .arg(&ready)
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let address = wait_for("the server", || {
            assert_eq!(process.try_wait().unwrap(), None, "the server ended");
            std::fs::read_to_string(&ready)
                .ok()
                .filter(|text| text.ends_with('\n') || !text.is_empty())
        });
        std::fs::remove_file(ready).unwrap();
        let address = address.trim().trim_start_matches("http://");
        Self { process, address: format!("http://{address}"), dir }
    }

    /// In good order.
    fn stop(mut self) -> TempDir {
        interrupt(&self.process);
        assert!(self.process.wait().unwrap().success());
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env("WINDLASS_SERVER", &self.address);
        command
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints with `--json`.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What REST answers.
    fn rest(&self, path: &str) -> Value {
        let host = self.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    fn create(&self, arguments: &[&str]) -> String {
        let arguments: Vec<&str> = ["job", "create"].iter().chain(arguments).copied().collect();
        text(&self.json(&arguments)["key"])
    }

    fn worker(&self, options: &[&str], script: &str) -> Worker {
        let mut command = self.command(&["worker", "--type", "mail", "--kill-after", "1s"]);
        command.args(options).args(["--", "sh", "-c", script]);
        Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Waits until the job is in this state, and shows it.
    fn reached(&self, key: &str, state: &str) -> Value {
        wait_for(state, || {
            Some(self.json(&["job", "get", key])).filter(|job| job["state"] == state)
        })
    }
}

/// What a command for stopped servers says.
fn offline(arguments: &[&str], data: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).arg("--data-dir").arg(data).arg("--json").output().unwrap()
}

/// A key is text.
fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Worker(Child);

impl Worker {
    /// Lets it drain.
    fn stop(mut self) {
        interrupt(&self.0);
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(process: &Child) {
    let status = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(status.unwrap().success());
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_absent_server_is_an_exit_code_and_a_hint() {
    let output =
        Command::new(PROGRAM).args(["status", "--server", "http://127.0.0.1:1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(error(&output).contains("start one with `windlass serve`"), "{}", error(&output));
    let output = Command::new(PROGRAM)
        .args(["--json", "status", "--server", "http://127.0.0.1:1"])
        .output()
        .unwrap();
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(error["error"]["hint"].is_string());
}

#[test]
fn jobs_are_created_seen_and_steered() {
    let server = Server::start();
    let key = server.create(&["mail", "{\"to\": 1}", "--group", "a", "--unique", "u"]);
    let job = server.json(&["job", "get", &key]);
    assert_eq!((&job["state"], &job["payload"]), (&json!("ready"), &json!({ "to": 1 })));

    let again = server.ask(&["job", "create", "mail", "--unique", "u"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(error(&again).contains(&format!("job {key} holds it")), "{}", error(&again));
    assert_eq!(server.ask(&["job", "get", "77"]).status.code(), Some(4));

    let why = server.json(&["job", "why", &key]);
    assert_eq!((&why["state"], &why["position"]), (&json!("ready"), &json!(0)));
    server.json(&["job", "update", &key, "--priority", "-5", "--retries", "9"]);
    let job = server.json(&["job", "get", &key]);
    assert_eq!((&job["priority"], &job["retries"]), (&json!(-5), &json!(9)));

    let mut lines = server
        .command(&["job", "create", "mail", "--lines", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    lines.stdin.take().unwrap().write_all(b"1\n2\n\n3").unwrap();
    let output = lines.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);
    let listed = server.json(&["job", "list", "--queue", "mail"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 4);

    server.json(&["job", "cancel", &key, "--reason", "no more"]);
    assert_eq!(server.json(&["job", "get", &key])["state"], "cancelled");
    let payload_missing = server.ask(&["job", "retry", &key]);
    assert!(error(&payload_missing).contains("not kept"), "{}", error(&payload_missing));
    let copy = server.json(&["job", "retry", &key, "--payload", "{\"to\": 1}"]);
    assert_eq!(copy["copied"], true);
    assert_eq!(server.json(&["job", "get", &text(&copy["key"])])["payload"], json!({ "to": 1 }));

    server.json(&["queue", "pause", "mail"]);
    server.json(&["queue", "configure", "mail", "--scheme", "2,1"]);
    let queue = server.json(&["queue", "list"])["queues"][0].clone();
    assert_eq!((&queue["paused"], &queue["ready"]), (&json!(true), &json!(4)));
    assert_eq!(queue["settings"]["scheme"], json!({ "high": 2, "low": 1 }));
    let top = server.json(&["top", "--snapshots", "1", "--queue", "mail"]);
    assert_eq!(top["queues"][0]["ready"], 4);
    assert_eq!(server.json(&["status"])["live_jobs"], 4);
}

#[test]
fn documents_have_versions() {
    let server = Server::start();
    assert_eq!(server.json(&["document", "put", "cfg", "a", "{\"x\": 1}"])["version"], 1);
    assert_eq!(server.json(&["document", "put", "cfg", "a", "2", "--expect", "1"])["version"], 2);
    assert_eq!(
        server.ask(&["document", "put", "cfg", "a", "3", "--expect", "1"]).status.code(),
        Some(1)
    );
    assert_eq!(server.json(&["document", "get", "cfg", "a"])["value"], 2);
    assert_eq!(server.json(&["document", "list", "cfg"])["documents"].as_array().unwrap().len(), 1);
    server.json(&["document", "delete", "cfg", "a"]);
    assert_eq!(server.ask(&["document", "get", "cfg", "a"]).status.code(), Some(4));
}

#[test]
fn schedules_make_jobs_by_the_clock() {
    let server = Server::start();
    let put = ["schedule", "put", "a/b", "--at", "* * * * * *", "--at", "daily", "--zone"];
    let more = ["Europe/Berlin", "--queue", "mail", "--payload", "7", "--priority", "-1"];
    let all: Vec<&str> = put.iter().chain(&more).copied().collect();
    assert_eq!(server.json(&all)["version"], 1);
    let replaced: Vec<&str> = all.iter().chain(&["--expect", "1"]).copied().collect();
    assert_eq!(server.json(&replaced)["version"], 2);
    assert_eq!(server.ask(&replaced).status.code(), Some(1), "it has version 2");

    let started = Instant::now();
    while server.json(&["queue", "list"])["queues"][0]["ready"] != 1 {
        assert!(started.elapsed() < PATIENCE, "a second passes");
    }
    let shown = server.json(&["schedule", "get", "a/b"]);
    assert_eq!((&shown["started"], &shown["overlap"]), (&json!(1), &json!("skip")));
    assert_eq!(shown["times"][1], json!({ "expression": "daily", "zone": "Europe/Berlin" }));
    assert_eq!((&shown["job"]["payload"], &shown["job"]["priority"]), (&json!(7), &json!(-1)));
    assert_eq!(server.json(&["schedule", "run", "a/b"])["outcome"], "skipped");
    server.json(&["schedule", "pause", "a/b", "--reason", "enough"]);
    let listed = server.json(&["schedule", "list", "a/"]);
    assert_eq!(listed["schedules"][0]["pause_reason"], "enough");
    let told = server.ask(&["schedule", "get", "a/b"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("yes: enough"), "{told:?}");
    server.json(&["schedule", "resume", "a/b"]);
    server.json(&["schedule", "delete", "a/b"]);
    assert_eq!(server.ask(&["schedule", "get", "a/b"]).status.code(), Some(4));

    let next = server.json(&["schedule", "next", "*-*-* 02:30", "--zone", "UTC", "--count", "2"]);
    assert_eq!(next["times_ms"].as_array().unwrap().len(), 2);
    assert_eq!(server.ask(&["schedule", "next", "sometimes"]).status.code(), Some(1));
}

#[test]
fn a_command_is_a_worker() {
    let server = Server::start();
    let absent = server.ask(&["worker", "--type", "mail", "--", "no-such-command"]);
    assert_eq!(absent.status.code(), Some(1), "before it takes a job: {absent:?}");
    assert!(error(&absent).contains("no-such-command is no command"), "{}", error(&absent));
    let script = "read -r n || true; echo \"$n for $WINDLASS_JOB_GROUP\" >&2
        case $n in bad) exit 3;; words) echo plain words;; loud) yes;; *) echo \"{\\\"n\\\": $n}\";; esac";
    let worker = server.worker(&["--output-max", "100000", "--permanent-codes", "7"], script);

    let done = server.json(&["job", "create", "mail", "42", "--group", "g", "--wait"]);
    assert_eq!((&done["result"], &done["log"]), (&json!({ "n": 42 }), &json!(["42 for g"])));
    assert_eq!(server.json(&["job", "create", "mail", "words", "--wait"])["result"], "plain words");

    let key = server.create(&["mail", "bad", "--retries", "0"]);
    let job = server.reached(&key, "incident");
    assert_eq!(job["message"], "exit code 3: bad for ");
    let incidents = server.json(&["incident", "list"]);
    assert_eq!(incidents["incidents"][0]["incident"]["kind"], "no-retries");
    let waited = server.ask(&["job", "create", "mail", "bad", "--retries", "0", "--wait"]);
    assert_eq!(waited.status.code(), Some(1));
    server.json(&["incident", "resolve", &key, "--retries", "1"]);
    server.reached(&key, "incident");

    let key = server.create(&["mail", "loud"]);
    let job = server.reached(&key, "incident");
    assert_eq!(job["message"], "printed a result of more than 100000 bytes");
    worker.stop();
}

#[test]
fn scripts_and_requests_are_worked_on_by_the_server_itself() {
    let server = Server::start();
    let script = r#"{"language": "javascript", "form": "function", "script": "return [...$.list].reverse()", "bindings": {"$": {"list": [1, 2, "a"]}}}"#;
    let key = server.create(&["windlass/evaluate", script]);
    assert_eq!(server.reached(&key, "completed")["result"], json!({ "value": ["a", 2, 1] }));
    let filter = r#"{"language": "jq", "script": ".list[]", "bindings": {"$": {"list": [1, 2]}}}"#;
    let key = server.create(&["windlass/evaluate", filter]);
    let result = json!({ "value": 1, "values": [1, 2] });
    assert_eq!(server.reached(&key, "completed")["result"], result);
    let wrong = r#"{"language": "javascript", "script": "nobody"}"#;
    let key = server.create(&["windlass/evaluate", wrong]);
    let job = server.reached(&key, "incident");
    let message = "script: ReferenceError: nobody is not defined";
    assert!(job.to_string().contains(message), "{job}");

    let request = json!({ "http_request": {
        "uri": format!("{}/health", server.address), "method": "GET", "connectionTimeOut": 20_000,
        "readTimeOut": 20_000,
    } });
    let key = server.create(&["conductor/HTTP", &request.to_string()]);
    let response = server.reached(&key, "completed")["result"]["response"].clone();
    assert_eq!((&response["statusCode"], &response["reasonPhrase"]), (&json!(200), &json!("OK")));
    let key = server.create(&["conductor/KAFKA_PUBLISH", "{}"]);
    let job = server.reached(&key, "incident");
    assert!(job.to_string().contains("KAFKA_PUBLISH is not built in"), "{job}");
    // Sandboxes do not outlive it.
    server.stop();
}

#[test]
fn a_job_that_should_stop_ends_with_everything_it_started() {
    let server = Server::start();
    let mark = server.dir.path().join("mark");
    let script = format!(
        "touch {mark}; (while touch {mark}; do sleep 0.05; done) & wait",
        mark = mark.display()
    );
    let worker = server.worker(&["--lease", "600ms"], &script);
    let key = server.create(&["mail", "--cancel", "cooperative"]);
    wait_for("the command", || mark.exists().then_some(()));
    assert_eq!(server.json(&["job", "cancel", &key])["pending"], true);
    server.reached(&key, "cancelled");
    assert_stops(&mark);

    let key = server.create(&["mail"]);
    wait_for("the command", || mark.exists().then_some(()));
    assert_eq!(server.json(&["job", "cancel", &key])["pending"], false);
    assert_stops(&mark);
    worker.stop();
}

#[test]
fn a_drain_puts_back_what_does_not_end_in_time() {
    let server = Server::start();
    let mark = server.dir.path().join("mark");
    let script = format!(
        "read -r n || true; [ \"$n\" = quick ] && exit 0; while touch {}; do sleep 0.05; done",
        mark.display()
    );
    let worker = server.worker(&["--drain-timeout", "200ms"], &script);
    server.json(&["job", "create", "mail", "quick", "--wait"]);
    let key = server.create(&["mail", "slow"]);
    wait_for("the command", || mark.exists().then_some(()));
    worker.stop();
    let job = server.json(&["job", "get", &key]);
    assert_eq!(
        (&job["state"], &job["attempt"], &job["retries"]),
        (&json!("ready"), &json!(1), &json!(3))
    );
    assert_stops(&mark);
}

#[test]
fn a_worker_goes_on_over_a_crash_of_the_server() {
    let server = Server::start();
    let (began, go) = (server.dir.path().join("began"), server.dir.path().join("go"));
    let script = format!(
        "touch {}; until [ -e {} ]; do sleep 0.05; done; echo $WINDLASS_JOB_ACTIVATION",
        began.display(),
        go.display()
    );
    let worker = server.worker(&[], &script);
    let key = server.create(&["mail"]);
    wait_for("the command", || began.exists().then_some(()));
    let server = server.kill_and_start_again();
    assert_eq!(server.json(&["job", "get", &key])["state"], "active");
    std::fs::write(go, "").unwrap();
    // It was not given away: the first activation completed it.
    assert_eq!(server.reached(&key, "completed")["result"], 1);
    assert_eq!(server.json(&["job", "create", "mail", "--wait"])["state"], "completed");
    worker.stop();
}

/// The file is removed and nobody makes it again.
fn assert_stops(mark: &Path) {
    wait_for("the end of the command", || {
        let _ = std::fs::remove_file(mark);
        std::thread::sleep(Duration::from_millis(300));
        (!mark.exists()).then_some(())
    });
}

#[test]
fn a_backup_goes_on_where_the_server_stopped() {
    let server = Server::start();
    let key = server.create(&["mail", "\"kept\""]);
    let dir = server.stop();
    let data = dir.path().join("data");
    let value = |output: Output| -> Value {
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };

    let verified = value(offline(&["log", "verify"], &data));
    assert_eq!((&verified["tail"], &verified["damage"]), (&json!("clean"), &Value::Null));
    assert_eq!(verified["checkpoint"]["lsn"], verified["last_lsn"]);
    let created = value(offline(&["log", "inspect", "--job", &key, "--limit", "1"], &data));
    let events = created["events"].as_array().unwrap();
    let job = events.iter().find_map(|event| event.get("job-created")).unwrap();
    assert_eq!((&job["key"], &job["payload"]), (&json!(key), &json!({ "bytes": 6 })));
    assert_eq!(
        value(offline(&["log", "repair", "--i-know-that-this-loses-data"], &data))["damage"],
        Value::Null
    );

    let file = dir.path().join("backup");
    let file = file.to_str().unwrap();
    value(offline(&["backup", file], &data));
    assert_eq!(offline(&["backup", file], &data).status.code(), Some(1), "never over another one");
    value(offline(&["restore", "--check", file], &data));
    assert_eq!(offline(&["restore", file], &data).status.code(), Some(1), "never over data");

    let other = tempfile::tempdir().unwrap();
    value(offline(&["restore", file], &other.path().join("data")));
    let server = Server::start_in(other);
    assert_eq!(server.json(&["job", "get", &key])["payload"], "kept");
    assert!(server.create(&["mail"]) > key);

    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
    assert_eq!(offline(&["restore", "--check", file], &data).status.code(), Some(5));
    let third = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let restored = offline(&["restore", file], &third.path().join("data"));
        assert_eq!(restored.status.code(), Some(5), "nothing of it is left behind: {restored:?}");
    }

    let segment = data.join("log").join("segment-0000000001.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(4).position(|bytes| bytes == b"kept").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--zeebe-listen", "off"];
    let refused = offline(&serve, &data);
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let words = error(&refused);
    assert!(words.contains("\"damaged\"") && words.contains("windlass restore"), "{words}");
}

#[test]
fn a_running_server_is_backed_up_and_goes_on() {
    let server = Server::start();
    let before = server.create(&["mail", "\"before\""]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let summary = server.json(&["backup", file.to_str().unwrap()]);
    assert!(summary["entries"].as_u64().unwrap() > 0, "{summary}");
    let after = server.create(&["mail", "\"after\""]);

    let restored = tempfile::tempdir().unwrap();
    let mut restore = Command::new(PROGRAM);
    restore.arg("restore").arg(&file).arg("--data-dir").arg(restored.path().join("data"));
    assert!(restore.output().unwrap().status.success());
    let server = Server::start_in(restored);
    assert_eq!(server.json(&["job", "get", &before])["payload"], "before");
    assert_eq!(server.ask(&["job", "get", &after]).status.code(), Some(4), "made later");
}

#[test]
fn bench_counts_every_job() {
    let server = Server::start();
    let measured = server.json(&["bench", "--jobs", "5000"]);
    assert_eq!(measured["delivered_exactly"], true);
}

/// A chain from `start` to `end` over one element.
fn process(id: &str, element: &str) -> String {
    format!(
        r#"<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
            xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="definitions">
          <bpmn:process id="{id}" isExecutable="true">
            <bpmn:startEvent id="start" />{element}<bpmn:endEvent id="end" />
            <bpmn:sequenceFlow id="to_it" sourceRef="start" targetRef="it" />
            <bpmn:sequenceFlow id="to_end" sourceRef="it" targetRef="end" />
          </bpmn:process>
        </bpmn:definitions>"#
    )
}

#[test]
fn processes_are_deployed_started_and_cancelled() {
    let server = Server::start_with_processes();
    let write = |name: &str, text: &str| {
        let path = server.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let work = r#"<bpmn:serviceTask id="it"><bpmn:extensionElements>
        <zeebe:taskDefinition type="pay" /></bpmn:extensionElements></bpmn:serviceTask>"#;
    let script = r#"<bpmn:scriptTask id="it"><bpmn:extensionElements>
        <zeebe:script expression="=a + 1" resultVariable="b" />
        </bpmn:extensionElements></bpmn:scriptTask>"#;
    let order = write("order.bpmn", &process("order", work));
    let sum = write("sum.bpmn", &process("sum", script));
    let deployed = server.json(&["deploy", &order, &sum]);
    let first = &deployed["deployments"][0]["processDefinition"];
    assert_eq!(first["processDefinitionId"], "order");
    assert_eq!(first["processDefinitionVersion"], 1);

    let result = server.json(&["instance", "start", "sum", "{\"a\": 2}", "--wait"]);
    assert_eq!(result["variables"]["b"], 3);
    let key = result["processInstanceKey"].as_str().unwrap();
    let shown = server.json(&["instance", "get", key]);
    assert_eq!(shown["instance"]["state"], "COMPLETED");
    assert_eq!(shown["variables"], json!({ "a": 2, "b": 3 }));
    let followed = server.ask(&["instance", "tail", key]);
    let followed = String::from_utf8(followed.stdout).unwrap();
    assert!(followed.contains("it (script-task) completed"), "{followed}");
    assert!(followed.ends_with("sum, version 1: completed\n"), "{followed}");

    let key = server.json(&["instance", "start", "order"])["processInstanceKey"].clone();
    let key = key.as_str().unwrap();
    for verb in ["get", "tail", "cancel"] {
        let other = server.ask(&["instance", verb, key, "--tenant", "other"]);
        assert_eq!(other.status.code(), Some(4), "{other:?}");
    }
    assert_eq!(server.json(&["instance", "cancel", key])["cancelled"], true);
    let again = server.ask(&["instance", "cancel", key]);
    assert_eq!(again.status.code(), Some(4));
    assert!(error(&again).contains("windlass instance get"), "{}", error(&again));

    let listed = server.json(&["instance", "list", "--state", "terminated"]);
    let listed = listed["instances"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["processInstanceKey"], key);
    assert_eq!(server.ask(&["instance", "get", "77"]).status.code(), Some(4));

    let unknown = server.ask(&["instance", "start", "nobody"]);
    assert_eq!(unknown.status.code(), Some(4));
    assert!(error(&unknown).contains("windlass deploy"), "{}", error(&unknown));
    let strange = server.ask(&["instance", "start", "order", "[1]"]);
    assert!(error(&strange).contains("not a JSON object"), "{}", error(&strange));
    let broken = write("broken.bpmn", &process("broken", r#"<bpmn:serviceTask id="it" />"#));
    let refused = server.ask(&["deploy", &broken]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(error(&refused).contains("windlass flow lint"), "{}", error(&refused));
}

#[test]
fn incidents_of_processes_are_listed_and_resolved() {
    let server = Server::start_with_processes();
    let file = server.dir.path().join("order.bpmn");
    // The type is a variable that nobody sets.
    let work = r#"<bpmn:serviceTask id="it"><bpmn:extensionElements>
        <zeebe:taskDefinition type="=kind" /></bpmn:extensionElements></bpmn:serviceTask>"#;
    std::fs::write(&file, process("order", work)).unwrap();
    server.json(&["deploy", &file.display().to_string()]);
    server.json(&["instance", "start", "order"]);
    let listed = server.json(&["incident", "list"]);
    let incident = &listed["incidents"][0];
    assert_eq!(listed["incidents"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(incident["incident"]["kind"], "extract-value-error");
    assert_eq!(incident["process"]["elementId"], "it");
    let key = text(&incident["incident"]["key"]);
    assert_eq!(server.json(&["incident", "resolve", &key])["resolved"], true);
    // What was wrong still is, so there is another.
    let again = server.json(&["incident", "list"]);
    assert_ne!(text(&again["incidents"][0]["incident"]["key"]), key);
    let gone = server.ask(&["incident", "resolve", &key]);
    assert_eq!(gone.status.code(), Some(4));
    assert!(error(&gone).contains("windlass incident list"), "{}", error(&gone));
}

/// Ends every sync well, at once.
fn launcher(server: &Server) -> Worker {
    let mut command = server.command(&["worker", "--type", "airbyte.sync", "--", "true"]);
    Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn connections_are_made_shown_and_run() {
    let server = Server::start();
    let create = ["connection", "create", "--source", "faker", "--source-config", "{\"count\": 5}"];
    let more = ["--destination", "sink", "--destination-command", "cat -", "--name", "mine"];
    let streams = ["--stream", "users=incremental_append", "--stream", "products"];
    let arguments: Vec<&str> = create.into_iter().chain(more).chain(streams).collect();
    let made = server.json(&arguments);
    let id = made["connectionId"].as_str().unwrap();
    assert_eq!(made["schedule"], json!({ "scheduleType": "manual" }));
    assert_eq!(made["configurations"]["streams"][0]["syncMode"], "incremental_append");

    // What is there is connected again; the definition is made once.
    let (source, destination) =
        (made["sourceId"].as_str().unwrap(), made["destinationId"].as_str().unwrap());
    let again = ["connection", "create", "--source", source, "--destination", destination];
    let again: Vec<&str> = again.into_iter().chain(["--every", "2h", "--inactive"]).collect();
    let second = server.json(&again);
    assert_eq!(second["schedule"]["basicTiming"], "Every 120 MINUTES");
    let listed = server.json(&["connection", "list"]);
    assert_eq!(listed["connections"].as_array().map(Vec::len), Some(2), "{listed}");

    let worker = launcher(&server);
    let job = server.json(&["connection", "run", id, "--wait"]);
    assert_eq!((&job["status"], &job["connectionId"]), (&json!("succeeded"), &json!(id)));
    worker.stop();
    let waiting = server.json(&["connection", "run", id, "--type", "clear"]);
    assert_eq!((&waiting["status"], &waiting["jobType"]), (&json!("pending"), &json!("clear")));
    let busy = server.ask(&["connection", "run", id]);
    assert_eq!(busy.status.code(), Some(1));
    assert!(error(&busy).contains("running already"), "{}", error(&busy));
    let jobs = server.json(&["connection", "jobs", id]);
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(2), "{jobs}");
    let done = server.json(&["connection", "jobs", "--status", "succeeded"]);
    assert_eq!(done["jobs"][0]["jobId"], job["jobId"]);
    let told = String::from_utf8(server.ask(&["connection", "show", id]).stdout).unwrap();
    for part in ["mine", "users (incremental_append)", "succeeded", "clear", "manual"] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    let list = String::from_utf8(server.ask(&["connection", "list"]).stdout).unwrap();
    assert!(list.contains("every 120 minutes") && list.contains("inactive"), "{list}");
}

/// The definition of a destination, as REST shows it.
fn definition_of(server: &Server, made: &Value) -> Value {
    let destination = made["destinationId"].as_str().unwrap();
    server.rest(&format!("/api/public/v1/destinations/{destination}"))["definitionId"].clone()
}

#[test]
fn a_connection_has_the_command_that_was_given_whatever_else_has_its_type() {
    let server = Server::start();
    let connect = |command: &str| {
        let ends = ["connection", "create", "--source", "faker", "--destination", "sink"];
        let made: Vec<&str> = ends.into_iter().chain(["--destination-command", command]).collect();
        definition_of(&server, &server.json(&made))
    };
    let (first, second) = (connect("cat -"), connect("cat"));
    assert_ne!(first, second);
    assert_eq!(connect("cat -"), first, "though the other is newer");
    assert_eq!(connect("cat '-'"), first, "quotes are no part of words");
}

#[test]
fn what_is_wrong_with_a_connection_is_said() {
    let server = Server::start();
    let ends = ["connection", "create", "--source", "faker", "--destination", "nothing"];
    for (more, part) in [
        (&[][..], "No destination definition has the type nothing"),
        (&["--source-config", "[]"][..], "--source-config is no JSON object"),
        (&["--every", "90s"][..], "whole minutes"),
        (&["--destination-command", "cat '-"][..], "is no command with its arguments"),
    ] {
        let arguments: Vec<&str> = ends.iter().chain(more).copied().collect();
        let refused = server.ask(&arguments);
        assert_eq!(refused.status.code(), Some(1));
        assert!(error(&refused).contains(part), "{}", error(&refused));
    }
    // What was made for nothing is gone: a new source is the first of its name.
    let sources = server.json(&["document", "list", "airbyte.source"]);
    assert!(!sources.to_string().contains("\"id\""), "{sources}");
    let nowhere = "11111111-1111-4111-8111-111111111111";
    assert_eq!(server.ask(&["connection", "show", nowhere]).status.code(), Some(4));
    assert_eq!(server.ask(&["connection", "run", nowhere]).status.code(), Some(4));
    let empty = String::from_utf8(server.ask(&["connection", "list"]).stdout).unwrap();
    assert!(empty.contains("windlass connection create"), "{empty}");
}
