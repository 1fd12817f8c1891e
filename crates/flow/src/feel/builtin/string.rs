//! Strings and patterns. Positions count characters, from 1.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::{Regex, RegexBuilder};
use rust_decimal::prelude::ToPrimitive;

use super::{Builtin, Result, metered, number, plain, truth};
use crate::feel::EvaluationError;
use crate::feel::evaluate::{Machine, size};
use crate::feel::value::Value;

const STRING: &[&[&str]] = &[&["string"]];
const MATCH: &[&[&str]] = &[&["string", "match"]];

pub(super) const TABLE: &[Builtin] = &[
    plain(
        "substring",
        &[&["string", "start position"], &["string", "start position", "length"]],
        substring,
    ),
    plain("string length", STRING, string_length),
    plain("upper case", STRING, |given| map(given, |text| text.to_uppercase())),
    plain("lower case", STRING, |given| map(given, |text| text.to_lowercase())),
    plain("trim", STRING, |given| map(given, |text| text.trim().to_owned())),
    plain("substring before", MATCH, substring_before),
    plain("substring after", MATCH, substring_after),
    plain("contains", MATCH, |given| test(given, |text, part| text.contains(part))),
    plain("starts with", MATCH, |given| test(given, |text, part| text.starts_with(part))),
    plain("ends with", MATCH, |given| test(given, |text, part| text.ends_with(part))),
    plain("is blank", STRING, is_blank),
    metered("matches", &[&["input", "pattern"], &["input", "pattern", "flags"]], matches),
    metered(
        "replace",
        &[&["input", "pattern", "replacement"], &["input", "pattern", "replacement", "flags"]],
        replace,
    ),
    metered("split", &[&["string", "delimiter"]], split),
    metered("extract", &[&["input", "pattern"]], extract),
    metered(
        "string join",
        &[&["list"], &["list", "delimiter"], &["list", "delimiter", "prefix", "suffix"]],
        string_join,
    ),
    plain("to base64", &[&["value"]], |given| map(given, |text| STANDARD.encode(text))),
    plain("from base64", &[&["value"]], from_base64),
];

fn map(arguments: &[Value], change: impl Fn(&str) -> String) -> Option<Value> {
    let [Value::Text(text)] = arguments else { return None };
    Some(Value::text(&change(text)))
}

fn test(arguments: &[Value], holds: impl Fn(&str, &str) -> bool) -> Option<Value> {
    let [Value::Text(text), Value::Text(part)] = arguments else { return None };
    truth(holds(text, part))
}

fn substring(arguments: &[Value]) -> Option<Value> {
    let (text, start, length) = match arguments {
        [Value::Text(text), Value::Number(start)] => (text, start, None),
        [Value::Text(text), Value::Number(start), Value::Null] => (text, start, None),
        [Value::Text(text), Value::Number(start), Value::Number(length)] => {
            (text, start, Some(length.trunc().to_usize().filter(|length| *length > 0)?))
        }
        _ => return None,
    };
    let count = text.chars().count();
    let start = start.trunc().to_i64()?;
    let from = match (start, crate::feel::iterate::index(count, start)) {
        (0, _) => return None,
        (_, Some(from)) if from <= count => from,
        _ => return None,
    };
    let rest = text.chars().skip(from);
    let part: String = match length {
        None => rest.collect(),
        Some(length) => rest.take(length).collect(),
    };
    Some(Value::text(&part))
}

fn string_length(arguments: &[Value]) -> Option<Value> {
    let [Value::Text(text)] = arguments else { return None };
    number(text.chars().count())
}

fn substring_before(arguments: &[Value]) -> Option<Value> {
    let [Value::Text(text), Value::Text(part)] = arguments else { return None };
    Some(Value::text(text.split_once(&**part).map_or("", |(before, _)| before)))
}

fn substring_after(arguments: &[Value]) -> Option<Value> {
    let [Value::Text(text), Value::Text(part)] = arguments else { return None };
    Some(Value::text(text.split_once(&**part).map_or("", |(_, after)| after)))
}

fn is_blank(arguments: &[Value]) -> Option<Value> {
    let [Value::Text(text)] = arguments else { return None };
    truth(text.trim().is_empty())
}

fn matches(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let (input, pattern, flags) = match arguments {
        [Value::Text(input), Value::Text(pattern)]
        | [Value::Text(input), Value::Text(pattern), Value::Null] => (input, pattern, ""),
        [Value::Text(input), Value::Text(pattern), Value::Text(flags)] => {
            (input, pattern, &**flags)
        }
        _ => return Ok(None),
    };
    let Some(pattern) = compiled(machine, pattern, flags, input)? else { return Ok(None) };
    Ok(truth(pattern.is_match(input)))
}

fn replace(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let (input, pattern, replacement, flags) = match arguments {
        [Value::Text(input), Value::Text(pattern), Value::Text(replacement)]
        | [Value::Text(input), Value::Text(pattern), Value::Text(replacement), Value::Null] => {
            (input, pattern, replacement, "")
        }
        [
            Value::Text(input),
            Value::Text(pattern),
            Value::Text(replacement),
            Value::Text(flags),
        ] => (input, pattern, replacement, &**flags),
        _ => return Ok(None),
    };
    let Some(pattern) = compiled(machine, pattern, flags, input)? else { return Ok(None) };
    let replacement =
        if flags.contains('q') { replacement.replace('$', "$$") } else { template(replacement) };
    // Each match may bring all of the input with it, so the result is bounded before it is built.
    let found = pattern.find_iter(input).count();
    let groups = replacement.matches('$').count();
    let longest = size(found)
        .saturating_mul(size(replacement.len() + groups * input.len()))
        .saturating_add(size(input.len()));
    machine.allocate(longest.min(machine.budget.size_left.saturating_add(1)))?;
    Ok(Some(Value::text(&pattern.replace_all(input, replacement.as_str()))))
}

fn split(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [Value::Text(text), Value::Text(delimiter)] = arguments else { return Ok(None) };
    let Some(pattern) = compiled(machine, delimiter, "", text)? else { return Ok(None) };
    Ok(Some(Value::list(pattern.split(text).map(Value::text).collect())))
}

fn extract(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [Value::Text(input), Value::Text(pattern)] = arguments else { return Ok(None) };
    let Some(pattern) = compiled(machine, pattern, "", input)? else { return Ok(None) };
    let found = pattern.find_iter(input).map(|found| Value::text(found.as_str()));
    Ok(Some(Value::list(found.collect())))
}

/// How many patterns one evaluation keeps.
const PATTERNS_MAX: usize = 16;

/// A pattern with XPath's flags; `None` if it is none. Its cost is counted here, together with that
/// of running it over the input.
fn compiled(
    machine: &mut Machine<'_>,
    pattern: &Arc<str>,
    flags: &str,
    input: &str,
) -> std::result::Result<Option<Regex>, EvaluationError> {
    // A pattern looks at each character once for each of its own states, at worst.
    let to_compile = compile_steps(pattern);
    machine
        .spend((size(input.len()) / 4).saturating_mul(1 + to_compile / 1_000).saturating_add(1))?;
    let known = machine.patterns.iter().find(|(own, with, _)| own == pattern && with == flags);
    if let Some((_, _, compiled)) = known {
        return Ok(compiled.clone());
    }
    machine.spend(to_compile)?;
    let compiled = compile(pattern, flags);
    if machine.patterns.len() >= PATTERNS_MAX {
        machine.patterns.remove(0);
    }
    machine.patterns.push((Arc::clone(pattern), flags.to_owned(), compiled.clone()));
    Ok(compiled)
}

/// What compiling takes: classes of Unicode are large, and counted repetitions copy what they
/// repeat.
fn compile_steps(pattern: &str) -> u64 {
    let classes = size(pattern.matches("\\p").count() + pattern.matches("\\P").count());
    let mut copies = 1_u64;
    for repetition in pattern.split('{').skip(1) {
        let counts = repetition.split('}').next().unwrap_or("").split(',');
        let most = counts.filter_map(|count| count.parse().ok()).max().unwrap_or(1);
        copies = copies.saturating_mul(most).clamp(1, 200);
    }
    let once = size(pattern.len()).saturating_mul(10).saturating_add(classes * 3_000);
    once.saturating_mul(copies).saturating_add(200)
}

fn compile(pattern: &str, flags: &str) -> Option<Regex> {
    if !flags.chars().all(|flag| "smixq".contains(flag)) {
        return None;
    }
    let pattern = if flags.contains('q') {
        regex::escape(pattern)
    } else {
        translated(pattern, flags.contains('x'))
    };
    RegexBuilder::new(&pattern)
        .dot_matches_new_line(flags.contains('s'))
        .multi_line(flags.contains('m'))
        .case_insensitive(flags.contains('i'))
        .crlf(true)
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20)
        .nest_limit(50)
        .build()
        .ok()
}

/// A pattern of XPath or Java in the words of the crate: `[a-z-[aeiou]]` is `[a-z--[aeiou]]`, `\d`
/// and its like are those of ASCII, and white space that does not count does so inside of classes.
fn translated(pattern: &str, skips_space: bool) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut depth = 0_u32;
    let skipped = |found: char, depth: u32| skips_space && depth == 0 && found.is_whitespace();
    let mut characters = pattern.chars().peekable();
    while let Some(found) = characters.next() {
        if skipped(found, depth) {
            continue;
        }
        match found {
            '\\' => {
                let escaped = characters.find(|next| !skipped(*next, depth));
                write_escape(escaped, &mut text);
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '-' if depth > 0 && characters.peek() == Some(&'[') => text.push('-'),
            _ => {}
        }
        text.push(found);
    }
    text.replace("\\p{IsBasicLatin}", "[\\x00-\\x7F]")
}

fn write_escape(escaped: Option<char>, text: &mut String) {
    match escaped {
        Some('d') => text.push_str("[0-9]"),
        Some('D') => text.push_str("[^0-9]"),
        Some('w') => text.push_str("[0-9A-Za-z_]"),
        Some('W') => text.push_str("[^0-9A-Za-z_]"),
        Some('s') => text.push_str("[ \\t\\n\\x0B\\f\\r]"),
        Some('S') => text.push_str("[^ \\t\\n\\x0B\\f\\r]"),
        other => {
            text.push('\\');
            text.extend(other);
        }
    }
}

/// A replacement as XPath and Java write it (`$1`, `\$`) in the words of the crate (`${1}`, `$$`).
fn template(replacement: &str) -> String {
    let mut text = String::with_capacity(replacement.len());
    let mut characters = replacement.chars().peekable();
    while let Some(found) = characters.next() {
        match found {
            '\\' => match characters.next() {
                Some('$') => text.push_str("$$"),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            '$' if characters.peek().is_some_and(char::is_ascii_digit) => {
                text.push_str("${");
                text.extend(characters.next());
                text.push('}');
            }
            '$' => text.push_str("$$"),
            other => text.push(other),
        }
    }
    text
}

fn string_join(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let part = |value: &Value| {
        if value.is_null() { Some(String::new()) } else { value.as_text().map(ToString::to_string) }
    };
    let (list, parts) = match arguments {
        [list] => (list, [&Value::Null, &Value::Null, &Value::Null]),
        [list, delimiter] => (list, [delimiter, &Value::Null, &Value::Null]),
        [list, delimiter, prefix, suffix] => (list, [delimiter, prefix, suffix]),
        _ => return Ok(None),
    };
    let [Some(delimiter), Some(prefix), Some(suffix)] = parts.map(part) else { return Ok(None) };
    let Some(list) = list.to_list() else { return Ok(None) };
    let mut joined: u64 = size(prefix.len() + suffix.len());
    for item in list.iter() {
        if !matches!(item, Value::Null | Value::Text(_)) {
            return Ok(None);
        }
        joined = joined.saturating_add(item.weight()).saturating_add(size(delimiter.len()));
    }
    machine.allocate(joined)?;
    let items: Vec<String> = list.iter().filter(|item| !item.is_null()).filter_map(part).collect();
    Ok(Some(Value::text(&format!("{prefix}{}{suffix}", items.join(&delimiter)))))
}

fn from_base64(arguments: &[Value]) -> Option<Value> {
    let [Value::Text(text)] = arguments else { return None };
    let bytes = STANDARD.decode(&**text).ok()?;
    String::from_utf8(bytes).ok().map(|text| Value::text(&text))
}
