//! A connector as processes: started with limits and little around it, ended so that nothing is left.
//!
//! [`Process`] is one connector; [`program`] is the seam to what launches it; [`helper`](mod@helper) is what stands between us and it until it runs, and the guard
//! that ends connectors whose runner died; [`sweep`](mod@sweep) finds what left its group; [`lock`] keeps attempts apart; [`exit`] says
//! what an exit means, [`environment`] what a connector sees of ours; [`wire`] is the way to read and
//! write without getting stuck.

mod connector;
pub mod environment;
pub mod exit;
pub mod helper;
pub mod lock;
pub mod program;
pub mod sweep;
pub mod wire;

pub use connector::{Launch, Process, ProcessError, Side};
pub use exit::Exit;
pub use helper::{Guard, Helper, helper};
pub use program::{Command, Program};
