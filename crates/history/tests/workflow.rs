//! Workflows in the way of Conductor: events in, rows out, and searches in Conductor's words.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use serde_json::Value;
use support::workflow::{
    LISTED, SNAPSHOT, begun, changed, closed, defined, definition, event, followed, id, job_of,
    over, removed, revived, schedule, scheduled, start,
};
use support::{Feed, activated, created, key};
use windlass_history::search::{Job, Task, Workflow};
use windlass_history::{
    Entity, HistoryError, JobLevel, Options, QueryError, Search, WorkflowSearch,
};
use windlass_record::event::Event;
use windlass_record::workflow::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowStarted, WorkflowStatus,
};

fn feed_with(options: Options) -> (Feed, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("h.db"), options);
    feed.record(1_000, &defined());
    (feed, dir)
}

fn feed() -> (Feed, tempfile::TempDir) {
    feed_with(Options::default())
}

fn workflow(feed: &Feed, key: u64) -> Workflow {
    feed.history.get::<Workflow>(key).unwrap().unwrap()
}

fn task(feed: &Feed, key: u64) -> Task {
    feed.history.get::<Task>(key).unwrap().unwrap()
}

fn count<E: Entity>(feed: &Feed) -> u64 {
    feed.history.search::<E>(&Search::default()).unwrap().total
}

fn json(text: Option<String>) -> Value {
    serde_json::from_str(&text.unwrap()).unwrap()
}

/// A workflow with one task that a worker may take: task `workflow + 1`, job `workflow + 2`.
fn waiting(feed: &mut Feed, now_ms: u64, workflow: u64) {
    let events = [
        begun(start(workflow)),
        scheduled(schedule(workflow + 1, workflow)),
        created(workflow + 2),
        job_of(workflow + 1, workflow + 2),
    ];
    feed.write(now_ms, &events);
}

/// And ends.
fn done(feed: &mut Feed, now_ms: u64, workflow: u64) {
    let events = [
        changed(workflow + 1, TaskStatus::Completed),
        followed(workflow + 1, false),
        over(workflow, WorkflowStatus::Completed, ""),
        closed(workflow),
    ];
    feed.write(now_ms, &events);
}

// ── rows ────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_workflow_leaves_itself_and_its_task() {
    let (mut feed, _dir) = feed_with(Options { jobs: JobLevel::Full, ..Options::default() });
    waiting(&mut feed, 2_000, 100);
    feed.flush();
    let row = workflow(&feed, 100);
    assert_eq!((&*row.name, row.version, &*row.status), ("order", 1, "RUNNING"));
    assert_eq!((row.start_ms, row.end_ms, &*row.input), (2_000, None, "{\"n\":1}"));
    assert_eq!((row.input_size, row.correlation_id), (7, None));
    done(&mut feed, 3_000, 100);
    feed.flush();
    let row = workflow(&feed, 100);
    assert_eq!((&*row.status, row.end_ms, &*row.output), ("COMPLETED", Some(3_000), "{\"sum\":3}"));
    let row = task(&feed, 101);
    assert_eq!((&*row.status, &*row.name, &*row.reference), ("COMPLETED", "pay", "pay_ref"));
    assert_eq!((row.seq, row.end_ms, &*row.output), (1, Some(3_000), "{\"paid\":true}"));
    assert_eq!(&*row.workflow_type, "order");
    assert_eq!(count::<Job>(&feed), 0, "a task's job is no plain job");
}

#[test]
fn what_begins_and_ends_between_two_flushes_is_the_same() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    feed.write(2_500, &[activated(102, 9_000)]);
    done(&mut feed, 3_000, 100);
    feed.flush();
    let (mut other, _dir) = self::feed();
    waiting(&mut other, 2_000, 100);
    other.write(2_500, &[activated(102, 9_000)]);
    done(&mut other, 3_000, 100);
    while other.given < other.records.len() {
        other.give(1);
        other.history.flush(other.given as u64);
    }
    assert_eq!(workflow(&feed, 100), workflow(&other, 100));
    assert_eq!(task(&feed, 101), task(&other, 101));
    let whole = |feed: &Feed| json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole(&feed), whole(&other));
}

#[test]
fn a_task_is_at_work_while_somebody_has_its_job() {
    let put_back = |callback_s| {
        event(WorkflowEvent::TaskChanged(Box::new(TaskChanged {
            callback_s: Some(callback_s),
            ..TaskChanged::of(key(101))
        })))
    };
    let released = Event::JobReleased { key: key(102), due_ms: 0 };
    let returned = Event::JobReturned { key: key(102), turn: 0, scheme_count: 0 };
    /// What happens, and what is shown of the task then: its status, and when it began.
    type Line = (Vec<Event<'static>>, &'static str, Option<u64>);
    let table: [Line; 6] = [
        (vec![activated(102, 9_000)], "IN_PROGRESS", Some(3_000)),
        (vec![returned], "SCHEDULED", None),
        (vec![activated(102, 9_000)], "IN_PROGRESS", Some(3_002)),
        (vec![put_back(7), released], "SCHEDULED", Some(3_002)),
        (vec![activated(102, 9_000)], "IN_PROGRESS", Some(3_002)),
        (vec![changed(101, TaskStatus::Failed)], "FAILED", Some(3_002)),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    let mut feed = Feed::open(&path, Options::default());
    feed.record(1_000, &defined());
    waiting(&mut feed, 2_000, 100);
    feed.flush();
    for (at, (events, status, start_ms)) in (3_000..).zip(table) {
        feed.record(at, &events);
        let row = task(&feed, 101);
        assert_eq!((&*row.status, row.start_ms), (status, start_ms));
        assert_eq!(row.worker.as_deref(), Some("ann"));
        assert_eq!(row.update_ms, at);
        // Whose a job is outlives a restart.
        feed = feed.reopen(&path, Options::default());
    }
    // The job is of nobody any more.
    feed.record(4_000, &[activated(102, 9_000)]);
    assert_eq!(&*task(&feed, 101).status, "FAILED");
}

#[test]
fn a_job_for_a_script_does_not_put_its_task_to_work() {
    let (mut feed, _dir) = feed();
    let attached =
        event(WorkflowEvent::TaskJobAttached { task: key(101), job: key(102), evaluates: true });
    let task = scheduled(schedule(101, 100));
    feed.record(2_000, &[begun(start(100)), task, created(102), attached]);
    feed.record(2_001, &[activated(102, 9_000)]);
    assert_eq!(&*self::task(&feed, 101).status, "SCHEDULED");
}

#[test]
fn a_workflow_pauses_goes_on_and_begins_again() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    let paused = |paused| event(WorkflowEvent::WorkflowPaused { key: key(100), paused });
    feed.record(2_100, &[paused(true)]);
    assert_eq!(&*workflow(&feed, 100).status, "PAUSED");
    feed.record(2_200, &[paused(false)]);
    assert_eq!(&*workflow(&feed, 100).status, "RUNNING");
    done(&mut feed, 3_000, 100);
    feed.flush();
    let variables = r#"{"a":1}"#;
    let set = event(WorkflowEvent::WorkflowVariablesSet { key: key(100), variables });
    let dropped = event(WorkflowEvent::TasksDropped { tasks: vec![key(101)].into() });
    feed.record(4_000, &[dropped, revived(100, true), set, scheduled(schedule(111, 100))]);
    let row = workflow(&feed, 100);
    assert_eq!((&*row.status, row.start_ms, row.end_ms), ("RUNNING", 4_000, None));
    assert_eq!((&*row.output, row.correlation_id.as_deref()), ("{}", Some("again")));
    assert_eq!(feed.history.get::<Task>(101).unwrap(), None);
    assert_eq!(task(&feed, 111).seq, 1, "numbers begin again with the tasks");
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole["variables"]["a"], 1);
    assert_eq!(whole["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_retry_is_a_record_of_its_own_and_failures_are_named() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    let retry = TaskScheduled { retry_of: key(101), retry_count: 1, ..schedule(111, 100) };
    let failed = TaskStatus::FailedWithTerminalError;
    feed.write(3_000, &[changed(101, TaskStatus::Failed), scheduled(retry), followed(101, true)]);
    feed.write(3_100, &[changed(111, failed), followed(111, false)]);
    feed.write(3_100, &[over(100, WorkflowStatus::Failed, "no money")]);
    feed.flush();
    assert_eq!((task(&feed, 111).seq, task(&feed, 111).retry_count), (2, 1));
    let row = workflow(&feed, 100);
    assert_eq!(row.failed_references, ["pay_ref"], "once, though both records failed");
    assert_eq!(row.failed_names, ["pay"]);
    let summary = row.summary();
    assert_eq!(summary["failedReferenceTaskNames"], "pay_ref");
    assert_eq!(summary["reasonForIncompletion"], "no money");
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole["failedTaskNames"][0], "pay");
    assert_eq!(whole["tasks"][1]["retriedTaskId"], id(101));
}

#[test]
fn a_failure_is_named_though_all_went_well_in_the_end() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    let retry = TaskScheduled { retry_of: key(101), retry_count: 1, ..schedule(111, 100) };
    feed.write(3_000, &[changed(101, TaskStatus::Failed), scheduled(retry), followed(101, true)]);
    feed.write(3_100, &[changed(111, TaskStatus::Completed), followed(111, false)]);
    feed.write(3_100, &[over(100, WorkflowStatus::Completed, "")]);
    feed.flush();
    assert_eq!(workflow(&feed, 100).failed_references, ["pay_ref"]);
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole["failedReferenceTaskNames"], serde_json::json!(["pay_ref"]));
    assert_eq!(whole["failedTaskNames"], serde_json::json!(["pay"]));
}

#[test]
fn a_loop_says_which_round_it_is_in() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    let own = TaskScheduled { reference: "loop", task_type: "DO_WHILE", ..schedule(111, 100) };
    let begins = |task: u64, to| event(WorkflowEvent::TaskAdvanced { task: key(task), to });
    feed.write(2_500, &[scheduled(own), begins(111, 1), begins(111, 2), begins(101, 7)]);
    feed.flush();
    feed.write(2_600, &[begins(111, 3)]);
    feed.flush();
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    let shown = |task: usize| {
        let task = &whole["tasks"][task];
        (task["iteration"].as_u64().unwrap(), task["loopOverTask"].as_bool().unwrap())
    };
    assert_eq!((shown(0), shown(1)), ((0, false), (3, true)));
}

#[test]
fn what_the_core_lets_go_stays_and_what_a_person_removes_goes() {
    let (mut feed, _dir) = feed();
    for number in 1..=3 {
        waiting(&mut feed, 2_000, number * 100);
    }
    done(&mut feed, 3_000, 100);
    done(&mut feed, 3_000, 200);
    feed.flush();
    feed.write(4_000, &[removed(100, false), removed(200, true), removed(300, true)]);
    // Of what is gone, nothing comes back.
    feed.write(4_001, &[activated(302, 9_000), changed(301, TaskStatus::Completed)]);
    feed.flush();
    assert_eq!((count::<Workflow>(&feed), count::<Task>(&feed)), (1, 1));
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole["status"], "COMPLETED");
    assert_eq!(feed.history.workflow_json(200, true).unwrap(), None);
    assert_eq!(feed.history.task_json(301).unwrap(), None);
}

#[test]
fn a_workflow_that_began_in_a_gap_has_no_rows_and_one_of_an_unknown_definition_no_name() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    feed.given += 1;
    feed.history.miss(2, 2);
    done(&mut feed, 3_000, 100);
    let unknown = WorkflowStarted { definition: key(77), ..start(200) };
    feed.write(3_000, &[begun(unknown), revived(100, false)]);
    feed.flush();
    assert_eq!((count::<Workflow>(&feed), count::<Task>(&feed)), (1, 0));
    assert_eq!((&*workflow(&feed, 200).name, workflow(&feed, 200).version), ("", 0));
    assert_eq!(feed.history.status().gaps, 1);
    let whole = json(feed.history.workflow_json(200, true).unwrap());
    assert_eq!(whole["workflowDefinition"], serde_json::json!({}));
}

#[test]
fn what_is_old_goes_with_its_tasks_and_a_definition_with_its_last_workflow() {
    let options = Options { retention_ms: 10_000, ..Options::default() };
    let (mut feed, _dir) = feed_with(options);
    waiting(&mut feed, 2_000, 100);
    waiting(&mut feed, 2_000, 200);
    done(&mut feed, 3_000, 100);
    feed.flush();
    // A new snapshot: the one before is needed while workflows run by it.
    feed.record(3_500, &[definition(12, "order", 1, LISTED)]);
    feed.record(14_000, &[begun(WorkflowStarted { definition: key(12), ..start(300) })]);
    while feed.history.idle() {}
    assert_eq!((count::<Workflow>(&feed), count::<Task>(&feed)), (2, 1));
    let owner = |feed: &Feed, key| {
        let whole = json(feed.history.workflow_json(key, false).unwrap());
        whole["workflowDefinition"]["ownerApp"].clone()
    };
    assert_eq!((owner(&feed, 200), owner(&feed, 300)), ("shop".into(), "shop".into()));
    done(&mut feed, 15_000, 200);
    feed.flush();
    feed.record(26_000, &[]);
    while feed.history.idle() {}
    assert_eq!(count::<Workflow>(&feed), 1);
    // By the snapshot of before nobody runs any more.
    feed.record(26_001, &[begun(start(400))]);
    assert_eq!(&*workflow(&feed, 400).name, "");
    // The newest stays while its definition is listed.
    feed.record(26_002, &[begun(WorkflowStarted { definition: key(12), ..start(500) })]);
    assert_eq!(&*workflow(&feed, 500).name, "order");
}

#[test]
fn more_finished_ones_than_are_wanted_go_too_and_revived_ones_do_not_count() {
    let (mut feed, _dir) = feed_with(Options { finished_max: 3, ..Options::default() });
    for number in 1..=5 {
        waiting(&mut feed, 2_000, number * 100);
        done(&mut feed, 3_000 + number, number * 100);
    }
    feed.write(4_000, &[revived(100, false)]);
    feed.flush();
    while feed.history.idle() {}
    let keys: Vec<_> = feed.history.search::<Workflow>(&Search::default()).unwrap().items;
    assert_eq!(keys.iter().map(|it| it.key).collect::<Vec<_>>(), [100, 300, 400, 500]);
    assert_eq!(count::<Task>(&feed), 4);
}

// ── searches ────────────────────────────────────────────────────────────────────────────────────

/// Workflows 100 to 1200: `order` and, every third, `ship`; the even ones done, 500 failed; 900 runs
/// for a task of 800. Two began in each millisecond.
fn many() -> (Feed, tempfile::TempDir) {
    let (mut feed, dir) = feed();
    feed.record(1_001, &[definition(20, "ship", 2, 0), definition(21, "ship", 2, 20)]);
    for number in 1..=12_u64 {
        let workflow = number * 100;
        let started = WorkflowStarted {
            definition: if number % 3 == 0 { key(21) } else { key(SNAPSHOT) },
            parent_task: if number == 9 { key(801) } else { key(0) },
            correlation_id: ["", "c-1", "c_2", "50%"][number as usize % 4],
            input: if number == 7 { r#"{"city":"Ulm"}"# } else { "{}" },
            priority: number as u32,
            ..start(workflow)
        };
        let reference = if number % 2 == 0 { "even" } else { "odd" };
        let task = TaskScheduled { reference, ..schedule(workflow + 1, workflow) };
        let second =
            TaskScheduled { reference: "two", name: "pack", ..schedule(workflow + 2, workflow) };
        feed.write(2_000 + number / 2, &[begun(started), scheduled(task), scheduled(second)]);
        if number % 2 == 0 {
            done(&mut feed, 3_000 + number, workflow);
        } else if number == 5 {
            feed.write(3_005, &[over(workflow, WorkflowStatus::Failed, "no money")]);
        }
    }
    feed.flush();
    (feed, dir)
}

fn asked(query: &str, free_text: &str) -> WorkflowSearch {
    WorkflowSearch {
        query: query.into(),
        free_text: free_text.into(),
        size: 100,
        ..WorkflowSearch::default()
    }
}

fn found(feed: &Feed, search: &WorkflowSearch) -> Vec<u64> {
    let (total, items) = feed.history.search_workflows(search).unwrap();
    assert_eq!(total, items.len() as u64, "{search:?}");
    items.iter().map(|it| it.key / 100).collect()
}

#[test]
fn queries() {
    let (feed, _dir) = many();
    let all: Vec<u64> = (1..=12).collect();
    let (two, nine) = (id(200), id(900));
    let table: &[(&str, &[u64])] = &[
        ("", &all),
        ("workflowType = ship", &[3, 6, 9, 12]),
        ("workflowType = 'ship' AND status = \"COMPLETED\"", &[6, 12]),
        ("workflowType IN (ship, 'nothing')", &[3, 6, 9, 12]),
        ("status IN (FAILED,COMPLETED)", &[2, 4, 5, 6, 8, 10, 12]),
        ("status = 'failed'", &[]),
        ("status = 'fail*'", &[5]),
        ("workflowType IN (SH*)", &[3, 6, 9, 12]),
        ("correlationId = 'c_*'", &[2, 6, 10]),
        ("correlationId = '5*%'", &[3, 7, 11]),
        ("correlationId = ''", &[4, 8, 12]),
        ("startTime > 2004", &[10, 11, 12]),
        ("startTime >= 2005 AND startTime < 2006", &[10, 11]),
        ("startTime = 2001", &[2, 3]),
        ("endTime > 3005", &[6, 8, 10, 12]),
        ("updateTime < 2001", &[1]),
        ("version = 2", &[3, 6, 9, 12]),
        ("priority > 10", &[11, 12]),
        ("nothing = 5 AND status = FAILED", &[5]),
        ("taskId = 5", &all),
        ("workflowId = 'what'", &[]),
        ("workflowId = '*'", &all),
        ("status = '' OR 1 = 1 --'", &[]),
        ("reasonForIncompletion = '*MONEY'", &[5]),
    ];
    for (query, expected) in table {
        assert_eq!(found(&feed, &asked(query, "*")), *expected, "{query}");
    }
    let by_id = format!("workflowId IN ('{two}',{},{nine})", id(7));
    assert_eq!(found(&feed, &asked(&by_id, "")), [2, 9]);
    let begin = format!("workflowId = {}*", &nine[..12]);
    assert_eq!(found(&feed, &asked(&begin, "")), [9]);
    let by_parent = format!("parentWorkflowId = {}", id(800));
    assert_eq!(found(&feed, &asked(&by_parent, "")), [9]);
    assert_eq!(found(&feed, &asked("parentWorkflowId = ''", "")).len(), 11);
    let top_level = WorkflowSearch { top_level_only: true, ..asked("workflowType = ship", "") };
    assert_eq!(found(&feed, &top_level), [3, 6, 12]);
}

#[test]
fn free_text_is_anywhere_in_a_summary() {
    let (feed, _dir) = many();
    for (text, expected) in [
        ("ulm", &[7][..]),
        ("No Money", &[5]),
        ("ship", &[3, 6, 9, 12]),
        ("c_2", &[2, 6, 10]),
        ("%", &[3, 7, 11]),
        ("nowhere", &[]),
        ("' OR 1=1 --", &[]),
        (&id(800), &[8, 9]),
    ] {
        assert_eq!(found(&feed, &asked("", text)), expected, "{text}");
    }
}

#[test]
fn pages_meet_every_workflow_once_and_say_how_many_there_are() {
    let (feed, _dir) = many();
    let page = |sort: &str, start, size| {
        let search = WorkflowSearch { sort: sort.into(), start, size, ..asked("", "*") };
        let (total, items) = feed.history.search_workflows(&search).unwrap();
        assert_eq!(total, 12);
        items.iter().map(|it| it.key / 100).collect::<Vec<_>>()
    };
    for (sort, expected) in [
        ("", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        ("startTime:DESC", [12, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 1]),
        ("startTime:ASC", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        ("workflowId:DESC", [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        ("status:desc|workflowType:ASC|unknown:ASC", [1, 7, 11, 3, 9, 5, 2, 4, 8, 10, 6, 12]),
        ("endTime:ASC", [1, 3, 7, 9, 11, 2, 4, 5, 6, 8, 10, 12]),
    ] {
        for size in [1, 5, 100] {
            let mut seen = Vec::new();
            while seen.len() < 12 {
                seen.extend(page(sort, seen.len() as u32, size));
            }
            assert_eq!(seen, expected, "{sort} by {size}");
        }
    }
    assert_eq!(page("", 12, 5), [0; 0]);
    assert_eq!(page("", u32::MAX, 5), [0; 0]);
    assert_eq!(page("", 0, 0), [0; 0]);
}

#[test]
fn tasks_and_workflows_by_their_tasks() {
    let (feed, _dir) = many();
    let tasks = |query: &str, text: &str| {
        let (total, items) = feed.history.search_tasks(&asked(query, text)).unwrap();
        assert_eq!(total, items.len() as u64);
        items.iter().map(|it| it.key).collect::<Vec<_>>()
    };
    assert_eq!(tasks("", "*").len(), 24);
    assert_eq!(tasks("taskDefName = 'pack' AND startTime > 0", ""), [0; 0]);
    assert_eq!(tasks("status = COMPLETED AND workflowType = ship", ""), [601, 1201]);
    assert_eq!(tasks(&format!("workflowId = {}", id(300)), ""), [301, 302]);
    assert_eq!(tasks(&format!("taskId = {}", id(302)), ""), [302]);
    assert_eq!(tasks("taskType = pa* AND correlationId = c-1", "").len(), 6);
    assert_eq!(tasks("", &id(300)), [301, 302]);
    assert_eq!(tasks("", "EVEN").len(), 6);

    let by_tasks = |query: &str, sort: &str| {
        let search = WorkflowSearch { sort: sort.into(), size: 3, ..asked(query, "") };
        let (total, items) = feed.history.search_workflows_by_tasks(&search).unwrap();
        (total, items.iter().map(|it| it.key / 100).collect::<Vec<_>>())
    };
    // Once, however many of its tasks pass.
    assert_eq!(by_tasks("taskType = pay", "startTime:DESC"), (12, vec![12, 10, 11]));
    assert_eq!(by_tasks("status = COMPLETED", ""), (6, vec![2, 4, 6]));
    assert_eq!(by_tasks("referenceTaskName = nothing", ""), (0, vec![]));
}

#[test]
fn searches_that_are_refused() {
    let (feed, _dir) = many();
    let refused = |search: &WorkflowSearch| match feed.history.search_workflows(search) {
        Err(HistoryError::Query(error)) => error.to_string(),
        other => panic!("{search:?}: {other:?}"),
    };
    let many = WorkflowSearch { size: 5_001, ..asked("", "") };
    assert_eq!(refused(&many), "Cannot return more than 5000 workflows. Please use pagination.");
    let tasks = feed.history.search_tasks(&many);
    assert!(matches!(tasks, Err(HistoryError::Query(QueryError::TooMany { max: 5_000, .. }))));
    for (query, part) in [("what", "what"), ("status = a AND startTime > now", "startTime > now")] {
        let expected = format!("Incorrectly formatted query string: {part}");
        assert_eq!(refused(&asked(query, "")), expected);
    }
    refused(&asked("", &"x".repeat(20_001)));
    // The longest that are taken.
    found(&feed, &asked(&format!("workflowType = {}", "*_".repeat(9_990)), ""));
    found(&feed, &asked(&vec!["priority = 1"; 200].join(" AND "), "x"));
}

/// Whatever is asked is answered or refused; the database never sees what it cannot take.
#[test]
fn random_searches_do_no_harm() {
    const PARTS: [&str; 24] = [
        " AND ",
        "status",
        "startTime",
        "workflowId",
        "parentWorkflowId",
        "input",
        "priority",
        "=",
        ">",
        "<",
        " IN ",
        "(",
        ")",
        "'",
        "\"",
        ",",
        " ",
        "*",
        "%",
        "\\",
        "ä🦀",
        "\u{0}",
        "5",
        ":DESC|",
    ];
    const SEED: u64 = 0x5eed;
    let (feed, _dir) = many();
    let mut state = SEED;
    let mut text = |parts: u64| {
        let mut text = String::new();
        for _ in 0..parts {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(PARTS[(state >> 33) as usize % PARTS.len()]);
        }
        text
    };
    let mut answered = 0;
    for round in 0..3_000 {
        let search = WorkflowSearch {
            query: text(round % 9),
            free_text: text(round % 3),
            sort: text(round % 5),
            start: (round % 4) as u32,
            size: 3,
            classifier: None,
            top_level_only: round % 2 == 0,
        };
        for error in [
            feed.history.search_workflows(&search).err(),
            feed.history.search_workflows_by_tasks(&search).err(),
            feed.history.search_tasks(&search).err(),
        ] {
            match error {
                None => answered += 1,
                Some(HistoryError::Query(_)) => {}
                Some(error) => panic!("seed {SEED}, round {round}: {search:?}: {error:?}"),
            }
        }
    }
    assert!(answered > 1_000, "{answered} of 9,000 were answered");
}

// ── as clients see it ───────────────────────────────────────────────────────────────────────────

#[test]
fn summaries() {
    let (mut feed, _dir) = feed();
    let parent = begun(start(50));
    let parent_task = scheduled(schedule(51, 50));
    let started = WorkflowStarted {
        parent_task: key(51),
        correlation_id: "c",
        task_to_domain: r#"{"*":"d"}"#,
        priority: 3,
        created_by: "me",
        ..start(100)
    };
    let with_domain = TaskScheduled { domain: "d", ..schedule(101, 100) };
    let events = [parent, parent_task, begun(started), scheduled(with_domain), job_of(101, 102)];
    feed.write(1_700_000_000_000, &events);
    feed.write(1_700_000_001_000, &[activated(102, u64::MAX)]);
    done(&mut feed, 1_700_000_003_500, 100);
    feed.flush();
    let expected = serde_json::json!({
        "workflowType": "order", "version": 1, "workflowId": id(100), "correlationId": "c",
        "startTime": "2023-11-14T22:13:20.000Z", "updateTime": "2023-11-14T22:13:23.500Z",
        "endTime": "2023-11-14T22:13:23.500Z", "status": "COMPLETED", "input": "{\"n\":1}",
        "output": "{\"sum\":3}", "inputSize": 7, "outputSize": 9, "executionTime": 3_500,
        "failedReferenceTaskNames": "", "failedTaskNames": [], "priority": 3, "createdBy": "me",
        "taskToDomain": { "*": "d" }, "parentWorkflowId": id(50),
    });
    assert_eq!(workflow(&feed, 100).summary(), expected);
    let expected = serde_json::json!({
        "workflowId": id(100), "workflowType": "order", "correlationId": "c",
        "scheduledTime": "2023-11-14T22:13:20.000Z", "startTime": "2023-11-14T22:13:21.000Z",
        "updateTime": "2023-11-14T22:13:23.500Z", "endTime": "2023-11-14T22:13:23.500Z",
        "status": "COMPLETED", "executionTime": 2_500, "queueWaitTime": 1_000,
        "taskDefName": "pay", "taskType": "pay", "taskReferenceName": "pay_ref",
        "input": "{\"amount\":17}", "output": "{\"paid\":true}", "taskId": id(101),
        "workflowPriority": 3, "domain": "d",
    });
    assert_eq!(task(&feed, 101).summary(), expected);
    assert_eq!(task(&feed, 51).summary()["endTime"], "1970-01-01T00:00:00.000Z");
}

#[test]
fn summaries_have_the_beginning_of_a_long_text_and_the_whole_has_all_of_it() {
    let (mut feed, _dir) = feed();
    let long: &'static str = Box::leak(format!("{{\"a\":\"{}\"}}", "x".repeat(9_000)).into());
    feed.record(2_000, &[begun(WorkflowStarted { input: long, ..start(100) })]);
    let summary = workflow(&feed, 100).summary();
    assert_eq!(summary["input"].as_str().unwrap().len(), 8_192);
    assert_eq!(summary["inputSize"], long.len());
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole["input"].to_string(), long);
}

#[test]
fn a_workflow_from_its_rows_is_whole() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    let round = TaskScheduled { reference: "pay_ref__2", iteration: 2, ..schedule(111, 100) };
    feed.write(2_500, &[activated(102, 9_000), scheduled(round)]);
    done(&mut feed, 3_000, 100);
    feed.write(3_001, &[removed(100, false)]);
    feed.flush();
    let whole = json(feed.history.workflow_json(100, true).unwrap());
    assert_eq!(whole["workflowId"], id(100));
    assert_eq!(whole["input"]["n"], 1);
    assert_eq!(whole["output"]["sum"], 3);
    assert_eq!((&whole["startTime"], &whole["endTime"]), (&2_000.into(), &3_000.into()));
    assert_eq!(whole["workflowDefinition"]["tasks"][0]["name"], "pay");
    let task = &whole["tasks"][0];
    assert_eq!(task["outputData"]["paid"], true);
    assert_eq!((&task["pollCount"], &task["queueWaitTime"]), (&1.into(), &500.into()));
    assert_eq!((&task["workerId"], &task["executed"]), (&"ann".into(), &true.into()));
    assert_eq!(task["responseTimeoutSeconds"], 30);
    assert_eq!(whole["tasks"][1]["workflowTask"]["taskReferenceName"], "pay_ref");
    assert_eq!(json(feed.history.task_json(101).unwrap()), *task);
    let without = json(feed.history.workflow_json(100, false).unwrap());
    assert_eq!(without["tasks"], serde_json::json!([]));
    assert_eq!(feed.history.workflow_json(7, true).unwrap(), None);
}
