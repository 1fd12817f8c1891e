//! What follows a failed attempt: one pure function over the policy on the job.

use windlass_record::event::FailureCounts;
use windlass_record::id::mix;
use windlass_record::policy::RetryPolicy;

/// What is known when an attempt has failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Now.
    pub now_ms: u64,
    /// When the attempt was started first.
    pub started_ms: u64,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// Retries that were left before it failed.
    pub retries: i32,
    /// Failures before this one.
    pub failures: FailureCounts,
    /// Retries that remain, when the worker said so.
    pub retries_given: Option<i32>,
    /// How long to wait, when the worker said so.
    pub backoff_given_ms: Option<u64>,
    /// Whether the attempt got something done.
    pub progressed: bool,
    /// Retrying cannot help.
    pub permanent: bool,
    /// Decides the jitter; from the record's seed, the job and the attempt.
    pub jitter: u64,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another attempt at this time; 0 is at once.
    Again {
        /// Not before.
        due_ms: u64,
        /// Retries left.
        retries: i32,
        /// Failures so far.
        failures: FailureCounts,
    },
    /// No more attempts.
    Exhausted {
        /// Retries left: 0, or what the worker said.
        retries: i32,
        /// Failures so far.
        failures: FailureCounts,
    },
}

/// Decides what follows a failed attempt.
pub fn after_failure(policy: &RetryPolicy, failure: &Failure) -> Verdict {
    let failures = count(failure.failures, failure.progressed);
    if failure.permanent {
        return Verdict::Exhausted { retries: failure.retries.max(0), failures };
    }
    if let RetryPolicy::Attempts {
        complete_successive_max,
        complete_total_max,
        partial_successive_max,
        partial_total_max,
        delay_ms,
        base,
        cap_ms,
    } = *policy
    {
        let again = failures.complete_successive < complete_successive_max
            && failures.complete_total < complete_total_max
            && failures.partial_successive < partial_successive_max
            && failures.partial_total < partial_total_max;
        let retries = failure.retries;
        if !again {
            return Verdict::Exhausted { retries, failures };
        }
        let wait_ms = match failures.complete_successive.checked_sub(1) {
            None => 0,
            Some(power) => capped(grown(delay_ms, base, power), cap_ms),
        };
        return Verdict::Again { due_ms: due(failure.now_ms, wait_ms), retries, failures };
    }
    let retries = failure.retries_given.unwrap_or_else(|| failure.retries.saturating_sub(1));
    // Without the worker's word, a job made with n retries has n + 1 attempts.
    let exhausted = match failure.retries_given {
        Some(given) => given <= 0,
        None => failure.retries <= 0,
    };
    if exhausted {
        return Verdict::Exhausted { retries: retries.max(0), failures };
    }
    Verdict::Again { due_ms: due_by_delay(policy, failure), retries, failures }
}

fn due_by_delay(policy: &RetryPolicy, failure: &Failure) -> u64 {
    let retry = failure.attempt.saturating_sub(1);
    let (wait_ms, jitter_ms, from_ms) = match *policy {
        RetryPolicy::WorkerGiven => (failure.backoff_given_ms.unwrap_or(0), 0, failure.now_ms),
        RetryPolicy::Fixed { delay_ms, jitter_ms } => (delay_ms, jitter_ms, failure.now_ms),
        RetryPolicy::Linear { delay_ms, scale, cap_ms, jitter_ms } => {
            let factor = u64::from(scale).saturating_mul(u64::from(retry) + 1);
            (capped(delay_ms.saturating_mul(factor), cap_ms), jitter_ms, failure.now_ms)
        }
        RetryPolicy::Exponential { delay_ms, base, cap_ms, jitter_ms, from_start } => {
            let from_ms = if from_start { failure.started_ms } else { failure.now_ms };
            (capped(grown(delay_ms, base, retry), cap_ms), jitter_ms, from_ms)
        }
        RetryPolicy::Attempts { .. } => unreachable!("attempts are decided by their counts"),
    };
    let jitter_ms = if jitter_ms == 0 { 0 } else { failure.jitter % (jitter_ms.saturating_add(1)) };
    let due_ms = due(from_ms, wait_ms.saturating_add(jitter_ms));
    if due_ms <= failure.now_ms { 0 } else { due_ms }
}

/// 0 is "at once".
fn due(from_ms: u64, wait_ms: u64) -> u64 {
    if wait_ms == 0 { 0 } else { from_ms.saturating_add(wait_ms) }
}

fn grown(delay_ms: u64, base: u32, power: u32) -> u64 {
    delay_ms.saturating_mul(u64::from(base).saturating_pow(power))
}

fn capped(wait_ms: u64, cap_ms: u64) -> u64 {
    /// Waits longer than a century are a century.
    const WAIT_MS_MAX: u64 = 100 * 366 * 24 * 60 * 60 * 1000;
    let wait_ms = wait_ms.min(WAIT_MS_MAX);
    if cap_ms == 0 { wait_ms } else { wait_ms.min(cap_ms) }
}

fn count(before: FailureCounts, progressed: bool) -> FailureCounts {
    if progressed {
        FailureCounts {
            complete_successive: 0,
            partial_successive: before.partial_successive.saturating_add(1),
            partial_total: before.partial_total.saturating_add(1),
            ..before
        }
    } else {
        FailureCounts {
            partial_successive: 0,
            complete_successive: before.complete_successive.saturating_add(1),
            complete_total: before.complete_total.saturating_add(1),
            ..before
        }
    }
}

/// Jitter that is the same in every replay: a hash of the record's seed, the job and its attempt.
pub fn jitter(seed: u64, key: u64, attempt: u32) -> u64 {
    mix(seed ^ key.rotate_left(17) ^ u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Failure = Failure {
        now_ms: 1_000_000,
        started_ms: 1_000_000,
        attempt: 1,
        retries: 3,
        failures: FailureCounts {
            complete_successive: 0,
            complete_total: 0,
            partial_successive: 0,
            partial_total: 0,
        },
        retries_given: None,
        backoff_given_ms: None,
        progressed: false,
        permanent: false,
        jitter: 0,
    };

    /// Runs attempts through a policy; each line is "synced data?" and the wait that follows in
    /// seconds, or that the job fails.
    fn airbyte(rows: &[(bool, Option<u64>)]) {
        let mut failures = FailureCounts::default();
        for (index, &(progressed, wait_s)) in rows.iter().enumerate() {
            let failure = Failure { failures, progressed, ..START };
            match (after_failure(&RetryPolicy::AIRBYTE, &failure), wait_s) {
                (Verdict::Again { due_ms, failures: next, .. }, Some(wait_s)) => {
                    let waited_ms = if due_ms == 0 { 0 } else { due_ms - START.now_ms };
                    assert_eq!(waited_ms, wait_s * 1000, "attempt {}", index + 1);
                    failures = next;
                }
                (Verdict::Exhausted { .. }, None) => {}
                (verdict, _) => panic!("attempt {}: {verdict:?}", index + 1),
            }
        }
    }

    /// The first example of the Airbyte document; its seventh attempt succeeds.
    #[test]
    fn airbyte_job_1() {
        airbyte(&[
            (false, Some(10)),
            (false, Some(30)),
            (true, Some(0)),
            (true, Some(0)),
            (true, Some(0)),
            (false, Some(10)),
        ]);
    }

    /// The second: it fails at the fifth successive failure.
    #[test]
    fn airbyte_job_2() {
        airbyte(&[
            (true, Some(0)),
            (true, Some(0)),
            (true, Some(0)),
            (true, Some(0)),
            (true, Some(0)),
            (true, Some(0)),
            (false, Some(10)),
            (false, Some(30)),
            (false, Some(90)),
            (false, Some(270)),
            (false, None),
        ]);
    }

    #[test]
    fn airbyte_ends_at_ten_complete_and_twenty_partial_failures() {
        let mut rows = Vec::new();
        for _ in 0..3 {
            rows.extend([(false, Some(10)), (false, Some(30)), (false, Some(90)), (true, Some(0))]);
        }
        rows.push((false, None));
        airbyte(&rows);
        let mut rows = vec![(true, Some(0)); 19];
        rows.push((true, None));
        airbyte(&rows);
    }

    /// Waits in ms before each retry, from the failure or the start of the attempt.
    fn waits(policy: RetryPolicy, retries: i32) -> Vec<u64> {
        let mut out = Vec::new();
        let mut failure = Failure { retries, ..START };
        while let Verdict::Again { due_ms, retries, .. } = after_failure(&policy, &failure) {
            out.push(due_ms.saturating_sub(START.now_ms));
            failure.retries = retries;
            failure.attempt += 1;
        }
        out
    }

    #[test]
    fn conductor_formulas() {
        let fixed = RetryPolicy::Fixed { delay_ms: 60_000, jitter_ms: 0 };
        assert_eq!(waits(fixed, 3), [60_000, 60_000, 60_000]);
        let linear = RetryPolicy::Linear { delay_ms: 1000, scale: 2, cap_ms: 5000, jitter_ms: 0 };
        assert_eq!(waits(linear, 3), [2000, 4000, 5000]);
        let exponential = RetryPolicy::Exponential {
            delay_ms: 1000,
            base: 2,
            cap_ms: 0,
            jitter_ms: 0,
            from_start: false,
        };
        assert_eq!(waits(exponential, 4), [1000, 2000, 4000, 8000]);
        assert_eq!(waits(fixed, 0), [] as [u64; 0]);
    }

    /// Golden trace T6: delay 60 s, two retries; waits of 60 s and 120 s from the start.
    #[test]
    fn docspell_waits_double_and_count_from_the_start() {
        assert_eq!(waits(RetryPolicy::docspell(60_000), 2), [60_000, 120_000]);
        let long = Failure { now_ms: START.started_ms + 61_000, ..START };
        assert_eq!(
            after_failure(&RetryPolicy::docspell(60_000), &long),
            Verdict::Again {
                due_ms: 0,
                retries: 2,
                failures: FailureCounts {
                    complete_successive: 1,
                    complete_total: 1,
                    ..FailureCounts::default()
                }
            },
            "a task that ran longer than its wait is due the moment it fails"
        );
    }

    /// Golden trace T7.
    #[test]
    fn a_permanent_error_ends_it_whatever_is_left() {
        for policy in
            [RetryPolicy::WorkerGiven, RetryPolicy::AIRBYTE, RetryPolicy::docspell(60_000)]
        {
            let failure = Failure { permanent: true, ..START };
            assert!(matches!(after_failure(&policy, &failure), Verdict::Exhausted { .. }));
        }
    }

    #[test]
    fn a_worker_that_says_zero_retries_means_it() {
        let failure = Failure { retries_given: Some(0), ..START };
        assert!(matches!(
            after_failure(&RetryPolicy::WorkerGiven, &failure),
            Verdict::Exhausted { retries: 0, .. }
        ));
        let failure = Failure { retries_given: Some(7), backoff_given_ms: Some(500), ..START };
        assert!(matches!(
            after_failure(&RetryPolicy::WorkerGiven, &failure),
            Verdict::Again { retries: 7, due_ms: 1_000_500, .. }
        ));
    }

    #[test]
    fn jitter_stays_in_its_range_and_huge_delays_do_not_overflow() {
        for attempt in 1..1000 {
            let policy = RetryPolicy::Fixed { delay_ms: 100, jitter_ms: 50 };
            let failure = Failure { attempt, jitter: jitter(7, 42, attempt), ..START };
            let Verdict::Again { due_ms, .. } = after_failure(&policy, &failure) else {
                panic!("three retries are left")
            };
            assert!((100..=150).contains(&(due_ms - START.now_ms)));
        }
        let huge = RetryPolicy::Exponential {
            delay_ms: u64::MAX,
            base: u32::MAX,
            cap_ms: 0,
            jitter_ms: u64::MAX,
            from_start: false,
        };
        let failure = Failure { attempt: u32::MAX, jitter: u64::MAX, ..START };
        assert!(matches!(after_failure(&huge, &failure), Verdict::Again { .. }));
    }
}
