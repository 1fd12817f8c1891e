//! What flows wait for: timers, messages, signals.

use std::collections::BTreeSet;

use windlass_record::flow::{Key, SubscriptionKind};

use crate::graph::{NodeId, Text};

/// A timer that runs.
#[derive(Debug)]
pub struct Timer {
    /// The element instance, or the definition whose start event it is.
    pub owner: Key,
    /// The node of the event.
    pub node: NodeId,
    /// When it fires.
    pub due_ms: u64,
    /// How often it fires after that; `None` is for ever.
    pub repetitions: Option<u32>,
}

/// Somebody who waits for a message or a signal.
#[derive(Debug)]
pub struct Subscription {
    /// The element instance, or the definition whose start event it is.
    pub owner: Key,
    /// The node of the event.
    pub node: NodeId,
    /// For what.
    pub kind: SubscriptionKind,
    /// The wall of security.
    pub tenant: Text,
    /// The name of the message or signal.
    pub name: Text,
    /// What a message is correlated by.
    pub correlation_key: Text,
}

/// A message that came and is buffered or still on its way.
#[derive(Debug)]
pub struct Message {
    /// The wall of security.
    pub tenant: Text,
    /// Its name.
    pub name: Text,
    /// What it is correlated by.
    pub correlation_key: Text,
    /// The publisher's id of it; may be empty.
    pub message_id: Text,
    /// Until when it is buffered; 0 is not at all.
    pub until_ms: u64,
    /// A JSON object.
    pub variables: Text,
    /// The processes that it reached, by id.
    pub reached: BTreeSet<Text>,
}

/// A signal on its way.
#[derive(Debug)]
pub struct Signal {
    /// The wall of security.
    pub tenant: Text,
    /// Its name.
    pub name: Text,
    /// A JSON object.
    pub variables: Text,
    /// The last subscription that it reached.
    pub through: Key,
}
