//! PostgreSQL with graphile-worker, `synchronous_commit=on`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::failure::{Context, Failure, Result};
use super::measure::{Figures, Shape};
use super::node;
use super::peer::{Durability, Peer, Workplace};
use super::server::{self, Server};

/// Debian puts each major version's programs in a folder of its own.
const DEBIAN_ROOT: &str = "/usr/lib/postgresql";
/// PostgreSQL refuses to run as root; Debian's package makes this account.
const ACCOUNT: &str = "postgres";

/// The peer.
pub(crate) struct PostgresGraphile {
    programs: PathBuf,
    work: PathBuf,
    scripts: PathBuf,
    account: Option<&'static str>,
}

impl PostgresGraphile {
    /// Installs server and client if they are missing.
    pub(crate) fn set_up(workplace: &Workplace) -> Result<Box<dyn Peer>> {
        if programs().is_none() {
            workplace.install_debian("postgresql")?;
        }
        let programs =
            programs().ok_or_else(|| Failure::new("the package brought no PostgreSQL server"))?;
        let scripts = workplace.need_node("graphile")?;
        let is_root = server::run(Command::new("id").arg("-u"))?.trim() == "0";
        let account = is_root.then_some(ACCOUNT);
        Ok(Box::new(Self { programs, work: workplace.dir("postgres_graphile")?, scripts, account }))
    }

    fn program(&self, name: &str) -> Command {
        server::guarded(&self.programs.join(name).to_string_lossy(), self.account)
    }
}

impl Peer for PostgresGraphile {
    fn durability(&self) -> Durability {
        Durability {
            create: "answered after commit, WAL flushed by fdatasync (strace)",
            lease: "the same (an update in a transaction of its own)",
            complete: "the same (a delete; batched completions are watched until committed)",
            durable_create: true,
            durable_peer: true,
        }
    }

    fn configuration(&self) -> String {
        "synchronous_commit=on, fsync=on, shared_buffers 512MB, max_wal_size 8GB; addJobs in \
         batches, 4 worker threads with concurrentJobs 24, localQueue and completeJobBatchDelay 0"
            .to_owned()
    }

    fn version(&self) -> String {
        let server = server::run(Command::new(self.programs.join("postgres")).arg("--version"));
        format!(
            "{}, graphile-worker {}",
            server.unwrap_or_default().trim(),
            node::package_version(&self.scripts, "graphile-worker")
        )
    }

    fn measure(&mut self, shape: Shape) -> Result<Figures> {
        std::fs::create_dir_all(&self.work).context("create the data folder")?;
        if let Some(account) = self.account {
            server::run(Command::new("chown").arg(account).arg(&self.work))?;
        }
        let data = self.work.join("data");
        let mut initdb = self.program("initdb");
        initdb.current_dir(&self.work).arg("-D").arg(&data);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]);
        server::run(&mut initdb)?;

        let port = server::free_port()?;
        let mut postgres = self.program("postgres");
        postgres.current_dir(&self.work).arg("-D").arg(&data).arg("-p").arg(port.to_string());
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "synchronous_commit=on",
            "fsync=on",
            "full_page_writes=on",
            "shared_buffers=512MB",
            "max_wal_size=8GB",
            "checkpoint_timeout=30min",
            "max_connections=100",
        ] {
            postgres.arg("-c").arg(setting);
        }
        let server = Server::start(postgres, &self.work, port)?;
        node::measure(&self.scripts, server.port(), shape)
    }
}

/// Folder of the newest installed server's programs.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(Path::new(DEBIAN_ROOT))
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let major = path.file_name()?.to_str()?.parse().ok()?;
            let programs = path.join("bin");
            programs.join("postgres").is_file().then_some((major, programs))
        })
        .collect();
    versions.sort();
    versions.pop().map(|(_, programs)| programs)
}
