//! What looks at many values in turn: `for`, `some`, `every`, filters.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::EvaluationError;
use super::evaluate::{Machine, Outcome};
use super::locals::{Locals, Outer};
use super::node::{For, Items, Node, Quantifier, Source};
use super::temporal::Date;
use super::value::{List, Range, Value};

/// What happens with the names bound; `false` ends the iteration.
type Visit<'v> = &'v mut dyn FnMut(&mut Machine<'_>, Outer<'_>) -> Result<bool, EvaluationError>;

/// Values in turn, without all of them being there.
enum Walk {
    Items(List, usize),
    /// The next number, the last, and which way.
    Numbers(Decimal, Decimal, Decimal),
    /// The next day, the last, and which way.
    Days(i64, i64, i64),
    Ended,
}

impl Iterator for Walk {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        match self {
            Walk::Items(list, at) => {
                let value = list.get(*at)?.clone();
                *at += 1;
                Some(value)
            }
            Walk::Numbers(next, last, step) => {
                let number = *next;
                let ended = if step.is_sign_positive() { number > *last } else { number < *last };
                match number.checked_add(*step) {
                    Some(following) if !ended => *next = following,
                    Some(_) | None => *self = Walk::Ended,
                }
                (!ended).then_some(Value::Number(number))
            }
            Walk::Days(next, last, step) => {
                let day = *next;
                let ended = if *step > 0 { day > *last } else { day < *last };
                if ended {
                    return None;
                }
                *next += *step;
                Date::from_days(day).map(Value::Date)
            }
            Walk::Ended => None,
        }
    }
}

impl Walk {
    /// From one value to another, up or down.
    fn between(from: &Value, to: &Value) -> Option<Walk> {
        match (from, to) {
            (Value::Number(from), Value::Number(to)) => {
                let step = if from <= to { Decimal::ONE } else { Decimal::NEGATIVE_ONE };
                Some(Walk::Numbers(*from, *to, step))
            }
            (Value::Date(from), Value::Date(to)) => {
                Some(Walk::Days(from.days(), to.days(), if from <= to { 1 } else { -1 }))
            }
            _ => None,
        }
    }

    fn of_range(range: &Range) -> Option<Walk> {
        let walk = Walk::between(range.start.as_ref()?, range.end.as_ref()?)?;
        let skip = i64::from(!range.start_included);
        let stop = i64::from(!range.end_included);
        match walk {
            Walk::Numbers(from, to, step) => {
                if !from.is_integer() || !to.is_integer() {
                    return None;
                }
                let from = from.checked_add(Decimal::from(skip))?;
                Some(Walk::Numbers(from, to.checked_sub(Decimal::from(stop))?, step.abs()))
            }
            Walk::Days(from, to, _) => Some(Walk::Days(from + skip, to - stop, 1)),
            Walk::Items(..) | Walk::Ended => None,
        }
    }

    fn of(value: Value) -> Option<Walk> {
        if let Value::Range(range) = &value {
            return Walk::of_range(range);
        }
        value.to_list().map(|list| Walk::Items(list, 0))
    }
}

impl Machine<'_> {
    /// `for`; null if there is nothing to run over.
    pub(crate) fn iteration(&mut self, iteration: &For, locals: Outer<'_>) -> Outcome {
        let mut results: Vec<Value> = Vec::new();
        let done = self.each(&iteration.sources, locals, &mut |machine, locals| {
            let value = if iteration.uses_partial {
                let partial = machine.list(results.clone())?;
                let locals = Locals::binding(locals, "partial", &partial);
                machine.value(&iteration.body, Some(&locals))?
            } else {
                machine.value(&iteration.body, locals)?
            };
            machine.allocate(32)?;
            results.push(value);
            Ok(true)
        })?;
        if done { self.list(results) } else { Ok(Value::Null) }
    }

    /// `some` and `every` in three-valued logic.
    pub(crate) fn quantified(
        &mut self,
        quantifier: Quantifier,
        sources: &[Source],
        body: &Node,
        locals: Outer<'_>,
    ) -> Outcome {
        let until = quantifier == Quantifier::Some;
        let mut answer = Value::Bool(!until);
        let done = self.each(sources, locals, &mut |machine, locals| {
            match machine.value(body, locals)?.as_bool() {
                Some(found) if found == until => {
                    answer = Value::Bool(until);
                    return Ok(false);
                }
                Some(_) => {}
                None => answer = Value::Null,
            }
            Ok(true)
        })?;
        Ok(if done { answer } else { Value::Null })
    }

    /// Visits every combination of the sources, the last running fastest. `false` if one of them
    /// is nothing to run over.
    fn each(
        &mut self,
        sources: &[Source],
        locals: Outer<'_>,
        visit: Visit<'_>,
    ) -> Result<bool, EvaluationError> {
        let mut goes_on = true;
        self.each_from(sources, locals, visit, &mut goes_on)
    }

    fn each_from(
        &mut self,
        sources: &[Source],
        locals: Outer<'_>,
        visit: Visit<'_>,
        goes_on: &mut bool,
    ) -> Result<bool, EvaluationError> {
        let Some((source, inner)) = sources.split_first() else {
            *goes_on = visit(self, locals)?;
            return Ok(true);
        };
        let Some(walk) = self.walk(&source.items, locals)? else { return Ok(false) };
        self.enter()?;
        for value in walk {
            self.spend(1)?;
            let bound = Locals::binding(locals, &source.name, &value);
            if !self.each_from(inner, Some(&bound), visit, goes_on)? {
                self.leave();
                return Ok(false);
            }
            if !*goes_on {
                break;
            }
        }
        self.leave();
        Ok(true)
    }

    fn walk(&mut self, items: &Items, locals: Outer<'_>) -> Result<Option<Walk>, EvaluationError> {
        Ok(match items {
            Items::Of(node) => Walk::of(self.value(node, locals)?),
            Items::Count(from, to) => {
                let from = self.value(from, locals)?;
                Walk::between(&from, &self.value(to, locals)?)
            }
        })
    }

    /// `list[condition]` or `list[position]`. One value counts as a list of it.
    pub(crate) fn filter(&mut self, base: &Value, condition: &Node, locals: Outer<'_>) -> Outcome {
        let Some(list) = base.to_list() else { return Ok(Value::Null) };
        if may_be_position(condition)
            && let Value::Number(position) = self.value(condition, locals)?
        {
            return Ok(at_position(&list, position));
        }
        let mut kept = Vec::new();
        for (at, item) in list.iter().enumerate() {
            self.spend(1)?;
            let inner = Locals::item(locals, item);
            let answer = self.value(condition, Some(&inner))?;
            if answer.is_true() {
                kept.push(item.clone());
            }
            if let (0, Some(position)) = (at, answer.as_number()) {
                return Ok(at_position(&list, position));
            }
        }
        self.list(kept)
    }
}

/// Whether a condition may be a position that has nothing to do with the items.
fn may_be_position(condition: &Node) -> bool {
    match condition {
        Node::Literal(_)
        | Node::Name(_)
        | Node::Input
        | Node::Postfix(..)
        | Node::Negate(_)
        | Node::Chain(..)
        | Node::If(_) => true,
        Node::Compare(..)
        | Node::All(_)
        | Node::Any(_)
        | Node::Between(_)
        | Node::In(..)
        | Node::InstanceOf(..)
        | Node::For(_)
        | Node::Quantified(..)
        | Node::List(_)
        | Node::Context(_)
        | Node::Range(_)
        | Node::Function(_)
        | Node::Call(_) => false,
    }
}

/// The item at a position, from 1; negative positions count from the end.
fn at_position(list: &List, position: Decimal) -> Value {
    let at = position.trunc().to_i64().and_then(|position| index(list.len(), position));
    at.and_then(|at| list.get(at)).cloned().unwrap_or_default()
}

/// The index of a position from 1, or from the end if it is negative.
pub(crate) fn index(length: usize, position: i64) -> Option<usize> {
    let distance = usize::try_from(position.unsigned_abs()).ok()?;
    match position {
        0 => None,
        1.. => Some(distance - 1),
        _ => length.checked_sub(distance),
    }
}
