//! Files and definitions: few, read often, written at once.

use std::sync::Arc;

use rusqlite::{OptionalExtension, params};
use windlass_record::flow::{DefinitionDeployed, DefinitionKind, NodeName};

use super::{Projection, some_text};
use crate::names;
use crate::schema::{stored, stored_some};

/// What rows of instances take from their definition.
pub(super) struct Definition {
    pub(super) tenant: Arc<str>,
    /// Of a process: its elements by number.
    pub(super) nodes: Vec<Node>,
}

/// An element of a process.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) id: Arc<str>,
    pub(super) name: Option<Arc<str>>,
    pub(super) kind: Arc<str>,
}

impl Node {
    /// An element of a definition that is not known: it was deployed in a gap.
    fn unknown() -> Node {
        Node { id: "".into(), name: None, kind: "UNKNOWN".into() }
    }

    fn of(node: &NodeName<'_>) -> Node {
        let name = (!node.name.is_empty()).then(|| Arc::from(&*node.name));
        Node { id: (*node.id).into(), name, kind: (*node.element_type).into() }
    }
}

impl Definition {
    pub(super) fn node(&self, number: u32) -> Node {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        self.nodes.get(at).cloned().unwrap_or_else(Node::unknown)
    }
}

impl Projection {
    pub(super) fn resource_deployed(
        &mut self,
        key: u64,
        (tenant, name): (&str, &str),
        bytes: &[u8],
    ) -> rusqlite::Result<()> {
        self.begin()?;
        let sql = "INSERT OR REPLACE INTO resources (key, tenant, name, bytes) \
                   VALUES (?1, ?2, ?3, ?4)";
        let mut statement = self.database.prepare_cached(sql)?;
        statement.execute(params![stored(key), tenant, name, bytes])?;
        Ok(())
    }

    pub(super) fn definition_deployed(
        &mut self,
        deployed: &DefinitionDeployed<'_>,
    ) -> rusqlite::Result<()> {
        self.begin()?;
        let key = deployed.key.raw();
        let sql = "INSERT OR REPLACE INTO definitions (key, deployment, resource, tenant, kind, \
                   id, version, version_tag, name, requirements, deployed_ms) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.database.prepare_cached(sql)?.execute(params![
            stored(key),
            stored(deployed.deployment.raw()),
            stored(deployed.resource.raw()),
            deployed.tenant,
            kind(deployed.kind),
            deployed.id,
            deployed.version,
            some_text(deployed.version_tag),
            some_text(deployed.name),
            stored_some(deployed.group.raw()),
            stored(self.now_ms),
        ])?;
        let nodes: Vec<Node> = deployed.nodes.iter().map(Node::of).collect();
        let sql = "INSERT OR REPLACE INTO nodes (definition, node, id, name, type) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut statement = self.database.prepare_cached(sql)?;
        for (number, node) in (0_u32..).zip(&nodes) {
            statement.execute(params![stored(key), number, node.id, node.name, node.kind])?;
        }
        let definition = Definition { tenant: deployed.tenant.into(), nodes };
        self.definitions.insert(key, Arc::new(definition));
        Ok(())
    }

    pub(super) fn definition_deleted(&mut self, key: u64) -> rusqlite::Result<()> {
        self.begin()?;
        let sql = "UPDATE definitions SET deleted_ms = ?2 WHERE key = ?1";
        let mut statement = self.database.prepare_cached(sql)?;
        statement.execute(params![stored(key), stored(self.now_ms)])?;
        Ok(())
    }

    /// The definition; one without elements when it is not known.
    pub(super) fn definition(&mut self, key: u64) -> rusqlite::Result<Arc<Definition>> {
        /// The only tenant there is, until there are more.
        const TENANT: &str = "<default>";
        if let Some(definition) = self.definitions.get(&key) {
            return Ok(definition.clone());
        }
        let mut statement =
            self.database.prepare_cached("SELECT tenant FROM definitions WHERE key = ?1")?;
        let tenant = statement.query_row([stored(key)], |row| row.get(0)).optional()?;
        let sql = "SELECT id, name, type FROM nodes WHERE definition = ?1 ORDER BY node";
        let mut statement = self.database.prepare_cached(sql)?;
        let nodes = statement.query_map([stored(key)], |row| {
            Ok(Node { id: row.get(0)?, name: row.get(1)?, kind: row.get(2)? })
        })?;
        let nodes = nodes.collect::<rusqlite::Result<Vec<Node>>>()?;
        let definition =
            Arc::new(Definition { tenant: tenant.unwrap_or_else(|| TENANT.into()), nodes });
        self.definitions.insert(key, definition.clone());
        Ok(definition)
    }
}

fn kind(kind: DefinitionKind) -> names::DefinitionKind {
    match kind {
        DefinitionKind::Process => names::DefinitionKind::Process,
        DefinitionKind::Decision => names::DefinitionKind::Decision,
        DefinitionKind::DecisionRequirements => names::DefinitionKind::Requirements,
        DefinitionKind::Form => names::DefinitionKind::Form,
        DefinitionKind::Resource => names::DefinitionKind::Resource,
    }
}
