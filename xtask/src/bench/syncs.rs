//! Syncs: [`throughput`] sends records from a generator process to a sink process, beside `cat` and beside
//! a full parse; [`real`] runs sources of PyPI, beside a pipe of the shell and beside the [`peers`].
//! [`connectors`] has the sources and the destination, [`timed`] runs programs.

mod connectors;
mod peers;
mod real;
mod throughput;
mod timed;

use serde_json::{Map, Value, json};

use super::args::Args;
use super::failure::Result;
use super::peer::Workplace;
use super::report::aim;
pub(crate) use peers::{MELTANO, PYAIRBYTE};
use real::{Installed, Real};

/// Of the speed of `cat`, for records of 1.7 KB that are appended.
const OVER_CAT_AIM: f64 = 0.6;
/// More than the shell takes for the same, at most.
const OVERHEAD_S_AIM: f64 = 0.5;
/// Of the runner, at most.
const MEMORY_MB_AIM: f64 = 50.0;

/// What syncs need that may be missing: all of it, or why not.
pub(crate) struct SetUp(Installed);

/// Installs what is asked for.
pub(crate) fn set_up(workplace: &Workplace, args: &Args) -> SetUp {
    SetUp(Installed::new(workplace, args))
}

impl SetUp {
    /// What there is, for a person.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lines()
    }
}

/// What was measured.
pub(crate) struct Measured {
    /// If it was asked for.
    throughput: Option<Result<Value>>,
    real: Real,
}

/// Measures it: the medians of three rounds; with `--quick` small inputs, once.
pub(crate) fn measure(set_up: &SetUp, workplace: &Workplace, args: &Args) -> Measured {
    let throughput = args.wants(super::OURS).then(|| throughput::measure(args));
    Measured { throughput, real: Real::measure(&set_up.0, workplace, args) }
}

impl Measured {
    /// What each system gets in the report.
    pub(crate) fn by_system(&self) -> Vec<(&'static str, Map<String, Value>)> {
        let mut systems = match &self.throughput {
            Some(Ok(measured)) => throughput::by_system(measured),
            Some(Err(why)) => {
                let failed = json!({ "failed": why.to_string() });
                vec![(super::OURS, Map::from_iter([("syncs".to_owned(), failed)]))]
            }
            None => Vec::new(),
        };
        systems.extend(self.real.by_system());
        systems
    }

    /// For a person.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = match &self.throughput {
            Some(Ok(measured)) => throughput::lines(measured),
            Some(Err(why)) => vec![format!("syncs failed: {why}")],
            None => Vec::new(),
        };
        lines.extend(self.real.lines());
        for (name, aim) in &aims(Some(self)) {
            lines.push(format!("{name}: {}; aim {}", aim["measured"], aim["aim"]));
        }
        lines
    }

    /// What makes the whole bench fail, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let throughput = match &self.throughput {
            Some(Err(why)) => Some(format!("{}: syncs: {why}", super::OURS)),
            Some(Ok(_)) | None => None,
        };
        throughput.into_iter().chain(self.real.faults()).collect()
    }
}

/// The aims and whether they hold; what was not measured does not.
pub(crate) fn aims(measured: Option<&Measured>) -> Map<String, Value> {
    let throughput = measured.and_then(|it| it.throughput.as_ref()?.as_ref().ok());
    let real = measured.map(|it| &it.real);
    let memory = throughput.and_then(|it| it["peak_rss_kib"].as_f64());
    let memory_kib = memory.into_iter().chain(real.and_then(Real::peak_kib)).reduce(f64::max);
    let under = |measured: f64, aim: f64| measured < aim;
    let memory_mb = memory_kib.map(|kib| kib * 1024.0 / 1e6);
    Map::from_iter([
        (
            "sync_over_cat".to_owned(),
            aim(OVER_CAT_AIM, throughput.and_then(throughput::over_cat), |is, aim| is >= aim),
        ),
        ("sync_overhead_s".to_owned(), aim(OVERHEAD_S_AIM, real.and_then(Real::overhead_s), under)),
        ("sync_runner_memory_mb".to_owned(), aim(MEMORY_MB_AIM, memory_mb, under)),
    ])
}
