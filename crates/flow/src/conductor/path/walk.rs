//! The walk along a path, one segment after the other, every value on it counted.

use serde_json::{Map, Value};

use super::{Budget, BudgetError, Segment};

pub(super) fn is_definite(segments: &[Segment]) -> bool {
    let last = segments.len().saturating_sub(1);
    let scanned = scans(segments);
    segments.iter().enumerate().all(|(position, segment)| match segment {
        Segment::Child(_) | Segment::Index(_) | Segment::Function(_) => true,
        // A function behind a scan takes all that it found, as one list.
        Segment::Children(_) => position == last || scanned,
        Segment::Indexes(_)
        | Segment::Slice(..)
        | Segment::Every
        | Segment::Below
        | Segment::Filter(_) => scanned,
    })
}

fn scans(segments: &[Segment]) -> bool {
    let below = segments.iter().any(|segment| matches!(segment, Segment::Below));
    below && matches!(segments, [.., Segment::Function(_)])
}

pub(super) fn evaluate(
    segments: &[Segment],
    document: &Value,
    budget: &mut Budget,
) -> Result<Option<Value>, BudgetError> {
    let (steps, end) = match segments {
        [steps @ .., end @ (Segment::Function(_) | Segment::Children(_))] => (steps, Some(end)),
        steps => (steps, None),
    };
    let mut found = vec![document];
    let mut next = Vec::new();
    for segment in steps {
        for value in found.drain(..) {
            follow(segment, value, &mut next, budget)?;
        }
        std::mem::swap(&mut found, &mut next);
    }
    let mut values = Vec::new();
    match end {
        Some(Segment::Function(function)) if scans(segments) => {
            let all = copies(&found, budget)?;
            return function.apply(&Value::Array(all), budget);
        }
        Some(Segment::Function(function)) => {
            for value in found {
                values.extend(function.apply(value, budget)?);
            }
        }
        Some(Segment::Children(names)) => {
            for value in found {
                if let Value::Object(fields) = value {
                    values.push(Value::Object(chosen(names, fields, budget)?));
                }
            }
        }
        Some(_) | None => values = copies(&found, budget)?,
    }
    if is_definite(segments) { Ok(values.pop()) } else { Ok(Some(Value::Array(values))) }
}

fn copies(found: &[&Value], budget: &mut Budget) -> Result<Vec<Value>, BudgetError> {
    found.iter().map(|value| budget.copy(value)).collect()
}

fn chosen(
    names: &[Box<str>],
    fields: &Map<String, Value>,
    budget: &mut Budget,
) -> Result<Map<String, Value>, BudgetError> {
    let mut chosen = Map::new();
    for name in names {
        if let Some(field) = fields.get(&**name) {
            chosen.insert(name.to_string(), budget.copy(field)?);
        }
    }
    Ok(chosen)
}

fn follow<'v>(
    segment: &Segment,
    value: &'v Value,
    next: &mut Vec<&'v Value>,
    budget: &mut Budget,
) -> Result<(), BudgetError> {
    budget.step()?;
    match segment {
        Segment::Child(name) => next.extend(value.get(&**name)),
        Segment::Children(names) => next.extend(names.iter().filter_map(|name| value.get(&**name))),
        Segment::Index(index) => next.extend(at(value, *index)),
        Segment::Indexes(indexes) => {
            next.extend(indexes.iter().filter_map(|index| at(value, *index)));
        }
        Segment::Slice(from, to) => {
            if let Value::Array(items) = value {
                let from = from.map_or(0, |from| bound(from, items.len()));
                let to = to.map_or(items.len(), |to| bound(to, items.len()));
                for item in items.get(from..to).unwrap_or_default() {
                    budget.step()?;
                    next.push(item);
                }
            }
        }
        Segment::Every => {
            for child in children(value) {
                budget.step()?;
                next.push(child);
            }
        }
        Segment::Below => below(value, next, budget)?,
        Segment::Filter(filter) => match value {
            Value::Array(items) => {
                for item in items {
                    if filter.holds(item, budget)? {
                        next.push(item);
                    }
                }
            }
            Value::Object(_) => {
                if filter.holds(value, budget)? {
                    next.push(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        },
        // Functions stand last, and are applied there.
        Segment::Function(_) => {}
    }
    Ok(())
}

/// A value and all below it, parents first. No deeper than JSON is read.
fn below<'v>(
    value: &'v Value,
    next: &mut Vec<&'v Value>,
    budget: &mut Budget,
) -> Result<(), BudgetError> {
    budget.step()?;
    if value.is_array() || value.is_object() {
        next.push(value);
        for child in children(value) {
            below(child, next, budget)?;
        }
    }
    Ok(())
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Box::new(std::iter::empty())
        }
    }
}

fn at(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    items.get(position(index, items.len())?)
}

/// Where an index points in a list; a negative one counts from the end.
pub(super) fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn bound(index: i64, length: usize) -> usize {
    position(index, length).unwrap_or(0).min(length)
}
