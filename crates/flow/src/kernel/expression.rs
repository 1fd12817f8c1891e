//! Evaluating what definitions say, against the variables that an element sees.

use std::collections::BTreeMap;

use windlass_record::flow::{FlowIncidentKind, Key};

use super::{Port, Stuck};
use crate::feel::{Budget, Environment, Expression, Scope, Value};
use crate::graph::{Template, Text};
use crate::state::FlowState;

/// What one evaluation may cost.
pub(crate) fn budget() -> Budget {
    Budget::default()
}

/// The variables that an element sees, behind some that stand in front.
pub(crate) struct View<'a> {
    pub(crate) state: &'a FlowState,
    pub(crate) scope: Key,
    pub(crate) front: &'a BTreeMap<Text, Value>,
}

impl Scope for View<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.front.get(name) {
            return Some(value.clone());
        }
        Value::from_json(&self.state.variable(self.scope, name)?).ok()
    }
}

/// The time, and the seed of what looks random.
pub(crate) fn environment<P: Port>(port: &P, scope: Key) -> Environment {
    let seed = scope.raw() ^ port.next_key().raw().rotate_left(32);
    Environment { now_ms: port.now_ms(), seed }
}

/// The value of an expression as an element sees it.
pub(crate) fn evaluate<P: Port>(
    port: &P,
    expression: &Expression,
    scope: Key,
    front: &BTreeMap<Text, Value>,
) -> Result<Value, String> {
    let view = View { state: port.state(), scope, front };
    expression
        .evaluate(&view, &environment(port, scope), &mut budget())
        .map_err(|error| error.to_string())
}

/// The value of something written down or computed.
pub(crate) fn template_value<P: Port>(
    port: &P,
    template: &Template,
    scope: Key,
    front: &BTreeMap<Text, Value>,
) -> Result<Value, String> {
    match template {
        Template::Static(text) => Ok(Value::Text(text.clone())),
        Template::Feel(expression) => evaluate(port, expression, scope, front),
    }
}

/// Text that must be text.
pub(crate) fn text<P: Port>(
    port: &P,
    template: &Template,
    scope: Key,
    what: &str,
) -> Result<Text, Stuck> {
    match template_value(port, template, scope, &BTreeMap::new()) {
        Ok(Value::Text(text)) => Ok(text),
        Ok(other) => Err(wrong_type(what, "text", &other)),
        Err(problem) => Err(failed(what, &problem)),
    }
}

/// Text that may be written as a number, as correlation keys may.
pub(crate) fn text_or_number<P: Port>(
    port: &P,
    template: &Template,
    scope: Key,
    what: &str,
) -> Result<Text, Stuck> {
    match template_value(port, template, scope, &BTreeMap::new()) {
        Ok(Value::Text(text)) => Ok(text),
        Ok(number @ Value::Number(_)) => Ok(number.to_json().into()),
        Ok(other) => Err(wrong_type(what, "text or a number", &other)),
        Err(problem) => Err(failed(what, &problem)),
    }
}

/// Any value as text: what is no text is written as JSON.
pub(crate) fn text_of_any<P: Port>(
    port: &P,
    template: &Template,
    scope: Key,
    what: &str,
) -> Result<Text, Stuck> {
    match template_value(port, template, scope, &BTreeMap::new()) {
        Ok(Value::Text(text)) => Ok(text),
        Ok(Value::Null) => Ok(Text::default()),
        Ok(other) => Ok(other.to_json().trim_matches('"').into()),
        Err(problem) => Err(failed(what, &problem)),
    }
}

/// A whole number, written down or computed.
pub(crate) fn integer<P: Port>(
    port: &P,
    template: &Template,
    scope: Key,
    what: &str,
) -> Result<i32, Stuck> {
    let value = template_value(port, template, scope, &BTreeMap::new())
        .map_err(|problem| failed(what, &problem))?;
    let written =
        if let Value::Text(text) = &value { text.trim().to_owned() } else { value.to_json() };
    let whole = written.split_once('.').map_or(&*written, |(whole, rest)| {
        if rest.bytes().all(|digit| digit == b'0') { whole } else { &*written }
    });
    whole.parse().map_err(|_| wrong_type(what, "a whole number", &value))
}

/// A condition: anything but true is false, but what is no truth value at all is an error.
pub(crate) fn condition<P: Port>(
    port: &P,
    expression: &Expression,
    scope: Key,
    front: &BTreeMap<Text, Value>,
) -> Result<bool, String> {
    let view = View { state: port.state(), scope, front };
    condition_in(port, expression, scope, &view)
}

/// The same, with variables from elsewhere.
pub(crate) fn condition_in<P: Port>(
    port: &P,
    expression: &Expression,
    scope: Key,
    variables: &dyn Scope,
) -> Result<bool, String> {
    let value = expression
        .evaluate(variables, &environment(port, scope), &mut budget())
        .map_err(|error| error.to_string())?;
    if let Value::Bool(holds) = value {
        return Ok(holds);
    }
    Err(format!("the condition is {}, neither true nor false", value.to_json()))
}

fn wrong_type(what: &str, wanted: &str, value: &Value) -> Stuck {
    let message = format!("the {what} must be {wanted}, but it is {}", value.to_json());
    Stuck::new(FlowIncidentKind::ExtractValue, message)
}

fn failed(what: &str, problem: &str) -> Stuck {
    Stuck::new(FlowIncidentKind::ExtractValue, format!("the {what} cannot be computed: {problem}"))
}
