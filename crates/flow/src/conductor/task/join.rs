//! JOIN and EXCLUSIVE_JOIN: what they wait for is part of the state, so that the end of a branch
//! wakes them and nothing polls.

use serde_json::{Map, Value};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowEvent, id_of};

use super::{Place, emit, finish, fits, fork, lenient, under_way, workflows};
use crate::conductor::plan::{Kind, Next, Plan, TaskNode};
use crate::conductor::seen::parsed;
use crate::conductor::state::Workflows;
use crate::kernel::Port;

/// Puts the reference names that a join waits for into its input.
pub(super) fn prepare(
    state: &Workflows,
    workflow: Key,
    (plan, number): (&Plan, TaskNode),
    place: &Place,
    input: &mut Map<String, Value>,
) {
    let node = plan.node(number);
    if !matches!(node.kind, Kind::Join | Kind::ExclusiveJoin) {
        return;
    }
    let on = lenient::list(plan.task_json(number), "joinOn");
    let mut names: Vec<String> =
        on.iter().filter_map(Value::as_str).map(|name| place.reference(name)).collect();
    // Behind a dynamic fork, its branches.
    let fork = (0..)
        .map(TaskNode)
        .zip(&plan.nodes)
        .find(|(_, other)| other.kind == Kind::DynamicFork && other.next == Next::Task(number));
    if let Some((_, fork)) = fork {
        let reference = place.reference(&fork.reference);
        if let Some(key) = state.known(workflow).newest.get(reference.as_str()) {
            names = fork::added_references(state, *key);
        }
    }
    input.insert("joinOn".to_owned(), names.into());
}

/// Begins to wait.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    under_way(port, key);
    emit(port, WorkflowEvent::TaskQueued { task: key });
}

/// The newest records of what a join is on.
fn joined(state: &Workflows, key: Key) -> Vec<(String, Key)> {
    let task = state.known_task(key);
    let input = lenient::parse_object(&task.input);
    let names = input.get("joinOn").and_then(Value::as_array);
    let newest = &state.known(task.workflow).newest;
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter_map(|name| Some((name.to_owned(), *newest.get(name)?)))
        .collect()
}

/// Everything that it waited for has ended.
pub(super) fn proceed<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    if !task.waits_for.is_empty() || task.node(&plan).async_complete {
        return;
    }
    let mut output = Map::new();
    let (mut with_errors, mut failures) = (Vec::new(), Vec::new());
    let joined = joined(state, key);
    let bytes = joined.iter().map(|(_, branch)| state.known_task(*branch).output.len()).sum();
    if let Err(problem) = fits(port, bytes) {
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        return;
    }
    for (name, branch_key) in joined {
        let branch = state.known_task(branch_key);
        let result = parsed(&branch.output);
        if result.as_object().is_some_and(|it| !it.is_empty()) {
            output.insert(name, result);
        }
        if branch.status == TaskStatus::CompletedWithErrors {
            with_errors.push(format!("{}/{} ", branch.name, id_of(branch_key)));
        }
        if !branch.status.is_success() {
            failures.push((branch.status, branch.reason.to_string()));
        }
    }
    let output = Value::Object(output);
    if failures.is_empty() {
        let (status, reason) = if with_errors.is_empty() {
            (TaskStatus::Completed, String::new())
        } else {
            let reason = format!("{}completed with errors", with_errors.concat());
            (TaskStatus::CompletedWithErrors, reason)
        };
        finish(port, key, status, Some(&output), &reason);
        return;
    }
    let all_canceled = failures.iter().all(|(status, _)| *status == TaskStatus::Canceled);
    let status = if all_canceled { TaskStatus::Canceled } else { TaskStatus::Failed };
    let reasons = failures.into_iter().map(|(_, reason)| reason);
    let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    finish(port, key, status, Some(&output), &reasons.join(" "));
}

/// The one branch that was taken decides.
pub(super) fn proceed_exclusive<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let workflow = state.known(task.workflow);
    let joined = joined(state, key);
    let taken = joined.iter().find_map(|(_, branch)| {
        let branch = state.known_task(*branch);
        let counts = branch.status.is_at_rest() && branch.status != TaskStatus::Skipped;
        counts.then_some(branch)
    });
    if let Some(taken) = taken {
        let (status, reason) = (taken.status, taken.reason.to_string());
        let output = parsed(&taken.output);
        let status = if status.is_success() { TaskStatus::Completed } else { status };
        finish(port, key, status, Some(&output), &reason);
        return;
    }
    if joined.iter().any(|(_, branch)| !state.known_task(*branch).status.is_at_rest()) {
        return;
    }
    let plan = state.plan_of(task);
    let place = Place::of(task);
    let names = lenient::list(plan.task_json(task.node), "defaultExclusiveJoinTask");
    let default = names.iter().filter_map(Value::as_str).find_map(|name| {
        let key = workflow.newest.get(place.reference(name).as_str())?;
        state.task(*key).filter(|task| task.status.is_at_rest())
    });
    let output = default.map(|task| parsed(&task.output));
    let (status, problem) = match &output {
        Some(_) => (TaskStatus::Completed, ""),
        None => (TaskStatus::Failed, "could not evaluate the default exclusive join task"),
    };
    finish(port, key, status, output.as_ref(), problem);
}
