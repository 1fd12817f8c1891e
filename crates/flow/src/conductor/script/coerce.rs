//! How values turn into one another, and when they are equal.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::machine::{Machine, Outcome, Value, unsupported};
use super::scan::is_space;

/// Above this, whole numbers of the language have gaps.
const SAFE_MAX: i64 = 1 << 53;

/// What every object inherits; what these names mean is not known here.
const INHERITED: &[&str] = &[
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
}

impl<'a> Value<'a> {
    /// A value of a binding.
    pub(super) fn given(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) if whole.abs() > SAFE_MAX => Value::Long(json),
                (None, _) if number.is_u64() => Value::Long(json),
                (_, Some(number)) => Value::Number(number),
                (_, None) => Value::Long(json),
            },
            Json::String(text) => Value::String(text.as_str().into()),
            Json::Array(_) | Json::Object(_) => Value::Given(json),
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Undefined | Value::Null => false,
            Value::Bool(truth) => *truth,
            Value::Number(number) => *number != 0.0 && !number.is_nan(),
            Value::String(text) => !text.is_empty(),
            Value::Long(_)
            | Value::Given(_)
            | Value::List(_)
            | Value::Object(_)
            | Value::Function(_)
            | Value::Global(_) => true,
        }
    }

    pub(super) fn is_nullish(&self) -> bool {
        matches!(self, Value::Undefined | Value::Null)
    }

    /// What `typeof` says.
    pub(super) fn kind(&self) -> Outcome<&'static str> {
        Ok(match self {
            Value::Undefined => "undefined",
            Value::Bool(_) => "boolean",
            Value::Number(_) | Value::Long(_) => "number",
            Value::String(_) => "string",
            Value::Null | Value::Given(_) | Value::List(_) | Value::Object(_) => "object",
            Value::Function(_) => "function",
            Value::Global(_) => return unsupported(),
        })
    }
}

impl<'a> Machine<'a> {
    /// What is left of a value when it is no object: text of lists and objects.
    pub(super) fn primitive(&mut self, value: &Value<'a>) -> Outcome<Value<'a>> {
        match value {
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_) => Ok(value.clone()),
            Value::Given(_) | Value::List(_) | Value::Object(_) => {
                self.string(value).map(Value::String)
            }
            Value::Function(_) | Value::Global(_) => unsupported(),
        }
    }

    pub(super) fn string(&mut self, value: &Value<'a>) -> Outcome<Rc<str>> {
        Ok(match value {
            Value::Undefined => "undefined".into(),
            Value::Null => "null".into(),
            Value::Bool(truth) => if *truth { "true" } else { "false" }.into(),
            Value::Number(number) => number_text(*number).into(),
            Value::String(text) => Rc::clone(text),
            Value::List(_) | Value::Given(Json::Array(_)) => {
                let items = self.items(value)?;
                self.join(&items, ",")?
            }
            Value::Object(_) | Value::Given(_) => {
                for name in ["toString", "valueOf"] {
                    if self.own(value, name)?.is_some() {
                        return unsupported();
                    }
                }
                "[object Object]".into()
            }
            Value::Long(_) | Value::Function(_) | Value::Global(_) => return unsupported(),
        })
    }

    pub(super) fn join(&mut self, items: &[Value<'a>], between: &str) -> Outcome<Rc<str>> {
        let mut joined = String::new();
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                joined.push_str(between);
            }
            if !item.is_nullish() {
                let text = self.deeper(|machine| machine.string(item))?;
                joined.push_str(&text);
                self.build(text.len())?;
            }
            self.build(between.len())?;
        }
        Ok(joined.into())
    }

    pub(super) fn number(&mut self, value: &Value<'a>) -> Outcome<f64> {
        match self.primitive(value)? {
            Value::Undefined => Ok(f64::NAN),
            Value::Null => Ok(0.0),
            Value::Bool(truth) => Ok(if truth { 1.0 } else { 0.0 }),
            Value::Number(number) => Ok(number),
            Value::String(text) => Ok(text_number(&text)),
            Value::Long(_)
            | Value::Given(_)
            | Value::List(_)
            | Value::Object(_)
            | Value::Function(_)
            | Value::Global(_) => unsupported(),
        }
    }

    /// `==`.
    pub(super) fn equal(&mut self, left: &Value<'a>, right: &Value<'a>) -> Outcome<bool> {
        if left.is_nullish() || right.is_nullish() {
            return Ok(left.is_nullish() && right.is_nullish());
        }
        let is_object = |value: &Value<'_>| match value {
            Value::Given(_) | Value::List(_) | Value::Object(_) => true,
            Value::Function(_) | Value::Global(_) => true,
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_) => false,
        };
        if is_object(left) && is_object(right) {
            return same(left, right);
        }
        let left = self.primitive(left)?;
        let right = self.primitive(right)?;
        if left.kind()? == right.kind()? {
            return same(&left, &right);
        }
        // A bool, a number, a text: two different ones meet as numbers.
        Ok(self.number(&left)? == self.number(&right)?)
    }

    /// Which is less; none if one of them is not a number and not both are texts.
    pub(super) fn order(
        &mut self,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Outcome<Option<Ordering>> {
        let left = self.primitive(left)?;
        let right = self.primitive(right)?;
        if let (Value::String(left), Value::String(right)) = (&left, &right) {
            return Ok(Some(left.encode_utf16().cmp(right.encode_utf16())));
        }
        Ok(self.number(&left)?.partial_cmp(&self.number(&right)?))
    }
}

/// `===`.
pub(super) fn same(left: &Value<'_>, right: &Value<'_>) -> Outcome<bool> {
    Ok(match (left, right) {
        (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Given(left), Value::Given(right)) => std::ptr::eq(*left, *right),
        (Value::List(left), Value::List(right)) => left == right,
        (Value::Object(left), Value::Object(right)) => left == right,
        (Value::Function(left), Value::Function(right)) => left == right,
        (Value::Long(_), Value::Long(_) | Value::Number(_))
        | (Value::Number(_), Value::Long(_)) => {
            return unsupported();
        }
        (Value::Global(_), _) | (_, Value::Global(_)) => return unsupported(),
        _ => false,
    })
}

/// The index of a list that a name is.
pub(super) fn index(name: &str) -> Option<u32> {
    let canonical = name == "0" || !name.starts_with('0');
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let index = if canonical && digits { name.parse().ok()? } else { return None };
    (index != u32::MAX).then_some(index)
}

/// A number as text: the fewest digits that mean it, and an exponent only where people want one.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", number.abs());
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = digits.replace('.', "");
    let sign = if number < 0.0 { "-" } else { "" };
    let count = i64::try_from(digits.len()).unwrap_or_default();
    // How many digits stand before the point.
    let point = exponent.parse::<i64>().unwrap_or_default() + 1;
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
    let (head, tail) = digits
        .split_at_checked(usize::try_from(point).unwrap_or_default())
        .unwrap_or((digits.as_str(), ""));
    let text = match point {
        point if count <= point && point <= 21 => format!("{digits}{}", zeros(point - count)),
        1..=21 => format!("{head}.{tail}"),
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        point => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
            let rest = if rest.is_empty() { String::new() } else { format!(".{rest}") };
            let exponent = point - 1;
            let plus = if exponent > 0 { "+" } else { "" };
            format!("{first}{rest}e{plus}{exponent}")
        }
    };
    format!("{sign}{text}")
}

/// A text as a number, all of it.
pub(super) fn text_number(text: &str) -> f64 {
    let text = text.trim_matches(is_space);
    if text.is_empty() {
        return 0.0;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let head = text.get(..2).unwrap_or_default();
        if head.eq_ignore_ascii_case(prefix) {
            return radix_number(text.get(2..).unwrap_or_default(), radix);
        }
    }
    let (length, number) = decimal(text);
    if length == text.len() { number } else { f64::NAN }
}

fn radix_number(digits: &str, radix: u32) -> f64 {
    if digits.is_empty() {
        return f64::NAN;
    }
    digits
        .chars()
        .try_fold(0.0, |number, c| {
            c.to_digit(radix).map(|digit| number * f64::from(radix) + f64::from(digit))
        })
        .unwrap_or(f64::NAN)
}

/// The decimal number that a text begins with, and how long it is; NaN and 0 if there is none.
pub(super) fn decimal(text: &str) -> (usize, f64) {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at, at > start)
    };
    let sign = usize::from(text.starts_with(['+', '-']));
    let unsigned = text.get(sign..).unwrap_or_default();
    if unsigned.starts_with("Infinity") {
        let number = if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
        return (sign + "Infinity".len(), number);
    }
    let (mut end, whole) = digits(sign);
    if bytes.get(end) == Some(&b'.') {
        let (fraction_end, fraction) = digits(end + 1);
        if whole || fraction {
            end = fraction_end;
        }
        if !whole && !fraction {
            return (0, f64::NAN);
        }
    } else if !whole {
        return (0, f64::NAN);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let behind = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let (exponent_end, exponent) = digits(behind);
        if exponent {
            end = exponent_end;
        }
    }
    let number = text.get(..end).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
    (end, number)
}
