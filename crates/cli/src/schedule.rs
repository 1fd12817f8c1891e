//! `windlass schedule`: what is run again and again.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use crate::args::Online;
use crate::failure::Failure;
use crate::job::create::input;
use crate::output::{fields, table};
use crate::rest::{Rest, encoded, shown, text};
use crate::units::{moment, utc};

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules
    List {
        /// Names that begin so
        #[arg(default_value = "", hide_default_value = true)]
        prefix: String,
        /// Behind this name
        #[arg(long, default_value = "", hide_default_value = true)]
        after: String,
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Show a schedule and its last runs
    Get {
        /// The schedule
        name: String,
    },
    /// Make a schedule, or replace it
    Put(Box<PutArgs>),
    /// Delete a schedule; a run under way goes on
    Delete {
        /// The schedule
        name: String,
        /// Only if this is its version now
        #[arg(long, value_name = "VERSION")]
        expect: Option<u64>,
    },
    /// Start nothing on time until it is resumed
    Pause {
        /// The schedule
        name: String,
        /// Why, for people
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Go on; what was due meanwhile is not caught up
    Resume {
        /// The schedule
        name: String,
    },
    /// Run it now, beside its times
    Run {
        /// The schedule
        name: String,
    },
    /// The next times of an expression, in UTC
    Next {
        /// Such as "0 0 9 * * MON-FRI", "Mon..Fri 09:00", daily, R/PT1H
        expression: String,
        /// The zone by its IANA name, or an offset
        #[arg(long, default_value = "UTC")]
        zone: String,
        /// How many
        #[arg(long, default_value_t = 5)]
        count: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The schedule
    name: String,
    /// When: cron with seconds, a calendar event, a word or a cycle; may be given several times
    #[arg(long = "at", value_name = "EXPRESSION", required_unless_present = "body")]
    at: Vec<String>,
    /// The zone of the times by its IANA name, or an offset
    #[arg(long, default_value = "UTC")]
    zone: String,
    /// The queue of the job that is made
    #[arg(long, required_unless_present = "body")]
    queue: Option<String>,
    /// Its type; the queue's name when left out
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Whose turn it uses
    #[arg(long)]
    group: Option<String>,
    /// Higher goes first
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Retries after the first attempt
    #[arg(long)]
    retries: Option<u32>,
    /// Its payload, JSON; - reads standard input, @FILE a file
    #[arg(long)]
    payload: Option<String>,
    /// When the run before is not over
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
    /// Times that passed while no server ran
    #[arg(long, value_enum)]
    catch_up: Option<CatchUp>,
    /// Whether it is paused
    #[arg(long, value_name = "BOOL")]
    paused: Option<bool>,
    /// All of it as the API takes it; - reads standard input, @FILE a file
    #[arg(long, value_name = "JSON", conflicts_with_all = ["at", "queue", "payload"])]
    body: Option<String>,
    /// Only if this is its version now; 0: only if it does not exist
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Overlap {
    Skip,
    Queue,
    Replace,
    Allow,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CatchUp {
    None,
    One,
    All,
}

pub(crate) async fn run(online: &Online, command: ScheduleCommand) -> Result<(), Failure> {
    let rest = Rest::native(online);
    let path = |name: &str, what: &str| {
        format!("schedules/{}{what}?tenant={}", encoded(name), encoded(&online.tenant))
    };
    match command {
        ScheduleCommand::List { prefix, after, limit } => {
            let tenant = encoded(&online.tenant);
            let (prefix, after) = (encoded(&prefix), encoded(&after));
            let query = format!("tenant={tenant}&prefix={prefix}&after={after}&limit={limit}");
            let found = rest.get(&format!("schedules?{query}")).await?;
            online.out.show(&found, || listed(&found))
        }
        ScheduleCommand::Get { name } => {
            let schedule = rest.get(&path(&name, "")).await?;
            online.out.show(&schedule, || told(&schedule))
        }
        ScheduleCommand::Put(args) => put(online, &rest, &path(&args.name, ""), *args).await,
        ScheduleCommand::Delete { name, expect } => {
            rest.delete(&path(&name, ""), expect).await?;
            let value = json!({ "name": name, "deleted": true });
            online.out.show(&value, || format!("{name} is deleted"))
        }
        ScheduleCommand::Pause { name, reason } => {
            rest.post(&path(&name, "/pause"), &json!({ "reason": reason })).await?;
            let value = json!({ "name": name, "paused": true });
            online.out.show(&value, || format!("{name} is paused"))
        }
        ScheduleCommand::Resume { name } => {
            rest.post(&path(&name, "/resume"), &json!({})).await?;
            let value = json!({ "name": name, "paused": false });
            online.out.show(&value, || format!("{name} is resumed"))
        }
        ScheduleCommand::Run { name } => {
            let ran = rest.post(&path(&name, "/run"), &json!({})).await?;
            online.out.show(&ran, || match text(&ran, "outcome") {
                "started" => format!("{name} runs as {}", text(&ran, "run")),
                "queued" => format!("{name} runs when the run before is over"),
                "skipped" => format!("{name} is skipped: {}", text(&ran, "why")),
                _ => format!("{name} could not be started: see `windlass schedule get {name}`"),
            })
        }
        ScheduleCommand::Next { expression, zone, count } => {
            let (expression, zone) = (encoded(&expression), encoded(&zone));
            let query = format!("expression={expression}&zone={zone}&count={count}");
            let next = rest.get(&format!("schedules/next?{query}")).await?;
            online.out.show(&next, || {
                let times: Vec<String> = numbers(&next, "times_ms").into_iter().map(utc).collect();
                if times.is_empty() { "never".to_owned() } else { times.join("\n") }
            })
        }
    }
}

async fn put(online: &Online, rest: &Rest, path: &str, args: PutArgs) -> Result<(), Failure> {
    let (name, expect) = (args.name.clone(), args.expect);
    let body = match &args.body {
        Some(body) => parsed("the body", body)?,
        None => body_of(args)?,
    };
    let done = rest.put(path, &body, expect).await?;
    online.out.show(&done, || {
        let due_ms = done.get("next_due_ms").and_then(Value::as_u64).unwrap_or_default();
        let next = if due_ms == 0 { "not due".to_owned() } else { moment(due_ms) };
        format!("{name} has version {}, next: {next}", shown(&done, "version"))
    })
}

fn body_of(args: PutArgs) -> Result<Value, Failure> {
    let times: Vec<Value> = args
        .at
        .iter()
        .map(|expression| json!({ "expression": expression, "zone": args.zone }))
        .collect();
    let mut job = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            job.insert(name.to_owned(), value);
        }
    };
    set("queue", args.queue.map(Value::from));
    set("type", args.job_type.map(Value::from));
    set("group", args.group.map(Value::from));
    set("priority", args.priority.map(Value::from));
    set("retries", args.retries.map(Value::from));
    set("payload", args.payload.as_deref().map(|text| parsed("the payload", text)).transpose()?);
    let overlap = args.overlap.map(|overlap| match overlap {
        Overlap::Skip => "skip",
        Overlap::Queue => "queue",
        Overlap::Replace => "replace",
        Overlap::Allow => "allow",
    });
    let catch_up = args.catch_up.map(|catch_up| match catch_up {
        CatchUp::None => "none",
        CatchUp::One => "one",
        CatchUp::All => "all",
    });
    let paused = args.paused;
    Ok(json!({
        "times": times, "job": job, "overlap": overlap, "catch_up": catch_up, "paused": paused,
    }))
}

fn parsed(what: &str, text: &str) -> Result<Value, Failure> {
    let bytes = input(text)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::new(format!("{what} is not JSON: {error}")))
}

fn listed(found: &Value) -> String {
    let schedules = items(found, "schedules");
    if schedules.is_empty() {
        return "no schedules: `windlass schedule put NAME --at daily --queue QUEUE` makes one"
            .to_owned();
    }
    let row = |schedule: &Value| {
        let state = match schedule.get("running") {
            _ if shown(schedule, "paused") == "true" => "paused",
            Some(Value::String(_)) => "running",
            Some(_) | None => "",
        };
        let due = schedule.get("next_due_ms").and_then(Value::as_u64).unwrap_or_default();
        vec![
            text(schedule, "name").to_owned(),
            times(schedule).join(", "),
            moment(due),
            shown(schedule, "started"),
            shown(schedule, "skipped"),
            shown(schedule, "failed"),
            state.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = schedules.iter().map(row).collect();
    let mut shown = table(&["name", "at", "next", "started", "skipped", "failed", ""], &rows);
    let next = text(found, "next");
    if !next.is_empty() {
        shown.push_str(&format!("more behind --after {next:?}\n"));
    }
    shown
}

fn told(schedule: &Value) -> String {
    let due = schedule.get("next_due_ms").and_then(Value::as_u64).unwrap_or_default();
    let job = schedule.get("job").cloned().unwrap_or_default();
    let what = match text(&job, "queue") {
        "" => format!("workflow {}", shown(schedule, "workflow")),
        queue => format!("job in {queue}"),
    };
    let paused = match (shown(schedule, "paused").as_str(), text(schedule, "pause_reason")) {
        ("true", "") => "yes".to_owned(),
        ("true", reason) => format!("yes: {reason}"),
        _ => String::new(),
    };
    let queued: Vec<String> = numbers(schedule, "queued").into_iter().map(utc).collect();
    let runs: Vec<String> = items(schedule, "runs").iter().map(run_line).collect();
    fields(&[
        ("name", text(schedule, "name").to_owned()),
        ("owner", text(schedule, "owner").to_owned()),
        ("version", shown(schedule, "version")),
        ("at", times(schedule).join("\n")),
        ("runs", what),
        ("overlap", text(schedule, "overlap").to_owned()),
        ("catch up", text(schedule, "catch_up").to_owned()),
        ("paused", paused),
        ("next", moment(due)),
        ("running", text(schedule, "running").to_owned()),
        ("waiting", queued.join("\n")),
        ("last", runs.join("\n")),
    ])
}

fn run_line(run: &Value) -> String {
    let at = utc(run.get("scheduled_for_ms").and_then(Value::as_u64).unwrap_or_default());
    let more = match text(run, "outcome") {
        "started" => text(run, "run").to_owned(),
        "skipped" => format!("{}, {} in a row", text(run, "why"), shown(run, "count")),
        _ => text(run, "message").to_owned(),
    };
    format!("{at} {} {more}", text(run, "outcome"))
}

fn times(schedule: &Value) -> Vec<String> {
    let time = |time: &Value| match text(time, "zone") {
        "" => text(time, "expression").to_owned(),
        zone => format!("{} {zone}", text(time, "expression")),
    };
    items(schedule, "times").iter().map(time).collect()
}

fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn numbers(value: &Value, field: &str) -> Vec<u64> {
    items(value, field).iter().filter_map(Value::as_u64).collect()
}
