//! What the benches of process instances and of workflows have in common: the runs of a case, its
//! figures, and what becomes of a system.
//!
//! A case is a load shape with a way to work on it. Its maximum is looked for in a closed loop, its
//! latency is taken in an open loop at half of that.

use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::OPEN_LOOP_SHARE;
use super::args::Plan;
use super::failure::{Failure, Result};
use super::measure::{Figures, Load, Pickup, Shape};
use super::report::{Sample, rounded};
use super::server::Server;

/// Where a server is.
pub(super) struct Place {
    /// Of the face that is measured.
    pub(super) address: String,
    pub(super) pid: u32,
}

/// Starts a server of its own for a run, or says where the one for all is.
pub(super) type Start<'a> = Box<dyn Fn() -> Result<(Option<Server>, Place)> + 'a>;

/// What a run found.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) figures: Figures,
    /// How many the system itself confirmed to have ended.
    pub(super) confirmed: u64,
    /// Processor time of one, in the server and in the load generator: what is left to compare on a
    /// machine that others use.
    pub(super) server_cpu_us: f64,
    pub(super) load_cpu_us: f64,
}

impl Ran {
    fn latency_in_words(&self) -> String {
        self.figures.pickup_ms.as_ref().map_or_else(String::new, |latency| {
            format!(", p50 {:.2} p99 {:.2} ms", latency.p50, latency.p99)
        })
    }
}

/// The runs of one system.
pub(super) struct Bench<'a> {
    system: &'static str,
    pub(super) runtime: &'a Runtime,
    plan: Plan,
    start: Start<'a>,
    /// Every run has a process or workflow of its own.
    begun: u64,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        system: &'static str,
        runtime: &'a Runtime,
        plan: Plan,
        start: Start<'a>,
    ) -> Self {
        Self { system, runtime, plan, start, begun: 0 }
    }

    /// A name for what a run runs, and where; the server lives as long as it is kept.
    pub(super) fn begin(&mut self) -> Result<(String, Option<Server>, Place)> {
        self.begun += 1;
        let (server, place) = (self.start)()?;
        Ok((format!("bench_{}", self.begun), server, place))
    }

    /// Says what a run found; `more` is what this kind of run has besides.
    pub(super) fn say(&self, case: &str, load: Load, ran: &Ran, more: &str) {
        eprintln!(
            "bench: {} {case} ({}): {:.1}/s{}{more}, {} done, {} confirmed, CPU {:.0} + {:.0} us, {}",
            self.system,
            words(load),
            ran.figures.rate_per_s,
            ran.latency_in_words(),
            ran.figures.jobs,
            ran.confirmed,
            ran.server_cpu_us,
            ran.load_cpu_us,
            ran.figures.inexact.as_deref().unwrap_or("exact"),
        );
    }

    /// The maximum over several numbers of open ones, then the latency at half of it; and what the
    /// runs found.
    pub(super) fn case<F: AsRef<Ran>>(
        &mut self,
        open: &[u64],
        mut run: impl FnMut(&mut Self, Shape) -> Result<F>,
    ) -> Result<(Common, Vec<F>)> {
        let mut best: Option<(Common, Vec<F>)> = None;
        for &in_flight in open {
            let found = self.repeat(Load::Closed { in_flight }, 1, &mut run)?;
            let mut common = Common { in_flight, ..Common::default() };
            common.add_all(&found);
            if best.as_ref().is_none_or(|(best, _)| best.per_s.median() < common.per_s.median()) {
                best = Some((common, found));
            }
        }
        let (mut common, mut runs) = best.ok_or_else(|| Failure::new("no number to try"))?;
        let load = Load::Closed { in_flight: common.in_flight };
        let again = self.repeat(load, self.plan.repeats - 1, &mut run)?;
        common.add_all(&again);
        runs.extend(again);
        if common.per_s.median() <= 0.0 {
            return Err(Failure::new("nothing was completed in the window"));
        }
        common.latency_at_per_s = common.per_s.median() * OPEN_LOOP_SHARE;
        let load = Load::Open { per_s: common.latency_at_per_s };
        let opened = self.repeat(load, self.plan.repeats, &mut run)?;
        common.add_all(&opened);
        runs.extend(opened);
        Ok((common, runs))
    }

    /// The latency at a rate of our choice.
    pub(super) fn latency_at<F: AsRef<Ran>>(
        &mut self,
        per_s: f64,
        mut run: impl FnMut(&mut Self, Shape) -> Result<F>,
    ) -> Result<Common> {
        let mut common = Common { latency_at_per_s: per_s, ..Common::default() };
        common.add_all(&self.repeat(Load::Open { per_s }, self.plan.repeats, &mut run)?);
        Ok(common)
    }

    fn repeat<F>(
        &mut self,
        load: Load,
        times: usize,
        run: &mut impl FnMut(&mut Self, Shape) -> Result<F>,
    ) -> Result<Vec<F>> {
        let shape = Shape { load, warmup: self.plan.warmup, window: self.plan.window };
        (0..times).map(|_| run(self, shape)).collect()
    }
}

/// A load in words.
pub(super) fn words(load: Load) -> String {
    match load {
        Load::Closed { in_flight } => format!("closed, {in_flight} open"),
        Load::Open { per_s } => format!("open, {per_s:.1}/s"),
        Load::Enqueue => "starts only".to_owned(),
    }
}

/// A latency over the repeats.
#[derive(Debug, Clone, Default)]
pub(super) struct Latency {
    pub(super) p50_ms: Sample,
    pub(super) p99_ms: Sample,
}

impl Latency {
    pub(super) fn add(&mut self, found: Option<&Pickup>) {
        if let Some(found) = found {
            self.p50_ms.add(found.p50);
            self.p99_ms.add(found.p99);
        }
    }

    pub(super) fn is_measured(&self) -> bool {
        !self.p50_ms.median().is_nan()
    }

    /// Nothing where none was measured.
    pub(super) fn json(&self) -> Option<Value> {
        let (p50, p99) = (self.p50_ms.median(), self.p99_ms.median());
        self.is_measured().then(|| json!({ "p50": rounded(p50, 2), "p99": rounded(p99, 2) }))
    }
}

/// The figures that every case has.
#[derive(Debug, Clone, Default)]
pub(super) struct Common {
    /// Open ones at which it is fastest.
    pub(super) in_flight: u64,
    pub(super) per_s: Sample,
    pub(super) latency_at_per_s: f64,
    /// Due until completed.
    pub(super) whole: Latency,
    pub(super) server_cpu_us: Sample,
    pub(super) load_cpu_us: Sample,
    pub(super) done: u64,
    pub(super) confirmed: u64,
    pub(super) inexact: Vec<String>,
}

impl Common {
    fn add_all<F: AsRef<Ran>>(&mut self, runs: &[F]) {
        runs.iter().for_each(|found| self.add(found.as_ref()));
    }

    fn add(&mut self, ran: &Ran) {
        match &ran.figures.pickup_ms {
            Some(latency) => self.whole.add(Some(latency)),
            None => {
                self.per_s.add(ran.figures.rate_per_s);
                self.server_cpu_us.add(ran.server_cpu_us);
                self.load_cpu_us.add(ran.load_cpu_us);
            }
        }
        self.done += ran.figures.jobs;
        self.confirmed += ran.confirmed;
        self.inexact.extend(ran.figures.inexact.clone());
    }

    fn json<C: Case>(&self, shown: &Latency) -> Map<String, Value> {
        let (name, one) = (C::NAME, C::ONE);
        let fields = [
            (format!("{name}_per_s"), json!(rounded(self.per_s.median(), 1))),
            (format!("{one}_latency_ms"), json!(self.whole.json())),
            ("latency_at_per_s".to_owned(), json!(rounded(self.latency_at_per_s, 1))),
            (format!("open_{one}s"), json!(self.in_flight)),
            (
                format!("cpu_us_per_{one}"),
                json!({
                    "server": rounded(self.server_cpu_us.median(), 1),
                    "load_generator": rounded(self.load_cpu_us.median(), 1),
                }),
            ),
            (
                "spread".to_owned(),
                json!({
                    format!("{name}_per_s"): self.per_s.spread(1),
                    "p50": shown.p50_ms.spread(2),
                    "p99": shown.p99_ms.spread(2),
                }),
            ),
            (format!("{one}s"), json!(self.done)),
            (format!("{one}s_confirmed_by_the_system"), json!(self.confirmed)),
            ("completed_exactly_once".to_owned(), json!(self.inexact.is_empty())),
            ("inexact".to_owned(), json!(self.inexact)),
        ];
        fields.into_iter().collect()
    }
}

/// A case of either kind.
pub(super) trait Case {
    /// What is counted, as it stands in a system's JSON.
    const NAME: &'static str;
    /// One of it, in the fields of a case.
    const ONE: &'static str;
    /// The latency of the headline, as it stands in a system's JSON.
    const LATENCY: &'static str;
    /// Names of the case that stands for all, behind that of the history.
    const HEADLINE: &'static [&'static str];

    fn common(&self) -> &Common;

    /// The latency that is shown.
    fn latency(&self) -> &Latency;

    /// Fields besides those that every case has.
    fn more(&self) -> Map<String, Value>;

    /// The columns of the table behind the names.
    fn columns(&self) -> String;

    /// The columns with the names.
    fn names(names: &[&str]) -> String;
}

/// The cases of a system, by history and names, in the order measured.
pub(super) struct Cases<C>(Vec<(Vec<&'static str>, Result<C>)>);

impl<C> Default for Cases<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Case> Cases<C> {
    pub(super) fn add(&mut self, names: &[&'static str], case: Result<C>) {
        self.0.push((names.to_owned(), case));
    }

    /// The case that stands for all, as the server is by default.
    pub(super) fn headline(&self) -> Option<&C> {
        self.find(C::HEADLINE)
    }

    /// The first of this name, which is the one with what the server does by default.
    pub(super) fn find(&self, names: &[&str]) -> Option<&C> {
        self.0.iter().find(|(of, _)| of.get(1..) == Some(names))?.1.as_ref().ok()
    }

    fn json(&self) -> Value {
        let mut all = json!({});
        for (names, case) in &self.0 {
            let place = names.iter().fold(&mut all, |place, name| &mut place[*name]);
            *place = match case {
                Ok(case) => {
                    let mut fields = case.common().json::<C>(case.latency());
                    fields.extend(case.more());
                    Value::Object(fields)
                }
                Err(why) => json!({ "failed": why.to_string() }),
            };
        }
        all
    }
}

/// The figures of a system.
pub(crate) struct Measured<C> {
    pub(super) version: String,
    pub(super) configuration: String,
    pub(super) cases: Cases<C>,
    pub(super) extra: Map<String, Value>,
}

impl<C: Case> Measured<C> {
    /// What stands under the system's name.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let mut fields = self.extra.clone();
        if let Some(headline) = self.cases.headline() {
            let common = headline.common();
            let per_s = rounded(common.per_s.median(), 1);
            fields.insert(format!("{}_per_s", C::NAME), json!(per_s));
            fields.insert(format!("{}_ms", C::LATENCY), json!(headline.latency().json()));
            let at = rounded(common.latency_at_per_s, 1);
            fields.insert(format!("{}_at_per_s", C::LATENCY), json!(at));
        }
        fields.insert(C::NAME.to_owned(), self.cases.json());
        fields
    }

    fn lines(&self, system: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (names, case) in &self.cases.0 {
            let names = format!("{system:<9} {}", C::names(names));
            lines.push(match case {
                Err(why) => format!("{names} failed: {why}"),
                Ok(case) => {
                    let exact = if case.common().inexact.is_empty() { "yes" } else { "NO" };
                    format!("{names} {} {exact:>6}", case.columns())
                }
            });
        }
        lines.extend(self.extra.iter().map(|(figure, value)| format!("  {figure}: {value}")));
        lines.push(format!("  {}; {}", self.version, self.configuration));
        lines
    }

    fn faults(&self, system: &str) -> Vec<String> {
        let fault = |(names, case): &(Vec<&'static str>, Result<C>)| {
            let inexact = match case {
                Ok(case) => case.common().inexact.first()?.clone(),
                Err(why) => why.to_string(),
            };
            Some(format!("{system}: {}, {}: {inexact}", C::NAME, names.join(", ")))
        };
        self.cases.0.iter().filter_map(fault).collect()
    }
}

/// What became of a system.
pub(crate) enum Outcome<C> {
    Measured(Box<Measured<C>>),
    Skipped(String),
    Failed(String),
}

impl<C: Case> Outcome<C> {
    pub(super) fn of(measured: Result<Measured<C>>) -> Self {
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

    /// Adds it to what stands under the system's name already.
    pub(crate) fn add_to(&self, entry: &mut Value) {
        match (entry, self) {
            (Value::Object(fields), Self::Measured(measured)) => fields.extend(measured.json()),
            (entry, outcome) => entry[C::NAME] = outcome.json(),
        }
    }

    /// Lines of the table.
    pub(crate) fn lines(&self, system: &str) -> Vec<String> {
        match self {
            Self::Measured(measured) => measured.lines(system),
            Self::Skipped(why) => {
                vec![format!("{system:<9} skipped, and counts as not measured: {why}")]
            }
            Self::Failed(why) => vec![format!("{system:<9} failed: {why}")],
        }
    }

    /// What was not as it must be.
    pub(crate) fn faults(&self, system: &str) -> Vec<String> {
        match self {
            Self::Measured(measured) => measured.faults(system),
            Self::Skipped(_) => Vec::new(),
            Self::Failed(why) => vec![format!("{system}: {}: {why}", C::NAME)],
        }
    }

    /// Its cases, if it was measured.
    pub(super) fn cases(&self) -> Option<&Cases<C>> {
        match self {
            Self::Measured(measured) => Some(&measured.cases),
            Self::Skipped(_) | Self::Failed(_) => None,
        }
    }
}
