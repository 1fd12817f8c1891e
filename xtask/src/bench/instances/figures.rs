//! What was found about process instances, as JSON and as lines for a person.

use serde_json::{Map, Value, json};

use super::load::Found;
use crate::bench::failure::Result;
use crate::bench::report::{Sample, aim, rounded, thousands};

/// One-task instances a second on two cores.
const PER_S_AIM: f64 = 5_000.0;
/// The 99th percentile at half of the maximum.
const P99_MS_AIM: f64 = 20.0;
/// Times the real broker's instances a second, in the same run.
const RATIO_AIM: f64 = 20.0;

/// What became of a system.
pub(crate) enum Outcome {
    Measured(Box<Measured>),
    Skipped(String),
    Failed(String),
}

/// The figures of a system.
pub(crate) struct Measured {
    pub(crate) version: String,
    pub(crate) configuration: String,
    pub(crate) cases: Cases,
    pub(crate) extra: Map<String, Value>,
}

/// The figures of one case.
#[derive(Debug, Clone)]
pub(crate) struct CaseFigures {
    /// Open instances at which it is fastest.
    pub(super) in_flight: u64,
    pub(crate) per_s: Sample,
    pub(crate) p50_ms: Sample,
    pub(crate) p99_ms: Sample,
    pub(super) latency_at_per_s: f64,
    server_cpu_us: Sample,
    load_cpu_us: Sample,
    instances: u64,
    confirmed: u64,
    refused: u64,
    inexact: Vec<String>,
}

impl CaseFigures {
    pub(super) fn new(in_flight: u64) -> Self {
        Self {
            in_flight,
            per_s: Sample::default(),
            p50_ms: Sample::default(),
            p99_ms: Sample::default(),
            latency_at_per_s: 0.0,
            server_cpu_us: Sample::default(),
            load_cpu_us: Sample::default(),
            instances: 0,
            confirmed: 0,
            refused: 0,
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
        if let Some(latency) = found.figures.pickup_ms {
            self.p50_ms.add(latency.p50);
            self.p99_ms.add(latency.p99);
        }
        self.count(found);
    }

    fn count(&mut self, found: &Found) {
        self.instances += found.figures.jobs;
        self.confirmed += found.confirmed;
        self.refused += found.refused;
        self.inexact.extend(found.figures.inexact.clone());
    }

    fn json(&self) -> Value {
        json!({
            "process_instances_per_s": rounded(self.per_s.median(), 0),
            "instance_latency_ms": self.latency_json(),
            "latency_at_per_s": rounded(self.latency_at_per_s, 0),
            "open_instances": self.in_flight,
            "cpu_us_per_instance": {
                "server": rounded(self.server_cpu_us.median(), 1),
                "load_generator": rounded(self.load_cpu_us.median(), 1),
            },
            "spread": {
                "process_instances_per_s": self.per_s.spread(0),
                "p50": self.p50_ms.spread(2),
                "p99": self.p99_ms.spread(2),
            },
            "instances": self.instances,
            "instances_confirmed_by_the_system": self.confirmed,
            "requests_refused_for_load": self.refused,
            "completed_exactly_once": self.inexact.is_empty(),
            "inexact": self.inexact,
        })
    }

    fn latency_json(&self) -> Value {
        json!({
            "p50": rounded(self.p50_ms.median(), 2),
            "p99": rounded(self.p99_ms.median(), 2),
        })
    }
}

/// The cases of a system, by history, shape and way of fetching, in the order measured.
#[derive(Default)]
pub(crate) struct Cases(Vec<(&'static str, &'static str, &'static str, Result<CaseFigures>)>);

impl Cases {
    pub(super) fn add(
        &mut self,
        history: &'static str,
        kind: &'static str,
        fetching: &'static str,
        figures: Result<CaseFigures>,
    ) {
        self.0.push((history, kind, fetching, figures));
    }

    /// One task with a streaming worker, as the server is by default.
    pub(crate) fn headline(&self) -> Option<&CaseFigures> {
        self.find("one_task", "stream")
    }

    /// The fastest way with one task.
    fn fastest(&self) -> Option<f64> {
        let rates = ["stream", "poll"].map(|fetching| self.find("one_task", fetching));
        rates.into_iter().flatten().map(|case| case.per_s.median()).max_by(f64::total_cmp)
    }

    fn find(&self, kind: &str, fetching: &str) -> Option<&CaseFigures> {
        let found = self.0.iter().find(|case| case.1 == kind && case.2 == fetching)?;
        found.3.as_ref().ok()
    }

    fn json(&self) -> Value {
        let mut all = json!({});
        for (history, kind, fetching, figures) in &self.0 {
            all[*history][*kind][*fetching] = match figures {
                Ok(figures) => figures.json(),
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
            let per_s = rounded(headline.per_s.median(), 0);
            fields.insert("process_instances_per_s".to_owned(), json!(per_s));
            fields.insert("instance_latency_ms".to_owned(), headline.latency_json());
            let at = rounded(headline.latency_at_per_s, 0);
            fields.insert("instance_latency_at_per_s".to_owned(), json!(at));
        }
        fields.insert("process_instances".to_owned(), self.cases.json());
        fields
    }

    /// Lines of the table.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (history, kind, fetching, figures) in &self.cases.0 {
            let case = format!("{name:<9} {kind:<15} {fetching:<7} {history:<12}");
            lines.push(match figures {
                Err(why) => format!("{case} failed: {why}"),
                Ok(figures) => format!(
                    "{case} {:>9} {:>6} {:>9.2} {:>9.2} {:>8} {:>7.0} {:>7.0} {:>10} {:>6}",
                    thousands(figures.per_s.median()),
                    figures.in_flight,
                    figures.p50_ms.median(),
                    figures.p99_ms.median(),
                    thousands(figures.latency_at_per_s),
                    figures.server_cpu_us.median(),
                    figures.load_cpu_us.median(),
                    figures.instances,
                    if figures.inexact.is_empty() { "yes" } else { "NO" },
                ),
            });
        }
        lines.extend(self.extra.iter().map(|(figure, value)| format!("  {figure}: {value}")));
        lines
    }

    /// What was not as it must be.
    pub(crate) fn faults(&self) -> Vec<String> {
        let fault = |(_, kind, fetching, figures): &(_, &str, &str, Result<CaseFigures>)| {
            let inexact = match figures {
                Ok(figures) => figures.inexact.first()?.clone(),
                Err(why) => why.to_string(),
            };
            Some(format!("process instances, {kind}, {fetching}: {inexact}"))
        };
        self.cases.0.iter().filter_map(fault).collect()
    }
}

/// Above the lines of all systems; CPU is microseconds per instance.
pub(crate) fn head() -> String {
    format!(
        "{:<9} {:<15} {:<7} {:<12} {:>9} {:>6} {:>9} {:>9} {:>8} {:>7} {:>7} {:>10} {:>6}",
        "system",
        "instances of",
        "worker",
        "",
        "per s",
        "open",
        "p50 ms",
        "p99 ms",
        "at/s",
        "CPU us",
        "of load",
        "instances",
        "exact"
    )
}

impl Outcome {
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
                vec![format!("{name:<9} skipped, and the aim counts as not measured: {why}")]
            }
            Self::Failed(why) => vec![format!("{name:<9} failed: {why}")],
        }
    }

    /// What was not as it must be.
    pub(crate) fn faults(&self) -> Vec<String> {
        match self {
            Self::Measured(measured) => measured.faults(),
            Self::Skipped(_) => Vec::new(),
            Self::Failed(why) => vec![format!("zeebe: {why}")],
        }
    }

    fn measured(&self) -> Option<&Measured> {
        match self {
            Self::Measured(measured) => Some(measured),
            Self::Skipped(_) | Self::Failed(_) => None,
        }
    }
}

/// How many times the broker's fastest one-task rate ours is.
pub(crate) fn ratio(ours: Option<&Measured>, broker: Option<&Outcome>) -> Option<f64> {
    Some(ours?.cases.fastest()? / broker?.measured()?.cases.fastest()?)
}

/// The aims and whether they hold; what was not measured does not.
pub(crate) fn aims(ours: Option<&Measured>, broker: Option<&Outcome>) -> Value {
    let headline = ours.and_then(|ours| ours.cases.headline());
    let at_least = |measured: f64, aim: f64| measured >= aim;
    json!({
        "one_task_instances_per_s":
            aim(PER_S_AIM, headline.map(|case| case.per_s.median()), at_least),
        "one_task_p99_ms_at_half":
            aim(P99_MS_AIM, headline.map(|case| case.p99_ms.median()), |is, aim| is < aim),
        "one_task_over_zeebe": aim(RATIO_AIM, ratio(ours, broker), at_least),
    })
}
