//! The graph of requirements: circles in it, and the order in which it is evaluated.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::model::Definitions;

/// The first decision found on a circle, with the ids along it.
pub(super) fn decision_cycle(definitions: &Definitions) -> Option<(usize, Vec<String>)> {
    let edges: Vec<Vec<usize>> = definitions
        .decisions
        .iter()
        .map(|own| positions(&own.required_decisions, &definitions.decision_by_id))
        .collect();
    let circle = cycle(&edges)?;
    let ids = circle.iter().filter_map(|position| definitions.decisions.get(*position));
    Some((*circle.first()?, ids.map(|own| own.id.clone()).collect()))
}

/// The first knowledge model found on a circle, with the ids along it.
pub(super) fn knowledge_cycle(definitions: &Definitions) -> Option<(usize, Vec<String>)> {
    let edges: Vec<Vec<usize>> = definitions
        .knowledge
        .iter()
        .map(|own| positions(&own.required_knowledge, &definitions.knowledge_by_id))
        .collect();
    let circle = cycle(&edges)?;
    let ids = circle.iter().filter_map(|position| definitions.knowledge.get(*position));
    Some((*circle.first()?, ids.map(|own| own.id.clone()).collect()))
}

/// The decisions that must be made for one of them, which comes last, each after those it
/// requires. The graph has no circle.
pub(super) fn order(definitions: &Definitions, target: usize) -> Vec<usize> {
    let mut ordered = Vec::new();
    let mut is_open = vec![false; definitions.decisions.len()];
    let mut path = vec![(target, 0_usize)];
    mark(&mut is_open, target);
    while let Some((current, next)) = path.last_mut() {
        let required = definitions
            .decisions
            .get(*current)
            .and_then(|own| own.required_decisions.get(*next))
            .and_then(|id| definitions.decision_by_id.get(id).copied());
        let Some(required) = required else {
            ordered.push(*current);
            path.pop();
            continue;
        };
        *next = next.saturating_add(1);
        if mark(&mut is_open, required) {
            path.push((required, 0));
        }
    }
    ordered
}

fn mark(marks: &mut [bool], position: usize) -> bool {
    marks.get_mut(position).is_some_and(|mark| !std::mem::replace(mark, true))
}

fn positions(ids: &[String], by_id: &HashMap<String, usize, FxBuildHasher>) -> Vec<usize> {
    ids.iter().filter_map(|id| by_id.get(id).copied()).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Never,
    Open,
    Done,
}

/// A walk in depth without recursion. The circle's first position is also its last.
fn cycle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut visits = vec![Visit::Never; edges.len()];
    for start in 0..edges.len() {
        if visits.get(start) != Some(&Visit::Never) {
            continue;
        }
        let mut path = vec![(start, 0_usize)];
        set(&mut visits, start, Visit::Open);
        while let Some((current, next)) = path.last_mut() {
            let Some(target) = edges.get(*current).and_then(|own| own.get(*next)).copied() else {
                set(&mut visits, *current, Visit::Done);
                path.pop();
                continue;
            };
            *next = next.saturating_add(1);
            match visits.get(target) {
                Some(Visit::Never) => {
                    set(&mut visits, target, Visit::Open);
                    path.push((target, 0));
                }
                Some(Visit::Open) => {
                    let along = path.iter().map(|(position, _)| *position);
                    let mut circle: Vec<usize> =
                        along.skip_while(|position| *position != target).collect();
                    circle.push(target);
                    return Some(circle);
                }
                Some(Visit::Done) | None => {}
            }
        }
    }
    None
}

fn set(visits: &mut [Visit], position: usize, visit: Visit) {
    if let Some(slot) = visits.get_mut(position) {
        *slot = visit;
    }
}
