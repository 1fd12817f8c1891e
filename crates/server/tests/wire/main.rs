//! The server over its wires: gRPC, the work stream, REST, and its own life. One binary, so that
//! it is linked once.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
mod grpc;
mod history;
mod life;
mod origin;
mod rest;
mod schedule;
mod steer;
mod stream;
