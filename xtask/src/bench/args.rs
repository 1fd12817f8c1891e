//! What the bench is asked to do, and how long each run takes.

use std::time::Duration;

use super::failure::{Failure, Result};

/// Shown by `--help` and after a wrong argument.
pub(crate) const USAGE: &str = "\
usage: cargo xtask bench [--json] [--only NAME[,NAME]] [--jobs] [--instances] [--workflows]
                         [--syncs] [--quick] [--setup]

  --json    one JSON object on stdout instead of the table
  --only    measure only these: windlass, beanstalkd, nats, nats_default, redis_bullmq,
            postgres_graphile, zeebe, conductor, pyairbyte, meltano
  --jobs    only jobs: whole lives, creates in batches, pickup; of windlass also memory, restart
            and a noisy neighbour
  --instances
            only process instances over the Zeebe face: windlass, and zeebe where a Java 21 is
  --workflows
            only workflows over the Conductor face: windlass, and conductor where a Java 21 is
  --syncs   only records through a sync: windlass, cat and a full parse between the same processes;
            sources of PyPI through windlass, a pipe of the shell, pyairbyte and meltano
  --quick   short runs, once each: to see that everything works, not to quote
  --setup   install what is missing and stop";

/// The parsed arguments.
#[derive(Debug, Default)]
pub(crate) struct Args {
    /// One JSON object instead of the table.
    pub(crate) json: bool,
    /// Systems to measure; empty means all.
    pub(crate) only: Vec<String>,
    /// Jobs and nothing else but what else is asked for.
    only_jobs: bool,
    /// Process instances and nothing else but what else is asked for.
    only_instances: bool,
    /// Workflows and nothing else but what else is asked for.
    only_workflows: bool,
    /// Syncs and nothing else but what else is asked for.
    only_syncs: bool,
    /// Short runs.
    pub(crate) quick: bool,
    /// Install and stop.
    pub(crate) setup: bool,
    /// Print the usage and stop.
    pub(crate) help: bool,
}

impl Args {
    /// Parses the words after `bench`; `names` are the systems there are.
    pub(crate) fn parse(words: impl Iterator<Item = String>, names: &[&str]) -> Result<Self> {
        let mut args = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => args.json = true,
                "--jobs" => args.only_jobs = true,
                "--instances" => args.only_instances = true,
                "--workflows" => args.only_workflows = true,
                "--syncs" => args.only_syncs = true,
                "--quick" => args.quick = true,
                "--setup" => args.setup = true,
                "--help" | "-h" => args.help = true,
                "--only" => args.only(&words.next().unwrap_or_default(), names)?,
                other => match other.strip_prefix("--only=") {
                    Some(list) => args.only(list, names)?,
                    None => return Err(Failure::new(format!("unknown word {other}\n{USAGE}"))),
                },
            }
        }
        Ok(args)
    }

    /// Whether a system is asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }

    /// Whether jobs are measured.
    pub(crate) fn jobs(&self) -> bool {
        self.only_jobs || self.everything()
    }

    fn everything(&self) -> bool {
        !(self.only_jobs || self.only_instances || self.only_workflows || self.only_syncs)
    }

    /// Whether syncs are.
    pub(crate) fn syncs(&self) -> bool {
        let systems = [super::OURS, super::syncs::PYAIRBYTE, super::syncs::MELTANO];
        self.only_syncs || (self.everything() && systems.iter().any(|name| self.wants(name)))
    }

    /// Whether process instances are.
    pub(crate) fn instances(&self) -> bool {
        self.only_instances || self.everything()
    }

    /// Whether workflows are.
    pub(crate) fn workflows(&self) -> bool {
        self.only_workflows || self.everything()
    }

    /// The times of a run.
    pub(crate) fn plan(&self) -> Plan {
        if self.quick {
            let (warmup, window) = (Duration::from_millis(1200), Duration::from_millis(1500));
            return Plan { warmup, window, repeats: 1 };
        }
        Plan { warmup: Duration::from_secs(3), window: Duration::from_secs(4), repeats: 3 }
    }

    fn only(&mut self, list: &str, names: &[&str]) -> Result<()> {
        for name in list.split(',') {
            if !names.contains(&name) {
                let known = names.join(", ");
                return Err(Failure::new(format!("no system {name:?}; there are {known}")));
            }
            self.only.push(name.to_owned());
        }
        Ok(())
    }
}

/// The times of a run and how often it is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Time before anything counts.
    pub(crate) warmup: Duration,
    /// Time that counts.
    pub(crate) window: Duration,
    /// Runs of each shape; the median is reported.
    pub(crate) repeats: usize,
}
