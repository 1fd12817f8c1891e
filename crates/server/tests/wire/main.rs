//! The server over its wires: gRPC, the work stream, REST, and its own life. One binary, so that
//! it is linked once.

mod common;
mod grpc;
mod life;
mod rest;
mod stream;
