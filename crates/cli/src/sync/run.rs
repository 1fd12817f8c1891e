//! One sync with a journal in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use windlass_connector::attempt::generation::{self, Purpose};
use windlass_connector::attempt::operation::Question;
use windlass_connector::attempt::{Attempt, Connector, Steps};
use windlass_connector::file_journal::{Book, FileJournal, FileJournalError};
use windlass_connector::process::{Command, Guard, Helper};
use windlass_connector::protocol::catalog::{Catalog, Mapping, NamespaceRule};
use windlass_connector::{Cancel, Limits, Side, Status};

use crate::connector::ask::{failed, helper, read_json};
use crate::connector::install::{DataDir, command_of, short_name, words};
use crate::failure::Failure;
use crate::sync::show::{Screen, show};
use crate::units::duration;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// An installed source, or docker:IMAGE
    #[arg(long, value_name = "NAME", required_unless_present_any = ["source_command", "clear"])]
    source: Option<String>,
    /// Any command that is a source
    #[arg(long, value_name = "COMMAND", conflicts_with = "source")]
    source_command: Option<String>,
    /// The source's configuration, a file of JSON
    #[arg(long, value_name = "FILE", required_unless_present = "clear")]
    source_config: Option<PathBuf>,
    /// An installed destination, or docker:IMAGE
    #[arg(long, value_name = "NAME", required_unless_present = "destination_command")]
    destination: Option<String>,
    /// Any command that is a destination
    #[arg(long, value_name = "COMMAND", conflicts_with = "destination")]
    destination_command: Option<String>,
    /// The destination's configuration, a file of JSON
    #[arg(long, value_name = "FILE")]
    destination_config: PathBuf,
    /// What the sync is called: its journal is kept under this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A configured catalog; without it, all streams of the source
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Start from this state instead of the journal's: an array, as `read --state` takes it
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Without --catalog: only these streams
    #[arg(long = "stream", value_name = "NAME")]
    streams: Vec<String>,
    /// Without --catalog: read everything again, and overwrite
    #[arg(long)]
    full_refresh: bool,
    /// Take out of the destination what this sync has brought there, instead of reading the source
    #[arg(long)]
    clear: bool,
    /// Check both configurations first
    #[arg(long)]
    check: bool,
    /// Namespaces at the destination: source, destination, or a text with ${SOURCE_NAMESPACE}
    #[arg(long, value_name = "RULE", default_value = "source")]
    namespace: String,
    /// Before the names of all streams at the destination
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Memory of each connector, in MiB
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u64>,
    /// How long the source may be silent
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3h")]
    source_silence: Duration,
    /// How long the destination may take nothing
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    destination_silence: Duration,
    /// Show what connectors log
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    data: DataDir,
}

pub(crate) fn run(args: &RunArgs, json: bool) -> Result<(), Failure> {
    let given = Given::new(args)?;
    let folder = args.data.data_dir.join("syncs").join(&given.name);
    let journal = FileJournal::open(&folder).map_err(journal_failure)?;
    let screen = Screen::new(&folder, args.verbose, json)?;
    let cancel = Cancel::new();
    on_signal(&cancel)?;
    let plan = Plan { args, given: &given, folder: &folder, journal: &journal, screen: &screen };
    let attempt = plan.attempt(&cancel)?;
    let summary = windlass_connector::attempt::run(attempt, &journal, &screen, &cancel);
    screen.end();
    let completed = summary.status == Status::Completed;
    journal
        .change(|book| {
            book.is_finished = completed;
            book.streams.clone_from(&summary.streams);
        })
        .map_err(journal_failure)?;
    show(&summary, &journal.book(), json)?;
    match summary.status {
        Status::Completed => Ok(()),
        Status::Cancelled => Err(Failure::new("the sync was cancelled").hint(GO_ON)),
        Status::Failed if summary.permanent => Err(failed(&summary.failures)),
        Status::Failed => Err(failed(&summary.failures).hint(GO_ON)),
    }
}

const GO_ON: &str = "the same command goes on from the last committed state";

fn journal_failure(error: FileJournalError) -> Failure {
    match &error {
        FileJournalError::Busy(_) => {
            Failure::caused(&error).hint("wait for it, or give this one another name with --name")
        }
        FileJournalError::Damaged { .. } => {
            Failure::damaged(error.to_string()).hint("without the file, the sync begins anew")
        }
        FileJournalError::Io { .. } => Failure::caused(&error),
    }
}

/// Interrupt and terminate cancel; a second one ends us, and the guard the rest.
fn on_signal(cancel: &Cancel) -> Result<(), Failure> {
    let cancel = cancel.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("wait for signals", error))?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            loop {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminate.recv() => {}
                }
                if cancel.is_cancelled() {
                    std::process::exit(130);
                }
                cancel.cancel();
            }
        });
    });
    Ok(())
}

/// What the command line names, read.
struct Given {
    name: String,
    source: Option<(Command, Value)>,
    destination: (Command, Value),
}

impl Given {
    fn new(args: &RunArgs) -> Result<Self, Failure> {
        let data = &args.data.data_dir;
        let source_name = args.source.as_deref();
        let command = |name: Option<&str>, command: Option<&str>| -> Result<Command, Failure> {
            match (command, name) {
                (Some(command), _) => Ok(Command::local(words(command)?)),
                (None, name) => command_of(data, name.unwrap_or_default()),
            }
        };
        let source = match &args.source_config {
            Some(config) if !args.clear => {
                let source = command(source_name, args.source_command.as_deref())?;
                Some((source, read_json(config)?))
            }
            Some(_) | None => None,
        };
        let to = args.destination.as_deref();
        let destination = command(to, args.destination_command.as_deref())?;
        let config = read_json(&args.destination_config)?;
        let short = |name: Option<&str>, other| name.map_or(other, short_name).to_owned();
        let default = format!("{}-to-{}", short(source_name, "source"), short(to, "destination"));
        let name = args.name.clone().unwrap_or(default);
        let is_good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_good) {
            return Err(Failure::new(format!("{name:?} is no name of a sync"))
                .hint("use letters, digits, - and _"));
        }
        Ok(Self { name, source, destination: (destination, config) })
    }
}

struct Plan<'a> {
    args: &'a RunArgs,
    given: &'a Given,
    folder: &'a Path,
    journal: &'a FileJournal,
    screen: &'a Screen,
}

impl Plan<'_> {
    /// Decides what starts anew, writes that down, and says what is to be done.
    fn attempt(&self, cancel: &Cancel) -> Result<Attempt<'static>, Failure> {
        let mut book = self.journal.book();
        let purpose = if self.args.clear { Purpose::Clear } else { Purpose::Sync };
        let name = format!("{}-{}", self.given.name, std::process::id());
        let is_first = book.begin(&name, self.args.clear);
        let connector = |book: &Book, side, (command, config): &(Command, Value)| Connector {
            command: command.clone(),
            config: book.newest(side, config),
        };
        let of_source =
            |book: &Book| self.given.source.as_ref().map(|it| connector(book, Side::Source, it));
        let mut source = of_source(&book);
        let destination = connector(&book, Side::Destination, &self.given.destination);
        let given_source = self.given.source.as_ref().map(|(_, config)| config.clone());
        self.journal.given(given_source.unwrap_or_default(), self.given.destination.1.clone());
        let (helper, limits) = (helper()?, self.limits());
        // The name stands in the journal before any process has it.
        let name = book.attempt_name.clone();
        self.journal.change(|now| now.attempt_name.clone_from(&name)).map_err(journal_failure)?;
        if is_first || book.catalog.is_none() {
            let discovered = self.discover(source.as_ref(), &helper, &limits, &name, cancel)?;
            book.catalog = discovered.or(book.catalog);
            // The source may have changed its configuration while it was asked.
            book.source_config = self.journal.book().source_config;
            source = of_source(&book);
        }
        if let Some(path) = &self.args.state {
            let state = read_json(path)?;
            let state = state
                .as_array()
                .ok_or_else(|| Failure::new(format!("{} is no array of states", path.display())))?;
            book.state = state.iter().map(|state| Arc::from(state.to_string())).collect();
        }
        let configured = self.catalog(book.catalog.as_ref())?;
        let mapping = self.mapping();
        let read = Catalog::new(&configured, &mapping).map_err(|error| Failure::caused(&error))?;
        generation::begin(&purpose, is_first, &read, &mut book.generations, &mut book.state);
        let catalog = generation::stamp(&purpose, &configured, &read, &book.generations, book.sync);
        let state = book.state.clone();
        self.journal.change(|now| *now = book).map_err(journal_failure)?;
        let check = self.args.check || !is_first;
        Ok(Attempt {
            name,
            folder: self.folder.to_owned(),
            helper,
            source,
            destination,
            catalog,
            discovered: None,
            selected: Vec::new(),
            mapping,
            state,
            steps: Steps { check_source: check, check_destination: check, discover: false },
            limits,
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            memory_bytes_max: self.args.memory_mib.map(|mib| mib << 20),
            source_silence_max: self.args.source_silence,
            destination_silence_max: self.args.destination_silence,
            ..Limits::default()
        }
    }

    fn mapping(&self) -> Mapping {
        let namespace = match self.args.namespace.as_str() {
            "source" => NamespaceRule::Source,
            "destination" => NamespaceRule::Destination,
            custom => NamespaceRule::Custom(custom.to_owned()),
        };
        Mapping { namespace, prefix: self.args.prefix.clone() }
    }

    fn discover(
        &self,
        source: Option<&Connector>,
        helper: &Helper,
        limits: &Limits,
        attempt: &str,
        cancel: &Cancel,
    ) -> Result<Option<Value>, Failure> {
        let Some(source) = source.filter(|_| self.args.catalog.is_none()) else { return Ok(None) };
        self.screen.say("discover");
        let guard =
            Guard::start(helper, attempt).map_err(|error| Failure::io("start the guard", error))?;
        let question = Question {
            helper,
            attempt,
            folder: self.folder,
            limits,
            guard: Some(&guard),
            journal: self.journal,
            observer: self.screen,
            cancel,
        };
        question.discover(source).map(Some).map_err(|reasons| failed(&reasons))
    }

    /// The catalog that was given, or one of everything that the source showed.
    fn catalog(&self, discovered: Option<&Value>) -> Result<Value, Failure> {
        if let Some(path) = &self.args.catalog {
            return read_json(path);
        }
        let streams =
            discovered.and_then(|catalog| catalog.get("streams")).and_then(Value::as_array);
        let streams = streams.ok_or_else(|| {
            Failure::new("there is no catalog")
                .hint("--catalog names one; a sync that ran knows its own")
        })?;
        let name = |stream: &Value| stream.get("name").and_then(Value::as_str).map(str::to_owned);
        let names: Vec<String> = streams.iter().filter_map(name).collect();
        if let Some(missing) = self.args.streams.iter().find(|stream| !names.contains(stream)) {
            return Err(Failure::new(format!("the source has no stream {missing}"))
                .hint(format!("it has {}", names.join(", "))));
        }
        let wanted = streams.iter().filter(|stream| {
            let name = name(stream).unwrap_or_default();
            self.args.streams.is_empty() || self.args.streams.contains(&name)
        });
        let configured: Vec<Value> = wanted.map(|stream| self.configured(stream)).collect();
        Ok(json!({ "streams": configured }))
    }

    /// What is new where the source can tell, and one row for each key where it has keys.
    fn configured(&self, stream: &Value) -> Value {
        let field = |name: &str| stream.get(name).cloned().unwrap_or_else(|| json!([]));
        let modes = field("supported_sync_modes");
        let incremental =
            modes.as_array().is_some_and(|modes| modes.contains(&json!("incremental")))
                && !self.args.full_refresh;
        let key = field("source_defined_primary_key");
        let has_key = key.as_array().is_some_and(|key| !key.is_empty());
        let (sync_mode, destination_sync_mode) = match (incremental, has_key) {
            (true, true) => ("incremental", "append_dedup"),
            (true, false) => ("incremental", "append"),
            (false, _) => ("full_refresh", "overwrite"),
        };
        json!({
            "stream": stream,
            "sync_mode": sync_mode,
            "destination_sync_mode": destination_sync_mode,
            "cursor_field": field("default_cursor_field"),
            "primary_key": key,
        })
    }
}
