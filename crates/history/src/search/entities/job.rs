//! Jobs.

use crate::names::{JobKind, JobState, ListenerEvent};
use crate::search::entity::{Column, Entity, Field, FieldKind, entity};

entity! {
    /// A job.
    Job, JobField {
        from "jobs j LEFT JOIN process_instances jp ON jp.key = j.instance \
              LEFT JOIN definitions jd ON jd.key = j.definition",
        where "TRUE",
        key "j.key",
        instance "j.instance",
        element "j.element",
    }
    rows {
        /// Its key.
        key: u64 = "j.key",
        /// What work it is.
        job_type: String = "j.type",
        /// Where it waited.
        queue: String = "j.queue",
        /// What it is for.
        kind: JobKind = "j.kind",
        /// Of a listener: when it is made.
        listener: Option<ListenerEvent> = "j.listener",
        /// The last thing that happened to it.
        state: JobState = "j.state",
        /// Who has or had it.
        worker: Option<String> = "j.worker",
        /// Retries left.
        retries: i32 = "j.retries",
        /// Its priority.
        priority: i32 = "j.priority",
        /// When its lease ends.
        deadline_ms: Option<u64> = "j.deadline_ms",
        /// The error that its worker threw; not kept when an event caught it.
        error_code: Option<String> = "j.error_code",
        /// What went wrong.
        error_message: Option<String> = "j.error_message",
        /// Static metadata, a JSON object.
        headers: String = "j.headers",
        /// Whether it failed and could be tried again.
        failed_with_retries_left: bool = "(j.failed AND j.retries > 0)",
        /// Its element; nothing, like what follows, for a plain job.
        element: Option<u64> = "j.element",
        /// The element's id.
        element_id: Option<String> = "j.element_id",
        /// The process instance.
        instance: Option<u64> = "j.instance",
        /// The outermost process instance.
        root: Option<u64> = "jp.root",
        /// The caller's own name of the instance.
        business_id: Option<String> = "jp.business_id",
        /// The definition.
        definition: Option<u64> = "j.definition",
        /// The process's id.
        process_id: Option<String> = "jd.id",
        /// When it was made.
        created_ms: u64 = "j.created_ms",
        /// When something last happened to it.
        updated_ms: u64 = "j.updated_ms",
        /// When it ended.
        end_ms: Option<u64> = "j.end_ms",
        /// The wall of security.
        tenant: String = "j.tenant",
    }
    fields {
        Key: Key = "jobKey", "j.key";
        Type: Text = "type", "j.type";
        Kind: Text = "kind", "j.kind";
        ListenerEventType: Text = "listenerEventType", "j.listener";
        State: Text = "state", "j.state";
        Worker: Text = "worker", "j.worker";
        Retries: Number = "retries", "j.retries";
        Priority: Number = "priority", "j.priority";
        Deadline: Time = "deadline", "j.deadline_ms";
        ErrorCode: Text = "errorCode", "j.error_code";
        ErrorMessage: Text = "errorMessage", "j.error_message";
        HasFailedWithRetriesLeft: Flag = "hasFailedWithRetriesLeft", "(j.failed AND j.retries > 0)";
        IsDenied: Flag = "isDenied", "NULL";
        DeniedReason: Text = "deniedReason", "NULL";
        ElementKey: Key = "elementInstanceKey", "j.element";
        ElementId: Text = "elementId", "j.element_id";
        ProcessInstanceKey: Key = "processInstanceKey", "j.instance";
        DefinitionKey: Key = "processDefinitionKey", "j.definition";
        DefinitionId: Text = "processDefinitionId", "jd.id";
        CreationTime: Time = "creationTime", "j.created_ms";
        LastUpdateTime: Time = "lastUpdateTime", "j.updated_ms";
        EndTime: Time = "endTime", "j.end_ms";
        TenantId: Text = "tenantId", "j.tenant";
    }
}
