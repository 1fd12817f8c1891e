//! Incidents, user tasks and message subscriptions.

use windlass_record::flow::{
    FlowIncidentKind, SubscriptionKind as Kind, SubscriptionOpened, UserTaskCreated,
};

use super::{Projection, some_text};
use crate::names::{IncidentState, SubscriptionKind, SubscriptionState, UserTaskState};
use crate::row::{Incident, Subscription, UserTask};
use crate::schema::stored;

impl Projection {
    // ── incidents ───────────────────────────────────────────────────────────────────────────

    pub(super) fn flow_incident_raised(
        &mut self,
        key: u64,
        element: u64,
        kind: FlowIncidentKind,
        message: &str,
    ) -> rusqlite::Result<()> {
        let Some(place) = self.place(element)? else { return Ok(()) };
        let row = self.elements.get(&self.database, element)?;
        let element_id = row.map(|row| row.element_id.clone());
        let definition = self.definition(place.definition)?;
        // The process itself is node 0.
        let element_id = element_id.or_else(|| Some(definition.node(0).id));
        let raised = Incident {
            tenant: definition.tenant.clone(),
            kind: kind.name().into(),
            message: message.into(),
            state: IncidentState::Active,
            created_ms: self.now_ms,
            resolved_ms: None,
            element,
            element_id,
            instance: place.instance,
            definition: place.definition,
            job: 0,
        };
        self.incident_raised(key, raised)
    }

    /// An incident shows at its element, its instance, and the instances that called it.
    pub(super) fn incident_raised(&mut self, key: u64, raised: Incident) -> rusqlite::Result<()> {
        if let Some(element) = self.elements.change(&self.database, raised.element)? {
            element.incident = key;
        }
        self.count_incidents(raised.instance, 1)?;
        self.incidents.add(key, raised);
        Ok(())
    }

    /// It was resolved, or what it was about is gone. 0 is none.
    pub(super) fn incident_resolved(&mut self, key: u64) -> rusqlite::Result<()> {
        if key == 0 {
            return Ok(());
        }
        let now_ms = self.now_ms;
        let Some(incident) = self.incidents.change(&self.database, key)? else { return Ok(()) };
        if incident.state == IncidentState::Resolved {
            return Ok(());
        }
        incident.state = IncidentState::Resolved;
        incident.resolved_ms = Some(now_ms);
        let (element, instance) = (incident.element, incident.instance);
        if let Some(element) = self.elements.change(&self.database, element)? {
            element.incident = 0;
        }
        self.count_incidents(instance, -1)
    }

    fn count_incidents(&mut self, instance: u64, by: i32) -> rusqlite::Result<()> {
        /// Instances that call one another.
        const DEPTH_MAX: usize = 1_000;
        let mut next = instance;
        for _ in 0..DEPTH_MAX {
            if next == 0 {
                break;
            }
            let Some(row) = self.instances.change(&self.database, next)? else { break };
            row.incidents = row.incidents.saturating_add_signed(by);
            next = row.parent;
        }
        Ok(())
    }

    // ── user tasks ──────────────────────────────────────────────────────────────────────────

    pub(super) fn user_task_created(&mut self, task: &UserTaskCreated<'_>) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        let Some(element) = self.elements.get(&self.database, task.element.raw())? else {
            return Ok(());
        };
        let row = UserTask {
            element: task.element.raw(),
            instance: element.instance,
            definition: element.definition,
            element_id: element.element_id.clone(),
            name: element.name.clone(),
            state: UserTaskState::Created,
            assignee: some_text(&task.assignee),
            candidate_groups: list(&task.candidate_groups),
            candidate_users: list(&task.candidate_users),
            due_date: some_text(&task.due_date),
            follow_up_date: some_text(&task.follow_up_date),
            priority: task.priority,
            form: task.form.raw(),
            form_reference: some_text(&task.form_reference),
            headers: if task.headers.is_empty() { "{}" } else { &task.headers }.into(),
            created_ms: now_ms,
            completed_ms: None,
        };
        self.user_tasks.add(task.key.raw(), row);
        Ok(())
    }

    pub(super) fn user_task_changed(&mut self, task: &UserTaskCreated<'_>) -> rusqlite::Result<()> {
        if let Some(row) = self.user_tasks.change(&self.database, task.key.raw())? {
            row.assignee = some_text(&task.assignee);
            row.candidate_groups = list(&task.candidate_groups);
            row.candidate_users = list(&task.candidate_users);
            row.due_date = some_text(&task.due_date);
            row.follow_up_date = some_text(&task.follow_up_date);
            row.priority = task.priority;
        }
        Ok(())
    }

    pub(super) fn user_task_in(&mut self, key: u64, state: UserTaskState) -> rusqlite::Result<()> {
        if let Some(row) = self.user_tasks.change(&self.database, key)? {
            row.state = state;
        }
        Ok(())
    }

    pub(super) fn user_task_ended(&mut self, key: u64, completed: bool) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        if let Some(row) = self.user_tasks.change(&self.database, key)? {
            row.state = if completed { UserTaskState::Completed } else { UserTaskState::Canceled };
            row.completed_ms = Some(now_ms);
        }
        Ok(())
    }

    // ── message subscriptions ───────────────────────────────────────────────────────────────

    pub(super) fn subscription_opened(
        &mut self,
        opened: &SubscriptionOpened<'_>,
    ) -> rusqlite::Result<()> {
        match opened.kind {
            Kind::Message => {}
            Kind::Signal => return Ok(()),
        }
        let owner = opened.owner.raw();
        let place = self.place(owner)?;
        let definition = place.map_or(owner, |place| place.definition);
        let node = self.definition(definition)?.node(opened.node);
        let kind = match place {
            Some(_) => SubscriptionKind::ProcessEvent,
            None => SubscriptionKind::StartEvent,
        };
        let row = Subscription {
            kind,
            element: if place.is_some() { owner } else { 0 },
            instance: place.map_or(0, |place| place.instance),
            definition,
            element_id: node.id,
            name: opened.name.into(),
            correlation_key: some_text(opened.correlation_key),
            state: SubscriptionState::Created,
            updated_ms: self.now_ms,
        };
        self.subscriptions.add(opened.key.raw(), row);
        Ok(())
    }

    pub(super) fn subscription_closed(&mut self, key: u64) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        if let Some(row) = self.subscriptions.change(&self.database, key)? {
            // One that was closed because its message came stays as that.
            if row.state != SubscriptionState::Correlated {
                row.state = SubscriptionState::Deleted;
                row.updated_ms = now_ms;
            }
        }
        Ok(())
    }

    pub(super) fn message_correlated(
        &mut self,
        message: u64,
        element: u64,
    ) -> rusqlite::Result<()> {
        let Some(name) = self.messages.get(&message).cloned() else { return Ok(()) };
        if element == 0 {
            // It started an instance; the start event goes on waiting.
            return Ok(());
        }
        let now_ms = self.now_ms;
        // Those in memory that are not written yet must be found too.
        self.begin()?;
        self.subscriptions.write(&self.database)?;
        let sql = "SELECT key FROM subscriptions \
                   WHERE element = ?1 AND name = ?2 AND state IN ('CREATED', 'MIGRATED') LIMIT 1";
        let mut statement = self.database.prepare_cached(sql)?;
        let mut found = statement.query(rusqlite::params![stored(element), name])?;
        let Some(found) = found.next()? else { return Ok(()) };
        let key = found.get::<_, i64>(0)?.cast_unsigned();
        if let Some(row) = self.subscriptions.change(&self.database, key)? {
            row.state = SubscriptionState::Correlated;
            row.updated_ms = now_ms;
        }
        Ok(())
    }
}

fn list(json: &str) -> Box<str> {
    if json.is_empty() { "[]".into() } else { json.into() }
}
