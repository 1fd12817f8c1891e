//! Definitions.

use serde_json::{Value as Json, json};
use windlass_gateway::read_model::search::{
    DecisionDefinition, DecisionRequirements, ProcessDefinition,
};

use super::Item;
use super::instance::text;

impl Item for ProcessDefinition {
    const NAME: &'static str = "Process definition";

    fn shown(self) -> Json {
        let state = if self.deleted_ms.is_none() { "ACTIVE" } else { "DELETED" };
        json!({
            "processDefinitionKey": text(self.key),
            "processDefinitionId": self.id,
            "name": self.name,
            "version": self.version,
            "versionTag": self.version_tag,
            "resourceName": self.resource_name.unwrap_or_default(),
            "hasStartForm": false,
            "state": state,
            "tenantId": self.tenant,
        })
    }
}

impl Item for DecisionDefinition {
    const NAME: &'static str = "Decision definition";

    fn shown(self) -> Json {
        json!({
            "decisionDefinitionKey": text(self.key),
            "name": self.name.as_ref().unwrap_or(&self.id),
            "decisionDefinitionId": self.id,
            "version": self.version,
            "decisionRequirementsKey": text(self.requirements_key.unwrap_or_default()),
            "decisionRequirementsId": self.requirements_id.unwrap_or_default(),
            "decisionRequirementsName": self.requirements_name.unwrap_or_default(),
            "decisionRequirementsVersion": self.requirements_version.unwrap_or_default(),
            "tenantId": self.tenant,
        })
    }
}

impl Item for DecisionRequirements {
    const NAME: &'static str = "Decision requirements";

    fn shown(self) -> Json {
        json!({
            "decisionRequirementsKey": text(self.key),
            "decisionRequirementsName": self.name.as_ref().unwrap_or(&self.id),
            "decisionRequirementsId": self.id,
            "version": self.version,
            "resourceName": self.resource_name.unwrap_or_default(),
            "tenantId": self.tenant,
        })
    }
}
