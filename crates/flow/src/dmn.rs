//! DMN: decision tables, boxed expressions and the graph of requirements between decisions.
//!
//! [`parse`] once, at deployment; [`Model::evaluate`] often. An evaluation sees the variables it is
//! given, the time of its [`feel::Environment`](crate::feel::Environment) and nothing else, and is
//! bounded by its [`feel::Budget`](crate::feel::Budget).
//!
//! Reading order: `model` says what a model holds; `xml`, `names`, `parse`, `parse_logic`,
//! `parse_table` and `requirements` read one; `evaluate`, `logic`, `table`, `hit_policy` and
//! `function` evaluate it, and `evaluation` says what came of it.
//!
//! Answers are Camunda's where Camunda and the standard differ: no rule that matches gives null (or
//! the default outputs) for every hit policy, and a value of the wrong type fails the decision.
//!
//! Absent: imports, decision services, functions in Java or PMML, item definitions (allowed values
//! are read for the order of outputs but not enforced).

mod evaluate;
mod evaluation;
mod expression;
mod function;
mod hit_policy;
mod logic;
mod model;
mod names;
mod parse;
mod parse_logic;
mod parse_table;
mod problem;
mod requirements;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod xml;

pub use evaluation::{
    EvaluatedDecision, EvaluatedInput, EvaluatedOutput, Evaluation, Failure, MatchedRule, Reason,
};
pub use expression::{Expression, Tests};
pub use model::{
    Aggregation, Binding, Conditional, ContextEntry, Decision, DecisionKind, DecisionTable, Filter,
    FunctionDefinition, HitPolicy, Input, Invocation, Iteration, IterationKind, Knowledge, Logic,
    Model, Output, Parameter, Relation, RequiredInput, Rule,
};
pub use parse::{parse, parse_leniently};
pub use problem::{Problem, ProblemRule};
