//! Every backend runs the one suite.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tempfile::TempDir;
use windlass_checkpoint::conformance::{Backend, run_all};
use windlass_checkpoint::{
    Checkpoint, LocalCheckpoint, LocalOptions, MemoryCheckpoint, MemoryDisk,
};

struct Memory(MemoryDisk);

impl Backend for Memory {
    fn open(&self) -> Box<dyn Checkpoint> {
        Box::new(MemoryCheckpoint::open(&self.0))
    }
}

struct Local(TempDir, LocalOptions);

impl Backend for Local {
    fn open(&self) -> Box<dyn Checkpoint> {
        Box::new(LocalCheckpoint::open(self.0.path(), &self.1).unwrap())
    }
}

#[test]
fn memory() {
    run_all(&|| Box::new(Memory(MemoryDisk::new())));
}

#[test]
fn local() {
    run_all(&|| Box::new(Local(TempDir::new().unwrap(), LocalOptions::default())));
}

// Tables and cache so small that every case runs through many of them.
#[test]
fn local_with_tiny_tables() {
    let options = LocalOptions {
        cache_bytes: 64 << 10,
        block_bytes: 1 << 10,
        table_bytes: 16 << 10,
        ..LocalOptions::default()
    };
    run_all(&|| Box::new(Local(TempDir::new().unwrap(), options.clone())));
}
