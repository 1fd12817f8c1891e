//! Workflows in the way of Conductor, and their tasks. Fields have the names that Conductor's query
//! language gives them.

use crate::search::entity::{Column, Entity, Field, FieldKind, entity};

entity! {
    /// A workflow, with the first 8,192 letters of its input and output; `History::workflow_json`
    /// has all.
    Workflow, WorkflowField {
        from "workflows w",
        where "TRUE",
        key "w.key",
        instance "w.key",
        element "w.key",
    }
    rows {
        /// Its key.
        key: u64 = "w.key",
        /// The definition that it runs by.
        definition: u64 = "w.definition",
        /// The definition's name; empty when it came in a gap, as below.
        name: String = "w.name",
        /// The definition's version.
        version: u32 = "w.version",
        /// `RUNNING` and so on.
        status: String = "w.status",
        /// When it was made, or restarted.
        start_ms: u64 = "w.start_ms",
        /// When it changed last.
        update_ms: u64 = "w.update_ms",
        /// When it ended.
        end_ms: Option<u64> = "w.end_ms",
        /// The caller's own name of it.
        correlation_id: Option<String> = "w.correlation_id",
        /// The workflow that it runs for.
        parent: Option<u64> = "w.parent",
        /// 0..=99.
        priority: u32 = "w.priority",
        /// Why it is as it is.
        reason: Option<String> = "w.reason",
        /// Who started it.
        created_by: Option<String> = "w.created_by",
        /// The event that started it.
        event: Option<String> = "w.event",
        /// What made a second start harmless.
        idempotency_key: Option<String> = "w.idempotency_key",
        /// Domains by task type, a JSON object.
        task_to_domain: Option<String> = "w.task_to_domain",
        /// The beginning of its input, JSON.
        input: String = "substr(w.input, 1, 8192)",
        /// How many letters its input has.
        input_size: u64 = "length(w.input)",
        /// The beginning of its output, JSON.
        output: String = "substr(w.output, 1, 8192)",
        /// How many letters its output has.
        output_size: u64 = "length(w.output)",
        /// Reference names of the tasks that failed, also of those that were tried again.
        failed_references: Vec<String> = "CASE WHEN w.end_ms IS NULL THEN '[]' ELSE \
            (SELECT json_group_array(DISTINCT f.reference) FROM tasks f \
             WHERE f.workflow = w.key \
             AND f.status IN ('FAILED', 'FAILED_WITH_TERMINAL_ERROR')) END",
        /// Names of their definitions.
        failed_names: Vec<String> = "CASE WHEN w.end_ms IS NULL THEN '[]' ELSE \
            (SELECT json_group_array(DISTINCT f.name) FROM tasks f \
             WHERE f.workflow = w.key \
             AND f.status IN ('FAILED', 'FAILED_WITH_TERMINAL_ERROR')) END",
    }
    fields {
        Id: Id = "workflowId", "w.key";
        ParentId: Id = "parentWorkflowId", "w.parent";
        Type: Text = "workflowType", "w.name";
        Version: Number = "version", "w.version";
        CorrelationId: Text = "correlationId", "w.correlation_id";
        Status: Text = "status", "w.status";
        StartTime: Time = "startTime", "w.start_ms";
        UpdateTime: Time = "updateTime", "w.update_ms";
        EndTime: Time = "endTime", "w.end_ms";
        Reason: Text = "reasonForIncompletion", "w.reason";
        Priority: Number = "priority", "w.priority";
        CreatedBy: Text = "createdBy", "w.created_by";
        Event: Text = "event", "w.event";
        IdempotencyKey: Text = "idempotencyKey", "w.idempotency_key";
        Input: Text = "input", "w.input";
        Output: Text = "output", "w.output";
    }
}

entity! {
    /// A task of a workflow, with the first 8,192 letters of its input and output.
    Task, TaskField {
        from "tasks t LEFT JOIN workflows tw ON tw.key = t.workflow",
        where "TRUE",
        key "t.key",
        instance "t.workflow",
        element "t.key",
    }
    rows {
        /// Its key.
        key: u64 = "t.key",
        /// The workflow.
        workflow: u64 = "t.workflow",
        /// The workflow's name.
        workflow_type: String = "COALESCE(tw.name, '')",
        /// The workflow's other name.
        correlation_id: Option<String> = "tw.correlation_id",
        /// 0..=99, that of the workflow.
        priority: u32 = "COALESCE(tw.priority, 0)",
        /// Its reference name, with the round behind it.
        reference: String = "t.reference",
        /// The name of a worker's task, or `SWITCH` and so on.
        task_type: String = "t.type",
        /// The name of its definition.
        name: String = "t.name",
        /// `SCHEDULED` and so on.
        status: String = "t.status",
        /// When it was made.
        scheduled_ms: u64 = "t.scheduled_ms",
        /// When it was begun.
        start_ms: Option<u64> = "t.start_ms",
        /// When it changed last.
        update_ms: u64 = "t.update_ms",
        /// When it ended.
        end_ms: Option<u64> = "t.end_ms",
        /// Why it is as it is.
        reason: Option<String> = "t.reason",
        /// The domain of its queue.
        domain: Option<String> = "t.domain",
        /// How often it was tried before.
        retry_count: u32 = "t.retry_count",
        /// The round of its loop, from 1; 0 outside of loops.
        iteration: u32 = "t.iteration",
        /// Who works on it, or did.
        worker: Option<String> = "t.worker",
        /// Its number in the workflow, from 1.
        seq: u32 = "t.seq",
        /// The beginning of its input, JSON.
        input: String = "substr(t.input, 1, 8192)",
        /// The beginning of its output, JSON.
        output: String = "substr(t.output, 1, 8192)",
    }
    fields {
        Id: Id = "taskId", "t.key";
        WorkflowId: Id = "workflowId", "t.workflow";
        WorkflowType: Text = "workflowType", "tw.name";
        CorrelationId: Text = "correlationId", "tw.correlation_id";
        Reference: Text = "referenceTaskName", "t.reference";
        Type: Text = "taskType", "t.type";
        Name: Text = "taskDefName", "t.name";
        Status: Text = "status", "t.status";
        ScheduledTime: Time = "scheduledTime", "t.scheduled_ms";
        StartTime: Time = "startTime", "t.start_ms";
        UpdateTime: Time = "updateTime", "t.update_ms";
        EndTime: Time = "endTime", "t.end_ms";
        Reason: Text = "reasonForIncompletion", "t.reason";
        Domain: Text = "domain", "t.domain";
        WorkerId: Text = "workerId", "t.worker";
        Input: Text = "input", "t.input";
        Output: Text = "output", "t.output";
    }
}
