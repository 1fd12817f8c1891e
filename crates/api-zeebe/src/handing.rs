//! A job as this wire says it, and what becomes of one that does not fit in a message.

use prost::Message;
use windlass_gateway::Gateway;
use windlass_gateway::request::{HandedJob, UserTaskShown, Wanted};
use windlass_record::command::{Command, FailJob, FailureKind};
use windlass_record::flow::{JobRole, NO_KEY};

use crate::document::{Fetch, headers};
use crate::lease;
use crate::limit::SENT_BYTES_MAX;
use crate::protocol::activated_job::{JobKind, ListenerEventType};
use crate::protocol::{ActivatedJob, UserTaskProperties};
use crate::queue::{TENANT_DEFAULT, queue_name};

/// What a worker asked for and wants to see again.
#[derive(Debug)]
pub(crate) struct Handing {
    pub(crate) tenant: &'static str,
    pub(crate) job_type: String,
    pub(crate) worker: String,
    pub(crate) timeout_ms: u64,
    pub(crate) fetch: Fetch,
    pub(crate) with_lease: bool,
}

impl Handing {
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            queues: vec![queue_name(self.tenant, &self.job_type)],
            worker: self.worker.as_str().into(),
            lease_ms: self.timeout_ms,
            with_token: self.with_lease,
        }
    }

    /// The job, unless it is larger than a message can be. Then it goes to nobody, and waits for a
    /// person.
    pub(crate) fn job(&self, gateway: &Gateway, job: &HandedJob) -> Option<ActivatedJob> {
        let shown = self.show(job);
        let bytes = shown.encoded_len();
        if bytes <= SENT_BYTES_MAX {
            return Some(shown);
        }
        refuse_too_large(gateway.clone(), job, bytes);
        None
    }

    fn show(&self, job: &HandedJob) -> ActivatedJob {
        let flow = flow_of(job);
        ActivatedJob {
            key: job.key.raw().cast_signed(),
            r#type: self.job_type.clone(),
            process_instance_key: flow.process_instance_key,
            bpmn_process_id: flow.bpmn_process_id,
            process_definition_version: flow.process_definition_version,
            process_definition_key: flow.process_definition_key,
            element_id: flow.element_id,
            element_instance_key: flow.element_instance_key,
            custom_headers: headers(&job.headers),
            worker: self.worker.clone(),
            retries: job.retries,
            deadline: i64::try_from(job.deadline_ms).unwrap_or(i64::MAX),
            variables: self.fetch.of(&job.payload),
            tenant_id: self.tenant.to_owned(),
            user_task: flow.user_task,
            kind: flow.kind.into(),
            listener_event_type: flow.listener_event_type.into(),
            tags: flow.tags,
            priority: job.priority,
            business_id: flow.business_id,
            lease_token: self.with_lease.then(|| lease::show(job.unsent.token)),
            physical_tenant_id: String::new(),
        }
    }
}

/// What a job says about the process instance that it belongs to.
struct Flow {
    process_instance_key: i64,
    bpmn_process_id: String,
    process_definition_version: i32,
    process_definition_key: i64,
    element_id: String,
    element_instance_key: i64,
    kind: JobKind,
    listener_event_type: ListenerEventType,
    tags: Vec<String>,
    business_id: String,
    user_task: Option<UserTaskProperties>,
}

/// A key or a version that names nothing.
const NOTHING: i32 = -1;

/// The one place where a job gets the words of its process instance.
fn flow_of(job: &HandedJob) -> Flow {
    if let Some(facts) = &job.flow {
        return Flow {
            process_instance_key: facts.instance.raw().cast_signed(),
            bpmn_process_id: facts.process_id.to_string(),
            process_definition_version: i32::try_from(facts.version).unwrap_or(i32::MAX),
            process_definition_key: facts.definition.raw().cast_signed(),
            element_id: facts.element_id.to_string(),
            element_instance_key: facts.element.raw().cast_signed(),
            kind: match facts.role {
                JobRole::Work => JobKind::BpmnElement,
                JobRole::StartListener | JobRole::EndListener => JobKind::ExecutionListener,
                JobRole::CreatingListener
                | JobRole::AssigningListener
                | JobRole::UpdatingListener
                | JobRole::CompletingListener
                | JobRole::CancelingListener => JobKind::TaskListener,
            },
            listener_event_type: match facts.role {
                JobRole::Work => ListenerEventType::Unspecified,
                JobRole::StartListener => ListenerEventType::Start,
                JobRole::EndListener => ListenerEventType::End,
                JobRole::CreatingListener => ListenerEventType::Creating,
                JobRole::AssigningListener => ListenerEventType::Assigning,
                JobRole::UpdatingListener => ListenerEventType::Updating,
                JobRole::CompletingListener => ListenerEventType::Completing,
                JobRole::CancelingListener => ListenerEventType::Canceling,
            },
            tags: facts.tags.iter().map(ToString::to_string).collect(),
            business_id: facts.business_id.to_string(),
            user_task: facts.user_task.as_deref().map(user_task),
        };
    }
    Flow {
        process_instance_key: NOTHING.into(),
        bpmn_process_id: String::new(),
        process_definition_version: NOTHING,
        process_definition_key: NOTHING.into(),
        element_id: String::new(),
        element_instance_key: NOTHING.into(),
        kind: JobKind::BpmnElement,
        listener_event_type: ListenerEventType::Unspecified,
        tags: Vec::new(),
        business_id: String::new(),
        user_task: None,
    }
}

/// The user task that a listener is asked about. What it has not is absent.
fn user_task(shown: &UserTaskShown) -> UserTaskProperties {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let task = &shown.task;
    UserTaskProperties {
        action: some(&shown.action),
        assignee: some(&task.assignee),
        candidate_groups: names(&task.candidate_groups),
        candidate_users: names(&task.candidate_users),
        changed_attributes: shown.changed.iter().map(ToString::to_string).collect(),
        due_date: some(&task.due_date),
        follow_up_date: some(&task.follow_up_date),
        form_key: (task.form != NO_KEY).then(|| task.form.raw().cast_signed()),
        priority: i32::try_from(task.priority).ok(),
        user_task_key: Some(shown.key.raw().cast_signed()),
    }
}

/// A list of text; what else a process may have computed is written as JSON.
fn names(list: &str) -> Vec<String> {
    let items: Vec<serde_json::Value> = serde_json::from_str(list).unwrap_or_default();
    let text = |item: serde_json::Value| item.as_str().map_or(item.to_string(), str::to_owned);
    items.into_iter().map(text).collect()
}

fn refuse_too_large(gateway: Gateway, job: &HandedJob, bytes: usize) {
    let message = format!(
        "The job with key '{}' can not be activated, because with {bytes} bytes it is larger than a \
         message may be ({SENT_BYTES_MAX} bytes). Fetch fewer variables or make them smaller.",
        job.key.raw().cast_signed()
    );
    tracing::warn!(job = job.key.raw(), bytes, "a job is too large for a message");
    let command = Command::FailJob(FailJob {
        lease: job.unsent.token.into(),
        message: message.into(),
        retries: None,
        backoff_ms: None,
        progressed: false,
        variables: std::sync::Arc::default(),
        kind: FailureKind::TooLarge,
    });
    tokio::spawn(async move {
        // Refused when it has ended meanwhile, and then there is nothing to do.
        let _refused = gateway.result(command).await;
    });
}

/// What the two ways to ask for jobs have in common.
pub(crate) struct Given {
    pub(crate) job_type: String,
    pub(crate) worker: String,
    pub(crate) timeout: i64,
    pub(crate) fetch: Vec<String>,
    pub(crate) with_lease: bool,
}

impl Given {
    /// Checks shape. The tenant is for who calls.
    pub(crate) fn handing(self, tenant: &'static str) -> Result<Handing, &'static str> {
        debug_assert_eq!(tenant, TENANT_DEFAULT);
        if self.job_type.trim().is_empty() {
            return Err("Expected to activate job batch with type to be present, but it was blank");
        }
        let timeout_ms = u64::try_from(self.timeout).unwrap_or(0);
        if timeout_ms == 0 {
            return Err(
                "Expected to activate job batch with timeout to be greater than zero, but it \
                        was not",
            );
        }
        Ok(Handing {
            tenant,
            job_type: self.job_type,
            worker: self.worker,
            timeout_ms,
            fetch: Fetch::new(self.fetch),
            with_lease: self.with_lease,
        })
    }
}
