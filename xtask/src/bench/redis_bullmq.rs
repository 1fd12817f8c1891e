//! Redis with BullMQ, `appendfsync always`.
//!
//! Redis writes and fsyncs the append-only file once per round of its event loop, before the
//! answers of that round are sent (group commit); every step of a job, the lease too, is a write.

use std::path::PathBuf;
use std::process::Command;

use super::failure::{Context, Result};
use super::measure::{Figures, Shape};
use super::node;
use super::peer::{Durability, Peer, Workplace};
use super::server::{self, Server};

/// The peer.
pub(crate) struct RedisBullmq {
    work: PathBuf,
    scripts: PathBuf,
}

impl RedisBullmq {
    /// Installs server and client if they are missing.
    pub(crate) fn set_up(workplace: &Workplace) -> Result<Box<dyn Peer>> {
        workplace.need_debian("redis-server", "redis-server")?;
        let scripts = workplace.need_node("bullmq")?;
        Ok(Box::new(Self { work: workplace.dir("redis_bullmq")?, scripts }))
    }
}

impl Peer for RedisBullmq {
    fn durability(&self) -> Durability {
        Durability {
            create: "answered after write and fsync of the append-only file, group commit (strace)",
            lease: "the same",
            complete: "the same (the move to finished and the next lease are one script)",
            durable_create: true,
            durable_peer: true,
        }
    }

    fn configuration(&self) -> String {
        "appendonly yes, appendfsync always, no RDB, no rewrite during the run; addBulk, \
         4 worker threads with concurrency up to 64 each, removeOnComplete"
            .to_owned()
    }

    fn version(&self) -> String {
        let server = server::run(Command::new("redis-server").arg("--version"))
            .ok()
            .and_then(|out| out.split("v=").nth(1)?.split(' ').next().map(str::to_owned));
        format!(
            "redis {}, bullmq {}",
            server.unwrap_or_default(),
            node::package_version(&self.scripts, "bullmq")
        )
    }

    fn measure(&mut self, shape: Shape) -> Result<Figures> {
        std::fs::create_dir_all(&self.work).context("create the data folder")?;
        let port = server::free_port()?;
        let mut command = server::guarded("redis-server", None);
        command.args(["--bind", "127.0.0.1", "--port"]).arg(port.to_string());
        command.arg("--dir").arg(&self.work);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        command.args(["--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction"]);
        let server = Server::start(command, &self.work, port)?;
        node::measure(&self.scripts, server.port(), shape)
    }
}
