//! The workflows of the load shapes, and what a worker can tell from a task's reference.

use serde_json::{Value, json};

/// Tasks in a row.
const TASKS: u32 = 5;
/// Branches of the fork.
const BRANCHES: u32 = 10;
/// Rounds of the loop.
const ROUNDS: u32 = 100;

/// A load shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Five tasks, one after the other.
    FiveTasks,
    /// A task, ten at once, a task when all ten are done.
    ForkOfTen,
    /// A task, a hundred times.
    LoopOfHundred,
}

/// A task of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its bit among the tasks of the workflow.
    pub(super) bit: u32,
    pub(super) follows: Follows,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    Start,
    /// The task before it.
    Task,
    /// The task before the fork.
    Fork,
    /// The last branch.
    Join,
}

impl Kind {
    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::FiveTasks => "five_tasks",
            Kind::ForkOfTen => "fork_of_10",
            Kind::LoopOfHundred => "loop_of_100",
        }
    }

    /// Tasks that workers do.
    pub(super) fn tasks(self) -> u32 {
        match self {
            Kind::FiveTasks => TASKS,
            Kind::ForkOfTen => BRANCHES + 2,
            Kind::LoopOfHundred => ROUNDS,
        }
    }

    /// Whether a workflow takes so long that few end in a window: its tasks are counted then, and
    /// a hundredth of their rate is the rate.
    pub(super) fn is_long(self) -> bool {
        match self {
            Kind::FiveTasks | Kind::ForkOfTen => false,
            Kind::LoopOfHundred => true,
        }
    }

    /// The workflow of that name, whose tasks are all of the type of that name.
    pub(super) fn definition(self, name: &str) -> Value {
        let task = |reference: String| task(name, &reference);
        let tasks: Vec<Value> = match self {
            Kind::FiveTasks => (1..=TASKS).map(|number| task(format!("task{number}"))).collect(),
            Kind::ForkOfTen => {
                let branches: Vec<String> =
                    (1..=BRANCHES).map(|number| format!("branch{number}")).collect();
                let forked: Vec<Value> =
                    branches.iter().map(|branch| json!([task(branch.clone())])).collect();
                vec![
                    task("first".to_owned()),
                    json!({
                        "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
                        "forkTasks": forked,
                    }),
                    json!({
                        "name": "join", "taskReferenceName": "join", "type": "JOIN",
                        "joinOn": branches,
                    }),
                    task("last".to_owned()),
                ]
            }
            Kind::LoopOfHundred => vec![json!({
                "name": "rounds", "taskReferenceName": "rounds", "type": "DO_WHILE",
                "loopCondition": format!("$.rounds['iteration'] < {ROUNDS}"),
                "loopOver": [task("round".to_owned())],
            })],
        };
        json!({
            "name": name, "version": 1, "schemaVersion": 2, "ownerEmail": "bench@example.com",
            "tasks": tasks,
        })
    }

    /// What a reference says.
    pub(super) fn place(self, reference: &str) -> Option<Place> {
        let numbered = |prefix: &str, most: u32| {
            let number: u32 = reference.strip_prefix(prefix)?.parse().ok()?;
            (1..=most).contains(&number).then_some(number)
        };
        let after = |bit: u32| if bit == 0 { Follows::Start } else { Follows::Task };
        match self {
            Kind::FiveTasks => {
                let bit = numbered("task", TASKS)? - 1;
                Some(Place { bit, follows: after(bit) })
            }
            Kind::ForkOfTen => match reference {
                "first" => Some(Place { bit: 0, follows: Follows::Start }),
                "last" => Some(Place { bit: BRANCHES + 1, follows: Follows::Join }),
                _branch => {
                    let bit = numbered("branch", BRANCHES)?;
                    Some(Place { bit, follows: Follows::Fork })
                }
            },
            Kind::LoopOfHundred => {
                let bit = numbered("round__", ROUNDS)? - 1;
                Some(Place { bit, follows: after(bit) })
            }
        }
    }
}

fn task(name: &str, reference: &str) -> Value {
    json!({
        "name": name, "taskReferenceName": reference, "type": "SIMPLE",
        "inputParameters": { "n": "${workflow.input.n}" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_bit_of_its_own() {
        for (kind, references) in [
            (Kind::FiveTasks, (1..=5).map(|n| format!("task{n}")).collect::<Vec<_>>()),
            (Kind::LoopOfHundred, (1..=100).map(|n| format!("round__{n}")).collect()),
            (
                Kind::ForkOfTen,
                ["first", "last"]
                    .map(str::to_owned)
                    .into_iter()
                    .chain((1..=10).map(|n| format!("branch{n}")))
                    .collect(),
            ),
        ] {
            let bits = references.iter().map(|reference| kind.place(reference).expect("known").bit);
            let mut bits: Vec<u32> = bits.collect();
            bits.sort_unstable();
            assert_eq!(bits, (0..kind.tasks()).collect::<Vec<_>>(), "{kind:?}");
            assert_eq!(kind.place("other"), None);
        }
    }
}
