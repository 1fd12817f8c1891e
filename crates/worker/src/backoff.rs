//! How long to wait before the next attempt to connect.

use std::time::Duration;

/// Before the second attempt.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// Never longer than this: a server that is back should be noticed.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Doubles up to a limit; the wait is drawn from the upper half, so that a thousand workers do not
/// come back in the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    wait: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { wait: WAIT_MIN }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.wait.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.wait = (self.wait * 2).min(WAIT_MAX);
        wait
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_begin_again() {
        let mut backoff = Backoff::new();
        let mut expected = WAIT_MIN;
        for _ in 0..20 {
            let wait = backoff.next();
            assert!(wait >= expected / 2 && wait <= expected, "{wait:?} of {expected:?}");
            expected = (expected * 2).min(WAIT_MAX);
        }
        backoff.reset();
        assert!(backoff.next() <= WAIT_MIN);
    }
}
