//! What runs have exercised: faults, commands with their answers, and the arrows of a job's life.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use windlass_engine::lifecycle::{JobState, Transition, Verb, transition};

/// What runs have exercised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Runs.
    pub runs: u64,
    counts: BTreeMap<(&'static str, String), u64>,
    /// State, verb and the state that followed.
    arrows: BTreeMap<(JobState, &'static str, JobState), u64>,
    /// State and verb that were refused.
    refused: BTreeMap<(&'static str, &'static str), u64>,
}

impl Coverage {
    /// Something of a kind happened.
    pub fn count(&mut self, kind: &'static str, what: impl Into<String>) {
        self.add(kind, what, 1);
    }

    /// Something of a kind happened so often.
    pub fn add(&mut self, kind: &'static str, what: impl Into<String>, times: u64) {
        *self.counts.entry((kind, what.into())).or_default() += times;
    }

    /// How often that was.
    #[must_use]
    pub fn counted(&self, kind: &'static str, what: &str) -> u64 {
        self.counts.get(&(kind, what.to_owned())).copied().unwrap_or(0)
    }

    /// A verb led from a state to another.
    pub fn arrow(&mut self, from: JobState, verb: Verb, to: JobState) {
        *self.arrows.entry((from, verb.name(), to)).or_default() += 1;
    }

    /// A verb was refused in a state.
    pub fn refused(&mut self, state: &'static str, verb: &'static str) {
        *self.refused.entry((state, verb)).or_default() += 1;
    }

    /// Adds what another run has exercised.
    pub fn merge(&mut self, other: &Coverage) {
        self.runs += other.runs;
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
        for (arrow, count) in &other.arrows {
            *self.arrows.entry(*arrow).or_default() += count;
        }
        for (pair, count) in &other.refused {
            *self.refused.entry(*pair).or_default() += count;
        }
    }

    /// Arrows and refusals of the table that no run has exercised, and how many there are in all.
    /// Refusals of what only the engine itself does are left out: nobody can ask for them.
    #[must_use]
    pub fn uncovered(&self) -> (Vec<String>, usize) {
        let mut missing = Vec::new();
        let mut all = 0;
        for state in JobState::ALL {
            for verb in Verb::ALL {
                match transition(state, verb) {
                    Transition::To(targets) | Transition::WithoutLease(targets) => {
                        let targets: BTreeSet<JobState> = targets.iter().copied().collect();
                        all += targets.len();
                        let lacks =
                            |to: &&JobState| !self.arrows.contains_key(&(state, verb.name(), **to));
                        missing.extend(targets.iter().filter(lacks).map(|to| {
                            format!("{} --{}--> {}", state.name(), verb.name(), to.name())
                        }));
                    }
                    Transition::WrongState | Transition::NotFound if is_asked(verb) => {
                        all += 1;
                        if !self.refused.contains_key(&(state.name(), verb.name())) {
                            missing.push(format!("{} --{}--> no", state.name(), verb.name()));
                        }
                    }
                    Transition::WrongState | Transition::NotFound => {}
                }
            }
        }
        (missing, all)
    }
}

/// Whether a command asks for it, and not time or the scheduler.
fn is_asked(verb: Verb) -> bool {
    match verb {
        Verb::ExtendLease
        | Verb::Report
        | Verb::Complete
        | Verb::Fail
        | Verb::ThrowError
        | Verb::Release
        | Verb::Cancel
        | Verb::Update
        | Verb::Resolve => true,
        Verb::Activate
        | Verb::Return
        | Verb::LeaseEnds
        | Verb::Due
        | Verb::WaitingEnds
        | Verb::AttemptEnds
        | Verb::TotalEnds => false,
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kind = "";
        for ((this, what), count) in &self.counts {
            if *this != kind {
                kind = this;
                writeln!(f, "{kind}")?;
            }
            writeln!(f, "  {count:>10}  {what}")?;
        }
        let (missing, all) = self.uncovered();
        writeln!(f, "life cycle: {} of {all} arrows and refusals", all - missing.len())?;
        for line in missing {
            writeln!(f, "  not covered: {line}")?;
        }
        Ok(())
    }
}
