//! What came of evaluating a decision.

use std::fmt;
use std::sync::Arc;

use crate::feel::{EvaluationError, Value};

use super::model::DecisionKind;
use super::problem::ProblemRule;

/// The most bytes of a value that a failure quotes.
const QUOTE_BYTES_MAX: usize = 500;

/// What came of evaluating a decision.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The output of the decision, or which decision on the way to it failed.
    pub output: Result<Value, Failure>,
    /// The decisions that were evaluated, in order, and before each one the knowledge models it
    /// invoked, as often as it did; a failed one is the last.
    pub decisions: Vec<EvaluatedDecision>,
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The id of the decision that failed.
    pub failed_decision: String,
    /// Why.
    pub reason: Reason,
}

/// Why a decision failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// There is no decision with this id.
    UnknownDecision(String),
    /// An expression of the model is none; only in models that were read leniently.
    InvalidExpression(ProblemRule),
    /// An expression reached a bound or asserted what does not hold.
    Expression(EvaluationError),
    /// Several rules match, and one may. Their outputs, in JSON.
    SeveralRulesMatch(String),
    /// Rules match that do not agree. Their outputs, in JSON.
    RulesDisagree(String),
    /// An output is to be aggregated and is no number. It, in JSON.
    NotANumber(String),
    /// A value is not of the type that the model gives it.
    WrongType {
        /// The type.
        expected: String,
        /// The value, in JSON.
        found: String,
    },
    /// An invocation does not give this parameter.
    ParameterMissing(String),
    /// A condition is neither true nor false. Its value, in JSON.
    NotACondition(String),
    /// What is to be looked at item by item is not a list. It, in JSON.
    NotAList(String),
    /// More functions were made than a model may make.
    TooManyFunctions,
}

/// A decision or knowledge model that was evaluated.
#[derive(Clone, Debug)]
pub struct EvaluatedDecision {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: DecisionKind,
    /// Its output; null if it failed.
    pub output: Value,
    /// The values of a table's inputs.
    pub inputs: Vec<EvaluatedInput>,
    /// The rules of a table that matched, in the order of the table.
    pub rules: Vec<MatchedRule>,
}

/// The value of an input of a table.
#[derive(Clone, Debug)]
pub struct EvaluatedInput {
    /// The input's id.
    pub id: String,
    /// The input's label, or else the start of its expression.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// A rule of a table that matched.
#[derive(Clone, Debug)]
pub struct MatchedRule {
    /// The rule's id.
    pub id: String,
    /// Its place in the table, from 1.
    pub index: u32,
    /// The values of its outputs.
    pub outputs: Vec<EvaluatedOutput>,
}

/// The value of an output of a rule.
#[derive(Clone, Debug)]
pub struct EvaluatedOutput {
    /// The output's id.
    pub id: String,
    /// The output's label, or else its name.
    pub name: Arc<str>,
    /// The value.
    pub value: Value,
}

impl Evaluation {
    /// The decision that failed, if one did.
    pub fn failed_decision(&self) -> Option<&str> {
        self.output.as_ref().err().map(|failure| failure.failed_decision.as_str())
    }

    /// Why evaluating `decision_id` failed, in the words of the protocol, if it did.
    pub fn failure_message(&self, decision_id: &str) -> Option<String> {
        let failure = self.output.as_ref().err()?;
        Some(format!("Expected to evaluate decision '{decision_id}', but {}", failure.reason))
    }
}

impl Reason {
    /// A value as a reason quotes it.
    pub(super) fn quote(value: &Value) -> String {
        let mut text = value.to_json();
        if text.len() > QUOTE_BYTES_MAX {
            let cut = (0..=QUOTE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(cut.unwrap_or(0));
            text.push('…');
        }
        text
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::UnknownDecision(id) => write!(formatter, "no decision found with id '{id}'"),
            Reason::InvalidExpression(rule) => write!(formatter, "{rule}"),
            Reason::Expression(error) => write!(formatter, "{error}"),
            Reason::SeveralRulesMatch(found) => write!(
                formatter,
                "multiple values aren't allowed for UNIQUE hit policy. found: '{found}'"
            ),
            Reason::RulesDisagree(found) => write!(
                formatter,
                "different values aren't allowed for ANY hit policy. found: '{found}'"
            ),
            Reason::NotANumber(found) => write!(formatter, "expected number but found '{found}'"),
            Reason::WrongType { expected, found } => {
                write!(formatter, "expected '{expected}' but found '{found}'")
            }
            Reason::ParameterMissing(name) => {
                write!(formatter, "no parameter found with name '{name}'")
            }
            Reason::NotACondition(found) => {
                write!(formatter, "expected 'boolean' but found '{found}'")
            }
            Reason::NotAList(found) => write!(formatter, "expected 'list' but found '{found}'"),
            Reason::TooManyFunctions => formatter.write_str("too many functions are made"),
        }
    }
}

impl From<EvaluationError> for Reason {
    fn from(error: EvaluationError) -> Reason {
        Reason::Expression(error)
    }
}
