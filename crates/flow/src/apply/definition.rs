//! What is deployed and forgotten.

use windlass_record::flow::{DefinitionDeployed, DefinitionKind, Key};

use crate::graph::Text;
use crate::state::FlowState;
use crate::state::definition::{Compiled, Definition, Resource, Retired};
use crate::state::image::{self, compile};

impl FlowState {
    pub(super) fn resource_deployed(&mut self, key: Key, tenant: &str, name: &str, bytes: &[u8]) {
        self.touch(image::RESOURCE, key);
        let resource = Resource {
            tenant: tenant.into(),
            name: name.into(),
            bytes: bytes.into(),
            compiled: compile(name, bytes),
        };
        self.resources.insert(key, resource);
    }

    pub(super) fn definition_deployed(&mut self, deployed: &DefinitionDeployed<'_>) {
        self.touch(image::DEFINITION, deployed.key);
        let nodes = deployed
            .nodes
            .iter()
            .map(|node| {
                (Text::from(&*node.id), Text::from(&*node.name), Text::from(&*node.element_type))
            })
            .collect();
        let definition = Definition {
            deployment: deployed.deployment,
            resource: deployed.resource,
            tenant: deployed.tenant.into(),
            kind: deployed.kind,
            id: deployed.id.into(),
            version: deployed.version,
            version_tag: deployed.version_tag.into(),
            name: deployed.name.into(),
            group: deployed.group,
            nodes,
            graph: None,
            model: None,
        };
        self.link_definition(deployed.key, definition);
    }

    /// Puts a definition into its indexes and finds what it was compiled to.
    pub(crate) fn link_definition(&mut self, key: Key, mut definition: Definition) {
        if let Some(resource) = self.resources.get(&definition.resource) {
            match &resource.compiled {
                Compiled::Processes(graphs) => {
                    definition.graph =
                        graphs.iter().find(|graph| graph.id == definition.id).cloned();
                }
                Compiled::Decisions(model) => definition.model = Some(model.clone()),
                Compiled::Plain | Compiled::Unreadable(_) => {}
            }
        }
        let name = (definition.tenant.clone(), definition.kind, definition.id.clone());
        let versions = self.versions.entry(name).or_default();
        let version = definition.version;
        let at = versions.partition_point(|other| {
            self.definitions.get(other).is_some_and(|other| other.version < version)
        });
        versions.insert(at, key);
        self.definitions.insert(key, definition);
    }

    /// Remembers the version of a deleted process, if it was the newest one.
    pub(super) fn retire(&mut self, key: Key, definition: &Definition) {
        let (tenant, id) = (&definition.tenant, &definition.id);
        let version = definition.version;
        let newest = self.newest_version(tenant, definition.kind, id);
        if definition.kind != DefinitionKind::Process || newest > version {
            return;
        }
        let name = (tenant.clone(), id.clone());
        if let Some(before) = self.retired_by_name.remove(&name) {
            self.touch(image::RETIRED, before);
            self.retired.remove(&before);
        }
        self.touch(image::RETIRED, key);
        let retired = Retired { tenant: tenant.clone(), id: id.clone(), version };
        self.link_retired(key, retired);
    }

    pub(crate) fn link_retired(&mut self, key: Key, retired: Retired) {
        self.retired_by_name.insert((retired.tenant.clone(), retired.id.clone()), key);
        self.retired.insert(key, retired);
    }

    pub(super) fn definition_deleted(&mut self, key: Key) {
        self.touch(image::DEFINITION, key);
        let Some(definition) = self.definitions.remove(&key) else { return };
        self.retire(key, &definition);
        let name = (definition.tenant, definition.kind, definition.id);
        if let Some(versions) = self.versions.get_mut(&name) {
            versions.retain(|other| *other != key);
            if versions.is_empty() {
                self.versions.remove(&name);
            }
        }
        let resource = definition.resource;
        if self.definitions.values().all(|other| other.resource != resource) {
            self.touch(image::RESOURCE, resource);
            self.resources.remove(&resource);
        }
    }
}
