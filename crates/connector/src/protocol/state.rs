//! States: what a source wants to be told when it starts again.

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::protocol::fields::Fields;
use crate::protocol::message::Descriptor;
use crate::protocol::semantic::{self, Print};

/// What a state is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One stream; the sum of these messages is the state.
    Stream(Descriptor),
    /// All streams; the last message is the state.
    Global,
    /// All streams, in a shape that only the source knows; the last message is the state.
    Legacy,
}

impl Scope {
    /// As the protocol has it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Stream(_) => "STREAM",
            Self::Global => "GLOBAL",
            Self::Legacy => "LEGACY",
        }
    }
}

/// How many records a connector says it saw since the state before.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
pub struct Stats {
    /// Records.
    #[serde(rename = "recordCount", default)]
    pub record_count: Option<f64>,
    /// Of them refused; at destinations only.
    #[serde(rename = "rejectedRecordCount", default)]
    pub rejected_record_count: Option<f64>,
}

/// A state that cannot be read.
#[derive(Debug, Error)]
pub enum StateError {
    /// It has not the shape of one.
    #[error("the state is not shaped as one: {0}")]
    Shape(#[from] serde_json::Error),
    /// None of STREAM, GLOBAL, LEGACY.
    #[error("the state has the type {0}, which is not known")]
    Type(String),
    /// A STREAM without `stream`, a GLOBAL without `global`.
    #[error("the state has no field {0}")]
    Lacks(&'static str),
}

/// A state, as it came.
#[derive(Debug)]
pub struct State<'a> {
    /// What it is about.
    pub scope: Scope,
    /// The number that we gave it; not every destination gives it back.
    pub id: Option<u64>,
    /// The same for states that mean the same.
    pub print: Print,
    /// Whether the state of the stream is null: it is to be forgotten.
    pub is_reset: bool,
    /// The source's count.
    pub source_stats: Option<Stats>,
    /// The destination's count.
    pub destination_stats: Option<Stats>,
    fields: Fields<'a>,
}

#[derive(Deserialize)]
struct StreamState {
    stream_descriptor: Descriptor,
    #[serde(default)]
    stream_state: Value,
}

#[derive(Deserialize)]
struct GlobalState {
    #[serde(default)]
    shared_state: Value,
    stream_states: Vec<StreamState>,
}

impl<'a> State<'a> {
    /// Reads what stands in `state` of a message, or an element of a state file.
    ///
    /// # Errors
    /// If it has not the shape of a state.
    pub fn read(text: &'a str) -> Result<Self, StateError> {
        let fields = Fields::read(text)?;
        let kind: Option<String> = fields.get("type").map(serde_json::from_str).transpose()?;
        let (scope, value) = match kind.as_deref() {
            Some("STREAM") => read_stream(&fields)?,
            Some("GLOBAL") => (Scope::Global, read_global(&fields)?),
            Some("LEGACY") | None => {
                let data = fields.get("data").map(serde_json::from_str).transpose()?;
                (Scope::Legacy, data.unwrap_or(Value::Null))
            }
            Some(other) => return Err(StateError::Type(other.to_owned())),
        };
        let stats = |name| fields.get(name).map(serde_json::from_str).transpose();
        Ok(Self {
            id: fields.get("id").and_then(whole_number),
            print: semantic::print(&value),
            is_reset: matches!(scope, Scope::Stream(_)) && value.is_null(),
            source_stats: stats("sourceStats")?,
            destination_stats: stats("destinationStats")?,
            scope,
            fields,
        })
    }

    /// As it goes to the destination: with an id, a count of records, and the destination's name.
    ///
    /// # Errors
    /// If the descriptor cannot be read again.
    pub fn for_destination(
        &mut self,
        id: u64,
        record_count: u64,
        name: Option<&Descriptor>,
    ) -> Result<String, StateError> {
        if let Some(name) = name {
            self.rename(name)?;
        }
        if self.source_stats.and_then(|stats| stats.record_count).is_none() {
            // Counts are fractions on the wire.
            self.fields.set("sourceStats", format!("{{\"recordCount\":{record_count}.0}}"));
        }
        self.fields.set("id", id.to_string());
        Ok(format!("{{\"type\":\"STATE\",\"state\":{}}}\n", self.fields.to_json()))
    }

    /// As it is kept: without what belongs to this sync only, under the source's name.
    ///
    /// # Errors
    /// If the descriptor cannot be read again.
    pub fn to_kept(mut self, name: Option<&Descriptor>) -> Result<String, StateError> {
        if let Some(name) = name {
            self.rename(name)?;
        }
        for field in ["id", "sourceStats", "destinationStats"] {
            self.fields.remove(field);
        }
        if self.scope != Scope::Legacy {
            self.fields.remove("data");
        }
        Ok(self.fields.to_json())
    }

    fn rename(&mut self, name: &Descriptor) -> Result<(), StateError> {
        let stream = self.fields.get("stream").ok_or(StateError::Lacks("stream"))?.to_owned();
        let mut stream = Fields::read(&stream)?;
        let descriptor = stream.get("stream_descriptor").unwrap_or("{}").to_owned();
        let mut descriptor = Fields::read(&descriptor)?;
        descriptor.set("name", json!(name.name).to_string());
        match &name.namespace {
            Some(namespace) => descriptor.set("namespace", json!(namespace).to_string()),
            None => descriptor.remove("namespace"),
        }
        stream.set("stream_descriptor", descriptor.to_json());
        let json = stream.to_json();
        self.fields.set("stream", json);
        Ok(())
    }
}

fn read_stream(fields: &Fields<'_>) -> Result<(Scope, Value), StateError> {
    let stream = fields.get("stream").ok_or(StateError::Lacks("stream"))?;
    let StreamState { stream_descriptor: stream, stream_state } = serde_json::from_str(stream)?;
    Ok((Scope::Stream(Descriptor::new(&stream.name, stream.namespace())), stream_state))
}

/// Destinations may list the streams in any order.
fn read_global(fields: &Fields<'_>) -> Result<Value, StateError> {
    let global = fields.get("global").ok_or(StateError::Lacks("global"))?;
    let mut global: GlobalState = serde_json::from_str(global)?;
    global.stream_states.sort_by_key(|state| {
        let stream = &state.stream_descriptor;
        (stream.name.clone(), stream.namespace().to_owned())
    });
    let streams = global.stream_states.into_iter().map(|state| {
        let stream = state.stream_descriptor;
        json!([stream.name, stream.namespace(), state.stream_state])
    });
    Ok(json!([global.shared_state, streams.collect::<Vec<_>>()]))
}

/// Some libraries write whole numbers with a fraction.
fn whole_number(text: &str) -> Option<u64> {
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

/// The state of a stream that never sent one: an empty one.
#[must_use]
pub fn missing(stream: &Descriptor) -> String {
    json!({"type": "STREAM", "stream": {"stream_descriptor": stream, "stream_state": {}}})
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_what_they_mean() {
        let stream = State::read(
            r#"{"type":"STREAM","stream":{"stream_descriptor":{"name":"a","namespace":""},"stream_state":{"x":1.50}},"data":{}}"#,
        )
        .unwrap();
        assert_eq!(stream.scope, Scope::Stream(Descriptor::new("a", "")));
        let echoed = State::read(
            r#"{"type": "STREAM", "stream": {"stream_state": {"x": 1.5}, "stream_descriptor": {"name": "a", "namespace": null}}, "id": 7.0, "destinationStats": {"recordCount": 2.0}}"#,
        )
        .unwrap();
        assert_eq!((echoed.print, echoed.id), (stream.print, Some(7)));
        assert_eq!(echoed.destination_stats.unwrap().record_count, Some(2.0));
        assert_eq!(State::read(r#"{"data":{"a":1}}"#).unwrap().scope, Scope::Legacy);
        let one = r#"{"type":"GLOBAL","global":{"stream_states":[{"stream_descriptor":{"name":"a"}},{"stream_descriptor":{"name":"b"},"stream_state":1}]}}"#;
        let two = r#"{"type":"GLOBAL","global":{"shared_state":null,"stream_states":[{"stream_descriptor":{"name":"b"},"stream_state":1},{"stream_descriptor":{"name":"a","namespace":null},"stream_state":null}]}}"#;
        assert_eq!(State::read(one).unwrap().print, State::read(two).unwrap().print);
        for wrong in ["1", r#"{"type":"STREAM"}"#, r#"{"type":"GLOBAL"}"#, r#"{"type":"X"}"#] {
            assert!(State::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn there_and_back() {
        let text = r#"{"type":"STREAM","stream":{"stream_descriptor":{"name":"a","namespace":"s"},"stream_state":{"n":1.50},"z":1},"data":{"old":1},"y":2}"#;
        let mapped = Descriptor::new("p_a", "");
        let sent = State::read(text).unwrap().for_destination(3, 9, Some(&mapped)).unwrap();
        assert_eq!(
            sent,
            "{\"type\":\"STATE\",\"state\":{\"type\":\"STREAM\",\"stream\":{\"stream_descriptor\":\
             {\"name\":\"p_a\"},\"stream_state\":{\"n\":1.50},\"z\":1},\"data\":{\"old\":1},\"y\":2,\
             \"sourceStats\":{\"recordCount\":9.0},\"id\":3}}\n"
        );
        let message: Value = serde_json::from_str(&sent).unwrap();
        let echoed = message["state"].to_string();
        let source = Descriptor::new("a", "s");
        let kept = State::read(&echoed).unwrap().to_kept(Some(&source)).unwrap();
        let expected = r#"{"type":"STREAM","stream":{"stream_descriptor":{"name":"a","namespace":"s"},"stream_state":{"n":1.5},"z":1},"y":2}"#;
        assert_eq!(kept, expected);
        assert_eq!(
            State::read(text).unwrap().to_kept(None).unwrap().replace("1.50", "1.5"),
            expected
        );
    }

    #[test]
    fn a_null_state_is_a_reset() {
        let text =
            r#"{"type":"STREAM","stream":{"stream_descriptor":{"name":"a"},"stream_state":null}}"#;
        assert!(State::read(text).unwrap().is_reset);
        assert!(!State::read(&missing(&Descriptor::new("a", ""))).unwrap().is_reset);
    }
}
