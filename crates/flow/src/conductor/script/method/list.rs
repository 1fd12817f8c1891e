//! Methods of lists.

use super::super::call::{found, same_value, two};
use super::super::coerce::same;
use super::super::machine::{Machine, Outcome, Value, unsupported};

pub(in super::super) fn of_list<'a>(
    machine: &mut Machine<'a>,
    list: &Value<'a>,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    if let ("push" | "pop" | "shift" | "unshift" | "reverse", Value::List(at)) = (name, list) {
        return change(machine, list, *at, name, arguments);
    }
    let items = machine.items(list)?;
    let length = items.len();
    match (name, arguments) {
        ("includes", [item]) => {
            Ok(Value::Bool(search(&items, |other| same_value(other, item))?.is_some()))
        }
        ("indexOf", [item]) => Ok(found(search(&items, |other| same(other, item))?)),
        ("join", [] | [Value::Undefined]) => machine.join(&items, ",").map(Value::String),
        ("join", [between]) => {
            let between = machine.string(between)?;
            machine.join(&items, &between).map(Value::String)
        }
        ("toString", []) => machine.join(&items, ",").map(Value::String),
        ("slice", _) => {
            let (from, to) = two(arguments)?;
            let from = machine.place_in(Some(&from), length, 0)?;
            let to = machine.place_in(Some(&to), length, length)?;
            machine.list(items.get(from..to.max(from)).unwrap_or_default().to_vec())
        }
        ("concat", _) => {
            let mut joined = items;
            for argument in arguments {
                match machine.length(argument) {
                    Ok(_) => joined.extend(machine.items(argument)?),
                    Err(_) => joined.push(argument.clone()),
                }
            }
            machine.list(joined)
        }
        ("reduce", [callback, rest @ ..]) if rest.len() <= 1 => {
            let mut items = items.into_iter().enumerate();
            let first = match rest {
                [first, ..] => Some(first.clone()),
                [] => items.next().map(|(_, item)| item),
            };
            let Some(mut folded) = first else { return unsupported() };
            let watch = Watch::of(machine, list);
            for (at, item) in items {
                let place = found(Some(at));
                folded = machine.invoke(callback, vec![folded, item, place, list.clone()])?;
                watch.check(machine)?;
            }
            Ok(folded)
        }
        (_, [callback @ (Value::Function(_) | Value::Global(_))]) => {
            with_callback(machine, list, items, name, callback)
        }
        _ => unsupported(),
    }
}

/// Where the first item is that this is true of.
fn search<'a>(
    items: &[Value<'a>],
    is_it: impl Fn(&Value<'a>) -> Outcome<bool>,
) -> Outcome<Option<usize>> {
    for (at, item) in items.iter().enumerate() {
        if is_it(item)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Methods that ask a function about each item.
fn with_callback<'a>(
    machine: &mut Machine<'a>,
    list: &Value<'a>,
    items: Vec<Value<'a>>,
    name: &str,
    callback: &Value<'a>,
) -> Outcome<Value<'a>> {
    if !matches!(name, "map" | "filter" | "forEach" | "some" | "every" | "find" | "findIndex") {
        return unsupported();
    }
    let watch = Watch::of(machine, list);
    let mut kept = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let place = found(Some(at));
        let answer = machine.invoke(callback, vec![item.clone(), place.clone(), list.clone()])?;
        watch.check(machine)?;
        match (name, answer.is_true()) {
            ("map", _) => kept.push(answer),
            ("filter", true) => kept.push(item),
            ("some", true) => return Ok(Value::Bool(true)),
            ("every", false) => return Ok(Value::Bool(false)),
            ("find", true) => return Ok(item),
            ("findIndex", true) => return Ok(place),
            _ => {}
        }
    }
    match name {
        "map" | "filter" => machine.list(kept),
        "some" => Ok(Value::Bool(false)),
        "every" => Ok(Value::Bool(true)),
        "findIndex" => Ok(found(None)),
        _ => Ok(Value::Undefined),
    }
}

/// Methods that change the list itself.
fn change<'a>(
    machine: &mut Machine<'a>,
    list: &Value<'a>,
    at: usize,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    let length = machine.length(list)?;
    if !matches!(name, "push" | "pop") {
        machine.steps(length)?;
    }
    machine.build(64 * arguments.len())?;
    let items = machine.change(at)?;
    match (name, arguments) {
        ("push", _) => items.extend_from_slice(arguments),
        ("unshift", _) => {
            items.splice(0..0, arguments.iter().cloned());
        }
        ("pop", []) => return Ok(items.pop().unwrap_or(Value::Undefined)),
        ("shift", []) if items.is_empty() => return Ok(Value::Undefined),
        ("shift", []) => return Ok(items.remove(0)),
        ("reverse", []) => {
            items.reverse();
            return Ok(list.clone());
        }
        _ => return unsupported(),
    }
    machine.get(list, "length")
}

/// Notices a list that changes while somebody walks over it.
struct Watch {
    list: Option<usize>,
    changes: u64,
}

impl Watch {
    fn of(machine: &Machine<'_>, list: &Value<'_>) -> Watch {
        let list = if let Value::List(at) = list { Some(*at) } else { None };
        Watch { list, changes: changes(machine, list) }
    }

    fn check(&self, machine: &Machine<'_>) -> Outcome<()> {
        if changes(machine, self.list) == self.changes { Ok(()) } else { unsupported() }
    }
}

fn changes(machine: &Machine<'_>, list: Option<usize>) -> u64 {
    list.and_then(|at| machine.lists.get(at)).map_or(0, |list| list.changes)
}
