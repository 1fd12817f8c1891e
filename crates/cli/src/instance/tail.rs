//! `windlass instance tail`: follow an instance.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::get::{process, state};
use super::owned;
use crate::args::Online;
use crate::failure::Failure;
use crate::rest::{Rest, shown, text};

/// How soon the instance is looked at again, at first and at most.
const LOOK_MIN: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Elements that are followed.
const ELEMENTS_MAX: usize = 10_000;

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// Key of the instance
    key: u64,
}

pub(crate) async fn run(online: &Online, args: &TailArgs) -> Result<(), Failure> {
    let (rest, key) = (Rest::new(online), args.key.to_string());
    let filter = json!({ "processInstanceKey": key });
    let oldest_first = json!([{ "field": "startDate", "order": "ASC" }]);
    let mut seen = Seen::default();
    let mut wait = LOOK_MIN;
    loop {
        // First the instance: when it has ended, what is then read of its elements is all.
        let instance = owned(online, &rest, &key).await?;
        let elements =
            rest.search("element-instances", &filter, &oldest_first, ELEMENTS_MAX).await?;
        let mut is_news = false;
        for element in &elements {
            is_news |= seen.print_news(online, element)?;
        }
        if text(&instance, "state") != "ACTIVE" {
            return online.out.show(&json!({ "instance": instance }), || {
                let ended = text(&instance, "endDate");
                format!("{ended}  {}: {}", process(&instance), state(&instance))
            });
        }
        wait = if is_news { LOOK_MIN } else { (wait * 2).min(LOOK_MAX) };
        tokio::time::sleep(wait).await;
    }
}

/// What was printed already: state and incident by element instance.
#[derive(Default)]
struct Seen(HashMap<String, (String, String)>);

impl Seen {
    /// Prints what an element instance has come to, if that is new.
    fn print_news(&mut self, online: &Online, element: &Value) -> Result<bool, Failure> {
        let key = shown(element, "elementInstanceKey");
        let now = (text(element, "state").to_owned(), shown(element, "incidentKey"));
        let before = self.0.insert(key.clone(), now.clone());
        if before.as_ref() == Some(&now) {
            return Ok(false);
        }
        online.out.show(&json!({ "element": element }), || {
            let (state, incident) = &now;
            let when = match shown(element, "endDate") {
                ended if ended.is_empty() => shown(element, "startDate"),
                ended => ended,
            };
            let kind = text(element, "type").to_lowercase().replace('_', "-");
            let mut line =
                format!("{when}  {} ({kind}) {}", text(element, "elementId"), state.to_lowercase());
            if !incident.is_empty() {
                line.push_str(&format!("; incident {incident}: `windlass incident list`"));
            }
            line
        })?;
        Ok(true)
    }
}
