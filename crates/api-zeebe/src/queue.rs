//! Where the jobs of a type wait, as this face asks for them.

use windlass_record::command::QueueName;
use windlass_record::flow::job_queue;

/// The only tenant of an installation without multi-tenancy.
pub const TENANT_DEFAULT: &str = "<default>";

/// The queue of a tenant's jobs of a type.
pub fn queue_name(tenant: &str, job_type: &str) -> QueueName {
    QueueName { tenant: tenant.into(), queue: job_queue(job_type) }
}
