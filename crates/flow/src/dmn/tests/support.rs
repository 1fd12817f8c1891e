//! What the tests of decisions share: documents around snippets, variables from JSON.

use std::sync::Arc;

use crate::feel::{Budget, Context, Environment, Value};

use crate::dmn::{Evaluation, Model};

/// A document of DMN 1.3 with these elements in it.
pub(super) fn document(elements: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="drg" name="DRG"
    namespace="http://camunda.org/schema/1.0/dmn">{elements}</definitions>"#
    )
}

/// The model of a document that has no problem.
pub(super) fn model(xml: &str) -> Model {
    crate::dmn::parse(xml.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?} in {xml}"))
}

/// The variables that a JSON object holds.
pub(super) fn variables(json: &str) -> Arc<Context> {
    match Value::from_json(json) {
        Ok(Value::Context(context)) => context,
        other => panic!("{json} is no object: {other:?}"),
    }
}

/// What comes of a decision with the variables of a JSON object.
pub(super) fn evaluate(model: &Model, id: &str, json: &str) -> Evaluation {
    evaluate_within(model, id, json, &mut Budget::default())
}

/// What comes of a decision within a budget.
pub(super) fn evaluate_within(
    model: &Model,
    id: &str,
    json: &str,
    budget: &mut Budget,
) -> Evaluation {
    let environment = Environment { now_ms: 1_767_225_600_000, seed: 7 };
    model.evaluate(id, &*variables(json), &environment, budget)
}

/// The output in JSON, or the failure in words.
pub(super) fn outcome(evaluation: &Evaluation) -> String {
    match &evaluation.output {
        Ok(value) => value.to_json(),
        Err(failure) => format!("{} failed: {}", failure.failed_decision, failure.reason),
    }
}
