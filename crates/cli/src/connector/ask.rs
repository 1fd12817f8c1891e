//! Asks a connector by itself.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use windlass_connector::attempt::Connector;
use windlass_connector::attempt::operation::Question;
use windlass_connector::process::{Command, Guard, Helper};
use windlass_connector::{
    Cancel, Commit, Failure as Reason, Journal, JournalError, Level, Limits, Observer, Side,
};

use crate::connector::install::{DataDir, command_of, short_name, words};
use crate::failure::Failure;
use crate::output::{Output, table};

/// A larger file is no configuration.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(crate) struct SpecArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    which: Which,
    /// Its configuration, a file of JSON
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

#[derive(Debug, Args)]
struct Which {
    /// An installed connector, or docker:IMAGE
    #[arg(required_unless_present = "command")]
    name: Option<String>,
    /// Any command instead
    #[arg(long, value_name = "COMMAND", conflicts_with = "name")]
    command: Option<String>,
    /// Show what it logs, too
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    data: DataDir,
}

impl Which {
    fn connector(&self, config: Value) -> Result<Connector, Failure> {
        let command = match (&self.command, &self.name) {
            (Some(command), _) => Command::local(words(command)?),
            (None, name) => command_of(&self.data.data_dir, name.as_deref().unwrap_or_default())?,
        };
        Ok(Connector { command, config })
    }

    fn side(&self) -> Side {
        let name = self.name.as_deref().map(short_name).unwrap_or_default();
        if name.starts_with("destination") { Side::Destination } else { Side::Source }
    }
}

/// This program, as a helper.
pub(crate) fn helper() -> Result<Helper, Failure> {
    // The same file, even if an upgrade has put another one in its place meanwhile.
    let own = PathBuf::from("/proc/self/exe");
    let program = if own.exists() { Ok(own) } else { std::env::current_exe() };
    let program = program.map_err(|error| Failure::io("find this program", error))?;
    Ok(Helper { program, words: vec!["connector-helper".into()] })
}

/// Reads a file of JSON.
pub(crate) fn read_json(path: &Path) -> Result<Value, Failure> {
    let failed = |error| Failure::io(format!("read {}", path.display()), error);
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > FILE_BYTES_MAX {
        return Err(Failure::new(format!("{} is larger than 64 MiB", path.display())));
    }
    let text = std::fs::read(path).map_err(failed)?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::new(format!("{} is no JSON: {error}", path.display())))
}

/// Failures of a connector as one of ours.
pub(crate) fn failed(reasons: &[Reason]) -> Failure {
    let lines: Vec<String> = reasons.iter().map(line).collect();
    Failure::new(lines.join("\n"))
}

fn line(reason: &Reason) -> String {
    let last = reason.internal_message.as_deref().and_then(|said| said.lines().last());
    match last {
        Some(last) if !reason.from_trace => format!("{}: {last}", reason.external_message),
        _ => reason.external_message.clone(),
    }
}

/// Prints what a connector logs, on standard error, and keeps nothing.
struct Terminal {
    verbose: bool,
}

impl Observer for Terminal {
    fn log(&self, side: Option<Side>, level: Level, text: &str) {
        if self.verbose || level == Level::Error {
            let side = side.map_or("windlass", Side::name);
            eprintln!("{side} {}: {text}", level.name());
        }
    }

    fn step(&self, name: &str) {
        eprintln!("{name}");
    }
}

impl Journal for Terminal {
    fn commit(&self, _commit: &Commit) -> Result<(), JournalError> {
        Ok(())
    }

    fn configuration(&self, side: Side, _config: &str) -> Result<(), JournalError> {
        eprintln!("the {} changed its configuration, which is not kept here", side.name());
        Ok(())
    }
}

/// Asks with everything that a question needs.
fn with_question<T>(
    which: &Which,
    ask: impl FnOnce(&Question<'_>) -> Result<T, Vec<Reason>>,
) -> Result<T, Failure> {
    let terminal = Terminal { verbose: which.verbose };
    let (helper, limits, cancel) = (helper()?, Limits::default(), Cancel::new());
    let attempt = format!("ask-{}-{}", std::process::id(), fastrand::u32(..));
    let folder = std::env::temp_dir().join(format!("windlass-{attempt}"));
    let guard =
        Guard::start(&helper, &attempt).map_err(|error| Failure::io("start the guard", error))?;
    let question = Question {
        helper: &helper,
        attempt: &attempt,
        folder: &folder,
        limits: &limits,
        guard: Some(&guard),
        journal: &terminal,
        observer: &terminal,
        cancel: &cancel,
    };
    let answer = ask(&question).map_err(|reasons| failed(&reasons));
    let _ = std::fs::remove_dir(&folder);
    answer
}

pub(crate) fn spec(args: &SpecArgs, json: bool) -> Result<(), Failure> {
    let connector = args.which.connector(Value::Null)?;
    let spec = with_question(&args.which, |question| question.spec(args.which.side(), &connector))?;
    Output { json }.show(&spec, || format!("{spec:#}"))
}

pub(crate) fn check(args: &AskArgs, json: bool) -> Result<(), Failure> {
    let connector = args.which.connector(read_json(&args.config)?)?;
    with_question(&args.which, |question| question.check(args.which.side(), &connector))?;
    Output { json }.show(&json!({"status": "SUCCEEDED"}), || "the configuration works".to_owned())
}

pub(crate) fn discover(args: &AskArgs, json: bool) -> Result<(), Failure> {
    let connector = args.which.connector(read_json(&args.config)?)?;
    let catalog = with_question(&args.which, |question| question.discover(&connector))?;
    Output { json }.show(&catalog, || {
        let streams = catalog.get("streams").and_then(Value::as_array).into_iter().flatten();
        let rows: Vec<Vec<String>> = streams.map(row).collect();
        table(&["stream", "namespace", "sync modes", "key", "fields"], &rows)
    })
}

fn row(stream: &Value) -> Vec<String> {
    let text = |field: &str| stream.get(field).and_then(Value::as_str).unwrap_or_default();
    let modes = stream.get("supported_sync_modes").and_then(Value::as_array).into_iter().flatten();
    let modes: Vec<&str> = modes.filter_map(Value::as_str).collect();
    let key = stream.get("source_defined_primary_key").and_then(Value::as_array);
    let key: Vec<String> = key
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .map(|path| path.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."))
        .collect();
    let fields = stream.pointer("/json_schema/properties").and_then(Value::as_object);
    vec![
        text("name").to_owned(),
        text("namespace").to_owned(),
        modes.join(", "),
        key.join(", "),
        fields.map_or(0, serde_json::Map::len).to_string(),
    ]
}
