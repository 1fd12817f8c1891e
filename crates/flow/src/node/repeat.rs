//! Multi-instances: an element around its instances, one per item of a collection.
//!
//! Instances are entered a bounded number per step, so that ten thousand of them are many frames.
//! Each result is an event of its own; the collection is written when all are in.

use std::collections::BTreeMap;

use windlass_record::bound::Bound;
use windlass_record::flow::{ElementEntered, FlowEvent, FlowIncidentKind, Key};

use crate::feel::{Decimal, Scope, Value};
use crate::graph::{Repeat, Text};
use crate::kernel::active::end_children;
use crate::kernel::expression::View;
use crate::kernel::job::no_front;
use crate::kernel::{FAN_OUT_MAX, Port, STEP_BYTES_MAX, Stuck, expression, variables, waits};
use crate::state::element::{Loop, Phase};

/// Enters the element around the instances.
pub(crate) fn begin<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, id, scope) = (element.graph.clone(), element.node, element.scope);
    let node = graph.node(id);
    let Some(repeat) = &node.repeat else { return Ok(()) };
    let failed = |problem| Stuck::new(FlowIncidentKind::ExtractValue, problem);
    let collection =
        expression::evaluate(port, &repeat.input_collection, scope, &no_front()).map_err(failed)?;
    let Value::List(list) = &collection else {
        let message =
            format!("the input collection must be a list, but it is {}", collection.to_json());
        return Err(Stuck::new(FlowIncidentKind::ExtractValue, message));
    };
    let max = port.bounds().loop_items_max;
    if list.len() > usize::try_from(max).unwrap_or(usize::MAX) {
        let what = format!("the input collection has {} items", list.len());
        let (kind, bound) = (FlowIncidentKind::MessageSize, Bound::LoopItems);
        return Err(Stuck::past(kind, what, bound, max));
    }
    let items: Vec<_> = list.iter().map(|item| item.to_json().into()).collect();
    let nulls = vec!["null"; items.len()].join(",");
    let waits = waits::prepare(port, key, &node.boundaries)?;
    port.emit(FlowEvent::ElementActivated { key });
    waits::open(port, key, waits);
    if !repeat.output_collection.is_empty() {
        variables::set(
            port,
            key,
            &[(repeat.output_collection.clone(), format!("[{nulls}]").into())],
        );
    }
    port.emit(FlowEvent::LoopStarted { element: key, items: items.into() });
    Ok(())
}

/// Enters the next instances, or ends the loop.
pub(crate) fn go_on<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, id) = (element.graph.clone(), element.node);
    let (Some(repeat), Some(looped)) = (&graph.node(id).repeat, &element.looped) else {
        return Ok(());
    };
    if looped.satisfied {
        if end_children(port, key) {
            port.emit(FlowEvent::ElementCompleting { key });
        }
        return Ok(());
    }
    let total = u32::try_from(looped.items.len()).unwrap_or(u32::MAX);
    let running = element.children.len();
    if looped.entered >= total {
        if running == 0 {
            port.emit(FlowEvent::ElementCompleting { key });
        }
        return Ok(());
    }
    let room = match (repeat.sequential, running) {
        (true, 0) => 1,
        (true, _) => 0,
        (false, _) => FAN_OUT_MAX,
    };
    let first = looped.entered;
    let items: Vec<(u32, Text)> =
        (first..total).zip(items_from(&looped.items, first)).take(room).collect();
    let entered = first + u32::try_from(items.len()).unwrap_or(0);
    for (index, item) in items {
        enter_instance(port, key, repeat, index, item);
    }
    if !repeat.sequential && entered < total {
        port.emit(FlowEvent::ElementQueued { key });
    }
    Ok(())
}

/// The next items: as many as one step may write, at least one.
fn items_from(items: &[Text], first: u32) -> Vec<Text> {
    let first = usize::try_from(first).unwrap_or(usize::MAX);
    let mut bytes: usize = 0;
    let fits = |item: &&Text| {
        let before = bytes;
        bytes = bytes.saturating_add(item.len());
        before == 0 || bytes <= STEP_BYTES_MAX
    };
    items.iter().skip(first).take(FAN_OUT_MAX).take_while(fits).cloned().collect()
}

fn enter_instance<P: Port>(port: &mut P, scope: Key, repeat: &Repeat, index: u32, item: Text) {
    let key = port.next_key();
    let node = port.state().live(scope).node.0;
    let loop_counter = index + 1;
    port.emit(FlowEvent::ElementEntered(ElementEntered {
        key,
        scope,
        node,
        loop_counter,
        begin_at: None,
    }));
    let mut own = vec![(Text::from("loopCounter"), Text::from(loop_counter.to_string()))];
    if !repeat.input_element.is_empty() {
        own.push((repeat.input_element.clone(), item));
    }
    // A result that is a plain variable is the instance's own, so that it does not leak.
    if let Some(name) = repeat.output_element.as_ref().and_then(|output| output.as_variable())
        && own.iter().all(|(other, _)| **other != *name)
    {
        own.push((name.into(), "null".into()));
    }
    variables::set(port, key, &own);
}

/// One instance is done.
pub(crate) fn collect<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, id, scope) = (element.graph.clone(), element.node, element.scope);
    let index = element.loop_counter - 1;
    let Some(repeat) = &graph.node(id).repeat else { return Ok(()) };
    let failed = |problem| Stuck::new(FlowIncidentKind::ExtractValue, problem);
    let result = match &repeat.output_element {
        Some(output) if !repeat.output_collection.is_empty() => {
            expression::evaluate(port, output, key, &no_front()).map_err(failed)?.to_json()
        }
        Some(_) | None => String::new(),
    };
    let max = port.bounds().variable_bytes_max;
    let before = port.state().live(scope).looped.as_ref().map_or(0, |looped| looped.bytes);
    if before.saturating_add(result.len()) > max {
        let (kind, bound) = (FlowIncidentKind::MessageSize, Bound::VariableBytes);
        return Err(Stuck::past(kind, "the results of the multi-instance", bound, max));
    }
    let satisfied = match &repeat.completion_condition {
        Some(condition) => {
            let front = counts(port, scope);
            let view = LoopView {
                view: View { state: port.state(), scope: key, front: &front },
                looped: port.state().live(scope).looped.as_deref(),
                output_collection: &repeat.output_collection,
                index: usize::try_from(index).unwrap_or(usize::MAX),
                result: &result,
            };
            expression::condition_in(port, condition, key, &view).map_err(failed)?
        }
        None => false,
    };
    waits::close(port, key);
    super::compensate::keep(port, key);
    port.emit(FlowEvent::LoopCollected { element: scope, index, value: &result });
    port.emit(FlowEvent::ElementCompleted { key });
    let outer = port.state().live(scope);
    if outer.phase != Phase::Active {
        return Ok(());
    }
    if satisfied {
        port.emit(FlowEvent::LoopSatisfied { element: scope });
    } else if outer.children.is_empty() {
        port.emit(FlowEvent::ElementQueued { key: scope });
    }
    Ok(())
}

/// What the completion condition may know of its loop, this instance being done.
fn counts<P: Port>(port: &P, scope: Key) -> BTreeMap<Text, Value> {
    let element = port.state().live(scope);
    let Some(looped) = &element.looped else { return BTreeMap::new() };
    let count = |number: usize| Value::Number(Decimal::from(number));
    let collected = usize::try_from(looped.collected).unwrap_or(usize::MAX);
    let entered = usize::try_from(looped.entered).unwrap_or(usize::MAX);
    let active = element.children.len().saturating_sub(1);
    let completed = collected.saturating_add(1);
    let terminated = entered.saturating_sub(completed).saturating_sub(active);
    BTreeMap::from([
        ("numberOfInstances".into(), count(looped.items.len())),
        ("numberOfActiveInstances".into(), count(active)),
        ("numberOfCompletedInstances".into(), count(completed)),
        ("numberOfTerminatedInstances".into(), count(terminated)),
    ])
}

/// All are done: what they gave goes to the surrounding scope.
pub(crate) fn publish<P: Port>(port: &mut P, key: Key) {
    let element = port.state().live(key);
    let (graph, id, scope) = (element.graph.clone(), element.node, element.scope);
    let (Some(repeat), Some(looped)) = (&graph.node(id).repeat, &element.looped) else { return };
    if repeat.output_collection.is_empty() {
        return;
    }
    let list = looped.json(None);
    variables::merge(port, scope, &[(repeat.output_collection.clone(), list.into())]);
}

/// What a completion condition sees: counts of the loop and its results, this one with them.
struct LoopView<'a> {
    view: View<'a>,
    looped: Option<&'a Loop>,
    output_collection: &'a str,
    index: usize,
    result: &'a str,
}

impl Scope for LoopView<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        match self.looped {
            Some(looped) if !name.is_empty() && name == self.output_collection => {
                Value::from_json(&looped.json(Some((self.index, self.result)))).ok()
            }
            Some(_) | None => self.view.get(name),
        }
    }
}
