//! The fast way to read a record: known words at its beginning and at its end, nothing between.
//!
//! ```text
//! {"type":"RECORD","record":{"stream":"users","data":{ ... },"emitted_at":1700000000000}}
//! |------------------ head ------------------------|    |------------- tail ------------|
//! ```
//!
//! With or without a space behind colons and commas, with a namespace in the head or in the tail, with
//! nulls in the tail. In JSON that is well-formed the tail cannot be within a string, for a quote there is
//! escaped. Two words are looked for in between, by an instruction that compares 32 bytes at once: a
//! second `"RECORD"`, as where two lines were written into one another, and a `"namespace"`. Whoever has
//! one is parsed.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::{Finder, FinderRev};

use crate::protocol::line::RecordLine;

/// How far from the end the tail is looked for.
const TAIL_BYTES_MAX: usize = 320;

static RECORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"RECORD\""));
static EMITTED_AT: LazyLock<FinderRev<'static>> =
    LazyLock::new(|| FinderRev::new(b"\"emitted_at\""));
static NAMESPACE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"namespace\""));

/// Reads a record of a usual spelling; `None` says that the line must be parsed.
#[must_use]
pub fn record(line: &[u8]) -> Option<RecordLine<'_>> {
    let head = head(line)?;
    let body = line.get(head.data..)?;
    let tail = tail(body)?;
    let data = body.get(..tail.data_end)?;
    if RECORD.find(data).is_some() || NAMESPACE.find(data).is_some() {
        return None;
    }
    let namespace = match (head.namespace, tail.namespace) {
        (Some(_), Some(_)) => return None,
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => "",
    };
    Some(RecordLine {
        stream: Cow::Borrowed(head.stream),
        namespace: Cow::Borrowed(namespace),
        data,
        emitted_at: Some(tail.emitted_at),
    })
}

struct Head<'a> {
    stream: &'a str,
    namespace: Option<&'a str>,
    /// Where the brace that opens the data is.
    data: usize,
}

fn head(line: &[u8]) -> Option<Head<'_>> {
    let mut at = Cursor { bytes: line, at: 0 };
    at.word(b"{\"type\"")?;
    at.colon()?;
    at.word(b"\"RECORD\"")?;
    at.comma()?;
    at.word(b"\"record\"")?;
    at.colon()?;
    at.word(b"{")?;
    let (mut stream, mut namespace) = (None, None);
    loop {
        if stream.is_none() && at.word(b"\"stream\"").is_some() {
            at.colon()?;
            stream = Some(at.simple_string()?);
        } else if namespace.is_none() && at.word(b"\"namespace\"").is_some() {
            at.colon()?;
            namespace = Some(at.string_or_null()?);
        } else {
            at.word(b"\"data\"")?;
            at.colon()?;
            break;
        }
        at.comma()?;
    }
    let data = at.at;
    at.word(b"{")?;
    Some(Head { stream: stream?, namespace, data })
}

struct Tail<'a> {
    /// Behind the brace that closes the data, counted from the one that opens it.
    data_end: usize,
    namespace: Option<&'a str>,
    /// The number, as it stands there.
    emitted_at: &'a [u8],
}

fn tail(body: &[u8]) -> Option<Tail<'_>> {
    let key = emitted_at(body)?;
    let before = body.get(..key)?;
    let before = before.strip_suffix(b" ").unwrap_or(before).strip_suffix(b",")?;
    if before.last() != Some(&b'}') {
        return None;
    }
    let mut at = Cursor { bytes: body, at: key };
    at.word(b"\"emitted_at\"")?;
    at.colon()?;
    let emitted_at = at.digits()?;
    let mut namespace = None;
    while at.comma().is_some() {
        if namespace.is_none() && at.word(b"\"namespace\"").is_some() {
            at.colon()?;
            namespace = Some(at.string_or_null()?);
        } else {
            // Connectors of older kits write what is not there as null.
            at.word(b"\"meta\"").or_else(|| at.word(b"\"file_reference\""))?;
            at.colon()?;
            at.word(b"null")?;
        }
    }
    at.word(b"}}")?;
    (at.at == body.len()).then_some(Tail { data_end: before.len(), namespace, emitted_at })
}

/// Where the last `"emitted_at"` is.
fn emitted_at(body: &[u8]) -> Option<usize> {
    const KEY: &[u8] = b"\"emitted_at\"";
    // Mostly there is a number behind it, and nothing more.
    let digits = body.strip_suffix(b"}}")?;
    let count = digits.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let colon = digits.get(..digits.len() - count)?;
    let colon = colon.strip_suffix(b" ").unwrap_or(colon);
    if let Some(before) = colon.strip_suffix(b":").and_then(|key| key.strip_suffix(KEY)) {
        return Some(before.len());
    }
    let from = body.len().saturating_sub(TAIL_BYTES_MAX);
    EMITTED_AT.rfind(body.get(from..)?).map(|at| from + at)
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// With its length known to the compiler, which then compares numbers.
    fn word<const N: usize>(&mut self, word: &[u8; N]) -> Option<()> {
        (self.rest().first_chunk::<N>() == Some(word)).then(|| self.at += N)
    }

    fn colon(&mut self) -> Option<()> {
        self.word(b":")?;
        let _ = self.word(b" ");
        Some(())
    }

    fn comma(&mut self) -> Option<()> {
        self.word(b",")?;
        let _ = self.word(b" ");
        Some(())
    }

    /// A string without escapes.
    fn simple_string(&mut self) -> Option<&'a str> {
        self.word(b"\"")?;
        let rest = self.rest();
        let end = memchr::memchr2(b'"', b'\\', rest)?;
        if rest.get(end) != Some(&b'"') {
            return None;
        }
        let text = rest.get(..end)?;
        self.at += end + 1;
        if text.iter().any(|byte| *byte < b' ') {
            return None;
        }
        std::str::from_utf8(text).ok()
    }

    /// Null is no name, and so is none.
    fn string_or_null(&mut self) -> Option<&'a str> {
        if self.word(b"null").is_some() { Some("") } else { self.simple_string() }
    }

    /// A number without sign, fraction or leading zero.
    fn digits(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.get(..count)?;
        let leading_zero = count > 1 && digits.first() == Some(&b'0');
        if count == 0 || leading_zero {
            return None;
        }
        self.at += count;
        Some(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_spellings_are_scanned() {
        for line in [
            r#"{"type":"RECORD","record":{"stream":"u","data":{"a":"}"},"emitted_at":1700000000000}}"#,
            r#"{"type": "RECORD", "record": {"stream": "u", "data": {"a": 1}, "emitted_at": 17}}"#,
            r#"{"type":"RECORD","record":{"namespace":"n","stream":"u","data":{},"emitted_at":0}}"#,
            r#"{"type":"RECORD","record":{"stream":"u","data":{},"emitted_at":1,"namespace":null,"meta":null}}"#,
        ] {
            assert!(record(line.as_bytes()).is_some(), "{line}");
        }
    }

    #[test]
    fn what_may_mean_something_else_is_not() {
        for line in [
            r#"{"type":"RECORD","record":{"stream":"u","data":{"namespace":1},"emitted_at":1}}"#,
            r#"{"type":"RECORD","record":{"stream":"u","data":{"RECORD":1},"emitted_at":1}}"#,
            r#"{"type":"RECORD","record":{"stream":"u\n","data":{},"emitted_at":1}}"#,
            r#"{"type":"RECORD","record":{"stream":"u","data":{},"emitted_at":1.5}}"#,
            r#"{"type":"RECORD","record":{"stream":"u","data":{},"emitted_at":1,"meta":{}}}"#,
            r#"{"type":"RECORD","record":{"stream":"u","data":{},"emitted_at":1},"x":{}}"#,
            r#"{"type":"RECORD","record":{"stream":"u","stream":"v","data":{},"emitted_at":1}}"#,
        ] {
            assert!(record(line.as_bytes()).is_none(), "{line}");
        }
    }
}
