//! Decisions.

use tonic::Status;
use windlass_gateway::Gateway;
use windlass_record::flow::{
    DecisionReference, EvaluateDecision, Evaluated, EvaluatedDecision, EvaluatedInput,
    EvaluatedOutput, FlowAnswer, FlowCommand, MatchedRule,
};

use crate::flow::{AskedOfFlows, ask, key, number, other_answer, version};
use crate::protocol as p;
use crate::queue::TENANT_DEFAULT;
use crate::{document, tenant};

pub(crate) async fn evaluate_decision(
    gateway: &Gateway,
    given: p::EvaluateDecisionRequest,
) -> Result<p::EvaluateDecisionResponse, Status> {
    let tenant = tenant::one("EvaluateDecision", &given.tenant_id)?;
    // The id counts more than the key.
    let decision = if given.decision_id.is_empty() {
        DecisionReference::Key(key(given.decision_key))
    } else {
        DecisionReference::Latest(given.decision_id.into())
    };
    let command = EvaluateDecision {
        tenant: tenant.into(),
        decision,
        variables: document::variables(&given.variables)?,
    };
    let command = FlowCommand::EvaluateDecision(command);
    match ask(gateway, AskedOfFlows::Evaluate, command).await? {
        FlowAnswer::Evaluated(evaluated) => Ok(show(*evaluated)),
        FlowAnswer::Done
        | FlowAnswer::Deployed(_)
        | FlowAnswer::InstanceCreated { .. }
        | FlowAnswer::Key(_)
        | FlowAnswer::Correlated { .. }
        | FlowAnswer::UserTaskPending { .. }
        | FlowAnswer::Workflow(_) => Err(other_answer()),
    }
}

fn show(evaluated: Evaluated) -> p::EvaluateDecisionResponse {
    let decision = evaluated.decision;
    let instance = number(evaluated.instance);
    let decisions = evaluated.decisions.into_iter().enumerate();
    p::EvaluateDecisionResponse {
        decision_key: number(decision.key),
        decision_id: decision.id.to_string(),
        decision_name: decision.name.to_string(),
        decision_version: version(decision.version),
        decision_requirements_id: decision.group_id.to_string(),
        decision_requirements_key: number(decision.group),
        decision_output: evaluated.output,
        evaluated_decisions: decisions
            .map(|(index, decision)| show_one(instance, index + 1, decision))
            .collect(),
        failed_decision_id: evaluated.failed_id,
        failure_message: evaluated.failure,
        tenant_id: TENANT_DEFAULT.to_owned(),
        decision_instance_key: instance,
        decision_evaluation_key: instance,
    }
}

fn show_one(instance: i64, place: usize, decision: EvaluatedDecision) -> p::EvaluatedDecision {
    let definition = decision.definition;
    p::EvaluatedDecision {
        decision_key: number(definition.key),
        decision_id: definition.id.to_string(),
        decision_name: definition.name.to_string(),
        decision_version: version(definition.version),
        decision_type: decision.decision_type,
        decision_output: decision.output,
        matched_rules: decision.rules.into_iter().map(show_rule).collect(),
        evaluated_inputs: decision.inputs.into_iter().map(show_input).collect(),
        tenant_id: TENANT_DEFAULT.to_owned(),
        decision_evaluation_instance_key: format!("{instance}-{place}"),
    }
}

fn show_input(input: EvaluatedInput) -> p::EvaluatedDecisionInput {
    let EvaluatedInput { id, name, value } = input;
    p::EvaluatedDecisionInput { input_id: id, input_name: name, input_value: value }
}

fn show_rule(rule: MatchedRule) -> p::MatchedDecisionRule {
    p::MatchedDecisionRule {
        rule_id: rule.id,
        rule_index: version(rule.index),
        evaluated_outputs: rule.outputs.into_iter().map(show_output).collect(),
    }
}

fn show_output(output: EvaluatedOutput) -> p::EvaluatedDecisionOutput {
    let EvaluatedOutput { id, name, value } = output;
    p::EvaluatedDecisionOutput { output_id: id, output_name: name, output_value: value }
}
