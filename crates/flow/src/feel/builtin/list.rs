//! Lists. Positions count from 1, or from the end if they are negative.

use std::cmp::Ordering;

use rust_decimal::prelude::ToPrimitive;

use super::{Builtin, Result, metered, number, open, plain, spread, truth};
use crate::feel::EvaluationError;
use crate::feel::compare;
use crate::feel::evaluate::{Machine, size};
use crate::feel::iterate::index;
use crate::feel::value::{List, Value};

const LIST: &[&[&str]] = &[&["list"]];

pub(super) const TABLE: &[Builtin] = &[
    metered("list contains", &[&["list", "element"]], list_contains),
    plain("count", LIST, count),
    plain("is empty", LIST, is_empty),
    plain(
        "sublist",
        &[
            &["list", "start position"],
            &["list", "start position", "length"],
            &["list", "start"],
            &["list", "start", "length"],
        ],
        sublist,
    ),
    open("append", &[&["list", "item"], &["list", "items"]], append),
    spread("concatenate", concatenate),
    spread("union", union),
    plain("insert before", &[&["list", "position", "newItem"]], insert_before),
    plain("remove", &[&["list", "position"]], remove),
    metered(
        "list replace",
        &[&["list", "position", "newItem"], &["list", "match", "newItem"]],
        list_replace,
    ),
    plain("reverse", LIST, reverse),
    metered("index of", &[&["list", "match"]], index_of),
    metered("distinct values", LIST, distinct_values),
    metered("duplicate values", LIST, duplicate_values),
    metered("flatten", LIST, flatten),
    metered("sort", &[&["list"], &["list", "precedes"]], sort),
    plain("partition", &[&["list", "size"]], partition),
];

fn list_contains(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [list, element] = arguments else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    Ok(truth(contains(machine, &list, element)?))
}

/// Whether a value is among others; comparing is counted by what lies inside.
fn contains(
    machine: &mut Machine<'_>,
    items: &[Value],
    element: &Value,
) -> std::result::Result<bool, EvaluationError> {
    for chunk in items.chunks(16) {
        let inside: u64 =
            if element.depth() > 0 { chunk.iter().map(|item| item.weight() / 32).sum() } else { 0 };
        machine.spend(inside.saturating_add(1))?;
        if chunk.iter().any(|item| compare::same(item, element)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn count(arguments: &[Value]) -> Option<Value> {
    let [list] = arguments else { return None };
    number(list.to_list()?.len())
}

fn is_empty(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Context(context)] => truth(context.is_empty()),
        [list] => truth(list.to_list()?.is_empty()),
        _ => None,
    }
}

fn sublist(arguments: &[Value]) -> Option<Value> {
    let (list, start, length) = match arguments {
        [list, Value::Number(start)] => (list.to_list()?, start, None),
        [list, Value::Number(start), Value::Null] => (list.to_list()?, start, None),
        [list, Value::Number(start), Value::Number(length)] => {
            (list.to_list()?, start, Some(length.trunc().to_usize()?))
        }
        _ => return None,
    };
    let from = index(list.len(), start.trunc().to_i64()?)?;
    if from >= list.len() {
        return None;
    }
    let length = length.unwrap_or(list.len());
    Some(Value::list(list.iter().skip(from).take(length).cloned().collect()))
}

fn append(_machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let Some((list, items)) = arguments.split_first() else { return Ok(None) };
    if items.is_empty() {
        return Ok(None);
    }
    let Some(list) = list.to_list() else { return Ok(None) };
    Ok(Some(Value::list(list.iter().chain(items).cloned().collect())))
}

/// All items of all lists, and what is no list as it is.
fn joined(arguments: &[Value]) -> Vec<Value> {
    let mut items = Vec::new();
    for argument in arguments {
        match argument.as_list() {
            Some(list) => items.extend_from_slice(list),
            None => items.push(argument.clone()),
        }
    }
    items
}

fn concatenate(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let items = joined(arguments);
    machine.spend(size(items.len()))?;
    Ok(Some(Value::list(items)))
}

fn union(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let items = joined(arguments);
    distinct(machine, &items).map(|items| Some(Value::list(items)))
}

fn insert_before(arguments: &[Value]) -> Option<Value> {
    let [list, Value::Number(position), item] = arguments else { return None };
    let mut items = list.to_list()?.to_vec();
    let at = index(items.len(), position.trunc().to_i64()?)?;
    if at > items.len() {
        return None;
    }
    items.insert(at, item.clone());
    Some(Value::list(items))
}

fn remove(arguments: &[Value]) -> Option<Value> {
    let [list, Value::Number(position)] = arguments else { return None };
    let mut items = list.to_list()?.to_vec();
    let at = index(items.len(), position.trunc().to_i64()?)?;
    if at >= items.len() {
        return None;
    }
    items.remove(at);
    Some(Value::list(items))
}

/// Puts an item in the place of another, or of all for which a function says so.
fn list_replace(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [list, place, new] = arguments else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    let mut items = list.to_vec();
    if let Some(function) = place.as_function() {
        for slot in &mut items {
            let Value::Bool(replaced) = machine.invoke(function, &[slot.clone(), new.clone()])?
            else {
                return Ok(None);
            };
            if replaced {
                *slot = new.clone();
            }
        }
        return Ok(Some(Value::list(items)));
    }
    let position = place.as_number().and_then(|position| position.trunc().to_i64());
    let at = position.and_then(|position| index(items.len(), position));
    let Some(slot) = at.and_then(|at| items.get_mut(at)) else { return Ok(None) };
    *slot = new.clone();
    Ok(Some(Value::list(items)))
}

fn reverse(arguments: &[Value]) -> Option<Value> {
    let [list] = arguments else { return None };
    Some(Value::list(list.to_list()?.iter().rev().cloned().collect()))
}

fn index_of(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [list, element] = arguments else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    machine.spend(list.iter().map(|item| item.weight() / 32 + 1).sum())?;
    let found = list.iter().enumerate().filter(|(_, item)| compare::same(item, element));
    Ok(Some(Value::list(found.filter_map(|(at, _)| number(at + 1)).collect())))
}

fn distinct(
    machine: &mut Machine<'_>,
    items: &[Value],
) -> std::result::Result<Vec<Value>, EvaluationError> {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !contains(machine, &kept, item)? {
            kept.push(item.clone());
        }
    }
    Ok(kept)
}

fn distinct_values(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [list] = arguments else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    distinct(machine, &list).map(|items| Some(Value::list(items)))
}

fn duplicate_values(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [list] = arguments else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    let mut kept: Vec<Value> = Vec::new();
    for (at, item) in list.iter().enumerate() {
        let behind = list.get(at + 1..).unwrap_or(&[]);
        if contains(machine, behind, item)? && !contains(machine, &kept, item)? {
            kept.push(item.clone());
        }
    }
    Ok(Some(Value::list(kept)))
}

fn flatten(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [list] = arguments else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    machine.look_at(&Value::List(list.clone()))?;
    let mut items = Vec::new();
    flatten_into(&list, &mut items);
    Ok(Some(Value::list(items)))
}

/// As deep as the value, which is bounded.
fn flatten_into(list: &List, items: &mut Vec<Value>) {
    for item in list.iter() {
        match item.as_list() {
            Some(inner) => flatten_into(inner, items),
            None => items.push(item.clone()),
        }
    }
}

fn sort(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let (list, precedes) = match arguments {
        [list] => (list, None),
        [list, Value::Function(function)] => (list, Some(function)),
        _ => return Ok(None),
    };
    let Some(list) = list.to_list() else { return Ok(None) };
    let sorted = merge_sort(machine, &list, &mut |machine, left, right| match precedes {
        None => Ok(compare::order(left, right).map(Ordering::is_lt)),
        Some(function) => {
            let answer = machine.invoke(function, &[left.clone(), right.clone()])?;
            Ok(if let Value::Bool(precedes) = answer { Some(precedes) } else { None })
        }
    })?;
    Ok(sorted.map(Value::list))
}

/// Whether one value precedes another; `None` if that cannot be said.
type Precedes<'a> = &'a mut dyn FnMut(
    &mut Machine<'_>,
    &Value,
    &Value,
) -> std::result::Result<Option<bool>, EvaluationError>;

/// Stable, and able to stop: the order is the author's and may fail or contradict itself.
fn merge_sort(
    machine: &mut Machine<'_>,
    items: &[Value],
    precedes: Precedes<'_>,
) -> std::result::Result<Option<Vec<Value>>, EvaluationError> {
    machine.spend(size(items.len()))?;
    if items.len() < 2 {
        return Ok(Some(items.to_vec()));
    }
    let (left, right) = items.split_at(items.len() / 2);
    let Some(left) = merge_sort(machine, left, precedes)? else { return Ok(None) };
    let Some(right) = merge_sort(machine, right, precedes)? else { return Ok(None) };
    let mut merged = Vec::with_capacity(items.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        match precedes(machine, second, first)? {
            Some(true) => merged.extend(right.next()),
            Some(false) => merged.extend(left.next()),
            None => return Ok(None),
        }
    }
    merged.extend(left);
    merged.extend(right);
    Ok(Some(merged))
}

fn partition(arguments: &[Value]) -> Option<Value> {
    let [list, Value::Number(length)] = arguments else { return None };
    let length = length.trunc().to_usize().filter(|length| *length > 0)?;
    let list = list.to_list()?;
    Some(Value::list(list.chunks(length).map(|chunk| Value::list(chunk.to_vec())).collect()))
}
