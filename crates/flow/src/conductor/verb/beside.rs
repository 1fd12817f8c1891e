//! What stands beside a task: in other branches of the forks around it, static ones and dynamic
//! ones. A rerun from the task leaves that as it is.

use std::iter::successors;

use windlass_record::flow::{Key, NO_KEY};

use crate::conductor::plan::{Next, TaskNode};
use crate::conductor::state::{Task, Workflows};

/// A fork around a task, and where in it the task stands.
struct Around {
    fork: Key,
    /// Whose added tasks the branches are of, or none. A dynamic fork is that itself.
    among: Key,
    branch: usize,
}

/// The forks around a task.
pub(super) struct Forks(Vec<Around>);

impl Forks {
    /// Those around this task.
    pub(super) fn around(state: &Workflows, key: Key) -> Forks {
        let mut forks = Vec::new();
        for at in levels(state, key) {
            let record = state.known_task(at);
            let plan = state.plan_of(record);
            for (node, branch) in plan.forks_around(record.node) {
                let fork = find(state, record, node);
                forks.extend(fork.map(|fork| Around { fork, among: record.among, branch }));
            }
            if record.among != NO_KEY {
                let branch = plan.added_branch(record.node);
                forks.push(Around { fork: record.among, among: record.among, branch });
            }
        }
        Forks(forks)
    }

    /// The forks themselves.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.0.iter().map(|around| around.fork)
    }

    /// What waits for their branches.
    pub(super) fn joins(&self, state: &Workflows) -> Vec<Key> {
        let join_of = |fork: Key| {
            let record = state.known_task(fork);
            let Next::Task(join) = state.plan_of(record).node(record.node).next else {
                return None;
            };
            find(state, record, join)
        };
        self.keys().filter_map(join_of).collect()
    }

    /// Whether a task stands in another branch of one of them.
    pub(super) fn are_around(&self, state: &Workflows, other: Key) -> bool {
        levels(state, other).any(|at| {
            let record = state.known_task(at);
            let mut same_level = self.0.iter().filter(|around| around.among == record.among);
            same_level.any(|around| {
                branch(state, around, record).is_some_and(|branch| branch != around.branch)
            })
        })
    }
}

/// In which branch of a fork a task of its level stands, if in any.
fn branch(state: &Workflows, around: &Around, record: &Task) -> Option<usize> {
    let plan = state.plan_of(record);
    if around.fork == around.among {
        return Some(plan.added_branch(record.node));
    }
    let fork = state.known_task(around.fork);
    let in_round = rounds(state, record).any(|round| round == (fork.loop_task, fork.iteration));
    plan.branch_of(fork.node, record.node).filter(|_| in_round)
}

/// A task, the dynamic fork whose branch it is in, the one around that.
fn levels(state: &Workflows, key: Key) -> impl Iterator<Item = Key> {
    let outer = |key: &Key| Some(state.known_task(*key).among).filter(|among| *among != NO_KEY);
    successors(Some(key), outer)
}

/// The loops around a task, each with its round; outside of all is none.
fn rounds(state: &Workflows, record: &Task) -> impl Iterator<Item = (Key, u32)> {
    let outer = |(loop_task, _): &(Key, u32)| {
        let record = state.task(*loop_task)?;
        Some((record.loop_task, record.iteration))
    };
    successors(Some((record.loop_task, record.iteration)), outer)
}

/// The newest record of a node, of the same level and of a round that `near` is in.
fn find(state: &Workflows, near: &Task, node: TaskNode) -> Option<Key> {
    let rounds: Vec<(Key, u32)> = rounds(state, near).collect();
    let is_it = |key: &&Key| {
        let record = state.known_task(**key);
        record.node == node
            && record.among == near.among
            && rounds.contains(&(record.loop_task, record.iteration))
    };
    state.known(near.workflow).tasks.iter().rev().find(is_it).copied()
}
