//! What was measured, as a table for a person and as the JSON object of the contract.

use serde_json::{Map, Value, json};

use super::cases::{self, Case};
use super::instances;
use super::machine::Machine;
use super::peer::Durability;
use super::{syncs, workflows};

/// The whole report.
pub(crate) struct Report {
    /// Where it was measured.
    pub(crate) machine: Machine,
    /// What became of each system, in the order measured.
    pub(crate) systems: Vec<(&'static str, Outcome)>,
    /// What became of our process instances, if they were measured.
    pub(crate) instances: Option<instances::Outcome>,
    /// What became of the real broker, if it was asked for.
    pub(crate) broker: Option<instances::Outcome>,
    /// What became of our workflows, if they were measured.
    pub(crate) workflows: Option<workflows::Outcome>,
    /// The same of the real Conductor server.
    pub(crate) conductor: Option<workflows::Outcome>,
    /// Syncs, if they were measured.
    pub(crate) syncs: Option<syncs::Measured>,
}

/// What became of one system.
pub(crate) enum Outcome {
    /// Its figures.
    Measured(Box<System>),
    /// Why there are none: it could not be installed, or is not built yet.
    Skipped(String),
    /// What went wrong while it was measured.
    Failed(String),
}

/// The figures of one system.
pub(crate) struct System {
    pub(crate) version: String,
    pub(crate) configuration: String,
    pub(crate) durability: Durability,
    pub(crate) lifecycle_per_s: Sample,
    pub(crate) lifecycle_per_s_256: Sample,
    pub(crate) enqueue_per_s: Sample,
    pub(crate) pickup_p50_ms: Sample,
    pub(crate) pickup_p99_ms: Sample,
    /// The offered load of the open loop.
    pub(crate) pickup_at_per_s: f64,
    /// Jobs created over all runs.
    pub(crate) jobs: u64,
    /// What was not exact, per run in which something was not.
    pub(crate) inexact: Vec<String>,
    pub(crate) took_s: f64,
    /// Figures only we report.
    pub(crate) extras: Map<String, Value>,
}

/// The values of one figure over the repeats.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// Adds the value of one run.
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The middle value; the lower one of two.
    pub(crate) fn median(&self) -> f64 {
        self.0.get(self.0.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    fn range(&self) -> (f64, f64) {
        let edge = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (edge(self.0.first()), edge(self.0.last()))
    }

    pub(crate) fn spread(&self, digits: usize) -> Value {
        let (low, high) = self.range();
        json!([rounded(low, digits), rounded(high, digits)])
    }
}

/// The fastest of the peers that pass a test, by name and lives per second.
type Fastest = Option<(&'static str, f64)>;

/// The lines of systems that were asked for, below a head.
fn cases_table<C: Case>(
    head: String,
    named: [(&str, &Option<cases::Outcome<C>>); 2],
) -> Vec<String> {
    let asked = named.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref()?)));
    let lines: Vec<String> = asked.flat_map(|(name, outcome)| outcome.lines(name)).collect();
    if lines.is_empty() { lines } else { [vec![String::new(), head], lines].concat() }
}

impl Report {
    /// One that nothing was measured for yet.
    pub(crate) fn of(machine: Machine) -> Self {
        Self {
            machine,
            systems: Vec::new(),
            instances: None,
            broker: None,
            workflows: None,
            conductor: None,
            syncs: None,
        }
    }

    /// The JSON object of the contract.
    pub(crate) fn json(&self) -> Value {
        let machine = &self.machine;
        let systems = self.systems_json();
        let durable = self.fastest(|durability| durability.durable_peer);
        let created = self.fastest(|durability| durability.durable_create);
        json!({
            "machine": {
                "cores": machine.cores,
                "cpu": machine.cpu,
                "memory_mib": machine.memory_mib,
                "kernel": machine.kernel,
                "load_before": machine.load_before,
                "fsync_p50_us": rounded(machine.fsync_p50_us, 1),
                "fsync_p99_us": rounded(machine.fsync_p99_us, 1),
                "memory_first_gb_per_s": rounded(machine.memory_first_gb_per_s, 2),
                "memory_again_gb_per_s": rounded(machine.memory_again_gb_per_s, 2),
            },
            "systems": systems,
            "ratios": {
                "fastest_durable_peer": durable.map(|(name, _)| name),
                "lifecycle_over_fastest_durable_peer": self.ratio(durable),
                "fastest_peer_with_durable_create": created.map(|(name, _)| name),
                "lifecycle_over_fastest_peer_with_durable_create": self.ratio(created),
                "process_instances_over_zeebe": self.over_broker(),
                "workflows_over_conductor": self.over_conductor(),
            },
            "aims": self.aims(),
        })
    }

    fn aims(&self) -> Value {
        let mut aims = instances::aims(self.instances.as_ref(), self.broker.as_ref());
        if let Value::Object(aims) = &mut aims {
            aims.extend(syncs::aims(self.syncs.as_ref()));
        }
        aims
    }

    fn systems_json(&self) -> Map<String, Value> {
        let named = |(name, outcome): &(&str, Outcome)| ((*name).to_owned(), outcome.json());
        let mut systems: Map<String, Value> = self.systems.iter().map(named).collect();
        if self.instances.is_some() || self.workflows.is_some() {
            let ours = systems.entry(super::OURS).or_insert_with(|| json!({}));
            self.instances.iter().for_each(|outcome| outcome.add_to(ours));
            self.workflows.iter().for_each(|outcome| outcome.add_to(ours));
        }
        let broker = self.broker.iter().map(|outcome| (instances::BROKER, outcome.json()));
        let conductor = self.conductor.iter().map(|outcome| (workflows::CONDUCTOR, outcome.json()));
        systems.extend(broker.chain(conductor).map(|(name, value)| (name.to_owned(), value)));
        self.add_syncs(&mut systems);
        systems
    }

    fn add_syncs(&self, systems: &mut Map<String, Value>) {
        for (name, fields) in self.syncs.iter().flat_map(syncs::Measured::by_system) {
            let entry = systems.entry(name).or_insert_with(|| json!({}));
            for (field, value) in fields {
                match (entry.get_mut(&field), value) {
                    // Both kinds of syncs have figures under one name.
                    (Some(Value::Object(there)), Value::Object(more)) => there.extend(more),
                    (_, value) => entry[field] = value,
                }
            }
        }
    }

    fn over_broker(&self) -> Option<f64> {
        instances::ratio(self.instances.as_ref(), self.broker.as_ref())
            .map(|ratio| rounded(ratio, 2))
    }

    fn over_conductor(&self) -> Option<f64> {
        let (ours, conductor) = (self.workflows.as_ref()?, self.conductor.as_ref()?);
        workflows::ratio(ours, conductor).map(|ratio| rounded(ratio, 2))
    }

    fn workflows_table(&self) -> Vec<String> {
        let named = [(super::OURS, &self.workflows), (workflows::CONDUCTOR, &self.conductor)];
        let mut lines = cases_table(workflows::head(), named);
        if let Some(ratio) = self.over_conductor() {
            lines.push(format!("windlass runs {ratio:.1} times Conductor's five-task workflows"));
        }
        lines
    }

    fn instances_table(&self) -> Vec<String> {
        let named = [(super::OURS, &self.instances), (instances::BROKER, &self.broker)];
        let mut lines = cases_table(instances::head(), named);
        if let Some(ratio) = self.over_broker() {
            lines.push(format!("windlass runs {ratio:.1} times the broker's one-task instances"));
        }
        lines
    }

    /// The table, with every durability and every reason spelled out below it.
    pub(crate) fn table(&self) -> String {
        let machine = &self.machine;
        let mut lines = vec![
            format!(
                "{} cores, {}, {} MiB, Linux {}, load {:.2} before",
                machine.cores, machine.cpu, machine.memory_mib, machine.kernel, machine.load_before
            ),
            format!(
                "fsync (4 KiB overwrite + fdatasync): p50 {:.0} us, p99 {:.0} us",
                machine.fsync_p50_us, machine.fsync_p99_us
            ),
            format!(
                "memory: {:.2} GB/s where it was not touched for a while, {:.2} GB/s when taken again",
                machine.memory_first_gb_per_s, machine.memory_again_gb_per_s
            ),
            "payload 200 bytes, 4 workers; median (lowest - highest) of the runs".to_owned(),
            String::new(),
            format!(
                "{:<18} {:>7} {:>6} {:>27} {:>27} {:>29} {:>9} {:>9} {:>9}",
                "system",
                "durable",
                "exact",
                "lives/s, 1024 in flight",
                "256 in flight",
                "enqueue/s",
                "p50 ms",
                "p99 ms",
                "at/s"
            ),
        ];
        lines.extend(self.systems.iter().map(|(name, outcome)| outcome.row(name)));
        lines.push(String::new());
        for (name, outcome) in &self.systems {
            if let Outcome::Measured(system) = outcome {
                lines.extend(system.notes(name));
            }
        }
        for (title, fastest) in [
            ("fastest durable peer", self.fastest(|durability| durability.durable_peer)),
            ("fastest peer with durable create", self.fastest(|d| d.durable_create)),
        ] {
            let Some((name, per_s)) = fastest else { continue };
            let ratio = self.ratio(fastest).map_or_else(
                || "windlass not measured".to_owned(),
                |ratio| format!("windlass is {ratio:.2} times as fast"),
            );
            lines.push(format!("{title}: {name} with {} lives/s; {ratio}", thousands(per_s)));
        }
        lines.extend(self.instances_table());
        lines.extend(self.workflows_table());
        lines.extend(self.syncs.iter().flat_map(syncs::Measured::lines));
        lines.join("\n")
    }

    /// The systems that make the whole bench fail, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let fault = |(name, outcome): &(&'static str, Outcome)| match outcome {
            Outcome::Failed(why) => Some(format!("{name}: {why}")),
            Outcome::Measured(system) if !system.inexact.is_empty() => {
                Some(format!("{name}: delivery was not exact"))
            }
            Outcome::Measured(_) | Outcome::Skipped(_) => None,
        };
        let mut faults: Vec<String> = self.systems.iter().filter_map(fault).collect();
        for (name, outcome) in [(super::OURS, &self.instances), (instances::BROKER, &self.broker)] {
            faults.extend(outcome.iter().flat_map(|outcome| outcome.faults(name)));
        }
        for (name, outcome) in
            [(super::OURS, &self.workflows), (workflows::CONDUCTOR, &self.conductor)]
        {
            faults.extend(outcome.iter().flat_map(|outcome| outcome.faults(name)));
        }
        faults.extend(self.syncs.iter().flat_map(syncs::Measured::faults));
        faults
    }

    fn fastest(&self, counts: impl Fn(&Durability) -> bool) -> Fastest {
        self.measured()
            .filter(|(name, system)| *name != super::OURS && counts(&system.durability))
            .map(|(name, system)| (name, system.lifecycle_per_s.median()))
            .max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn ratio(&self, fastest: Fastest) -> Option<f64> {
        let ours = self.measured().find(|(name, _)| *name == super::OURS)?.1;
        Some(rounded(ours.lifecycle_per_s.median() / fastest?.1, 2))
    }

    fn measured(&self) -> impl Iterator<Item = (&'static str, &System)> {
        self.systems.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Measured(system) => Some((*name, &**system)),
            Outcome::Skipped(_) | Outcome::Failed(_) => None,
        })
    }
}

impl Outcome {
    fn json(&self) -> Value {
        match self {
            Self::Measured(system) => system.json(),
            Self::Skipped(why) => json!({ "skipped": why }),
            Self::Failed(why) => json!({ "failed": why }),
        }
    }

    fn row(&self, name: &str) -> String {
        match self {
            Self::Skipped(why) => format!("{name:<18} skipped: {why}"),
            Self::Failed(why) => format!("{name:<18} failed: {why}"),
            Self::Measured(system) => {
                let rate = |sample: &Sample| {
                    let (low, high) = sample.range();
                    let median = thousands(sample.median());
                    format!("{median} ({} - {})", thousands(low), thousands(high))
                };
                let yes = |yes: bool| if yes { "yes" } else { "no" };
                format!(
                    "{name:<18} {:>7} {:>6} {:>27} {:>27} {:>29} {:>9.2} {:>9.2} {:>9}",
                    yes(system.durability.durable_peer),
                    yes(system.inexact.is_empty()),
                    rate(&system.lifecycle_per_s),
                    rate(&system.lifecycle_per_s_256),
                    rate(&system.enqueue_per_s),
                    system.pickup_p50_ms.median(),
                    system.pickup_p99_ms.median(),
                    thousands(system.pickup_at_per_s),
                )
            }
        }
    }
}

impl System {
    fn json(&self) -> Value {
        let mut object = json!({
            "durability": {
                "create": self.durability.create,
                "lease": self.durability.lease,
                "complete": self.durability.complete,
            },
            "durable_peer": self.durability.durable_peer,
            "delivered_exactly": self.inexact.is_empty(),
            "lifecycle_per_s": rounded(self.lifecycle_per_s.median(), 0),
            "lifecycle_per_s_256": rounded(self.lifecycle_per_s_256.median(), 0),
            "enqueue_per_s": rounded(self.enqueue_per_s.median(), 0),
            "pickup_ms": {
                "p50": rounded(self.pickup_p50_ms.median(), 3),
                "p99": rounded(self.pickup_p99_ms.median(), 3),
            },
            "pickup_at_per_s": rounded(self.pickup_at_per_s, 0),
            "spread": {
                "lifecycle_per_s": self.lifecycle_per_s.spread(0),
                "lifecycle_per_s_256": self.lifecycle_per_s_256.spread(0),
                "enqueue_per_s": self.enqueue_per_s.spread(0),
                "pickup_ms": {
                    "p50": self.pickup_p50_ms.spread(3),
                    "p99": self.pickup_p99_ms.spread(3),
                },
            },
            "jobs": self.jobs,
            "version": self.version,
            "configuration": self.configuration,
            "took_s": rounded(self.took_s, 1),
        });
        if let Value::Object(fields) = &mut object {
            fields.extend(self.extras.clone());
            if !self.inexact.is_empty() {
                fields.insert("inexact".to_owned(), json!(self.inexact));
            }
        }
        object
    }

    fn notes(&self, name: &str) -> Vec<String> {
        let mut lines = vec![
            format!("{name}: {}; {}", self.version, self.configuration),
            format!("  create: {}", self.durability.create),
            format!("  lease: {}", self.durability.lease),
            format!("  complete: {}", self.durability.complete),
            format!("  {} jobs, {:.0} s", thousands(self.jobs as f64), self.took_s),
        ];
        lines.extend(self.inexact.iter().map(|fault| format!("  NOT EXACT: {fault}")));
        lines.extend(self.extras.iter().map(|(figure, value)| format!("  {figure}: {value}")));
        lines.push(String::new());
        lines
    }
}

/// An aim and whether it holds; what was not measured does not.
pub(crate) fn aim(aim: f64, measured: Option<f64>, holds: fn(f64, f64) -> bool) -> Value {
    match measured {
        Some(measured) => {
            json!({ "aim": aim, "measured": rounded(measured, 2), "holds": holds(measured, aim) })
        }
        None => json!({ "aim": aim, "measured": null, "holds": "not measured" }),
    }
}

pub(crate) fn rounded(value: f64, digits: usize) -> f64 {
    let scale = [1.0, 10.0, 100.0, 1000.0].get(digits).copied().unwrap_or(1.0);
    (value * scale).round() / scale
}

pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (value, text) in [(7.2, "7"), (1000.0, "1,000"), (1234567.0, "1,234,567")] {
            assert_eq!(thousands(value), text);
        }
    }

    #[test]
    fn median_of_an_unsorted_sample() {
        let mut sample = Sample::default();
        for value in [3.0, 1.0, 2.0] {
            sample.add(value);
        }
        assert_eq!((sample.median(), sample.range()), (2.0, (1.0, 3.0)));
    }
}
