//! The real Conductor server, as a plain Java process with SQLite for everything.
//!
//! `WINDLASS_CONDUCTOR_JAR` names a boot jar that is there already.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::http::Connection;
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::java;
use crate::bench::peer::Workplace;
use crate::bench::server::{self, Server};

const VERSION: &str = "3.32.1";
const ARTIFACT: &str = "org.conductoross:conductor-server";
const CLASSIFIER: &str = "boot";
/// How long it may take until it listens, and from then until it is healthy.
const READY_MAX: Duration = Duration::from_secs(240);

/// What it runs with, in words.
pub(super) const CONFIGURATION: &str = "SQLite (WAL) for data, queues and index, local locks, AI \
     integrations off, else its defaults; -Xms512m -Xmx2g, the JVM's default collector; one server \
     for all cases, warmed up before the first";

/// An installed server.
pub(super) struct Original {
    java: PathBuf,
    jar: PathBuf,
    work: PathBuf,
}

impl Original {
    /// Finds a Java and the jar, or says what is missing.
    pub(super) fn set_up(workplace: &Workplace) -> Result<Self> {
        let java = java::find()?;
        let jar = match std::env::var_os("WINDLASS_CONDUCTOR_JAR") {
            Some(jar) => PathBuf::from(jar),
            None => install(workplace.root())?,
        };
        if !jar.is_file() {
            return Err(Failure::new(format!("{} is no jar", jar.display())));
        }
        Ok(Self { java, jar, work: workplace.dir("conductor")? })
    }

    pub(super) fn version(&self) -> String {
        let java = java::major(&self.java).unwrap_or_default();
        let name = self.jar.file_stem().unwrap_or_default().to_string_lossy();
        format!("{name} on Java {java}")
    }

    /// Starts it on an empty folder and waits until it is healthy.
    pub(super) fn start(&self, runtime: &tokio::runtime::Runtime) -> Result<Server> {
        std::fs::create_dir_all(&self.work).context("create the server's folder")?;
        let port = server::free_port()?;
        let data = self.work.join("conductor.db");
        let mut command = server::guarded(&self.java.to_string_lossy(), None);
        command.current_dir(&self.work).args(["-Xms512m", "-Xmx2g"]);
        command.arg(format!("-Djava.io.tmpdir={}", self.work.display()));
        command.arg("-jar").arg(&self.jar);
        command.args([format!("--server.port={port}"), "--server.address=127.0.0.1".to_owned()]);
        command.arg(format!(
            "--spring.datasource.url=jdbc:sqlite:{}?busy_timeout=15000&journal_mode=WAL",
            data.display()
        ));
        command.args([
            "--conductor.db.type=sqlite",
            "--conductor.queue.type=sqlite",
            "--conductor.indexing.type=sqlite",
            "--conductor.workflow-execution-lock.type=local_only",
            "--conductor.app.ownerEmailMandatory=false",
            "--conductor.integrations.ai.enabled=false",
            "--logging.level.root=WARN",
        ]);
        let server = Server::start_within(command, &self.work, port, READY_MAX)?;
        runtime.block_on(until_healthy(&server.address().to_string()))?;
        Ok(server)
    }
}

async fn until_healthy(address: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let asked = async {
            let mut connection = Connection::open(address).await?;
            connection.ask("GET", "/health", "").await?.expected("ask for its health")
        };
        match asked.await {
            Ok(_) => return Ok(()),
            Err(failure) if began.elapsed() > READY_MAX => return Err(failure),
            Err(_not_yet) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

/// Brings the jar with Maven's own client.
fn install(root: &Path) -> Result<PathBuf> {
    let dir = root.join("conductor-dist");
    let jar = dir.join(format!("conductor-server-{VERSION}-{CLASSIFIER}.jar"));
    if jar.is_file() {
        return Ok(jar);
    }
    let named = format!("{ARTIFACT}:{VERSION}:jar:{CLASSIFIER}");
    if server::find("mvn").is_none() {
        return Err(Failure::new(format!("{named} is missing and there is no mvn")));
    }
    eprintln!("bench: installing {named} with mvn");
    std::fs::create_dir_all(&dir).context("create the server's folder")?;
    let mut mvn = Command::new("mvn");
    mvn.current_dir(&dir).args(["-q", "-B", "dependency:copy"]);
    mvn.arg(format!("-Dartifact={named}"));
    mvn.arg(format!("-DoutputDirectory={}", dir.display()));
    server::run(&mut mvn)?;
    Ok(jar)
}
