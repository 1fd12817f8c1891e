//! What is known about definitions of tasks, of workflows and of event handlers.

use std::sync::Arc;

use windlass_record::flow::{Key, NO_KEY};

use crate::conductor::definition::TaskDefinition;
use crate::conductor::plan::Plan;
use crate::conductor::state::{Acts, Definition, Handler, KnownTask};
use crate::state::{FlowState, image};

impl FlowState {
    pub(super) fn task_defined(&mut self, now_ms: u64, key: Key, name: &str, json: &str) {
        let mut created_ms = now_ms;
        if let Some(old) = self.workflows.task_names.get(name).copied() {
            self.touch(image::TASK_DEFINITION, old);
            if let Some(known) = self.workflows.task_definitions.remove(&old) {
                created_ms = known.created_ms;
            }
        }
        self.touch(image::TASK_DEFINITION, key);
        let known = KnownTask {
            name: name.into(),
            json: json.into(),
            created_ms,
            updated_ms: now_ms,
            definition: Arc::default(),
        };
        self.link_task_definition(key, known);
    }

    pub(crate) fn link_task_definition(&mut self, key: Key, mut known: KnownTask) {
        let json = serde_json::from_str(&known.json).unwrap_or_default();
        known.definition = Arc::new(TaskDefinition::parse(&json).unwrap_or_default());
        self.workflows.task_names.insert(known.name.clone(), key);
        self.workflows.task_definitions.insert(key, known);
    }

    pub(super) fn workflow_defined(
        &mut self,
        now_ms: u64,
        key: Key,
        (name, version): (&str, u32),
        listed: bool,
        snapshot_of: Key,
        json: &str,
    ) {
        let mut created_ms = now_ms;
        let mut updated_ms = now_ms;
        if let Some(original) = self.workflows.definitions.get(&snapshot_of) {
            (created_ms, updated_ms) = (original.created_ms, original.updated_ms);
        }
        if listed && let Some(old) = self.workflows.listed_definition(name, Some(version)) {
            if let Some(old) = self.workflows.definitions.get(&old) {
                created_ms = old.created_ms;
            }
            self.definition_forgotten(old);
        }
        let definition = Definition {
            name: name.into(),
            version,
            listed,
            snapshot_of,
            json: json.into(),
            created_ms,
            updated_ms,
            embedded: Vec::new(),
            plan: Arc::new(Plan::compile(serde_json::from_str(json).unwrap_or_default())),
            users: 0,
        };
        let embedded = self.workflows.task_definitions_of(&definition.plan);
        let before = self.workflows.snapshots.get(&snapshot_of).copied();
        self.touch(image::WORKFLOW_DEFINITION, key);
        self.link_workflow_definition(key, Definition { embedded, ..definition });
        if let Some(before) = before {
            self.drop_unused(before);
        }
    }

    pub(crate) fn link_workflow_definition(&mut self, key: Key, definition: Definition) {
        if definition.listed {
            let versions = self.workflows.listed.entry(definition.name.clone()).or_default();
            let replaced = versions.insert(definition.version, key);
            self.workflows.listed_count += usize::from(replaced.is_none());
        }
        if definition.snapshot_of != NO_KEY {
            let newest = self.workflows.snapshots.entry(definition.snapshot_of).or_insert(key);
            *newest = (*newest).max(key);
        }
        self.workflows.definitions.insert(key, definition);
    }

    pub(super) fn definition_forgotten(&mut self, key: Key) {
        self.touch(image::WORKFLOW_DEFINITION, key);
        let Some(definition) = self.workflows.definitions.remove(&key) else { return };
        if let Some(versions) = self.workflows.listed.get_mut(&definition.name) {
            let removed = versions.remove(&definition.version);
            self.workflows.listed_count -= usize::from(removed.is_some());
            if versions.is_empty() {
                self.workflows.listed.remove(&definition.name);
            }
        }
        if let Some(snapshot) = self.workflows.snapshots.remove(&key) {
            self.drop_unused(snapshot);
        }
    }

    /// Forgets a definition that is not listed, not the newest snapshot, and of no use.
    pub(super) fn drop_unused(&mut self, key: Key) {
        let Some(definition) = self.workflows.definitions.get(&key) else { return };
        let newest = self.workflows.snapshots.get(&definition.snapshot_of) == Some(&key);
        if definition.listed || definition.users > 0 || newest {
            return;
        }
        self.touch(image::WORKFLOW_DEFINITION, key);
        self.workflows.definitions.remove(&key);
    }

    pub(super) fn handler_defined(&mut self, key: Key, name: &str, json: &str) {
        if let Some(old) = self.workflows.handler_names.get(name).copied() {
            self.handler_forgotten(old);
        }
        self.touch(image::HANDLER, key);
        self.link_handler(key, Handler { name: name.into(), json: json.into(), acts: None });
    }

    pub(crate) fn link_handler(&mut self, key: Key, mut handler: Handler) {
        handler.acts = Acts::of(&handler.json).map(Arc::new);
        if let Some(acts) = &handler.acts {
            self.workflows.handlers_of.entry(acts.event.clone()).or_default().insert(key);
        }
        self.workflows.handler_names.insert(handler.name.clone(), key);
        self.workflows.handlers.insert(key, handler);
    }

    pub(super) fn handler_forgotten(&mut self, key: Key) {
        self.touch(image::HANDLER, key);
        let Some(handler) = self.workflows.handlers.remove(&key) else { return };
        self.workflows.handler_names.remove(&handler.name);
        if let Some(acts) = handler.acts
            && let Some(keys) = self.workflows.handlers_of.get_mut(&acts.event)
        {
            keys.remove(&key);
            if keys.is_empty() {
                self.workflows.handlers_of.remove(&acts.event);
            }
        }
    }
}
