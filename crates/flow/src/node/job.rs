//! Tasks that a worker does.

use windlass_record::flow::{JobRole, Key};

use crate::graph::JobSpec;
use crate::kernel::{Port, Stuck, job};

pub(super) fn activate<P: Port>(port: &mut P, key: Key, spec: &JobSpec) -> Result<(), Stuck> {
    let job = job::prepare(port, key, spec)?;
    super::wait_with_boundaries(port, key)?;
    job::attach(port, key, &job, JobRole::Work);
    Ok(())
}
