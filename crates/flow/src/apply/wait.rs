//! Timers, subscriptions and messages, and the indexes that find them.

use windlass_record::flow::{Key, MessagePublished, SubscriptionKind, SubscriptionOpened};

use crate::graph::{NodeId, Text};
use crate::state::image;
use crate::state::wait::{Message, Subscription, Timer};
use crate::state::{FlowState, Todo, Topic};

impl FlowState {
    pub(crate) fn link_timer(&mut self, key: Key, timer: Timer) {
        self.due.insert((timer.due_ms, key));
        self.link_wait(timer.owner, key);
        self.timers.insert(key, timer);
    }

    pub(super) fn link_wait(&mut self, owner: Key, key: Key) {
        match self.elements.get_mut(&owner) {
            Some(element) => {
                element.waits.insert(key);
            }
            None => {
                self.starts.entry(owner).or_default().insert(key);
            }
        }
    }

    pub(super) fn unlink_wait(&mut self, owner: Key, key: Key) {
        if let Some(element) = self.elements.get_mut(&owner) {
            element.waits.remove(&key);
        } else if let Some(waits) = self.starts.get_mut(&owner) {
            waits.remove(&key);
            if waits.is_empty() {
                self.starts.remove(&owner);
            }
        }
    }

    pub(super) fn timer_gone(&mut self, key: Key) {
        self.touch(image::TIMER, key);
        let Some(timer) = self.timers.remove(&key) else { return };
        self.due.remove(&(timer.due_ms, key));
        self.unlink_wait(timer.owner, key);
    }

    pub(super) fn subscription_opened(&mut self, opened: &SubscriptionOpened<'_>) {
        let tenant = self.tenant_of(opened.owner);
        let subscription = Subscription {
            owner: opened.owner,
            node: NodeId(opened.node),
            kind: opened.kind,
            tenant,
            name: opened.name.into(),
            correlation_key: opened.correlation_key.into(),
        };
        self.touch(image::SUBSCRIPTION, opened.key);
        self.link_subscription(opened.key, subscription);
    }

    /// The tenant of an element instance or a definition.
    pub(crate) fn tenant_of(&self, owner: Key) -> Text {
        let definition = self.elements.get(&owner).map_or(owner, |element| element.definition);
        self.definitions.get(&definition).map(|it| it.tenant.clone()).unwrap_or_default()
    }

    pub(crate) fn link_subscription(&mut self, key: Key, subscription: Subscription) {
        self.topics.entry(topic_of(&subscription)).or_default().insert(key);
        self.link_wait(subscription.owner, key);
        self.subscriptions.insert(key, subscription);
    }

    pub(super) fn subscription_closed(&mut self, key: Key) {
        self.touch(image::SUBSCRIPTION, key);
        let Some(subscription) = self.subscriptions.remove(&key) else { return };
        let topic = topic_of(&subscription);
        if let Some(keys) = self.topics.get_mut(&topic) {
            keys.remove(&key);
            if keys.is_empty() {
                self.topics.remove(&topic);
            }
        }
        self.unlink_wait(subscription.owner, key);
    }

    pub(super) fn message_published(&mut self, published: &MessagePublished<'_>) {
        let message = Message {
            tenant: published.tenant.into(),
            name: published.name.into(),
            correlation_key: published.correlation_key.into(),
            message_id: published.message_id.into(),
            until_ms: published.until_ms,
            variables: published.variables.into(),
            reached: std::collections::BTreeSet::new(),
        };
        self.touch(image::MESSAGE, published.key);
        self.link_message(published.key, message);
        self.queue(Todo::Message(published.key));
    }

    pub(crate) fn link_message(&mut self, key: Key, message: Message) {
        let topic = message.topic();
        if !message.message_id.is_empty() {
            self.message_ids.insert((topic.clone(), message.message_id.clone()), key);
        }
        if message.until_ms > 0 {
            self.expiring.insert((message.until_ms, key));
        }
        self.buffered.entry(topic).or_default().insert(key);
        self.messages.insert(key, message);
    }

    pub(super) fn message_expired(&mut self, key: Key) {
        self.touch(image::MESSAGE, key);
        let Some(message) = self.messages.remove(&key) else { return };
        let topic = message.topic();
        self.expiring.remove(&(message.until_ms, key));
        if let Some(keys) = self.buffered.get_mut(&topic) {
            keys.remove(&key);
            if keys.is_empty() {
                self.buffered.remove(&topic);
            }
        }
        if !message.message_id.is_empty() {
            self.message_ids.remove(&(topic, message.message_id));
        }
    }
}

impl Message {
    /// What it is found by.
    pub(crate) fn topic(&self) -> Topic {
        (self.tenant.clone(), self.name.clone(), self.correlation_key.clone())
    }
}

fn topic_of(subscription: &Subscription) -> (SubscriptionKind, Topic) {
    let topic = (
        subscription.tenant.clone(),
        subscription.name.clone(),
        subscription.correlation_key.clone(),
    );
    (subscription.kind, topic)
}
