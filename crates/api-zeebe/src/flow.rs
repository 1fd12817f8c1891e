//! Commands on flows: how they are asked, and what is said when they are refused.
//!
//! The sentences are those that users of this wire know and search for; which sort of refusal it
//! is comes from the rejection.

use tonic::{Code, Status};
use windlass_gateway::request::Answer;
use windlass_gateway::{Gateway, GatewayError};
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand, FlowRejection, Key};
use windlass_record::rejection::{Rejection, RejectionKind};

use crate::refusal::{not_taken, rejected_as};

/// A command on flows, as refusals name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedOfFlows {
    Deploy,
    Delete,
    Create,
    CreateAwaited,
    Cancel,
    Modify,
    Migrate,
    SetVariables,
    Publish,
    Broadcast,
    Evaluate,
}

impl AskedOfFlows {
    /// What clients know it as.
    pub(crate) fn intent(self) -> &'static str {
        match self {
            AskedOfFlows::Deploy | AskedOfFlows::Create => "CREATE",
            AskedOfFlows::Delete => "DELETE",
            AskedOfFlows::CreateAwaited => "CREATE_WITH_AWAITING_RESULT",
            AskedOfFlows::Cancel => "CANCEL",
            AskedOfFlows::Modify => "MODIFY",
            AskedOfFlows::Migrate => "MIGRATE",
            AskedOfFlows::SetVariables => "UPDATE",
            AskedOfFlows::Publish => "PUBLISH",
            AskedOfFlows::Broadcast => "BROADCAST",
            AskedOfFlows::Evaluate => "EVALUATE",
        }
    }

    /// Whether doing it twice makes two of something.
    fn creates(self) -> bool {
        match self {
            AskedOfFlows::Create
            | AskedOfFlows::CreateAwaited
            | AskedOfFlows::Publish
            | AskedOfFlows::Broadcast => true,
            AskedOfFlows::Deploy
            | AskedOfFlows::Delete
            | AskedOfFlows::Cancel
            | AskedOfFlows::Modify
            | AskedOfFlows::Migrate
            | AskedOfFlows::SetVariables
            | AskedOfFlows::Evaluate => false,
        }
    }
}

/// Any number is a key; most name nothing, and those below one never do.
pub(crate) fn key(given: i64) -> Key {
    Key::from_raw(given.cast_unsigned())
}

/// A key as this wire writes it.
pub(crate) fn number(key: Key) -> i64 {
    key.raw().cast_signed()
}

/// A version as this wire writes it.
pub(crate) fn version(given: u32) -> i32 {
    i32::try_from(given).unwrap_or(i32::MAX)
}

/// Asks. A cancel is never refused for load: it takes load away.
pub(crate) async fn ask(
    gateway: &Gateway,
    asked: AskedOfFlows,
    command: FlowCommand,
) -> Result<FlowAnswer, Status> {
    let command = Command::Flow(command);
    let answer = match asked {
        AskedOfFlows::Cancel => gateway.result(command).await,
        AskedOfFlows::Deploy
        | AskedOfFlows::Delete
        | AskedOfFlows::Create
        | AskedOfFlows::CreateAwaited
        | AskedOfFlows::Modify
        | AskedOfFlows::Migrate
        | AskedOfFlows::SetVariables
        | AskedOfFlows::Publish
        | AskedOfFlows::Broadcast
        | AskedOfFlows::Evaluate => gateway.command(command).await,
    };
    match answer {
        Ok(Answer::Flow(answer)) => Ok(answer),
        Ok(
            Answer::Done
            | Answer::Created { .. }
            | Answer::Held { .. }
            | Answer::CancelPending
            | Answer::Versions(_)
            | Answer::Schedule(_),
        ) => Err(other_answer()),
        Err(error) => Err(refused(asked, error)),
    }
}

/// For the key that a command was answered with.
pub(crate) fn key_of(answer: &FlowAnswer) -> Result<i64, Status> {
    match answer {
        FlowAnswer::Key(key) | FlowAnswer::Correlated { message: key, .. } => Ok(number(*key)),
        FlowAnswer::Done
        | FlowAnswer::Deployed(_)
        | FlowAnswer::InstanceCreated { .. }
        | FlowAnswer::Evaluated(_)
        | FlowAnswer::UserTaskPending { .. }
        | FlowAnswer::Workflow(_) => Err(other_answer()),
    }
}

/// The engine answers a command with its own kind of answer; anything else is a bug of ours.
pub(crate) fn other_answer() -> Status {
    Status::internal("the command was carried out, but its answer is of another kind")
}

/// The command did not succeed.
pub(crate) fn refused(asked: AskedOfFlows, error: GatewayError) -> Status {
    let rejection = match error {
        GatewayError::Rejected(rejection) => rejection,
        // Clients ask again when something is not available. What is made anew each time must not
        // be made twice because nobody knows whether it was made.
        GatewayError::Stopped if asked.creates() => {
            return Status::internal(format!("{error}: whether it happened is not known"));
        }
        GatewayError::Overloaded { .. } | GatewayError::ShuttingDown | GatewayError::Stopped => {
            return not_taken(error);
        }
    };
    let (kind, reason) = match &rejection {
        Rejection::Flow(rejection) => (kind(asked, rejection), sentence(asked, rejection)),
        Rejection::JobNotFound { .. }
        | Rejection::JobInWrongState { .. }
        | Rejection::LeaseEnded { .. }
        | Rejection::TokenMissing { .. }
        | Rejection::TokenStale { .. }
        | Rejection::UniqueKeyHeld { .. }
        | Rejection::QueueOfOneType
        | Rejection::QueueNotFound
        | Rejection::IncidentNotFound { .. }
        | Rejection::NoRetriesLeft { .. }
        | Rejection::DocumentVersion { .. }
        | Rejection::NameEmpty { .. }
        | Rejection::OutOfRange { .. }
        | Rejection::TooLarge { .. }
        | Rejection::Exhausted { .. }
        | Rejection::Schedule(_) => (rejection.kind(), rejection.to_string()),
    };
    rejected_as(asked.intent(), kind, &reason)
}

/// A process that was waited for longer than the caller wanted. It goes on.
pub(crate) fn timed_out(wait_ms: u64) -> Status {
    let seconds = wait_ms / 1_000;
    let thousandths = wait_ms % 1_000;
    Status::new(
        Code::DeadlineExceeded,
        format!(
            "Time out between gateway and broker: the process instance did not complete within \
             {seconds}.{thousandths:03} s; it goes on"
        ),
    )
}

/// This wire calls a wrong key inside of a list of instructions a wrong argument.
fn kind(asked: AskedOfFlows, rejection: &FlowRejection) -> RejectionKind {
    match (asked, rejection) {
        (AskedOfFlows::Modify, FlowRejection::ScopeNotFound { .. }) => {
            RejectionKind::InvalidArgument
        }
        (_, rejection) => rejection.kind(),
    }
}

const NOTHING_TO_DEPLOY: &str = "Expected to deploy at least one resource, but none given";

fn sentence(asked: AskedOfFlows, rejection: &FlowRejection) -> String {
    match rejection {
        FlowRejection::InvalidResource { problems } => format!(
            "Expected to deploy new resources, but encountered the following errors:\n{problems}"
        ),
        FlowRejection::NothingToDeploy => NOTHING_TO_DEPLOY.to_owned(),
        FlowRejection::DefinitionNotFound { key } if asked == AskedOfFlows::Migrate => format!(
            "Expected to migrate process instance to process definition but no process definition \
             found with key '{}'",
            number(*key)
        ),
        FlowRejection::DefinitionNotFound { key } => {
            let key = number(*key);
            format!("Expected to find process definition with key '{key}', but none found")
        }
        FlowRejection::ProcessNotFound { id } => {
            format!("Expected to find process definition with process ID '{id}', but none found")
        }
        FlowRejection::VersionNotFound { id, version } => format!(
            "Expected to find process definition with process ID '{id}' and version '{version}', \
             but none found"
        ),
        FlowRejection::NoNoneStart { .. } => "Expected to create instance of process with none \
             start event, but there is no such event"
            .to_owned(),
        FlowRejection::ResourceNotFound { key } => {
            format!("Expected to delete resource but no resource found with key `{}`", number(*key))
        }
        FlowRejection::ResourceInUse { key, instance } => format!(
            "Expected to delete resource with key `{}` but there are still running instances: one \
             is '{}'",
            number(*key),
            number(*instance)
        ),
        FlowRejection::MessageExists { id } => format!(
            "Expected to publish a new message with id '{id}', but a message with that id was \
             already published"
        ),
        FlowRejection::DecisionNotFound { id } => {
            format!("Expected to evaluate decision '{id}', but no decision found for id '{id}'")
        }
        FlowRejection::DecisionKeyNotFound { key } => {
            let key = number(*key);
            format!("Expected to evaluate decision '{key}', but no decision found for key '{key}'")
        }
        FlowRejection::UserTaskInTransition { key, event } => format!(
            "Expected to update variables of user task with key '{}', but it is in state '{}'",
            number(*key),
            event.state()
        ),
        FlowRejection::Workflow { message, .. } => message.to_string(),
        FlowRejection::ElementNotFound { .. }
        | FlowRejection::ElementUnsuitable { .. }
        | FlowRejection::InstanceNotFound { .. }
        | FlowRejection::InstanceIsChild { .. }
        | FlowRejection::ScopeNotFound { .. }
        | FlowRejection::NotMigratable { .. }
        | FlowRejection::InvalidPlan { .. }
        | FlowRejection::BusinessIdTaken { .. } => about_instance(asked, rejection),
        FlowRejection::InvalidVariables { .. }
        | FlowRejection::NotCorrelated { .. }
        | FlowRejection::UserTaskNotFound { .. }
        | FlowRejection::UserTaskAssigned { .. }
        | FlowRejection::UserTaskPriority { .. }
        | FlowRejection::ListenerSaysTooMuch { .. }
        | FlowRejection::ListenerThrows { .. }
        | FlowRejection::ElementInWrongState { .. } => capital(&rejection.to_string()),
    }
}

/// Of what runs, or was to.
fn about_instance(asked: AskedOfFlows, rejection: &FlowRejection) -> String {
    match (asked, rejection) {
        (
            AskedOfFlows::Create | AskedOfFlows::CreateAwaited,
            FlowRejection::ElementNotFound { id },
        ) => {
            format!(
                "Expected to create instance of process with start instructions but no element \
                 found with id '{id}'."
            )
        }
        (
            AskedOfFlows::Create | AskedOfFlows::CreateAwaited,
            FlowRejection::ElementUnsuitable { id, why },
        ) => format!(
            "Expected to create instance of process with start instructions but the element with \
             id '{id}' cannot be started at: {why}."
        ),
        (_, FlowRejection::ElementNotFound { id }) => format!(
            "Expected to modify process instance but it contains one or more instructions with an \
             element that could not be found: '{id}'"
        ),
        (_, FlowRejection::ElementUnsuitable { id, why }) => format!(
            "Expected to modify process instance but it contains one or more activate instructions \
             for elements that are unsupported: '{id}'. {}.",
            capital(why)
        ),
        (AskedOfFlows::Cancel, FlowRejection::InstanceNotFound { key }) => format!(
            "Expected to cancel a process instance with key '{}', but no such process was found",
            number(*key)
        ),
        (_, FlowRejection::InstanceNotFound { key }) => {
            let (verb, key) = (asked.intent().to_lowercase(), number(*key));
            format!(
                "Expected to {verb} process instance but no process instance found with key '{key}'"
            )
        }
        (_, FlowRejection::InstanceIsChild { key, root }) => format!(
            "Expected to cancel a process instance with key '{}', but it is created by a parent \
             process instance. Cancel the root process instance '{}' instead.",
            number(*key),
            number(*root)
        ),
        (AskedOfFlows::Modify, FlowRejection::ScopeNotFound { key }) => format!(
            "Expected to modify process instance but it contains one or more instructions with an \
             element instance that could not be found: '{}'",
            number(*key)
        ),
        (_, FlowRejection::ScopeNotFound { key }) => format!(
            "Expected to update variables for element with key '{}', but no such element was found",
            number(*key)
        ),
        (_, FlowRejection::NotMigratable { instance, element, why }) => format!(
            "Expected to migrate process instance '{}' but element with id '{element}' {why}",
            number(*instance)
        ),
        (_, FlowRejection::InvalidPlan { element, why }) => format!(
            "Expected to migrate process instance but the element id '{element}' in its mapping \
             instructions {why}"
        ),
        (_, FlowRejection::BusinessIdTaken { id, holder }) => format!(
            "Expected to create instance of process with business id '{id}', but the process \
             instance '{}' has it",
            number(*holder)
        ),
        (_, rejection) => capital(&rejection.to_string()),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
