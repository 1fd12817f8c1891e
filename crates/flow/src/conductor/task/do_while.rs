//! DO_WHILE: its body again and again, until the condition does not hold or the items are used up.
//!
//! The records of a round have its number behind their reference names. What the rounds gave is put
//! together from those records when somebody looks, and written down when the loop is done.

use serde_json::{Map, Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskChanged, TaskStatus, WorkflowEvent};

use super::script::{self, Evaluation};
use super::{Place, emit, finish, lenient, schedule_with, workflows};
use crate::conductor::plan::Kind;
use crate::conductor::seen::parsed;
use crate::conductor::state::{Task, Workflows};
use crate::kernel::Port;

/// Whether a task is a loop.
pub(crate) fn is_loop(state: &Workflows, task: &Task) -> bool {
    task.node(&state.plan_of(task)).kind == Kind::DoWhile
}

/// Begins the first round.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    if let Some(problem) = items_problem(state, task) {
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        return;
    }
    if items(state, task).is_some_and(|items| items.is_empty()) {
        finish(port, key, TaskStatus::Completed, Some(&json!({ "iteration": 0 })), "");
        return;
    }
    let changed = TaskChanged { status: Some(TaskStatus::InProgress), ..TaskChanged::of(key) };
    emit(port, WorkflowEvent::TaskChanged(Box::new(changed)));
    emit(port, WorkflowEvent::TaskAdvanced { task: key, to: 1 });
}

/// The list that it goes through, if it goes through one.
fn items(state: &Workflows, task: &Task) -> Option<Vec<Value>> {
    let given = given_items(state, task)?;
    if let Value::Array(items) = given { Some(items) } else { None }
}

fn given_items(state: &Workflows, task: &Task) -> Option<Value> {
    let plan = state.plan_of(task);
    let input = lenient::parse_object(&task.input);
    if let Some(items) = input.get("_items") {
        return Some(items.clone());
    }
    let template = plan.task_json(task.node).get("items").filter(|it| !it.is_null())?;
    Some(crate::conductor::start::resolve_in(state, task.workflow, template))
}

fn items_problem(state: &Workflows, task: &Task) -> Option<String> {
    let given = given_items(state, task)?;
    (!given.is_array()).then(|| format!("the items of a loop must be a list, not {given}"))
}

/// A round begins, or it is done.
pub(super) fn proceed<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let (workflow, round) = (task.workflow, task.advanced);
    let plan = state.plan_of(task);
    let body = task.node(&plan).branches.first().and_then(|(_, first)| *first);
    let place = Place { among: task.among, loop_task: key, iteration: round };
    let Some(first) = body else { return };
    let reference = place.reference(&plan.node(first).reference);
    let begun = state.known(workflow).newest.get(reference.as_str()).copied();
    let begun = begun.filter(|begun| state.known_task(*begun).loop_task == key);
    if begun.is_none() {
        let mut more = Map::new();
        if let Some(items) = items(state, task) {
            let index = usize::try_from(round).unwrap_or(1).saturating_sub(1);
            more.insert("loopIndex".to_owned(), index.into());
            more.insert("loopItem".to_owned(), items.get(index).cloned().unwrap_or_default());
        }
        schedule_with(port, workflow, first, &place, &more);
        return;
    }
    let at_work = state.known(workflow).open.iter().any(|open| {
        let open = state.known_task(*open);
        open.loop_task == key && open.iteration == round
    });
    if !at_work {
        round_ended(port, key);
    }
}

fn round_ended<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let json = plan.task_json(task.node);
    let bound = port.bounds().loop_items_max;
    if task.advanced >= bound {
        let problem = format!("rounds of a loop: more than the bound of {bound}");
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        return;
    }
    if let Some(items) = items(state, task)
        && items.len() <= usize::try_from(task.advanced).unwrap_or(usize::MAX)
    {
        ended(port, key, false);
        return;
    }
    let condition = lenient::text(json, "loopCondition");
    if condition.is_empty() {
        ended(port, key, true);
        return;
    }
    // What the condition sees: the input, the loop's own output, the outputs of the round.
    let mut seen = lenient::parse_object(&task.input);
    let rounds = output(state, key, task);
    let round = rounds.get(&task.advanced.to_string()).cloned().unwrap_or_default();
    if let Value::Object(round) = round {
        seen.extend(round);
    }
    let own = plan.node(task.node).reference.to_string();
    seen.insert(own, Value::Object(rounds));
    let seen = Value::Object(seen);
    match script::javascript(port, key, condition, &[("$", &seen)]) {
        Evaluation::Done(value) => decided(port, key, &value),
        Evaluation::Failed(problem) => {
            let problem = format!("Unable to evaluate condition {condition}, exception {problem}");
            finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        }
        Evaluation::Asked => {}
    }
}

/// The condition is known.
pub(super) fn decided<P: Port>(port: &mut P, key: Key, value: &Value) {
    ended(port, key, crate::conductor::script::truthy(value));
}

/// A round is done: another one begins, or the loop is done.
fn ended<P: Port>(port: &mut P, key: Key, again: bool) {
    let state = workflows(port);
    let task = state.known_task(key);
    if again {
        let to = task.advanced.saturating_add(1);
        forget_old(port, key);
        emit(port, WorkflowEvent::TaskAdvanced { task: key, to });
        return;
    }
    let output = Value::Object(output(state, key, task));
    finish(port, key, TaskStatus::Completed, Some(&output), "");
}

/// Rounds older than those that are to be kept are forgotten.
fn forget_old<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let keep = lenient::parse_object(&task.input).get("keepLastN").and_then(lenient::integer);
    let Some(keep) = keep.and_then(|keep| u32::try_from(keep).ok()).filter(|keep| *keep > 0) else {
        return;
    };
    let Some(last) = task.advanced.checked_sub(keep).filter(|last| *last > 0) else { return };
    let old: Vec<Key> = state
        .known(task.workflow)
        .tasks
        .iter()
        .copied()
        .filter(|other| {
            let other = state.known_task(*other);
            other.loop_task == key && other.iteration <= last && other.followed
        })
        .collect();
    if !old.is_empty() {
        emit(port, WorkflowEvent::TasksDropped { tasks: old.into() });
    }
}

/// What the rounds gave: `{"iteration": n, "1": {reference: output}}`.
pub(crate) fn output(state: &Workflows, key: Key, task: &Task) -> Map<String, Value> {
    let mut output = Map::new();
    output.insert("iteration".to_owned(), task.advanced.into());
    let workflow = state.known(task.workflow);
    for other in workflow.tasks.range(key..).filter_map(|other| state.task(*other)) {
        if other.loop_task != key || other.retried {
            continue;
        }
        let plan = state.plan_of(other);
        let reference = match other.among == task.among {
            true => plan.node(other.node).reference.to_string(),
            // One of a dynamic fork in the body.
            false => other.reference.to_string(),
        };
        let round =
            output.entry(other.iteration.to_string()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(round) = round {
            round.insert(reference, parsed(&other.output));
        }
    }
    if let Some(items) = items(state, task) {
        let index = usize::try_from(task.advanced).unwrap_or(1).saturating_sub(1);
        output.insert("loopIndex".to_owned(), index.into());
        output.insert("loopItem".to_owned(), items.get(index).cloned().unwrap_or_default());
    }
    output
}
