//! Jobs: those that flows make, and plain ones as far as they are wanted.

use windlass_record::event::{Event, IncidentKind, JobActivated, JobCreated, Outcome, ReadyCause};
use windlass_record::flow::JobRole;

use super::{Projection, Queue, some_text};
use crate::names::{IncidentState, JobKind, JobState, ListenerEvent};
use crate::options::JobLevel;
use crate::row::{Incident, Job};

impl Projection {
    pub(super) fn flow_job_created(
        &mut self,
        element: u64,
        job: u64,
        role: JobRole,
        made: &mut Vec<JobCreated<'_>>,
    ) -> rusqlite::Result<()> {
        let Some(at) = made.iter().position(|created| created.key.raw() == job) else {
            return Ok(());
        };
        let created = made.swap_remove(at);
        let Some(row) = self.elements.get(&self.database, element)? else { return Ok(()) };
        let (instance, definition) = (row.instance, row.definition);
        let element_id = row.element_id.clone();
        let (kind, listener) = match role {
            JobRole::Work => (JobKind::BpmnElement, None),
            JobRole::StartListener => (JobKind::ExecutionListener, Some(ListenerEvent::Start)),
            JobRole::EndListener => (JobKind::ExecutionListener, Some(ListenerEvent::End)),
            JobRole::CreatingListener => (JobKind::TaskListener, Some(ListenerEvent::Creating)),
            JobRole::AssigningListener => (JobKind::TaskListener, Some(ListenerEvent::Assigning)),
            JobRole::UpdatingListener => (JobKind::TaskListener, Some(ListenerEvent::Updating)),
            JobRole::CompletingListener => (JobKind::TaskListener, Some(ListenerEvent::Completing)),
            JobRole::CancelingListener => (JobKind::TaskListener, Some(ListenerEvent::Canceling)),
        };
        let row = Job {
            kind,
            listener,
            element,
            element_id: Some(element_id),
            instance,
            definition,
            ..self.job(&created)
        };
        self.jobs.add(job, row);
        self.jobs_tracked.insert(job);
        Ok(())
    }

    pub(super) fn plain_job_created(&mut self, created: &JobCreated<'_>) {
        match self.options.jobs {
            JobLevel::None => {}
            JobLevel::Failures | JobLevel::Full => {
                let key = created.key.raw();
                let row = self.job(created);
                self.jobs.add(key, row);
                self.jobs_tracked.insert(key);
            }
        }
    }

    fn job(&self, created: &JobCreated<'_>) -> Job {
        let queue = self.queues.get(&created.queue.0).cloned();
        let Queue { tenant, name } =
            queue.unwrap_or_else(|| Queue { tenant: "".into(), name: "".into() });
        let job_type = if created.job_type.is_empty() { &name } else { created.job_type };
        let headers = created.options.as_ref().map_or(&[][..], |options| &options.headers);
        let headers = std::str::from_utf8(headers).unwrap_or_default();
        Job {
            job_type: job_type.into(),
            tenant,
            queue: name,
            kind: JobKind::BpmnElement,
            listener: None,
            state: JobState::Created,
            worker: None,
            retries: created.retries,
            priority: created.priority,
            deadline_ms: None,
            error_code: None,
            error_message: None,
            headers: if headers.is_empty() { "{}" } else { headers }.into(),
            failed: false,
            element: 0,
            element_id: None,
            instance: 0,
            definition: 0,
            incident: 0,
            created_ms: self.now_ms,
            updated_ms: self.now_ms,
            end_ms: None,
        }
    }

    /// The row of a live job, if it has one.
    fn live_job(&mut self, key: u64) -> rusqlite::Result<Option<&mut Job>> {
        if !self.jobs_tracked.contains(&key) {
            return Ok(None);
        }
        let now_ms = self.now_ms;
        let mut row = self.jobs.change(&self.database, key)?;
        if let Some(row) = &mut row {
            row.updated_ms = now_ms;
        }
        Ok(row)
    }

    pub(super) fn job_activated(&mut self, activated: &JobActivated<'_>) -> rusqlite::Result<()> {
        if let Some(row) = self.live_job(activated.key.raw())? {
            row.worker = some_text(activated.worker);
            row.deadline_ms = Some(activated.deadline_ms);
        }
        Ok(())
    }

    pub(super) fn job_put_back(&mut self, key: u64) -> rusqlite::Result<()> {
        if let Some(row) = self.live_job(key)? {
            row.deadline_ms = None;
        }
        Ok(())
    }

    pub(super) fn lease_extended(&mut self, key: u64, deadline_ms: u64) -> rusqlite::Result<()> {
        if let Some(row) = self.live_job(key)? {
            row.deadline_ms = Some(deadline_ms);
        }
        Ok(())
    }

    pub(super) fn job_retried(
        &mut self,
        key: u64,
        retries: i32,
        message: &str,
    ) -> rusqlite::Result<()> {
        if let Some(row) = self.live_job(key)? {
            row.state = JobState::Failed;
            row.retries = retries;
            row.error_message = some_text(message);
            row.deadline_ms = None;
            row.failed = true;
        }
        Ok(())
    }

    pub(super) fn job_readied(&mut self, key: u64, cause: ReadyCause) -> rusqlite::Result<()> {
        if let Some(row) = self.live_job(key)? {
            match cause {
                ReadyCause::Due | ReadyCause::BackoffEnded => {}
                ReadyCause::LeaseEnded => {
                    row.state = JobState::TimedOut;
                    row.deadline_ms = None;
                }
            }
        }
        Ok(())
    }

    pub(super) fn job_updated(
        &mut self,
        key: u64,
        retries: i32,
        priority: i32,
        deadline_ms: Option<u64>,
    ) -> rusqlite::Result<()> {
        if let Some(row) = self.live_job(key)? {
            if row.retries != retries {
                row.state = JobState::RetriesUpdated;
            } else if row.priority != priority {
                row.state = JobState::PriorityUpdated;
            } else if row.deadline_ms != deadline_ms {
                row.state = JobState::TimeoutUpdated;
            }
            row.retries = retries;
            row.priority = priority;
            row.deadline_ms = deadline_ms;
        }
        Ok(())
    }

    pub(super) fn job_incident_raised(&mut self, event: &Event<'_>) -> rusqlite::Result<()> {
        let Event::IncidentRaised { key, incident, kind, retries, code, message, .. } = event
        else {
            return Ok(());
        };
        let key = key.raw();
        let Some(row) = self.live_job(key)? else { return Ok(()) };
        row.state = match kind {
            IncidentKind::NoRetries | IncidentKind::Permanent | IncidentKind::TooLarge => {
                JobState::Failed
            }
            IncidentKind::ErrorNotCaught => JobState::ErrorThrown,
        };
        row.retries = *retries;
        row.error_code = some_text(code);
        row.error_message = some_text(message);
        row.deadline_ms = None;
        row.failed = true;
        row.incident = incident.raw();
        let error_type = match (kind, row.kind) {
            (IncidentKind::ErrorNotCaught, _) => "UNHANDLED_ERROR_EVENT",
            (IncidentKind::TooLarge, _) => "MESSAGE_SIZE_EXCEEDED",
            (IncidentKind::NoRetries | IncidentKind::Permanent, JobKind::ExecutionListener) => {
                "EXECUTION_LISTENER_NO_RETRIES"
            }
            (IncidentKind::NoRetries | IncidentKind::Permanent, JobKind::TaskListener) => {
                "TASK_LISTENER_NO_RETRIES"
            }
            (IncidentKind::NoRetries | IncidentKind::Permanent, JobKind::BpmnElement) => {
                "JOB_NO_RETRIES"
            }
        };
        let raised = Incident {
            tenant: row.tenant.clone(),
            kind: error_type.into(),
            message: (*message).into(),
            state: IncidentState::Active,
            created_ms: row.updated_ms,
            resolved_ms: None,
            element: row.element,
            element_id: row.element_id.clone(),
            instance: row.instance,
            definition: row.definition,
            job: key,
        };
        self.incident_raised(incident.raw(), raised)
    }

    pub(super) fn job_incident_resolved(&mut self, key: u64, retries: i32) -> rusqlite::Result<()> {
        let Some(row) = self.live_job(key)? else { return Ok(()) };
        if row.retries != retries {
            row.state = JobState::RetriesUpdated;
        }
        row.retries = retries;
        let incident = std::mem::take(&mut row.incident);
        self.incident_resolved(incident)
    }

    pub(super) fn job_ended(
        &mut self,
        key: u64,
        outcome: Outcome,
        message: &str,
    ) -> rusqlite::Result<()> {
        let failures_only = self.options.jobs == JobLevel::Failures;
        let Some(row) = self.live_job(key)? else { return Ok(()) };
        let of_flow = row.instance != 0;
        let ended_well;
        (row.state, ended_well) = match outcome {
            Outcome::Completed | Outcome::CompletedWithErrors | Outcome::Skipped => {
                (JobState::Completed, true)
            }
            // A job of a flow ends as failed only when an event of the flow caught its error.
            Outcome::Failed if of_flow => (JobState::ErrorThrown, false),
            Outcome::Failed | Outcome::FailedForGood => (JobState::Failed, false),
            Outcome::TimedOut => (JobState::TimedOut, false),
            Outcome::Cancelled => (JobState::Canceled, true),
        };
        if !message.is_empty() {
            row.error_message = some_text(message);
        }
        row.end_ms = Some(row.updated_ms);
        row.deadline_ms = None;
        let incident = std::mem::take(&mut row.incident);
        let unwanted = failures_only && !of_flow && ended_well && !row.failed;
        self.incident_resolved(incident)?;
        self.jobs_tracked.remove(&key);
        if unwanted {
            return self.job_unwanted(key);
        }
        if !of_flow {
            self.finished += 1;
        }
        Ok(())
    }

    fn job_unwanted(&mut self, key: u64) -> rusqlite::Result<()> {
        if !self.jobs.drop_new(key) {
            self.begin()?;
            let mut statement = self.database.prepare_cached("DELETE FROM jobs WHERE key = ?1")?;
            statement.execute([crate::schema::stored(key)])?;
        }
        Ok(())
    }
}
