//! A workflow from the history is the workflow that the core shows, at every step of its life.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_checkpoint::{MemoryCheckpoint, MemoryDisk};
use windlass_history::{History, Origin};
use windlass_log::MemoryLog;
use windlass_partition::clock::SystemClock;
use windlass_partition::request::{
    Answer, Commands, HandedJob, Poll, Query, QueryAnswer, Request, WaiterId, Wanted,
};
use windlass_partition::{Followed, Follower, Options, Partition, Record};
use windlass_record::command::{Command, QueueName};
use windlass_record::flow::{FlowAnswer, FlowCommand, Key};
use windlass_record::workflow::{
    TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer, WorkflowCommand, WorkflowQuery,
    WorkflowVerb,
};

const SOON: Duration = Duration::from_secs(20);

struct Feed(History);

impl Follower for Feed {
    fn begin(&self, log: &Followed) -> u64 {
        self.0.begin(&Origin { life: log.life, durable_lsn: log.durable_lsn })
    }

    fn take(&self, record: &Record<'_>) {
        self.0.take(record.lsn, record.time_ms, record.payload);
    }

    fn leave_out(&self, time_ms: u64) -> bool {
        self.0.leave_out(time_ms)
    }

    fn miss(&self, first_lsn: u64, last_lsn: u64) {
        self.0.miss(first_lsn, last_lsn);
    }

    fn flush(&self, through_lsn: u64) -> u64 {
        self.0.flush(through_lsn)
    }

    fn idle(&self) -> bool {
        self.0.idle()
    }

    fn kept(&self) -> u64 {
        self.0.kept()
    }
}

struct Fixture {
    partition: Partition,
    history: History,
    _dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let history =
            History::open(&dir.path().join("h.db"), windlass_history::Options::default()).unwrap();
        let follower: Arc<dyn Follower> = Arc::new(Feed(history.clone()));
        let checkpoint = Arc::new(MemoryCheckpoint::open(&MemoryDisk::new()));
        let log = Arc::new(MemoryLog::create(1, 1).unwrap().handle());
        let (options, clock) = (Options::default(), Arc::new(SystemClock::default()));
        let partition =
            Partition::open_followed(options, log, checkpoint, clock, Some(follower)).unwrap();
        Fixture { partition, history, _dir: dir }
    }

    fn give(&self, command: WorkflowCommand) -> WorkflowAnswer {
        let (tx, rx) = mpsc::channel();
        let items = vec![Command::Flow(FlowCommand::Workflow(command))];
        let reply = Box::new(move |results| tx.send(results).unwrap());
        self.partition.handle().submit(Request::Commands(Commands { items, reply })).unwrap();
        let answer = rx.recv_timeout(SOON).unwrap().remove(0).unwrap();
        let Answer::Flow(FlowAnswer::Workflow(answer)) = answer else { panic!("{answer:?}") };
        answer
    }

    fn control(&self, workflow: Key, verb: WorkflowVerb) {
        self.give(WorkflowCommand::Control { workflow, verb });
    }

    fn end(&self, workflow: Key, reference: &str, status: TaskStatus) {
        let update = TaskUpdate {
            workflow,
            task: TaskReference::Name(reference.into()),
            status,
            output: bytes(&json!({ "by": reference })),
            merge: false,
            reason: if status.is_success() { "" } else { "no luck" }.into(),
            callback_s: 7,
            worker: "ann".into(),
            log: Vec::new(),
            extend_lease: false,
        };
        self.give(WorkflowCommand::UpdateTask(Box::new(update)));
    }

    fn poll(&self, task_type: &str) -> Vec<HandedJob> {
        let (tx, rx) = mpsc::channel();
        let queue =
            QueueName { tenant: "default".into(), queue: format!("conductor/{task_type}").into() };
        let wanted = Wanted {
            queues: vec![queue],
            worker: "bob".into(),
            lease_ms: 60_000,
            with_token: false,
        };
        let poll = Poll {
            id: WaiterId(1),
            wanted,
            jobs_max: 1,
            bytes_max: 1 << 20,
            wait_ms: 5_000,
            reply: Box::new(move |jobs| {
                tx.send(jobs.unwrap()).unwrap();
                Vec::new()
            }),
        };
        self.partition.handle().submit(Request::Poll(poll)).unwrap();
        rx.recv_timeout(SOON).unwrap()
    }

    fn query(&self, query: Query) -> QueryAnswer {
        let (tx, rx) = mpsc::channel();
        let reply = Box::new(move |answer| tx.send(answer).unwrap());
        self.partition.handle().submit(Request::Query(query, reply)).unwrap();
        rx.recv_timeout(SOON).unwrap().unwrap()
    }

    /// What both show, and that it is the same.
    fn same(&self, workflow: Key) -> Value {
        let QueryAnswer::Status(status) = self.query(Query::Status) else { panic!() };
        self.history.wait_for(status.lsn, SOON).unwrap();
        let query = WorkflowQuery::Workflow { key: workflow, tasks: true };
        let QueryAnswer::Workflows(core) = self.query(Query::Workflows(query)) else { panic!() };
        let core = comparable(&core.unwrap());
        let rows = self.history.workflow_json(workflow.raw(), true).unwrap();
        assert_eq!(comparable(&rows.unwrap()), core);
        core
    }
}

/// Without what the history says otherwise: definitions are without defaults there, and what a loop
/// under way has put together so far is not known.
fn comparable(json: &str) -> Value {
    let mut workflow: Value = serde_json::from_str(json).unwrap();
    let fields = workflow.as_object_mut().unwrap();
    for name in ["workflowDefinition", "updateTime"] {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    for task in fields["tasks"].as_array_mut().unwrap() {
        let task = task.as_object_mut().unwrap();
        for name in ["responseTimeoutSeconds", "rateLimitFrequencyInSeconds", "updateTime"] {
            assert!(task.remove(name).is_some(), "{name}");
        }
        task.remove("workflowTask");
        task.remove("taskDefinition");
        if task["taskType"] == "DO_WHILE" && task["status"] == "IN_PROGRESS" {
            task.remove("outputData");
        }
    }
    workflow
}

fn bytes(json: &Value) -> windlass_record::command::Bytes {
    json.to_string().into_bytes().into()
}

fn simple(name: &str, reference: &str) -> Value {
    json!({ "name": name, "taskReferenceName": reference, "type": "SIMPLE",
            "inputParameters": { "n": "${workflow.input.n}" } })
}

fn definition() -> Value {
    json!({
        "name": "order", "version": 1, "schemaVersion": 2, "ownerEmail": "a@example.com",
        "timeoutSeconds": 0, "outputParameters": { "last": "${pay_a.output.by}" },
        "tasks": [
            { "name": "set", "taskReferenceName": "set", "type": "SET_VARIABLE",
              "inputParameters": { "color": "red" } },
            simple("flaky", "flaky"),
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
              "forkTasks": [[simple("pay", "pay_a")], [simple("pay", "pay_b")]] },
            { "name": "join", "taskReferenceName": "join", "type": "JOIN",
              "joinOn": ["pay_a", "pay_b"] },
            { "name": "loop", "taskReferenceName": "loop", "type": "DO_WHILE",
              "loopCondition": "$.loop['iteration'] < 2", "loopOver": [simple("step", "step")] },
            { "name": "wait", "taskReferenceName": "wait", "type": "WAIT" },
        ],
    })
}

fn started(fixture: &Fixture) -> Key {
    let tasks = ["flaky", "pay", "step"].map(|name| {
        bytes(&json!({ "name": name, "retryCount": 1, "retryDelaySeconds": 0,
                       "responseTimeoutSeconds": 60, "timeoutSeconds": 0,
                       "ownerEmail": "a@example.com" }))
    });
    fixture.give(WorkflowCommand::DefineTasks { tasks: tasks.into(), must_exist: false });
    let workflow = bytes(&definition());
    fixture.give(WorkflowCommand::DefineWorkflow { workflow, overwrite: false, dry_run: false });
    let request = bytes(&json!({ "name": "order", "input": { "n": 1 }, "correlationId": "c",
        "priority": 3, "createdBy": "me", "idempotencyKey": "i" }));
    let answer = fixture.give(WorkflowCommand::Start { request });
    let WorkflowAnswer::Started { workflow, .. } = answer else { panic!("{answer:?}") };
    workflow
}

#[test]
fn a_workflow_from_its_rows_is_that_of_the_core() {
    use TaskStatus::{Completed, Failed, InProgress};

    let fixture = Fixture::new();
    let workflow = started(&fixture);
    fixture.same(workflow);
    assert_eq!(fixture.poll("flaky").len(), 1);
    assert_eq!(fixture.same(workflow)["tasks"][1]["status"], "IN_PROGRESS");
    fixture.end(workflow, "flaky", InProgress);
    assert_eq!(fixture.same(workflow)["tasks"][1]["callbackAfterSeconds"], 7);
    fixture.end(workflow, "flaky", Failed);
    assert_eq!(fixture.same(workflow)["tasks"][1]["retried"], true);
    fixture.control(workflow, WorkflowVerb::Pause);
    fixture.same(workflow);
    fixture.control(workflow, WorkflowVerb::Resume);
    for reference in ["flaky", "pay_b", "pay_a", "step__1", "step__2"] {
        fixture.end(workflow, reference, Completed);
        fixture.same(workflow);
    }
    fixture.control(workflow, WorkflowVerb::Terminate { reason: "enough".into() });
    assert_eq!(fixture.same(workflow)["reasonForIncompletion"], "enough");
    fixture.control(workflow, WorkflowVerb::Retry { subworkflows: false });
    fixture.same(workflow);
    fixture.end(workflow, "wait", Completed);
    assert_eq!(fixture.same(workflow)["output"]["last"], "pay_a");
    fixture.control(workflow, WorkflowVerb::Restart { latest: true });
    fixture.same(workflow);
    fixture.end(workflow, "flaky", TaskStatus::FailedWithTerminalError);
    assert_eq!(fixture.same(workflow)["failedReferenceTaskNames"], json!(["flaky"]));
    fixture.control(workflow, WorkflowVerb::Remove { only_at_rest: true });
    let QueryAnswer::Status(status) = fixture.query(Query::Status) else { panic!() };
    fixture.history.wait_for(status.lsn, SOON).unwrap();
    assert_eq!(fixture.history.workflow_json(workflow.raw(), true).unwrap(), None);
}
