//! The arithmetic of numbers, strings, days and durations. What has no result is `None`.

use std::sync::Arc;

use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, MathematicalOps};

use super::node::Operator;
use super::temporal::{DateTime, DaysDuration, Time, YearsDuration, Zone};
use super::value::Value;

pub(crate) fn apply(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    match operator {
        Operator::Add => add(left, right),
        Operator::Subtract => subtract(left, right),
        Operator::Multiply => multiply(left, right),
        Operator::Divide => divide(left, right),
        Operator::Power => power(left.as_number()?, right.as_number()?).map(Value::Number),
    }
}

pub(crate) fn negate(value: &Value) -> Option<Value> {
    if let Value::DaysDuration(duration) = value {
        return days(-duration.total());
    }
    if let Value::YearsDuration(duration) = value {
        return years(duration.months.checked_neg()?);
    }
    value.as_number().map(|number| Value::Number(-number))
}

fn add(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.checked_add(*right).map(Value::Number),
        (Value::Text(left), Value::Text(right)) => {
            let mut joined = String::with_capacity(left.len() + right.len());
            joined.push_str(left);
            joined.push_str(right);
            Some(Value::Text(Arc::from(joined)))
        }
        (Value::YearsDuration(left), Value::YearsDuration(right)) => {
            years(left.months.checked_add(right.months)?)
        }
        (Value::DaysDuration(left), Value::DaysDuration(right)) => {
            days(left.total().checked_add(right.total())?)
        }
        (Value::DaysDuration(_) | Value::YearsDuration(_), _) => later(right, left, 1),
        _ => later(left, right, 1),
    }
}

fn subtract(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.checked_sub(*right).map(Value::Number),
        (Value::YearsDuration(left), Value::YearsDuration(right)) => {
            years(left.months.checked_sub(right.months)?)
        }
        (Value::DaysDuration(left), Value::DaysDuration(right)) => {
            days(left.total().checked_sub(right.total())?)
        }
        (Value::Time(left), Value::Time(right)) => time_between(left, right),
        (Value::Date(_) | Value::DateTime(_), Value::Date(_) | Value::DateTime(_)) => {
            between(&midnight(left, right)?, &midnight(right, left)?)
        }
        _ => later(left, right, -1),
    }
}

/// A day as its midnight; beside a time with a place it is in Greenwich, beside one without a place
/// it has none.
fn midnight(value: &Value, other: &Value) -> Option<DateTime> {
    if let Value::DateTime(date_time) = value {
        return Some(date_time.clone());
    }
    let zone = if let Value::DateTime(other) = other {
        other.time.zone.as_ref()?;
        Some(Zone::Offset(0))
    } else {
        None
    };
    Some(DateTime { date: value.day()?, time: Time { zone, ..Time::midnight() } })
}

fn time_between(left: &Time, right: &Time) -> Option<Value> {
    if left.zone.is_some() != right.zone.is_some() {
        return None;
    }
    days(i128::from(left.universal_nanoseconds()) - i128::from(right.universal_nanoseconds()))
}

fn between(left: &DateTime, right: &DateTime) -> Option<Value> {
    if left.time.zone.is_some() != right.time.zone.is_some() {
        return None;
    }
    days(left.instant() - right.instant())
}

/// A point in time moved by a duration, forward or back.
fn later(point: &Value, duration: &Value, sign: i8) -> Option<Value> {
    match (point, duration) {
        (Value::Date(date), Value::YearsDuration(duration)) => {
            date.add_months(duration.months.checked_mul(i64::from(sign))?).map(Value::Date)
        }
        (Value::DateTime(point), Value::YearsDuration(duration)) => {
            point.add_months(duration.months.checked_mul(i64::from(sign))?).map(Value::DateTime)
        }
        (Value::Date(date), Value::DaysDuration(duration)) => {
            let start = DateTime { date: *date, time: Time::midnight() };
            start.add(signed(*duration, sign)?).map(|moved| Value::Date(moved.date))
        }
        (Value::DateTime(point), Value::DaysDuration(duration)) => {
            point.add(signed(*duration, sign)?).map(Value::DateTime)
        }
        (Value::Time(time), Value::DaysDuration(duration)) => {
            time.add(signed(*duration, sign)?).map(Value::Time)
        }
        _ => None,
    }
}

fn signed(duration: DaysDuration, sign: i8) -> Option<DaysDuration> {
    DaysDuration::from_total(duration.total() * i128::from(sign))
}

fn multiply(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.checked_mul(*right).map(Value::Number),
        (Value::YearsDuration(duration), Value::Number(factor))
        | (Value::Number(factor), Value::YearsDuration(duration)) => {
            years(Decimal::from(duration.months).checked_mul(*factor)?.trunc().to_i64()?)
        }
        (Value::DaysDuration(duration), Value::Number(factor))
        | (Value::Number(factor), Value::DaysDuration(duration)) => {
            let total = Decimal::try_from_i128_with_scale(duration.total(), 0).ok()?;
            days(total.checked_mul(*factor)?.trunc().to_i128()?)
        }
        _ => None,
    }
}

fn divide(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.checked_div(*right).map(Value::Number),
        (Value::YearsDuration(duration), Value::Number(divisor)) => {
            years(Decimal::from(duration.months).checked_div(*divisor)?.trunc().to_i64()?)
        }
        (Value::YearsDuration(left), Value::YearsDuration(right)) => {
            let months = Decimal::from(left.months);
            months.checked_div(Decimal::from(right.months)).map(Value::Number)
        }
        (Value::DaysDuration(duration), Value::Number(divisor)) => {
            let total = Decimal::try_from_i128_with_scale(duration.total(), 0).ok()?;
            days(total.checked_div(*divisor)?.trunc().to_i128()?)
        }
        (Value::DaysDuration(left), Value::DaysDuration(right)) => {
            let total = |duration: &DaysDuration| {
                Decimal::try_from_i128_with_scale(duration.total(), 0).ok()
            };
            total(left)?.checked_div(total(right)?).map(Value::Number)
        }
        _ => None,
    }
}

/// A whole exponent is exact as long as the digits last; any other goes by logarithms.
fn power(base: Decimal, exponent: Decimal) -> Option<Decimal> {
    if exponent.is_integer() {
        let exponent = exponent.to_i64()?;
        if base.is_zero() && exponent < 0 {
            return None;
        }
        return base.checked_powi(exponent);
    }
    if exponent == Decimal::new(5, 1) {
        return base.sqrt();
    }
    if base.is_sign_negative() {
        return None;
    }
    base.checked_powd(exponent)
}

fn years(months: i64) -> Option<Value> {
    Some(Value::YearsDuration(YearsDuration { months }))
}

fn days(nanoseconds: i128) -> Option<Value> {
    DaysDuration::from_total(nanoseconds).map(Value::DaysDuration)
}
