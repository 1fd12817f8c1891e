//! What was found about process instances, as JSON and as columns for a person.

use serde_json::{Map, Value, json};

use super::load::Found;
use crate::bench::cases::{self, Case, Common, Latency};
use crate::bench::report::{aim, rounded, thousands};

/// One-task instances a second on two cores.
pub(super) const PER_S_AIM: f64 = 5_000.0;
/// The 99th percentile at half of that.
const P99_MS_AIM: f64 = 20.0;
/// Times the real broker's instances a second, in the same run.
const RATIO_AIM: f64 = 20.0;

/// What became of a system.
pub(crate) type Outcome = cases::Outcome<CaseFigures>;
pub(super) type Cases = cases::Cases<CaseFigures>;
pub(super) type Measured = cases::Measured<CaseFigures>;

/// The figures of one case.
#[derive(Debug, Clone)]
pub(crate) struct CaseFigures {
    pub(super) common: Common,
    /// At half of the rate to reach, where more than that can be done.
    pub(super) at_half_of_aim: Option<Common>,
    refused: u64,
}

impl CaseFigures {
    pub(super) fn of((common, runs): (Common, Vec<Found>)) -> Self {
        let refused = runs.iter().map(|found| found.refused).sum();
        Self { common, at_half_of_aim: None, refused }
    }
}

impl Case for CaseFigures {
    const NAME: &'static str = "process_instances";
    const ONE: &'static str = "instance";
    const LATENCY: &'static str = "instance_latency";
    const HEADLINE: &'static [&'static str] = &["one_task", "stream"];

    fn common(&self) -> &Common {
        &self.common
    }

    fn latency(&self) -> &Latency {
        &self.common.whole
    }

    fn more(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("requests_refused_for_load".to_owned(), json!(self.refused));
        if let Some(at) = &self.at_half_of_aim {
            let (per_s, latency) = (rounded(at.latency_at_per_s, 1), at.whole.json());
            let value = json!({ "per_s": per_s, "instance_latency_ms": latency });
            fields.insert("at_half_of_aim".to_owned(), value);
        }
        fields
    }

    fn columns(&self) -> String {
        let common = &self.common;
        format!(
            "{:>9} {:>6} {:>9.2} {:>9.2} {:>8} {:>9} {:>7.0} {:>7.0} {:>10}",
            thousands(common.per_s.median()),
            common.in_flight,
            common.whole.p50_ms.median(),
            common.whole.p99_ms.median(),
            thousands(common.latency_at_per_s),
            self.at_half_of_aim
                .as_ref()
                .map_or_else(String::new, |at| { format!("{:.2}", at.whole.p99_ms.median()) }),
            common.server_cpu_us.median(),
            common.load_cpu_us.median(),
            common.done,
        )
    }

    fn names(names: &[&str]) -> String {
        let [history, kind, fetching] =
            [0, 1, 2].map(|at| names.get(at).copied().unwrap_or_default());
        format!("{kind:<15} {fetching:<7} {history:<12}")
    }
}

/// Above the lines of all systems; CPU is microseconds per instance.
pub(crate) fn head() -> String {
    format!(
        "{:<9} {:<15} {:<7} {:<12} {:>9} {:>6} {:>9} {:>9} {:>8} {:>9} {:>7} {:>7} {:>10} {:>6}",
        "system",
        "instances of",
        "worker",
        "",
        "per s",
        "open",
        "p50 ms",
        "p99 ms",
        "at/s",
        "p99@2500",
        "CPU us",
        "of load",
        "instances",
        "exact"
    )
}

/// The fastest way with one task.
fn fastest(outcome: &Outcome) -> Option<f64> {
    let cases = outcome.cases()?;
    let cases = ["stream", "poll"].map(|fetching| cases.find(&["one_task", fetching]));
    cases.into_iter().flatten().map(|case| case.common.per_s.median()).max_by(f64::total_cmp)
}

/// How many times the broker's fastest one-task rate ours is.
pub(crate) fn ratio(ours: Option<&Outcome>, broker: Option<&Outcome>) -> Option<f64> {
    Some(fastest(ours?)? / fastest(broker?)?)
}

/// The aims and whether they hold; what was not measured does not.
pub(crate) fn aims(ours: Option<&Outcome>, broker: Option<&Outcome>) -> Value {
    let headline = ours.and_then(Outcome::cases).and_then(Cases::headline);
    let at_half = headline.and_then(|case| case.at_half_of_aim.as_ref());
    let at_least = |measured: f64, aim: f64| measured >= aim;
    json!({
        "one_task_instances_per_s":
            aim(PER_S_AIM, headline.map(|case| case.common.per_s.median()), at_least),
        "one_task_p99_ms_at_half":
            aim(P99_MS_AIM, at_half.map(|at| at.whole.p99_ms.median()), |is, aim| is < aim),
        "one_task_over_zeebe": aim(RATIO_AIM, ratio(ours, broker), at_least),
    })
}
