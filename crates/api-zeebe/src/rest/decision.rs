//! Decisions evaluated.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::decision;
use crate::protocol as p;
use crate::rest::Face;
use crate::rest::extract::{Body, Key, Shown};
use crate::rest::problem::Answered;
use crate::rest::shape::{Either, one_of, some_text, text};

pub(super) fn routes() -> Router<Face> {
    Router::new().route("/decision-definitions/evaluation", post(evaluate))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Evaluation {
    decision_definition_id: Option<String>,
    decision_definition_key: Option<Key>,
    variables: Option<Box<RawValue>>,
    tenant_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    decision_definition_id: String,
    decision_definition_key: Key,
    decision_definition_name: String,
    decision_definition_version: i32,
    decision_evaluation_key: Key,
    decision_instance_key: Key,
    decision_requirements_id: String,
    decision_requirements_key: Key,
    evaluated_decisions: Vec<Part>,
    failed_decision_definition_id: Option<String>,
    failure_message: Option<String>,
    output: String,
    tenant_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    decision_definition_id: String,
    decision_definition_name: String,
    decision_definition_version: i32,
    decision_definition_type: String,
    output: String,
    tenant_id: String,
    matched_rules: Vec<Rule>,
    evaluated_inputs: Vec<Input>,
    decision_definition_key: Key,
    decision_evaluation_instance_key: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    rule_id: String,
    rule_index: i32,
    evaluated_outputs: Vec<Output>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    output_id: String,
    output_name: String,
    output_value: String,
    rule_id: String,
    rule_index: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    input_id: String,
    input_name: String,
    input_value: String,
}

async fn evaluate(
    State(face): State<Face>,
    Body(asked): Body<Evaluation>,
) -> Answered<Shown<Evaluated>> {
    let names = ["decisionDefinitionId", "decisionDefinitionKey"];
    let id = asked.decision_definition_id.and_then(some_text);
    let (decision_id, decision_key) = match one_of(names, id, asked.decision_definition_key)? {
        Either::First(id) => (id, 0),
        Either::Second(Key(key)) => (String::new(), key),
    };
    let given = p::EvaluateDecisionRequest {
        decision_key,
        decision_id,
        variables: text(asked.variables),
        tenant_id: asked.tenant_id.unwrap_or_default(),
    };
    let of = decision::evaluate_decision(&face.gateway, given).await?;
    Ok(Shown(Evaluated {
        decision_definition_id: of.decision_id,
        decision_definition_key: Key(of.decision_key),
        decision_definition_name: of.decision_name,
        decision_definition_version: of.decision_version,
        decision_evaluation_key: Key(of.decision_evaluation_key),
        decision_instance_key: Key(of.decision_instance_key),
        decision_requirements_id: of.decision_requirements_id,
        decision_requirements_key: Key(of.decision_requirements_key),
        evaluated_decisions: of.evaluated_decisions.into_iter().map(show).collect(),
        failed_decision_definition_id: some_text(of.failed_decision_id),
        failure_message: some_text(of.failure_message),
        output: of.decision_output,
        tenant_id: of.tenant_id,
    }))
}

fn show(of: p::EvaluatedDecision) -> Part {
    let inputs = of.evaluated_inputs.into_iter().map(|input| Input {
        input_id: input.input_id,
        input_name: input.input_name,
        input_value: input.input_value,
    });
    Part {
        decision_definition_id: of.decision_id,
        decision_definition_name: of.decision_name,
        decision_definition_version: of.decision_version,
        decision_definition_type: of.decision_type,
        output: of.decision_output,
        tenant_id: of.tenant_id,
        matched_rules: of.matched_rules.into_iter().map(show_rule).collect(),
        evaluated_inputs: inputs.collect(),
        decision_definition_key: Key(of.decision_key),
        decision_evaluation_instance_key: of.decision_evaluation_instance_key,
    }
}

fn show_rule(of: p::MatchedDecisionRule) -> Rule {
    let p::MatchedDecisionRule { rule_id, rule_index, evaluated_outputs } = of;
    let outputs = evaluated_outputs.into_iter().map(|output| Output {
        output_id: output.output_id,
        output_name: output.output_name,
        output_value: output.output_value,
        rule_id: rule_id.clone(),
        rule_index,
    });
    let evaluated_outputs = outputs.collect();
    Rule { rule_id, rule_index, evaluated_outputs }
}
