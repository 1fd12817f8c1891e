//! Which streams there are, how they are synced, and what they are called on either side.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::protocol::message::Descriptor;

/// More streams than any source has.
pub const STREAMS_MAX: usize = 20_000;

/// A catalog that cannot be used.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// It is not shaped as a configured catalog.
    #[error("the catalog is not a configured catalog: {0}")]
    Shape(#[from] serde_json::Error),
    /// No stream at all.
    #[error("the catalog has no streams")]
    Empty,
    /// More than [`STREAMS_MAX`].
    #[error("the catalog has {0} streams, more than {STREAMS_MAX}")]
    TooMany(usize),
    /// Twice the same name.
    #[error("two streams of the catalog are called {0} in the {1}")]
    Twice(Descriptor, &'static str),
}

/// What is done with the records at the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DestinationSyncMode {
    /// They are added.
    Append,
    /// They take the place of what was there.
    Overwrite,
    /// They are added; of those with one key the last one stays.
    AppendDedup,
    /// They take the place of what was there, one for each key.
    OverwriteDedup,
    /// They change what is there.
    Update,
    /// They mark what is there.
    SoftDelete,
}

/// What is read from the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// Everything.
    FullRefresh,
    /// What is new since the last state.
    Incremental,
}

/// A stream that is synced.
#[derive(Debug, Clone)]
pub struct Stream {
    /// What the source calls it.
    pub descriptor: Descriptor,
    /// What the destination calls it.
    pub mapped: Descriptor,
    /// What is read.
    pub sync_mode: SyncMode,
    /// What is done with it.
    pub destination_sync_mode: DestinationSyncMode,
    /// Paths of the fields of the key.
    pub primary_key: Vec<Vec<String>>,
    /// The fields of its records.
    pub json_schema: Value,
    /// The top-level fields that the connection wants; `None` is all of them.
    pub selected: Option<Vec<String>>,
    /// Whether a full refresh can go on where it was.
    pub is_resumable: bool,
}

impl Stream {
    /// Whether a record without any key is an error.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        self.sync_mode == SyncMode::Incremental
            && self.destination_sync_mode == DestinationSyncMode::AppendDedup
            && !self.primary_key.is_empty()
    }
}

/// How namespaces are called at the destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NamespaceRule {
    /// As at the source.
    #[default]
    Source,
    /// As the destination has it by default: none is sent.
    Destination,
    /// This text, in which `${SOURCE_NAMESPACE}` stands for the source's; nothing but spaces is none.
    Custom(String),
}

/// How streams are called at the destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// Of the namespace.
    pub namespace: NamespaceRule,
    /// Before the name.
    pub prefix: String,
}

impl Mapping {
    /// What a stream is called at the destination.
    #[must_use]
    pub fn map(&self, stream: &Descriptor) -> Descriptor {
        let namespace = match &self.namespace {
            NamespaceRule::Source => stream.namespace().to_owned(),
            NamespaceRule::Destination => String::new(),
            NamespaceRule::Custom(format) => {
                format.replace("${SOURCE_NAMESPACE}", stream.namespace())
            }
        };
        Descriptor::new(&format!("{}{}", self.prefix, stream.name), namespace.trim())
    }
}

/// The streams of a sync.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// In the catalog's order.
    pub streams: Vec<Stream>,
    raw: Vec<Value>,
    by_name: FxHashMap<Descriptor, usize>,
    by_mapped: FxHashMap<Descriptor, usize>,
}

#[derive(Deserialize)]
struct RawCatalog {
    streams: Vec<Value>,
}

#[derive(Deserialize)]
struct RawConfigured {
    stream: RawStream,
    sync_mode: SyncMode,
    destination_sync_mode: DestinationSyncMode,
    #[serde(default)]
    primary_key: Option<Vec<Vec<String>>>,
}

#[derive(Deserialize)]
struct RawStream {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    json_schema: Value,
    #[serde(default)]
    is_resumable: Option<bool>,
}

impl Catalog {
    /// Reads a configured catalog.
    ///
    /// # Errors
    /// If it has not the shape of one, no streams, too many, or one of them twice.
    pub fn new(catalog: &Value, mapping: &Mapping) -> Result<Self, CatalogError> {
        let raw = RawCatalog::deserialize(catalog)?.streams;
        match raw.len() {
            0 => return Err(CatalogError::Empty),
            count if count > STREAMS_MAX => return Err(CatalogError::TooMany(count)),
            _ => {}
        }
        let streams: Result<Vec<Stream>, serde_json::Error> =
            raw.iter().map(|value| stream_of(value, mapping)).collect();
        let streams = streams?;
        let (mut by_name, mut by_mapped) = (FxHashMap::default(), FxHashMap::default());
        for (index, stream) in streams.iter().enumerate() {
            if by_name.insert(stream.descriptor.clone(), index).is_some() {
                return Err(CatalogError::Twice(stream.descriptor.clone(), "source"));
            }
            if by_mapped.insert(stream.mapped.clone(), index).is_some() {
                return Err(CatalogError::Twice(stream.mapped.clone(), "destination"));
            }
        }
        Ok(Self { streams, raw, by_name, by_mapped })
    }

    /// Of these fields only the ones that the connection wants are sent on.
    pub fn select(&mut self, stream: &Descriptor, fields: Vec<String>) {
        if let Some(index) = self.by_name.get(stream)
            && let Some(stream) = self.streams.get_mut(*index)
        {
            stream.selected = Some(fields);
        }
    }

    /// The stream that the source calls so.
    #[must_use]
    pub fn find(&self, stream: &Descriptor) -> Option<usize> {
        self.by_name.get(stream).copied()
    }

    /// The stream that the destination calls so.
    #[must_use]
    pub fn find_mapped(&self, stream: &Descriptor) -> Option<usize> {
        self.by_mapped.get(stream).copied()
    }

    /// For the source, as it came.
    #[must_use]
    pub fn for_source(&self) -> Value {
        json!({ "streams": self.raw })
    }

    /// For the destination, with its names.
    #[must_use]
    pub fn for_destination(&self) -> Value {
        let renamed = self.raw.iter().zip(&self.streams).map(|(raw, stream)| {
            let mut raw = raw.clone();
            if let Some(inner) = raw.get_mut("stream").and_then(Value::as_object_mut) {
                inner.insert("name".to_owned(), json!(stream.mapped.name));
                if inner.contains_key("namespace") || stream.mapped.namespace.is_some() {
                    inner.insert("namespace".to_owned(), json!(stream.mapped.namespace));
                }
            }
            raw
        });
        json!({ "streams": renamed.collect::<Vec<Value>>() })
    }
}

fn stream_of(value: &Value, mapping: &Mapping) -> Result<Stream, serde_json::Error> {
    let raw = RawConfigured::deserialize(value)?;
    let namespace = raw.stream.namespace.unwrap_or_default();
    let descriptor = Descriptor::new(&raw.stream.name, &namespace);
    Ok(Stream {
        mapped: mapping.map(&descriptor),
        descriptor,
        sync_mode: raw.sync_mode,
        destination_sync_mode: raw.destination_sync_mode,
        primary_key: raw.primary_key.unwrap_or_default(),
        json_schema: raw.stream.json_schema,
        selected: None,
        is_resumable: raw.stream.is_resumable.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(names: &[(&str, Option<&str>)]) -> Value {
        let streams = names.iter().map(|(name, namespace)| {
            json!({"stream": {"name": name, "namespace": namespace, "json_schema": {}, "other": 1},
                   "sync_mode": "full_refresh", "destination_sync_mode": "append", "more": 2})
        });
        json!({ "streams": streams.collect::<Vec<_>>() })
    }

    #[test]
    fn names_are_mapped_and_the_rest_stays() {
        let rule = NamespaceRule::Custom("x_${SOURCE_NAMESPACE} ".to_owned());
        let mapping = Mapping { namespace: rule, prefix: "p_".to_owned() };
        let read = Catalog::new(&catalog(&[("a", Some("s"))]), &mapping).unwrap();
        let sent = read.for_destination();
        let expected = json!({"streams": [{
            "stream": {"name": "p_a", "namespace": "x_s", "json_schema": {}, "other": 1},
            "sync_mode": "full_refresh", "destination_sync_mode": "append", "more": 2}]});
        assert_eq!(sent, expected);
        assert_eq!(read.find(&Descriptor::new("a", "s")), Some(0));
        assert_eq!(read.find_mapped(&Descriptor::new("p_a", "x_s")), Some(0));
        assert_eq!(read.find_mapped(&Descriptor::new("a", "s")), None);
    }

    #[test]
    fn catalogs_that_are_refused() {
        let none = Mapping::default();
        assert!(matches!(Catalog::new(&json!({}), &none), Err(CatalogError::Shape(_))));
        assert!(matches!(Catalog::new(&json!({"streams": []}), &none), Err(CatalogError::Empty)));
        let twice = catalog(&[("a", None), ("a", Some(""))]);
        assert!(matches!(Catalog::new(&twice, &none), Err(CatalogError::Twice(_, "source"))));
        let merged = Mapping { namespace: NamespaceRule::Destination, prefix: String::new() };
        let two = catalog(&[("a", Some("x")), ("a", Some("y"))]);
        assert!(matches!(Catalog::new(&two, &merged), Err(CatalogError::Twice(_, "destination"))));
    }
}
