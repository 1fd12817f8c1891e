//! How an attempt gets under way: claimed, launched, running; each has its time.
//!
//! The time *claimed* begins when the launcher takes the job, and ends when everything is there that its connectors
//! need: the runner and its turn, the documents, packages and images. *Launched* ends with the first word of a connector. *Running*
//! has no end of its own: whoever runs is heard of by heartbeats (`stop_after` of the lease), and its connectors have
//! their own bounds for silence. A job that waits for a place is not claimed, and waits as long as it must.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use crate::runner::folder::Spec;

/// Where an attempt is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// What it needs is fetched.
    #[default]
    Claimed,
    /// Its connectors are started.
    Launched,
    /// One of them has said something.
    Running,
}

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Until it is launched.
    pub claimed: Option<Duration>,
    /// From there until it runs.
    pub launched: Option<Duration>,
}

impl Bounds {
    /// Those of an attempt; 0 is none.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let bound = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        Self { claimed: bound(spec.claimed_s), launched: bound(spec.launched_s) }
    }
}

/// Waits until it runs; or says why it is late.
pub async fn late(mut phase: Receiver<Phase>, bounds: Bounds) -> Option<String> {
    let steps = [
        (Phase::Launched, bounds.claimed, "what its connectors need was not there"),
        (Phase::Running, bounds.launched, "none of its connectors said anything"),
    ];
    for (next, bound, what) in steps {
        let reached = phase.wait_for(|now| *now >= next);
        let is_late = match bound {
            Some(bound) => timeout(bound, reached).await.is_err(),
            None => reached.await.is_err(),
        };
        if is_late {
            let seconds = bound.map_or(0, |bound| bound.as_secs());
            return Some(format!("{what} within {seconds} s"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_phase_has_its_time() {
        let bound = Some(Duration::from_millis(10));
        let bounds = Bounds { claimed: bound, launched: bound };
        for (reached, why) in [
            (Phase::Claimed, Some("what its connectors need was not there within 0 s")),
            (Phase::Launched, Some("none of its connectors said anything within 0 s")),
            (Phase::Running, None),
        ] {
            let (_tell, phase) = tokio::sync::watch::channel(reached);
            assert_eq!(late(phase, bounds).await.as_deref(), why);
        }
        // Without a bound there is nothing to be late for.
        let (tell, phase) = tokio::sync::watch::channel(Phase::Claimed);
        let mut waits = tokio::spawn(late(phase, Bounds { claimed: None, launched: None }));
        assert!(timeout(Duration::from_millis(50), &mut waits).await.is_err());
        tell.send_replace(Phase::Running);
        assert_eq!(waits.await.unwrap(), None);
    }
}
