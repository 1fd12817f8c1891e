//! What every script can see besides its bindings. No clock and no randomness are among it.

use super::call::two;
use super::coerce::{self, decimal};
use super::evaluate::power;
use super::machine::{Machine, Outcome, Value, unsupported};
use super::scan::is_space;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    Math,
    Json,
    Object,
    Array,
    Number,
    String,
    Boolean,
    ParseInt,
    ParseFloat,
    IsNaN,
    IsFinite,
}

impl Global {
    pub(super) fn named<'a>(name: &str) -> Option<Value<'a>> {
        Some(Value::Global(match name {
            "NaN" => return Some(Value::Number(f64::NAN)),
            "Infinity" => return Some(Value::Number(f64::INFINITY)),
            "Math" => Global::Math,
            "JSON" => Global::Json,
            "Object" => Global::Object,
            "Array" => Global::Array,
            "Number" => Global::Number,
            "String" => Global::String,
            "Boolean" => Global::Boolean,
            "parseInt" => Global::ParseInt,
            "parseFloat" => Global::ParseFloat,
            "isNaN" => Global::IsNaN,
            "isFinite" => Global::IsFinite,
            _ => return None,
        }))
    }

    /// `Math.PI` and the like.
    pub(super) fn constant<'a>(self, name: &str) -> Outcome<Value<'a>> {
        /// Above this, whole numbers have gaps.
        const SAFE: f64 = 9_007_199_254_740_991.0;
        Ok(Value::Number(match (self, name) {
            (Global::Math, "PI") => std::f64::consts::PI,
            (Global::Math, "E") => std::f64::consts::E,
            (Global::Number, "MAX_SAFE_INTEGER") => SAFE,
            (Global::Number, "MIN_SAFE_INTEGER") => -SAFE,
            _ => return unsupported(),
        }))
    }
}

pub(super) fn call<'a>(
    machine: &mut Machine<'a>,
    global: Global,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    let first = arguments.first();
    match global {
        Global::Number => match first {
            None => Ok(Value::Number(0.0)),
            Some(value) => machine.number(value).map(Value::Number),
        },
        Global::String => match first {
            None => machine.text(""),
            Some(value) => machine.string(value).map(Value::String),
        },
        Global::Boolean => Ok(Value::Bool(first.is_some_and(Value::is_true))),
        Global::ParseInt => parse_int(machine, arguments),
        Global::ParseFloat => {
            let text = machine.string(first.unwrap_or(&Value::Undefined))?;
            Ok(Value::Number(decimal(text.trim_start_matches(is_space)).1))
        }
        Global::IsNaN => {
            let number = machine.number(first.unwrap_or(&Value::Undefined))?;
            Ok(Value::Bool(number.is_nan()))
        }
        Global::IsFinite => {
            let number = machine.number(first.unwrap_or(&Value::Undefined))?;
            Ok(Value::Bool(number.is_finite()))
        }
        Global::Math | Global::Json | Global::Object | Global::Array => unsupported(),
    }
}

pub(super) fn call_method<'a>(
    machine: &mut Machine<'a>,
    global: Global,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    match (global, name, arguments) {
        (Global::Math, _, _) => math(machine, name, arguments),
        (Global::Json, "stringify", [value]) => machine.stringify(value),
        (Global::Json, "parse", [text]) => {
            let text = machine.string(text)?;
            machine.parse_json(&text)
        }
        (Global::Object, "keys", [object]) => {
            let names = machine.enumerable(object)?;
            machine.list(names.into_iter().map(Value::String).collect())
        }
        (Global::Object, "values" | "entries", [object]) => {
            let mut values = Vec::new();
            for field in machine.enumerable(object)? {
                let value = machine.get(object, &field)?;
                if name == "values" {
                    values.push(value);
                } else {
                    values.push(machine.list(vec![Value::String(field), value])?);
                }
            }
            machine.list(values)
        }
        (Global::Array, "isArray", [value]) => Ok(Value::Bool(machine.length(value).is_ok())),
        (Global::Number, _, [Value::Long(_)]) => unsupported(),
        (Global::Number, "isInteger", [value]) => {
            Ok(Value::Bool(matches!(value, Value::Number(number) if number.fract() == 0.0)))
        }
        (Global::Number, "isNaN", [value]) => {
            Ok(Value::Bool(matches!(value, Value::Number(number) if number.is_nan())))
        }
        (Global::Number, "isFinite", [value]) => {
            Ok(Value::Bool(matches!(value, Value::Number(number) if number.is_finite())))
        }
        (Global::Number, "parseInt", _) => parse_int(machine, arguments),
        (Global::Number, "parseFloat", _) => call(machine, Global::ParseFloat, arguments),
        _ => unsupported(),
    }
}

fn math<'a>(machine: &mut Machine<'a>, name: &str, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    if let "max" | "min" = name {
        return extreme(machine, name == "max", arguments);
    }
    let (first, second) = two(arguments)?;
    let number = machine.number(&first)?;
    Ok(Value::Number(match name {
        "abs" => number.abs(),
        "ceil" => number.ceil(),
        "floor" => number.floor(),
        "trunc" => number.trunc(),
        "sqrt" => number.sqrt(),
        "sign" if number == 0.0 || number.is_nan() => number,
        "sign" => number.signum(),
        // Halves go up, also below zero.
        "round" if number - number.floor() >= 0.5 => number.ceil(),
        "round" => number.floor(),
        "pow" => power(number, machine.number(&second)?)?,
        _ => return unsupported(),
    }))
}

fn extreme<'a>(
    machine: &mut Machine<'a>,
    most: bool,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    let mut extreme = if most { f64::NEG_INFINITY } else { f64::INFINITY };
    for argument in arguments {
        machine.step()?;
        let number = machine.number(argument)?;
        if extreme.is_nan() || number.is_nan() {
            extreme = f64::NAN;
        } else if (most && number > extreme) || (!most && number < extreme) {
            extreme = number;
        }
    }
    Ok(Value::Number(extreme))
}

fn parse_int<'a>(machine: &mut Machine<'a>, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let text = arguments.first().unwrap_or(&Value::Undefined);
    let text = machine.string(text)?;
    match arguments.get(1) {
        None | Some(Value::Undefined) => {}
        Some(Value::Number(radix)) if *radix == 10.0 => {}
        Some(_) => return unsupported(),
    }
    let text = text.trim_start_matches(is_space);
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text.get(sign..).unwrap_or_default();
    let head = digits.get(..2).unwrap_or_default();
    if head.eq_ignore_ascii_case("0x") {
        return unsupported();
    }
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = text.get(..sign + end).unwrap_or_default();
    Ok(Value::Number(if end == 0 { f64::NAN } else { coerce::text_number(number) }))
}
