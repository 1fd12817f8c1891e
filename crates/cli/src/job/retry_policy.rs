//! What follows a failure, in the words of a command line.

use windlass_worker::v1::{self, retry_policy::Policy};

use crate::units::{duration, millis};

/// The words of all policies, for help.
pub(super) const HELP: &str = "\
When a failed attempt is tried again: fixed:TIME, linear:TIME[,CAP], exponential:TIME[,BASE[,CAP]], or
attempts:TIME[,BASE[,CAP]]; otherwise at once, or when the worker says. More parts by name: jitter=TIME,
cap=TIME, base=N, scale=N (linear), from-start (exponential: the delay counts from the start of the attempt),
complete=N/N and partial=N/N (attempts: how many failures in a row and in all, without progress and with it,
end the job; 5/10 and 1000/20 when left out)";

/// Parts that a policy may have beside its delay; what is not said has its default.
#[derive(Default)]
struct Parts {
    base: Option<u32>,
    cap_ms: Option<u64>,
    jitter_ms: Option<u64>,
    scale: Option<u32>,
    from_start: bool,
    complete: Option<(u32, u32)>,
    partial: Option<(u32, u32)>,
}

/// Reads for instance `exponential:1s,2,5m,jitter=200ms`.
pub(super) fn parse(text: &str) -> Result<v1::RetryPolicy, String> {
    let (kind, rest) = text.split_once(':').ok_or("expected for instance exponential:1s,2,5m")?;
    // What may stand without its name, in order, and what may be said at all.
    let (in_order, known): (&[&str], &[&str]) = match kind {
        "fixed" => (&[], &["jitter"]),
        "linear" => (&["cap"], &["cap", "jitter", "scale"]),
        "exponential" => (&["base", "cap"], &["base", "cap", "jitter", "from-start"]),
        "attempts" => (&["base", "cap"], &["base", "cap", "complete", "partial"]),
        _ => return Err(format!("{kind:?} is not fixed, linear, exponential or attempts")),
    };
    let mut words = rest.split(',');
    let delay_ms = millis(duration(words.next().unwrap_or_default())?);
    let (mut parts, mut in_order) = (Parts::default(), in_order.iter());
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some(named) => named,
            None if word == "from-start" => (word, ""),
            None => (*in_order.next().ok_or(format!("{word:?} is one part too many"))?, word),
        };
        if !known.contains(&name) {
            return Err(format!("{kind} has no {name}: it has {}", known.join(", ")));
        }
        parts.set(name, value)?;
    }
    Ok(v1::RetryPolicy { policy: Some(parts.policy(kind, delay_ms)) })
}

impl Parts {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        let both = |text: &str| {
            let (in_a_row, in_all) = text.split_once('/').ok_or("expected for instance 5/10")?;
            Ok::<_, String>((number(in_a_row)?, number(in_all)?))
        };
        match name {
            "base" => self.base = Some(number(value)?),
            "scale" => self.scale = Some(number(value)?),
            "cap" => self.cap_ms = Some(millis(duration(value)?)),
            "jitter" => self.jitter_ms = Some(millis(duration(value)?)),
            "complete" => self.complete = Some(both(value)?),
            "partial" => self.partial = Some(both(value)?),
            _ => self.from_start = true,
        }
        Ok(())
    }

    fn policy(&self, kind: &str, delay_ms: u64) -> Policy {
        use v1::retry_policy::{Attempts, Exponential, Fixed, Linear};
        let (cap_ms, jitter_ms) = (self.cap_ms.unwrap_or(0), self.jitter_ms.unwrap_or(0));
        match kind {
            "fixed" => Policy::Fixed(Fixed { delay_ms, jitter_ms }),
            "linear" => {
                let scale = self.scale.unwrap_or(1);
                Policy::Linear(Linear { delay_ms, scale, cap_ms, jitter_ms })
            }
            "attempts" => {
                let (complete_successive_max, complete_total_max) =
                    self.complete.unwrap_or((5, 10));
                let (partial_successive_max, partial_total_max) =
                    self.partial.unwrap_or((1_000, 20));
                Policy::Attempts(Attempts {
                    complete_successive_max,
                    complete_total_max,
                    partial_successive_max,
                    partial_total_max,
                    delay_ms,
                    base: self.base.unwrap_or(3),
                    cap_ms,
                })
            }
            _ => {
                let (base, from_start) = (self.base.unwrap_or(2), self.from_start);
                Policy::Exponential(Exponential { delay_ms, base, cap_ms, jitter_ms, from_start })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_policies_are_read() {
        use v1::retry_policy::{Attempts, Exponential, Fixed, Linear};
        let airbyte = Attempts {
            complete_successive_max: 5,
            complete_total_max: 10,
            partial_successive_max: 1_000,
            partial_total_max: 20,
            delay_ms: 10_000,
            base: 3,
            cap_ms: 1_800_000,
        };
        let exponential =
            Exponential { delay_ms: 1_000, base: 3, cap_ms: 300_000, ..Default::default() };
        for (text, expected) in [
            ("fixed:250ms", Policy::Fixed(Fixed { delay_ms: 250, jitter_ms: 0 })),
            ("fixed:1s,jitter=2s", Policy::Fixed(Fixed { delay_ms: 1_000, jitter_ms: 2_000 })),
            (
                "linear:1s,1m,scale=2",
                Policy::Linear(Linear { delay_ms: 1_000, scale: 2, cap_ms: 60_000, jitter_ms: 0 }),
            ),
            ("exponential:1s,3,5m", Policy::Exponential(exponential)),
            (
                "exponential:1s,cap=5m,base=3,jitter=1s,from-start",
                Policy::Exponential(Exponential {
                    jitter_ms: 1_000,
                    from_start: true,
                    ..exponential
                }),
            ),
            ("attempts:10s,3,30m", Policy::Attempts(airbyte)),
            (
                "attempts:10s,cap=30m,complete=1/2,partial=3/4",
                Policy::Attempts(Attempts {
                    complete_successive_max: 1,
                    complete_total_max: 2,
                    partial_successive_max: 3,
                    partial_total_max: 4,
                    ..airbyte
                }),
            ),
        ] {
            assert_eq!(parse(text).map(|read| read.policy), Ok(Some(expected)), "{text}");
        }
        for text in [
            "fixed",
            "never:1s",
            "fixed:1s,2",
            "fixed:1s,base=2",
            "exponential:1s,x",
            "exponential:1s,2,5m,1s",
            "linear:",
            "attempts:1s,complete=5",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
