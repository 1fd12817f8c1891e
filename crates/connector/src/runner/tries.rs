//! Something that is tried again until it works: the reason why it does not is told once, and again when it is another
//! one; pauses grow to a bound.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Between the first two tries.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// And between later ones.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How it goes.
#[derive(Debug)]
pub(crate) struct Tries {
    /// Since when it does not work, and the reason that was told last.
    missing: Option<(Instant, String)>,
    pause: Duration,
}

impl Tries {
    pub(crate) fn new() -> Tries {
        Tries { missing: None, pause: PAUSE_MIN }
    }

    /// It did not work: the reason, if it is to be told.
    pub(crate) fn missed(&mut self, reason: &impl Display) -> Option<String> {
        let reason = reason.to_string();
        match &mut self.missing {
            Some((_, told)) if *told == reason => None,
            Some((_, told)) => {
                told.clone_from(&reason);
                Some(reason)
            }
            None => {
                self.missing = Some((Instant::now(), reason.clone()));
                Some(reason)
            }
        }
    }

    /// For how long it has not worked.
    pub(crate) fn lasted(&self) -> Duration {
        self.missing.as_ref().map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }

    /// Until the next try.
    pub(crate) async fn pause(&mut self) {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// It works: for how long it has not, if that was told.
    pub(crate) fn worked(&mut self) -> Option<Duration> {
        self.pause = PAUSE_MIN;
        self.missing.take().map(|(since, _)| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_for_each_change() {
        let mut tries = Tries::new();
        assert_eq!(tries.worked(), None);
        let told: Vec<Option<String>> =
            ["away", "away", "full", "full", "away"].iter().map(|why| tries.missed(why)).collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(told, [some("away"), None, some("full"), None, some("away")]);
        assert!(tries.worked().is_some());
        assert_eq!((tries.worked(), tries.lasted()), (None, Duration::ZERO));
        assert_eq!(tries.missed(&"away"), some("away"), "it is another time");
    }
}
