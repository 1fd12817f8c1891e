//! Where the jobs of a type wait. The only place that knows it.

use windlass_record::command::QueueName;
use windlass_record::policy::{JobOrder, PriorityRule, QueueSettings};

/// The only tenant of an installation without multi-tenancy.
pub const TENANT_DEFAULT: &str = "<default>";

/// What the names of this face's queues begin with, so that no other face serves them by accident.
const PREFIX: &str = "zeebe/";

/// The queue of a tenant's jobs of a type.
pub fn queue_name(tenant: &str, job_type: &str) -> QueueName {
    QueueName { tenant: tenant.into(), queue: format!("{PREFIX}{job_type}").into() }
}

/// How such a queue orders: highest priority first, then oldest, so that a job that is tried again
/// goes before those that were created after it. Not `one_type`, which wants types called like
/// their queue.
pub fn queue_settings() -> QueueSettings {
    QueueSettings {
        priority: PriorityRule::Strict,
        order: JobOrder::Creation,
        one_type: false,
        ..QueueSettings::DEFAULT
    }
}
