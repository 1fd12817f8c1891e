//! Contexts.

use std::sync::Arc;

use super::{Builtin, Result, metered, open, plain};
use crate::feel::evaluate::{Machine, size};
use crate::feel::value::{Context, Value};

pub(super) const TABLE: &[Builtin] = &[
    plain("get value", &[&["m", "key"], &["context", "key"], &["context", "keys"]], get_value),
    plain("get entries", &[&["m"], &["context"]], get_entries),
    metered("context put", &[&["context", "key", "value"], &["context", "keys", "value"]], put),
    metered("put", &[&["context", "key", "value"]], put),
    open("context merge", &[&["contexts"]], merge),
    open("put all", &[&["contexts"]], merge),
    plain("context", &[&["entries"]], context),
];

fn get_value(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Context(context), Value::Text(key)] => context.get(key).cloned(),
        [Value::Context(context), Value::List(keys)] => {
            let (first, rest) = keys.split_first()?;
            let start = get_value(&[Value::Context(Arc::clone(context)), first.clone()])?;
            rest.iter().try_fold(start, |value, key| match (value, key) {
                (Value::Context(context), Value::Text(key)) => context.get(key).cloned(),
                _ => None,
            })
        }
        _ => None,
    }
}

fn get_entries(arguments: &[Value]) -> Option<Value> {
    let [Value::Context(context)] = arguments else { return None };
    let key: Arc<str> = Arc::from("key");
    let value: Arc<str> = Arc::from("value");
    let entry = |(name, found): &(Arc<str>, Value)| {
        Value::context(vec![
            (Arc::clone(&key), Value::Text(Arc::clone(name))),
            (Arc::clone(&value), found.clone()),
        ])
    };
    Some(Value::list(context.entries().iter().map(entry).collect()))
}

fn put(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    match arguments {
        [Value::Context(context), Value::Text(key), value] => {
            put_at(machine, context, &[Value::Text(Arc::clone(key))], value)
        }
        [Value::Context(context), Value::List(keys), value] if !keys.is_empty() => {
            put_at(machine, context, keys, value)
        }
        _ => Ok(None),
    }
}

/// Puts a value at the end of a path of keys; contexts that are not there are made.
fn put_at(machine: &mut Machine<'_>, context: &Context, keys: &[Value], value: &Value) -> Result {
    let Some((Value::Text(key), rest)) = keys.split_first() else { return Ok(None) };
    machine.enter()?;
    machine.spend(size(context.len()))?;
    let value = if rest.is_empty() {
        value.clone()
    } else {
        let nothing = Context::default();
        let inner = match context.get(key) {
            Some(Value::Context(inner)) => inner,
            Some(_) | None => &nothing,
        };
        match put_at(machine, inner, rest, value)? {
            Some(value) => machine.built(value)?,
            None => return Ok(None),
        }
    };
    machine.leave();
    let mut entries = context.entries().to_vec();
    entries.push((Arc::clone(key), value));
    Ok(Some(Value::context(entries)))
}

fn merge(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let contexts = match arguments {
        [Value::List(list)] => list,
        other => other,
    };
    let mut entries = Vec::new();
    for context in contexts {
        let Value::Context(context) = context else { return Ok(None) };
        machine.allocate(size(context.len()) * 32)?;
        entries.extend_from_slice(context.entries());
    }
    Ok(Some(Value::context(entries)))
}

/// A context of entries such as `{key: "a", value: 1}`.
fn context(arguments: &[Value]) -> Option<Value> {
    let [entries] = arguments else { return None };
    let entry = |value: &Value| {
        let Value::Context(entry) = value else { return None };
        let Some(Value::Text(key)) = entry.get("key") else { return None };
        Some((Arc::clone(key), entry.get("value")?.clone()))
    };
    let entries: Option<Vec<(Arc<str>, Value)>> = entries.to_list()?.iter().map(entry).collect();
    entries.map(Value::context)
}
