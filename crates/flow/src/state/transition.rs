//! User tasks that are about to change: their listeners are asked.

use windlass_record::flow::{Key, UserTaskEvent};

use super::FlowState;
use super::element::UserTask;
use crate::graph::Text;

/// What is about to happen to a user task. At most one thing at a time.
#[derive(Debug)]
pub struct Transition {
    /// What.
    pub event: UserTaskEvent,
    /// What the user task is to be.
    pub task: UserTask,
    /// What the caller calls it; may be empty.
    pub action: Text,
    /// Creating: whose it is to be next; may be empty.
    pub assignee: Text,
    /// What is written when nobody denies it, JSON.
    pub variables: Vec<(Text, Text)>,
    /// Updating: written in exactly the scope of the element.
    pub local: bool,
}

/// A transition that somebody may wait for is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitionEnded {
    /// The user task.
    pub task: Key,
    /// What came of it.
    pub outcome: TransitionOutcome,
}

/// What came of a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionOutcome {
    /// It happened.
    Done,
    /// A listener denied it, for this reason; may be empty.
    Denied(Text),
    /// The user task came to an end meanwhile.
    Cancelled,
}

/// A user task as the worker of a listener's job sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTaskShown {
    /// Its key.
    pub key: Key,
    /// What it is to be.
    pub task: UserTask,
    /// What the caller calls what he does; may be empty.
    pub action: Text,
    /// What is about to change, in the words of Zeebe's API.
    pub changed: Vec<&'static str>,
}

impl Transition {
    pub(crate) fn is_canceling(&self) -> bool {
        self.event == UserTaskEvent::Canceling
    }

    /// Creating: whether the process says whose the user task is.
    pub(crate) fn has_model_assignee(&self, state: &FlowState) -> bool {
        let element = state.element(self.task.element);
        let task = element.and_then(|element| state.user_task(element.user_task?));
        !self.assignee.is_empty() || task.is_some_and(|task| !task.assignee.is_empty())
    }

    fn changed(&self, now: &UserTask) -> Vec<&'static str> {
        let wanted = &self.task;
        let writes = self.event == UserTaskEvent::Updating && !self.variables.is_empty();
        [
            ("assignee", now.assignee != wanted.assignee),
            ("candidateGroupsList", now.candidate_groups != wanted.candidate_groups),
            ("candidateUsersList", now.candidate_users != wanted.candidate_users),
            ("dueDate", now.due_date != wanted.due_date),
            ("followUpDate", now.follow_up_date != wanted.follow_up_date),
            ("priority", now.priority != wanted.priority),
            ("variables", writes),
        ]
        .into_iter()
        .filter_map(|(name, is_changed)| is_changed.then_some(name))
        .collect()
    }
}

impl FlowState {
    /// What is about to happen to a user task.
    pub fn transition(&self, task: Key) -> Option<&Transition> {
        self.transitions.get(&task)
    }

    /// The user task of an element instance whose listeners are asked.
    pub(crate) fn user_task_of(&self, element: Key) -> Option<UserTaskShown> {
        let key = self.element(element)?.user_task?;
        let (now, transition) = (self.user_task(key)?, self.transition(key)?);
        let mut task = transition.task.clone();
        if !transition.assignee.is_empty() {
            task.assignee = transition.assignee.clone();
        }
        let (action, changed) = (transition.action.clone(), transition.changed(now));
        Some(UserTaskShown { key, task, action, changed })
    }

    /// The user task whose element is this one.
    pub fn user_task_at(&self, element: Key) -> Option<Key> {
        self.element(element)?.user_task
    }
}
