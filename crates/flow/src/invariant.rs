//! What always holds about flows, by number. Tests and the simulator check it after each step.
//!
//! - F1 An element instance stands in a live scope of the same process instance, or is a process
//!   instance itself, and its scope knows it.
//! - F2 Whatever is active waits for something, or stands on the to-do list: no token is lost.
//! - F3 What is entering, completing or terminating stands on the to-do list, waits for a listener's
//!   job or for what it ends, or waits in an incident.
//! - F4 Timers and subscriptions belong to a live element instance or a definition, which knows them.
//! - F5 Jobs, incidents and user tasks belong to live element instances, which know them.
//! - F7 What is about to happen to a user task waits for a listener's job, stands on the to-do list,
//!   waits in an incident, or is about to be ended.
//! - F6 A called instance knows its call activity, and is known by it.

use std::collections::BTreeSet;

use windlass_record::flow::{JobRole, Key};

use crate::node::compensate;
use crate::state::element::{Element, Phase};
use crate::state::{FlowState, Todo};

/// Checks all of them; says which one does not hold and where.
pub fn check(state: &FlowState) -> Result<(), String> {
    let todo: BTreeSet<Todo> = state.todo.iter().copied().collect();
    crate::conductor::invariant::check(&state.workflows, &todo)?;
    for (key, element) in &state.elements {
        check_place(state, *key, element)?;
        check_progress(state, *key, element, &todo)?;
        check_links(state, *key, element)?;
    }
    for (key, owner) in state
        .timers
        .iter()
        .map(|(key, timer)| (key, timer.owner))
        .chain(state.subscriptions.iter().map(|(key, subscription)| (key, subscription.owner)))
    {
        let known = match (state.elements.get(&owner), state.starts.get(&owner)) {
            (Some(element), _) => element.waits.contains(key),
            (None, Some(starts)) => starts.contains(key) && state.definitions.contains_key(&owner),
            (None, None) => false,
        };
        if !known {
            return Err(format!("F4: {owner} does not know what it waits for: {key}"));
        }
    }
    for (job, element) in &state.jobs {
        let known = state.elements.get(element).and_then(|element| element.job);
        if known.map(|(job, _)| job) != Some(*job) {
            return Err(format!("F5: job {job} is not that of element instance {element}"));
        }
    }
    for (key, incident) in &state.incidents {
        let known = state.elements.get(&incident.element).and_then(|element| element.incident);
        if known != Some(*key) {
            return Err(format!("F5: incident {key} is not that of its element instance"));
        }
    }
    for (key, task) in &state.user_tasks {
        let known = state.elements.get(&task.element).and_then(|element| element.user_task);
        if known != Some(*key) {
            return Err(format!("F5: user task {key} is not that of its element instance"));
        }
    }
    check_transitions(state, &todo)
}

/// F7.
fn check_transitions(state: &FlowState, todo: &BTreeSet<Todo>) -> Result<(), String> {
    for (key, transition) in &state.transitions {
        let task = state.user_tasks.get(key).and_then(|task| state.elements.get(&task.element));
        let Some(element) = task else {
            return Err(format!("F7: user task {key} is gone and about to change"));
        };
        let is_asked = element.job.is_some_and(|(_, role)| role == transition.event.role());
        let is_queued = todo.contains(&Todo::Element(transition.task.element));
        let ends = !transition.is_canceling() && ends_soon(state, element);
        if !is_asked && !is_queued && element.incident.is_none() && !ends {
            return Err(format!("F7: what was about to happen to user task {key} is forgotten"));
        }
    }
    Ok(())
}

fn check_place(state: &FlowState, key: Key, element: &Element) -> Result<(), String> {
    if let Some(process) = &element.process {
        if element.scope != Key::NONE || element.instance != key {
            return Err(format!("F1: process instance {key} stands in a scope"));
        }
        if process.parent != Key::NONE {
            let called = state.elements.get(&process.parent).and_then(|parent| parent.called);
            if called != Some(key) {
                return Err(format!("F6: the call activity of {key} does not know it"));
            }
        }
        return Ok(());
    }
    match state.elements.get(&element.scope) {
        Some(scope) if scope.instance == element.instance && scope.children.contains(&key) => {
            Ok(())
        }
        Some(_) => Err(format!("F1: the scope of {key} does not know it")),
        None => Err(format!("F1: the scope of {key} is gone")),
    }
}

fn check_progress(
    state: &FlowState,
    key: Key,
    element: &Element,
    todo: &BTreeSet<Todo>,
) -> Result<(), String> {
    let is_queued = todo.contains(&Todo::Element(key)) || element.incident.is_some();
    let runs = !element.children.is_empty() || element.called.is_some();
    match element.phase {
        Phase::Entering | Phase::Completing if !is_queued && element.job.is_none() => {
            Err(format!("F3: {key} ({}) is forgotten on its way", element.node().id))
        }
        Phase::Terminating if !is_queued && !runs && !is_held_up(element) => {
            Err(format!("F3: {key} ({}) is never ended", element.node().id))
        }
        Phase::Active => {
            let waits = element.job.is_some()
                || element.user_task.is_some()
                || !element.waits.is_empty()
                || !element.parked.is_empty()
                || compensate::waits_for_handlers(state, key);
            // What threw an error waits for the end that the error brings to its scope.
            let ends_soon = ends_soon(state, element);
            if is_queued || runs || waits || ends_soon {
                Ok(())
            } else {
                Err(format!("F2: {key} ({}) waits for nothing", element.node().id))
            }
        }
        Phase::Entering | Phase::Completing | Phase::Terminating => Ok(()),
    }
}

/// Whether the listeners of a user task are asked before it ends.
fn is_held_up(element: &Element) -> bool {
    element.job.is_some_and(|(_, role)| role == JobRole::CancelingListener)
}

/// Whether an element instance or a scope around it is about to be ended by an event.
fn ends_soon(state: &FlowState, element: &Element) -> bool {
    let mut at = Some(element);
    while let Some(element) = at {
        if element.phase == Phase::Terminating || !element.triggered.is_empty() {
            return true;
        }
        let outer = element.process.as_ref().map_or(element.scope, |process| process.parent);
        at = state.elements.get(&outer);
    }
    false
}

fn check_links(state: &FlowState, key: Key, element: &Element) -> Result<(), String> {
    if let Some((job, _)) = element.job
        && state.jobs.get(&job) != Some(&key)
    {
        return Err(format!("F5: job {job} of {key} is not known"));
    }
    if let Some(incident) = element.incident
        && !state.incidents.contains_key(&incident)
    {
        return Err(format!("F5: incident {incident} of {key} is not known"));
    }
    for wait in &element.waits {
        if !state.timers.contains_key(wait) && !state.subscriptions.contains_key(wait) {
            return Err(format!("F4: {wait} of {key} is not known"));
        }
    }
    Ok(())
}
