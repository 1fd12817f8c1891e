//! The values of FEEL: what variables hold, what expressions give.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rust_decimal::Decimal;

use super::function::Function;
use super::temporal::{Date, DateTime, DaysDuration, Time, YearsDuration};

/// A FEEL value. Cloning is cheap: everything that can be large is shared.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Absence, and the answer to whatever has no answer.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A decimal number.
    Number(Decimal),
    /// A string.
    Text(Arc<str>),
    /// A list.
    List(List),
    /// Named values in the order they were written.
    Context(Arc<Context>),
    /// A day.
    Date(Date),
    /// A time of day, with or without an offset or zone.
    Time(Time),
    /// A day and a time of day.
    DateTime(DateTime),
    /// A duration in days, hours, minutes and seconds.
    DaysDuration(DaysDuration),
    /// A duration in years and months.
    YearsDuration(YearsDuration),
    /// An interval, bounded or open on one side.
    Range(Arc<Range>),
    /// Something that can be invoked.
    Function(Arc<Function>),
}

/// The values of a list.
///
/// It knows how deeply it is nested and how large all of it is, so that the evaluator can refuse to
/// build what could not be dropped or printed within bounds.
#[derive(Clone)]
pub struct List {
    depth: u32,
    weight: u64,
    items: Arc<[Value]>,
}

/// Named values in the order they were written; names are unique.
#[derive(Clone, Default)]
pub struct Context {
    depth: u32,
    weight: u64,
    entries: Vec<(Arc<str>, Value)>,
    /// Positions of `entries` in the order of their names; empty while a walk is as fast.
    by_name: Vec<u32>,
}

/// An interval between two values of one kind; `None` is an end without a bound.
#[derive(Clone, Debug)]
pub struct Range {
    /// Where it starts.
    pub start: Option<Value>,
    /// Whether the start itself belongs to it.
    pub start_included: bool,
    /// Where it ends.
    pub end: Option<Value>,
    /// Whether the end itself belongs to it.
    pub end_included: bool,
}

/// Up to this many entries are searched by walking.
const WALKED_ENTRIES_MAX: usize = 12;

impl Value {
    /// A string.
    pub fn text(text: &str) -> Value {
        Value::Text(Arc::from(text))
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(List::from(items))
    }

    /// A context; of entries with the same name the last value counts, at the place of the first.
    pub fn context(entries: Vec<(Arc<str>, Value)>) -> Value {
        Value::Context(Arc::new(Context::from_entries(entries)))
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether this is `true`, and not merely something that is not false.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The truth this is, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// The number this is, if it is one.
    pub fn as_number(&self) -> Option<Decimal> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    /// The string this is, if it is one.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The list this is, if it is one.
    pub fn as_list(&self) -> Option<&List> {
        if let Value::List(list) = self { Some(list) } else { None }
    }

    /// The context this is, if it is one.
    pub fn as_context(&self) -> Option<&Arc<Context>> {
        if let Value::Context(context) = self { Some(context) } else { None }
    }

    /// The function this is, if it is one.
    pub fn as_function(&self) -> Option<&Arc<Function>> {
        if let Value::Function(function) = self { Some(function) } else { None }
    }

    /// This as a list: itself, or the one item; null is none.
    pub fn to_list(&self) -> Option<List> {
        if self.is_null() {
            return None;
        }
        Some(self.as_list().cloned().unwrap_or_else(|| List::from(vec![self.clone()])))
    }

    /// The day this is, or the day of the time it is.
    pub fn day(&self) -> Option<Date> {
        if let Value::Date(date) = self {
            return Some(*date);
        }
        if let Value::DateTime(date_time) = self { Some(date_time.date) } else { None }
    }

    /// How many lists, contexts and functions lie inside one another, this one included.
    pub fn depth(&self) -> u32 {
        match self {
            Value::List(list) => list.depth,
            Value::Context(context) => context.depth,
            Value::Function(function) => function.depth(),
            Value::Range(range) => {
                let depth = |end: &Option<Value>| end.as_ref().map_or(0, Value::depth);
                depth(&range.start).max(depth(&range.end)).saturating_add(1)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::DaysDuration(_)
            | Value::YearsDuration(_) => 0,
        }
    }
}

impl Value {
    /// The bytes of this value, roughly, with all that lies inside it.
    pub fn weight(&self) -> u64 {
        match self {
            Value::List(list) => list.weight,
            Value::Context(context) => context.weight,
            Value::Function(function) => function.weight(),
            Value::Text(text) => text_weight(text),
            Value::Range(range) => {
                let weight = |end: &Option<Value>| end.as_ref().map_or(0, Value::weight);
                weight(&range.start).saturating_add(weight(&range.end)).saturating_add(32)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::DaysDuration(_)
            | Value::YearsDuration(_) => 16,
        }
    }
}

impl List {
    /// The items, for those who need them behind a pointer of their own.
    pub fn items(&self) -> &Arc<[Value]> {
        &self.items
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> List {
        let inner = items.iter().map(Value::depth).max().unwrap_or(0);
        let weight = items.iter().fold(32_u64, |sum, item| sum.saturating_add(item.weight()));
        List { depth: inner.saturating_add(1), weight, items: Arc::from(items) }
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

impl fmt::Debug for List {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.items.iter()).finish()
    }
}

impl Context {
    /// A context of these entries; of entries with the same name the last value counts, at the
    /// place of the first.
    pub fn from_entries(entries: Vec<(Arc<str>, Value)>) -> Context {
        let mut by_name: Vec<u32> = Vec::new();
        let entries = if entries.len() <= WALKED_ENTRIES_MAX {
            merge_few(entries)
        } else {
            let merged = merge_many(entries);
            by_name.extend(0..u32::try_from(merged.len()).unwrap_or(u32::MAX));
            by_name.sort_by(|left, right| name_at(&merged, *left).cmp(&name_at(&merged, *right)));
            merged
        };
        let inner = entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0);
        let weight = entries.iter().fold(32_u64, |sum, (name, value)| {
            sum.saturating_add(value.weight()).saturating_add(text_weight(name))
        });
        Context { depth: inner.saturating_add(1), weight, entries, by_name }
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        if self.by_name.is_empty() {
            return self.entries.iter().find(|(own, _)| &**own == name).map(|(_, value)| value);
        }
        let found = self
            .by_name
            .binary_search_by(|position| name_at(&self.entries, *position).cmp(&Some(name)))
            .ok()?;
        let position = usize::try_from(*self.by_name.get(found)?).ok()?;
        self.entries.get(position).map(|(_, value)| value)
    }

    /// The entries in order.
    pub fn entries(&self) -> &[(Arc<str>, Value)] {
        &self.entries
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn name_at(entries: &[(Arc<str>, Value)], position: u32) -> Option<&str> {
    let position = usize::try_from(position).ok()?;
    entries.get(position).map(|(name, _)| &**name)
}

fn text_weight(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX).saturating_add(16)
}

fn merge_few(entries: Vec<(Arc<str>, Value)>) -> Vec<(Arc<str>, Value)> {
    let mut kept: Vec<(Arc<str>, Value)> = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        match kept.iter_mut().find(|(own, _)| *own == name) {
            Some((_, slot)) => *slot = value,
            None => kept.push((name, value)),
        }
    }
    kept
}

fn merge_many(entries: Vec<(Arc<str>, Value)>) -> Vec<(Arc<str>, Value)> {
    let mut places = std::collections::BTreeMap::new();
    let mut kept: Vec<(Arc<str>, Value)> = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        let place = *places.entry(Arc::clone(&name)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some((_, slot)) => *slot = value,
            None => kept.push((name, value)),
        }
    }
    kept
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_map()
            .entries(self.entries.iter().map(|(name, value)| (name, value)))
            .finish()
    }
}
