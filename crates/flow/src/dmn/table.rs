//! Decision tables: which rules match, and with which outputs.

use std::sync::Arc;

use crate::feel::Value;

use super::evaluate::{Frame, Run};
use super::evaluation::{EvaluatedInput, EvaluatedOutput, MatchedRule, Reason};
use super::expression::{ParsedTests, Tests};
use super::model::{DecisionTable, HitPolicy, Input, Rule};

/// The most characters of an expression that stand for the label of an input.
const INPUT_NAME_CHARS_MAX: usize = 30;

/// What happened in a table.
#[derive(Default)]
pub(super) struct TableTrace {
    pub(super) inputs: Vec<EvaluatedInput>,
    pub(super) rules: Vec<MatchedRule>,
}

/// The outputs of one rule, or the default ones.
pub(super) type Outputs = Vec<(Arc<str>, Value)>;

impl Run<'_> {
    /// The value of a table; the trace tells how far it came even if it fails.
    pub(super) fn table(
        &mut self,
        table: &DecisionTable,
        frame: &Frame<'_>,
        trace: &mut TableTrace,
    ) -> Result<Value, Reason> {
        let mut inputs = Vec::with_capacity(table.inputs.len());
        for input in &table.inputs {
            self.pay(2)?;
            let value = self.expression(&input.expression, frame)?;
            self.keep(&value)?;
            inputs.push(value);
        }
        let described = table.inputs.iter().zip(&inputs);
        trace.inputs = described.map(|(input, value)| evaluated_input(input, value)).collect();

        let mut matched = Vec::new();
        for (position, rule) in table.rules.iter().enumerate() {
            if self.matches(rule, &inputs, frame)? {
                matched.push((position, rule));
                if table.hit_policy == HitPolicy::First {
                    break;
                }
            }
        }
        if matched.is_empty() {
            return self.default_outputs(table, frame);
        }
        let mut outputs = Vec::with_capacity(matched.len());
        for (position, rule) in matched {
            let values = self.outputs(table, rule, frame)?;
            trace.rules.push(matched_rule(table, position, rule, &values));
            outputs.push(values);
        }
        self.apply_hit_policy(table, outputs, frame)
    }

    fn matches(
        &mut self,
        rule: &Rule,
        inputs: &[Value],
        frame: &Frame<'_>,
    ) -> Result<bool, Reason> {
        for (tests, input) in rule.tests.iter().zip(inputs) {
            self.pay(0)?;
            if !self.tests(tests, input, frame)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn tests(&mut self, tests: &Tests, input: &Value, frame: &Frame<'_>) -> Result<bool, Reason> {
        match tests.parsed() {
            Ok(ParsedTests::Anything) => Ok(true),
            Ok(ParsedTests::Tests(tests)) => {
                Ok(tests.matches(input, frame, self.environment, self.budget)?)
            }
            Err(rule) => Err(Reason::InvalidExpression(rule.clone())),
        }
    }

    fn outputs(
        &mut self,
        table: &DecisionTable,
        rule: &Rule,
        frame: &Frame<'_>,
    ) -> Result<Outputs, Reason> {
        let mut outputs = Vec::with_capacity(table.outputs.len());
        for (output, expression) in table.outputs.iter().zip(&rule.outputs) {
            self.pay(2)?;
            let value = self.expression(expression, frame)?;
            self.keep(&value)?;
            outputs.push((Arc::clone(&output.name), value));
        }
        Ok(outputs)
    }

    /// What holds if no rule matches: the outputs that have a default, or null.
    fn default_outputs(
        &mut self,
        table: &DecisionTable,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        let mut outputs = Vec::new();
        for output in &table.outputs {
            if let Some(default) = &output.default {
                self.pay(1)?;
                outputs.push((Arc::clone(&output.name), self.expression(default, frame)?));
            }
        }
        self.single(outputs)
    }
}

fn evaluated_input(input: &Input, value: &Value) -> EvaluatedInput {
    let name = match &input.label {
        Some(label) => label.clone(),
        None => input.expression.text().trim().chars().take(INPUT_NAME_CHARS_MAX).collect(),
    };
    EvaluatedInput { id: input.id.clone(), name, value: value.clone() }
}

fn matched_rule(
    table: &DecisionTable,
    position: usize,
    rule: &Rule,
    values: &Outputs,
) -> MatchedRule {
    let outputs = table.outputs.iter().zip(values).map(|(output, (name, value))| {
        let label = output.label.as_deref().map(Arc::from);
        EvaluatedOutput {
            id: output.id.clone(),
            name: label.unwrap_or_else(|| Arc::clone(name)),
            value: value.clone(),
        }
    });
    MatchedRule {
        id: rule.id.clone(),
        index: u32::try_from(position).unwrap_or(u32::MAX).saturating_add(1),
        outputs: outputs.collect(),
    }
}
