//! `check`, `discover` and `spec` as jobs: a connector is asked one question.

use serde_json::{Value, json};

use crate::Cancel;
use crate::attempt::Connector;
use crate::attempt::operation::Question;
use crate::failure::{Failure, FailureType, Origin};
use crate::journal::{Commit, Journal, JournalError};
use crate::observer::now_ms;
use crate::process::{Guard, Helper, Side};
use crate::runner::folder::{Folder, Found, Marker, Outcome, Spec};
use crate::runner::report::lost;
use crate::runner::secrets::{Keeper, Secrets};
use crate::runner::spool::Home;
use crate::runner::store::{DEFINITION, Store};
use crate::runner::sync::{Actor, NotMade, command, limits};
use crate::runner::{CHECK_QUEUE, DISCOVER_QUEUE};

/// Bytes of a catalog or a specification: a document of the server's holds it.
pub(crate) const FOUND_BYTES_MAX: usize = 3 << 20;

/// Who is asked.
pub struct Asked {
    side: Side,
    connector: Connector,
    /// Where its configuration is, if it has one.
    home: Option<(String, Home)>,
    /// The version of that document.
    version: u64,
    secrets: Vec<String>,
}

impl Asked {
    /// Reads it.
    ///
    /// # Errors
    /// If the server does not answer, or something is missing.
    pub async fn load(store: &Store, spec: &Spec, secrets: &dyn Secrets) -> Result<Asked, NotMade> {
        let (source, destination) = (spec.text("sourceId"), spec.text("destinationId"));
        if spec.text("definitionId").is_empty() {
            let (side, id) = match source {
                "" => (Side::Destination, destination),
                source => (Side::Source, source),
            };
            let actor = Actor::load(store, spec, secrets, side, id).await?;
            let scope = store.scope(actor.home.kind, &actor.home.id);
            let (home, version) = (Some((scope, actor.home)), actor.document.version);
            let (connector, secrets) = (actor.connector, actor.secrets);
            return Ok(Asked { side, connector, home, version, secrets });
        }
        let definition = store.get(DEFINITION, spec.text("definitionId")).await?;
        let side = match definition.text("actorType") {
            "destination" => Side::Destination,
            _ => Side::Source,
        };
        let command = command(spec, &definition)?;
        let connector = Connector { command, config: json!({}) };
        Ok(Asked { side, connector, home: None, version: definition.version, secrets: Vec::new() })
    }

    /// Texts that no log may have.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.secrets.clone()
    }

    /// Asks, on this thread.
    #[must_use]
    pub fn run(
        self,
        folder: &Folder,
        spec: &Spec,
        helper: &Helper,
        keeper: &Keeper,
        cancel: &Cancel,
    ) -> Outcome {
        let platform = |error: &dyn std::error::Error| {
            let message = "the connector cannot be run";
            let failure = Failure::new(Origin::AirbytePlatform, FailureType::SystemError, message);
            failed(spec, &[failure.internal(error.to_string())], cancel)
        };
        let work = match folder.work().and_then(|work| folder.mark(Marker::Running).map(|()| work))
        {
            Ok(work) => work,
            Err(error) => return platform(&error),
        };
        let (name, version, at_ms) = (spec.name(), self.version, now_ms());
        let guard = match Guard::start(helper, &name) {
            Ok(guard) => guard,
            Err(error) => return platform(&error),
        };
        let limits = limits(spec);
        let question = Question {
            helper,
            attempt: &name,
            folder: &work,
            limits: &limits,
            guard: Some(&guard),
            journal: &Kept { folder, keeper, home: self.home.as_ref() },
            observer: &*keeper.log,
            cancel,
        };
        let answer = match &*spec.queue {
            CHECK_QUEUE => question.check(self.side, &self.connector).map(|()| Value::Null),
            DISCOVER_QUEUE => question.discover(&self.connector),
            _ => question.spec(self.side, &self.connector),
        };
        match answer {
            Ok(value) => answered(spec, Found { value, version, at_ms }),
            Err(failures) => failed(spec, &failures, cancel),
        }
    }
}

fn answered(spec: &Spec, found: Found) -> Outcome {
    let bytes = found.value.to_string().len();
    if bytes > FOUND_BYTES_MAX {
        let message =
            format!("what the connector shows has {bytes} bytes, more than {FOUND_BYTES_MAX}");
        return Outcome { message, permanent: true, ..lost("") };
    }
    let result = match &*spec.queue {
        CHECK_QUEUE => json!({ "status": "succeeded" }),
        DISCOVER_QUEUE => {
            let streams = found.value.get("streams").and_then(Value::as_array);
            json!({ "streams": streams.map_or(0, Vec::len) })
        }
        _ => json!({}),
    };
    let found = (!found.value.is_null()).then_some(found);
    Outcome { succeeded: true, result, found, ..lost("") }
}

fn failed(spec: &Spec, failures: &[Failure], cancel: &Cancel) -> Outcome {
    let first = failures.first();
    let message = first.map(|it| it.external_message.clone()).unwrap_or_default();
    let permanent = first.is_some_and(|it| it.failure_type == FailureType::ConfigError);
    // A configuration that does not work is an answer, not a failure.
    if &*spec.queue == CHECK_QUEUE
        && permanent
        && first.is_some_and(|it| it.failure_origin != Origin::AirbytePlatform)
    {
        let result = json!({ "status": "failed", "message": message });
        return Outcome { succeeded: true, result, ..lost("") };
    }
    Outcome { cancelled: cancel.is_cancelled(), message, permanent, ..lost("") }
}

/// What never could be asked.
#[must_use]
pub fn never_asked(spec: &Spec, failure: Failure) -> Outcome {
    failed(spec, &[failure], &Cancel::new())
}

/// A question has nothing to commit but a new configuration, which goes along with its report.
struct Kept<'a> {
    folder: &'a Folder,
    keeper: &'a Keeper,
    home: Option<&'a (String, Home)>,
}

impl Journal for Kept<'_> {
    fn commit(&self, _commit: &Commit) -> Result<(), JournalError> {
        Ok(())
    }

    fn configuration(&self, side: Side, config: &str) -> Result<(), JournalError> {
        let Some((scope, home)) = self.home else { return Ok(()) };
        self.keeper.keep(self.folder, (scope, home), side, config)
    }
}
