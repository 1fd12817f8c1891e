//! The kinds of values that `instance of` and typed parameters name.

use std::sync::Arc;

use super::value::Value;

/// A kind that a model defines, and how deeply it is nested.
#[derive(Clone, Debug)]
pub(crate) struct DefinedKind {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) depth: u32,
}

/// A kind of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Any,
    Null,
    Number,
    Text,
    Bool,
    Date,
    Time,
    DateTime,
    DaysDuration,
    YearsDuration,
    List(Arc<Kind>),
    /// Entries that have to be there, each of a kind.
    Context(Arc<[(Arc<str>, Kind)]>),
    Range(Arc<Kind>),
    Function,
    /// A kind that FEEL itself does not know, such as one of a model.
    Unknown(Arc<str>),
}

impl Kind {
    /// The kind of a plain name.
    pub(crate) fn named(name: &str) -> Kind {
        match name {
            "Any" => Kind::Any,
            "Null" | "null" => Kind::Null,
            "number" => Kind::Number,
            "string" => Kind::Text,
            "boolean" => Kind::Bool,
            "date" => Kind::Date,
            "time" => Kind::Time,
            "date and time" | "date time" | "dateTime" => Kind::DateTime,
            "days and time duration" | "day-time-duration" | "dayTimeDuration" => {
                Kind::DaysDuration
            }
            "years and months duration" | "year-month-duration" | "yearMonthDuration" => {
                Kind::YearsDuration
            }
            "list" => Kind::List(Arc::new(Kind::Any)),
            "context" => Kind::Context(Arc::default()),
            "range" => Kind::Range(Arc::new(Kind::Any)),
            "function" => Kind::Function,
            other => Kind::Unknown(Arc::from(other)),
        }
    }

    /// Whether a value is of this kind; null is of no kind but its own.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Any, value) => !value.is_null(),
            (Kind::Null, Value::Null)
            | (Kind::Number, Value::Number(_))
            | (Kind::Text, Value::Text(_))
            | (Kind::Bool, Value::Bool(_))
            | (Kind::Date, Value::Date(_))
            | (Kind::Time, Value::Time(_))
            | (Kind::DateTime, Value::DateTime(_))
            | (Kind::DaysDuration, Value::DaysDuration(_))
            | (Kind::YearsDuration, Value::YearsDuration(_))
            | (Kind::Function, Value::Function(_)) => true,
            (Kind::List(kind), Value::List(list)) => list.iter().all(|item| kind.admits(item)),
            (Kind::Context(entries), Value::Context(context)) => entries
                .iter()
                .all(|(name, kind)| context.get(name).is_some_and(|value| kind.admits(value))),
            (Kind::Range(kind), Value::Range(range)) => {
                [&range.start, &range.end].into_iter().flatten().all(|end| kind.admits(end))
            }
            _ => false,
        }
    }

    /// Whether a value may stand where this kind is asked for: null may stand everywhere.
    pub(crate) fn admits(&self, value: &Value) -> bool {
        value.is_null() || self.holds(value)
    }
}
