//! Ends an attempt from outside, at any moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::process::wire::Stop;

/// One for each attempt; copies are the same.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_cancelled: AtomicBool,
    stops: Mutex<Vec<Stop>>,
    told: Notify,
}

impl Cancel {
    /// Nobody cancelled yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The attempt is to end now. Its connectors are asked to, then made to.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        for stop in self.0.stops.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            stop.stop();
        }
        self.0.told.notify_waiters();
    }

    /// Waits until somebody cancels.
    pub(crate) async fn cancelled(&self) {
        // From here on it is told, also of what comes before it waits.
        let told = self.0.told.notified();
        if !self.is_cancelled() {
            told.await;
        }
    }

    /// Whether somebody has cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// What is stopped by a cancel, the one that happened already included.
    pub(crate) fn stops(&self, stop: &Stop) {
        self.0.stops.lock().unwrap_or_else(PoisonError::into_inner).push(stop.clone());
        if self.is_cancelled() {
            stop.stop();
        }
    }
}
