//! Why the gateway could not pass on a request, or what it was answered with.

use windlass_partition::Overloaded;
use windlass_partition::request::Refused;
use windlass_record::bound::Bound;
use windlass_record::rejection::Rejection;

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// It was refused; nothing changed.
    #[error("{0}")]
    Rejected(Rejection),
    /// It did not get in: too much is waiting. Nothing changed.
    #[error("too many requests: {max} {bound} are waiting, try again later")]
    Overloaded {
        /// Which limit.
        bound: Bound,
        /// Its value.
        max: u64,
    },
    /// The server is about to end; nothing changed.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The partition stopped: whether the request happened is not known.
    #[error("the partition has stopped")]
    Stopped,
}

impl GatewayError {
    /// A stable name for machines, as rejections have one.
    pub fn code(&self) -> &'static str {
        match self {
            GatewayError::Rejected(rejection) => rejection.code(),
            GatewayError::Overloaded { .. } => "overloaded",
            GatewayError::ShuttingDown => "shutting-down",
            GatewayError::Stopped => "stopped",
        }
    }

    /// The limit that was met, and its value.
    pub fn bound(&self) -> Option<(Bound, u64)> {
        match self {
            GatewayError::Rejected(rejection) => rejection.bound(),
            GatewayError::Overloaded { bound, max } => Some((*bound, *max)),
            GatewayError::ShuttingDown | GatewayError::Stopped => None,
        }
    }
}

impl From<Rejection> for GatewayError {
    fn from(rejection: Rejection) -> GatewayError {
        GatewayError::Rejected(rejection)
    }
}

impl From<Refused> for GatewayError {
    fn from(refused: Refused) -> GatewayError {
        match refused {
            Refused::Rejected(rejection) => GatewayError::Rejected(rejection),
            Refused::Stopped => GatewayError::Stopped,
        }
    }
}

impl From<Overloaded> for GatewayError {
    fn from(overloaded: Overloaded) -> GatewayError {
        match overloaded {
            Overloaded::Full { bound, max } => GatewayError::Overloaded { bound, max },
            Overloaded::Stopped => GatewayError::Stopped,
        }
    }
}
