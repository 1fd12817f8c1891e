//! One value of many.

use std::cmp::Ordering;

use rust_decimal::{Decimal, MathematicalOps};

use super::{Builtin, Result, number, spread};
use crate::feel::arithmetic;
use crate::feel::compare;
use crate::feel::evaluate::{Machine, size};
use crate::feel::node::Operator;
use crate::feel::value::Value;

pub(super) const TABLE: &[Builtin] = &[
    spread("min", |machine, items| extreme(machine, items, Ordering::Less)),
    spread("max", |machine, items| extreme(machine, items, Ordering::Greater)),
    spread("sum", sum),
    spread("product", |machine, items| over_numbers(machine, items, product)),
    spread("mean", |machine, items| over_numbers(machine, items, mean)),
    spread("median", |machine, items| over_numbers(machine, items, median)),
    spread("stddev", |machine, items| over_numbers(machine, items, stddev)),
    spread("mode", mode),
    spread("all", |machine, items| junction(machine, items, false)),
    spread("and", |machine, items| junction(machine, items, false)),
    spread("any", |machine, items| junction(machine, items, true)),
    spread("or", |machine, items| junction(machine, items, true)),
];

fn extreme(machine: &mut Machine<'_>, items: &[Value], wanted: Ordering) -> Result {
    machine.spend(size(items.len()))?;
    let mut items = items.iter();
    let Some(mut best) = items.next() else { return Ok(None) };
    if compare::order(best, best).is_none() {
        return Ok(None);
    }
    for item in items {
        match compare::order(item, best) {
            Some(order) if order == wanted => best = item,
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(Some(best.clone()))
}

/// Numbers, or durations of one kind.
fn sum(machine: &mut Machine<'_>, items: &[Value]) -> Result {
    machine.spend(size(items.len()))?;
    let Some((first, rest)) = items.split_first() else { return Ok(None) };
    if !matches!(first, Value::Number(_) | Value::DaysDuration(_) | Value::YearsDuration(_)) {
        return Ok(None);
    }
    let add = |sum: Value, item: &Value| {
        let same_kind = std::mem::discriminant(&sum) == std::mem::discriminant(item);
        if same_kind { arithmetic::apply(Operator::Add, &sum, item) } else { None }
    };
    Ok(rest.iter().try_fold(first.clone(), add))
}

/// Null for no items, and if one of them is no number.
fn over_numbers(
    machine: &mut Machine<'_>,
    items: &[Value],
    run: fn(Vec<Decimal>) -> Option<Decimal>,
) -> Result {
    machine.spend(size(items.len()))?;
    let numbers = numbers(items).filter(|numbers| !numbers.is_empty());
    Ok(numbers.and_then(run).map(Value::Number))
}

fn numbers(items: &[Value]) -> Option<Vec<Decimal>> {
    items.iter().map(Value::as_number).collect()
}

fn product(numbers: Vec<Decimal>) -> Option<Decimal> {
    numbers.into_iter().try_fold(Decimal::ONE, |product, number| product.checked_mul(number))
}

fn total(numbers: &[Decimal]) -> Option<Decimal> {
    numbers.iter().try_fold(Decimal::ZERO, |sum, number| sum.checked_add(*number))
}

fn mean(numbers: Vec<Decimal>) -> Option<Decimal> {
    total(&numbers)?.checked_div(Decimal::from(numbers.len()))
}

fn median(mut numbers: Vec<Decimal>) -> Option<Decimal> {
    numbers.sort();
    let middle = numbers.len() / 2;
    let high = *numbers.get(middle)?;
    if numbers.len() % 2 == 1 {
        return Some(high);
    }
    numbers.get(middle.checked_sub(1)?)?.checked_add(high)?.checked_div(Decimal::TWO)
}

/// Of a sample: divided by one less than there are numbers.
fn stddev(numbers: Vec<Decimal>) -> Option<Decimal> {
    let degrees = Decimal::from(numbers.len().checked_sub(1).filter(|degrees| *degrees > 0)?);
    let mean = mean(numbers.clone())?;
    let squares: Option<Vec<Decimal>> = numbers
        .into_iter()
        .map(|number| {
            let distance = number.checked_sub(mean)?;
            distance.checked_mul(distance)
        })
        .collect();
    total(&squares?)?.checked_div(degrees)?.sqrt()
}

/// The numbers that come most often, in their order.
fn mode(machine: &mut Machine<'_>, items: &[Value]) -> Result {
    machine.spend(size(items.len()))?;
    let Some(mut numbers) = numbers(items) else { return Ok(None) };
    numbers.sort();
    let runs: Vec<&[Decimal]> = numbers.chunk_by(|left, right| left == right).collect();
    let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0);
    let modes = runs.iter().filter(|run| run.len() == longest);
    Ok(Some(Value::list(modes.filter_map(|run| number(*run.first()?)).collect())))
}

/// Three-valued: one `until` decides, whatever else is null.
fn junction(machine: &mut Machine<'_>, items: &[Value], until: bool) -> Result {
    machine.spend(size(items.len()))?;
    if items.iter().any(|item| matches!(item, Value::Bool(found) if *found == until)) {
        return Ok(Some(Value::Bool(until)));
    }
    let all = items.iter().all(|item| matches!(item, Value::Bool(_)));
    Ok(all.then_some(Value::Bool(!until)))
}
