//! From JSON to a search.
//!
//! A member of a filter that nobody knows is refused: who filters by it would get what he did not
//! ask for.

use serde_json::{Map, Value as Json};
use windlass_gateway::read_model::search::PAGE_ITEMS_MAX;
use windlass_gateway::read_model::{
    self, Field, FieldKind, Filter, Order, Search, Start, Test, Value, VariableScope,
};

use super::{Asked, Item, Page, Sort, time};
use crate::rest::problem::{Answered, Problem};
use crate::rest::shape::{out_of_range, required, required_text};

/// Items of a page when the request does not say.
const PAGE_ITEMS_DEFAULT: u32 = 100;

/// The search that is asked for.
pub(super) fn read<I: Item>(asked: Asked) -> Answered<Search<I::Field>> {
    let filter = match asked.filter {
        None | Some(Json::Null) => Filter::All(Vec::new()),
        Some(Json::Object(members)) => all::<I>(&members)?,
        Some(_) => return Err(Problem::unreadable("Request property [filter] cannot be parsed")),
    };
    let sort: Answered<Vec<_>> = asked.sort.unwrap_or_default().into_iter().map(order).collect();
    Ok(Search { filter, sort: sort?, page: page(asked.page.unwrap_or_default())? })
}

fn order<F: Field>(sort: Sort) -> Answered<(F, Order)> {
    let name = required_text("sort.field", sort.field)?;
    let Some(field) = F::named(&name) else {
        let names: Vec<&str> = F::ALL.iter().map(|field| field.name()).collect();
        return Err(out_of_range("sort.field", name, &format!("one of [{}]", names.join(", "))));
    };
    match sort.order.as_deref().map(str::to_ascii_uppercase).as_deref() {
        None | Some("ASC") => Ok((field, Order::Ascending)),
        Some("DESC") => Ok((field, Order::Descending)),
        Some(other) => Err(out_of_range("sort.order", other, "one of [ASC, DESC]")),
    }
}

fn page(asked: Page) -> Answered<read_model::Page> {
    let limit = match asked.limit {
        None => PAGE_ITEMS_DEFAULT,
        Some(given) => {
            let limit = u32::try_from(given).ok().filter(|limit| *limit <= PAGE_ITEMS_MAX);
            let must_be = format!("between 0 and {PAGE_ITEMS_MAX}");
            limit.ok_or_else(|| out_of_range("page.limit", given, &must_be))?
        }
    };
    let start = match (asked.from, asked.after, asked.before) {
        (None, None, None) => Start::Offset(0),
        (Some(from), None, None) => {
            let offset = u64::try_from(from);
            Start::Offset(offset.map_err(|_| out_of_range("page.from", from, "0 or greater"))?)
        }
        (None, Some(after), None) => Start::After(after),
        (None, None, Some(before)) => Start::Before(before),
        _ => return Err(Problem::invalid("Only one of [from, after, before] is allowed.")),
    };
    Ok(read_model::Page { limit, start })
}

fn all<I: Item>(members: &Map<String, Json>) -> Answered<Filter<I::Field>> {
    let wanted = members.iter().filter(|(_, wanted)| !wanted.is_null());
    wanted.map(|(name, wanted)| member::<I>(name, wanted)).collect::<Answered<_>>().map(Filter::All)
}

fn member<I: Item>(name: &str, wanted: &Json) -> Answered<Filter<I::Field>> {
    if let Some(filter) = I::filter(name, wanted)? {
        return Ok(filter);
    }
    if let Some(field) = I::Field::named(name) {
        return self::field(field, wanted);
    }
    Err(Problem::invalid(format!("There is no filter '{name}' here.")))
}

/// Those that pass at least one of a list of filters.
pub(super) fn any<I: Item>(wanted: &Json) -> Answered<Filter<I::Field>> {
    let filters = list("$or", wanted)?.iter().map(|filter| match filter {
        Json::Object(members) => all::<I>(members),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Err(mismatch("$or"))
        }
    });
    filters.collect::<Answered<_>>().map(Filter::Any)
}

/// Those with all of these variables.
pub(super) fn variables<F>(name: &str, wanted: &Json, scope: VariableScope) -> Answered<Filter<F>> {
    let filters = list(name, wanted)?.iter().map(|wanted| {
        let text = wanted.get("name").and_then(Json::as_str).map(str::to_owned);
        let variable = required_text("name", text)?;
        let value = required("value", wanted.get("value"))?;
        let tests = tests("value", FieldKind::Text, value)?;
        let with = |value| Filter::Variable { name: variable.clone(), value, scope };
        Ok(Filter::All(tests.into_iter().map(with).collect()))
    });
    filters.collect::<Answered<_>>().map(Filter::All)
}

/// Those whose list has all of these members.
pub(super) fn has_all<F: Field>(field: F, wanted: &Json) -> Answered<Filter<F>> {
    let name = field.name();
    let filters = list(name, wanted)?
        .iter()
        .map(|member| Ok(Filter::Field(field, Test::Equal(value(name, FieldKind::List, member)?))));
    filters.collect::<Answered<_>>().map(Filter::All)
}

/// Those whose field is, or is as the operators want it.
pub(super) fn field<F: Field>(field: F, wanted: &Json) -> Answered<Filter<F>> {
    let tests = tests(field.name(), field.kind(), wanted)?.into_iter();
    Ok(Filter::All(tests.map(|test| Filter::Field(field, test)).collect()))
}

fn tests(name: &str, kind: FieldKind, wanted: &Json) -> Answered<Vec<Test>> {
    match wanted {
        Json::Object(operators) => operators
            .iter()
            .filter(|(_, given)| !given.is_null())
            .map(|(operator, given)| test(name, kind, operator, given))
            .collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Ok(vec![Test::Equal(value(name, kind, wanted)?)])
        }
    }
}

fn test(name: &str, kind: FieldKind, operator: &str, given: &Json) -> Answered<Test> {
    let one = || value(name, kind, given);
    let many = || {
        let values = list(name, given)?.iter().map(|given| value(name, kind, given));
        values.collect::<Answered<Vec<Value>>>()
    };
    Ok(match operator {
        "$eq" => Test::Equal(one()?),
        "$neq" => Test::NotEqual(one()?),
        "$in" => Test::In(many()?),
        "$notIn" => Test::NotIn(many()?),
        "$like" => Test::Like(given.as_str().ok_or_else(|| mismatch(name))?.to_owned()),
        "$exists" => Test::Exists(given.as_bool().ok_or_else(|| mismatch(name))?),
        "$gt" => Test::Greater(one()?),
        "$gte" => Test::GreaterOrEqual(one()?),
        "$lt" => Test::Less(one()?),
        "$lte" => Test::LessOrEqual(one()?),
        _ => {
            return Err(Problem::invalid(format!("There is no operator '{operator}' for {name}.")));
        }
    })
}

fn value(name: &str, kind: FieldKind, given: &Json) -> Answered<Value> {
    let read = match kind {
        FieldKind::Key => {
            let text = given.as_str().and_then(|text| text.parse().ok());
            text.or_else(|| given.as_i64()).map(Value::Number)
        }
        FieldKind::Number => given.as_i64().map(Value::Number),
        FieldKind::Text | FieldKind::Id | FieldKind::List => {
            given.as_str().map(|text| Value::Text(text.to_owned()))
        }
        FieldKind::Time => given.as_str().and_then(time::read).map(Value::Number),
        FieldKind::Flag => given.as_bool().map(Value::Flag),
    };
    read.ok_or_else(|| mismatch(name))
}

fn list<'j>(name: &str, given: &'j Json) -> Answered<&'j Vec<Json>> {
    given.as_array().ok_or_else(|| mismatch(name))
}

fn mismatch(name: &str) -> Problem {
    Problem::unreadable(format!("Request property [filter.{name}] cannot be parsed"))
}
