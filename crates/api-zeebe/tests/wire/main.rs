//! The Zeebe face over its wire: a server on free ports with a directory of its own, and a gRPC
//! client made from the same proto file.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod changes;
mod common;
mod deploy;
mod events;
mod flow;
mod instances;
mod leases;
mod listeners;
mod poll;
mod push;
mod results;
mod shape;

#[path = "../generated/grpc.health.v1.rs"]
mod health_v1;
#[path = "../generated/gateway_protocol.rs"]
mod protocol;
