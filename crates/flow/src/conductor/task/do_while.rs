//! DO_WHILE: its body again and again, until the condition does not hold or the items are used up.
//!
//! The records of a round have its number behind their reference names. What the rounds gave is put
//! together from those records when somebody looks, and written down when the loop is done.

use serde_json::{Map, Value, json};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{TaskStatus, WorkflowEvent};

use super::script::{self, Evaluation};
use super::{Place, emit, finish, fits, lenient, schedule_with, under_way, workflows};
use crate::conductor::plan::Kind;
use crate::conductor::seen::parsed;
use crate::conductor::state::{Task, Workflows};
use crate::kernel::Port;

/// Whether a task is a loop.
pub(crate) fn is_loop(state: &Workflows, task: &Task) -> bool {
    task.node(&state.plan_of(task)).kind == Kind::DoWhile
}

/// The round that a task stands in; of a loop its own, which clients ask it for.
pub(crate) fn round_of(state: &Workflows, task: &Task) -> u32 {
    if task.advanced > 0 && is_loop(state, task) { task.advanced } else { task.iteration }
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
    under_way(port, key);
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
    let own = &plan.node(task.node).reference;
    // All rounds are put together only for a condition that looks at them.
    let rounds = match asks_only_the_round(condition, own) {
        true => round(state, key, task),
        false => output(state, key, task),
    };
    // What the condition sees: the input, the loop's own output, the outputs of the round.
    let mut seen = lenient::parse_object(&task.input);
    let round = rounds.get(&task.advanced.to_string()).cloned().unwrap_or_default();
    if let Value::Object(round) = round {
        seen.extend(round);
    }
    seen.insert(own.to_string(), Value::Object(rounds));
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

/// Whether all that a condition asks of its loop is the number of the round: it names what it looks
/// at, and of the loop only that.
fn asks_only_the_round(condition: &str, own: &str) -> bool {
    condition.split('$').skip(1).all(|behind| {
        let (name, rest) = if let Some(behind) = behind.strip_prefix('.') {
            let end = behind.find(|it: char| !it.is_alphanumeric() && it != '_');
            behind.split_at(end.unwrap_or(behind.len()))
        } else {
            let quoted = |quote: &str| {
                let behind = behind.strip_prefix(&format!("[{quote}"))?;
                behind.split_once(&format!("{quote}]"))
            };
            let Some(found) = quoted("'").or_else(|| quoted("\"")) else { return false };
            found
        };
        let number = [".iteration", "['iteration']", "[\"iteration\"]"];
        name != own || number.iter().any(|number| rest.starts_with(number))
    })
}

/// The condition is known.
pub(super) fn decided<P: Port>(port: &mut P, key: Key, value: &Value) {
    ended(port, key, crate::conductor::script::truthy(value));
}

/// A round is done: another one begins, or the loop is done.
fn ended<P: Port>(port: &mut P, key: Key, again: bool) {
    forget_old(port, key);
    let state = workflows(port);
    let task = state.known_task(key);
    if again {
        let to = task.advanced.saturating_add(1);
        emit(port, WorkflowEvent::TaskAdvanced { task: key, to });
        return;
    }
    if let Err(problem) = fits(port, of_loop(state, key).map(|(_, it)| it.output.len()).sum()) {
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
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

/// The records of a loop's rounds that count, oldest first.
fn of_loop(state: &Workflows, key: Key) -> impl DoubleEndedIterator<Item = (Key, &Task)> {
    let workflow = state.known(state.known_task(key).workflow);
    let records = workflow.tasks.range(key..).map(|other| (*other, state.known_task(*other)));
    records.filter(move |(_, other)| other.loop_task == key && !other.retried)
}

/// What the newest round gave: `{"iteration": n, "n": {reference: output}}`.
fn round(state: &Workflows, key: Key, task: &Task) -> Map<String, Value> {
    // Behind an older round only retries of it can stand.
    let newest: Vec<&Task> = of_loop(state, key)
        .rev()
        .map(|(_, other)| other)
        .take_while(|other| other.iteration == task.advanced || other.retry_of != NO_KEY)
        .filter(|other| other.iteration == task.advanced)
        .collect();
    put_together(state, task, newest.into_iter().rev())
}

/// What the rounds gave: `{"iteration": n, "1": {reference: output}}`.
pub(crate) fn output(state: &Workflows, key: Key, task: &Task) -> Map<String, Value> {
    put_together(state, task, of_loop(state, key).map(|(_, other)| other))
}

fn put_together<'a>(
    state: &Workflows,
    task: &Task,
    records: impl Iterator<Item = &'a Task>,
) -> Map<String, Value> {
    let mut output = Map::new();
    output.insert("iteration".to_owned(), task.advanced.into());
    for other in records {
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

#[cfg(test)]
mod tests {
    use super::asks_only_the_round;

    #[test]
    fn a_condition_that_looks_at_other_rounds_is_told_apart() {
        for condition in [
            "$.l['iteration'] < 3",
            "if ($.l[\"iteration\"] < $.value) { true; } else { false; }",
            "$.l.iteration < $['n'] && $.body.done",
            "true",
        ] {
            assert!(asks_only_the_round(condition, "l"), "{condition}");
        }
        for condition in [
            "$.l['1'].body.done",
            "$.l[$.l.iteration].body.done",
            "$['l']['2']",
            "$[name].x",
            "f($)",
            "$.l",
        ] {
            assert!(!asks_only_the_round(condition, "l"), "{condition}");
        }
    }
}
