//! Ourselves, over the native stream with our own worker SDK.
//!
//! **To fill in by the lead**, once `windlass-worker` exists; until then every figure is absent
//! and the report says "not built yet". What the bench expects:
//!
//! * [`Windlass::set_up`] finds or builds the release binary;
//! * [`Peer::measure`] starts it on an empty data folder ([`Workplace::dir`],
//!   [`super::server::Server`]), makes a [`super::measure::Run`], spawns one producer (batch
//!   create) and [`super::measure::WORKERS`] workers as tasks, calls `run.drive()` on this
//!   thread, and ends with `run.figures(window, jobs the server still holds)`; `nats.rs` is the
//!   pattern, `take_async` hands out the jobs;
//! * [`extras`] measures what only we report.

use serde_json::{Map, Value};

use super::failure::{Failure, Result};
use super::peer::{Peer, Workplace};

/// Said wherever one of our figures is missing.
const NOT_BUILT: &str = "not built yet: the worker SDK is not wired into the bench";

/// Ourselves as a system under test.
pub(crate) struct Windlass;

impl Windlass {
    /// FILL IN: build or find the server binary and hand back a `Peer`.
    pub(crate) fn set_up(_workplace: &Workplace) -> Result<Box<dyn Peer>> {
        Err(Failure::new(NOT_BUILT))
    }
}

/// FILL IN: figures only we report, under the names of the contract: `core_transitions_per_s`,
/// `rss_bytes_per_waiting_job`, `restart_s`, `noisy_neighbour_ratio`, `idle_rss_mib`. An empty
/// map adds nothing to the report.
pub(crate) fn extras(_workplace: &Workplace, _quick: bool) -> Result<Map<String, Value>> {
    Ok(Map::new())
}
