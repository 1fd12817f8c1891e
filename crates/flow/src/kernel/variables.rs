//! Variables: where they are written, and the mappings around an element.

use std::borrow::Cow;
use std::collections::BTreeMap;

use windlass_record::bound::Bound;
use windlass_record::flow::{FlowEvent, FlowIncidentKind, FlowRejection, Key};

use super::{Port, Stuck, expression};
use crate::feel::{Context, Value};
use crate::graph::{Mapping, Text};

/// Names and values, JSON.
pub(crate) type Variables = Vec<(Text, Text)>;

/// Takes a JSON object apart. Its values are kept as they are written.
pub fn split(object: &[u8]) -> Result<Variables, FlowRejection> {
    if object.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let members: BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_slice(object).map_err(|error| FlowRejection::InvalidVariables {
            problem: error.to_string().into(),
        })?;
    Ok(members.into_iter().map(|(name, value)| (name.into(), value.get().into())).collect())
}

/// Puts names and values together to a JSON object.
pub fn join<'a>(variables: impl IntoIterator<Item = (&'a Text, &'a Text)>) -> String {
    let mut object = String::from("{");
    for (name, value) in variables {
        if object.len() > 1 {
            object.push(',');
        }
        write_text(&mut object, name);
        object.push(':');
        object.push_str(value);
    }
    object.push('}');
    object
}

/// Appends text as JSON.
pub(crate) fn write_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Sets variables of exactly this scope.
pub(crate) fn set<P: Port>(port: &mut P, scope: Key, variables: &[(Text, Text)]) {
    if !variables.is_empty() {
        let variables = variables.iter().map(borrowed).collect::<Vec<_>>();
        port.emit(FlowEvent::VariablesSet { scope, variables: variables.into() });
    }
}

/// A copy of an element's own variables.
pub(crate) fn own<P: Port>(port: &P, key: Key) -> Variables {
    let own = &port.state().live(key).variables;
    own.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Sets each variable in the nearest scope that has it, or in the outermost one.
pub(crate) fn merge<P: Port>(port: &mut P, scope: Key, variables: &[(Text, Text)]) {
    let mut by_owner: BTreeMap<Key, Variables> = BTreeMap::new();
    for (name, value) in variables {
        let owner = port.state().owner_of(scope, name);
        by_owner.entry(owner).or_default().push((name.clone(), value.clone()));
    }
    for (owner, variables) in by_owner {
        set(port, owner, &variables);
    }
}

/// What an element got (from a job, an event, a child) goes where its mappings say: with output
/// mappings it is local, for them to pick from; without, it is merged outwards, beginning with the
/// element's own variables: inputs, and the result of an instance of a loop, stay with it.
pub(crate) fn deliver<P: Port>(port: &mut P, key: Key, variables: &[(Text, Text)]) {
    if port.state().live(key).node().outputs.is_empty() {
        merge(port, key, variables);
    } else {
        set(port, key, variables);
    }
}

/// Evaluates the mappings on the way in.
pub(crate) fn inputs<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, node) = (element.graph.clone(), element.node);
    let mappings = &graph.node(node).inputs;
    if mappings.is_empty() {
        return Ok(());
    }
    let mut values = BTreeMap::new();
    for mapping in mappings {
        // Each sees what the ones before it made.
        let value = evaluate(port, key, mapping, &values)?;
        put(&mut values, mapping, value, |name| {
            port.state().live(key).variables.get(name).cloned()
        });
    }
    let written = written(&values);
    check_fits(port, &written)?;
    set(port, key, &written);
    Ok(())
}

/// What one step writes is bounded.
pub(crate) fn check_fits<P: Port>(port: &P, variables: &[(Text, Text)]) -> Result<(), Stuck> {
    let max = port.bounds().variable_bytes_max;
    if bytes_of(variables) <= max {
        return Ok(());
    }
    let (kind, bound) = (FlowIncidentKind::MessageSize, Bound::VariableBytes);
    Err(Stuck::past(kind, "variables of this size cannot be written", bound, max))
}

/// How many bytes they take.
pub(crate) fn bytes_of(variables: &[(Text, Text)]) -> usize {
    variables.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// Evaluates the mappings on the way out.
pub(crate) fn outputs<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, node, scope) = (element.graph.clone(), element.node, element.scope);
    let mappings = &graph.node(node).outputs;
    if mappings.is_empty() {
        return Ok(());
    }
    let target = if scope == Key::NONE { key } else { scope };
    let mut values = BTreeMap::new();
    for mapping in mappings {
        let value = evaluate(port, key, mapping, &values)?;
        put(&mut values, mapping, value, |name| port.state().variable(target, name));
    }
    let written = written(&values);
    check_fits(port, &written)?;
    merge(port, target, &written);
    Ok(())
}

fn evaluate<P: Port>(
    port: &P,
    key: Key,
    mapping: &Mapping,
    values: &BTreeMap<Text, Value>,
) -> Result<Value, Stuck> {
    expression::template_value(port, &mapping.source, key, values)
        .map_err(|problem| Stuck::new(FlowIncidentKind::IoMapping, problem))
}

/// Puts a value at its path; the first name is the variable, the others are members.
fn put(
    values: &mut BTreeMap<Text, Value>,
    mapping: &Mapping,
    value: Value,
    existing: impl Fn(&str) -> Option<Text>,
) {
    let Some((name, path)) = mapping.target.split_first() else { return };
    if path.is_empty() {
        values.insert(name.clone(), value);
        return;
    }
    let old = values.remove(name).or_else(|| Value::from_json(&existing(name)?).ok());
    values.insert(name.clone(), with_member(old, path, value));
}

fn with_member(old: Option<Value>, path: &[Text], value: Value) -> Value {
    let Some((name, rest)) = path.split_first() else { return value };
    let mut members: Vec<(Text, Value)> = match old {
        Some(Value::Context(context)) => context.entries().to_vec(),
        _ => Vec::new(),
    };
    let at = members.iter().position(|(other, _)| other == name);
    let inner = at.and_then(|at| members.get(at)).map(|(_, value)| value.clone());
    let value = with_member(inner, rest, value);
    match at.and_then(|at| members.get_mut(at)) {
        Some(member) => member.1 = value,
        None => members.push((name.clone(), value)),
    }
    Value::Context(std::sync::Arc::new(Context::from_entries(members)))
}

fn written(values: &BTreeMap<Text, Value>) -> Variables {
    values.iter().map(|(name, value)| (name.clone(), value.to_json().into())).collect()
}

fn borrowed((name, value): &(Text, Text)) -> (Cow<'_, str>, Cow<'_, str>) {
    (Cow::Borrowed(name), Cow::Borrowed(value))
}

/// The same, for events that carry variables.
pub(crate) fn carried(variables: &[(Text, Text)]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    variables.iter().map(borrowed).collect()
}
