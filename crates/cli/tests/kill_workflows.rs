//! kill -9 of the real binary in the middle of workflows over Conductor's wire, again and again:
//! every start that was acknowledged is completed, no task is handed out twice within its response
//! timeout, and what a worker was told is done stays done.
//!
//! `WINDLASS_SECONDS=60` goes on killing for that long.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[allow(dead_code, reason = "others use more of it")]
#[path = "common/http.rs"]
mod http;
#[path = "common/server.rs"]
mod server;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use http::{Answer, Http};
use server::{Server, free_address};

/// Kills, at least.
const ROUNDS: u64 = 5;
/// A worker that was silent for this long has lost its task. Answers that die with the server are
/// tasks whose worker is silent.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Workflows under way at once: what is left at the end is soon done.
const OPEN_MAX: u64 = 150;
const STARTERS: usize = 2;
const WORKERS: usize = 3;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Branches of the large fork.
const BRANCHES: usize = 10_000;

/// What clients were told.
#[derive(Default)]
struct Told {
    /// Workflows by the number in their input, as starts were answered.
    started: HashMap<u64, String>,
    /// The same, as tasks that were handed out say it.
    seen: HashMap<u64, String>,
    /// Tasks that came to a worker.
    handed: HashSet<String>,
    /// By workflow and reference, when the newest record of a task was asked for.
    newest: HashMap<(String, String), Instant>,
    /// Acknowledged completions, by workflow and reference, and the record that was completed.
    done: HashMap<(String, String), String>,
    /// What must never happen.
    wrong: Vec<String>,
}

impl Told {
    /// A task came to a worker that asked for it at `asked`; it was not leased before that.
    fn hand(&mut self, task: &Value, asked: Instant) {
        let (id, place) = (text(task, "taskId"), place(task));
        if let Some(number) = task["inputData"]["number"].as_u64() {
            let before = self.seen.insert(number, place.0.clone());
            if before.is_some_and(|before| before != place.0) {
                self.wrong.push(format!("start {number} made two workflows"));
            }
        }
        if let Some(record) = self.done.get(&place) {
            self.wrong.push(format!("{place:?} was done as {record} and came again as {id}"));
        }
        if let Some(before) = self.newest.insert(place.clone(), asked)
            && before.elapsed() < RESPONSE_TIMEOUT
        {
            self.wrong.push(format!("{place:?} came again after {:?}", before.elapsed()));
        }
        if !self.handed.insert(id.clone()) {
            self.wrong.push(format!("the record {id} of {place:?} came twice"));
        }
    }

    fn acknowledge(&mut self, task: &Value) {
        let before = self.done.insert(place(task), text(task, "taskId"));
        if before.is_some() {
            self.wrong.push(format!("{:?} was completed twice", place(task)));
        }
    }
}

/// The server's address, what clients were told, and whether they may leave.
struct Load {
    address: String,
    told: Mutex<Told>,
    /// Starts asked for, and workflows whose last task is done.
    asked: AtomicU64,
    ended: AtomicU64,
    /// Completions that were answered.
    answered: AtomicU64,
    /// Records that nobody completed: their hand-out, or their result, died with the server.
    timed_out: AtomicU64,
    no_more_starts: AtomicBool,
    no_more_work: AtomicBool,
}

impl Load {
    fn new() -> Load {
        Load {
            address: free_address(),
            told: Mutex::default(),
            asked: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            no_more_starts: AtomicBool::new(false),
            no_more_work: AtomicBool::new(false),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    fn server(&self, dir: &Path) -> Server {
        let server = Server::start(dir, &["--listen", &self.address, "--zeebe-listen", "off"]);
        self.insist("GET", "/metadata/taskdefs", "").1.expect_status(200);
        server
    }

    /// Asks until there is an answer.
    fn insist(&self, method: &str, path: &str, body: &str) -> (Instant, Answer) {
        Http::new(&self.address).insist(method, path, body, PATIENCE)
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.insist("POST", path, &body.to_string()).1
    }

    fn define(&self, workflow: &Value, task_types: &[&str]) {
        let definition = |name: &&str| {
            json!({
                "name": name, "retryCount": 5, "retryDelaySeconds": 0, "timeoutSeconds": 0,
                "responseTimeoutSeconds": RESPONSE_TIMEOUT.as_secs(),
            })
        };
        let definitions: Vec<Value> = task_types.iter().map(definition).collect();
        self.post("/metadata/taskdefs", &json!(definitions)).expect_status(200);
        self.post("/metadata/workflow", workflow).expect_status(200);
    }

    /// A start has a key: asked again, it is the same start.
    fn start_one(&self, http: &mut Http, name: &str, number: u64, input: Value) {
        let body = json!({
            "name": name, "input": input,
            "idempotencyKey": number.to_string(), "idempotencyStrategy": "RETURN_EXISTING",
        });
        let (_, answer) = http.insist("POST", "/workflow", &body.to_string(), PATIENCE);
        answer.expect_status(200);
        self.told().started.insert(number, answer.text());
    }

    fn starts(&self) {
        let mut http = Http::new(&self.address);
        while !self.no_more_starts.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(2));
            if self.asked.load(Ordering::SeqCst) >= self.ended.load(Ordering::SeqCst) + OPEN_MAX {
                continue;
            }
            let number = self.asked.fetch_add(1, Ordering::SeqCst);
            let case = if number.is_multiple_of(2) { "even" } else { "odd" };
            self.start_one(&mut http, "all", number, json!({ "number": number, "case": case }));
        }
    }

    /// A worker that polls in batches and takes the next task with each update.
    fn work(&self, task_type: &str, batch: usize) {
        let mut http = Http::new(&self.address);
        let path = format!("/tasks/poll/batch/{task_type}?workerid=w&count={batch}&timeout=200");
        while !self.no_more_work.load(Ordering::SeqCst) {
            let asked = Instant::now();
            let Ok(answer) = http.ask("GET", &path, "") else {
                sleep(Duration::from_millis(10));
                continue;
            };
            let mut held: VecDeque<(Value, Instant)> = VecDeque::new();
            for task in answer.expect_status(200).json().as_array().unwrap() {
                self.told().hand(task, asked);
                held.push_back((task.clone(), asked));
            }
            while let Some((task, asked)) = held.pop_front() {
                let next = self.complete(&mut http, &task, asked);
                held.extend(next);
            }
        }
    }

    /// Completes a task; the next one, and when it was asked for.
    fn complete(&self, http: &mut Http, task: &Value, asked: Instant) -> Option<(Value, Instant)> {
        let result = json!({
            "workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"],
            "status": "COMPLETED", "workerId": "w", "outputData": { "by": task["taskId"] },
        });
        let (sent, answer) = http.insist("POST", "/tasks/update-v2", &result.to_string(), PATIENCE);
        self.answered.fetch_add(1, Ordering::SeqCst);
        // A result that comes too late is answered like any other, and passed over.
        if asked.elapsed() < RESPONSE_TIMEOUT {
            self.told().acknowledge(task);
        }
        if text(task, "referenceTaskName") == "last" {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
        if answer.status == 204 {
            return None;
        }
        let next = answer.expect_status(200).json();
        self.told().hand(&next, sent);
        Some((next, sent))
    }

    /// The workflow, which must complete.
    fn until_completed(&self, http: &mut Http, id: &str) -> Value {
        let began = Instant::now();
        loop {
            let path = format!("/workflow/{id}?includeTasks=false");
            let now = http.insist("GET", &path, "", PATIENCE).1.expect_status(200).json();
            match now["status"].as_str() {
                Some("COMPLETED") => break,
                Some("RUNNING") if began.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(20));
                }
                Some(_) | None => panic!("workflow {id} ends as {now}"),
            }
        }
        let path = format!("/workflow/{id}");
        http.insist("GET", &path, "", PATIENCE).1.expect_status(200).json()
    }

    /// Every place of the workflow was completed by one record, and what was acknowledged stands.
    fn check(&self, workflow: &Value, places: &HashSet<String>) {
        let id = text(workflow, "workflowId");
        let mut completed = HashSet::new();
        for task in workflow["tasks"].as_array().unwrap() {
            let (id, reference) = place(task);
            if !places.contains(&reference) {
                continue;
            }
            let acknowledged = self.told().done.get(&(id, reference.clone())).cloned();
            let record = text(task, "taskId");
            if task["status"] == "COMPLETED" {
                assert_eq!(task["outputData"], json!({ "by": record }), "{task}");
                assert!(completed.insert(reference), "completed by two records: {task}");
                assert!(acknowledged.is_none_or(|told| told == record), "{task}");
            } else {
                assert_ne!(
                    acknowledged,
                    Some(record),
                    "an acknowledged completion is lost: {task}"
                );
                assert_eq!(task["status"], "TIMED_OUT", "{task}");
                self.timed_out.fetch_add(1, Ordering::SeqCst);
            }
        }
        assert_eq!(&completed, places, "workflow {id}");
    }

    fn expect_nothing_wrong(&self) {
        let told = self.told();
        assert!(told.wrong.is_empty(), "{:?}", &told.wrong[..told.wrong.len().min(5)]);
    }
}

/// Lets all clients leave, also when a test fails: they are waited for.
struct Leave<'a>(&'a Load);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.no_more_starts.store(true, Ordering::SeqCst);
        self.0.no_more_work.store(true, Ordering::SeqCst);
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

/// A workflow and a reference in it; rounds of a loop have references of their own.
fn place(task: &Value) -> (String, String) {
    (text(task, "workflowInstanceId"), text(task, "referenceTaskName"))
}

fn task(reference: &str) -> Value {
    json!({
        "name": "work", "taskReferenceName": reference, "type": "SIMPLE",
        "inputParameters": { "number": "${workflow.input.number}" },
    })
}

/// A task; one of two; two at once; one in three rounds; a last one.
fn all_kinds() -> Value {
    let switch = json!({
        "name": "which", "taskReferenceName": "which", "type": "SWITCH",
        "evaluatorType": "value-param", "expression": "case",
        "inputParameters": { "case": "${workflow.input.case}" },
        "decisionCases": { "even": [task("even")] }, "defaultCase": [task("odd")],
    });
    let fork = json!({
        "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
        "forkTasks": [[task("left")], [task("right")]],
    });
    let join = json!({
        "name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["left", "right"],
    });
    let rounds = json!({
        "name": "rounds", "taskReferenceName": "rounds", "type": "DO_WHILE",
        "loopCondition": "$.rounds['iteration'] < 3", "loopOver": [task("round")],
    });
    let tasks = json!([task("first"), switch, fork, join, rounds, task("last")]);
    json!({ "name": "all", "version": 1, "tasks": tasks })
}

/// A task, and then as many as the input says.
fn wide() -> Value {
    let fork = json!({
        "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN_DYNAMIC",
        "inputParameters": {
            "forkTaskName": "branch", "forkTaskInputs": "${workflow.input.branches}",
        },
    });
    let join = json!({ "name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": [] });
    json!({ "name": "wide", "version": 1, "tasks": [task("first"), fork, join, task("last")] })
}

fn kill_for() -> Duration {
    let seconds = std::env::var("WINDLASS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

#[test]
fn kill_nine_in_mid_workflow_loses_nothing_and_does_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let load = Load::new();
    let mut server = load.server(dir.path());
    load.define(&all_kinds(), &["work"]);
    let began = Instant::now();
    let mut kills = 0;
    std::thread::scope(|scope| {
        let _leave = Leave(&load);
        for _ in 0..STARTERS {
            scope.spawn(|| load.starts());
        }
        for _ in 0..WORKERS {
            scope.spawn(|| load.work("work", 10));
        }
        while kills < ROUNDS || began.elapsed() < kill_for() {
            // Early and late, before, in and behind checkpoints.
            sleep(Duration::from_millis(200 + kills % ROUNDS * 430));
            server.kill();
            server = load.server(dir.path());
            kills += 1;
        }
        load.no_more_starts.store(true, Ordering::SeqCst);
        let mut http = Http::new(&load.address);
        // A starter may still wait for its answer.
        let asked = load.asked.load(Ordering::SeqCst);
        for number in 0..asked {
            let id = loop {
                if let Some(id) = load.told().started.get(&number).cloned() {
                    break id;
                }
                assert!(began.elapsed() < PATIENCE + kill_for(), "start {number} is not answered");
                sleep(Duration::from_millis(5));
            };
            load.until_completed(&mut http, &id);
        }
    });
    let mut http = Http::new(&load.address);
    let started = load.told().started.clone();
    for (number, id) in &started {
        assert!(load.told().seen.get(number).is_none_or(|seen| seen == id), "start {number}");
        let case = if number.is_multiple_of(2) { "even" } else { "odd" };
        let places = ["first", case, "left", "right", "round__1", "round__2", "round__3", "last"];
        let places = places.map(str::to_owned).into_iter().collect();
        load.check(&load.until_completed(&mut http, id), &places);
    }
    load.expect_nothing_wrong();
    let done = load.told().done.len();
    let lost = load.timed_out.load(Ordering::SeqCst);
    println!(
        "{} workflows completed over {kills} kills; {done} answers in time, {lost} tasks timed out",
        started.len()
    );
    assert!(started.len() > 50, "there was load: {}", started.len());
    assert!(done > started.len() * 7, "most answers come in time: {done}");
}

#[test]
fn kill_nine_in_a_fork_of_ten_thousand_leaves_it_whole() {
    let dir = tempfile::tempdir().unwrap();
    let load = Load::new();
    let mut server = load.server(dir.path());
    load.define(&wide(), &["work", "branch"]);
    let branches: Vec<Value> = (0..BRANCHES).map(|branch| json!({ "branch": branch })).collect();
    let input = json!({ "number": 0, "branches": branches });
    load.start_one(&mut Http::new(&load.address), "wide", 0, input);
    let id = load.told().started[&0].clone();
    std::thread::scope(|scope| {
        let _leave = Leave(&load);
        scope.spawn(|| load.work("work", 1));
        let scheduled = || {
            let (_, answer) = load.insist("GET", "/tasks/queue/size?taskType=branch", "");
            answer.expect_status(200).json().as_u64().unwrap()
        };
        // The completion of the first task expands the fork; this sees it begin.
        let began = Instant::now();
        let at = loop {
            let at = scheduled();
            if at > 0 {
                break at;
            }
            assert!(began.elapsed() < PATIENCE, "the fork does not begin");
        };
        server.kill();
        server = load.server(dir.path());
        println!("killed with {at} branches scheduled, back with {}", scheduled());
        for _ in 0..WORKERS {
            scope.spawn(|| load.work("branch", 50));
        }
        while load.answered.load(Ordering::SeqCst) < BRANCHES as u64 / 2 {
            assert!(began.elapsed() < PATIENCE, "branches do not end");
            sleep(Duration::from_millis(5));
        }
        server.kill();
        server = load.server(dir.path());
        let whole = load.until_completed(&mut Http::new(&load.address), &id);
        let mut places: HashSet<String> =
            (0..BRANCHES).map(|branch| format!("_branch_{branch}")).collect();
        places.extend(["first", "last"].map(str::to_owned));
        load.check(&whole, &places);
        let tasks = whole["tasks"].as_array().unwrap();
        let join = tasks.iter().find(|task| task["taskType"] == "JOIN").unwrap();
        let joined = join["outputData"].as_object().unwrap();
        for branch in 0..BRANCHES {
            assert!(joined.contains_key(&format!("_branch_{branch}")), "branch {branch}");
        }
        assert_eq!(joined.len(), BRANCHES);
    });
    load.expect_nothing_wrong();
}
