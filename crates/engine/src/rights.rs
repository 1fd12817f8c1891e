//! What a job's dialect allows its workers.

use windlass_record::policy::Dialect;

/// Rights of the workers of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Results count without a live lease: Conductor lets anybody who knows a task's id complete
    /// or fail it while it is not at rest.
    pub results_without_lease: bool,
}

/// The rights that a dialect gives.
pub fn rights(dialect: Dialect) -> Rights {
    Rights {
        results_without_lease: match dialect {
            Dialect::Conductor => true,
            Dialect::Native | Dialect::Zeebe | Dialect::Airbyte => false,
        },
    }
}
