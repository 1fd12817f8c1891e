//! Starting a workflow: which definition, with which task definitions in it, with what input.

use std::fmt;

use serde_json::{Map, Value};
use windlass_record::flow::{FlowRejection, Key, NO_KEY};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{WorkflowEvent, WorkflowStarted};

use super::plan::{self, Plan};
use super::seen::Seen;
use super::state::Workflows;
use super::workflow::{emit, workflows};
use super::{lenient, refuse, schema, task};
use crate::graph::Text;
use crate::kernel::Port;

/// Bytes of the task definitions in a snapshot: one for each of its tasks.
const EMBEDDED_BYTES_MAX: usize = 4 << 20;

/// What is to be started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    pub(crate) name: String,
    /// The newest when absent.
    pub(crate) version: Option<u32>,
    /// A definition of its own, instead of a listed one.
    pub(crate) definition: Option<Value>,
    pub(crate) input: Map<String, Value>,
    pub(crate) correlation_id: String,
    /// A JSON object in text; empty is none.
    pub(crate) task_to_domain: String,
    pub(crate) priority: u32,
    pub(crate) created_by: String,
    pub(crate) event: String,
    pub(crate) idempotency_key: String,
    pub(crate) idempotency: Idempotency,
    pub(crate) parent_task: Option<Key>,
}

/// What a second start with the same key does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// It is refused.
    #[default]
    Fail,
    /// It is answered with the first one's.
    ReturnExisting,
    /// It is refused while the first one runs.
    FailOnRunning,
}

impl Start {
    /// Reads a `StartWorkflowRequest`.
    pub(crate) fn parse(request: &Value) -> Result<Start, FlowRejection> {
        let invalid = |message: String| refuse(RejectionKind::InvalidArgument, message);
        let input = match request.get("input") {
            Some(Value::Object(input)) => input.clone(),
            None => Map::new(),
            Some(Value::Null) => {
                return Err(invalid("NULL input passed when starting workflow".to_owned()));
            }
            Some(other) => return Err(invalid(format!("input must be an object, not {other}"))),
        };
        let definition = request.get("workflowDef").filter(|value| value.is_object()).cloned();
        let named = lenient::text(request, "name");
        let name = match &definition {
            Some(definition) if named.is_empty() => lenient::text(definition, "name"),
            Some(_) | None => named,
        };
        if name.is_empty() {
            return Err(invalid("Workflow name cannot be null or empty".to_owned()));
        }
        let version = request.get("version").and_then(lenient::integer).filter(|it| *it > 0);
        let priority = request.get("priority").and_then(lenient::integer).unwrap_or(0);
        if !(0..=99).contains(&priority) {
            return Err(invalid("priority: a number between 0 and 99 is expected".to_owned()));
        }
        let domains = request
            .get("taskToDomain")
            .filter(|it| it.as_object().is_some_and(|it| !it.is_empty()));
        let idempotency = match lenient::text(request, "idempotencyStrategy") {
            "RETURN_EXISTING" => Idempotency::ReturnExisting,
            "FAIL_ON_RUNNING" => Idempotency::FailOnRunning,
            _ => Idempotency::Fail,
        };
        Ok(Start {
            name: name.to_owned(),
            version: version.and_then(|version| u32::try_from(version).ok()),
            definition,
            input,
            correlation_id: lenient::text(request, "correlationId").to_owned(),
            task_to_domain: domains.map(Value::to_string).unwrap_or_default(),
            priority: u32::try_from(priority).unwrap_or(0),
            created_by: lenient::text(request, "createdBy").to_owned(),
            event: lenient::text(request, "event").to_owned(),
            idempotency_key: lenient::text(request, "idempotencyKey").to_owned(),
            idempotency,
            parent_task: None,
        })
    }
}

/// Why a workflow was not started.
pub(crate) struct NotStarted(pub(crate) FlowRejection);

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Starts a workflow, or finds the one that the same key started before (then true).
pub(crate) fn start<P: Port>(port: &mut P, start: Start) -> Result<(Key, bool), NotStarted> {
    if let Some(existing) = existing(workflows(port), &start).map_err(NotStarted)? {
        return Ok((existing, true));
    }
    let deepest = port.bounds().call_depth_max;
    if let Some(parent) = start.parent_task
        && depth(workflows(port), parent) >= deepest
    {
        let message = format!("sub workflows in each other: more than the bound of {deepest}");
        return Err(NotStarted(refuse(RejectionKind::ResourceExhausted, message)));
    }
    let (runs_by, (rate_limit_key, waits)) =
        runs_by(workflows(port), &start).map_err(NotStarted)?;
    let json = runs_by.json(workflows(port));
    let mut input = start.input;
    if !input.is_empty() {
        for (name, value) in lenient::object(json, "inputTemplate").into_iter().flatten() {
            input.entry(name.as_str()).or_insert_with(|| value.clone());
        }
    }
    let input = Value::Object(input);
    if let Some(schema) = schema::enforced(json, "inputSchema") {
        schema::check(schema, &input).map_err(|mismatch| {
            let name = lenient::text(json, "name");
            let message =
                format!("The input of workflow {name} does not match its schema: {mismatch}");
            NotStarted(refuse(RejectionKind::InvalidArgument, message))
        })?;
    }
    let input = input.to_string();
    let too_large = |problem| NotStarted(refuse(RejectionKind::InvalidArgument, problem));
    task::fits(port, input.len()).map_err(too_large)?;

    // Cannot fail from here.
    let variables = lenient::object(json, "variables").cloned().unwrap_or_default();
    let definition = runs_by.keep(port);
    let key = port.next_key();
    let parent_task = start.parent_task.unwrap_or(NO_KEY);
    emit(
        port,
        WorkflowEvent::WorkflowStarted(Box::new(WorkflowStarted {
            key,
            definition,
            parent_task,
            input: &input,
            variables: &Value::Object(variables).to_string(),
            correlation_id: &start.correlation_id,
            idempotency_key: &start.idempotency_key,
            task_to_domain: &start.task_to_domain,
            priority: start.priority,
            created_by: &start.created_by,
            event: &start.event,
            rate_limit_key: &rate_limit_key,
            waits,
        })),
    );
    Ok((key, false))
}

fn existing(state: &Workflows, start: &Start) -> Result<Option<Key>, FlowRejection> {
    if start.idempotency_key.is_empty() {
        return Ok(None);
    }
    let name = (start.name.as_str().into(), start.idempotency_key.as_str().into());
    let newest = state.idempotent.get(&name).and_then(|keys| keys.last().copied());
    let Some(key) = newest else { return Ok(None) };
    let running = state.workflow(key).is_some_and(|it| !it.status.is_at_rest());
    match start.idempotency {
        Idempotency::ReturnExisting => Ok(Some(key)),
        Idempotency::FailOnRunning if !running => Ok(None),
        Idempotency::Fail | Idempotency::FailOnRunning => Err(refuse(
            RejectionKind::AlreadyExists,
            format!(
                "A workflow {} with idempotencyKey {} already exists: {}",
                start.name,
                start.idempotency_key,
                windlass_record::workflow::id_of(key)
            ),
        )),
    }
}

fn depth(state: &Workflows, mut task: Key) -> u32 {
    let mut depth = 0;
    while let Some(parent) = state.task(task).and_then(|task| state.workflow(task.workflow)) {
        depth += 1;
        task = parent.parent_task;
    }
    depth
}

/// What a workflow runs by: a snapshot of its definition, with the task definitions of now in it.
pub(crate) enum Snapshot {
    /// Another one began with it.
    Known(Key),
    /// It is new, of a listed definition or of none.
    New { name: Text, version: u32, of: Key, json: Value, text: String },
}

impl Snapshot {
    fn new(state: &Workflows, plan: Plan, of: Key) -> Result<Snapshot, FlowRejection> {
        let (name, version) = (plan.name.clone(), plan.version);
        let json = embed(state, plan)?;
        let text = json.to_string();
        Ok(Snapshot::New { name, version, of, json, text })
    }

    fn json<'a>(&'a self, state: &'a Workflows) -> &'a Value {
        match self {
            Snapshot::Known(key) => {
                state.definitions.get(key).map_or(&Value::Null, |it| &it.plan.json)
            }
            Snapshot::New { json, .. } => json,
        }
    }

    /// Writes it down, if it is new.
    pub(crate) fn keep<P: Port>(&self, port: &mut P) -> Key {
        match self {
            Snapshot::Known(key) => *key,
            Snapshot::New { name, version, of, text, .. } => {
                let key = port.next_key();
                let (version, snapshot_of, listed) = (*version, *of, false);
                let json = text.as_str();
                let defined = WorkflowEvent::WorkflowDefined {
                    key,
                    name,
                    version,
                    listed,
                    snapshot_of,
                    json,
                };
                emit(port, defined);
                key
            }
        }
    }
}

/// The snapshot to run by, and the rate limit.
fn runs_by(state: &Workflows, start: &Start) -> Result<(Snapshot, (String, bool)), FlowRejection> {
    if let Some(json) = &start.definition {
        let mut json = json.clone();
        if let Value::Object(object) = &mut json {
            object.insert("name".to_owned(), start.name.as_str().into());
        }
        let plan = checked(json)?;
        let limit = rate_limit(state, &plan, start)?;
        return Ok((Snapshot::new(state, plan, NO_KEY)?, limit));
    }
    let listed = state.listed_definition(&start.name, start.version).ok_or_else(|| {
        let version = start.version.map_or_else(|| "null".to_owned(), |it| it.to_string());
        refuse(
            RejectionKind::NotFound,
            format!("No such workflow defined. name={}, version={version}", start.name),
        )
    })?;
    let known = state.definitions.get(&listed).map(|it| it.plan.clone());
    let limit = match &known {
        Some(plan) => rate_limit(state, plan, start)?,
        None => (String::new(), false),
    };
    Ok((snapshot(state, listed)?, limit))
}

/// The newest snapshot of a listed definition; another one if task definitions have changed since.
pub(crate) fn snapshot(state: &Workflows, listed: Key) -> Result<Snapshot, FlowRejection> {
    let definition = state.definitions.get(&listed).expect("indexes name known definitions");
    if let Some(key) = state.snapshots.get(&listed)
        && let Some(snapshot) = state.definitions.get(key)
        && snapshot.embedded == state.task_definitions_of(&definition.plan)
    {
        return Ok(Snapshot::Known(*key));
    }
    let json = serde_json::from_str(&definition.json).unwrap_or_default();
    Snapshot::new(state, Plan::compile(json), listed)
}

/// Compiles a definition that came with a request.
pub(crate) fn checked(json: Value) -> Result<Plan, FlowRejection> {
    let mut problems = plan::problems_of_definition(&json);
    if problems.is_empty() {
        let plan = Plan::compile(json);
        problems = plan::problems(&plan);
        if problems.is_empty() {
            return Ok(plan);
        }
    }
    Err(refuse(RejectionKind::InvalidArgument, problems.join("\n")))
}

/// A definition with the task definitions of now in it, where it has none of its own.
fn embed(state: &Workflows, plan: Plan) -> Result<Value, FlowRejection> {
    let mut json = plan.json;
    let mut bytes = 0;
    for node in &plan.nodes {
        let Some(known) = state.task_names.get(&node.name) else { continue };
        let Some(known) = state.task_definitions.get(known) else { continue };
        let Some(Value::Object(task)) = json.pointer_mut(&node.pointer) else { continue };
        if task.get("taskDefinition").is_some_and(Value::is_object) {
            continue;
        }
        bytes += known.json.len();
        if bytes > EMBEDDED_BYTES_MAX {
            let message = format!(
                "The task definitions of workflow {} are more than {EMBEDDED_BYTES_MAX} bytes",
                plan.name
            );
            return Err(refuse(RejectionKind::ResourceExhausted, message));
        }
        let definition = serde_json::from_str(&known.json).unwrap_or_default();
        task.insert("taskDefinition".to_owned(), definition);
    }
    Ok(json)
}

/// How many workflows of a rate limit key may run at once; 0 is no limit.
pub(crate) fn places(plan: &Plan) -> usize {
    let config = plan.json.get("rateLimitConfig");
    let places = config.and_then(|it| it.get("concurrentExecLimit")).and_then(lenient::integer);
    places.and_then(|places| usize::try_from(places).ok()).unwrap_or(0)
}

/// The key of a workflow's rate limit, and whether it has to wait for a place.
fn rate_limit(
    state: &Workflows,
    plan: &Plan,
    start: &Start,
) -> Result<(String, bool), FlowRejection> {
    let places = places(plan);
    let Some(config) = plan.json.get("rateLimitConfig").filter(|_| places > 0) else {
        return Ok((String::new(), false));
    };
    let template = config.get("rateLimitKey").cloned().unwrap_or_default();
    let seen = OfStart { start };
    let resolved = super::template::resolve(&template, &seen, &mut super::seen::budget());
    let mut key = match resolved {
        Ok(Value::String(key)) => key,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    };
    if key.is_empty() || key == "null" {
        key.clone_from(&start.name);
    }
    let at_work = state.limited.get(key.as_str()).map_or(0, |limited| limited.at_work.len());
    let full = at_work >= places;
    if full && lenient::text(config, "policy") == "REJECT" {
        return Err(refuse(
            RejectionKind::ResourceExhausted,
            format!("Rate limit of {places} running workflows reached for key {key}"),
        ));
    }
    Ok((key, full))
}

/// What the rate limit key of a workflow that is not there yet may name: its input.
struct OfStart<'a> {
    start: &'a Start,
}

impl super::template::Roots for OfStart<'_> {
    fn part(&self, root: &str, field: &str) -> Option<Option<Value>> {
        match (root, field) {
            ("workflow", "input") => Some(Some(Value::Object(self.start.input.clone()))),
            ("workflow", "correlationId") => Some(Some(self.start.correlation_id.as_str().into())),
            ("workflow", "workflowType" | "name") => Some(Some(self.start.name.as_str().into())),
            _ => None,
        }
    }

    fn whole(&self, _root: &str) -> Option<Value> {
        None
    }
}

/// A template about a workflow that runs.
pub(crate) fn resolve_in(state: &Workflows, workflow: Key, template: &Value) -> Value {
    Seen::new(state, workflow).resolve(template).unwrap_or(Value::Null)
}
