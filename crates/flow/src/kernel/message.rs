//! Messages: a message reaches everybody who waits for it, but each process once; then it may
//! start instances; then, if it lives on, it is there for those who come later.

use windlass_record::flow::{FlowEvent, InstanceStarted, Key, SubscriptionKind};

use super::{FAN_OUT_MAX, Port, STEP_BYTES_MAX, active, variables};
use crate::graph::{NodeId, Text};
use crate::state::wait::Message;

/// Instances of one process that are started by messages with one correlation key follow one
/// another: tenant, process id, correlation key.
pub(crate) type Lock = (Text, Text, Text);

/// Lets a message reach whom it can, a bounded number at a time.
pub(super) fn deliver<P: Port>(port: &mut P, key: Key) {
    let Some(message) = port.state().messages.get(&key) else { return };
    let mut left = fan_out(message.variables.len());
    let payload = variables::split(message.variables.as_bytes()).unwrap_or_default();
    while left > 0 && reach_one(port, key, &payload).is_some() {
        left -= 1;
    }
    if left == 0 {
        port.emit(FlowEvent::MessageQueued { key });
        return;
    }
    let Some(message) = port.state().messages.get(&key) else { return };
    if message.until_ms <= port.now_ms() {
        port.emit(FlowEvent::MessageExpired { key });
    }
}

/// How many one step may give these bytes to.
pub(crate) fn fan_out(bytes: usize) -> usize {
    (STEP_BYTES_MAX / bytes.max(1)).clamp(1, FAN_OUT_MAX)
}

/// Lets a message reach one more with its variables; the instance that it reached.
pub(crate) fn reach_one<P: Port>(port: &mut P, key: Key, payload: &[(Text, Text)]) -> Option<Key> {
    let message = port.state().messages.get(&key)?;
    if let Some((element, node)) = waiting(port, message) {
        return Some(correlate(port, key, element, node, payload));
    }
    let (definition, node) = startable(port, message)?;
    let correlation_key = message.correlation_key.clone();
    let process_id = port.state().definitions.get(&definition)?.id.clone();
    let instance = start(port, definition, node, &correlation_key, payload);
    port.emit(FlowEvent::MessageCorrelated {
        message: key,
        process_id: &process_id,
        instance,
        element: Key::NONE,
    });
    Some(instance)
}

/// The first one who waits for the message and may have it.
fn waiting<P: Port>(port: &P, message: &Message) -> Option<(Key, NodeId)> {
    let state = port.state();
    let keys = state.topics.get(&(SubscriptionKind::Message, message.topic()))?;
    keys.iter().find_map(|key| {
        let subscription = state.subscriptions.get(key)?;
        let element = state.elements.get(&subscription.owner)?;
        let process_id = &state.definitions.get(&element.definition)?.id;
        let may = element.listens() && !message.reached.contains(process_id);
        may.then_some((subscription.owner, subscription.node))
    })
}

/// The first start event that the message may start.
fn startable<P: Port>(port: &P, message: &Message) -> Option<(Key, NodeId)> {
    let state = port.state();
    let topic = (message.tenant.clone(), message.name.clone(), Text::default());
    let keys = state.topics.get(&(SubscriptionKind::Message, topic))?;
    keys.iter().find_map(|key| {
        let subscription = state.subscriptions.get(key)?;
        let definition = state.definitions.get(&subscription.owner)?;
        let lock = (message.tenant.clone(), definition.id.clone(), message.correlation_key.clone());
        let is_free = message.correlation_key.is_empty() || !state.started_by.contains_key(&lock);
        let may = is_free && !message.reached.contains(&definition.id);
        may.then_some((subscription.owner, subscription.node))
    })
}

fn correlate<P: Port>(
    port: &mut P,
    message: Key,
    element: Key,
    node: NodeId,
    payload: &[(Text, Text)],
) -> Key {
    let live = port.state().live(element);
    let (instance, definition) = (live.instance, live.definition);
    let process_id =
        port.state().definitions.get(&definition).map(|it| it.id.clone()).unwrap_or_default();
    port.emit(FlowEvent::MessageCorrelated { message, process_id: &process_id, instance, element });
    active::trigger(port, element, node, payload);
    instance
}

/// Starts an instance at an event.
pub(crate) fn start<P: Port>(
    port: &mut P,
    definition: Key,
    node: NodeId,
    started_by: &str,
    payload: &[(Text, Text)],
) -> Key {
    let key = port.next_key();
    port.emit(FlowEvent::InstanceStarted(InstanceStarted {
        key,
        definition,
        parent: Key::NONE,
        root: key,
        starts: vec![node.0].into(),
        business_id: "",
        tags: Vec::new().into(),
        awaited: false,
        started_by,
    }));
    active::trigger(port, key, node, payload);
    key
}

/// Somebody began to wait: the oldest message that is buffered for it.
pub(crate) fn take_buffered<P: Port>(port: &mut P, subscription: Key) {
    let state = port.state();
    let Some(waiting) = state.subscriptions.get(&subscription) else { return };
    let (owner, node) = (waiting.owner, waiting.node);
    let topic = (waiting.tenant.clone(), waiting.name.clone(), waiting.correlation_key.clone());
    let Some(element) = state.elements.get(&owner) else { return };
    let Some(definition) = state.definitions.get(&element.definition) else { return };
    if !element.listens() {
        return;
    }
    let found = state.buffered.get(&topic).and_then(|keys| {
        keys.iter().copied().find(|key| {
            state.messages.get(key).is_some_and(|message| {
                message.until_ms > port.now_ms() && !message.reached.contains(&definition.id)
            })
        })
    });
    if let Some(message) = found {
        let payload = state
            .messages
            .get(&message)
            .and_then(|message| variables::split(message.variables.as_bytes()).ok())
            .unwrap_or_default();
        correlate(port, message, owner, node, &payload);
    }
}

/// What an instance that was started by a message keeps others from.
pub(crate) fn lock_of<P: Port>(port: &P, instance: Key) -> Option<Lock> {
    let element = port.state().element(instance)?;
    let started_by = element.process.as_ref()?.started_by.clone();
    let definition = port.state().definition(element.definition)?;
    (!started_by.is_empty()).then(|| (definition.tenant.clone(), definition.id.clone(), started_by))
}

/// The instance is gone: a message that was held back may start the next one.
pub(crate) fn start_next<P: Port>(port: &mut P, (tenant, process_id, correlation_key): &Lock) {
    let state = port.state();
    let kind = windlass_record::flow::DefinitionKind::Process;
    let Some(definition) = state.latest(tenant, kind, process_id) else { return };
    let Some(starts) = state.starts.get(&definition) else { return };
    let next = starts.iter().find_map(|key| {
        let subscription = state.subscriptions.get(key)?;
        let topic = (tenant.clone(), subscription.name.clone(), correlation_key.clone());
        state.buffered.get(&topic)?.iter().copied().find(|key| {
            state.messages.get(key).is_some_and(|message| {
                message.until_ms > port.now_ms() && !message.reached.contains(process_id)
            })
        })
    });
    if let Some(key) = next {
        port.emit(FlowEvent::MessageQueued { key });
    }
}

/// Whether a message would reach anybody.
pub(crate) fn somebody_waits<P: Port>(
    port: &P,
    command: &windlass_record::flow::PublishMessage,
) -> bool {
    let message = Message {
        tenant: (&*command.tenant).into(),
        name: (&*command.name).into(),
        correlation_key: (&*command.correlation_key).into(),
        message_id: Text::default(),
        until_ms: 0,
        variables: Text::default(),
        reached: std::collections::BTreeSet::new(),
    };
    waiting(port, &message).is_some() || startable(port, &message).is_some()
}
