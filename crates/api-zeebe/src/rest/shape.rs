//! What requests must have, what is said when they have not, and JSON objects on their way through.

use serde_json::value::RawValue;

use crate::rest::problem::{Answered, Problem};

/// A property that must be there.
pub(crate) fn required<T>(name: &str, given: Option<T>) -> Answered<T> {
    given.ok_or_else(|| missing(name))
}

/// A text that must be there and say something.
pub(crate) fn required_text(name: &str, given: Option<String>) -> Answered<String> {
    required(name, given.filter(|text| !text.trim().is_empty()))
}

fn missing(name: &str) -> Problem {
    Problem::invalid(format!("No {name} provided."))
}

/// A value that is not one of those allowed.
pub(crate) fn out_of_range(name: &str, given: impl std::fmt::Display, must_be: &str) -> Problem {
    Problem::invalid(format!("The value for {name} is '{given}' but must be {must_be}."))
}

/// Exactly one of two properties.
pub(crate) fn one_of<A, B>(
    names: [&str; 2],
    first: Option<A>,
    second: Option<B>,
) -> Answered<Either<A, B>> {
    let [one, other] = names;
    match (first, second) {
        (Some(first), None) => Ok(Either::First(first)),
        (None, Some(second)) => Ok(Either::Second(second)),
        (None, None) => {
            Err(Problem::invalid(format!("At least one of [{one}, {other}] is required.")))
        }
        (Some(_), Some(_)) => {
            Err(Problem::invalid(format!("Only one of [{one}, {other}] is allowed.")))
        }
    }
}

/// See [`one_of`].
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

/// JSON as it came. Missing and `null` are the empty text, which is no variables.
pub(crate) fn text(given: Option<Box<RawValue>>) -> String {
    given.map(|value| value.get().to_owned()).unwrap_or_default()
}

/// An object that another wire carries in a text. What was not made for this wire and is no object
/// is an empty one here: who reads an answer strictly must not lose all of it for one part.
pub(crate) fn object(text: String) -> Box<RawValue> {
    let read = if text.starts_with('{') { RawValue::from_string(text).ok() } else { None };
    read.unwrap_or_else(|| RawValue::from_string("{}".to_owned()).expect("this is JSON"))
}

/// `null` where another wire has an empty text.
pub(crate) fn some_text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
