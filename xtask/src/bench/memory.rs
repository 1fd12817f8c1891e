//! Memory that the host of a virtual machine has backed before a run takes it.
//!
//! A host backs a page when its guest touches it first, and some take back within seconds what the guest has freed. On the
//! machine of `docs/performance.md` a first touch costs 12 us for 4 KiB, thirty times what clearing them costs, and it was
//! luck, or what had run just before, who paid for it. A run that fills memory therefore begins with [`Backed`] memory,
//! whatever the system: the bench has touched it, and gives it back bit by bit while the run goes on.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use memmap2::{Advice, MmapMut};

use super::failure::{Context, Result};
use super::machine::memory_mib;

/// What is touched, and given back, at once.
const STEP_BYTES: usize = 32 << 20;
/// Steps that are given back before a run begins.
const STEPS_AT_ONCE: usize = 16;
/// Steps that a run may take in a second: a million jobs.
const STEPS_PER_S: usize = 16;

/// Pages of memory that were touched and hold nothing.
pub(crate) struct Backed(Vec<MmapMut>);

impl Backed {
    /// As much as a run that fills memory for so long may take, but at most a quarter of what is there.
    pub(crate) fn for_a_run(lasts: Duration) -> Result<Backed> {
        let seconds = usize::try_from(lasts.as_secs()).context("count the seconds of a run")?;
        let available_mib = usize::try_from(memory_mib("MemAvailable")).unwrap_or(usize::MAX);
        let steps_max = available_mib / 4 / (STEP_BYTES >> 20);
        Backed::touch(steps_max.min(STEPS_AT_ONCE + seconds * STEPS_PER_S))
    }

    fn touch(steps: usize) -> Result<Backed> {
        const PAGE_BYTES: usize = 4096;
        let mut touched = Vec::with_capacity(steps);
        for _ in 0..steps {
            let mut step = MmapMut::map_anon(STEP_BYTES).context("take memory")?;
            // Without huge pages it takes longer, and that is all.
            let _ = step.advise(Advice::HugePage);
            step.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
            touched.push(step);
        }
        Ok(Backed(touched))
    }

    /// Does `work` while they are given back: some at once, the rest evenly for as long as the work may take.
    pub(crate) fn give_back_during<T>(
        mut self,
        at_most: Duration,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.0.truncate(self.0.len().saturating_sub(STEPS_AT_ONCE));
        let pause = at_most / u32::try_from(self.0.len()).unwrap_or(u32::MAX).max(1);
        let (end, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while !self.0.is_empty()
                    && ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
                {
                    self.0.pop();
                }
            });
            let done = work();
            drop(end);
            done
        })
    }
}

/// How fast memory is touched, in GB/s: pages that were not looked at for a while, and the same ones at once again.
pub(crate) fn touch_gb_per_s() -> Result<(f64, f64)> {
    let rate = || {
        let began = Instant::now();
        let touched = Backed::touch(STEPS_AT_ONCE)?;
        let bytes = touched.0.len() * STEP_BYTES;
        Ok(bytes as f64 / began.elapsed().as_secs_f64() / 1e9)
    };
    Ok((rate()?, rate()?))
}
