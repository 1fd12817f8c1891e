//! The source of a clear: no process, but the same lines. For each stream: it has started, it has no
//! state any more, it is complete. The destination does the rest, for its catalog says so.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use serde_json::{Value, json};

use crate::observer::now_ms;
use crate::protocol::catalog::Catalog;
use crate::protocol::message::Descriptor;

/// Writes all of it; nobody to read it ends it.
pub fn run(catalog: &Catalog, output: OwnedFd) {
    let mut output = File::from(output);
    for stream in &catalog.streams {
        let name = &stream.descriptor;
        let state = json!({"type": "STATE", "state": {"type": "STREAM",
            "stream": {"stream_descriptor": name, "stream_state": null}}});
        let lines = [status(name, "STARTED"), state, status(name, "COMPLETE")];
        for line in lines {
            if output.write_all(format!("{line}\n").as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn status(stream: &Descriptor, status: &str) -> Value {
    json!({"type": "TRACE", "trace": {"type": "STREAM_STATUS", "emitted_at": now_ms(),
        "stream_status": {"stream_descriptor": stream, "status": status}}})
}
