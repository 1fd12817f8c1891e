//! What handlers share, and how they ask.

use std::sync::Arc;

use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use windlass_gateway::Gateway;
use windlass_gateway::request::Answer;
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand, Key};
use windlass_record::workflow::{
    TaskStatus, WorkflowAnswer, WorkflowCommand, WorkflowQuery, WorkflowVerb,
};

use crate::answer::Text;
use crate::failure::{Answered, Failure};
use crate::pollers::Pollers;

/// See the module.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) gateway: Gateway,
    pub(crate) pollers: Arc<Pollers>,
}

/// What became of a task that was updated.
pub(crate) struct Updated {
    /// None when nothing had its name.
    pub(crate) task: Option<Key>,
    pub(crate) ended: bool,
    pub(crate) task_type: Arc<str>,
    pub(crate) domain: Arc<str>,
}

impl Face {
    /// Asks for something. What workers report, and what ends work, is never refused for load.
    pub(crate) async fn ask(&self, command: WorkflowCommand) -> Answered<WorkflowAnswer> {
        let lets_work_drain = command.lets_work_drain();
        let command = Command::Flow(FlowCommand::Workflow(command));
        let answer = if lets_work_drain {
            self.gateway.result(command).await
        } else {
            self.gateway.command(command).await
        };
        taken(answer?)
    }

    /// Many at once, each answered for itself, in order. Each is a request of its own: together they
    /// may write more than a batch of the log holds.
    pub(crate) async fn ask_all(
        &self,
        commands: Vec<WorkflowCommand>,
    ) -> Vec<Answered<WorkflowAnswer>> {
        join_all(commands.into_iter().map(|command| self.ask(command))).await
    }

    /// Does something with one workflow.
    pub(crate) async fn control(&self, workflow: Key, verb: WorkflowVerb) -> Answered<()> {
        self.ask(WorkflowCommand::Control { workflow, verb }).await.map(|_done| ())
    }

    /// An update, or a signal.
    pub(crate) async fn update(&self, command: WorkflowCommand) -> Answered<Updated> {
        match self.ask(command).await? {
            WorkflowAnswer::Updated { task, ended, task_type, domain, status: _ } => {
                let task = Some(task).filter(|key| *key != windlass_record::flow::NO_KEY);
                Ok(Updated { task, ended, task_type, domain })
            }
            WorkflowAnswer::Done | WorkflowAnswer::Started { .. } | WorkflowAnswer::Count(_) => {
                Err(other_answer())
            }
        }
    }

    /// Starts a workflow by a `StartWorkflowRequest`.
    pub(crate) async fn start(&self, request: impl Into<Arc<[u8]>>) -> Answered<Key> {
        match self.ask(WorkflowCommand::Start { request: request.into() }).await? {
            WorkflowAnswer::Started { workflow, existing: _ } => Ok(workflow),
            WorkflowAnswer::Done | WorkflowAnswer::Updated { .. } | WorkflowAnswer::Count(_) => {
                Err(other_answer())
            }
        }
    }

    /// Reads something; `None` when what it names is not there.
    pub(crate) async fn find(&self, query: WorkflowQuery) -> Answered<Option<Arc<str>>> {
        Ok(self.gateway.workflows(query).await?)
    }

    /// The same, to be looked into.
    pub(crate) async fn find_as<T: DeserializeOwned>(
        &self,
        query: WorkflowQuery,
    ) -> Answered<Option<T>> {
        let found = self.find(query).await?;
        Ok(found.map(|text| serde_json::from_str(&text).expect("the kernel writes JSON")))
    }

    /// Reads a list that is always there, to be passed on.
    pub(crate) async fn listed(&self, query: WorkflowQuery) -> Answered<Text> {
        Ok(Text(self.find(query).await?.unwrap_or_else(|| "[]".into())))
    }

    /// Reads a list that is always there, to be looked into.
    pub(crate) async fn list<T: DeserializeOwned>(&self, query: WorkflowQuery) -> Answered<Vec<T>> {
        Ok(self.find_as(query).await?.unwrap_or_default())
    }
}

fn taken(answer: Answer) -> Answered<WorkflowAnswer> {
    match answer {
        Answer::Flow(FlowAnswer::Workflow(answer)) => Ok(answer),
        Answer::Flow(
            FlowAnswer::Done
            | FlowAnswer::Key(_)
            | FlowAnswer::Deployed(_)
            | FlowAnswer::InstanceCreated { .. }
            | FlowAnswer::Correlated { .. }
            | FlowAnswer::Evaluated(_)
            | FlowAnswer::UserTaskPending { .. },
        )
        | Answer::Done
        | Answer::Created { .. }
        | Answer::Held { .. }
        | Answer::CancelPending
        | Answer::Versions(_)
        | Answer::Schedule(_) => Err(other_answer()),
    }
}

/// Cannot happen as long as a command is answered with its own kind of answer.
fn other_answer() -> Failure {
    Failure::unreadable("the command was answered with another's answer")
}

/// Whether a status by its name is one that nothing follows.
pub(crate) fn is_task_at_rest(status: &str) -> bool {
    TaskStatus::named(status).is_some_and(TaskStatus::is_at_rest)
}

/// The same, of a workflow.
pub(crate) fn is_workflow_at_rest(status: &str) -> bool {
    !matches!(status, "RUNNING" | "PAUSED")
}
