//! Instances, their elements and variables.

use std::borrow::Cow;

use rusqlite::params;
use windlass_record::event::JobCreated;
use windlass_record::flow::{
    ElementEntered, FlowEvent, InstanceStarted, MessagePublished, UserTaskEvent,
};

use super::{Projection, some_text};
use crate::names::{FlowState, UserTaskState};
use crate::row::{Element, Instance};
use crate::schema::stored;

/// What an element stands in.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) instance: u64,
    pub(super) definition: u64,
}

impl Projection {
    pub(super) fn flow(
        &mut self,
        event: &FlowEvent<'_>,
        made: &mut Vec<JobCreated<'_>>,
    ) -> rusqlite::Result<()> {
        match event {
            FlowEvent::ResourceDeployed { key, tenant, name, bytes } => {
                self.resource_deployed(key.raw(), (tenant, name), bytes)
            }
            FlowEvent::DefinitionDeployed(deployed) => self.definition_deployed(deployed),
            FlowEvent::DefinitionDeleted { key } => self.definition_deleted(key.raw()),
            FlowEvent::InstanceStarted(started) => self.instance_started(started),
            FlowEvent::ElementEntered(entered) => self.element_entered(entered),
            FlowEvent::ElementCompleted { key } => {
                self.element_ended(key.raw(), FlowState::Completed)
            }
            FlowEvent::ElementTerminated { key } => {
                self.element_ended(key.raw(), FlowState::Terminated)
            }
            FlowEvent::VariablesSet { scope, variables } => {
                self.variables_set(scope.raw(), variables)
            }
            FlowEvent::JobAttached { element, job, role } => {
                self.flow_job_created(element.raw(), job.raw(), *role, made)
            }
            FlowEvent::LoopStarted { element, .. } => self.loop_started(element.raw()),
            FlowEvent::InstanceMigrated { instance, definition, nodes } => {
                self.instance_migrated(instance.raw(), definition.raw(), nodes)
            }
            FlowEvent::SubscriptionOpened(opened) => self.subscription_opened(opened),
            FlowEvent::SubscriptionClosed { key } => self.subscription_closed(key.raw()),
            FlowEvent::MessagePublished(published) => self.message_published(published),
            FlowEvent::MessageCorrelated { message, element, .. } => {
                self.message_correlated(message.raw(), element.raw())
            }
            FlowEvent::MessageExpired { key } => self.message_expired(key.raw()),
            FlowEvent::IncidentRaised { key, element, kind, message } => {
                self.flow_incident_raised(key.raw(), element.raw(), *kind, message)
            }
            FlowEvent::IncidentResolved { key } => self.incident_resolved(key.raw()),
            FlowEvent::UserTaskCreated(task) => self.user_task_created(task),
            FlowEvent::UserTaskChanged(task) => self.user_task_changed(task),
            FlowEvent::UserTaskEnded { key, completed } => {
                self.user_task_ended(key.raw(), *completed)
            }
            FlowEvent::UserTaskTransitionStarted(started) => {
                self.user_task_in(started.task.key.raw(), state(started.event))
            }
            FlowEvent::UserTaskTransitionEnded { key, .. } => {
                self.user_task_in(key.raw(), UserTaskState::Created)
            }
            FlowEvent::Workflow(event) => self.workflow(event, made),
            FlowEvent::StepTaken
            | FlowEvent::ElementActivated { .. }
            | FlowEvent::ElementCompleting { .. }
            | FlowEvent::ElementTerminating { .. }
            | FlowEvent::ElementQueued { .. }
            | FlowEvent::TokenParked { .. }
            | FlowEvent::JobDetached { .. }
            | FlowEvent::ListenerPassed { .. }
            | FlowEvent::LoopCollected { .. }
            | FlowEvent::LoopSatisfied { .. }
            | FlowEvent::EventTriggered { .. }
            | FlowEvent::EventTaken { .. }
            | FlowEvent::TimerArmed { .. }
            | FlowEvent::TimerGone { .. }
            | FlowEvent::MessageQueued { .. }
            | FlowEvent::SignalBroadcast { .. }
            | FlowEvent::SignalProgressed { .. }
            | FlowEvent::SignalEnded { .. }
            | FlowEvent::CompensationKept { .. }
            | FlowEvent::CompensationTaken { .. }
            | FlowEvent::UserTaskCorrected(_)
            | FlowEvent::KeyUsed { .. } => Ok(()),
        }
    }

    fn message_published(&mut self, published: &MessagePublished<'_>) -> rusqlite::Result<()> {
        self.messages.insert(published.key.raw(), published.name.into());
        Ok(())
    }

    fn message_expired(&mut self, key: u64) -> rusqlite::Result<()> {
        self.messages.remove(&key);
        Ok(())
    }

    fn loop_started(&mut self, element: u64) -> rusqlite::Result<()> {
        if let Some(row) = self.elements.change(&self.database, element)? {
            row.kind = "MULTI_INSTANCE_BODY".into();
        }
        Ok(())
    }

    fn instance_started(&mut self, started: &InstanceStarted<'_>) -> rusqlite::Result<()> {
        let definition = self.definition(started.definition.raw())?;
        let parent = match started.parent.raw() {
            0 => None,
            element => self.place(element)?,
        };
        let tags: Vec<&str> = started.tags.iter().map(|tag| &**tag).collect();
        let instance = Instance {
            definition: started.definition.raw(),
            tenant: definition.tenant.clone(),
            parent_element: started.parent.raw(),
            parent: parent.map_or(0, |parent| parent.instance),
            root: started.root.raw(),
            state: FlowState::Active,
            start_ms: self.now_ms,
            end_ms: None,
            incidents: 0,
            business_id: some_text(started.business_id),
            tags: serde_json::Value::from(tags).to_string().into(),
        };
        self.instances.add(started.key.raw(), instance);
        Ok(())
    }

    fn element_entered(&mut self, entered: &ElementEntered) -> rusqlite::Result<()> {
        // Of an instance that began in a gap, nothing is known.
        let Some(place) = self.place(entered.scope.raw())? else { return Ok(()) };
        let node = self.definition(place.definition)?.node(entered.node);
        let element = Element {
            scope: entered.scope.raw(),
            instance: place.instance,
            definition: place.definition,
            node: entered.node,
            element_id: node.id,
            name: node.name,
            kind: node.kind,
            state: FlowState::Active,
            start_ms: self.now_ms,
            end_ms: None,
            incident: 0,
        };
        self.elements.add(entered.key.raw(), element);
        Ok(())
    }

    /// Where an element, or an instance, is.
    pub(super) fn place(&mut self, key: u64) -> rusqlite::Result<Option<Place>> {
        if let Some(element) = self.elements.get(&self.database, key)? {
            let (instance, definition) = (element.instance, element.definition);
            return Ok(Some(Place { instance, definition }));
        }
        let instance = self.instances.get(&self.database, key)?;
        Ok(instance.map(|it| Place { instance: key, definition: it.definition }))
    }

    fn element_ended(&mut self, key: u64, state: FlowState) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        if let Some(element) = self.elements.change(&self.database, key)? {
            element.state = state;
            element.end_ms = Some(now_ms);
            let incident = element.incident;
            if incident != 0 {
                self.incident_resolved(incident)?;
            }
        } else if let Some(instance) = self.instances.change(&self.database, key)? {
            instance.state = state;
            instance.end_ms = Some(now_ms);
            self.finished += 1;
        }
        Ok(())
    }

    fn variables_set(
        &mut self,
        scope: u64,
        variables: &[(Cow<'_, str>, Cow<'_, str>)],
    ) -> rusqlite::Result<()> {
        let Some(place) = self.place(scope)? else { return Ok(()) };
        for (name, value) in variables {
            self.variables.insert((place.instance, scope, (**name).into()), (**value).into());
        }
        Ok(())
    }

    fn instance_migrated(
        &mut self,
        instance: u64,
        definition: u64,
        nodes: &[(u32, u32)],
    ) -> rusqlite::Result<()> {
        // It touches rows of every table, and is rare: done in the database.
        let known = self.definition(definition)?;
        self.begin()?;
        self.write()?;
        self.forget_rows();
        let (instance, definition) = (stored(instance), stored(definition));
        let database = &self.database;
        let mut moved = database.prepare_cached(
            "UPDATE element_instances SET definition = ?2, node = -1 - ?4, element_id = ?5, \
             name = ?6, type = CASE type WHEN 'MULTI_INSTANCE_BODY' THEN type ELSE ?7 END \
             WHERE instance = ?1 AND node = ?3 AND end_ms IS NULL",
        )?;
        for (from, to) in nodes {
            let node = known.node(*to);
            moved
                .execute(params![instance, definition, from, to, node.id, node.name, node.kind])?;
        }
        for sql in [
            // Moved ones were marked, so that none is moved twice.
            "UPDATE element_instances SET node = -1 - node WHERE instance = ?1 AND node < 0 \
             AND ?2 IS NOT NULL",
            "UPDATE process_instances SET definition = ?2 WHERE key = ?1",
            "UPDATE jobs SET definition = ?2, state = 'MIGRATED', element_id = (SELECT element_id \
             FROM element_instances e WHERE e.key = jobs.element) \
             WHERE instance = ?1 AND end_ms IS NULL",
            "UPDATE incidents SET definition = ?2, element_id = (SELECT element_id \
             FROM element_instances e WHERE e.key = incidents.element) \
             WHERE instance = ?1 AND resolved_ms IS NULL",
            "UPDATE user_tasks SET definition = ?2, element_id = (SELECT element_id \
             FROM element_instances e WHERE e.key = user_tasks.element) \
             WHERE instance = ?1 AND completed_ms IS NULL",
            "UPDATE subscriptions SET definition = ?2, state = 'MIGRATED' \
             WHERE instance = ?1 AND state = 'CREATED'",
        ] {
            database.prepare_cached(sql)?.execute([instance, definition])?;
        }
        Ok(())
    }
}

/// Of a user task whose listeners are asked.
fn state(event: UserTaskEvent) -> UserTaskState {
    match event {
        UserTaskEvent::Creating => UserTaskState::Creating,
        UserTaskEvent::Assigning => UserTaskState::Assigning,
        UserTaskEvent::Updating => UserTaskState::Updating,
        UserTaskEvent::Completing => UserTaskState::Completing,
        UserTaskEvent::Canceling => UserTaskState::Canceling,
    }
}
