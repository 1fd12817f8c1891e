//! Simulation: the parts of Windlass on a machine that fails whenever a seed says so.
//!
//! A simulation is a function of its seed. It runs the real code of a part against simulated seams, breaks something,
//! and checks invariants; a failure prints the seed and the line that repeats it.
//!
//! * [`random`]: the only source of chance.
//! * [`disk`]: a disk that loses, tears and reorders whatever was not synced; it implements the log's file system seam.
//! * [`log_sim`]: the log on that disk, crashed at every single operation of a history.
//! * [`engine_sim`]: a whole partition on that disk, with clients, clocks and checkpoints that fail.
//! * [`fuzz`]: whatever reads bytes, given bytes that nobody wrote.
//!
//! Nothing uses this crate; it may use anything but the server and the command line.

pub mod disk;
pub mod engine_sim;
pub mod fuzz;
pub mod log_sim;
pub mod random;

pub use disk::{CrashPoint, OperationCounts, Restart, SimDisk};
pub use random::Random;
