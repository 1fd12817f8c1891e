//! The clocks of the simulated machine. They only move when the simulation says so, and they lie
//! when a fault says so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_partition::clock::{ClockSource, Reading};

/// Where the wall clock begins: some day in 2027.
const START_MS: u64 = 1_800_000_000_000;

/// A handle on the clocks; clones are handles on the same ones.
#[derive(Debug, Clone)]
pub struct SimClock {
    hands: Arc<Mutex<Hands>>,
}

#[derive(Debug)]
struct Hands {
    monotonic_us: u64,
    wall_us: u64,
    /// What passed while the clocks were frozen.
    owed_us: Option<u64>,
}

impl Default for SimClock {
    fn default() -> SimClock {
        let hands = Hands { monotonic_us: 0, wall_us: START_MS * 1000, owed_us: None };
        SimClock { hands: Arc::new(Mutex::new(hands)) }
    }
}

impl ClockSource for SimClock {
    fn read(&self) -> Reading {
        let hands = self.hands();
        Reading { monotonic_us: hands.monotonic_us, wall_ms: hands.wall_us / 1000 }
    }
}

impl SimClock {
    /// Time passes.
    pub fn advance(&self, us: u64) {
        let hands = &mut *self.hands();
        match &mut hands.owed_us {
            Some(owed_us) => *owed_us += us,
            None => {
                hands.monotonic_us += us;
                hands.wall_us += us;
            }
        }
    }

    /// Somebody sets the wall clock.
    pub fn step_wall(&self, by_ms: i64) {
        let hands = &mut *self.hands();
        hands.wall_us = hands.wall_us.saturating_add_signed(by_ms.saturating_mul(1000));
    }

    /// The monotonic clock jumps, the wall clock does not.
    pub fn jump_monotonic(&self, by_ms: u64) {
        self.hands().monotonic_us += by_ms * 1000;
    }

    /// The machine was off: both clocks went on, and the monotonic one begins anew.
    pub fn outage(&self, for_ms: u64) {
        let hands = &mut *self.hands();
        hands.wall_us += for_ms * 1000;
        hands.monotonic_us = 0;
        hands.owed_us = None;
    }

    /// Both clocks stand still until [`SimClock::thaw`].
    pub fn freeze(&self) {
        self.hands().owed_us.get_or_insert(0);
    }

    /// Both clocks show again what has passed.
    pub fn thaw(&self) {
        let owed_us = self.hands().owed_us.take();
        self.advance(owed_us.unwrap_or(0));
    }

    /// Whether they stand still.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.hands().owed_us.is_some()
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        // Nothing under this lock can panic half way.
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
