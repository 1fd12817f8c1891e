//! What a definition says about its launch is done: its directory, its version, its program; packages that are not
//! there are installed, and what does not get under way in time is ended.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[allow(dead_code, reason = "others use more of it")]
#[path = "common/airbyte.rs"]
mod airbyte;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/http.rs"]
mod http;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_connector::process::lock::Lock;

use airbyte::{Api, connectors, own, python, rows};
use server::{Server, free_address};

struct Bench {
    folder: tempfile::TempDir,
    address: String,
    api: Api,
    _server: Server,
}

impl Bench {
    /// A server that gives up on a job with its first failure.
    fn start(flags: &[&str], variables: &[(&str, String)]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let all = ["--listen", &address, "--zeebe-listen", "off", "--connector-exit-seconds", "2"];
        let once = ["--airbyte-retry-complete-successive-max", "1"];
        let flags = [&all[..], &once, flags].concat();
        let server = Server::start_with(&folder.path().join("data"), &flags, variables);
        let api = Api::new(&address);
        Bench { folder, address, api, _server: server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A sync from such a source to our destination.
    fn sync(&mut self, launch: &Value) -> u64 {
        self.sync_with(launch, &json!({ "count": 10 }))
    }

    /// The same of a source with a configuration.
    fn sync_with(&mut self, launch: &Value, configuration: &Value) -> u64 {
        let definition = json!({ "name": "x", "launch": launch });
        let source = self.api.actor("source", &definition, configuration);
        let destination = self.api.destination(&self.path("out.db"));
        let connection = self.api.connect(&source, &destination);
        self.api.sync(&connection)
    }

    /// All that was said in attempts.
    fn logs(&self) -> String {
        let folders = fs::read_dir(self.path("data/attempts")).unwrap().flatten();
        folders.map(|it| fs::read_to_string(it.path().join("log")).unwrap_or_default()).collect()
    }

    #[track_caller]
    fn has_logged(&self, part: &str) {
        assert!(self.logs().contains(part), "{part}: {}", self.logs());
    }
}

#[test]
fn a_command_runs_in_its_directory() {
    let mut bench = Bench::start(&[], &[]);
    let command = |directory: &Path| {
        json!({ "kind": "command", "command": [python(), "-S", "source.py"],
            "directory": directory })
    };
    // The script is there, and nowhere else.
    let job = bench.sync(&command(&connectors()));
    bench.api.ends(job, "succeeded");
    assert_eq!(rows(&bench.path("out.db")), 10);
    let job = bench.sync(&command(Path::new("/nowhere/at-all")));
    bench.api.ends(job, "failed");
    let failures = attempts(&bench, job);
    assert!(
        failures.contains("the directory of the source is not there: /nowhere/at-all"),
        "{failures}"
    );
}

#[test]
fn connectors_of_every_tenant_are_launched() {
    let place = tempfile::tempdir().unwrap();
    let clients = place.path().join("clients.toml");
    let client = |tenant: &str| {
        format!(
            "[[client]]\nid = \"of-{tenant}\"\nsecret = \"s-{tenant}\"\ntenant = \"{tenant}\"\n"
        )
    };
    fs::write(&clients, client("red") + &client("blue") + &client("default")).unwrap();
    let mut bench = Bench::start(&["--airbyte-clients", clients.to_str().unwrap()], &[]);
    for (before, tenant) in ["blue", "default", "red"].into_iter().enumerate() {
        let (id, secret) = (format!("of-{tenant}"), format!("s-{tenant}"));
        bench.api = Api::of_client(&bench.address, &id, &secret);
        // What is sealed opens where its tenant is.
        let job = bench.sync_with(&own("source"), &json!({ "count": 10, "password": tenant }));
        bench.api.ends(job, "succeeded");
        assert_eq!(rows(&bench.path("out.db")), 10 * (before as u64 + 1));
        let jobs = bench.api.ask("GET", "/jobs", &Value::Null);
        assert_eq!(jobs["data"].as_array().unwrap().len(), 1, "{tenant} sees its own");
    }
}

/// The summaries of the attempts of a job.
fn attempts(bench: &Bench, job: u64) -> String {
    let folders = fs::read_dir(bench.path("data/attempts")).unwrap().flatten();
    let of_job = folders
        .map(|entry| entry.path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().contains(&format!(".{job}-")));
    of_job.map(|path| fs::read_to_string(path.join("summary.json")).unwrap_or_default()).collect()
}

/// A wheel of our own source, for an installer that has no registry.
fn wheel(folder: &Path, version: &str) {
    const SCRIPT: &str = "import sys, zipfile
folder, version, source = sys.argv[1:]
info = f'airbyte_source_tiny-{version}.dist-info'
with zipfile.ZipFile(f'{folder}/airbyte_source_tiny-{version}-py3-none-any.whl', 'w') as wheel:
    wheel.write(source, 'source_tiny.py')
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: airbyte-source-tiny\\nVersion: {version}\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/entry_points.txt', '[console_scripts]\\nsource-tiny = source_tiny:main\\ntiny-two = source_tiny:main\\n')
    wheel.writestr(f'{info}/RECORD', '')
    seen = f'open({folder!r} + \"/seen-%d\" % os.getpid(), \"w\")'
    wheel.writestr('tiny.pth', f'import os; {seen}.write(repr(sorted(os.environ)))\\n')
";
    let source = connectors().join("source.py");
    let mut command = Command::new(python());
    let made = command.args(["-S", "-c", SCRIPT]).arg(folder).arg(version).arg(source).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_package_that_is_not_there_is_installed_once() {
    let wheels = tempfile::tempdir().unwrap();
    wheel(wheels.path(), "1.0");
    wheel(wheels.path(), "2.0");
    let found = wheels.path().display().to_string();
    let secret = ("SECRET_OF_THE_SERVER", "1".to_owned());
    let variables = [("PIP_NO_INDEX", "1".to_owned()), ("PIP_FIND_LINKS", found), secret];
    let mut bench = Bench::start(&[], &variables);
    let launch = json!({ "kind": "python", "package": "airbyte-source-tiny", "version": "1.0",
        "program": "tiny-two" });
    // Its specification is asked for at the same time: one of them installs it, the other waits.
    let job = bench.sync(&launch);
    bench.api.ends(job, "succeeded");
    assert_eq!(rows(&bench.path("out.db")), 10);
    let manifest = bench.path("data/connectors/tiny-two@1.0/manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["version"], "1.0");
    assert!(manifest["command"][0].as_str().unwrap().ends_with("/bin/tiny-two"), "{manifest}");
    let times = bench.logs().matches("windlass: installing airbyte-source-tiny==1.0\n").count();
    assert_eq!(times, 1, "{}", bench.logs());
    // What it runs by itself whenever its Python starts sees little.
    let seen = fs::read_dir(wheels.path()).unwrap().map(|entry| entry.unwrap().path());
    let seen = seen.filter(|path| path.extension().is_none());
    let seen: Vec<String> = seen.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(!seen.is_empty() && seen.iter().all(|names| !names.contains("SECRET")), "{seen:?}");
    // By another name of its version it is another installation, and the same connector.
    let job = bench.sync(&json!({ "kind": "python", "package": "airbyte-source-tiny",
        "version": "1.0.0", "program": "tiny-two" }));
    bench.api.ends(job, "succeeded");
    // It is what `connector` installs too, and what is not there is said.
    let job = bench.sync(&json!({ "kind": "python", "package": "airbyte-source-nowhere" }));
    bench.api.ends(job, "failed");
    assert!(attempts(&bench, job).contains("installing failed"), "{}", attempts(&bench, job));
    let job = bench.sync(&json!({ "kind": "python", "package": "-r/etc/passwd" }));
    bench.api.ends(job, "failed");
    assert!(attempts(&bench, job).contains("is no name of a package"));
}

#[test]
fn two_who_add_the_same_install_it_once() {
    let place = tempfile::tempdir().unwrap();
    wheel(place.path(), "1.0");
    let add = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["connector", "add", "source-tiny", "--json"]);
        command.env("WINDLASS_DATA_DIR", place.path().join("data"));
        command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", place.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [add(), add()].map(|child| child.wait_with_output().unwrap());
    let added = both.map(|output| -> u64 {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        shown["addedAt"].as_u64().unwrap()
    });
    assert_eq!(added[0], added[1], "the second one found what the first one installed");
}

#[test]
fn an_end_that_one_message_does_not_hold_is_told() {
    let mut bench = Bench::start(&[], &[]);
    let large = json!({ "schema_pad": 2_900_000, "mode": "error_trace", "error_pad": 100_000,
        "failures": vec!["system_error"; 10] });
    let job = bench.sync_with(&own("source"), &large);
    bench.api.ends(job, "failed");
    assert!(attempts(&bench, job).len() > 4 << 20, "a message holds it");
    let source = bench.api.ask("GET", "/sources", &Value::Null)["data"][0]["sourceId"].clone();
    let path = format!("/streams?sourceId={}", source.as_str().unwrap());
    assert_eq!(bench.api.ask("GET", &path, &Value::Null)[0]["streamName"], "a");
}

#[test]
fn a_new_configuration_that_is_refused_is_left_out() {
    let mut bench = Bench::start(&[], &[]);
    let large = json!({ "mode": "control", "count": 10, "control_pad": 5 << 20 });
    let job = bench.sync_with(&own("source"), &large);
    bench.api.ends(job, "succeeded");
    assert_eq!(rows(&bench.path("out.db")), 10);
}

#[test]
fn an_attempt_whose_runner_does_not_start_is_over() {
    let mut bench = Bench::start(&["--connector-wrap", "/nowhere/at-all"], &[]);
    let job = bench.sync(&own("source"));
    bench.api.ends(job, "failed");
    let folders = fs::read_dir(bench.path("data/attempts")).unwrap();
    let of_job = format!(".{job}-1");
    let mut folders = folders.map(|entry| entry.unwrap().path());
    let folder = folders.find(|path| path.to_string_lossy().ends_with(&of_job)).unwrap();
    assert!(folder.join("reported").exists(), "nobody else says that it is");
}

#[test]
fn what_does_not_get_under_way_is_ended() {
    let late = ["--connector-claimed-seconds", "1", "--connector-launched-seconds", "1"];
    let mut bench = Bench::start(&late, &[]);
    // Launched, and never a word.
    let job = bench.sync(&json!({ "kind": "command", "command": ["/bin/sh", "-c", "sleep 3600"] }));
    bench.api.ends(job, "failed");
    bench.has_logged("the attempt ends: none of its connectors said anything within 1 s");
    // Claimed, and somebody else installs the package for ever.
    fs::create_dir_all(bench.path("data/connectors")).unwrap();
    let lock = bench.path("data/connectors/source-tiny@latest.lock");
    let _held = Lock::take(&lock, Duration::ZERO).unwrap();
    let job = bench.sync(&json!({ "kind": "python", "package": "airbyte-source-tiny" }));
    bench.api.ends(job, "failed");
    bench.has_logged("the attempt ends: what its connectors need was not there within 1 s");
}
