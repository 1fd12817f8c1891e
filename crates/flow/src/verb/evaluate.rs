//! Evaluate a decision. Changes nothing, but the evaluation's key is used up.

use std::collections::BTreeMap;

use windlass_record::flow::{
    DecisionReference, DefinitionKind, EvaluateDecision, Evaluated, EvaluatedDecision,
    EvaluatedInput, EvaluatedOutput, FlowAnswer, FlowEvent, FlowRejection, Key, MatchedRule,
};

use super::deploy::described;
use crate::feel::{Budget, Environment, Scope, Value};
use crate::graph::Text;
use crate::kernel::Port;
use crate::kernel::variables::split;

/// The variables that came with the command.
struct Given(BTreeMap<Text, Value>);

impl Scope for Given {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

/// Decides [`EvaluateDecision`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &EvaluateDecision,
) -> Result<FlowAnswer, FlowRejection> {
    let state = port.state();
    let (key, missing) = match &command.decision {
        DecisionReference::Key(key) => {
            (Some(*key), FlowRejection::DecisionKeyNotFound { key: *key })
        }
        DecisionReference::Latest(id) => (
            state.latest(&command.tenant, DefinitionKind::Decision, id),
            FlowRejection::DecisionNotFound { id: (&**id).into() },
        ),
    };
    let found = key.and_then(|key| Some((key, state.definition(key)?)));
    let Some((key, definition)) = found.filter(|(_, it)| it.kind == DefinitionKind::Decision)
    else {
        return Err(missing);
    };
    let (Some(model), Some(decision)) = (definition.model.clone(), described(state, key)) else {
        return Err(missing);
    };
    let given = split(&command.variables)?;
    let given = given
        .into_iter()
        .filter_map(|(name, value)| Some((name, Value::from_json(&value).ok()?)))
        .collect();

    // Cannot fail from here.
    let instance = port.next_key();
    port.emit(FlowEvent::KeyUsed { key: instance });
    let environment = Environment { now_ms: port.now_ms(), seed: instance.raw() };
    let mut budget = Budget::default();
    let evaluation = model.evaluate(&decision.id, &Given(given), &environment, &mut budget);
    let decisions = evaluation
        .decisions
        .iter()
        .filter_map(|evaluated| told(port, &command.tenant, key, evaluated))
        .collect();
    Ok(FlowAnswer::Evaluated(Box::new(Evaluated {
        output: evaluation.output.as_ref().map_or_else(|_| "null".to_owned(), Value::to_json),
        failed_id: evaluation.failed_decision().unwrap_or_default().to_owned(),
        failure: evaluation.failure_message(&decision.id).unwrap_or_default(),
        decisions,
        instance,
        decision,
    })))
}

/// An evaluated decision as clients see it: the version that stands in the same file.
fn told<P: Port>(
    port: &P,
    tenant: &str,
    asked: Key,
    evaluated: &crate::dmn::EvaluatedDecision,
) -> Option<EvaluatedDecision> {
    let state = port.state();
    let group = state.definition(asked)?.group;
    let versions = state.all_versions(tenant, DefinitionKind::Decision, &evaluated.id);
    let of_group = |key: &&Key| state.definition(**key).is_some_and(|it| it.group == group);
    let definition = described(state, *versions.iter().find(of_group)?)?;
    Some(EvaluatedDecision {
        definition,
        decision_type: evaluated.kind.word().to_owned(),
        output: evaluated.output.to_json(),
        inputs: evaluated
            .inputs
            .iter()
            .map(|input| EvaluatedInput {
                id: input.id.clone(),
                name: input.name.clone(),
                value: input.value.to_json(),
            })
            .collect(),
        rules: evaluated
            .rules
            .iter()
            .map(|rule| MatchedRule {
                id: rule.id.clone(),
                index: rule.index,
                outputs: rule
                    .outputs
                    .iter()
                    .map(|output| EvaluatedOutput {
                        id: output.id.clone(),
                        name: output.name.to_string(),
                        value: output.value.to_json(),
                    })
                    .collect(),
            })
            .collect(),
    })
}
