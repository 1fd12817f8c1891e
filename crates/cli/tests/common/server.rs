//! The real binary as a server that a test kills.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running server; it ends with the test.
pub(crate) struct Server(Child);

impl Server {
    /// Starts it on a directory, with what else it is told.
    pub(crate) fn start(data: &Path, flags: &[&str]) -> Server {
        Server::start_with(data, flags, &[])
    }

    /// The same with variables.
    pub(crate) fn start_with(data: &Path, flags: &[&str], variables: &[(&str, String)]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["serve", "--log-level", "error"]).args(flags);
        command.args(["--checkpoint-seconds", "1", "--log-segment-mib", "16"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.arg("--data-dir").arg(data).stdin(Stdio::null()).stdout(Stdio::null());
        Server(command.spawn().unwrap())
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that is free right now.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
