//! `windlass instance list`.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::get::state;
use crate::args::Online;
use crate::failure::Failure;
use crate::output::table;
use crate::rest::{Rest, shown, text};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this process only
    #[arg(long, value_name = "ID")]
    process: Option<String>,
    /// In this state only
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only those that wait for a person
    #[arg(long)]
    incidents: bool,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    Active,
    Completed,
    Terminated,
}

pub(crate) async fn run(online: &Online, args: &ListArgs) -> Result<(), Failure> {
    let newest_first = json!([{ "field": "startDate", "order": "DESC" }]);
    let rest = Rest::new(online);
    let found =
        rest.search("process-instances", &filter(online, args), &newest_first, args.limit).await?;
    online.out.show(&json!({ "instances": found }), || {
        if found.is_empty() {
            return "no instances".to_owned();
        }
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        let mut text = table(&["key", "process", "version", "state", "started", "ended"], &rows);
        if found.len() == args.limit {
            text.push_str(&format!("the first {}; --limit shows more", args.limit));
        }
        text
    })
}

fn filter(online: &Online, args: &ListArgs) -> Value {
    let mut filter = json!({});
    if let Some(process) = &args.process {
        filter["processDefinitionId"] = json!(process);
    }
    if let Some(state) = args.state {
        filter["state"] = json!(match state {
            State::Active => "ACTIVE",
            State::Completed => "COMPLETED",
            State::Terminated => "TERMINATED",
        });
    }
    if args.incidents {
        filter["hasIncident"] = json!(true);
    }
    if !online.tenant.is_empty() {
        filter["tenantId"] = json!(online.tenant);
    }
    filter
}

fn row(instance: &Value) -> Vec<String> {
    vec![
        shown(instance, "processInstanceKey"),
        text(instance, "processDefinitionId").to_owned(),
        shown(instance, "processDefinitionVersion"),
        state(instance),
        text(instance, "startDate").to_owned(),
        text(instance, "endDate").to_owned(),
    ]
}
