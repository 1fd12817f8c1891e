//! Truth, absence, identity, and what Camunda adds to them.

use super::{Builtin, Result, metered, plain, truth};
use crate::feel::EvaluationError;
use crate::feel::compare;
use crate::feel::evaluate::Machine;
use crate::feel::value::Value;

pub(super) const TABLE: &[Builtin] = &[
    plain("not", &[&["negand"]], not),
    plain("is defined", &[&["value"]], is_defined),
    plain("get or else", &[&["value", "default"]], get_or_else),
    plain("is", &[&["value1", "value2"]], is),
    metered("assert", &[&["value", "condition"], &["value", "condition", "cause"]], assert),
    metered("uuid", &[&[]], uuid),
    metered("random number", &[&[]], random_number),
    plain(
        "fromAi",
        &[
            &["value"],
            &["value", "description"],
            &["value", "description", "type"],
            &["value", "description", "type", "schema"],
            &["value", "description", "type", "schema", "options"],
        ],
        from_ai,
    ),
];

fn not(arguments: &[Value]) -> Option<Value> {
    let [Value::Bool(negand)] = arguments else { return None };
    truth(!negand)
}

fn is_defined(arguments: &[Value]) -> Option<Value> {
    let [value] = arguments else { return None };
    truth(!value.is_null())
}

fn get_or_else(arguments: &[Value]) -> Option<Value> {
    let [value, default] = arguments else { return None };
    Some(if value.is_null() { default.clone() } else { value.clone() })
}

/// Whether two values are the same, and not only at the same instant.
fn is(arguments: &[Value]) -> Option<Value> {
    let [left, right] = arguments else { return None };
    let texts = || crate::feel::text::of(left) == crate::feel::text::of(right);
    truth(match (left, right) {
        (Value::Time(_), Value::Time(_)) | (Value::DateTime(_), Value::DateTime(_)) => texts(),
        _ => compare::same(left, right),
    })
}

fn assert(_machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let failed = |cause: &str| Err(EvaluationError::AssertionFailed(cause.to_owned()));
    match arguments {
        [value, Value::Bool(true)] | [value, Value::Bool(true), _] => Ok(Some(value.clone())),
        [_, _, Value::Text(cause)] => failed(cause),
        _ => failed("The condition is not fulfilled"),
    }
}

/// Derived from the seed and from how far the evaluation is: the same wherever it is repeated.
fn uuid(machine: &mut Machine<'_>, _arguments: &[Value]) -> Result {
    let high = draw(machine, 1) & !0xF000 | 0x4000;
    let low = draw(machine, 2) & !(0b11 << 62) | (0b10 << 62);
    Ok(Some(Value::text(&format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    ))))
}

/// At least 0 and below 1, derived as `uuid` is.
fn random_number(machine: &mut Machine<'_>, _arguments: &[Value]) -> Result {
    let digits = i64::try_from(draw(machine, 3) % 1_000_000_000_000_000).unwrap_or(0);
    Ok(Some(Value::Number(rust_decimal::Decimal::new(digits, 15))))
}

/// One round of splitmix64 over all that is known.
fn draw(machine: &Machine<'_>, purpose: u64) -> u64 {
    let step = machine.budget.steps_left.wrapping_mul(4).wrapping_add(purpose);
    let mixed = scramble(machine.environment.seed ^ scramble(step));
    scramble(mixed)
}

fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

fn from_ai(arguments: &[Value]) -> Option<Value> {
    arguments.first().cloned()
}
