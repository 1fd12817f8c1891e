//! What was found about workflows, as JSON and as columns for a person.

use serde_json::{Map, Value, json};

use super::load::Found;
use crate::bench::cases::{self, Case, Common, Latency};
use crate::bench::report::{rounded, thousands};

/// What became of a system.
pub(crate) type Outcome = cases::Outcome<CaseFigures>;
pub(super) type Cases = cases::Cases<CaseFigures>;
pub(super) type Measured = cases::Measured<CaseFigures>;

/// The figures of one case.
#[derive(Debug, Clone)]
pub(crate) struct CaseFigures {
    common: Common,
    handover: Latency,
    fork: Latency,
    join: Latency,
}

impl CaseFigures {
    pub(super) fn of((common, runs): (Common, Vec<Found>)) -> Self {
        let [mut handover, mut fork, mut join] = [(); 3].map(|()| Latency::default());
        for found in &runs {
            handover.add(found.handover_ms.as_ref());
            fork.add(found.fork_ms.as_ref());
            join.add(found.join_ms.as_ref());
        }
        Self { common, handover, fork, join }
    }

    /// What the next task waits longer behind a JOIN than a branch does behind its fork.
    fn join_added_ms(&self) -> Option<f64> {
        let added = self.join.p50_ms.median() - self.fork.p50_ms.median();
        (!added.is_nan()).then_some(added)
    }
}

impl Case for CaseFigures {
    const NAME: &'static str = "workflows";
    const ONE: &'static str = "workflow";
    const LATENCY: &'static str = "task_handover";
    const HEADLINE: &'static [&'static str] = &["five_tasks"];

    fn common(&self) -> &Common {
        &self.common
    }

    /// From task to task, or from the task before a fork to a branch.
    fn latency(&self) -> &Latency {
        if self.handover.is_measured() { &self.handover } else { &self.fork }
    }

    fn more(&self) -> Map<String, Value> {
        let fields = [
            ("task_handover_ms", self.handover.json()),
            ("fork_handover_ms", self.fork.json()),
            ("join_handover_ms", self.join.json()),
            ("join_added_ms", self.join_added_ms().map(|added| json!(rounded(added, 2)))),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    fn columns(&self) -> String {
        let common = &self.common;
        format!(
            "{:>9.1} {:>5} {:>9.2} {:>9.2} {:>9} {:>9.1} {:>8} {:>8} {:>9}",
            common.per_s.median(),
            common.in_flight,
            self.latency().p50_ms.median(),
            self.latency().p99_ms.median(),
            self.join_added_ms().map_or_else(String::new, |added| format!("{added:.2}")),
            common.latency_at_per_s,
            thousands(common.server_cpu_us.median()),
            thousands(common.load_cpu_us.median()),
            common.done,
        )
    }

    fn names(names: &[&str]) -> String {
        let [history, kind] = [0, 1].map(|at| names.get(at).copied().unwrap_or_default());
        format!("{kind:<12} {history:<12}")
    }
}

/// Above the lines of all systems; CPU is microseconds per workflow.
pub(crate) fn head() -> String {
    format!(
        "{:<9} {:<12} {:<12} {:>9} {:>5} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>9} {:>6}",
        "system",
        "workflows of",
        "",
        "per s",
        "open",
        "next p50",
        "p99 ms",
        "join adds",
        "at/s",
        "CPU us",
        "of load",
        "workflows",
        "exact"
    )
}

/// How many times the original's five-task rate ours is.
pub(crate) fn ratio(ours: &Outcome, original: &Outcome) -> Option<f64> {
    let per_s = |outcome: &Outcome| Some(outcome.cases()?.headline()?.common.per_s.median());
    Some(per_s(ours)? / per_s(original)?)
}
