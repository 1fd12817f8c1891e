//! `windlass connection create`: a connection, and what it connects.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::all;
use crate::args::Online;
use crate::connector::install::words;
use crate::failure::Failure;
use crate::job::create::input;
use crate::rest::{Rest, encoded, text};
use crate::units::duration;

/// The workspace that is there from the start.
const WORKSPACE_DEFAULT: &str = "00000000-0000-4000-8000-000000000001";

/// Definitions that are looked through.
const DEFINITIONS_MAX: u32 = 10_000;

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The source: its id, or a type of connector such as faker
    #[arg(long, value_name = "ID|TYPE")]
    source: String,
    /// Configuration of a new source, JSON; - reads standard input, @FILE a file
    #[arg(long, value_name = "JSON")]
    source_config: Option<String>,
    /// The program of a source of this type, with its arguments, words with spaces between them; quotes hold words together
    #[arg(long, value_name = "COMMAND")]
    source_command: Option<String>,
    /// The destination: its id, or a type of connector
    #[arg(long, value_name = "ID|TYPE")]
    destination: String,
    /// Configuration of a new destination, JSON; - reads standard input, @FILE a file
    #[arg(long, value_name = "JSON")]
    destination_config: Option<String>,
    /// The program of a destination of this type, likewise
    #[arg(long, value_name = "COMMAND")]
    destination_command: Option<String>,
    /// The workspace of what is new
    #[arg(long, default_value = WORKSPACE_DEFAULT, value_name = "ID")]
    workspace: String,
    /// What people call it
    #[arg(long)]
    name: Option<String>,
    /// When to sync: a Quartz cron expression, a zone may stand behind it
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "every")]
    cron: Option<String>,
    /// Sync now, and again so long after each start: such as 90m, 2h, 1d; a minute at least
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    every: Option<Duration>,
    /// A stream, and how it is synced, such as users=incremental_append; may be given several times. Without
    /// one, all streams are synced, full_refresh_overwrite
    #[arg(long = "stream", value_name = "NAME[=MODE]")]
    streams: Vec<String>,
    /// What stands before the names of streams at the destination
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Make it, and start nothing on time
    #[arg(long)]
    inactive: bool,
}

/// One end of a connection, as the command line has it.
struct End<'a> {
    side: &'static str,
    /// An id, or a type.
    named: &'a str,
    config: Option<&'a str>,
    command: Option<Vec<String>>,
    workspace: &'a str,
}

pub(super) async fn run(online: &Online, rest: &Rest, args: &CreateArgs) -> Result<(), Failure> {
    // What is wrong with the command line is said before anything is made.
    let mut body = body(args)?;
    let words = |command: &Option<String>| command.as_deref().map(words).transpose();
    let source = End {
        side: "source",
        named: &args.source,
        config: args.source_config.as_deref(),
        command: words(&args.source_command)?,
        workspace: &args.workspace,
    };
    let destination = End {
        side: "destination",
        named: &args.destination,
        config: args.destination_config.as_deref(),
        command: words(&args.destination_command)?,
        workspace: &args.workspace,
    };
    let (source_config, destination_config) =
        (source.configuration()?, destination.configuration()?);
    let from = source.id(rest, source_config).await?;
    let to = match destination.id(rest, destination_config).await {
        Ok(id) => id,
        Err(failure) => {
            source.undo(rest, &from).await;
            return Err(failure);
        }
    };
    body.insert("sourceId".to_owned(), from.as_str().into());
    body.insert("destinationId".to_owned(), to.as_str().into());
    let made = match rest.post("connections", &Value::Object(body)).await {
        Ok(made) => made,
        Err(failure) => {
            source.undo(rest, &from).await;
            destination.undo(rest, &to).await;
            return Err(failure);
        }
    };
    online.out.show(&made, || {
        let id = text(&made, "connectionId");
        format!("{id} is made; `windlass connection run {id}` syncs now")
    })
}

fn body(args: &CreateArgs) -> Result<Map<String, Value>, Failure> {
    let schedule = match (&args.cron, args.every) {
        (Some(expression), _) => json!({ "scheduleType": "cron", "cronExpression": expression }),
        (None, Some(every)) => {
            let minutes = every.as_secs() / 60;
            if minutes == 0 || every.as_secs() % 60 != 0 {
                return Err(Failure::new("--every must be whole minutes, one at least"));
            }
            json!({ "scheduleType": "basic", "units": minutes, "timeUnit": "minutes" })
        }
        (None, None) => json!({ "scheduleType": "manual" }),
    };
    let stream = |text: &String| match text.split_once('=') {
        Some((name, mode)) => json!({ "name": name, "syncMode": mode }),
        None => json!({ "name": text }),
    };
    let streams: Vec<Value> = args.streams.iter().map(stream).collect();
    let status = if args.inactive { "inactive" } else { "active" };
    let whole = json!({
        "schedule": schedule, "configurations": { "streams": streams }, "status": status,
        "prefix": args.prefix,
    });
    let Value::Object(mut body) = whole else { return Ok(Map::new()) };
    if let Some(name) = &args.name {
        body.insert("name".to_owned(), name.as_str().into());
    }
    Ok(body)
}

impl End<'_> {
    /// Whether it is named by an id: those are 36 characters with dashes at their places.
    fn is_id(&self) -> bool {
        let bytes = self.named.as_bytes();
        bytes.len() == 36 && [8, 13, 18, 23].iter().all(|at| bytes.get(*at) == Some(&b'-'))
    }

    /// What a new one gets; none if there is one already.
    fn configuration(&self) -> Result<Option<Map<String, Value>>, Failure> {
        let side = self.side;
        if self.is_id() {
            if self.config.is_some() || self.command.is_some() {
                let wrong =
                    format!("--{side} is an id: it has a configuration and a command already");
                return Err(Failure::new(wrong));
            }
            return Ok(None);
        }
        let given = input(self.config.unwrap_or("{}"))?;
        let configuration = serde_json::from_slice(&given)
            .map_err(|error| Failure::new(format!("--{side}-config is no JSON object: {error}")))?;
        Ok(Some(configuration))
    }

    /// Its id; it is made if it must be.
    async fn id(
        &self,
        rest: &Rest,
        configuration: Option<Map<String, Value>>,
    ) -> Result<String, Failure> {
        let Some(mut configuration) = configuration else { return Ok(self.named.to_owned()) };
        let side = self.side;
        configuration.insert(format!("{side}Type"), self.named.into());
        let mut body = json!({ "name": self.named, "workspaceId": self.workspace });
        if let Some(command) = &self.command {
            // Its type alone may be that of another command.
            body["definitionId"] = self.define(rest, command).await?.into();
        }
        body["configuration"] = configuration.into();
        let made = rest.post(&format!("{side}s"), &body).await.map_err(|failure| {
            failure.hint(format!("--{side}-command names the program of a connector of your own"))
        })?;
        Ok(text(&made, &format!("{side}Id")).to_owned())
    }

    /// Takes away what was made here for nothing.
    async fn undo(&self, rest: &Rest, id: &str) {
        if !self.is_id() {
            // Why it was for nothing is what people must be told, not this.
            let _left = rest.delete(&format!("{}s/{id}", self.side), None).await;
        }
    }

    /// Makes a definition with this command, unless there is one; its id.
    async fn define(&self, rest: &Rest, command: &[String]) -> Result<String, Failure> {
        let launch = json!({ "kind": "command", "command": command });
        let path = format!("workspaces/{}/definitions/{}s", encoded(self.workspace), self.side);
        let known = all(rest, &path, "", DEFINITIONS_MAX).await?;
        let is_it = |known: &Value| {
            text(known, "type") == self.named && known.get("launch") == Some(&launch)
        };
        if let Some(known) = known.iter().find(|known| is_it(known)) {
            return Ok(text(known, "id").to_owned());
        }
        let body = json!({ "name": self.named, "type": self.named, "launch": launch });
        Ok(text(&rest.post(&path, &body).await?, "id").to_owned())
    }
}
