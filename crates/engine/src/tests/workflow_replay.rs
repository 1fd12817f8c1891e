//! Random workflows on random paths, stopped at every step: the state rebuilt from the log, and from
//! a checkpoint with the log's tail, is the same in all of it, and no workflow is stuck.

use serde_json::{Value, json};
use windlass_record::bound::Bounds;
use windlass_record::command::{ActivateJobs, Bytes, Command};
use windlass_record::flow::{FlowCommand, Key};
use windlass_record::id::PartitionId;
use windlass_record::workflow::{
    RerunWorkflow, TaskReference, TaskStatus, TaskUpdate, WorkflowCommand, WorkflowVerb,
};

use super::digest::{assert_same, digest};
use super::random::{Random, seeds};
use super::store::{Store, Writing, replay};
use crate::Engine;
use crate::verb::check::{Check, LEASE_MS, Shelf};

/// Seeds in every test run, and actions of each. More: `WINDLASS_SEEDS=2000`.
const SEEDS: u64 = 48;
const ACTIONS: u32 = 120;
const DEFINITIONS: u64 = 6;
/// Types of worker tasks: few, so that they meet.
const TYPES: [&str; 4] = ["red", "green", "blue", "grey"];
/// Names of tasks that no worker has, and that may have definitions all the same.
const WAITING: [&str; 5] = ["wait", "human", "join", "loop", "sub"];

struct World {
    random: Random,
    check: Check,
    started: Vec<Key>,
    /// Names of references in one definition.
    references: u32,
}

fn bytes(value: &Value) -> Bytes {
    value.to_string().into_bytes().into()
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            random: Random::new(seed),
            check: Check::new(),
            started: Vec::new(),
            references: 0,
        };
        for task in TYPES {
            world.define_task(task);
        }
        for task in WAITING {
            if world.random.one_in(3) {
                world.define_task(task);
            }
        }
        for number in 0..DEFINITIONS {
            world.define(number);
        }
        world
    }

    fn give(&mut self, command: WorkflowCommand) {
        // Most of what is random is refused, and that must change nothing.
        let _refused = self.check.give(Command::Flow(FlowCommand::Workflow(command)));
    }

    fn define_task(&mut self, name: &str) {
        let definition = json!({
            "name": name,
            "retryCount": self.random.below(3),
            "retryDelaySeconds": self.random.below(3),
            "retryLogic": self.random.of(&["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"]),
            "backoffJitterMs": self.random.below(2) * 500,
            "timeoutPolicy": self.random.of(&["RETRY", "TIME_OUT_WF", "ALERT_ONLY"]),
            "responseTimeoutSeconds": 5,
            "timeoutSeconds": self.random.below(2) * 8,
            "pollTimeoutSeconds": self.random.below(2) * 20,
            "totalTimeoutSeconds": self.random.below(2) * 60,
            "concurrentExecLimit": self.random.below(3),
        });
        self.give(WorkflowCommand::DefineTasks {
            tasks: vec![bytes(&definition)],
            must_exist: false,
        });
    }

    fn define(&mut self, number: u64) {
        self.references = 0;
        let tasks = self.tasks(2, number);
        let mut definition = json!({ "name": format!("w{number}"), "version": 1, "tasks": tasks });
        if self.random.one_in(4) {
            definition["failureWorkflow"] = json!(format!("w{}", self.random.below(DEFINITIONS)));
        }
        if self.random.one_in(3) {
            definition["timeoutSeconds"] = json!(30);
            definition["timeoutPolicy"] = json!("TIME_OUT_WF");
        }
        if self.random.one_in(4) {
            definition["rateLimitConfig"] =
                json!({ "rateLimitKey": "all", "concurrentExecLimit": 2 });
        }
        let taken = self.check.give(Command::Flow(FlowCommand::Workflow(
            WorkflowCommand::DefineWorkflow {
                workflow: bytes(&definition),
                overwrite: true,
                dry_run: false,
            },
        )));
        taken.unwrap_or_else(|refused| panic!("{refused}: {definition:#}"));
    }

    fn reference(&mut self, name: &str) -> Value {
        self.references += 1;
        format!("{name}{}", self.references).into()
    }

    fn tasks(&mut self, depth: u32, number: u64) -> Vec<Value> {
        let count = 1 + self.random.below(3);
        (0..count).flat_map(|_| self.task(depth, number)).collect()
    }

    fn task(&mut self, depth: u32, number: u64) -> Vec<Value> {
        let kinds = if depth == 0 { 7 } else { 12 };
        let mut task = match self.random.below(kinds) {
            0..=2 => {
                let name = *self.random.of(&TYPES);
                json!({ "name": name, "type": "SIMPLE",
                        "inputParameters": { "n": "${workflow.input.n}" } })
            }
            3 => json!({ "name": "set", "type": "SET_VARIABLE", "inputParameters": { "v": 1 } }),
            4 => json!({ "name": "wait", "type": "WAIT",
                         "inputParameters": if self.random.one_in(2) { json!({ "duration": "3 s" }) } else { json!({}) } }),
            5 => json!({ "name": "in", "type": "INLINE",
                         "inputParameters": { "evaluatorType": "javascript", "expression": "1 + 1" } }),
            6 => json!({ "name": "human", "type": "HUMAN" }),
            7 => {
                let cases = json!({ "0": self.tasks(depth - 1, number), "1": self.tasks(depth - 1, number) });
                json!({ "name": "switch", "type": "SWITCH", "evaluatorType": "value-param",
                        "expression": "n", "inputParameters": { "n": "${workflow.input.n}" },
                        "decisionCases": cases, "defaultCase": [] })
            }
            8 | 9 => return self.fork(depth, number),
            10 => {
                let reference = self.reference("loop");
                let rounds = 1 + self.random.below(3);
                let name = reference.as_str().expect("text").to_owned();
                json!({ "name": "loop", "type": "DO_WHILE", "taskReferenceName": reference,
                        "inputParameters": if self.random.one_in(2) { json!({ "keepLastN": 1 }) } else { json!({}) },
                        "loopCondition": format!("$.{name}['iteration'] < {rounds}"),
                        "loopOver": self.tasks(depth - 1, number) })
            }
            // Into one with a larger number, so that there is no circle.
            _ if number + 1 < DEFINITIONS => {
                let child =
                    format!("w{}", number + 1 + self.random.below(DEFINITIONS - number - 1));
                json!({ "name": "sub", "type": "SUB_WORKFLOW", "subWorkflowParam": { "name": child } })
            }
            _ => json!({ "name": "end", "type": "TERMINATE",
                         "inputParameters": { "terminationStatus": "COMPLETED" } }),
        };
        if task.get("taskReferenceName").is_none() {
            task["taskReferenceName"] = self.reference("t");
        }
        if self.random.one_in(6) && task["type"] != "TERMINATE" {
            task["optional"] = json!(true);
        }
        if self.random.one_in(6) {
            task["permissive"] = json!(true);
        }
        vec![task]
    }

    fn fork(&mut self, depth: u32, number: u64) -> Vec<Value> {
        let (fork, join) = (self.reference("fork"), self.reference("join"));
        if self.random.one_in(3) {
            return vec![
                json!({ "name": "fork", "taskReferenceName": fork, "type": "FORK_JOIN_DYNAMIC",
                        "inputParameters": { "forkTaskName": self.random.of(&TYPES),
                                             "forkTaskInputs": "${workflow.input.items}" } }),
                json!({ "name": "join", "taskReferenceName": join, "type": "JOIN" }),
            ];
        }
        let branches = [self.tasks(depth - 1, number), self.tasks(depth - 1, number)];
        let last = |branch: &Vec<Value>| {
            branch.last().map(|task| task["taskReferenceName"].clone()).unwrap_or_default()
        };
        let on: Vec<Value> = branches.iter().map(last).collect();
        vec![
            json!({ "name": "fork", "taskReferenceName": fork, "type": "FORK_JOIN",
                    "forkTasks": branches }),
            json!({ "name": "join", "taskReferenceName": join, "type": "JOIN", "joinOn": on }),
        ]
    }

    /// One thing that somebody does.
    fn act(&mut self) {
        match self.random.below(40) {
            0..=5 => self.start(),
            6..=20 => self.work(),
            21..=25 => {
                let ms = *self.random.of(&[1, 900, 1_100, 5_000, 31_000]);
                self.check.pass(ms);
            }
            26..=29 => self.by_name(),
            30 => {
                let name = *self.random.of(&TYPES);
                self.define_task(name);
            }
            31 => {
                let number = self.random.below(DEFINITIONS);
                self.define(number);
            }
            _ => self.control(),
        }
    }

    fn start(&mut self) {
        let items: Vec<Value> = (0..self.random.below(4)).map(|n| json!({ "i": n })).collect();
        let request = json!({
            "name": format!("w{}", self.random.below(DEFINITIONS)),
            "input": { "n": self.random.below(3), "items": items },
            "correlationId": self.random.of(&["", "c1", "c2"]),
            "idempotencyKey": self.random.of(&["", "", "k1"]),
            "idempotencyStrategy": self.random.of(&["FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING"]),
            "priority": self.random.below(3),
        });
        self.give(WorkflowCommand::Start { request: bytes(&request) });
        let state = self.check.engine.state().flow().workflows();
        self.started = state.keys();
    }

    /// A worker takes a task and says something about it.
    fn work(&mut self) {
        let state = self.check.engine.state();
        let mut queues: Vec<_> = state
            .queues()
            .filter(|(id, _)| state.eligible_jobs(*id, true) > 0)
            .map(|(id, _)| id)
            .collect();
        queues.sort_unstable();
        if queues.is_empty() {
            return;
        }
        let queue = *self.random.of(&queues);
        let command = ActivateJobs {
            queues: vec![queue],
            worker: "w".into(),
            lease_ms: LEASE_MS,
            jobs_max: 1,
            bytes_max: u64::MAX,
            with_token: false,
        };
        let Ok(crate::Answer::Activated(handed)) = self.check.give(Command::ActivateJobs(command))
        else {
            panic!("an activation is never refused here")
        };
        let workflows = self.check.engine.state().flow().workflows();
        let Some(task) = handed.first().and_then(|job| workflows.task_of_job(job.key)) else {
            return;
        };
        let workflow = workflows.task(task).expect("it is known").workflow;
        if !self.random.one_in(6) {
            self.update(workflow, TaskReference::Key(task));
        }
    }

    fn update(&mut self, workflow: Key, task: TaskReference) {
        let status = *self.random.of(&[
            TaskStatus::Completed,
            TaskStatus::Completed,
            TaskStatus::Completed,
            TaskStatus::Completed,
            TaskStatus::Failed,
            TaskStatus::Failed,
            TaskStatus::InProgress,
            TaskStatus::FailedWithTerminalError,
            TaskStatus::Canceled,
        ]);
        let output = json!({ "n": self.random.below(5) });
        let update = TaskUpdate {
            workflow,
            task,
            status,
            output: bytes(&output),
            merge: self.random.one_in(3),
            reason: "because".into(),
            callback_s: self.random.below(3) as u32,
            worker: "w".into(),
            log: Vec::new(),
            extend_lease: self.random.one_in(10),
        };
        self.give(WorkflowCommand::UpdateTask(Box::new(update)));
    }

    /// Somebody ends a task that no worker has.
    fn by_name(&mut self) {
        if self.started.is_empty() {
            return;
        }
        let workflow = *self.random.of(&self.started);
        let state = self.check.engine.state().flow().workflows();
        let open = state.open_tasks(workflow);
        if !open.is_empty() {
            let task = *self.random.of(&open);
            self.update(workflow, TaskReference::Key(task));
        }
    }

    fn control(&mut self) {
        if self.started.is_empty() {
            return;
        }
        let workflow = *self.random.of(&self.started);
        let tasks = self.check.engine.state().flow().workflows().tasks_of(workflow);
        let from = (!tasks.is_empty() && self.random.one_in(2)).then(|| *self.random.of(&tasks));
        let verb = match self.random.below(12) {
            0 | 1 => WorkflowVerb::Pause,
            2..=4 => WorkflowVerb::Resume,
            5 => WorkflowVerb::Terminate { reason: "enough".into() },
            6 => WorkflowVerb::Restart { latest: self.random.one_in(2) },
            7 | 8 => WorkflowVerb::Retry { subworkflows: self.random.one_in(2) },
            9 => WorkflowVerb::Rerun(RerunWorkflow { from, ..RerunWorkflow::default() }),
            10 => WorkflowVerb::Skip {
                reference: format!("t{}", self.random.below(8)).into(),
                input: Bytes::default(),
                output: Bytes::default(),
            },
            _ => WorkflowVerb::Remove { only_at_rest: self.random.one_in(2) },
        };
        self.give(WorkflowCommand::Control { workflow, verb });
        self.started = self.check.engine.state().flow().workflows().keys();
    }
}

#[test]
fn random_workflows_stopped_at_every_step_replay_to_the_same_state() {
    seeds("random_workflows", SEEDS, |seed| {
        let mut world = World::new(seed);
        let mut shelf = Shelf::default();
        let mut from_log = Engine::new(PartitionId::FIRST, Bounds::default());
        let mut logged = 0;
        for action in 0..ACTIONS {
            world.act();
            let check = &mut world.check;
            if action % 3 == 0 {
                let context = check.context();
                check.engine.go_on(context, 1 + (action as usize % 40), &mut check.shelf);
                check.check_invariants();
            }
            replay(&mut from_log, &mut shelf, &check.shelf.log[logged..]);
            logged = check.shelf.log.len();
            if action % 4 == 0 || action + 1 == ACTIONS {
                let live = digest(check.engine.state(), &check.shelf);
                assert_same("from the log", &live, &digest(from_log.state(), &shelf));
            }
            if action % 30 == 29 {
                let mut store = Store::default();
                from_log.freeze(&mut Writing { store: &mut store, shelf: &shelf });
                while !from_log.write_frozen(3, &mut Writing { store: &mut store, shelf: &shelf }) {
                }
                // Only what changed since the last checkpoint is in it: the first one has it all.
                if action == 29 {
                    store.commit();
                    let mut shelf = Shelf::default();
                    let engine = store.load(Bounds::default(), &mut shelf);
                    let live = digest(world.check.engine.state(), &world.check.shelf);
                    assert_same("from a checkpoint", &live, &digest(engine.state(), &shelf));
                }
            }
        }
        world.check.settle();
    });
}
