//! The messages of the protocol, as far as somebody here reads them.
//!
//! Every object may hold more than is known: what is forwarded is forwarded as bytes. A null is as
//! good as nothing, as older kits write it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::line::RecordLine;

/// Text that is borrowed unless it has escapes.
#[derive(Debug, Default, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Around every message: `{"type": T, <field>: {…}}`.
#[derive(Debug, Deserialize)]
pub struct Envelope<'a> {
    /// Which of the others is there.
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    /// With RECORD.
    #[serde(borrow)]
    pub record: Option<&'a RawValue>,
    /// With STATE.
    #[serde(borrow)]
    pub state: Option<&'a RawValue>,
    /// With LOG.
    #[serde(borrow)]
    pub log: Option<&'a RawValue>,
    /// With TRACE.
    #[serde(borrow)]
    pub trace: Option<&'a RawValue>,
    /// With CONTROL.
    #[serde(borrow)]
    pub control: Option<&'a RawValue>,
    /// With SPEC.
    #[serde(borrow)]
    pub spec: Option<&'a RawValue>,
    /// With CONNECTION_STATUS.
    #[serde(rename = "connectionStatus", borrow)]
    pub connection_status: Option<&'a RawValue>,
    /// With CATALOG.
    #[serde(borrow)]
    pub catalog: Option<&'a RawValue>,
    /// With DESTINATION_CATALOG.
    #[serde(borrow)]
    pub destination_catalog: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// Whether the field that belongs to the type is there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let field = match &*self.kind {
            "RECORD" => self.record,
            "STATE" => self.state,
            "LOG" => self.log,
            "TRACE" => self.trace,
            "CONTROL" => self.control,
            "SPEC" => self.spec,
            "CONNECTION_STATUS" => self.connection_status,
            "CATALOG" => self.catalog,
            "DESTINATION_CATALOG" => self.destination_catalog,
            _ => None,
        };
        field.is_some_and(|field| field.get().starts_with('{'))
    }
}

/// A record, parsed.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordEnvelope<'a> {
    #[serde(borrow)]
    stream: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl<'a> RecordEnvelope<'a> {
    pub(crate) fn into_line(self) -> RecordLine<'a> {
        RecordLine {
            stream: self.stream,
            namespace: self.namespace.unwrap_or_default().0,
            data: self.data.map_or(b"", |data| data.get().as_bytes()),
            emitted_at: None,
        }
    }
}

/// What a connector logs.
#[derive(Debug, Deserialize)]
pub struct Log {
    /// FATAL, ERROR, WARN, INFO, DEBUG or TRACE.
    pub level: String,
    /// In words.
    pub message: String,
    /// Of an exception.
    pub stack_trace: Option<String>,
}

/// Anything about the sync that is no data.
#[derive(Debug, Deserialize)]
pub struct Trace {
    /// ERROR, ESTIMATE, STREAM_STATUS or ANALYTICS.
    #[serde(rename = "type")]
    pub kind: String,
    /// Milliseconds since 1970; connectors also send fractions.
    #[serde(default)]
    pub emitted_at: Option<f64>,
    /// With ERROR.
    pub error: Option<TraceError>,
    /// With ESTIMATE.
    pub estimate: Option<Estimate>,
    /// With STREAM_STATUS.
    pub stream_status: Option<StreamStatus>,
}

/// Something went wrong in a connector.
#[derive(Debug, Deserialize)]
pub struct TraceError {
    /// For people.
    #[serde(default)]
    pub message: Option<String>,
    /// For developers.
    pub internal_message: Option<String>,
    /// Of an exception.
    pub stack_trace: Option<String>,
    /// `system_error`, `config_error` or `transient_error`.
    pub failure_type: Option<String>,
    /// Which stream it was about.
    pub stream_descriptor: Option<Descriptor>,
}

/// How much a source thinks is to come.
#[derive(Debug, Deserialize)]
pub struct Estimate {
    /// The stream; empty with SYNC.
    #[serde(default)]
    pub name: String,
    /// STREAM or SYNC.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of the stream.
    pub namespace: Option<String>,
    /// Records in all.
    pub row_estimate: Option<f64>,
    /// Bytes in all.
    pub byte_estimate: Option<f64>,
}

/// Where a stream is.
#[derive(Debug, Deserialize)]
pub struct StreamStatus {
    /// Which stream.
    pub stream_descriptor: Descriptor,
    /// STARTED, RUNNING, COMPLETE or INCOMPLETE.
    pub status: String,
    /// Why it is where it is.
    #[serde(default)]
    pub reasons: Option<Vec<Reason>>,
}

/// Why a stream does not get on.
#[derive(Debug, Deserialize)]
pub struct Reason {
    /// RATE_LIMITED.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The name of a stream. No namespace, null and an empty one are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize, PartialOrd, Ord)]
pub struct Descriptor {
    /// Its name.
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Descriptor {
    /// With an empty namespace as none.
    #[must_use]
    pub fn new(name: &str, namespace: &str) -> Self {
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        Self { name: name.to_owned(), namespace }
    }

    /// The namespace, empty for none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

impl std::fmt::Display for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace() {
            "" => write!(f, "{}", self.name),
            namespace => write!(f, "{namespace}.{}", self.name),
        }
    }
}

/// What a connector wants kept.
#[derive(Debug, Deserialize)]
pub struct Control<'a> {
    /// CONNECTOR_CONFIG.
    #[serde(rename = "type")]
    pub kind: String,
    /// The new configuration.
    #[serde(rename = "connectorConfig", borrow)]
    pub connector_config: Option<ControlConfig<'a>>,
}

/// A configuration that a connector changed, as with a rotated token.
#[derive(Debug, Deserialize)]
pub struct ControlConfig<'a> {
    /// The whole of it.
    #[serde(borrow)]
    pub config: &'a RawValue,
}

/// The answer to `check`.
#[derive(Debug, Clone, Deserialize)]
pub struct ConnectionStatus {
    /// SUCCEEDED or FAILED.
    pub status: String,
    /// Why not.
    #[serde(default)]
    pub message: Option<String>,
}
