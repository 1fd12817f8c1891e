//! What is kept: each kind of document as a type. `docs/airbyte.md` has all fields; those that are not
//! ours are in `rest` and stay there.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields that this version does not know.
type Rest = Map<String, Value>;

/// A kind of document.
pub(crate) trait Kept: Serialize + DeserializeOwned + Clone + Send + 'static {
    /// Its kind.
    const KIND: &'static str;
    /// What it is called in errors.
    const WHAT: &'static str;
    /// Its id.
    fn id(&self) -> &str;
    /// The workspace that it is in; empty is every one.
    fn workspace(&self) -> &str;
    /// What people call it.
    fn name(&self) -> &str;
    /// It was changed. No two changes have one time.
    fn touch(&mut self, now_ms: u64);
}

/// What belongs together, and shares a turn of its jobs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Workspace {
    pub(crate) workspace_id: String,
    pub(crate) name: String,
    pub(crate) data_residency: String,
    pub(crate) notifications: Map<String, Value>,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// A source or a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Source,
    Destination,
}

impl Side {
    /// The field of its type, in configurations and answers.
    pub(crate) fn type_field(self) -> &'static str {
        match self {
            Side::Source => "sourceType",
            Side::Destination => "destinationType",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Source => "source",
            Side::Destination => "destination",
        }
    }

    /// What a definition of it is called in errors.
    pub(crate) fn definition(self) -> &'static str {
        match self {
            Side::Source => "source definition",
            Side::Destination => "destination definition",
        }
    }
}

/// A connector, and how it is started.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Definition {
    pub(crate) definition_id: String,
    pub(crate) actor_type: Side,
    #[serde(rename = "type")]
    pub(crate) connector_type: String,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) workspace_id: String,
    #[serde(default)]
    pub(crate) builtin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) documentation_url: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) docker_repository: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) docker_image_tag: String,
    pub(crate) launch: Launch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spec: Option<Value>,
    /// When the connector said it; absent while what is known is of an earlier launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spec_at: Option<u64>,
    #[serde(default)]
    pub(crate) created_at: u64,
    #[serde(default)]
    pub(crate) updated_at: u64,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// How a connector is started.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Launch {
    /// A program of this machine.
    Command {
        command: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<BTreeMap<String, String>>,
    },
    /// A package of PyPI.
    Python {
        package: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
    },
    /// An image, and what its container gets.
    Docker {
        image: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<BTreeMap<String, String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mounts: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpus: Option<f64>,
    },
}

impl Launch {
    /// An image as its own entry point wants it.
    pub(crate) fn of_image(image: String) -> Launch {
        Launch::Docker { image, environment: None, network: None, mounts: Vec::new(), cpus: None }
    }

    /// What its program gets in its environment, where its kind has that.
    pub(crate) fn environment(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Launch::Command { environment, .. } | Launch::Docker { environment, .. } => {
                environment.as_ref()
            }
            Launch::Python { .. } => None,
        }
    }

    /// See [`Launch::environment`].
    pub(crate) fn environment_mut(&mut self) -> Option<&mut BTreeMap<String, String>> {
        match self {
            Launch::Command { environment, .. } | Launch::Docker { environment, .. } => {
                environment.as_mut()
            }
            Launch::Python { .. } => None,
        }
    }
}

/// A source or a destination with its configuration.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Actor {
    pub(crate) workspace_id: String,
    pub(crate) definition_id: String,
    pub(crate) name: String,
    pub(crate) configuration: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_allocation: Option<Value>,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// See [`Side::Source`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Source {
    pub(crate) source_id: String,
    pub(crate) source_type: String,
    #[serde(flatten)]
    pub(crate) actor: Actor,
}

/// See [`Side::Destination`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Destination {
    pub(crate) destination_id: String,
    pub(crate) destination_type: String,
    #[serde(flatten)]
    pub(crate) actor: Actor,
}

/// What sources and destinations have in common.
pub(crate) trait Acting: Kept {
    const SIDE: Side;
    fn made(id: String, connector_type: String, actor: Actor) -> Self;
    fn connector_type(&self) -> &str;
    fn actor(&self) -> &Actor;
    fn actor_mut(&mut self) -> &mut Actor;
}

/// What goes from a source to a destination, how, and when.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Connection {
    pub(crate) connection_id: String,
    pub(crate) name: String,
    pub(crate) source_id: String,
    pub(crate) destination_id: String,
    pub(crate) workspace_id: String,
    pub(crate) status: Status,
    pub(crate) schedule: Timing,
    pub(crate) configurations: Configurations,
    pub(crate) namespace_definition: NamespaceDefinition,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace_format: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) prefix: String,
    pub(crate) non_breaking_schema_updates_behavior: SchemaUpdates,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_residency: Option<String>,
    pub(crate) tags: Vec<Value>,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// Whether a connection does anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    #[default]
    Active,
    Inactive,
    Deprecated,
    Locked,
}

/// When a connection syncs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "scheduleType", rename_all = "lowercase")]
pub(crate) enum Timing {
    /// When somebody asks.
    #[default]
    Manual,
    /// By a clock.
    #[serde(rename_all = "camelCase")]
    Cron { cron_expression: String },
    /// So long after the one before was made.
    #[serde(rename_all = "camelCase")]
    Basic { units: u64, time_unit: TimeUnit },
}

/// See [`Timing::Basic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TimeUnit {
    Minutes,
    Hours,
    Days,
    Weeks,
    /// Of thirty days.
    Months,
}

/// Which streams, and how.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Configurations {
    /// All of them when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) streams: Vec<Stream>,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// A stream of a connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stream {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sync_mode: Option<SyncMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor_field: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) primary_key: Option<Vec<Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) selected_fields: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mappers: Option<Vec<Value>>,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// How a stream is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyncMode {
    FullRefreshOverwrite,
    FullRefreshOverwriteDeduped,
    FullRefreshAppend,
    FullRefreshUpdate,
    FullRefreshSoftDelete,
    IncrementalAppend,
    IncrementalDedupedHistory,
    IncrementalUpdate,
    IncrementalSoftDelete,
}

/// Where the data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NamespaceDefinition {
    Source,
    #[default]
    Destination,
    CustomFormat,
}

/// What follows when a source changes its streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SchemaUpdates {
    #[default]
    Ignore,
    DisableConnection,
    PropagateColumns,
    PropagateFully,
}

/// What a source last showed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Catalog {
    pub(crate) source_id: String,
    pub(crate) catalog: Value,
    /// The version of the source's document that it was asked with.
    pub(crate) configuration_version: u64,
    pub(crate) discovered_at: u64,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// What the runner says of an attempt, as far as it is told of here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Attempt {
    pub(crate) updated_at: u64,
    pub(crate) totals: Totals,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Totals {
    pub(crate) records_committed: u64,
    pub(crate) bytes_committed: u64,
}

/// Kinds that are not read as a whole here.
pub(crate) const ATTEMPT: &str = "airbyte.attempt";
/// See [`ATTEMPT`].
pub(crate) const STATE: &str = "airbyte.state";

/// The id of an attempt.
pub(crate) fn attempt_id(connection: &str, job: u64, attempt: u32) -> String {
    format!("{connection}.{job}-{attempt}")
}

macro_rules! kept {
    ($($type:ident: $kind:literal, $what:literal, $id:ident, $($field:ident).*;)*) => {
        $(impl Kept for $type {
            const KIND: &'static str = $kind;
            const WHAT: &'static str = $what;

            fn id(&self) -> &str {
                &self.$id
            }

            fn workspace(&self) -> &str {
                &self.$($field.)*workspace_id
            }

            fn name(&self) -> &str {
                &self.$($field.)*name
            }

            fn touch(&mut self, now_ms: u64) {
                let updated_at = &mut self.$($field.)*updated_at;
                *updated_at = now_ms.max(updated_at.saturating_add(1));
            }
        })*
    };
}

kept! {
    Workspace: "airbyte.workspace", "workspace", workspace_id, ;
    Definition: "airbyte.definition", "definition", definition_id, ;
    Source: "airbyte.source", "source", source_id, actor;
    Destination: "airbyte.destination", "destination", destination_id, actor;
    Connection: "airbyte.connection", "connection", connection_id, ;
}

impl Kept for Catalog {
    const KIND: &'static str = "airbyte.catalog";
    const WHAT: &'static str = "catalog";

    fn id(&self) -> &str {
        &self.source_id
    }

    fn workspace(&self) -> &str {
        ""
    }

    fn name(&self) -> &str {
        ""
    }

    fn touch(&mut self, now_ms: u64) {
        self.discovered_at = now_ms;
    }
}

macro_rules! acting {
    ($type:ident, $side:expr, $id:ident, $connector_type:ident) => {
        impl Acting for $type {
            const SIDE: Side = $side;

            fn made(id: String, connector_type: String, actor: Actor) -> Self {
                $type { $id: id, $connector_type: connector_type, actor }
            }

            fn connector_type(&self) -> &str {
                &self.$connector_type
            }

            fn actor(&self) -> &Actor {
                &self.actor
            }

            fn actor_mut(&mut self) -> &mut Actor {
                &mut self.actor
            }
        }
    };
}

acting!(Source, Side::Source, source_id, source_type);
acting!(Destination, Side::Destination, destination_id, destination_type);
