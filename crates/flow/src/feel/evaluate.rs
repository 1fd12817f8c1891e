//! The evaluator: a walk over the tree, every step of it counted.

use std::sync::Arc;

use regex::Regex;

use super::function::Function;
use super::locals::{Locals, Outer};
use super::node::{Comparison, Node, Operator, RangeNode, Step, Test};
use super::value::{Range, Value};
use super::{Budget, Environment, EvaluationError, Scope, arithmetic, compare, property};

/// How many lists and contexts may lie inside one another in a value.
pub(crate) const VALUE_DEPTH_MAX: u32 = 256;

/// How many bytes of a value are looked at in one step.
const BYTES_PER_STEP: u64 = 32;

/// The steps of a power, a logarithm and the like, which are sums of many terms.
pub(crate) const SERIES_STEPS: u64 = 200;

pub(crate) type Outcome = Result<Value, EvaluationError>;

/// The answer of a test in three-valued logic; `None` is null.
pub(crate) type Answer = Result<Option<bool>, EvaluationError>;

/// One evaluation.
pub(crate) struct Machine<'a> {
    pub(crate) scope: &'a dyn Scope,
    pub(crate) environment: &'a Environment,
    pub(crate) budget: &'a mut Budget,
    /// The patterns compiled so far, so that a filter compiles its own once.
    pub(crate) patterns: Vec<Pattern>,
}

/// A compiled pattern: its text, its flags, and what came of it.
pub(crate) type Pattern = (Arc<str>, String, Option<Regex>);

impl<'a> Machine<'a> {
    pub(crate) fn new(
        scope: &'a dyn Scope,
        environment: &'a Environment,
        budget: &'a mut Budget,
    ) -> Machine<'a> {
        Machine { scope, environment, budget, patterns: Vec::new() }
    }
}

impl Machine<'_> {
    /// The value of a node.
    pub(crate) fn value(&mut self, node: &Node, locals: Outer<'_>) -> Outcome {
        self.spend(1)?;
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Name(name) => Ok(self.name(name, locals)),
            Node::Input => Ok(locals.and_then(Locals::find_input).cloned().unwrap_or_default()),
            Node::Postfix(..)
            | Node::Negate(_)
            | Node::Chain(..)
            | Node::Compare(..)
            | Node::All(_)
            | Node::Any(_)
            | Node::Between(_)
            | Node::In(..)
            | Node::InstanceOf(..)
            | Node::If(_)
            | Node::For(_)
            | Node::Quantified(..)
            | Node::List(_)
            | Node::Context(_)
            | Node::Range(_)
            | Node::Function(_)
            | Node::Call(_) => {
                self.enter()?;
                let outcome = self.inner(node, locals);
                self.leave();
                outcome
            }
        }
    }

    fn inner(&mut self, node: &Node, locals: Outer<'_>) -> Outcome {
        match node {
            Node::Literal(_) | Node::Name(_) | Node::Input => Ok(Value::Null),
            Node::Postfix(base, steps) => self.postfix(base, steps, locals),
            Node::Negate(node) => {
                Ok(arithmetic::negate(&self.value(node, locals)?).unwrap_or_default())
            }
            Node::Chain(first, rest) => self.chain(first, rest, locals),
            Node::Compare(comparison, sides) => {
                let left = self.value(&sides.0, locals)?;
                let right = self.value(&sides.1, locals)?;
                self.compare(*comparison, &left, &right).map(answer)
            }
            Node::All(nodes) => self.junction(nodes, false, locals),
            Node::Any(nodes) => self.junction(nodes, true, locals),
            Node::Between(nodes) => self.between(nodes, locals),
            Node::In(left, tests) => {
                let input = self.value(left, locals)?;
                self.any_test(&input, tests, locals).map(answer)
            }
            Node::InstanceOf(node, kind) => {
                let value = self.value(node, locals)?;
                self.look_at(&value)?;
                Ok(Value::Bool(kind.holds(&value)))
            }
            Node::If(nodes) => {
                let [condition, then, otherwise] = &**nodes;
                let holds = self.value(condition, locals)?.is_true();
                self.value(if holds { then } else { otherwise }, locals)
            }
            Node::For(iteration) => self.iteration(iteration, locals),
            Node::Quantified(quantifier, sources, body) => {
                self.quantified(*quantifier, sources, body, locals)
            }
            Node::List(nodes) => self.items(nodes, locals),
            Node::Context(entries) => self.context(entries, locals),
            Node::Range(range) => self.range(range, locals),
            Node::Function(definition) => self.function(definition, locals),
            Node::Call(call) => self.call(call, locals),
        }
    }

    /// What a name stands for; null if for nothing.
    pub(crate) fn name(&self, name: &str, locals: Outer<'_>) -> Value {
        match locals.and_then(|locals| locals.find(name)) {
            Some(value) => value.clone(),
            None => self.scope.get(name).unwrap_or_default(),
        }
    }

    fn postfix(&mut self, base: &Node, steps: &[Step], locals: Outer<'_>) -> Outcome {
        let mut value = self.value(base, locals)?;
        for step in steps {
            self.spend(1)?;
            value = match step {
                Step::Property(name) => self.property(&value, name)?,
                Step::Filter(condition) => self.filter(&value, condition, locals)?,
                Step::Call(arguments) => self.call_value(&value, arguments, locals)?,
            };
        }
        Ok(value)
    }

    fn property(&mut self, value: &Value, name: &str) -> Outcome {
        if let Some(context) = value.as_context() {
            return Ok(context.get(name).cloned().unwrap_or_default());
        }
        let Some(list) = value.as_list() else {
            return Ok(property::of(value, name).unwrap_or_default());
        };
        self.enter()?;
        let mut values = Vec::with_capacity(list.len());
        for item in list.iter() {
            self.spend(1)?;
            values.push(self.property(item, name)?);
        }
        self.leave();
        self.list(values)
    }

    fn chain(&mut self, first: &Node, rest: &[(Operator, Node)], locals: Outer<'_>) -> Outcome {
        let mut left = self.value(first, locals)?;
        for (operator, node) in rest {
            let right = self.value(node, locals)?;
            if *operator == Operator::Power {
                self.spend(SERIES_STEPS)?;
            }
            left = match arithmetic::apply(*operator, &left, &right) {
                None => Value::Null,
                Some(Value::Text(text)) => self.built(Value::Text(text))?,
                Some(value) => value,
            };
        }
        Ok(left)
    }

    pub(crate) fn compare(
        &mut self,
        comparison: Comparison,
        left: &Value,
        right: &Value,
    ) -> Answer {
        self.look_at(left)?;
        let order = || compare::order(left, right);
        Ok(match comparison {
            Comparison::Equal => compare::equality(left, right),
            Comparison::NotEqual => compare::equality(left, right).map(|equal| !equal),
            Comparison::Less => order().map(|order| order.is_lt()),
            Comparison::LessOrEqual => order().map(|order| order.is_le()),
            Comparison::Greater => order().map(|order| order.is_gt()),
            Comparison::GreaterOrEqual => order().map(|order| order.is_ge()),
        })
    }

    /// `and` (until one is false) or `or` (until one is true) in three-valued logic.
    fn junction(&mut self, nodes: &[Node], until: bool, locals: Outer<'_>) -> Outcome {
        let mut answer = Value::Bool(!until);
        for node in nodes {
            match self.value(node, locals)?.as_bool() {
                Some(found) if found == until => return Ok(Value::Bool(until)),
                Some(_) => {}
                None => answer = Value::Null,
            }
        }
        Ok(answer)
    }

    fn between(&mut self, nodes: &[Node; 3], locals: Outer<'_>) -> Outcome {
        let [value, low, high] = nodes;
        let value = self.value(value, locals)?;
        let low = self.value(low, locals)?;
        let high = self.value(high, locals)?;
        let from_low = self.compare(Comparison::GreaterOrEqual, &value, &low)?;
        let to_high = self.compare(Comparison::LessOrEqual, &value, &high)?;
        Ok(answer(match (from_low, to_high) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            (None, _) | (_, None) => None,
        }))
    }

    /// Whether the input passes one of these tests.
    pub(crate) fn any_test(&mut self, input: &Value, tests: &[Test], locals: Outer<'_>) -> Answer {
        let mut any = Some(false);
        for test in tests {
            match self.test(input, test, locals)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => any = None,
            }
        }
        Ok(any)
    }

    fn test(&mut self, input: &Value, test: &Test, locals: Outer<'_>) -> Answer {
        match test {
            Test::Compare(comparison, node) => {
                let end = self.value(node, locals)?;
                self.compare(*comparison, input, &end)
            }
            Test::Condition(node) => {
                let locals = Locals::input(locals, input);
                Ok(self.value(node, Some(&locals))?.as_bool())
            }
            Test::Value(Node::Literal(value @ Value::Bool(_))) => {
                self.compare(Comparison::Equal, input, value)
            }
            Test::Value(node) => {
                let value = self.value(node, locals)?;
                self.look_at(&value)?;
                if value.is_null() && matches!(node, Node::Range(_)) {
                    // A range with an end that is no value: nobody knows.
                    return Ok(None);
                }
                Ok(passes(input, &value))
            }
        }
    }

    fn items(&mut self, nodes: &[Node], locals: Outer<'_>) -> Outcome {
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            values.push(self.value(node, locals)?);
        }
        self.list(values)
    }

    fn context(&mut self, entries: &[(Arc<str>, Node)], locals: Outer<'_>) -> Outcome {
        let mut values: Vec<(Arc<str>, Value)> = Vec::with_capacity(entries.len());
        for (name, node) in entries {
            let inner = Locals::bindings(locals, &values);
            let mut value = self.value(node, Some(&inner))?;
            if let (Node::Function(_), Value::Function(function)) = (node, &value) {
                // So that it can invoke itself.
                value = Value::Function(Arc::new(function.named(name)));
            }
            values.push((Arc::clone(name), value));
        }
        self.built(Value::context(values))
    }

    fn range(&mut self, range: &RangeNode, locals: Outer<'_>) -> Outcome {
        let start = range.start.as_ref().map(|node| self.value(node, locals)).transpose()?;
        let end = range.end.as_ref().map(|node| self.value(node, locals)).transpose()?;
        let is_valid = match (&start, &end) {
            (Some(start), Some(end)) => {
                compare::order(start, end).is_some_and(std::cmp::Ordering::is_le)
            }
            (Some(end), None) | (None, Some(end)) => compare::order(end, end).is_some(),
            (None, None) => false,
        };
        if !is_valid {
            return Ok(Value::Null);
        }
        Ok(Value::Range(Arc::new(Range {
            start,
            start_included: range.start_included,
            end,
            end_included: range.end_included,
        })))
    }

    fn function(
        &mut self,
        definition: &Arc<super::node::Definition>,
        locals: Outer<'_>,
    ) -> Outcome {
        let mut captured = Vec::new();
        for name in &definition.mentions {
            self.spend(1)?;
            if let Some(value) = locals.and_then(|locals| locals.find(name)) {
                captured.push((Arc::clone(name), value.clone()));
            }
        }
        self.built(Value::Function(Arc::new(Function::defined(definition, captured))))
    }

    /// A list, if there is room for it.
    pub(crate) fn list(&mut self, values: Vec<Value>) -> Outcome {
        self.built(Value::list(values))
    }

    /// A value that was just built, if there is room for it. It counts with all that lies inside
    /// it, as often as it lies there: so that who looks at all of it is bounded as well.
    pub(crate) fn built(&mut self, value: Value) -> Outcome {
        if value.depth() > VALUE_DEPTH_MAX {
            return Err(EvaluationError::TooDeep);
        }
        if value.weight() > self.budget.size_left {
            return Err(EvaluationError::SizeExhausted);
        }
        let own = if let Some(list) = value.as_list() {
            size(list.len()).saturating_mul(BYTES_PER_STEP)
        } else if let Some(context) = value.as_context() {
            size(context.len()).saturating_mul(2 * BYTES_PER_STEP)
        } else {
            value.weight()
        };
        self.allocate(own)?;
        Ok(value)
    }

    /// Room for so many bytes.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<(), EvaluationError> {
        let left = self.budget.size_left.checked_sub(bytes);
        self.budget.size_left = left.ok_or(EvaluationError::SizeExhausted)?;
        self.spend(bytes / BYTES_PER_STEP)
    }

    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), EvaluationError> {
        let left = self.budget.steps_left.checked_sub(steps);
        self.budget.steps_left = left.ok_or(EvaluationError::StepsExhausted)?;
        Ok(())
    }

    /// The steps of looking at all of a value.
    pub(crate) fn look_at(&mut self, value: &Value) -> Result<(), EvaluationError> {
        self.spend(value.weight() / BYTES_PER_STEP)
    }

    pub(crate) fn enter(&mut self) -> Result<(), EvaluationError> {
        let left = self.budget.depth_left.checked_sub(1);
        self.budget.depth_left = left.ok_or(EvaluationError::TooDeep)?;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.budget.depth_left += 1;
    }
}

/// Lengths are at most as large as memory.
pub(crate) fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// An answer as a value.
pub(crate) fn answer(answer: Option<bool>) -> Value {
    answer.map_or(Value::Null, Value::Bool)
}

/// Whether an input passes a test that gave this value: it is true, or equals the input, or holds
/// it.
fn passes(input: &Value, value: &Value) -> Option<bool> {
    if value.is_true() {
        return Some(true);
    }
    if let Value::Range(range) = value
        && !matches!(input, Value::Range(_))
    {
        return compare::in_range(input, range);
    }
    if let Some(list) = value.as_list() {
        return Some(compare::same(input, value) || list.iter().any(|item| holds(item, input)));
    }
    match compare::equality(input, value) {
        None if value.as_bool() == Some(false) => Some(false),
        equal => equal,
    }
}

/// Whether the item of a list is the input, or a range that it lies in.
fn holds(item: &Value, input: &Value) -> bool {
    let in_range =
        matches!(item, Value::Range(range) if compare::in_range(input, range) == Some(true));
    in_range || compare::same(input, item)
}
