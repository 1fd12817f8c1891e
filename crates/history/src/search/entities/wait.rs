//! What waits for people and messages.

use crate::names::{IncidentState, SubscriptionKind, SubscriptionState, UserTaskState};
use crate::search::entity::{Column, Entity, Field, FieldKind, entity};

entity! {
    /// An incident.
    Incident, IncidentField {
        from "incidents i LEFT JOIN process_instances ip ON ip.key = i.instance \
              LEFT JOIN definitions idf ON idf.key = i.definition",
        where "TRUE",
        key "i.key",
        instance "i.instance",
        element "i.element",
    }
    rows {
        /// Its key.
        key: u64 = "i.key",
        /// `JOB_NO_RETRIES` and so on.
        error_type: String = "i.type",
        /// What went wrong.
        message: String = "i.message",
        /// Where it is.
        state: IncidentState = "i.state",
        /// When it was raised.
        created_ms: u64 = "i.created_ms",
        /// When it was resolved.
        resolved_ms: Option<u64> = "i.resolved_ms",
        /// The element that waits; nothing, like what follows, for that of a plain job.
        element: Option<u64> = "i.element",
        /// The element's id.
        element_id: Option<String> = "i.element_id",
        /// The process instance.
        instance: Option<u64> = "i.instance",
        /// The outermost process instance.
        root: Option<u64> = "ip.root",
        /// The definition.
        definition: Option<u64> = "i.definition",
        /// The process's id.
        process_id: Option<String> = "idf.id",
        /// The job that failed, if it was one.
        job: Option<u64> = "i.job",
        /// The wall of security.
        tenant: String = "i.tenant",
    }
    fields {
        Key: Key = "incidentKey", "i.key";
        ErrorType: Text = "errorType", "i.type";
        ErrorMessage: Text = "errorMessage", "i.message";
        State: Text = "state", "i.state";
        CreationTime: Time = "creationTime", "i.created_ms";
        ElementId: Text = "elementId", "i.element_id";
        ElementKey: Key = "elementInstanceKey", "i.element";
        ProcessInstanceKey: Key = "processInstanceKey", "i.instance";
        DefinitionKey: Key = "processDefinitionKey", "i.definition";
        DefinitionId: Text = "processDefinitionId", "idf.id";
        JobKey: Key = "jobKey", "i.job";
        TenantId: Text = "tenantId", "i.tenant";
    }
}

entity! {
    /// A user task.
    UserTask, UserTaskField {
        from "user_tasks u LEFT JOIN process_instances up ON up.key = u.instance \
              LEFT JOIN definitions ud ON ud.key = u.definition",
        where "TRUE",
        key "u.key",
        instance "u.instance",
        element "u.element",
    }
    rows {
        /// Its key.
        key: u64 = "u.key",
        /// The element's name.
        name: Option<String> = "u.name",
        /// Where it is.
        state: UserTaskState = "u.state",
        /// Whose it is.
        assignee: Option<String> = "u.assignee",
        /// Who may take it.
        candidate_groups: Vec<String> = "u.candidate_groups",
        /// Who may take it.
        candidate_users: Vec<String> = "u.candidate_users",
        /// By when, as it was written.
        due_date: Option<String> = "u.due_date",
        /// When to look at it again, as it was written.
        follow_up_date: Option<String> = "u.follow_up_date",
        /// 0..=100.
        priority: u32 = "u.priority",
        /// The key of its form.
        form: Option<u64> = "u.form",
        /// A form somewhere else.
        form_reference: Option<String> = "u.form_reference",
        /// Static headers, a JSON object.
        headers: String = "u.headers",
        /// When it was made.
        created_ms: u64 = "u.created_ms",
        /// When it ended.
        completed_ms: Option<u64> = "u.completed_ms",
        /// The element instance.
        element: u64 = "u.element",
        /// The element's id.
        element_id: String = "u.element_id",
        /// The process instance.
        instance: u64 = "u.instance",
        /// The outermost process instance.
        root: u64 = "COALESCE(up.root, u.instance)",
        /// The definition.
        definition: u64 = "u.definition",
        /// The process's id.
        process_id: String = "COALESCE(ud.id, '')",
        /// The process's name.
        process_name: Option<String> = "ud.name",
        /// The definition's version.
        version: u32 = "COALESCE(ud.version, 0)",
        /// The caller's own name of the instance.
        business_id: Option<String> = "up.business_id",
        /// The instance's words to find it by.
        tags: Vec<String> = "COALESCE(up.tags, '[]')",
        /// The wall of security.
        tenant: String = "COALESCE(up.tenant, '')",
    }
    fields {
        Key: Key = "userTaskKey", "u.key";
        Name: Text = "name", "u.name";
        State: Text = "state", "u.state";
        Assignee: Text = "assignee", "u.assignee";
        CandidateGroup: List = "candidateGroup", "u.candidate_groups";
        CandidateUser: List = "candidateUser", "u.candidate_users";
        Priority: Number = "priority", "u.priority";
        CreationDate: Time = "creationDate", "u.created_ms";
        CompletionDate: Time = "completionDate", "u.completed_ms";
        DueDate: Time = "dueDate", "CAST(ROUND(unixepoch(u.due_date, 'subsec') * 1000) AS INTEGER)";
        FollowUpDate: Time = "followUpDate",
            "CAST(ROUND(unixepoch(u.follow_up_date, 'subsec') * 1000) AS INTEGER)";
        ElementId: Text = "elementId", "u.element_id";
        ElementKey: Key = "elementInstanceKey", "u.element";
        ProcessInstanceKey: Key = "processInstanceKey", "u.instance";
        DefinitionKey: Key = "processDefinitionKey", "u.definition";
        DefinitionId: Text = "processDefinitionId", "ud.id";
        BusinessId: Text = "businessId", "up.business_id";
        Tags: List = "tags", "COALESCE(up.tags, '[]')";
        TenantId: Text = "tenantId", "up.tenant";
    }
}

entity! {
    /// Somebody waits, or waited, for a message.
    MessageSubscription, MessageSubscriptionField {
        from "subscriptions s LEFT JOIN process_instances sp ON sp.key = s.instance \
              LEFT JOIN definitions sd ON sd.key = s.definition",
        where "TRUE",
        key "s.key",
        instance "s.instance",
        element "s.element",
    }
    rows {
        /// Its key.
        key: u64 = "s.key",
        /// Who waits.
        kind: SubscriptionKind = "s.type",
        /// Where it is.
        state: SubscriptionState = "s.state",
        /// When that was.
        updated_ms: u64 = "s.updated_ms",
        /// The message's name.
        message_name: String = "s.name",
        /// What it is correlated by.
        correlation_key: Option<String> = "s.correlation_key",
        /// The element that waits; nothing for a start event.
        element: Option<u64> = "s.element",
        /// The id of the element that catches.
        element_id: String = "s.element_id",
        /// The process instance; nothing for a start event.
        instance: Option<u64> = "s.instance",
        /// The outermost process instance.
        root: Option<u64> = "sp.root",
        /// The caller's own name of the instance.
        business_id: Option<String> = "sp.business_id",
        /// The definition.
        definition: u64 = "s.definition",
        /// The process's id.
        process_id: String = "COALESCE(sd.id, '')",
        /// The process's name.
        process_name: Option<String> = "sd.name",
        /// The definition's version.
        version: u32 = "COALESCE(sd.version, 0)",
        /// The wall of security.
        tenant: String = "COALESCE(sd.tenant, '')",
    }
    fields {
        Key: Key = "messageSubscriptionKey", "s.key";
        Kind: Text = "messageSubscriptionType", "s.type";
        State: Text = "messageSubscriptionState", "s.state";
        LastUpdatedDate: Time = "lastUpdatedDate", "s.updated_ms";
        MessageName: Text = "messageName", "s.name";
        CorrelationKey: Text = "correlationKey", "s.correlation_key";
        ElementId: Text = "elementId", "s.element_id";
        ElementKey: Key = "elementInstanceKey", "s.element";
        ProcessInstanceKey: Key = "processInstanceKey", "s.instance";
        DefinitionKey: Key = "processDefinitionKey", "s.definition";
        DefinitionId: Text = "processDefinitionId", "sd.id";
        DefinitionName: Text = "processDefinitionName", "sd.name";
        DefinitionVersion: Number = "processDefinitionVersion", "sd.version";
        BusinessId: Text = "businessId", "sp.business_id";
        TenantId: Text = "tenantId", "sd.tenant";
        ToolName: Text = "toolName", "NULL";
        InboundConnectorType: Text = "inboundConnectorType", "NULL";
    }
}
