//! Rounding, roots and remainders.

use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, MathematicalOps, RoundingStrategy};

use super::{Builtin, Result, metered, plain, truth};
use crate::feel::evaluate::{Machine, SERIES_STEPS};
use crate::feel::number;
use crate::feel::temporal::{DaysDuration, YearsDuration};
use crate::feel::value::Value;

const SCALED: &[&[&str]] = &[&["n", "scale"]];
const MAYBE_SCALED: &[&[&str]] = &[&["n"], &["n", "scale"]];
const NUMBER: &[&[&str]] = &[&["number"]];

pub(super) const TABLE: &[Builtin] = &[
    plain("decimal", &[&["n", "scale"], &["n", "scale", "mode"]], decimal),
    plain("floor", MAYBE_SCALED, |given| rounded(given, RoundingStrategy::ToNegativeInfinity)),
    plain("ceiling", MAYBE_SCALED, |given| rounded(given, RoundingStrategy::ToPositiveInfinity)),
    plain("round up", SCALED, |given| rounded(given, RoundingStrategy::AwayFromZero)),
    plain("round down", SCALED, |given| rounded(given, RoundingStrategy::ToZero)),
    plain("round half up", SCALED, |given| rounded(given, RoundingStrategy::MidpointAwayFromZero)),
    plain("round half down", SCALED, |given| rounded(given, RoundingStrategy::MidpointTowardZero)),
    plain("round half even", SCALED, |given| rounded(given, RoundingStrategy::MidpointNearestEven)),
    plain("abs", &[&["n"], &["number"]], abs),
    plain("modulo", &[&["dividend", "divisor"]], modulo),
    plain("sqrt", NUMBER, sqrt),
    metered("log", NUMBER, log),
    metered("exp", NUMBER, exp),
    plain("odd", NUMBER, odd),
    plain("even", NUMBER, even),
];

fn decimal(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [n, scale, Value::Text(mode)] => {
            let strategy = match mode.to_uppercase().as_str() {
                "UP" => RoundingStrategy::AwayFromZero,
                "DOWN" => RoundingStrategy::ToZero,
                "CEILING" => RoundingStrategy::ToPositiveInfinity,
                "FLOOR" => RoundingStrategy::ToNegativeInfinity,
                "HALF_UP" => RoundingStrategy::MidpointAwayFromZero,
                "HALF_DOWN" => RoundingStrategy::MidpointTowardZero,
                "HALF_EVEN" => RoundingStrategy::MidpointNearestEven,
                _ => return None,
            };
            rounded(&[n.clone(), scale.clone()], strategy)
        }
        _ => rounded(arguments, RoundingStrategy::MidpointNearestEven),
    }
}

fn rounded(arguments: &[Value], strategy: RoundingStrategy) -> Option<Value> {
    let (n, scale) = match arguments {
        [Value::Number(n)] => (*n, 0),
        [Value::Number(n), Value::Number(scale)] => (*n, scale.trunc().to_i32()?),
        _ => return None,
    };
    if !(-6_111..=6_176).contains(&scale) {
        return None;
    }
    let places = u32::try_from(scale.max(0)).ok()?;
    if scale >= 0 {
        return Some(Value::Number(n.round_dp_with_strategy(places, strategy)));
    }
    let shifted = number::shift(n, scale)?.round_dp_with_strategy(0, strategy);
    number::shift(shifted, -scale).map(Value::Number)
}

fn abs(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Number(n)] => Some(Value::Number(n.abs())),
        [Value::DaysDuration(duration)] => {
            DaysDuration::from_total(duration.total().abs()).map(Value::DaysDuration)
        }
        [Value::YearsDuration(duration)] => {
            let months = duration.months.checked_abs()?;
            Some(Value::YearsDuration(YearsDuration { months }))
        }
        _ => None,
    }
}

/// The remainder has the sign of the divisor.
fn modulo(arguments: &[Value]) -> Option<Value> {
    let [Value::Number(dividend), Value::Number(divisor)] = arguments else { return None };
    let remainder = dividend.checked_rem(*divisor)?;
    remainder.checked_add(*divisor)?.checked_rem(*divisor).map(Value::Number)
}

fn sqrt(arguments: &[Value]) -> Option<Value> {
    let [Value::Number(n)] = arguments else { return None };
    n.sqrt().map(Value::Number)
}

fn log(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    machine.spend(SERIES_STEPS)?;
    let [Value::Number(n)] = arguments else { return Ok(None) };
    Ok(n.checked_ln().map(Value::Number))
}

fn exp(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    machine.spend(SERIES_STEPS)?;
    let [Value::Number(n)] = arguments else { return Ok(None) };
    Ok(n.checked_exp_with_tolerance(Decimal::new(1, 20)).map(Value::Number))
}

fn odd(arguments: &[Value]) -> Option<Value> {
    let [Value::Number(n)] = arguments else { return None };
    truth(n.checked_rem(Decimal::TWO)?.abs() == Decimal::ONE)
}

fn even(arguments: &[Value]) -> Option<Value> {
    let [Value::Number(n)] = arguments else { return None };
    truth(n.checked_rem(Decimal::TWO)?.is_zero())
}
