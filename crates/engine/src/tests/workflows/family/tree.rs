//! A workflow that runs for a task of another, which runs for one of a third: the lowest fails, and
//! all of them with it. Retry, restart and rerun at each of the levels.

use std::cmp::Ordering;

use windlass_record::workflow::{RerunWorkflow, TaskStatus, WorkflowVerb};

use super::*;

/// The kinds of workflows above the leaf, from the top.
const TREES: [&[&str]; 3] = [&["line", "line"], &["fork", "fork"], &["nest"]];

/// What has become of one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    /// It failed by what is below.
    Failed,
    /// It goes on with the records that it has.
    Resumed,
    /// What failed has another record.
    Again,
    /// It begins from the first task.
    Anew,
}

/// The tasks of a workflow of one kind, in this state.
fn rows(kind: &str, is: Is) -> &'static [&'static str] {
    match kind {
        "leaf" => leaf(is),
        "line" => line(is),
        "fork" => fork(is),
        "nest" => nest(is),
        kind => panic!("no workflow is called {kind}"),
    }
}

fn leaf(is: Is) -> &'static [&'static str] {
    match is {
        Is::Failed => &["prepare prepare COMPLETED", "deliver deliver FAILED"],
        Is::Resumed => unreachable!("nothing is below it"),
        Is::Again => &[
            "prepare prepare COMPLETED",
            "deliver deliver FAILED again",
            "deliver deliver SCHEDULED #1 of 2",
        ],
        Is::Anew => &["prepare prepare SCHEDULED"],
    }
}

fn line(is: Is) -> &'static [&'static str] {
    match is {
        Is::Failed => &["enter enter COMPLETED", "SUB_WORKFLOW below FAILED"],
        Is::Resumed => &["enter enter COMPLETED", "SUB_WORKFLOW below IN_PROGRESS"],
        Is::Again => &[
            "enter enter COMPLETED",
            "SUB_WORKFLOW below FAILED again",
            "SUB_WORKFLOW below IN_PROGRESS #1 of 2",
        ],
        Is::Anew => &["enter enter SCHEDULED"],
    }
}

fn fork(is: Is) -> &'static [&'static str] {
    match is {
        Is::Failed => &[
            "FORK fan COMPLETED",
            "SUB_WORKFLOW below FAILED",
            "beside beside COMPLETED",
            "JOIN gather CANCELED",
        ],
        Is::Resumed => &[
            "FORK fan COMPLETED",
            "SUB_WORKFLOW below IN_PROGRESS",
            "beside beside COMPLETED",
            "JOIN gather IN_PROGRESS",
        ],
        Is::Again => &[
            "FORK fan COMPLETED",
            "SUB_WORKFLOW below FAILED again",
            "beside beside COMPLETED",
            "JOIN gather IN_PROGRESS",
            "SUB_WORKFLOW below IN_PROGRESS #1 of 2",
        ],
        Is::Anew => &[
            "FORK fan COMPLETED",
            "SUB_WORKFLOW below IN_PROGRESS",
            "beside beside SCHEDULED",
            "JOIN gather IN_PROGRESS",
        ],
    }
}

fn nest(is: Is) -> &'static [&'static str] {
    match is {
        Is::Failed => &[
            "FORK outer COMPLETED",
            "FORK inner COMPLETED",
            "far far COMPLETED",
            "SUB_WORKFLOW below FAILED",
            "beside beside COMPLETED",
            "JOIN gather CANCELED",
            "JOIN gather_inner CANCELED",
        ],
        Is::Resumed => &[
            "FORK outer COMPLETED",
            "FORK inner COMPLETED",
            "far far COMPLETED",
            "SUB_WORKFLOW below IN_PROGRESS",
            "beside beside COMPLETED",
            "JOIN gather IN_PROGRESS",
            "JOIN gather_inner IN_PROGRESS",
        ],
        Is::Again => &[
            "FORK outer COMPLETED",
            "FORK inner COMPLETED",
            "far far COMPLETED",
            "SUB_WORKFLOW below FAILED again",
            "beside beside COMPLETED",
            "JOIN gather IN_PROGRESS",
            "JOIN gather_inner IN_PROGRESS",
            "SUB_WORKFLOW below IN_PROGRESS #1 of 4",
        ],
        Is::Anew => &[
            "FORK outer COMPLETED",
            "FORK inner COMPLETED",
            "far far SCHEDULED",
            "SUB_WORKFLOW below IN_PROGRESS",
            "beside beside SCHEDULED",
            "JOIN gather IN_PROGRESS",
            "JOIN gather_inner IN_PROGRESS",
        ],
    }
}

/// The same when all of it has been done.
fn rows_at_end(kind: &str, is: Is) -> Vec<String> {
    let done =
        |row: &str| row.replace("SCHEDULED", "COMPLETED").replace("IN_PROGRESS", "COMPLETED");
    let mut rows: Vec<String> = rows(kind, is).iter().map(|row| done(row)).collect();
    match (kind, is) {
        ("leaf", Is::Anew) => rows.push("deliver deliver COMPLETED".into()),
        ("line", Is::Anew) => rows.push("SUB_WORKFLOW below COMPLETED".into()),
        _ => {}
    }
    rows
}

/// Defines all kinds; what runs below is named by the input.
fn define(check: &mut Check) {
    let mut below = sub("below", &json!({ "name": "${workflow.input.next.kind}", "version": 1 }));
    below["inputParameters"] = json!({ "next": "${workflow.input.next.next}" });
    let join = |name: &str, on: [&str; 2]| json!({ "name": name, "taskReferenceName": name, "type": "JOIN", "joinOn": on });
    let fork = |name: &str, branches: Value| json!({ "name": name, "taskReferenceName": name, "type": "FORK_JOIN", "forkTasks": branches });
    let inner = fork("inner", json!([[below], [once("beside")]]));
    let inner = json!([inner, join("gather_inner", ["below", "beside"])]);
    for (name, tasks) in [
        ("leaf", json!([once("prepare"), once("deliver")])),
        ("line", json!([once("enter"), below])),
        (
            "fork",
            json!([
                fork("fan", json!([[below], [once("beside")]])),
                join("gather", ["below", "beside"])
            ]),
        ),
        (
            "nest",
            json!([
                fork("outer", json!([inner, [once("far")]])),
                join("gather", ["gather_inner", "far"])
            ]),
        ),
    ] {
        check.define(&definition(name, &tasks));
    }
}

/// A tree that failed.
struct Tree {
    check: Check,
    /// From the top.
    kinds: Vec<&'static str>,
    keys: Vec<Key>,
}

impl Tree {
    fn failed(above: &[&'static str]) -> Tree {
        let mut check = Check::new();
        define(&mut check);
        let kinds: Vec<&str> = above.iter().copied().chain(["leaf"]).collect();
        let next = kinds
            .iter()
            .skip(1)
            .rev()
            .fold(json!({}), |next, kind| json!({ "kind": kind, "next": next }));
        let top = check.start_workflow(kinds[0], &json!({ "next": next }));
        do_all(&mut check, &["enter", "beside", "far", "prepare"]);
        check.fail_task("deliver", "broken");
        let mut tree = Tree { check, kinds, keys: vec![top] };
        while tree.keys.len() < tree.kinds.len() {
            tree.find_next();
        }
        for level in 0..tree.keys.len() {
            tree.assert_is(level, Is::Failed);
        }
        tree
    }

    /// Who runs below the last one that is known.
    fn find_next(&mut self) {
        let last = *self.keys.last().expect("the top is known");
        self.keys.push(self.check.child_of(last, "below"));
    }

    #[track_caller]
    fn assert_is(&self, level: usize, is: Is) {
        let status = if is == Is::Failed { "FAILED" } else { "RUNNING" };
        self.check.assert_rows(self.keys[level], status, rows(self.kinds[level], is));
    }

    /// Does what is asked at a level, and looks at all of them; then does the rest, and looks again.
    /// `is` says what becomes of that level, `below` of those below it.
    #[track_caller]
    fn goes_on(mut self, level: usize, verb: WorkflowVerb, (is, below): (Is, Is)) -> Check {
        let what = format!("{verb:?} of level {level} of {:?}", self.kinds);
        let before = self.keys.clone();
        let leaf = self.kinds.len() - 1;
        let state = |number: usize| match number.cmp(&level) {
            Ordering::Less => Is::Resumed,
            Ordering::Equal => is,
            Ordering::Greater if number == leaf && below == Is::Resumed => Is::Again,
            Ordering::Greater => below,
        };
        self.check.control(self.keys[level], verb).unwrap_or_else(|no| panic!("{what}: {no}"));
        for number in 0..=level {
            self.assert_is(number, state(number));
        }
        self.check.compare_rebuilt();
        let lower = level + 1..=leaf;
        if below == Is::Anew {
            self.reach_below(level);
        } else {
            lower.clone().for_each(|number| self.assert_is(number, state(number)));
        }
        for number in lower {
            let new = self.keys[number] != before[number];
            assert_eq!(new, below == Is::Anew, "{what}: that of level {number}");
        }
        do_all(&mut self.check, &["enter", "beside", "far", "prepare", "deliver"]);
        for (number, kind) in self.kinds.iter().enumerate() {
            assert_eq!(
                self.check.rows(self.keys[number]),
                rows_at_end(kind, state(number)),
                "{what}: that of level {number}"
            );
            self.check.assert_status(self.keys[number], "COMPLETED");
        }
        // The old ones stay what they were.
        for (number, old) in before.iter().enumerate().filter(|(_, old)| !self.keys.contains(old)) {
            self.check.assert_rows(*old, "FAILED", rows(self.kinds[number], Is::Failed));
        }
        self.check.compare_rebuilt();
        self.check
    }

    /// Those below a level are new, and begin.
    fn reach_below(&mut self, level: usize) {
        self.keys.truncate(level + 1);
        for number in level + 1..self.kinds.len() {
            if self.check.rows(self.keys[number - 1]) == rows("line", Is::Anew) {
                self.check.do_task("enter", &json!({}));
            }
            self.find_next();
            self.assert_is(number, Is::Anew);
        }
    }
}

/// Does all tasks of these types, and those that follow, until there are none.
fn do_all(check: &mut Check, types: &[&str]) {
    loop {
        let tasks: Vec<Value> = types.iter().flat_map(|name| check.poll_tasks(name, 9)).collect();
        if tasks.is_empty() {
            return;
        }
        for task in &tasks {
            check.update_task(task, TaskStatus::Completed, &json!({ "done": true }), "");
        }
    }
}

/// Each level of each tree.
fn everywhere() -> impl Iterator<Item = (Tree, usize)> {
    let levels =
        |kinds: &'static [&'static str]| (0..=kinds.len()).map(move |level| (kinds, level));
    TREES.into_iter().flat_map(levels).map(|(kinds, level)| (Tree::failed(kinds), level))
}

fn is_leaf(tree: &Tree, level: usize) -> bool {
    level + 1 == tree.kinds.len()
}

#[test]
fn a_retry_starts_what_is_below_anew_and_revives_what_is_above() {
    for (tree, level) in everywhere() {
        let verb = WorkflowVerb::Retry { subworkflows: false };
        tree.goes_on(level, verb, (Is::Again, Is::Anew));
    }
}

#[test]
fn a_retry_that_resumes_goes_down_to_what_failed() {
    for (tree, level) in everywhere() {
        let is = if is_leaf(&tree, level) { Is::Again } else { Is::Resumed };
        let verb = WorkflowVerb::Retry { subworkflows: true };
        tree.goes_on(level, verb, (is, Is::Resumed));
    }
}

#[test]
fn a_restart_begins_anew_and_revives_what_is_above() {
    for latest in [false, true] {
        for (tree, level) in everywhere() {
            tree.goes_on(level, WorkflowVerb::Restart { latest }, (Is::Anew, Is::Anew));
        }
    }
}

#[test]
fn a_rerun_without_a_task_begins_anew_and_revives_what_is_above() {
    for (tree, level) in everywhere() {
        let verb = WorkflowVerb::Rerun(RerunWorkflow::default());
        tree.goes_on(level, verb, (Is::Anew, Is::Anew));
    }
}

#[test]
fn a_rerun_from_the_first_task_keeps_its_record() {
    let of_lines = everywhere().filter(|(tree, _)| tree.kinds[0] == "line");
    for (tree, level) in of_lines {
        let key = tree.keys[level];
        let first = tree.check.workflow(key)["tasks"][0].clone();
        let from = Some(id(&first, "taskId"));
        let verb = WorkflowVerb::Rerun(RerunWorkflow { from, ..RerunWorkflow::default() });
        let check = tree.goes_on(level, verb, (Is::Anew, Is::Anew));
        assert_eq!(check.workflow(key)["tasks"][0]["taskId"], first["taskId"]);
    }
}

#[test]
fn a_rerun_from_the_task_of_a_child_starts_another_in_its_place() {
    for (tree, level) in everywhere().filter(|(tree, level)| !is_leaf(tree, *level)) {
        let key = tree.keys[level];
        let below = tree.check.task_named(key, "below");
        let from = Some(id(&below, "taskId"));
        let verb = WorkflowVerb::Rerun(RerunWorkflow { from, ..RerunWorkflow::default() });
        let check = tree.goes_on(level, verb, (Is::Resumed, Is::Anew));
        assert_eq!(check.task_named(key, "below")["taskId"], below["taskId"]);
    }
}

#[test]
fn a_rerun_from_a_task_of_the_leaf_may_be_asked_of_the_top() {
    for kinds in TREES {
        let mut tree = Tree::failed(kinds);
        let leaf = *tree.keys.last().expect("there is one");
        let failed = tree.check.task_named(leaf, "deliver");
        let from = Some(id(&failed, "taskId"));
        let verb = WorkflowVerb::Rerun(RerunWorkflow { from, ..RerunWorkflow::default() });
        tree.check.control(tree.keys[0], verb).expect("it failed");
        for level in 0..kinds.len() {
            tree.assert_is(level, Is::Resumed);
        }
        let rows = ["prepare prepare COMPLETED", "deliver deliver SCHEDULED"];
        tree.check.assert_rows(leaf, "RUNNING", &rows);
        assert_eq!(tree.check.do_task("deliver", &json!({}))["taskId"], failed["taskId"]);
        for key in &tree.keys {
            tree.check.assert_status(*key, "COMPLETED");
        }
        tree.check.compare_rebuilt();
    }
}
