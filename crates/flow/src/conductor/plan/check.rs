//! What is wrong with a workflow definition: a sentence for each problem, in Conductor's words where
//! its clients read them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Kind, Node, Plan, TaskNode};
use crate::conductor::lenient::{flag, integer, list, object, text};
use crate::conductor::template;

/// Tasks of one definition at most.
const TASKS_MAX: usize = 10_000;
/// How deep tasks may stand in each other.
const DEPTH_MAX: usize = 64;

/// Everything that is wrong with a definition before it is compiled.
pub fn problems_of_definition(json: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if !json.is_object() {
        return vec!["a workflow definition is a JSON object".to_owned()];
    }
    if text(json, "name").is_empty() {
        problems.push("WorkflowDef name cannot be null or empty".to_owned());
    }
    if list(json, "tasks").is_empty() {
        problems.push("WorkflowTask list cannot be empty".to_owned());
    }
    if json.get("version").and_then(integer).is_some_and(|version| version < 0) {
        problems.push("workflow version must be >= 0".to_owned());
    }
    if json.get("schemaVersion").and_then(integer).is_some_and(|version| version != 2) {
        problems.push("workflowDef schemaVersion: only version 2 is supported".to_owned());
    }
    if json.get("timeoutSeconds").and_then(integer).is_some_and(|seconds| seconds < 0) {
        problems.push("workflowDef timeoutSeconds must be >= 0".to_owned());
    }
    if let Some(Value::String(policy)) = json.get("timeoutPolicy")
        && !["TIME_OUT_WF", "ALERT_ONLY"].contains(&policy.as_str())
    {
        problems.push(format!("workflowDef timeoutPolicy: {policy} is invalid"));
    }
    let mut count = 0;
    if !bounded(json, 0, &mut count) {
        problems.push(format!(
            "a workflow has at most {TASKS_MAX} tasks, at most {DEPTH_MAX} in each other"
        ));
    }
    problems
}

/// Whether there are not too many tasks, and not too deep; to be known before they are compiled.
fn bounded(value: &Value, depth: usize, count: &mut usize) -> bool {
    let inner = |key: &str| list(value, key).iter();
    let cases = object(value, "decisionCases").into_iter().flat_map(|cases| cases.values());
    let forks = inner("forkTasks").chain(cases).filter_map(Value::as_array).flatten();
    let mut all = inner("tasks").chain(inner("loopOver")).chain(inner("defaultCase")).chain(forks);
    all.all(|task| {
        *count += 1;
        *count <= TASKS_MAX && depth < DEPTH_MAX && bounded(task, depth + 1, count)
    })
}

/// Everything that is wrong with a compiled definition.
pub fn problems(plan: &Plan) -> Vec<String> {
    let mut problems = Vec::new();
    let mut references = BTreeSet::new();
    for node in &plan.nodes {
        if node.reference.is_empty() {
            problems.push("WorkflowTask taskReferenceName name cannot be empty or null".to_owned());
        } else if !references.insert(node.reference.clone()) {
            problems.push(format!(
                "taskReferenceName: {} should be unique across tasks for a given \
                 workflowDefinition: {}",
                node.reference, plan.name
            ));
        }
        if node.name.is_empty() {
            problems.push("WorkflowTask name cannot be empty or null".to_owned());
        }
    }
    for (number, node) in (0..).map(TaskNode).zip(&plan.nodes) {
        check_kind(plan, number, node, &mut problems);
        let Some(inputs) = plan.task_json(number).get("inputParameters") else { continue };
        for found in template::references(inputs) {
            if let Some(problem) = found.problem {
                problems.push(format!(
                    "taskReferenceName: {} has an input parameter {} that cannot be read: {}",
                    node.reference, found.key, problem.message
                ));
                continue;
            }
            let Some(root) = found.root else { continue };
            let is_environment =
                matches!(&*root, "CPEWF_TASK_ID" | "NETFLIX_ENV" | "NETFLIX_STACK");
            if root != "workflow" && !is_environment && !references.contains(&*root) {
                problems.push(format!(
                    "taskReferenceName: {root} for given task: {} input value: {} of input \
                     parameter: ${{{}}} is not defined in workflow definition.",
                    node.name, found.key, found.expression
                ));
            }
        }
    }
    problems
}

fn check_kind(plan: &Plan, number: TaskNode, node: &Node, problems: &mut Vec<String>) {
    let json = plan.task_json(number);
    let name = &node.name;
    let inputs = json.get("inputParameters").unwrap_or(&Value::Null);
    let mut expect = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    let has = |field: &str| !text(json, field).is_empty();
    let type_name = &node.type_name;
    let missing = |field: &str| {
        format!("{field} should not be null or empty for taskType: {type_name} taskName: {name}")
    };
    match node.kind {
        Kind::Dynamic => expect(has("dynamicTaskNameParam"), missing("dynamicTaskNameParam")),
        Kind::Switch => {
            expect(has("evaluatorType"), missing("evaluatorType"));
            expect(has("expression"), missing("expression"));
            let some = object(json, "decisionCases").is_some_and(|cases| !cases.is_empty());
            expect(
                some,
                format!(
                    "decisionCases should have atleast one task for taskType: SWITCH taskName: {name}"
                ),
            );
        }
        Kind::Decision => {
            expect(
                has("caseValueParam") || has("caseExpression"),
                format!(
                    "caseValueParam or caseExpression should not be null for taskType: DECISION \
                     taskName: {name}"
                ),
            );
            let some = object(json, "decisionCases").is_some_and(|cases| !cases.is_empty());
            expect(
                some,
                format!(
                    "decisionCases should have atleast one task for taskType: DECISION taskName: {name}"
                ),
            );
        }
        Kind::Fork => {
            expect(
                !list(json, "forkTasks").is_empty(),
                format!(
                    "forkTasks should have atleast one task for taskType: FORK_JOIN taskName: {name}"
                ),
            );
            expect(
                join_follows(plan, node),
                format!("FORK_JOIN task {name} must be followed by a JOIN"),
            );
        }
        Kind::DynamicFork => {
            let both = has("dynamicForkTasksParam") && has("dynamicForkTasksInputParamName");
            let one_kind =
                inputs.get("forkTaskName").is_some() || inputs.get("forkTaskWorkflow").is_some();
            expect(
                both || has("dynamicForkJoinTasksParam") || one_kind,
                format!(
                    "dynamicForkTasksParam and dynamicForkTasksInputParamName, or forkTaskName or \
                     forkTaskWorkflow, should be given for taskType: FORK_JOIN_DYNAMIC taskName: {name}"
                ),
            );
            expect(
                join_follows(plan, node),
                format!("FORK_JOIN_DYNAMIC task {name} must be followed by a JOIN"),
            );
        }
        Kind::DoWhile => {
            let items = json.get("items").is_some() || inputs.get("_items").is_some();
            expect(has("loopCondition") || items, missing("loopCondition"));
            expect(!list(json, "loopOver").is_empty(), missing("loopOver"));
        }
        Kind::SubWorkflow => {
            let param = object(json, "subWorkflowParam");
            let named = param.is_some_and(|param| {
                param.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty())
                    || param.contains_key("workflowDefinition")
            });
            expect(named, missing("subWorkflowParam"));
        }
        Kind::StartWorkflow => {
            expect(inputs.get("startWorkflow").is_some(), missing("inputParameters.startWorkflow"));
        }
        Kind::Terminate => {
            let status = inputs.get("terminationStatus").and_then(Value::as_str).unwrap_or("");
            expect(
                matches!(status, "COMPLETED" | "FAILED" | "TERMINATED") || status.starts_with("${"),
                format!(
                    "terminate task must have an terminationStatus parameter and must be set to \
                     COMPLETED or FAILED or TERMINATED, taskName: {name}"
                ),
            );
            expect(!node.optional, format!("terminate task cannot be optional, taskName: {name}"));
        }
        Kind::Wait => {
            let both = inputs.get("duration").is_some() && inputs.get("until").is_some();
            expect(
                !both,
                format!(
                    "Both 'duration' and 'until' specified. Please provide only one input for task {name}"
                ),
            );
        }
        Kind::Inline => expect(
            inputs.get("expression").is_some() || has("expression"),
            missing("inputParameters.expression"),
        ),
        Kind::Lambda => expect(
            inputs.get("scriptExpression").is_some() || has("scriptExpression"),
            missing("inputParameters.scriptExpression"),
        ),
        Kind::Jq => expect(
            inputs.get("queryExpression").is_some(),
            missing("inputParameters.queryExpression"),
        ),
        Kind::Event => expect(has("sink"), missing("sink")),
        Kind::Builtin if &*node.type_name == "KAFKA_PUBLISH" => {
            expect(inputs.get("kafka_request").is_some(), missing("inputParameters.kafka_request"));
        }
        Kind::Builtin => expect(
            inputs.get("http_request").is_some()
                || inputs.get("uri").is_some()
                || json.pointer("/taskDefinition/inputTemplate").is_some()
                || flag(json, "asyncComplete"),
            missing("inputParameters.http_request"),
        ),
        Kind::Simple
        | Kind::Join
        | Kind::ExclusiveJoin
        | Kind::SetVariable
        | Kind::Human
        | Kind::Noop
        | Kind::UserDefined => {}
    }
}

fn join_follows(plan: &Plan, node: &Node) -> bool {
    match node.next {
        super::Next::Task(next) => {
            matches!(plan.node(next).kind, Kind::Join | Kind::ExclusiveJoin)
        }
        super::Next::Loop | super::Next::End => false,
    }
}
