//! FEEL: the expression language of BPMN and DMN, with null where Camunda is lenient.
//!
//! [`parse`] once, at deployment; [`Expression::evaluate`] often. An evaluation sees the variables
//! of its [`Scope`] and the time of its [`Environment`], and nothing else; it is bounded by its
//! [`Budget`]. What has no answer (a missing variable, a wrong type) is null and no error: an
//! [`EvaluationError`] means that a bound was reached or that an `assert` of the author failed.

mod arithmetic;
mod builtin;
mod compare;
mod evaluate;
pub mod function;
mod iterate;
mod json;
mod kind;
mod locals;
mod node;
mod number;
mod parse;
mod property;
mod scan;
pub mod temporal;
#[cfg(test)]
mod tests;
mod text;
pub mod value;

pub use rust_decimal::Decimal;

pub use function::{Function, Invocable};
pub use temporal::{Date, DateTime, DaysDuration, NamedZone, Time, YearsDuration, Zone};
pub use value::{Context, List, Range, Value};

use std::fmt;
use std::sync::Arc;

use evaluate::Machine;
use kind::DefinedKind;
use locals::Locals;
use node::{Node, Test};

/// An expression, parsed.
#[derive(Clone, Debug)]
pub struct Expression {
    node: Arc<Node>,
}

/// The tests of one cell of a decision table, parsed.
#[derive(Clone, Debug)]
pub struct UnaryTests {
    /// None at all means that any input passes.
    tests: Arc<[Test]>,
    negated: bool,
}

/// Names of variables that a plain FEEL name cannot spell, such as `Monthly Salary`.
///
/// Models of DMN use them unquoted; a parser can only know where they end if it knows them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<String>,
    kinds: Vec<DefinedKind>,
}

/// Why a text is not FEEL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where in the text, in bytes.
    pub position: usize,
    /// What was expected or found, as a lowercase fragment.
    pub message: String,
}

/// The variables an expression can see.
pub trait Scope {
    /// The value of a variable, if there is one.
    fn get(&self, name: &str) -> Option<Value>;
}

/// What an expression can see besides variables.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Milliseconds since 1970 in UTC: what `now()` and `today()` say.
    pub now_ms: u64,
    /// What `uuid()` and `random number()` are derived from: the same seed, the same values.
    pub seed: u64,
}

/// How much an evaluation may still do. It may serve several evaluations one after the other.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Steps: nodes of the expression, items of lists, characters of strings looked at.
    pub steps_left: u64,
    /// Bytes, roughly, of all values built on the way, whether or not they end in the result.
    pub size_left: u64,
    /// How many evaluations may still lie inside one another. Each takes about a kilobyte of stack.
    pub depth_left: u32,
}

/// Why an evaluation gave no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationError {
    /// It took more steps than its budget.
    StepsExhausted,
    /// It built more than its budget.
    SizeExhausted,
    /// Expressions, invocations or values lie too deeply inside one another.
    TooDeep,
    /// The author's own `assert` did not hold; the text is theirs.
    AssertionFailed(String),
}

/// Why a text is not JSON that FEEL can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What was wrong and where, as a lowercase fragment.
    pub message: String,
}

/// Parses one expression, without the `=` that introduces it in BPMN.
pub fn parse(source: &str) -> Result<Expression, ParseError> {
    parse_with(source, &Names::default())
}

/// Parses one expression that may use these names unquoted.
pub fn parse_with(source: &str, names: &Names) -> Result<Expression, ParseError> {
    let node = parse::Parser::new(scan::Scanner::new(source, names)).whole()?;
    Ok(Expression { node: Arc::new(node) })
}

/// Parses the tests of one cell of a decision table.
pub fn parse_unary_tests(source: &str) -> Result<UnaryTests, ParseError> {
    parse_unary_tests_with(source, &Names::default())
}

/// Parses the tests of one cell of a decision table that may use these names unquoted.
pub fn parse_unary_tests_with(source: &str, names: &Names) -> Result<UnaryTests, ParseError> {
    let (negated, tests) = parse::Parser::new(scan::Scanner::new(source, names)).whole_tests()?;
    Ok(UnaryTests { tests: tests.into(), negated })
}

impl Expression {
    /// The variable that it is, when it is nothing else.
    pub fn as_variable(&self) -> Option<&str> {
        if let Node::Name(name) = &*self.node { Some(name) } else { None }
    }

    /// The value of this expression.
    pub fn evaluate(
        &self,
        scope: &dyn Scope,
        environment: &Environment,
        budget: &mut Budget,
    ) -> Result<Value, EvaluationError> {
        let depth_left = budget.depth_left;
        let outcome = Machine::new(scope, environment, budget).value(&self.node, None);
        budget.depth_left = depth_left;
        outcome
    }
}

impl UnaryTests {
    /// Whether `input` passes one of the tests.
    pub fn matches(
        &self,
        input: &Value,
        scope: &dyn Scope,
        environment: &Environment,
        budget: &mut Budget,
    ) -> Result<bool, EvaluationError> {
        if self.tests.is_empty() {
            return Ok(true);
        }
        let depth_left = budget.depth_left;
        let locals = Locals::input(None, input);
        let answer =
            Machine::new(scope, environment, budget).any_test(input, &self.tests, Some(&locals));
        budget.depth_left = depth_left;
        Ok(answer? == Some(!self.negated))
    }
}

impl Value {
    /// The value of a JSON text.
    pub fn from_json(text: &str) -> Result<Value, JsonError> {
        json::read(text)
    }

    /// This value as JSON; dates, times and durations become text, functions null.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text);
        text
    }

    /// Appends this value as JSON.
    pub fn write_json(&self, text: &mut String) {
        json::write(self, text);
    }
}

impl Names {
    /// Allows this name unquoted. Spaces in it stand for any white space.
    pub fn allow(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    /// Says what a type of a model is, in the words of FEEL, such as `list<number>` or
    /// `context<a: string>`; it may use types that were defined before. `instance of` knows it then.
    pub fn define_type(&mut self, name: &str, definition: &str) -> Result<(), ParseError> {
        let parser = parse::Parser::new(scan::Scanner::new(definition, self));
        let (kind, depth) = parser.whole_kind()?;
        self.kinds.push(DefinedKind { name: name.to_owned(), kind, depth });
        Ok(())
    }
}

impl Scope for Context {
    fn get(&self, name: &str) -> Option<Value> {
        Context::get(self, name).cloned()
    }
}

impl Default for Budget {
    /// Enough for what people write, and at worst some tens of milliseconds.
    fn default() -> Budget {
        Budget { steps_left: 1_000_000, size_left: 64 * 1024 * 1024, depth_left: 512 }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at byte {}", self.message, self.position)
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for EvaluationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluationError::StepsExhausted => {
                formatter.write_str("the expression takes too many steps")
            }
            EvaluationError::SizeExhausted => {
                formatter.write_str("the expression builds too large values")
            }
            EvaluationError::TooDeep => formatter.write_str("the expression nests too deeply"),
            EvaluationError::AssertionFailed(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for EvaluationError {}

impl fmt::Display for JsonError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for JsonError {}
