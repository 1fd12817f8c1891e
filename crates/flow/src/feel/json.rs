//! JSON, read exactly: numbers keep all their digits, objects the order of their names.

use std::fmt::Write;
use std::sync::Arc;

use super::JsonError;
use super::number;
use super::value::Value;

/// How many lists and objects may lie inside one another.
const DEPTH_MAX: u32 = 200;

/// The value of a JSON text.
pub(crate) fn read(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader { text, position: 0, depth: 0 };
    let value = reader.value()?;
    reader.skip_space();
    if reader.position < text.len() {
        return reader.error("expected the end");
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn error<T>(&self, message: &str) -> Result<T, JsonError> {
        Err(JsonError { message: format!("{message} at byte {}", self.position) })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.position += rest.len() - trimmed.len();
    }

    fn take(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let taken = self.rest().starts_with(symbol);
        if taken {
            self.position += symbol.len();
        }
        taken
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        self.skip_space();
        match self.rest().bytes().next() {
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b'{') => self.nested(Reader::object),
            Some(b'[') => self.nested(Reader::array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.take("null") => Ok(Value::Null),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ => self.error("expected a value"),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        if self.depth >= DEPTH_MAX {
            return self.error("values lie too deeply inside one another");
        }
        self.depth += 1;
        self.position += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        if self.take("]") {
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value()?);
            if self.take("]") {
                return Ok(Value::list(items));
            }
            if !self.take(",") {
                return self.error("expected ',' or ']'");
            }
        }
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut entries = Vec::new();
        if self.take("}") {
            return Ok(Value::context(entries));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            if !self.take(":") {
                return self.error("expected ':'");
            }
            entries.push((name, self.value()?));
            if self.take("}") {
                return Ok(Value::context(entries));
            }
            if !self.take(",") {
                return self.error("expected ',' or '}'");
            }
        }
    }

    /// A number; one beyond the range of decimals is null.
    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = self.rest();
        let is_part =
            |found: char| found.is_ascii_digit() || matches!(found, '-' | '+' | '.' | 'e' | 'E');
        let end = rest.find(|found| !is_part(found)).unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or("");
        if !is_number(text) {
            return self.error("expected a number");
        }
        self.position += end;
        Ok(number::parse(text).map_or(Value::Null, Value::Number))
    }

    fn string(&mut self) -> Result<Arc<str>, JsonError> {
        let Some(inner) = self.rest().strip_prefix('"') else {
            return self.error("expected a string");
        };
        let special = |found: char| found == '"' || found == '\\' || found < ' ';
        let mut text = String::new();
        let mut rest = inner;
        loop {
            let Some(at) = rest.find(special) else { return self.error("the string has no end") };
            let (plain, behind) = rest.split_at(at);
            if let Some(after) = behind.strip_prefix('"') {
                self.position = self.text.len() - after.len();
                if text.is_empty() {
                    return Ok(Arc::from(plain));
                }
                text.push_str(plain);
                return Ok(Arc::from(text));
            }
            text.push_str(plain);
            match behind.strip_prefix('\\').and_then(|escape| unescape(escape, &mut text)) {
                Some(after) => rest = after,
                None => return self.error("a string holds what has to be escaped"),
            }
        }
    }
}

/// Writes what an escape stands for and gives what follows it.
fn unescape<'a>(escape: &'a str, text: &mut String) -> Option<&'a str> {
    let found = escape.chars().next()?;
    let plain = match found {
        '"' | '\\' | '/' => found,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unescape_code(escape, text),
        _ => return None,
    };
    text.push(plain);
    escape.get(1..)
}

fn unescape_code<'a>(escape: &'a str, text: &mut String) -> Option<&'a str> {
    let code = |escape: &str| {
        let hex = escape.strip_prefix('u')?.get(..4)?;
        let all_digits = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if all_digits { u32::from_str_radix(hex, 16).ok() } else { None }
    };
    let first = code(escape)?;
    let behind = escape.get(5..)?;
    if let Some(found) = char::from_u32(first) {
        text.push(found);
        return Some(behind);
    }
    let second = behind.strip_prefix('\\').and_then(code);
    match (first, second) {
        (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
            let joined = 0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00);
            text.push(char::from_u32(joined)?);
            behind.get(6..)
        }
        // Half of a pair stands for nothing.
        _ => {
            text.push(char::REPLACEMENT_CHARACTER);
            Some(behind)
        }
    }
}

/// As JSON writes numbers: no needless zeros, digits on both sides of the point.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && digits(fraction)
        && digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
}

/// Appends a value as JSON.
pub(crate) fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => {
            write!(text, "{}", number.normalize()).expect("a string takes what is written to it");
        }
        Value::List(list) => {
            text.push('[');
            for (at, item) in list.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Context(context) => {
            text.push('{');
            for (at, (name, value)) in context.entries().iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write_string(name, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Function(_) => text.push_str("null"),
        Value::Text(own) => write_string(own, text),
        Value::Time(time) => write_string(&time.to_iso(), text),
        Value::DateTime(date_time) => write_string(&date_time.to_iso(), text),
        Value::Date(_) | Value::DaysDuration(_) | Value::YearsDuration(_) | Value::Range(_) => {
            write_string(&super::text::of(value), text)
        }
    }
}

fn write_string(own: &str, text: &mut String) {
    text.push('"');
    let mut rest = own;
    while let Some(at) = rest.find(|found: char| found == '"' || found == '\\' || found < ' ') {
        let (plain, behind) = rest.split_at(at);
        text.push_str(plain);
        let mut characters = behind.chars();
        match characters.next() {
            Some('\n') => text.push_str("\\n"),
            Some('\r') => text.push_str("\\r"),
            Some('\t') => text.push_str("\\t"),
            Some(found @ ('"' | '\\')) => {
                text.push('\\');
                text.push(found);
            }
            Some(found) => write!(text, "\\u{:04x}", u32::from(found))
                .expect("a string takes what is written to it"),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}
