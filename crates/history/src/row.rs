//! One file per table whose rows change.

mod element;
mod incident;
mod instance;
mod job;
mod subscription;
mod user_task;

pub(crate) use element::Element;
pub(crate) use incident::Incident;
pub(crate) use instance::Instance;
pub(crate) use job::Job;
pub(crate) use subscription::Subscription;
pub(crate) use user_task::UserTask;
