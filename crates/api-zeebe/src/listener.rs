//! What the listener of a user task says with its result: no, or yes with corrections.

use tonic::Status;
use windlass_record::command::ListenerSays;
use windlass_record::flow::{USER_TASK_PRIORITY_MAX, UserTaskCorrections};

use crate::protocol as p;
use crate::refusal::{Asked, invalid};

/// Nothing when it is only that the job is done.
pub(crate) fn says(result: p::JobResult) -> Result<Option<ListenerSays>, Status> {
    let corrections = result.corrections.filter(|given| *given != Default::default());
    match (result.denied.unwrap_or(false), corrections) {
        (true, Some(_)) => Err(invalid(
            Asked::CompleteJob,
            "Expected to complete a task listener job, but it denies and corrects at once: what is \
             denied is not corrected",
        )),
        (true, None) => {
            Ok(Some(ListenerSays::Denied(result.denied_reason.unwrap_or_default().into())))
        }
        (false, Some(given)) => Ok(Some(ListenerSays::Corrected(Box::new(corrected(given)?)))),
        (false, None) => Ok(None),
    }
}

fn corrected(given: p::JobResultCorrections) -> Result<UserTaskCorrections, Status> {
    let priority = given.priority.map(|given| match u32::try_from(given) {
        Ok(priority) if priority <= USER_TASK_PRIORITY_MAX => Ok(priority),
        Ok(_) | Err(_) => Err(invalid(
            Asked::CompleteJob,
            &format!("Expected to correct the priority to one between 0 and 100, not '{given}'"),
        )),
    });
    let list = |given: Option<p::StringList>| {
        given.map(|list| serde_json::Value::from(list.values).to_string().into())
    };
    Ok(UserTaskCorrections {
        assignee: given.assignee.map(Into::into),
        candidate_groups: list(given.candidate_groups),
        candidate_users: list(given.candidate_users),
        due_date: given.due_date.map(Into::into),
        follow_up_date: given.follow_up_date.map(Into::into),
        priority: priority.transpose()?,
    })
}
