//! The simple part of JavaScript, metered: what most definitions of Conductor consist of.
//!
//! Literals, paths, operators, conditionals, locals, loops, plain functions and the methods of
//! strings and lists that people use. Everything else is [`ScriptError::Unsupported`], and then a
//! real engine in a sandbox has to evaluate it. So the rule here is to be strict: an answer is the
//! answer of that engine, or there is none. There is no IO, no clock and no randomness.
//!
//! Reading order: `scan` makes tokens, `parse` a `tree`; [`Machine`](machine::Machine) runs it, with
//! `evaluate` for expressions, `coerce` for how values turn into one another, `call`, `method` and
//! `global` for what can be called, and `json` for the way in and out.

mod call;
mod coerce;
mod evaluate;
mod global;
mod json;
mod machine;
mod method;
mod parse;
mod scan;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;

use serde_json::Value;

/// The longest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;

/// Enough steps for what people write, and at worst some tens of milliseconds.
pub const STEPS_DEFAULT: u64 = 200_000;

/// How many bytes, roughly, an evaluation may build on its way.
pub const SIZE_MAX: u64 = 32 * 1024 * 1024;

/// Why a script gave no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// It is more than what is evaluated here, or it is no JavaScript at all.
    Unsupported,
    /// It failed, and would anywhere: an error's name and message.
    Failed(String),
    /// It takes more steps, or builds larger values, than it may.
    Budget,
}

/// A script, parsed.
#[derive(Clone, Debug)]
pub struct Script {
    body: tree::Body,
}

/// Parses a script.
pub fn compile(source: &str) -> Result<Script, ScriptError> {
    if source.len() > SCRIPT_BYTES_MAX {
        return Err(ScriptError::Unsupported);
    }
    Ok(Script { body: parse::script(source)? })
}

/// The value of a script: of its last statement, as if it were typed into a console.
pub fn evaluate(
    source: &str,
    bindings: &[(&str, &Value)],
    steps_max: u64,
) -> Result<Value, ScriptError> {
    compile(source)?.evaluate(bindings, steps_max)
}

/// A script whose value is what `body` returns.
pub fn function(body: &str) -> String {
    // On lines of its own, so that a comment at its end stays one.
    format!("(function () {{\n{body}\n}})()")
}

/// Conductor's truth: `true`, or a number above zero.
pub fn truthy(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64().is_some_and(|number| number > 0.0),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

impl Script {
    /// The value of the script with these globals.
    pub fn evaluate(
        &self,
        bindings: &[(&str, &Value)],
        steps_max: u64,
    ) -> Result<Value, ScriptError> {
        let mut machine = machine::Machine::new(bindings, steps_max);
        let value = machine.script(&self.body)?;
        machine.export(&value)
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::Unsupported => formatter.write_str("the script needs a sandbox"),
            ScriptError::Failed(message) => formatter.write_str(message),
            ScriptError::Budget => formatter.write_str("the script takes too many steps"),
        }
    }
}

impl std::error::Error for ScriptError {}
