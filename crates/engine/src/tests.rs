//! Tests that are about more than one verb. Those of one verb stand in its file; all of them go
//! through the helper `verb::check`.
//!
//! `replay` is the one that matters most: whatever happened, the log and any checkpoint give the
//! same state. `against_naive` holds the scheduler against the few lines of [`naive`], and `traces`
//! and `defects` are what the seeds taught. The table of a job's life is gone through in `life`,
//! with `tokens`, `deadlines` and `cancels` beside it.

mod against_naive;
mod cancels;
mod deadlines;
mod defects;
mod digest;
mod flow_replay;
mod flows;
mod life;
mod lifecycle_page;
mod limits;
mod naive;
mod random;
mod replay;
mod store;
mod tokens;
mod traces;
mod whys;
mod workflow_replay;
mod workflows;
