//! Hit policies: how the outputs of the rules that match become the output of a table.

use std::mem::discriminant;

use crate::feel::{Decimal, Value};

use super::evaluate::{Frame, Run};
use super::evaluation::Reason;
use super::model::{Aggregation, DecisionTable, HitPolicy};
use super::table::Outputs;

impl Run<'_> {
    /// The output of a table of whose rules at least one matches.
    pub(super) fn apply_hit_policy(
        &mut self,
        table: &DecisionTable,
        mut outputs: Vec<Outputs>,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        match table.hit_policy {
            HitPolicy::First => self.first(outputs),
            HitPolicy::Unique if outputs.len() > 1 => {
                Err(Reason::SeveralRulesMatch(Reason::quote(&self.all(outputs)?)))
            }
            HitPolicy::Unique => self.first(outputs),
            HitPolicy::Any if !all_same(&outputs) => {
                Err(Reason::RulesDisagree(Reason::quote(&self.all(outputs)?)))
            }
            HitPolicy::Any => self.first(outputs),
            HitPolicy::Priority => {
                self.sort_by_priority(table, &mut outputs, frame)?;
                self.first(outputs)
            }
            HitPolicy::OutputOrder => {
                self.sort_by_priority(table, &mut outputs, frame)?;
                self.all(outputs)
            }
            HitPolicy::RuleOrder | HitPolicy::Collect(Aggregation::List) => self.all(outputs),
            HitPolicy::Collect(Aggregation::Count) => Ok(Value::Number(outputs.len().into())),
            HitPolicy::Collect(Aggregation::Sum) => {
                let sum = numbers(outputs)?
                    .into_iter()
                    .try_fold(Decimal::ZERO, |sum, number| sum.checked_add(number));
                Ok(sum.map_or(Value::Null, Value::Number))
            }
            HitPolicy::Collect(Aggregation::Min) => {
                Ok(numbers(outputs)?.into_iter().min().map_or(Value::Null, Value::Number))
            }
            HitPolicy::Collect(Aggregation::Max) => {
                Ok(numbers(outputs)?.into_iter().max().map_or(Value::Null, Value::Number))
            }
        }
    }

    /// Orders rules by the places of their outputs among the values allowed for them, the first
    /// column first. Values that are not among them come last; equals stay in the order of rules.
    fn sort_by_priority(
        &mut self,
        table: &DecisionTable,
        outputs: &mut Vec<Outputs>,
        frame: &Frame<'_>,
    ) -> Result<(), Reason> {
        let mut allowed = Vec::with_capacity(table.outputs.len());
        for output in &table.outputs {
            let values = match &output.allowed {
                Some(expression) => self.expression(expression, frame)?,
                None => Value::Null,
            };
            allowed.push(values);
        }
        let mut ranked = Vec::with_capacity(outputs.len());
        for own in outputs.drain(..) {
            let mut ranks = Vec::with_capacity(allowed.len());
            for ((_, value), values) in own.iter().zip(&allowed) {
                if let Value::List(values) = values {
                    self.walk(values.len())?;
                }
                ranks.push(rank(value, values));
            }
            ranked.push((ranks, own));
        }
        ranked.sort_by(|(left, _), (right, _)| left.cmp(right));
        outputs.extend(ranked.into_iter().map(|(_, own)| own));
        Ok(())
    }

    /// The outputs of one rule as one value: a context, if there are several.
    pub(super) fn single(&mut self, mut outputs: Outputs) -> Result<Value, Reason> {
        if outputs.len() > 1 {
            return self.built(Value::context(outputs));
        }
        Ok(outputs.pop().map_or(Value::Null, |(_, value)| value))
    }

    fn first(&mut self, outputs: Vec<Outputs>) -> Result<Value, Reason> {
        match outputs.into_iter().next() {
            Some(outputs) => self.single(outputs),
            None => Ok(Value::Null),
        }
    }

    fn all(&mut self, outputs: Vec<Outputs>) -> Result<Value, Reason> {
        let values: Result<Vec<Value>, Reason> =
            outputs.into_iter().map(|own| self.single(own)).collect();
        self.built(Value::list(values?))
    }
}

fn numbers(outputs: Vec<Outputs>) -> Result<Vec<Decimal>, Reason> {
    let values = outputs.into_iter().flatten().map(|(_, value)| {
        let Value::Number(number) = value else {
            return Err(Reason::NotANumber(Reason::quote(&value)));
        };
        Ok(number)
    });
    values.collect()
}

fn all_same(outputs: &[Outputs]) -> bool {
    let Some((first, others)) = outputs.split_first() else {
        return true;
    };
    others.iter().all(|own| {
        own.len() == first.len()
            && own.iter().zip(first).all(|((_, left), (_, right))| same(left, right))
    })
}

fn rank(value: &Value, allowed: &Value) -> usize {
    let Value::List(allowed) = allowed else {
        return usize::MAX;
    };
    allowed.iter().position(|own| same(own, value)).unwrap_or(usize::MAX)
}

/// Whether two outputs are the same. Times are, if they are written the same.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| same(a, b))
        }
        (Value::Context(left), Value::Context(right)) => {
            left.len() == right.len()
                && left
                    .entries()
                    .iter()
                    .all(|(name, value)| right.get(name).is_some_and(|own| same(value, own)))
        }
        (left, right) => {
            discriminant(left) == discriminant(right) && left.to_json() == right.to_json()
        }
    }
}
