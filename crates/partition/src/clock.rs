//! Where time enters. The only file of the engine's side that may ask a clock.
//!
//! Engine time never goes back and does not jump: it is the last logged time plus monotonic time
//! elapsed, slewed towards the wall clock by at most a tenth. A forward step of the wall over five
//! seconds is followed at once, because due dates given by users follow the wall; the caller moves
//! lease deadlines along with it and raises an alarm. A backward step is worked off by slewing.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A forward step of the wall clock larger than this is followed at once.
pub const STEP_MS_MAX: u64 = 5_000;
/// Slewing gains or loses at most one part in this many.
const SLEW: u64 = 10;

/// What the clocks of the machine say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time since some fixed moment; never goes back.
    pub monotonic_us: u64,
    /// Milliseconds since the epoch, as the machine believes.
    pub wall_ms: u64,
}

/// Reads clocks.
pub trait ClockSource: Send + Sync {
    /// What they say now.
    fn read(&self) -> Reading;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock { start: Instant::now() }
    }
}

impl ClockSource for SystemClock {
    fn read(&self) -> Reading {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reading {
            monotonic_us: u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX),
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Engine time.
#[derive(Debug)]
pub struct EngineClock {
    now_us: u64,
    monotonic_us: u64,
}

/// The time of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Engine time (ms since the epoch).
    pub now_ms: u64,
    /// The wall clock jumped ahead by this since the last tick; leases must move by it.
    pub jumped_ms: Option<u64>,
}

impl EngineClock {
    /// Starts behind the last logged time, at the wall's if that is later: an outage passes.
    pub fn start(last_ms: u64, reading: Reading) -> EngineClock {
        EngineClock {
            now_us: last_ms.max(reading.wall_ms).saturating_mul(1000),
            monotonic_us: reading.monotonic_us,
        }
    }

    /// Engine time (ms since the epoch) at a moment after the last tick, whatever the wall says.
    pub fn at(&self, monotonic_us: u64) -> u64 {
        self.now_us.saturating_add(monotonic_us.saturating_sub(self.monotonic_us)) / 1000
    }

    /// The time now.
    pub fn tick(&mut self, reading: Reading) -> Tick {
        let elapsed_us = reading.monotonic_us.saturating_sub(self.monotonic_us);
        self.monotonic_us = self.monotonic_us.max(reading.monotonic_us);
        let straight_us = self.now_us.saturating_add(elapsed_us);
        let wall_us = reading.wall_ms.saturating_mul(1000);
        let slew_us_max = elapsed_us / SLEW;
        let ahead_us = wall_us.saturating_sub(straight_us);
        let mut jumped_ms = None;
        self.now_us = if ahead_us > STEP_MS_MAX * 1000 {
            jumped_ms = Some(ahead_us / 1000);
            wall_us
        } else if wall_us >= straight_us {
            straight_us + ahead_us.min(slew_us_max)
        } else {
            straight_us - (straight_us - wall_us).min(slew_us_max)
        };
        Tick { now_ms: self.now_us / 1000, jumped_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic_ms: u64, wall_ms: u64) -> Reading {
        Reading { monotonic_us: monotonic_ms * 1000, wall_ms }
    }

    #[test]
    fn follows_a_wall_that_agrees() {
        let mut clock = EngineClock::start(0, at(0, 1_000_000));
        assert_eq!(clock.tick(at(500, 1_000_500)), Tick { now_ms: 1_000_500, jumped_ms: None });
    }

    #[test]
    fn never_goes_back_when_the_wall_does() {
        let mut clock = EngineClock::start(0, at(0, 10_000_000));
        let tick = clock.tick(at(1000, 10_000_000 - 3_600_000));
        assert_eq!(tick, Tick { now_ms: 10_000_900, jumped_ms: None }, "a tenth slower");
        let mut last_ms = tick.now_ms;
        for second in 2..40_000 {
            let wall_ms = 10_000_000 - 3_600_000 + (second - 1) * 1000;
            let tick = clock.tick(at(second * 1000, wall_ms));
            assert!(tick.now_ms >= last_ms, "never back");
            last_ms = tick.now_ms;
        }
        assert_eq!(last_ms, 10_000_000 - 3_600_000 + 39_998_000, "it has caught up");
    }

    #[test]
    fn follows_a_step_ahead_and_says_by_how_much() {
        let mut clock = EngineClock::start(0, at(0, 1_000_000));
        let tick = clock.tick(at(10, 1_000_010 + 3_600_000));
        assert_eq!(tick, Tick { now_ms: 4_600_010, jumped_ms: Some(3_600_000) });
        let small = clock.tick(at(1010, 4_601_010 + 4_000));
        assert_eq!(small, Tick { now_ms: 4_601_110, jumped_ms: None }, "a tenth faster");
    }

    #[test]
    fn an_outage_passes_and_a_wall_set_back_meanwhile_does_not_matter() {
        let mut clock = EngineClock::start(5_000_000, at(0, 1_000_000));
        assert_eq!(clock.tick(at(100, 1_000_100)).now_ms, 5_000_090);
        let mut clock = EngineClock::start(5_000_000, at(0, 8_600_000));
        assert_eq!(clock.tick(at(0, 8_600_000)), Tick { now_ms: 8_600_000, jumped_ms: None });
    }
}
