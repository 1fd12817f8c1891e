//! The real Zeebe broker, as a plain Java process: one partition, no exporter, no secondary
//! storage, every commit flushed (its default).
//!
//! 8.6.0 is the newest whole distribution on Maven Central. `WINDLASS_ZEEBE_HOME` names one that is
//! unpacked already.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::load;
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::java;
use crate::bench::peer::Workplace;
use crate::bench::server::{self, Server};

/// The distribution.
const VERSION: &str = "8.6.0";
const ARTIFACT: &str = "io.camunda:camunda-zeebe";
/// How long it may take from the first byte on its port until it takes a process.
const READY_MAX: Duration = Duration::from_secs(180);
/// What its libraries reach into.
const OPENED: [&str; 4] = [
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
];

/// What it runs with, in words.
pub(super) const CONFIGURATION: &str = "one partition, no exporter, no secondary storage, flush on \
     every commit (default), backpressure off, -Xms512m -Xmx2g, the JVM's default collector; one \
     broker for all cases, warmed up before the first";

/// An installed broker.
pub(super) struct Broker {
    java: PathBuf,
    home: PathBuf,
    work: PathBuf,
}

impl Broker {
    /// Finds a Java and the distribution, or says what is missing.
    pub(super) fn set_up(workplace: &Workplace) -> Result<Self> {
        let java = java::find()?;
        let home = match std::env::var_os("WINDLASS_ZEEBE_HOME") {
            Some(home) => PathBuf::from(home),
            None => install(workplace.root())?,
        };
        if !home.join("lib").is_dir() {
            return Err(Failure::new(format!("{} holds no broker", home.display())));
        }
        Ok(Self { java, home, work: workplace.dir("zeebe")? })
    }

    pub(super) fn version(&self) -> String {
        let java = java::major(&self.java).unwrap_or_default();
        format!("{ARTIFACT}:{VERSION} on Java {java}")
    }

    /// Starts it on an empty folder and waits until it takes processes.
    pub(super) fn start(&self, runtime: &tokio::runtime::Runtime) -> Result<Server> {
        std::fs::create_dir_all(&self.work).context("create the broker's folder")?;
        let port = server::free_port()?;
        let mut command = server::guarded(&self.java.to_string_lossy(), None);
        command.current_dir(&self.work).args(["-Xms512m", "-Xmx2g"]).args(OPENED);
        command.arg(format!("-Djava.io.tmpdir={}", self.work.display()));
        command.arg("-classpath").arg(classpath(&self.home));
        command.arg(format!("-Dapp.home={0}", self.home.display()));
        command.arg(format!("-Dbasedir={0}", self.home.display()));
        command.arg("io.camunda.application.StandaloneBroker");
        command.env("ZEEBE_BROKER_DATA_DIRECTORY", self.work.join("data"));
        command.env("ZEEBE_BROKER_NETWORK_HOST", "127.0.0.1");
        command.env("ZEEBE_BROKER_GATEWAY_NETWORK_HOST", "127.0.0.1");
        command.env("ZEEBE_BROKER_GATEWAY_NETWORK_PORT", port.to_string());
        for name in [
            "ZEEBE_BROKER_NETWORK_COMMANDAPI_PORT",
            "ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT",
            "SERVER_PORT",
            "MANAGEMENT_SERVER_PORT",
        ] {
            command.env(name, server::free_port()?.to_string());
        }
        command.env("SERVER_ADDRESS", "127.0.0.1").env("MANAGEMENT_SERVER_ADDRESS", "127.0.0.1");
        command.env("CAMUNDA_SECURITY_AUTHENTICATION_UNPROTECTEDAPI", "true");
        command.env("CAMUNDA_SECURITY_AUTHORIZATIONS_ENABLED", "false");
        command.env("ZEEBE_BROKER_BACKPRESSURE_ENABLED", "false");
        command.env("ZEEBE_LOG_LEVEL", "warn").env("ZEEBE_LOG_APPENDER", "Console");
        let server = Server::start_within(command, &self.work, port, READY_MAX)?;
        runtime.block_on(until_ready(&server.address().to_string()))?;
        Ok(server)
    }
}

/// Its gateway listens before its partition leads.
async fn until_ready(address: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let asked = async {
            let mut client = load::connect(address).await?;
            let text = super::process::chain("ready", "ready", 1);
            load::deploy(&mut client, "ready", text).await
        };
        match asked.await {
            Ok(()) => return Ok(()),
            Err(failure) if began.elapsed() > READY_MAX => return Err(failure),
            Err(_not_yet) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

fn classpath(home: &Path) -> String {
    format!("{0}/config:{0}/lib/*", home.display())
}

/// Brings the distribution with Maven's own client and unpacks it.
fn install(root: &Path) -> Result<PathBuf> {
    let dir = root.join("zeebe-dist");
    let home = dir.join(format!("camunda-zeebe-{VERSION}"));
    if home.join("lib").is_dir() {
        return Ok(home);
    }
    if server::find("mvn").is_none() {
        return Err(Failure::new(format!("{ARTIFACT}:{VERSION} is missing and there is no mvn")));
    }
    eprintln!("bench: installing {ARTIFACT}:{VERSION} with mvn");
    std::fs::create_dir_all(&dir).context("create the broker's folder")?;
    let mut mvn = Command::new("mvn");
    mvn.current_dir(&dir).args(["-q", "-B", "dependency:copy"]);
    mvn.arg(format!("-Dartifact={ARTIFACT}:{VERSION}:tar.gz"));
    mvn.arg(format!("-DoutputDirectory={}", dir.display()));
    server::run(&mut mvn)?;
    let archive = dir.join(format!("camunda-zeebe-{VERSION}.tar.gz"));
    server::run(Command::new("tar").current_dir(&dir).arg("-xzf").arg(&archive))?;
    std::fs::remove_file(archive).context("remove the archive")?;
    Ok(home)
}
