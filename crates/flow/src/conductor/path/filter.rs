//! Conditions in `[?(…)]`, and how Jayway compares.

use std::cmp::Ordering;

use regex::Regex;
use serde_json::{Number, Value};

use super::{Budget, BudgetError, Segment, walk};

#[derive(Clone, Debug)]
pub(super) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    /// Something is there, null too.
    Exists(Vec<Segment>),
    Compare(Operand, Comparison, Operand),
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// Behind `@`.
    Path(Vec<Segment>),
    Literal(Value),
    Pattern(Regex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Equal,
    NotSame,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Matches,
    In,
    NotIn,
    Contains,
    Size,
    Empty,
}

impl Comparison {
    /// How they are written; one that begins another stands behind it.
    pub(super) const ALL: &[(&'static str, Comparison)] = &[
        ("===", Comparison::Same),
        ("==", Comparison::Equal),
        ("!==", Comparison::NotSame),
        ("!=", Comparison::NotEqual),
        ("=~", Comparison::Matches),
        ("<=", Comparison::AtMost),
        ("<", Comparison::Less),
        (">=", Comparison::AtLeast),
        (">", Comparison::More),
        ("in", Comparison::In),
        ("nin", Comparison::NotIn),
        ("contains", Comparison::Contains),
        ("size", Comparison::Size),
        ("empty", Comparison::Empty),
    ];
}

impl Filter {
    pub(super) fn holds(&self, item: &Value, budget: &mut Budget) -> Result<bool, BudgetError> {
        budget.step()?;
        match self {
            Filter::Any(filters) => {
                for filter in filters {
                    if filter.holds(item, budget)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::All(filters) => {
                for filter in filters {
                    if !filter.holds(item, budget)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Not(filter) => Ok(!filter.holds(item, budget)?),
            Filter::Exists(segments) => {
                let found = walk::evaluate(segments, item, budget)?;
                Ok(match found {
                    Some(Value::Array(items)) if !walk::is_definite(segments) => !items.is_empty(),
                    Some(_) => true,
                    None => false,
                })
            }
            Filter::Compare(left, comparison, right) => {
                let found = left.value(item, budget)?;
                if let Operand::Pattern(pattern) = right {
                    return Ok(
                        matches!(found, Some(Value::String(text)) if pattern.is_match(&text)),
                    );
                }
                let with = right.value(item, budget)?;
                Ok(compare(found.as_ref(), *comparison, with.as_ref()))
            }
        }
    }
}

impl Operand {
    fn value(&self, item: &Value, budget: &mut Budget) -> Result<Option<Value>, BudgetError> {
        match self {
            Operand::Path(segments) => walk::evaluate(segments, item, budget),
            Operand::Literal(value) => Ok(Some(budget.copy(value)?)),
            Operand::Pattern(_) => Ok(None),
        }
    }
}

fn compare(left: Option<&Value>, comparison: Comparison, right: Option<&Value>) -> bool {
    let ordered = || order(left?, right?);
    match comparison {
        Comparison::Same => same(left, right),
        Comparison::Equal => equal(left, right),
        Comparison::NotSame => !same(left, right),
        Comparison::NotEqual => !equal(left, right),
        Comparison::Less => ordered() == Some(Ordering::Less),
        Comparison::AtMost => matches!(ordered(), Some(Ordering::Less | Ordering::Equal)),
        Comparison::More => ordered() == Some(Ordering::Greater),
        Comparison::AtLeast => matches!(ordered(), Some(Ordering::Greater | Ordering::Equal)),
        // Only the parser makes it, with a pattern, which is matched before.
        Comparison::Matches => false,
        Comparison::In => contains(right, left),
        Comparison::NotIn => !contains(right, left),
        Comparison::Contains => match (left, right) {
            (Some(Value::String(text)), Some(Value::String(part))) => text.contains(part.as_str()),
            (left, right) => contains(left, right),
        },
        Comparison::Size => length(left)
            .is_some_and(|length| right.and_then(Value::as_u64) == u64::try_from(length).ok()),
        Comparison::Empty => {
            length(left).is_some_and(|length| Some(length == 0) == right.and_then(Value::as_bool))
        }
    }
}

fn contains(list: Option<&Value>, item: Option<&Value>) -> bool {
    let items = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    items.iter().any(|other| equal(Some(other), item))
}

fn length(value: Option<&Value>) -> Option<usize> {
    match value? {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    std::mem::discriminant(left) == std::mem::discriminant(right) && equal(Some(left), Some(right))
}

/// A number equals the text of it; what is missing equals nothing.
fn equal(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => {
            numbers(left, right) == Some(Ordering::Equal)
        }
        (Some(Value::Number(number)), Some(Value::String(text))) => {
            serde_json::from_str::<Number>(text)
                .is_ok_and(|other| numbers(number, &other) == Some(Ordering::Equal))
        }
        (Some(Value::String(text)), Some(Value::Number(number))) => *text == number.to_string(),
        (Some(left), Some(right)) => left == right,
        (None, _) | (_, None) => false,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right),
        (Value::String(left), Value::String(right)) => {
            Some(left.encode_utf16().cmp(right.encode_utf16()))
        }
        _ => None,
    }
}

pub(super) fn numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(_) | None, None) | (None, Some(_)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}
