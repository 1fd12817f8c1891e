//! `windlass flow`: process and decision files, without a server.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_flow::bpmn::{self, Severity};
use windlass_flow::dmn;

use crate::failure::Failure;
use crate::output::Output;

/// A larger file fits in no deployment.
const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// Check BPMN and DMN files: exit code 1 if a server would refuse one
    Lint {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

pub(crate) fn run(command: FlowCommand, json: bool) -> Result<(), Failure> {
    let FlowCommand::Lint { files } = command;
    let mut found = Vec::new();
    for file in &files {
        found.extend(lint(file)?);
    }
    let errors = found.iter().filter(|finding| finding.is_error).count();
    let warnings = found.len() - errors;
    let value = json!({
        "files": files,
        "errors": errors,
        "warnings": warnings,
        "problems": found.iter().map(Finding::json).collect::<Vec<Value>>(),
    });
    Output { json }.show(&value, || {
        let mut lines: Vec<String> = found.iter().map(Finding::text).collect();
        let counts = [(files.len(), "file"), (errors, "error"), (warnings, "warning")];
        lines.push(counts.map(|(count, what)| counted(count, what)).join(", "));
        lines.join("\n")
    })?;
    if errors == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("a server would refuse this: {}", counted(errors, "error")))
        .hint("each line names the place and the element; mend them in the modeler"))
}

/// Something to say about a file.
struct Finding {
    file: PathBuf,
    is_error: bool,
    line: u32,
    column: u32,
    element: String,
    message: String,
}

impl Finding {
    fn severity(&self) -> &'static str {
        if self.is_error { "error" } else { "warning" }
    }

    fn json(&self) -> Value {
        json!({
            "file": self.file,
            "severity": self.severity(),
            "line": self.line,
            "column": self.column,
            "element": self.element,
            "message": self.message,
        })
    }

    fn text(&self) -> String {
        let mut text = self.file.display().to_string();
        if self.line > 0 {
            text.push_str(&format!(":{}:{}", self.line, self.column));
        }
        text.push_str(&format!(": {}: ", self.severity()));
        if !self.element.is_empty() {
            text.push_str(&format!("{}: ", self.element));
        }
        text.push_str(&self.message);
        text
    }
}

/// What a file holds.
enum Kind {
    Processes,
    Decisions,
}

fn lint(file: &Path) -> Result<Vec<Finding>, Failure> {
    let failed = |error| Failure::io(format!("read {}", file.display()), error);
    let bytes = std::fs::metadata(file).map_err(failed)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(Failure::new(format!(
            "{} has {bytes} bytes, and a deployment takes {FILE_BYTES_MAX}",
            file.display()
        )));
    }
    let text = std::fs::read(file).map_err(failed)?;
    let finding = |is_error, line, column, element, message| Finding {
        file: file.to_owned(),
        is_error,
        line,
        column,
        element,
        message,
    };
    match kind(file, &text)? {
        Kind::Processes => Ok(bpmn::lint(&text)
            .into_iter()
            .map(|found| {
                let is_error = found.severity == Severity::Error;
                finding(is_error, found.line, found.column, found.element, found.message)
            })
            .collect()),
        Kind::Decisions => Ok(dmn::parse(&text)
            .err()
            .into_iter()
            .flatten()
            .map(|found| {
                let message = found.rule.to_string();
                finding(true, found.line, found.column, found.element, message)
            })
            .collect()),
    }
}

/// By the ending of the file, or by the standard that it names.
fn kind(file: &Path, text: &[u8]) -> Result<Kind, Failure> {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    match ending.to_ascii_lowercase().as_str() {
        "bpmn" => Ok(Kind::Processes),
        "dmn" => Ok(Kind::Decisions),
        _ if text.contains("omg.org/spec/BPMN/") => Ok(Kind::Processes),
        _ if text.contains("omg.org/spec/DMN/") => Ok(Kind::Decisions),
        _ => Err(Failure::new(format!("{} is neither BPMN nor DMN", file.display()))
            .hint("name files that end in .bpmn or .dmn")),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
