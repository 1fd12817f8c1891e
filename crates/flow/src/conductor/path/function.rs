//! Functions at the end of a path.

use serde_json::{Number, Value};

use super::{Budget, BudgetError};

#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Length,
    Minimum,
    Maximum,
    Average,
    Sum,
    Keys,
    Concatenation,
    First,
    Last,
    At(i64),
}

impl Function {
    pub(super) fn named(name: &str, argument: &str) -> Option<Function> {
        if name == "index" {
            return argument.parse().ok().map(Function::At);
        }
        if !argument.is_empty() {
            return None;
        }
        Some(match name {
            "length" | "size" => Function::Length,
            "min" => Function::Minimum,
            "max" => Function::Maximum,
            "avg" => Function::Average,
            "sum" => Function::Sum,
            "keys" => Function::Keys,
            "concat" => Function::Concatenation,
            "first" => Function::First,
            "last" => Function::Last,
            _ => return None,
        })
    }

    /// What it makes of a value; none when it does not apply to such values.
    pub(super) fn apply(
        self,
        value: &Value,
        budget: &mut Budget,
    ) -> Result<Option<Value>, BudgetError> {
        budget.weigh(value)?;
        let items = value.as_array().map(Vec::as_slice);
        let taken = |item: Option<&Value>| item.cloned();
        Ok(match self {
            Function::Length => items
                .map(<[Value]>::len)
                .or_else(|| value.as_object().map(serde_json::Map::len))
                .map(Value::from),
            Function::Minimum => number(items, |numbers| numbers.reduce(f64::min)),
            Function::Maximum => number(items, |numbers| numbers.reduce(f64::max)),
            Function::Sum => number(items, |numbers| numbers.reduce(|sum, next| sum + next)),
            Function::Average => number(items, |numbers| {
                let sum = numbers.fold((0.0, 0.0), |(sum, count), next| (sum + next, count + 1.0));
                (sum.1 > 0.0).then(|| sum.0 / sum.1)
            }),
            Function::Keys => value
                .as_object()
                .map(|fields| fields.keys().map(|name| Value::from(name.as_str())).collect()),
            Function::Concatenation => {
                items.map(|items| items.iter().filter_map(Value::as_str).collect::<String>().into())
            }
            Function::First => taken(items.and_then(<[Value]>::first)),
            Function::Last => taken(items.and_then(<[Value]>::last)),
            Function::At(index) => {
                taken(items.and_then(|items| items.get(super::walk::position(index, items.len())?)))
            }
        })
    }
}

/// Of the numbers in a list; Jayway counts in floating point and gives it back so.
fn number(
    items: Option<&[Value]>,
    fold: impl FnOnce(&mut dyn Iterator<Item = f64>) -> Option<f64>,
) -> Option<Value> {
    let mut numbers = items?.iter().filter_map(Value::as_f64);
    fold(&mut numbers).and_then(Number::from_f64).map(Value::Number)
}
