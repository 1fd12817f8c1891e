//! Process instances, their elements and variables.

use crate::names::FlowState;
use crate::search::entity::{Column, Entity, Field, FieldKind, entity};

entity! {
    /// A process instance.
    ProcessInstance, ProcessInstanceField {
        from "process_instances p LEFT JOIN definitions pd ON pd.key = p.definition",
        where "TRUE",
        key "p.key",
        instance "p.key",
        element "p.key",
    }
    rows {
        /// Its key.
        key: u64 = "p.key",
        /// The key of its definition.
        definition: u64 = "p.definition",
        /// The process's id; empty when its definition was deployed in a gap, as below.
        process_id: String = "COALESCE(pd.id, '')",
        /// The process's name.
        process_name: Option<String> = "pd.name",
        /// The definition's version.
        version: u32 = "COALESCE(pd.version, 0)",
        /// The author's name of the version.
        version_tag: Option<String> = "pd.version_tag",
        /// The instance that called it.
        parent: Option<u64> = "p.parent",
        /// The call activity that called it.
        parent_element: Option<u64> = "p.parent_element",
        /// The outermost instance; itself when nothing called it.
        root: u64 = "p.root",
        /// Where it is.
        state: FlowState = "p.state",
        /// When it began.
        start_ms: u64 = "p.start_ms",
        /// When it ended.
        end_ms: Option<u64> = "p.end_ms",
        /// Whether it, or one that it called, has an incident.
        has_incident: bool = "p.incidents > 0",
        /// The caller's own name of it.
        business_id: Option<String> = "p.business_id",
        /// Words to find it by.
        tags: Vec<String> = "p.tags",
        /// The wall of security.
        tenant: String = "p.tenant",
    }
    fields {
        Key: Key = "processInstanceKey", "p.key";
        DefinitionId: Text = "processDefinitionId", "pd.id";
        DefinitionName: Text = "processDefinitionName", "pd.name";
        DefinitionVersion: Number = "processDefinitionVersion", "pd.version";
        DefinitionVersionTag: Text = "processDefinitionVersionTag", "pd.version_tag";
        DefinitionKey: Key = "processDefinitionKey", "p.definition";
        ParentKey: Key = "parentProcessInstanceKey", "p.parent";
        ParentElementKey: Key = "parentElementInstanceKey", "p.parent_element";
        StartDate: Time = "startDate", "p.start_ms";
        EndDate: Time = "endDate", "p.end_ms";
        SuspendedDate: Time = "suspendedDate", "NULL";
        State: Text = "state", "p.state";
        HasIncident: Flag = "hasIncident", "(p.incidents > 0)";
        TenantId: Text = "tenantId", "p.tenant";
        BusinessId: Text = "businessId", "p.business_id";
        Tags: List = "tags", "p.tags";
    }
}

entity! {
    /// An element instance; not that of the process itself.
    ElementInstance, ElementInstanceField {
        from "element_instances e LEFT JOIN process_instances ep ON ep.key = e.instance \
              LEFT JOIN definitions ed ON ed.key = e.definition",
        where "TRUE",
        key "e.key",
        instance "e.instance",
        element "e.key",
    }
    rows {
        /// Its key.
        key: u64 = "e.key",
        /// What it stands in.
        scope: u64 = "e.scope",
        /// The process instance.
        instance: u64 = "e.instance",
        /// The outermost process instance.
        root: u64 = "COALESCE(ep.root, e.instance)",
        /// The definition.
        definition: u64 = "e.definition",
        /// The process's id.
        process_id: String = "COALESCE(ed.id, '')",
        /// The element's id.
        element_id: String = "e.element_id",
        /// The element's name.
        name: Option<String> = "e.name",
        /// `SERVICE_TASK` and so on.
        element_type: String = "e.type",
        /// Where it is.
        state: FlowState = "e.state",
        /// When it was entered.
        start_ms: u64 = "e.start_ms",
        /// When it ended.
        end_ms: Option<u64> = "e.end_ms",
        /// The incident that it has now.
        incident: Option<u64> = "e.incident",
        /// The wall of security.
        tenant: String = "COALESCE(ep.tenant, '')",
    }
    fields {
        Key: Key = "elementInstanceKey", "e.key";
        ScopeKey: Key = "elementInstanceScopeKey", "e.scope";
        ProcessInstanceKey: Key = "processInstanceKey", "e.instance";
        DefinitionKey: Key = "processDefinitionKey", "e.definition";
        DefinitionId: Text = "processDefinitionId", "ed.id";
        ElementId: Text = "elementId", "e.element_id";
        ElementName: Text = "elementName", "e.name";
        Type: Text = "type", "e.type";
        State: Text = "state", "e.state";
        StartDate: Time = "startDate", "e.start_ms";
        EndDate: Time = "endDate", "e.end_ms";
        HasIncident: Flag = "hasIncident", "(e.incident IS NOT NULL)";
        IncidentKey: Key = "incidentKey", "e.incident";
        TenantId: Text = "tenantId", "ep.tenant";
    }
}

entity! {
    /// A variable, with the first 8,192 letters of its value; `History::variable_value` has all.
    Variable, VariableField {
        from "variables v LEFT JOIN process_instances vp ON vp.key = v.instance",
        where "TRUE",
        key "v.key",
        instance "v.instance",
        element "v.scope",
    }
    rows {
        /// Its key; given by the history, and new when the history is begun anew.
        key: u64 = "v.key",
        /// The instance or element that it belongs to.
        scope: u64 = "v.scope",
        /// The process instance.
        instance: u64 = "v.instance",
        /// The outermost process instance.
        root: u64 = "COALESCE(vp.root, v.instance)",
        /// Its name.
        name: String = "v.name",
        /// The beginning of its value, JSON.
        value: String = "substr(v.value, 1, 8192)",
        /// Whether there is more of it.
        is_truncated: bool = "length(v.value) > 8192",
        /// The wall of security.
        tenant: String = "COALESCE(vp.tenant, '')",
    }
    fields {
        Key: Key = "variableKey", "v.key";
        Name: Text = "name", "v.name";
        Value: Text = "value", "v.value";
        ScopeKey: Key = "scopeKey", "v.scope";
        ProcessInstanceKey: Key = "processInstanceKey", "v.instance";
        TenantId: Text = "tenantId", "vp.tenant";
        IsTruncated: Flag = "isTruncated", "(length(v.value) > 8192)";
    }
}
