//! Definitions.

use crate::search::entity::{Column, Entity, Field, FieldKind, entity};

entity! {
    /// A version of a process.
    ProcessDefinition, ProcessDefinitionField {
        from "definitions d LEFT JOIN resources dr ON dr.key = d.resource",
        where "d.kind = 'PROCESS'",
        key "d.key",
        instance "0",
        element "0",
    }
    rows {
        /// Its key.
        key: u64 = "d.key",
        /// The deployment that brought it.
        deployment: u64 = "d.deployment",
        /// The process's id.
        id: String = "d.id",
        /// From 1.
        version: u32 = "d.version",
        /// The author's name of the version.
        version_tag: Option<String> = "d.version_tag",
        /// For people.
        name: Option<String> = "d.name",
        /// The file it stands in.
        resource_name: Option<String> = "dr.name",
        /// The wall of security.
        tenant: String = "d.tenant",
        /// When it was deployed.
        deployed_ms: u64 = "d.deployed_ms",
        /// When it was deleted.
        deleted_ms: Option<u64> = "d.deleted_ms",
    }
    fields {
        Key: Key = "processDefinitionKey", "d.key";
        Id: Text = "processDefinitionId", "d.id";
        Name: Text = "name", "d.name";
        Version: Number = "version", "d.version";
        VersionTag: Text = "versionTag", "d.version_tag";
        ResourceName: Text = "resourceName", "dr.name";
        TenantId: Text = "tenantId", "d.tenant";
        State: Text = "state", "IIF(d.deleted_ms IS NULL, 'ACTIVE', 'DELETED')";
        // As a word: a bare number in ORDER BY is that of a column.
        HasStartForm: Flag = "hasStartForm", "FALSE";
        IsLatestVersion: Flag = "isLatestVersion", "(d.deleted_ms IS NULL AND NOT EXISTS \
            (SELECT 1 FROM definitions dl WHERE dl.kind = d.kind AND dl.id = d.id \
            AND dl.tenant = d.tenant AND dl.deleted_ms IS NULL AND dl.version > d.version))";
    }
}

entity! {
    /// A version of a decision.
    DecisionDefinition, DecisionDefinitionField {
        from "definitions c LEFT JOIN definitions cr ON cr.key = c.requirements",
        where "c.kind = 'DECISION' AND c.deleted_ms IS NULL",
        key "c.key",
        instance "0",
        element "0",
    }
    rows {
        /// Its key.
        key: u64 = "c.key",
        /// The decision's id.
        id: String = "c.id",
        /// From 1.
        version: u32 = "c.version",
        /// For people.
        name: Option<String> = "c.name",
        /// The key of its requirements graph.
        requirements_key: Option<u64> = "c.requirements",
        /// The graph's id.
        requirements_id: Option<String> = "cr.id",
        /// The graph's name.
        requirements_name: Option<String> = "cr.name",
        /// The graph's version.
        requirements_version: Option<u32> = "cr.version",
        /// The wall of security.
        tenant: String = "c.tenant",
    }
    fields {
        Key: Key = "decisionDefinitionKey", "c.key";
        Id: Text = "decisionDefinitionId", "c.id";
        Name: Text = "name", "c.name";
        Version: Number = "version", "c.version";
        RequirementsKey: Key = "decisionRequirementsKey", "c.requirements";
        RequirementsId: Text = "decisionRequirementsId", "cr.id";
        RequirementsName: Text = "decisionRequirementsName", "cr.name";
        RequirementsVersion: Number = "decisionRequirementsVersion", "cr.version";
        TenantId: Text = "tenantId", "c.tenant";
        IsLatestVersion: Flag = "isLatestVersion", "(NOT EXISTS (SELECT 1 FROM definitions cl \
            WHERE cl.kind = c.kind AND cl.id = c.id AND cl.tenant = c.tenant \
            AND cl.deleted_ms IS NULL AND cl.version > c.version))";
    }
}

entity! {
    /// A version of a graph of decisions.
    DecisionRequirements, DecisionRequirementsField {
        from "definitions q LEFT JOIN resources qr ON qr.key = q.resource",
        where "q.kind = 'DECISION_REQUIREMENTS' AND q.deleted_ms IS NULL",
        key "q.key",
        instance "0",
        element "0",
    }
    rows {
        /// Its key.
        key: u64 = "q.key",
        /// The graph's id.
        id: String = "q.id",
        /// From 1.
        version: u32 = "q.version",
        /// For people.
        name: Option<String> = "q.name",
        /// The file it stands in.
        resource_name: Option<String> = "qr.name",
        /// The wall of security.
        tenant: String = "q.tenant",
    }
    fields {
        Key: Key = "decisionRequirementsKey", "q.key";
        Id: Text = "decisionRequirementsId", "q.id";
        Name: Text = "decisionRequirementsName", "q.name";
        Version: Number = "version", "q.version";
        ResourceName: Text = "resourceName", "qr.name";
        TenantId: Text = "tenantId", "q.tenant";
    }
}
