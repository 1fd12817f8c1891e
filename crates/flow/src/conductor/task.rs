//! The life of a task: it is scheduled with a record, begins, ends, and is followed by what comes
//! after it. One file per kind of task says what it does when it begins and goes on.

pub(crate) mod do_while;
mod event;
mod fork;
pub(crate) use fork::FORKED_INPUT;
mod join;
pub(crate) mod limit;
mod script;
pub(crate) mod set_variable;
mod sub_workflow;
mod switch;
mod terminate;
mod wait;
mod work;

pub(crate) use wait::waits_for_somebody;
pub(crate) use work::limit_key;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowStatus, id_of,
};

use super::definition::TaskDefinition;
use super::lenient;
use super::plan::{Kind, Next, Node, Plan, TaskNode};
use super::schema;
use super::seen::Seen;
use super::state::{Task, Workflows};
use super::workflow::{self, End, emit, workflows};
use crate::kernel::Port;

pub(crate) use script::evaluated;

/// Where a task stands: the plan that its node is in, and the round of its loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The fork whose added tasks it is one of, or none.
    pub(crate) among: Key,
    /// The loop that it runs in, or none.
    pub(crate) loop_task: Key,
    /// The round of that loop, from 1.
    pub(crate) iteration: u32,
}

impl Place {
    /// In the definition, outside of all loops.
    pub(crate) const OUTSIDE: Place = Place { among: NO_KEY, loop_task: NO_KEY, iteration: 0 };

    pub(crate) fn of(task: &Task) -> Place {
        Place { among: task.among, loop_task: task.loop_task, iteration: task.iteration }
    }

    /// A reference name with the round behind it.
    pub(crate) fn reference(&self, name: &str) -> String {
        if self.iteration == 0 { name.to_owned() } else { format!("{name}__{}", self.iteration) }
    }
}

/// Goes on with a task.
pub(crate) fn go_on<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let Some(task) = state.task(key) else { return };
    if task.followed
        || task.awaits_its_turn()
        || state.known(task.workflow).status != WorkflowStatus::Running
    {
        return;
    }
    match task.status {
        TaskStatus::Scheduled => begin(port, key),
        TaskStatus::InProgress => proceed(port, key),
        TaskStatus::Completed
        | TaskStatus::CompletedWithErrors
        | TaskStatus::Failed
        | TaskStatus::FailedWithTerminalError
        | TaskStatus::TimedOut
        | TaskStatus::Canceled
        | TaskStatus::Skipped => follow(port, key),
    }
}

// ── scheduling ──────────────────────────────────────────────────────────────────────────────

/// Schedules a node for the first time.
pub(crate) fn schedule<P: Port>(port: &mut P, workflow: Key, number: TaskNode, place: &Place) {
    schedule_with(port, workflow, number, place, &Map::new());
}

/// The same, with something more in its input.
pub(crate) fn schedule_with<P: Port>(
    port: &mut P,
    workflow: Key,
    number: TaskNode,
    place: &Place,
    more: &Map<String, Value>,
) {
    let state = workflows(port);
    let plan = plan_at(state, workflow, place);
    let node = plan.node(number);
    let reference = place.reference(&node.reference);
    // One that was skipped by hand has a record already.
    if let Some(skipped) = skipped(state, workflow, &reference) {
        emit(port, WorkflowEvent::TaskAdvanced { task: skipped, to: 1 });
        return;
    }
    let key = port.next_key();
    let made = make(workflows(port), workflow, (&plan, number), place, more, key);
    let input = made.input.map(|input| Value::Object(input).to_string());
    let input = input.and_then(|input| fits(port, input.len()).map(|()| input));
    let (input, problem) = match input {
        Ok(input) => (input, String::new()),
        Err(problem) => ("{}".to_owned(), problem),
    };
    let domain = work::domain(port, workflow, &made.task_type, node.kind);
    emit(
        port,
        WorkflowEvent::TaskScheduled(Box::new(TaskScheduled {
            key,
            workflow,
            among: place.among,
            node: number.0,
            loop_task: place.loop_task,
            iteration: place.iteration,
            reference: &reference,
            task_type: &made.task_type,
            name: &made.name,
            retry_count: 0,
            retry_of: NO_KEY,
            first_ms: 0,
            status: TaskStatus::Scheduled,
            input: &input,
            reason: "",
            domain: &domain,
            delay_s: node.start_delay_s,
        })),
    );
    if !problem.is_empty() {
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
    }
}

/// Whether a node has been scheduled in this place.
fn is_there(
    state: &Workflows,
    workflow: Key,
    (plan, number): (&Plan, TaskNode),
    place: &Place,
) -> bool {
    let reference = place.reference(&plan.node(number).reference);
    let newest = state.known(workflow).newest.get(reference.as_str());
    newest.and_then(|key| state.task(*key)).is_some_and(|task| {
        (task.node, task.among, task.loop_task) == (number, place.among, place.loop_task)
            && !task.awaits_its_turn()
    })
}

fn skipped(state: &Workflows, workflow: Key, reference: &str) -> Option<Key> {
    let key = *state.known(workflow).newest.get(reference)?;
    let task = state.task(key)?;
    (task.awaits_its_turn() && !task.followed).then_some(key)
}

/// The plan that a place is in.
pub(crate) fn plan_at(state: &Workflows, workflow: Key, place: &Place) -> Arc<Plan> {
    let added = state.task(place.among).and_then(|fork| fork.added_plan.clone());
    added.unwrap_or_else(|| state.known(workflow).plan.clone())
}

/// What a record of a task begins with.
struct Made {
    task_type: String,
    name: String,
    input: Result<Map<String, Value>, String>,
}

fn make(
    state: &Workflows,
    workflow: Key,
    (plan, number): (&Plan, TaskNode),
    place: &Place,
    more: &Map<String, Value>,
    key: Key,
) -> Made {
    let node = plan.node(number);
    let json = plan.task_json(number);
    let mut input = input(state, workflow, json, key);
    if let Ok(input) = &mut input {
        // What a dynamic fork gives to its branches.
        for (name, value) in lenient::object(json, FORKED_INPUT).into_iter().flatten() {
            input.insert(name.clone(), value.clone());
        }
        input.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    let mut name = node.name.to_string();
    let mut task_type = if node.kind == Kind::Simple {
        name.clone()
    } else if matches!(node.kind, Kind::Fork | Kind::DynamicFork) {
        "FORK".to_owned()
    } else {
        node.type_name.to_string()
    };
    if node.kind == Kind::Dynamic {
        let parameter = lenient::text(json, "dynamicTaskNameParam");
        let named = input.as_ref().ok().and_then(|input| input.get(parameter)?.as_str());
        match named.filter(|named| !named.is_empty()) {
            Some(named) => {
                name = named.to_owned();
                task_type.clone_from(&name);
            }
            None => {
                input = Err(format!(
                    "Cannot map a dynamic task based on the parameter and input. Parameter= \
                     {parameter}"
                ));
            }
        }
    }
    if node.kind == Kind::UserDefined
        && state.task_definition(&name).is_none()
        && node.definition.is_none()
    {
        input = Err(format!(
            "Invalid task specified. Cannot find task by name {name} in the task definitions"
        ));
    }
    let definition = definition_of_node(state, node, &name);
    if let Ok(input) = &mut input {
        fill_in(&seen_by(state, workflow, key), &definition, input);
    }
    if let Some(schema) = definition.input_schema.as_ref().filter(|_| definition.enforce_schema) {
        input = input.and_then(|input| held_against(schema, input, &name));
    }
    if let Ok(input) = &mut input {
        join::prepare(state, workflow, (plan, number), place, input);
        sub_workflow::prepare(state, workflow, json, input, node.kind);
    }
    Made { task_type, name, input }
}

/// The input, if it matches its schema.
fn held_against(
    schema: &Value,
    input: Map<String, Value>,
    name: &str,
) -> Result<Map<String, Value>, String> {
    let whole = Value::Object(input);
    let wrong =
        |mismatch| format!("The input of task {name} does not match its schema: {mismatch}");
    schema::check(schema, &whole).map_err(wrong)?;
    Ok(if let Value::Object(input) = whole { input } else { Map::new() })
}

/// The input of a task as its parameters say.
fn input(
    state: &Workflows,
    workflow: Key,
    json: &Value,
    key: Key,
) -> Result<Map<String, Value>, String> {
    let Some(parameters) = json.get("inputParameters") else { return Ok(Map::new()) };
    match seen_by(state, workflow, key).resolve(parameters) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(format!("the input of the task cannot be computed: {error:?}")),
    }
}

/// What the expressions of a task see.
fn seen_by(state: &Workflows, workflow: Key, key: Key) -> Seen<'_> {
    Seen { task: key, ..Seen::new(state, workflow) }
}

/// Fills an input in from the template of the task's definition: what is not there is computed, and
/// where something comes to nothing, the template stands as it is written.
fn fill_in(seen: &Seen<'_>, definition: &TaskDefinition, input: &mut Map<String, Value>) {
    for (name, written) in &definition.input_template {
        let value = match input.get(name) {
            Some(Value::Null) => Value::Null,
            Some(_) => continue,
            None => seen.resolve(written).unwrap_or_default(),
        };
        let value = if value.is_null() { written.clone() } else { value };
        input.insert(name.clone(), value);
    }
}

/// The definition that a task lives by.
pub(crate) fn definition(state: &Workflows, task: &Task) -> Arc<TaskDefinition> {
    let plan = state.plan_of(task);
    definition_of_node(state, task.node(&plan), &task.name)
}

fn definition_of_node(state: &Workflows, node: &Node, name: &str) -> Arc<TaskDefinition> {
    if let Some(own) = node.definition.as_ref().filter(|_| *node.name == *name) {
        return own.clone();
    }
    if let Some(known) = state.task_definition(name) {
        return known;
    }
    if node.kind.is_work() && node.kind != Kind::Builtin {
        TaskDefinition::of_worker_task(name)
    } else {
        TaskDefinition::of_system_task(name)
    }
}

// ── beginning ───────────────────────────────────────────────────────────────────────────────

fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let kind = task.node(&plan).kind;
    if task.job.is_some() {
        return;
    }
    let begins_ms = task.scheduled_ms.saturating_add(u64::from(task.delay_s) * 1_000);
    if !kind.is_work() && begins_ms > port.now_ms() {
        if workflows(port).known_task(key).due_ms != begins_ms {
            emit(port, WorkflowEvent::TaskDue { task: key, at_ms: begins_ms });
        }
        return;
    }
    match kind {
        Kind::Simple | Kind::Dynamic | Kind::Builtin | Kind::UserDefined => work::begin(port, key),
        Kind::Switch | Kind::Decision => switch::begin(port, key),
        Kind::Fork => fork::begin(port, key),
        Kind::DynamicFork => fork::begin_dynamic(port, key),
        Kind::Join => join::begin(port, key),
        Kind::ExclusiveJoin => join::begin(port, key),
        Kind::DoWhile => do_while::begin(port, key),
        Kind::SubWorkflow => sub_workflow::begin(port, key),
        Kind::StartWorkflow => sub_workflow::begin_and_forget(port, key),
        Kind::Terminate => terminate::begin(port, key),
        Kind::SetVariable => set_variable::begin(port, key),
        Kind::Wait => wait::begin(port, key),
        Kind::Human => under_way(port, key),
        Kind::Inline | Kind::Lambda | Kind::Jq => script::begin(port, key),
        Kind::Event => event::begin(port, key),
        Kind::Noop => finish(port, key, TaskStatus::Completed, Some(&json!({})), ""),
    }
    limit::watch(port, key);
}

/// A task under way has something to go on with.
fn proceed<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    if task.job.is_some() {
        return;
    }
    let plan = state.plan_of(task);
    let kind = task.node(&plan).kind;
    if limit::is_over(port, key) {
        return;
    }
    match kind {
        Kind::Fork | Kind::DynamicFork => fork::proceed(port, key),
        Kind::Join => join::proceed(port, key),
        Kind::ExclusiveJoin => join::proceed_exclusive(port, key),
        Kind::DoWhile => do_while::proceed(port, key),
        Kind::Wait => wait::proceed(port, key),
        Kind::SubWorkflow => sub_workflow::proceed(port, key),
        Kind::Event => event::proceed(port, key),
        Kind::Simple
        | Kind::Dynamic
        | Kind::Builtin
        | Kind::UserDefined
        | Kind::Switch
        | Kind::Decision
        | Kind::StartWorkflow
        | Kind::Terminate
        | Kind::SetVariable
        | Kind::Human
        | Kind::Inline
        | Kind::Lambda
        | Kind::Jq
        | Kind::Noop => {}
    }
    limit::watch(port, key);
}

/// Does what is due about a task.
pub(crate) fn fire<P: Port>(port: &mut P, key: Key) {
    emit(port, WorkflowEvent::TaskDue { task: key, at_ms: 0 });
    emit(port, WorkflowEvent::TaskQueued { task: key });
}

// ── ending ──────────────────────────────────────────────────────────────────────────────────

/// Refuses a text that is larger than a payload may be: a batch of the log has to hold it, and what
/// it grows to.
pub(crate) fn fits<P: Port>(port: &P, bytes: usize) -> Result<(), String> {
    let bound = port.bounds().payload_bytes_max;
    if bytes <= bound {
        return Ok(());
    }
    Err(format!("The payload size: {bytes} is greater than the permissible limit: {bound} bytes"))
}

/// Writes what changes about a task. A text that is too large ends it instead.
pub(crate) fn change<P: Port>(port: &mut P, changed: TaskChanged<'_>) {
    let texts = [changed.input, changed.output];
    let largest = texts.into_iter().flatten().map(str::len).max().unwrap_or(0);
    let problem = fits(port, largest).err();
    let changed = match &problem {
        Some(problem) => TaskChanged {
            status: Some(TaskStatus::FailedWithTerminalError),
            reason: Some(problem),
            input: None,
            output: None,
            ..changed
        },
        None => changed,
    };
    emit(port, WorkflowEvent::TaskChanged(Box::new(changed)));
}

/// A task has begun, and goes on.
pub(crate) fn under_way<P: Port>(port: &mut P, key: Key) {
    change(port, TaskChanged { status: Some(TaskStatus::InProgress), ..TaskChanged::of(key) });
}

/// Ends a task.
pub(crate) fn finish<P: Port>(
    port: &mut P,
    key: Key,
    status: TaskStatus,
    output: Option<&Value>,
    reason: &str,
) {
    let output = output.map(Value::to_string);
    let reason = windlass_record::bound::cut(reason, port.bounds().message_bytes_max);
    let changed = TaskChanged {
        status: Some(status),
        output: output.as_deref(),
        reason: (!reason.is_empty()).then_some(reason),
        ..TaskChanged::of(key)
    };
    change(port, changed);
}

/// Ends a task that is no longer wanted, and what runs for it.
pub(crate) fn cancel<P: Port>(port: &mut P, key: Key) {
    let task = workflows(port).known_task(key);
    let (job, workflow) = (task.job, task.workflow);
    if let Some((job, _)) = job {
        let (worker, started_ms, polls) = work::facts(port, job);
        emit(port, WorkflowEvent::TaskJobDetached { task: key });
        port.cancel_job(job);
        let changed = TaskChanged {
            status: Some(TaskStatus::Canceled),
            worker: Some(&worker),
            started_ms: Some(started_ms),
            polls: Some(polls),
            ..TaskChanged::of(key)
        };
        change(port, changed);
    } else {
        finish(port, key, TaskStatus::Canceled, None, "");
    }
    let reason = &workflows(port).known(workflow).reason;
    let reason = format!("Parent workflow has been terminated with reason: {reason}");
    end_child(port, key, &reason);
}

/// Ends the workflow that runs for a task, if it does.
fn end_child<P: Port>(port: &mut P, key: Key, reason: &str) {
    let state = workflows(port);
    let child = state.known_task(key).child;
    if state.workflow(child).is_none_or(|child| child.status.is_at_rest()) {
        return;
    }
    let (status, by) = (WorkflowStatus::Terminated, NO_KEY);
    // Whoever ends many at once has no room for what each of them gave.
    let room = port.written() <= port.bounds().payload_bytes_max;
    let output = (!room).then(|| json!({}));
    workflow::end(port, child, &End { status, reason, output, compensate: true, by });
}

/// Why a workflow ended with this status by a task. Clients are told that status, not the task's.
pub(crate) fn failure_reason(key: Key, task: &Task, status: WorkflowStatus) -> String {
    failed_with(key, task, status.name())
}

/// The same of a task that was permissive, of which they are told its own.
pub(crate) fn permissive_reason(key: Key, task: &Task) -> String {
    failed_with(key, task, task.status.name())
}

fn failed_with(key: Key, task: &Task, status: &str) -> String {
    format!("Task {} failed with status: {status} and reason: '{}'", id_of(key), task.reason)
}

/// Does what comes after a task that has ended.
fn follow<P: Port>(port: &mut P, key: Key) {
    let task = workflows(port).known_task(key);
    if task.status.is_success() {
        follow_success(port, key);
        return;
    }
    if let Some(delay_s) = retry_delay_s(port, key) {
        let reason = task.reason.clone();
        retry(port, key, delay_s, &reason);
        return;
    }
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let node = task.node(&plan);
    if node.optional {
        finish(port, key, TaskStatus::CompletedWithErrors, None, "");
        return;
    }
    if node.permissive {
        follow_success(port, key);
        return;
    }
    let status = if task.status == TaskStatus::Canceled {
        WorkflowStatus::Terminated
    } else if task.status == TaskStatus::TimedOut {
        WorkflowStatus::TimedOut
    } else {
        WorkflowStatus::Failed
    };
    let (reason, workflow) = (failure_reason(key, task, status), task.workflow);
    workflow::end(port, workflow, &End::failed(status, &reason, key));
}

/// How long to wait for the next attempt, if there is one (s).
fn retry_delay_s<P: Port>(port: &P, key: Key) -> Option<u32> {
    let state = workflows(port);
    let task = state.known_task(key);
    if !matches!(task.status, TaskStatus::Failed | TaskStatus::TimedOut) {
        return None;
    }
    let plan = state.plan_of(task);
    let node = task.node(&plan);
    if node.kind.is_control() || node.kind == Kind::Terminate {
        return None;
    }
    let definition = definition(state, task);
    let retries = match node.retry_count {
        Some(count) => i64::from(count),
        None => definition.retry_count,
    };
    if i64::from(task.retry_count) >= retries {
        return None;
    }
    let total_ms = u64::try_from(definition.total_timeout_seconds).unwrap_or(0) * 1_000;
    if total_ms > 0 && port.now_ms().saturating_sub(task.first_ms) >= total_ms {
        return None;
    }
    Some(definition.retry_delay_s(task.retry_count))
}

/// Another record takes the place of one that failed, and says why.
pub(crate) fn retry<P: Port>(port: &mut P, key: Key, delay_s: u32, reason: &str) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let json = plan.task_json(task.node);
    let again = port.next_key();
    let mut fresh = lenient::parse_object(&task.input);
    // What can be computed anew is; the rest stays as it was.
    if let Ok(mut input) = input(state, task.workflow, json, again) {
        let definition = definition(state, task);
        fill_in(&seen_by(state, task.workflow, again), &definition, &mut input);
        fresh.extend(input);
    }
    for (name, value) in lenient::object(json, FORKED_INPUT).into_iter().flatten() {
        fresh.insert(name.clone(), value.clone());
    }
    let fresh = Value::Object(fresh).to_string();
    let fits = port.written() <= port.bounds().payload_bytes_max && fits(port, fresh.len()).is_ok();
    let input = if fits { fresh } else { task.input.to_string() };
    let (workflow, place, node) = (task.workflow, Place::of(task), task.node);
    let (reference, task_type) = (task.reference.clone(), task.task_type.clone());
    let (name, domain) = (task.name.clone(), task.domain.clone());
    let (retry_count, first_ms) = (task.retry_count.saturating_add(1), task.first_ms);
    emit(port, WorkflowEvent::TaskFollowed { task: key, retried: true });
    emit(
        port,
        WorkflowEvent::TaskScheduled(Box::new(TaskScheduled {
            key: again,
            workflow,
            among: place.among,
            node: node.0,
            loop_task: place.loop_task,
            iteration: place.iteration,
            reference: &reference,
            task_type: &task_type,
            name: &name,
            retry_count,
            retry_of: key,
            first_ms,
            status: TaskStatus::Scheduled,
            input: &input,
            reason,
            domain: &domain,
            delay_s,
        })),
    );
}

/// A task is done, or its failure is no obstacle: what comes after it begins.
fn follow_success<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let node = task.node(&plan);
    let (workflow, place) = (task.workflow, Place::of(task));
    let skipped = task.status == TaskStatus::Skipped;
    if node.kind == Kind::Terminate && !skipped {
        terminate::follow(port, key);
        return;
    }
    let chooses = matches!(node.kind, Kind::Switch | Kind::Decision) && !skipped;
    let branch = if chooses { switch::branch(task, node) } else { None };
    let next = branch.map_or(node.next, Next::Task);
    // One that was there before it goes on, or is tried again, by itself.
    let next = match next {
        Next::Task(next) => {
            Some(next).filter(|next| !is_there(state, workflow, (&plan, *next), &place))
        }
        Next::Loop | Next::End => None,
    };
    // The next task first: a workflow with nothing open is done.
    if let Some(next) = next {
        schedule(port, workflow, next, &place);
    }
    emit(port, WorkflowEvent::TaskFollowed { task: key, retried: false });
    // A branch may be the last to end in its round, when somebody ended its join by hand.
    if next.is_none() && place.loop_task != NO_KEY {
        emit(port, WorkflowEvent::TaskQueued { task: place.loop_task });
    }
}

/// The jitter of a retry (ms).
pub(crate) fn jitter_ms<P: Port>(port: &P, key: Key, definition: &TaskDefinition) -> u64 {
    let jitter_ms = u64::try_from(definition.backoff_jitter_ms).unwrap_or(0);
    if jitter_ms == 0 { 0 } else { port.jitter(key) % (jitter_ms + 1) }
}

impl Workflows {
    /// How long the worker of a task may be silent (ms); 0 is as it asks.
    pub(crate) fn response_ms(&self, job: Key) -> u64 {
        let Some(task) = self.jobs.get(&job).and_then(|task| self.tasks.get(task)) else {
            return 0;
        };
        if task.job.is_some_and(|(_, evaluates)| evaluates) {
            return 0;
        }
        let seconds = definition(self, task).response_timeout_seconds;
        u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000)
    }
}
