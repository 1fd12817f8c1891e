//! What was found about workflows, as JSON and as lines for a person.

use serde_json::{Map, Value, json};

use super::definition::Kind;
use super::load::Found;
use crate::bench::failure::Result;
use crate::bench::measure::Pickup;
use crate::bench::report::{Sample, rounded, thousands};

/// What became of a system.
pub(crate) enum Outcome {
    Measured(Box<Measured>),
    Skipped(String),
    Failed(String),
}

/// The figures of a system.
pub(crate) struct Measured {
    pub(super) version: String,
    pub(super) configuration: String,
    pub(super) cases: Cases,
    pub(super) extra: Map<String, Value>,
}

/// A latency over the repeats.
#[derive(Debug, Clone, Default)]
struct Latency {
    p50_ms: Sample,
    p99_ms: Sample,
}

impl Latency {
    fn add(&mut self, found: Option<Pickup>) {
        if let Some(found) = found {
            self.p50_ms.add(found.p50);
            self.p99_ms.add(found.p99);
        }
    }

    /// Nothing where none was measured.
    fn json(&self) -> Option<Value> {
        let (p50, p99) = (self.p50_ms.median(), self.p99_ms.median());
        (!p50.is_nan()).then(|| json!({ "p50": rounded(p50, 2), "p99": rounded(p99, 2) }))
    }
}

/// The figures of one case.
#[derive(Debug, Clone)]
pub(super) struct CaseFigures {
    /// Open workflows at which it is fastest.
    pub(super) in_flight: u64,
    pub(super) per_s: Sample,
    pub(super) latency_at_per_s: f64,
    /// Due until completed.
    whole: Latency,
    handover: Latency,
    fork: Latency,
    join: Latency,
    server_cpu_us: Sample,
    load_cpu_us: Sample,
    workflows: u64,
    confirmed: u64,
    inexact: Vec<String>,
}

impl CaseFigures {
    pub(super) fn new(in_flight: u64) -> Self {
        Self {
            in_flight,
            per_s: Sample::default(),
            latency_at_per_s: 0.0,
            whole: Latency::default(),
            handover: Latency::default(),
            fork: Latency::default(),
            join: Latency::default(),
            server_cpu_us: Sample::default(),
            load_cpu_us: Sample::default(),
            workflows: 0,
            confirmed: 0,
            inexact: Vec::new(),
        }
    }

    pub(super) fn add_closed(&mut self, found: &Found) {
        self.per_s.add(found.figures.rate_per_s);
        self.server_cpu_us.add(found.server_cpu_us);
        self.load_cpu_us.add(found.load_cpu_us);
        self.count(found);
    }

    pub(super) fn add_open(&mut self, found: &Found) {
        self.whole.add(found.figures.pickup_ms);
        self.handover.add(found.handover_ms);
        self.fork.add(found.fork_ms);
        self.join.add(found.join_ms);
        self.count(found);
    }

    fn count(&mut self, found: &Found) {
        self.workflows += found.figures.jobs;
        self.confirmed += found.confirmed;
        self.inexact.extend(found.figures.inexact.clone());
    }

    /// From task to task, or from the task before a fork to a branch.
    fn step(&self) -> &Latency {
        if self.handover.p50_ms.median().is_nan() { &self.fork } else { &self.handover }
    }

    /// What the next task waits longer behind a JOIN than a branch does behind its fork.
    fn join_added_ms(&self) -> Option<f64> {
        let added = self.join.p50_ms.median() - self.fork.p50_ms.median();
        (!added.is_nan()).then_some(added)
    }

    fn json(&self) -> Value {
        let mut fields = Map::new();
        for (name, value) in [
            ("task_handover_ms", self.handover.json()),
            ("fork_handover_ms", self.fork.json()),
            ("join_handover_ms", self.join.json()),
            ("join_added_ms", self.join_added_ms().map(|added| json!(rounded(added, 2)))),
        ] {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
        let common = json!({
            "workflows_per_s": rounded(self.per_s.median(), 1),
            "workflow_latency_ms": self.whole.json(),
            "latency_at_per_s": rounded(self.latency_at_per_s, 1),
            "open_workflows": self.in_flight,
            "cpu_us_per_workflow": {
                "server": rounded(self.server_cpu_us.median(), 1),
                "load_generator": rounded(self.load_cpu_us.median(), 1),
            },
            "spread": {
                "workflows_per_s": self.per_s.spread(1),
                "p50": self.step().p50_ms.spread(2),
                "p99": self.step().p99_ms.spread(2),
            },
            "workflows": self.workflows,
            "workflows_confirmed_by_the_system": self.confirmed,
            "completed_exactly_once": self.inexact.is_empty(),
            "inexact": self.inexact,
        });
        if let Value::Object(common) = common {
            fields.extend(common);
        }
        Value::Object(fields)
    }
}

/// The figures of a system by history and shape, in the order measured.
#[derive(Default)]
pub(super) struct Cases(Vec<(&'static str, Kind, Result<CaseFigures>)>);

impl Cases {
    pub(super) fn add(&mut self, history: &'static str, kind: Kind, case: Result<CaseFigures>) {
        self.0.push((history, kind, case));
    }

    /// Five tasks, as the server is by default.
    fn headline(&self) -> Option<&CaseFigures> {
        self.0.iter().find(|(_, kind, _)| *kind == Kind::FiveTasks)?.2.as_ref().ok()
    }

    fn json(&self) -> Value {
        let mut all = json!({});
        for (history, kind, case) in &self.0 {
            all[*history][kind.name()] = match case {
                Ok(case) => case.json(),
                Err(why) => json!({ "failed": why.to_string() }),
            };
        }
        all
    }
}

impl Measured {
    /// What stands under the system's name.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let mut fields = self.extra.clone();
        if let Some(headline) = self.cases.headline() {
            let per_s = rounded(headline.per_s.median(), 1);
            fields.insert("workflows_per_s".to_owned(), json!(per_s));
            fields.insert("task_handover_ms".to_owned(), json!(headline.handover.json()));
            let at = rounded(headline.latency_at_per_s, 1);
            fields.insert("task_handover_at_per_s".to_owned(), json!(at));
        }
        fields.insert("workflows".to_owned(), self.cases.json());
        fields
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (history, kind, case) in &self.cases.0 {
            let words = format!("{name:<9} {:<12} {history:<12}", kind.name());
            lines.push(match case {
                Err(why) => format!("{words} failed: {why}"),
                Ok(case) => format!(
                    "{words} {:>9.1} {:>5} {:>9.2} {:>9.2} {:>9} {:>9.1} {:>8} {:>8} {:>9} {:>6}",
                    case.per_s.median(),
                    case.in_flight,
                    case.step().p50_ms.median(),
                    case.step().p99_ms.median(),
                    case.join_added_ms().map_or_else(String::new, |added| format!("{added:.2}")),
                    case.latency_at_per_s,
                    thousands(case.server_cpu_us.median()),
                    thousands(case.load_cpu_us.median()),
                    case.workflows,
                    if case.inexact.is_empty() { "yes" } else { "NO" },
                ),
            });
        }
        lines.extend(self.extra.iter().map(|(figure, value)| format!("  {figure}: {value}")));
        lines
    }

    fn faults(&self) -> Vec<String> {
        let fault = |(_, kind, case): &(_, Kind, Result<CaseFigures>)| {
            let inexact = match case {
                Ok(case) => case.inexact.first()?.clone(),
                Err(why) => why.to_string(),
            };
            Some(format!("workflows, {}: {inexact}", kind.name()))
        };
        self.cases.0.iter().filter_map(fault).collect()
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

impl Outcome {
    pub(super) fn of(measured: Result<Measured>) -> Self {
        match measured {
            Ok(measured) => Self::Measured(Box::new(measured)),
            Err(why) => Self::Failed(why.to_string()),
        }
    }

    /// What stands under the system's name.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Measured(measured) => {
                let mut fields = measured.json();
                fields.insert("version".to_owned(), json!(measured.version));
                fields.insert("configuration".to_owned(), json!(measured.configuration));
                Value::Object(fields)
            }
            Self::Skipped(why) => json!({ "skipped": why }),
            Self::Failed(why) => json!({ "failed": why }),
        }
    }

    /// Lines of the table.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        match self {
            Self::Measured(measured) => {
                let mut lines = measured.lines(name);
                lines.push(format!("  {}; {}", measured.version, measured.configuration));
                lines
            }
            Self::Skipped(why) => {
                vec![format!("{name:<9} skipped, and counts as not measured: {why}")]
            }
            Self::Failed(why) => vec![format!("{name:<9} failed: {why}")],
        }
    }

    /// What was not as it must be.
    pub(crate) fn faults(&self, name: &str) -> Vec<String> {
        match self {
            Self::Measured(measured) => measured.faults(),
            Self::Skipped(_) => Vec::new(),
            Self::Failed(why) => vec![format!("{name}: workflows: {why}")],
        }
    }

    fn per_s(&self) -> Option<f64> {
        match self {
            Self::Measured(measured) => Some(measured.cases.headline()?.per_s.median()),
            Self::Skipped(_) | Self::Failed(_) => None,
        }
    }
}

/// How many times the original's five-task rate ours is.
pub(crate) fn ratio(ours: &Outcome, original: &Outcome) -> Option<f64> {
    Some(ours.per_s()? / original.per_s()?)
}
