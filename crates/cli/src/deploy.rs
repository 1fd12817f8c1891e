//! `windlass deploy`: processes, decisions and forms, all or none.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::args::Online;
use crate::failure::Failure;
use crate::output::table;
use crate::rest::{Resource, Rest, shown, text};

/// Where what was deployed stands in an answer: what it is called, and the names of its id, version
/// and key.
const KINDS: [(&str, &str, &str, &str, &str); 5] = [
    (
        "processDefinition",
        "process",
        "processDefinitionId",
        "processDefinitionVersion",
        "processDefinitionKey",
    ),
    ("decisionDefinition", "decision", "decisionDefinitionId", "version", "decisionDefinitionKey"),
    (
        "decisionRequirements",
        "requirements",
        "decisionRequirementsId",
        "version",
        "decisionRequirementsKey",
    ),
    ("form", "form", "formId", "version", "formKey"),
    ("resource", "resource", "resourceId", "version", "resourceKey"),
];

#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    /// BPMN, DMN and form files; deployed together or not at all
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(online: &Online, args: &DeployArgs) -> Result<(), Failure> {
    let resources: Result<Vec<Resource>, Failure> = args.files.iter().map(read).collect();
    let answer = Rest::new(online).deploy(&online.tenant, &resources?).await;
    let names: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
    let answer = answer.map_err(|failure| {
        failure.hint_if_refused(format!(
            "`windlass flow lint {}` says what is wrong where",
            names.join(" ")
        ))
    })?;
    online.out.show(&answer, || {
        let deployed = answer.get("deployments").and_then(Value::as_array);
        let rows: Vec<Vec<String>> = deployed.into_iter().flatten().filter_map(row).collect();
        table(&["what", "id", "version", "key", "file"], &rows)
    })
}

fn read(file: &PathBuf) -> Result<Resource, Failure> {
    let content = std::fs::read(file)
        .map_err(|error| Failure::io(format!("read {}", file.display()), error))?;
    // The name is part of what a resource is: the same content under another name is a new version.
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Resource { name, content })
}

fn row(deployed: &Value) -> Option<Vec<String>> {
    KINDS.iter().find_map(|(field, what, id, version, key)| {
        let entry = deployed.get(field).filter(|entry| entry.is_object())?;
        Some(vec![
            (*what).to_owned(),
            text(entry, id).to_owned(),
            shown(entry, version),
            shown(entry, key),
            text(entry, "resourceName").to_owned(),
        ])
    })
}
