//! How points and ranges lie to one another.

use std::cmp::Ordering;

use super::{Builtin, plain};
use crate::feel::compare::order;
use crate::feel::value::{Range, Value};

const POINT_OR_RANGE: &[&[&str]] =
    &[&["point1", "point2"], &["point", "range"], &["range", "point"], &["range1", "range2"]];
const RANGES: &[&[&str]] = &[&["range1", "range2"]];
const POINT_FIRST: &[&[&str]] = &[&["point", "range"], &["range1", "range2"]];
const RANGE_FIRST: &[&[&str]] = &[&["range", "point"], &["range1", "range2"]];
const ALIKE: &[&[&str]] = &[&["point1", "point2"], &["range1", "range2"]];

pub(super) const TABLE: &[Builtin] = &[
    plain("before", POINT_OR_RANGE, |given| over(given, before)),
    plain("after", POINT_OR_RANGE, |given| over(given, |a, b| before(b, a))),
    plain("meets", RANGES, |given| over_ranges(given, meets)),
    plain("met by", RANGES, |given| over_ranges(given, |a, b| meets(b, a))),
    plain("overlaps", RANGES, |given| over_ranges(given, overlaps)),
    plain("overlaps before", RANGES, |given| over_ranges(given, overlaps_before)),
    plain("overlaps after", RANGES, |given| over_ranges(given, |a, b| overlaps_before(b, a))),
    plain("finishes", POINT_FIRST, |given| over_second_range(given, finishes)),
    plain("finished by", RANGE_FIRST, |given| over_first_range(given, |a, b| finishes(b, a))),
    plain("during", POINT_FIRST, |given| over_second_range(given, during)),
    plain("includes", RANGE_FIRST, |given| over_first_range(given, |a, b| during(b, a))),
    plain("starts", POINT_FIRST, |given| over_second_range(given, starts)),
    plain("started by", RANGE_FIRST, |given| over_first_range(given, |a, b| starts(b, a))),
    plain("coincides", ALIKE, coincides),
];

/// A range with both ends, or a point as the range of itself alone.
struct Span<'a> {
    start: &'a Value,
    start_included: bool,
    end: &'a Value,
    end_included: bool,
}

fn span(value: &Value) -> Option<Span<'_>> {
    if let Value::Range(range) = value {
        return of_range(range);
    }
    order(value, value)?;
    Some(Span { start: value, start_included: true, end: value, end_included: true })
}

fn of_range(range: &Range) -> Option<Span<'_>> {
    Some(Span {
        start: range.start.as_ref()?,
        start_included: range.start_included,
        end: range.end.as_ref()?,
        end_included: range.end_included,
    })
}

type Relation = fn(&Span<'_>, &Span<'_>) -> Option<bool>;

fn over(arguments: &[Value], relation: Relation) -> Option<Value> {
    let [left, right] = arguments else { return None };
    relation(&span(left)?, &span(right)?).map(Value::Bool)
}

fn over_ranges(arguments: &[Value], relation: Relation) -> Option<Value> {
    let [Value::Range(_), Value::Range(_)] = arguments else { return None };
    over(arguments, relation)
}

fn over_second_range(arguments: &[Value], relation: Relation) -> Option<Value> {
    let [_, Value::Range(_)] = arguments else { return None };
    over(arguments, relation)
}

fn over_first_range(arguments: &[Value], relation: Relation) -> Option<Value> {
    let [Value::Range(_), _] = arguments else { return None };
    over(arguments, relation)
}

fn before(left: &Span<'_>, right: &Span<'_>) -> Option<bool> {
    Some(match order(left.end, right.start)? {
        Ordering::Less => true,
        Ordering::Equal => !(left.end_included && right.start_included),
        Ordering::Greater => false,
    })
}

fn meets(left: &Span<'_>, right: &Span<'_>) -> Option<bool> {
    let touch = order(left.end, right.start)? == Ordering::Equal;
    Some(touch && left.end_included && right.start_included)
}

fn overlaps(left: &Span<'_>, right: &Span<'_>) -> Option<bool> {
    Some(!before(left, right)? && !before(right, left)?)
}

/// Which start comes first; of equal ones the one that is included.
fn order_of_starts(left: &Span<'_>, right: &Span<'_>) -> Option<Ordering> {
    let included = right.start_included.cmp(&left.start_included);
    Some(order(left.start, right.start)?.then(included))
}

/// Which end comes first; of equal ones the one that is not included.
fn order_of_ends(left: &Span<'_>, right: &Span<'_>) -> Option<Ordering> {
    let included = left.end_included.cmp(&right.end_included);
    Some(order(left.end, right.end)?.then(included))
}

fn overlaps_before(left: &Span<'_>, right: &Span<'_>) -> Option<bool> {
    let starts_before = order_of_starts(left, right)?.is_lt();
    let ends_before = order_of_ends(left, right)?.is_le();
    Some(starts_before && ends_before && !before(left, right)?)
}

fn finishes(inner: &Span<'_>, outer: &Span<'_>) -> Option<bool> {
    let together = order_of_ends(inner, outer)?.is_eq();
    Some(together && order_of_starts(inner, outer)?.is_ge())
}

fn starts(inner: &Span<'_>, outer: &Span<'_>) -> Option<bool> {
    let together = order_of_starts(inner, outer)?.is_eq();
    Some(together && order_of_ends(inner, outer)?.is_le())
}

fn during(inner: &Span<'_>, outer: &Span<'_>) -> Option<bool> {
    Some(order_of_starts(inner, outer)?.is_ge() && order_of_ends(inner, outer)?.is_le())
}

fn coincides(arguments: &[Value]) -> Option<Value> {
    let [left, right] = arguments else { return None };
    if matches!(left, Value::Range(_)) != matches!(right, Value::Range(_)) {
        return None;
    }
    let (left, right) = (span(left)?, span(right)?);
    let together = order_of_starts(&left, &right)?.is_eq() && order_of_ends(&left, &right)?.is_eq();
    Some(Value::Bool(together))
}
