//! `windlass connection`: what goes from sources to destinations, over Airbyte's API.

mod create;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::args::Online;
use crate::failure::Failure;
use crate::job::tail::{LOOK_MAX, LOOK_MIN};
use crate::output::{fields, table};
use crate::rest::{Rest, encoded, shown, text};
use crate::units::grouped;

#[derive(Debug, Args)]
pub(crate) struct ConnectionArgs {
    /// Who asks, where the server has a list of clients
    #[arg(long, env = "WINDLASS_AIRBYTE_CLIENT_ID", value_name = "ID", requires = "client_secret")]
    client_id: Option<String>,
    /// What only that client knows
    #[arg(
        long,
        env = "WINDLASS_AIRBYTE_CLIENT_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    client_secret: Option<String>,
    #[command(subcommand)]
    command: ConnectionCommand,
}

#[derive(Debug, Subcommand)]
enum ConnectionCommand {
    /// Make a connection, and its source and destination unless they are there
    Create(Box<create::CreateArgs>),
    /// List connections
    List {
        /// Of this workspace
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Show a connection and its last jobs
    Show {
        /// The connection's id
        connection: String,
    },
    /// Start a job now
    Run {
        /// The connection's id
        connection: String,
        /// What it does
        #[arg(long = "type", value_enum, default_value_t = JobType::Sync)]
        job_type: JobType,
        /// Return when it has ended; a job that did not succeed is a failure then
        #[arg(long)]
        wait: bool,
    },
    /// List jobs, the newest first
    Jobs {
        /// Of this connection
        connection: Option<String>,
        /// In this state
        #[arg(long, value_enum)]
        status: Option<Status>,
        /// At most so many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum JobType {
    Sync,
    Clear,
    Reset,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Running,
    Incomplete,
    Failed,
    Succeeded,
    Cancelled,
}

/// The word of a value on the command line, which is the wire's too.
fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// What the server gives at once.
const PAGE: usize = 100;
/// Jobs that are shown with a connection.
const LAST_JOBS: usize = 5;

pub(crate) async fn run(online: &Online, args: ConnectionArgs) -> Result<(), Failure> {
    let client = args.client_id.zip(args.client_secret);
    let rest = Rest::airbyte(online, client.as_ref().map(|(id, secret)| (&**id, &**secret)));
    match args.command {
        ConnectionCommand::Create(args) => create::run(online, &rest, &args).await,
        ConnectionCommand::List { workspace, limit } => {
            let query = workspace.map(|id| format!("workspaceIds={}", encoded(&id)));
            let found = all(&rest, "connections", &query.unwrap_or_default(), limit).await?;
            online.out.show(&json!({ "connections": found }), || listed(&found))
        }
        ConnectionCommand::Show { connection } => {
            let path = format!("connections/{}", encoded(&connection));
            let mut found = rest.get(&path).await?;
            let query = format!("connectionId={}&limit={LAST_JOBS}", encoded(&connection));
            let jobs = rest.get(&format!("jobs?{query}")).await?;
            let jobs = jobs.get("data").cloned().unwrap_or_default();
            if let Some(fields) = found.as_object_mut() {
                fields.insert("jobs".to_owned(), jobs);
            }
            online.out.show(&found, || told(&found))
        }
        ConnectionCommand::Run { connection, job_type, wait } => {
            let body = json!({ "connectionId": connection, "jobType": word(&job_type) });
            let job = rest.post("jobs", &body).await?;
            let job = if wait { ended(&rest, job).await? } else { job };
            online.out.show(&job, || {
                format!("job {} is {}", shown(&job, "jobId"), text(&job, "status"))
            })?;
            match text(&job, "status") {
                "failed" | "cancelled" if wait => Err(not_done(&job)),
                _ => Ok(()),
            }
        }
        ConnectionCommand::Jobs { connection, status, limit } => {
            let mut query = String::new();
            if let Some(connection) = connection {
                query.push_str(&format!("connectionId={}&", encoded(&connection)));
            }
            if let Some(status) = status {
                query.push_str(&format!("status={}", word(&status)));
            }
            let found = all(&rest, "jobs", &query, limit).await?;
            online.out.show(&json!({ "jobs": found }), || jobs_listed(&found))
        }
    }
}

fn not_done(job: &Value) -> Failure {
    let (id, status) = (shown(job, "jobId"), text(job, "status").to_owned());
    let failure = Failure::new(format!("job {id} is {status}"));
    failure.hint(format!("`windlass job get {id}` says more"))
}

/// A job once it has ended, however long that takes.
async fn ended(rest: &Rest, job: Value) -> Result<Value, Failure> {
    let path = format!("jobs/{}", shown(&job, "jobId"));
    let (mut job, mut pause) = (job, LOOK_MIN);
    while !matches!(text(&job, "status"), "succeeded" | "failed" | "cancelled") {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK_MAX);
        job = rest.get(&path).await?;
    }
    Ok(job)
}

/// The pages of a list, up to so many items.
async fn all(rest: &Rest, what: &str, query: &str, limit: u32) -> Result<Vec<Value>, Failure> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found: Vec<Value> = Vec::new();
    while found.len() < limit {
        let count = PAGE.min(limit - found.len());
        let path = format!("{what}?{query}&limit={count}&offset={}", found.len());
        let mut page = rest.get(&path).await?;
        let Some(Value::Array(data)) = page.get_mut("data").map(Value::take) else {
            return Err(Failure::new("the answer of a list has no data"));
        };
        let is_last = data.len() < count;
        found.extend(data);
        if is_last {
            break;
        }
    }
    Ok(found)
}

/// When a connection syncs, in words.
fn timing(connection: &Value) -> String {
    let schedule = connection.get("schedule").cloned().unwrap_or_default();
    match text(&schedule, "scheduleType") {
        "cron" => text(&schedule, "cronExpression").to_owned(),
        "basic" => text(&schedule, "basicTiming").to_lowercase(),
        other => other.to_owned(),
    }
}

fn streams(connection: &Value) -> &[Value] {
    let streams = connection.pointer("/configurations/streams").and_then(Value::as_array);
    streams.map(Vec::as_slice).unwrap_or_default()
}

fn listed(found: &[Value]) -> String {
    if found.is_empty() {
        return "no connections; `windlass connection create` makes one".to_owned();
    }
    let row = |connection: &Value| {
        vec![
            text(connection, "connectionId").to_owned(),
            text(connection, "status").to_owned(),
            timing(connection),
            text(connection, "name").to_owned(),
        ]
    };
    table(&["connection", "status", "when", "name"], &found.iter().map(row).collect::<Vec<_>>())
}

fn told(connection: &Value) -> String {
    let field = |name: &str| text(connection, name).to_owned();
    let streams: Vec<String> = streams(connection)
        .iter()
        .map(|stream| format!("{} ({})", text(stream, "name"), text(stream, "syncMode")))
        .collect();
    let streams = if streams.is_empty() { "all".to_owned() } else { streams.join("\n") };
    let jobs = connection.get("jobs").and_then(Value::as_array);
    let mut told = fields(&[
        ("connection", field("connectionId")),
        ("name", field("name")),
        ("status", field("status")),
        ("when", timing(connection)),
        ("source", field("sourceId")),
        ("destination", field("destinationId")),
        ("workspace", field("workspaceId")),
        ("namespace", field("namespaceDefinition")),
        ("prefix", field("prefix")),
        ("streams", streams),
    ]);
    if let Some(jobs) = jobs.filter(|jobs| !jobs.is_empty()) {
        told.push('\n');
        told.push_str(&jobs_listed(jobs));
    }
    told
}

fn jobs_listed(found: &[Value]) -> String {
    if found.is_empty() {
        return "no jobs".to_owned();
    }
    let count = |job: &Value, name: &str| {
        job.get(name).and_then(Value::as_u64).map(grouped).unwrap_or_default()
    };
    let row = |job: &Value| {
        vec![
            shown(job, "jobId"),
            text(job, "jobType").to_owned(),
            text(job, "status").to_owned(),
            text(job, "startTime").to_owned(),
            text(job, "duration").to_owned(),
            count(job, "rowsSynced"),
            count(job, "bytesSynced"),
        ]
    };
    let head = ["job", "type", "status", "created", "took", "records", "bytes"];
    table(&head, &found.iter().map(row).collect::<Vec<_>>())
}
