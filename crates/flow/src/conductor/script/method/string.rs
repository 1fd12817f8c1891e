//! Methods of strings. Where places count and a text is not plain ASCII, a real engine has to count:
//! it counts in halves of characters.

use std::rc::Rc;

use super::super::call::{found, two, whole};
use super::super::machine::{Machine, Outcome, Value, unsupported};
use super::super::scan::is_space;

pub(in super::super) fn of_string<'a>(
    machine: &mut Machine<'a>,
    text: &Rc<str>,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    machine.steps(text.len() / 32 + 1)?;
    match (name, arguments) {
        ("toString" | "valueOf", []) => Ok(Value::String(Rc::clone(text))),
        ("trim", []) => machine.text(text.trim_matches(is_space)),
        ("trimStart", []) => machine.text(text.trim_start_matches(is_space)),
        ("trimEnd", []) => machine.text(text.trim_end_matches(is_space)),
        ("toUpperCase", []) if text.is_ascii() => machine.text(&text.to_ascii_uppercase()),
        ("toLowerCase", []) if text.is_ascii() => machine.text(&text.to_ascii_lowercase()),
        ("includes", [part]) => {
            let part = machine.string(part)?;
            Ok(Value::Bool(text.contains(&*part)))
        }
        ("startsWith", [part]) => {
            let part = machine.string(part)?;
            Ok(Value::Bool(text.starts_with(&*part)))
        }
        ("endsWith", [part]) => {
            let part = machine.string(part)?;
            Ok(Value::Bool(text.ends_with(&*part)))
        }
        ("concat", parts) => {
            let mut joined = text.to_string();
            for part in parts {
                let part = machine.string(part)?;
                machine.build(part.len())?;
                joined.push_str(&part);
            }
            machine.text(&joined)
        }
        ("split", [separator]) => split(machine, text, separator),
        ("replace" | "replaceAll", [part, by]) => {
            let part = plain(machine, part)?;
            let by = plain(machine, by)?;
            // A dollar sign has a meaning there.
            if by.contains('$') {
                return unsupported();
            }
            machine.build(text.len() + (text.len() + 1) * by.len())?;
            let once = name == "replace";
            let replaced =
                if once { text.replacen(&*part, &by, 1) } else { text.replace(&*part, &by) };
            // Where a part is empty, each engine unit counts.
            if part.is_empty() && !once { unsupported() } else { machine.text(&replaced) }
        }
        ("repeat", [count]) => {
            let count = machine.number(count)?;
            if !(0.0..=1e9).contains(&count) {
                return unsupported();
            }
            let count = whole(count, usize::MAX >> 33);
            machine.build(text.len().saturating_mul(count))?;
            machine.text(&text.repeat(count))
        }
        _ if text.is_ascii() => by_place(machine, text, name, arguments),
        _ => unsupported(),
    }
}

/// Methods that count places.
fn by_place<'a>(
    machine: &mut Machine<'a>,
    text: &str,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<Value<'a>> {
    let length = text.len();
    let (first, second) = two(arguments)?;
    let given = if let Value::Undefined = second { None } else { Some(&second) };
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    match (name, arguments.len()) {
        ("indexOf", 1) => {
            let part = machine.string(&first)?;
            Ok(found(text.find(&*part)))
        }
        ("lastIndexOf", 1) => {
            let part = machine.string(&first)?;
            Ok(found(text.rfind(&*part)))
        }
        ("charAt", 0 | 1) => {
            let at = machine.number(&first)?.trunc();
            let at = if at.is_nan() { 0.0 } else { at };
            let inside = at >= 0.0;
            let at = whole(at, length);
            machine.text(if inside { part(at, (at + 1).min(length)) } else { "" })
        }
        ("charCodeAt", 0 | 1) => {
            let at = machine.number(&first)?.trunc();
            let at = if at.is_nan() { 0.0 } else { at };
            let byte = if at >= 0.0 { text.as_bytes().get(whole(at, length)) } else { None };
            Ok(Value::Number(byte.map_or(f64::NAN, |byte| f64::from(*byte))))
        }
        ("slice", 0..=2) => {
            let from = machine.place_in(Some(&first), length, 0)?;
            let to = machine.place_in(Some(&second), length, length)?;
            machine.text(part(from, to.max(from)))
        }
        ("substring", 0..=2) => {
            let from = whole(machine.number(&first)?, length);
            let to = count_of(machine, given, length)?;
            machine.text(part(from.min(to), from.max(to)))
        }
        ("substr", 1 | 2) => {
            let from = machine.place_in(Some(&first), length, 0)?;
            let count = count_of(machine, given, length)?;
            machine.text(part(from, from.saturating_add(count).min(length)))
        }
        ("padStart" | "padEnd", 1 | 2) => {
            let target = whole(machine.number(&first)?, usize::MAX >> 33);
            let filler = match given {
                Some(filler) => machine.string(filler)?,
                None => " ".into(),
            };
            if !filler.is_ascii() {
                return unsupported();
            }
            let missing = target.saturating_sub(length);
            machine.build(missing)?;
            let padding: String = filler.chars().cycle().take(missing).collect();
            let padded = if name == "padStart" {
                [&*padding, text].concat()
            } else {
                [text, &*padding].concat()
            };
            machine.text(&padded)
        }
        _ => unsupported(),
    }
}

/// How many of `most` are meant: all if nothing is said.
fn count_of<'a>(
    machine: &mut Machine<'a>,
    given: Option<&Value<'a>>,
    most: usize,
) -> Outcome<usize> {
    match given {
        Some(count) => Ok(whole(machine.number(count)?, most)),
        None => Ok(most),
    }
}

fn split<'a>(machine: &mut Machine<'a>, text: &str, separator: &Value<'a>) -> Outcome<Value<'a>> {
    if let Value::Undefined = separator {
        let whole = machine.text(text)?;
        return machine.list(vec![whole]);
    }
    let separator = plain(machine, separator)?;
    let mut parts = Vec::new();
    if separator.is_empty() {
        if !text.is_ascii() {
            return unsupported();
        }
        for at in 0..text.len() {
            machine.step()?;
            parts.push(machine.text(text.get(at..=at).unwrap_or_default())?);
        }
    } else {
        for part in text.split(&*separator) {
            machine.step()?;
            parts.push(machine.text(part)?);
        }
    }
    machine.list(parts)
}

/// An argument that might be a pattern if it were an object.
fn plain<'a>(machine: &mut Machine<'a>, value: &Value<'a>) -> Outcome<Rc<str>> {
    match value {
        Value::Given(_)
        | Value::List(_)
        | Value::Object(_)
        | Value::Function(_)
        | Value::Global(_) => unsupported(),
        Value::Undefined
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Long(_)
        | Value::String(_) => machine.string(value),
    }
}
