//! `windlass instance start`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::args::Online;
use crate::failure::Failure;
use crate::job::create::input;
use crate::rest::{Rest, text};
use crate::units::{duration, millis};

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Id of the process, or the key of one of its versions
    process: String,
    /// Variables, a JSON object; - reads standard input, @FILE a file
    #[arg(default_value = "", hide_default_value = true)]
    variables: String,
    /// Of this version instead of the latest
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// A label, to find it again; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The id of what it is about, in your words
    #[arg(long, value_name = "ID")]
    business_id: Option<String>,
    /// Wait until it has completed, and print its variables
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "wait",
          default_value = "60s")]
    timeout: Duration,
}

pub(crate) async fn run(online: &Online, args: &StartArgs) -> Result<(), Failure> {
    let answer = Rest::new(online).post("process-instances", &request(online, args)?).await;
    let answer = answer.map_err(|failure| {
        failure.hint_if_refused("processes are deployed with `windlass deploy FILE...`")
    })?;
    online.out.show(&answer, || {
        if args.wait {
            return answer.get("variables").map_or_else(String::new, Value::to_string);
        }
        text(&answer, "processInstanceKey").to_owned()
    })
}

fn request(online: &Online, args: &StartArgs) -> Result<Value, Failure> {
    let mut request = json!({ "variables": variables(&args.variables)? });
    // An id in BPMN does not begin with a digit.
    if args.process.starts_with(|first: char| first.is_ascii_digit()) {
        request["processDefinitionKey"] = json!(args.process);
    } else {
        request["processDefinitionId"] = json!(args.process);
        if let Some(version) = args.version {
            request["processDefinitionVersion"] = json!(version);
        }
    }
    if !online.tenant.is_empty() {
        request["tenantId"] = json!(online.tenant);
    }
    if !args.tags.is_empty() {
        request["tags"] = json!(args.tags);
    }
    if let Some(business_id) = &args.business_id {
        request["businessId"] = json!(business_id);
    }
    if args.wait {
        request["awaitCompletion"] = json!(true);
        request["requestTimeout"] = json!(millis(args.timeout));
    }
    Ok(request)
}

fn variables(given: &str) -> Result<Value, Failure> {
    let given = input(given)?;
    if given.is_empty() {
        return Ok(json!({}));
    }
    match serde_json::from_slice(&given) {
        Ok(Value::Object(variables)) => Ok(Value::Object(variables)),
        Ok(_) => Err(not_an_object("it is something else")),
        Err(error) => Err(not_an_object(&error.to_string())),
    }
}

fn not_an_object(why: &str) -> Failure {
    Failure::new(format!("the variables are not a JSON object: {why}"))
        .hint(r#"give them as '{"amount": 12}', or @FILE"#)
}
