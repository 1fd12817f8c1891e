//! What a line of a connector's output is.
//!
//! Most lines are records, and of a record only three things matter: which stream, and where its data
//! begins and ends. [`read`] finds them by [`scan`] where the line has one of the usual spellings, and
//! parses the envelope where it has not. Both ways say the same, which the tests below hold against
//! random lines.
//!
//! What the scan does not see: whether the JSON *inside* of `data` is well-formed. Such a record reaches
//! the destination as it is, which says what it thinks of it. A line into which another one was
//! written (two threads, one output) is seen, and is no message.

use std::borrow::Cow;

use crate::protocol::message::{Envelope, RecordEnvelope};
use crate::protocol::scan;

/// A line, as far as it was read.
#[derive(Debug)]
pub enum Line<'a> {
    /// A record: what the pipe is for.
    Record(RecordLine<'a>),
    /// Any other message.
    Message(Box<Envelope<'a>>),
    /// Not a message: it is logged, and never forwarded.
    Invalid(Invalid),
    /// Nothing but spaces.
    Blank,
}

/// Why a line is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// It is not a JSON object.
    NotJson,
    /// It is one, without a `type` that is known and the field that belongs to it.
    NotAMessage,
}

/// What is read of a record.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordLine<'a> {
    /// The name of the stream.
    pub stream: Cow<'a, str>,
    /// Its namespace; empty if the record has none, or null.
    pub namespace: Cow<'a, str>,
    /// The bytes of `data`, its braces included; empty if there is none, or null. If the record was
    /// scanned, fields that stand between `data` and `emitted_at` are at their end.
    pub data: &'a [u8],
    /// When it was emitted, as the number stands there. `None` if the record was parsed: then it may
    /// have fields that are not listed here.
    pub emitted_at: Option<&'a [u8]>,
}

impl RecordLine<'_> {
    /// Whether there is anything in `data`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let inner = self.data.get(1..).unwrap_or_default();
        inner.trim_ascii_start().first().is_none_or(|byte| *byte == b'}')
    }
}

/// Reads a line, with or without its line feed.
#[must_use]
pub fn read(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Line::Blank;
    }
    match scan::record(line) {
        Some(record) => Line::Record(record),
        None => parse(line),
    }
}

/// The slow way, which knows any spelling.
#[must_use]
pub fn parse(line: &[u8]) -> Line<'_> {
    if line.first() != Some(&b'{') {
        return Line::Invalid(Invalid::NotJson);
    }
    let envelope: Envelope<'_> = match serde_json::from_slice(line) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => return Line::Invalid(Invalid::NotAMessage),
        Err(_) => return Line::Invalid(Invalid::NotJson),
    };
    if envelope.kind != "RECORD" {
        return if envelope.is_whole() {
            Line::Message(Box::new(envelope))
        } else {
            Line::Invalid(Invalid::NotAMessage)
        };
    }
    let Some(record) = envelope.record else { return Line::Invalid(Invalid::NotAMessage) };
    match serde_json::from_str::<RecordEnvelope<'_>>(record.get()) {
        Ok(record) => Line::Record(record.into_line()),
        Err(_) => Line::Invalid(Invalid::NotAMessage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: &str) -> RecordLine<'_> {
        match read(line.as_bytes()) {
            Line::Record(record) => record,
            other @ (Line::Message(_) | Line::Invalid(_) | Line::Blank) => {
                panic!("{line}: {other:?}")
            }
        }
    }

    #[test]
    fn records_of_several_spellings() {
        let lines = [
            r#"{"type":"RECORD","record":{"stream":"users","data":{"a":1},"emitted_at":1}}"#,
            r#"{"type": "RECORD", "record": {"stream": "users", "data": {"a":1}, "emitted_at": 17}}"#,
            r#"{"record":{"data":{"a":1},"emitted_at":1,"stream":"users"},"type":"RECORD"}"#,
            r#"{"type":"RECORD","record":{"namespace":null,"stream":"users","data":{"a":1},"emitted_at":1,"meta":null}}"#,
            r#"{"type":"RECORD","record":{"namespace":"","stream":"users","data":{"a":1},"emitted_at":1.5}}"#,
            "{\t\"type\" : \"RECORD\" ,\"record\" :{\"stream\": \"us\\u0065rs\", \"data\": {\"a\":1}, \"emitted_at\": 1 } }\r",
        ];
        for line in lines {
            let record = record(line);
            assert_eq!((&*record.stream, &*record.namespace), ("users", ""), "{line}");
            assert_eq!(record.data, br#"{"a":1}"#, "{line}");
        }
        let line = r#"{"type":"RECORD","record":{"stream":"u","data":{"a":1},"emitted_at":1,"namespace":"n","meta":null}}"#;
        assert_eq!(&*record(line).namespace, "n");
    }

    #[test]
    fn what_is_no_message() {
        let cases = [
            ("hello", Invalid::NotJson),
            ("{", Invalid::NotJson),
            ("[]", Invalid::NotJson),
            ("{}", Invalid::NotAMessage),
            (r#"{"type":"STREAM","stream":{}}"#, Invalid::NotAMessage),
            (r#"{"type":"RECORD"}"#, Invalid::NotAMessage),
            (r#"{"type":"STATE","state":null}"#, Invalid::NotAMessage),
            (r#"{"type":"RECORD","record":{"data":{}}}"#, Invalid::NotAMessage),
            (r#"{"type":"RECORD","record":{"stream":"a","data":{"#, Invalid::NotJson),
            (
                r#"{"type":"RECORD","record":{"stream":"a","data":{"x":"y{"type":"RECORD","record":{"stream":"a","data":{"x":1},"emitted_at":1}}"#,
                Invalid::NotJson,
            ),
        ];
        for (line, expected) in cases {
            match read(line.as_bytes()) {
                Line::Invalid(invalid) => assert_eq!(invalid, expected, "{line}"),
                other @ (Line::Record(_) | Line::Message(_) | Line::Blank) => {
                    panic!("{line}: {other:?}")
                }
            }
        }
        assert!(matches!(read(b" \r\n"), Line::Blank));
    }

    #[test]
    fn empty_data_is_seen() {
        for data in ["{}", "{ }", "null"] {
            let line = format!(
                r#"{{"type":"RECORD","record":{{"stream":"a","data":{data},"emitted_at":1}}}}"#
            );
            assert!(record(&line).is_empty(), "{line}");
        }
    }

    /// Scan and parse agree on random lines: spacing, order of keys, escapes, nested look-alikes.
    #[test]
    fn the_scan_and_the_parse_agree() {
        let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
        println!("SEED={seed} cargo test -p windlass-connector the_scan_and_the_parse_agree");
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut scanned_count, mut exact_count) = (0, 0);
        for _ in 0..20_000 {
            let line = random_line(&mut random);
            let scanned = scan::record(line.as_bytes());
            let Line::Record(parsed) = parse(line.as_bytes()) else { panic!("{line}") };
            let Some(scanned) = scanned else { continue };
            scanned_count += 1;
            assert_eq!(scanned.stream, parsed.stream, "{line}");
            assert_eq!(scanned.namespace, parsed.namespace, "{line}");
            // A scan takes what stands between the data and `emitted_at` along.
            assert!(scanned.data.starts_with(parsed.data), "{line}");
            assert_eq!(scanned.is_empty(), parsed.is_empty(), "{line}");
            exact_count += u32::from(scanned.data == parsed.data);
        }
        assert!(exact_count > 2_000, "only {exact_count} had the same data");
        assert!(scanned_count > 2_000, "only {scanned_count} lines were of a usual spelling");
    }

    /// Bytes that are no JSON never make the scan say what the parse refuses, but for what is in `data`.
    #[test]
    fn damaged_lines_do_not_panic() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..20_000 {
            let mut line = random_line(&mut random).into_bytes();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..line.len());
                match random.u8(..3) {
                    0 => line[at] = random.u8(..),
                    1 => line.truncate(at.max(1)),
                    _ => line.insert(at, b"{}\",:\\ "[random.usize(..7)]),
                }
            }
            let _ = read(&line);
        }
    }

    fn random_line(random: &mut fastrand::Rng) -> String {
        let space = ["", "", " ", "  "][random.usize(..4)];
        let colon = format!(":{space}");
        let comma = format!(",{space}");
        let names = ["users", "a b", "x\\\"y", "caf\\u00e9", "data", "type", "é"];
        let values = [
            "1",
            "null",
            "\"x\"",
            "{\"type\":\"RECORD\"}",
            "[1,{\"emitted_at\":5}]",
            "-1.5e3",
            "\"},\\\"emitted_at\\\":12}}\"",
            "\"\\\\\"",
            "{\"namespace\":\"q\"}",
            "\"RECORD\"",
        ];
        let pick =
            |random: &mut fastrand::Rng, from: &[&str]| from[random.usize(..from.len())].to_owned();
        let mut inner = Vec::new();
        for number in 0..random.usize(..4) {
            inner.push(format!("\"k{number}\"{colon}{}", pick(random, &values)));
        }
        let stream = format!("\"stream\"{colon}\"{}\"", pick(random, &names));
        let data = format!("\"data\"{colon}{{{}}}", inner.join(&comma));
        let emitted = format!("\"emitted_at\"{colon}{}", random.u32(..));
        let mut fields = vec![stream, data, emitted];
        if random.bool() {
            let namespace = pick(random, &["null", "\"\"", "\"public\"", "\"a\\nb\""]);
            let at = if random.bool() { 0 } else { fields.len() };
            fields.insert(at, format!("\"namespace\"{colon}{namespace}"));
        }
        if random.u8(..4) == 0 {
            let meta = pick(random, &["null", "{\"changes\":[]}"]);
            fields.push(format!("\"meta\"{colon}{meta}"));
        }
        if random.u8(..4) == 0 {
            random.shuffle(&mut fields);
        }
        let mut outer = vec![
            format!("\"type\"{colon}\"RECORD\""),
            format!("\"record\"{colon}{{{}}}", fields.join(&comma)),
        ];
        if random.u8(..5) == 0 {
            outer.push(format!("\"extra\"{colon}{{\"stream\":\"no\"}}"));
        }
        if random.u8(..5) == 0 {
            random.shuffle(&mut outer);
        }
        format!("{{{}}}", outer.join(&comma))
    }
}
