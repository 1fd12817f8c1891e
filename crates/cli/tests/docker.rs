//! Connectors that are images, with a daemon of our own: asked, synced, out of memory, cancelled, and
//! with everything that could clean up killed.
//!
//! The daemon is `dockerd` of the path, or what `tests/airbyte/get-docker` put under `target/docker`. Where there is
//! none, or we are not root, the tests say so on standard error and do nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[allow(dead_code, reason = "others use more of it")]
#[path = "common/airbyte.rs"]
mod airbyte;
#[path = "common/dockerd.rs"]
mod dockerd;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/http.rs"]
mod http;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/server.rs"]
mod server;

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use airbyte::{Api, PATIENCE, connectors, kill, processes, rows, wait_until};
use dockerd::Dockerd;
use server::{Server, free_address};

/// A daemon and a data directory.
struct Place {
    folder: tempfile::TempDir,
    docker: Arc<Dockerd>,
}

impl Place {
    fn new() -> Option<Place> {
        Some(Place { folder: tempfile::tempdir().unwrap(), docker: Dockerd::shared()? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, value: &Value) -> String {
        std::fs::write(self.path(name), value.to_string()).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(words).env("WINDLASS_DATA_DIR", self.path("data"));
        command.env("DOCKER_HOST", self.docker.address());
        command
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let output = self.command(words).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, words: &[&str], part: &str) {
        let output = self.command(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }

    /// Our own source and destination as images; what they need of this machine is mounted.
    fn with_connectors() -> Option<Place> {
        let place = Place::new()?;
        let own = place.folder.path().to_str().unwrap();
        let scripts = format!("{}:/connectors:ro", connectors().display());
        let folder = format!("{own}:{own}");
        for side in ["source", "destination"] {
            let name = format!("{side}-own");
            let image = format!("windlass/{side}-own:1");
            let mut words = vec!["connector", "add", &name, "--image", &image];
            words.extend(["--network", "none", "--mount", &scripts, "--mount", &folder]);
            for system in ["/usr:/usr:ro", "/lib:/lib:ro", "/lib64:/lib64:ro"] {
                words.extend(["--mount", system]);
            }
            assert_eq!(place.json(&words)["image"], image);
        }
        Some(place)
    }

    fn sync(&self, source: &Value, more: &[&str]) -> Command {
        let from = self.file("source.json", source);
        let to = self.file("destination.json", &json!({"path": self.path("out.db")}));
        let mut command = self.command(&["sync", "run", "--json", "--source", "source-own"]);
        command.args(["--source-config", &from, "--destination", "destination-own"]);
        command.args(["--destination-config", &to]).args(more);
        command
    }

    fn rows(&self) -> u64 {
        rows(&self.path("out.db"))
    }

    fn book(&self, name: &str) -> Value {
        let text = std::fs::read(self.path("data/syncs").join(name).join("journal.json"));
        text.map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap_or_default())
    }

    /// Containers, whatever they do, of attempts with such a name.
    fn containers(&self, prefix: &str) -> Vec<String> {
        let format = "{{.Label \"windlass.attempt\"}} {{.Label \"windlass.side\"}}";
        let listed = self.docker.docker(&["ps", "-a", "--no-trunc", "--format", format]);
        let lines = listed.lines().filter(|line| line.starts_with(prefix));
        lines.map(str::to_owned).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn summary(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn images_are_asked() {
    let Some(place) = Place::with_connectors() else { return };
    let listed = place.json(&["connector", "list"]);
    assert_eq!(listed["connectors"][0]["image"], "windlass/destination-own:1");
    let spec = place.json(&["connector", "spec", "destination-own"]);
    assert_eq!(spec["supported_destination_sync_modes"][0], "append");
    let config = place.file("config.json", &json!({"streams": ["a", "b"]}));
    let checked = place.json(&["connector", "check", "source-own", "--config", &config]);
    assert_eq!(checked["status"], "SUCCEEDED");
    let shown = place.json(&["connector", "discover", "source-own", "--config", &config]);
    assert_eq!(shown["streams"].as_array().unwrap().len(), 2);
    // By its name alone, and with no entry point but the variable.
    for image in ["docker:windlass/shell:1", "docker:windlass/variable:1"] {
        let spec = place.json(&["connector", "spec", image]);
        assert_eq!(spec["documentationUrl"], "of the shell", "{image}");
    }
    place.refused(&["connector", "spec", "docker:windlass/nothing:1"], "it is no connector");
    // Nobody answers for a registry here.
    place.refused(&["connector", "spec", "docker:windlass/nowhere:1"], "cannot be pulled");
    assert_eq!(place.containers("ask-"), Vec::<String>::new());
}

#[test]
fn what_is_wrong_with_images_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |host: &str, words: &[&str], part: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(words).env("WINDLASS_DATA_DIR", folder.path()).env("DOCKER_HOST", host);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    };
    let nobody = format!("unix://{}/docker.sock", folder.path().display());
    let spec = ["connector", "spec", "docker:airbyte/source-x:1"];
    refused(&nobody, &spec, &format!("no Docker daemon answers at {nobody}"));
    refused(&nobody, &spec, "DOCKER_HOST names another socket");
    refused("tcp://127.0.0.1:1", &spec, "only sockets of this machine");
    refused(&nobody, &["connector", "spec", "docker:a b"], "is no name of an image");
    let add = ["connector", "add", "source-x", "--image"];
    refused(&nobody, &[&add[..], &["x", "--mount", "x:/y"]].concat(), "is no mount");
    refused(&nobody, &[&add[..], &["x"]].concat(), "no Docker daemon answers");
    assert!(!folder.path().join("connectors/source-x/manifest.json").exists());
}

#[test]
fn containers_sync_and_go_on() {
    let Some(place) = Place::with_connectors() else { return };
    let config = |count: u64| json!({"count": count, "state_every": 100, "pad": 2_000});
    let first = place.sync(&config(10_000), &["--name", "first"]).output().unwrap();
    let first = summary(&first);
    assert_eq!(
        (&first["status"], &first["recordsCommitted"]),
        (&json!("completed"), &json!(10_000)),
        "{first}"
    );
    let more = summary(&place.sync(&config(10_300), &["--name", "first"]).output().unwrap());
    assert_eq!(more["recordsCommitted"], 300);
    assert_eq!(place.rows(), 10_300);
    assert_eq!(place.containers("first-"), Vec::<String>::new());
}

#[test]
fn a_container_that_is_out_of_memory_says_so() {
    let Some(place) = Place::with_connectors() else { return };
    let config = json!({"mode": "eat_memory"});
    let output = place.sync(&config, &["--name", "eats", "--memory-mib", "64"]).output().unwrap();
    let failures = &summary(&output)["failures"];
    assert_eq!(failures[0]["externalMessage"], "the source ran out of memory (exit code 137)");
    assert!(failures[0]["internalMessage"].as_str().unwrap().contains("64 MiB"), "{failures}");
    assert_eq!(place.containers("eats-"), Vec::<String>::new());
}

#[test]
fn a_cancel_leaves_no_container() {
    let Some(place) = Place::with_connectors() else { return };
    // The source does not end by itself; the destination does.
    let config = json!({"mode": "hang", "count": 10});
    let mut command = place.sync(&config, &["--name", "cancels"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("something is committed", || {
        place.book("cancels")["streams"][0]["recordsCommitted"] == 10
    });
    assert_eq!(place.containers("cancels-").len(), 2);
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(summary(&output)["status"], "cancelled");
    assert_eq!(place.containers("cancels-"), Vec::<String>::new());
}

/// A daemon that takes questions, and answers none.
#[test]
fn a_daemon_that_says_nothing_holds_no_cancel_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let daemon = UnixListener::bind(path("docker.sock")).unwrap();
    std::fs::write(path("config.json"), "{}").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["sync", "run", "--json", "--source", "docker:airbyte/source-x:1"]);
    command.arg("--source-config").arg(path("config.json"));
    command.args(["--destination-command", "true", "--destination-config"]);
    command.arg(path("config.json")).env("WINDLASS_DATA_DIR", path("data"));
    command.env("DOCKER_HOST", format!("unix://{}", path("docker.sock").display()));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _asked = daemon.accept().unwrap();
    let began = Instant::now();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(said(&output).contains("cancelled"), "{}", said(&output));
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

/// The runner and its guard are killed, so that nobody is left who could remove the source's container: the
/// next attempt does, before it starts another.
#[test]
fn a_container_of_a_dead_runner_is_gone_before_the_next_one() {
    let Some(place) = Place::new() else { return };
    let address = free_address();
    let mut flags = vec!["--listen", &address, "--zeebe-listen", "off"];
    flags.extend(["--airbyte-retry-backoff-seconds", "1", "--connector-heartbeat-seconds", "1"]);
    let host = [("DOCKER_HOST", place.docker.address())];
    let _server = Server::start_with(&place.path("data"), &flags, &host);
    let mut api = Api::new(&address);
    // As the original's clients define it.
    let shell =
        json!({ "name": "shell", "dockerRepository": "windlass/shell", "dockerImageTag": "1" });
    let source = api.actor("source", &shell, &json!({}));
    let destination = api.destination(&place.path("out.db"));
    let connection = api.connect(&source, &destination);
    let job = api.sync(&connection);
    // The shell's first read says a record and a state, and then waits for ever.
    wait_until("a commit", || api.job(job)["rowsSynced"] == 1);
    let attempt = format!("{connection}.{job}-1");
    assert_eq!(place.containers(&attempt), [format!("{attempt} source")]);
    let is_ours = |words: &str| {
        let is_one =
            ["connector-helper guard", "connector-runner"].iter().any(|it| words.contains(it));
        is_one && words.contains(&attempt)
    };
    let both = processes(is_ours);
    assert_eq!(both.len(), 2);
    kill(&both);
    // With both gone at once, only who comes next can have removed it.
    let mut most = 0;
    wait_until("the second attempt is done", || {
        most = most.max(place.containers(&format!("{connection}.")).len());
        let shown = api.job(job);
        assert!(shown["status"] != "failed", "{shown}");
        shown["status"] == "succeeded"
    });
    assert_eq!(most, 1, "never two containers of one connection");
    assert_eq!(place.rows(), 3);
    assert_eq!(place.containers(&connection), Vec::<String>::new());
}
