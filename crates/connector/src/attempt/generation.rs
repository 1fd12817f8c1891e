//! What starts anew with a sync, and what goes on: generations.
//!
//! A generation is a number that grows when a stream is to be read from its beginning. The destination is told
//! the generation of each stream and the smallest that it is to keep; what is older it drops when the
//! stream is complete, not before.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::protocol::catalog::{Catalog, DestinationSyncMode, Stream, SyncMode};
use crate::protocol::message::Descriptor;
use crate::protocol::state::{Scope, State};

/// Generations of streams, by name.
pub type Generations = BTreeMap<Descriptor, u64>;

/// What an attempt is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// What is new.
    Sync,
    /// These streams from their beginning. With `truncate`, what is there is dropped in the end.
    Refresh {
        /// Which ones.
        streams: Vec<Descriptor>,
        /// Whether older generations are dropped.
        truncate: bool,
    },
    /// Nothing is to be left of the streams of the catalog.
    Clear,
}

/// Decides, for an attempt, which streams start anew: raises their generation and takes their state out.
/// `is_first` is the first attempt of a sync; later ones go on where that one was, but for full
/// refreshes that cannot.
pub fn begin(
    purpose: &Purpose,
    is_first: bool,
    catalog: &Catalog,
    generations: &mut Generations,
    state: &mut Vec<Arc<str>>,
) {
    if *purpose == Purpose::Clear && is_first {
        // One state of all streams cannot be gone on with once some of them are empty.
        let of_one = |element: &Arc<str>| {
            State::read(element).is_ok_and(|state| matches!(state.scope, Scope::Stream(_)))
        };
        state.retain(of_one);
    }
    for stream in &catalog.streams {
        let generation = generations.entry(stream.descriptor.clone()).or_insert(0);
        if starts_anew(purpose, is_first, stream) {
            *generation += 1;
            let name = &stream.descriptor;
            state.retain(|element| !is_about(element, name));
        }
    }
}

fn starts_anew(purpose: &Purpose, is_first: bool, stream: &Stream) -> bool {
    let is_full = stream.sync_mode == SyncMode::FullRefresh;
    if !is_first {
        return is_full && !stream.is_resumable && *purpose != Purpose::Clear;
    }
    match purpose {
        Purpose::Sync => is_full,
        Purpose::Refresh { streams, .. } => is_full || streams.contains(&stream.descriptor),
        Purpose::Clear => true,
    }
}

fn is_about(element: &str, name: &Descriptor) -> bool {
    match State::read(element).map(|state| state.scope) {
        Ok(Scope::Stream(stream)) => stream == *name,
        Ok(Scope::Global | Scope::Legacy) | Err(_) => false,
    }
}

/// The catalog with the generations in it, and the number of the sync.
#[must_use]
pub fn stamp(
    purpose: &Purpose,
    catalog: &Value,
    read: &Catalog,
    generations: &Generations,
    sync_id: u64,
) -> Value {
    let mut catalog = catalog.clone();
    let streams = catalog.get_mut("streams").and_then(Value::as_array_mut);
    for (value, stream) in streams.into_iter().flatten().zip(&read.streams) {
        let Some(object) = value.as_object_mut() else { continue };
        let generation = generations.get(&stream.descriptor).copied().unwrap_or(0);
        let minimum = if drops_older(purpose, stream) { generation } else { 0 };
        object.insert("generation_id".to_owned(), json!(generation));
        object.insert("minimum_generation_id".to_owned(), json!(minimum));
        object.insert("sync_id".to_owned(), json!(sync_id));
        if *purpose == Purpose::Clear {
            object.insert("sync_mode".to_owned(), json!("full_refresh"));
            object.insert("destination_sync_mode".to_owned(), json!("overwrite"));
        }
    }
    catalog
}

fn drops_older(purpose: &Purpose, stream: &Stream) -> bool {
    // A full refresh that deduplicates does so within its generation.
    let overwrites = matches!(
        stream.destination_sync_mode,
        DestinationSyncMode::Overwrite
            | DestinationSyncMode::OverwriteDedup
            | DestinationSyncMode::AppendDedup
    );
    match purpose {
        Purpose::Clear => true,
        Purpose::Refresh { streams, truncate: true } if streams.contains(&stream.descriptor) => {
            true
        }
        Purpose::Sync | Purpose::Refresh { .. } => {
            overwrites && stream.sync_mode == SyncMode::FullRefresh
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::catalog::Mapping;

    fn catalog() -> Value {
        let stream = |name: &str, mode: &str, to: &str, is_resumable: bool| {
            json!({"stream": {"name": name, "is_resumable": is_resumable}, "sync_mode": mode,
                   "destination_sync_mode": to})
        };
        json!({"streams": [
            stream("inc", "incremental", "append", true),
            stream("full", "full_refresh", "overwrite", false),
            stream("resumes", "full_refresh", "overwrite", true),
        ]})
    }

    fn state(name: &str) -> Arc<str> {
        Arc::from(
            json!({"type": "STREAM", "stream": {"stream_descriptor": {"name": name}}}).to_string(),
        )
    }

    /// Generation after, whether the state is still there, the smallest generation that is kept.
    fn check(purpose: &Purpose, is_first: bool, expected: [(u64, bool, u64); 3]) {
        let raw = catalog();
        let read = Catalog::new(&raw, &Mapping::default()).unwrap();
        let names = ["inc", "full", "resumes"];
        let mut generations: Generations =
            names.iter().map(|name| (Descriptor::new(name, ""), 4)).collect();
        let mut kept: Vec<Arc<str>> = names.iter().map(|name| state(name)).collect();
        begin(purpose, is_first, &read, &mut generations, &mut kept);
        let stamped = stamp(purpose, &raw, &read, &generations, 9);
        for (index, name) in names.iter().enumerate() {
            let got = (
                generations[&Descriptor::new(name, "")],
                kept.contains(&state(name)),
                stamped["streams"][index]["minimum_generation_id"].as_u64().unwrap(),
            );
            assert_eq!(got, expected[index], "{purpose:?} first: {is_first} {name}");
            assert_eq!(stamped["streams"][index]["sync_id"], 9);
        }
    }

    #[test]
    fn a_full_refresh_deduplicates_within_its_generation() {
        for (mode, to, drops) in [
            ("full_refresh", "append_dedup", true),
            ("full_refresh", "append", false),
            ("incremental", "append_dedup", false),
        ] {
            let raw = json!({"streams": [{"stream": {"name": "s"}, "sync_mode": mode,
                "destination_sync_mode": to}]});
            let read = Catalog::new(&raw, &Mapping::default()).unwrap();
            assert_eq!(drops_older(&Purpose::Sync, &read.streams[0]), drops, "{mode} {to}");
        }
    }

    #[test]
    fn what_starts_anew() {
        check(&Purpose::Sync, true, [(4, true, 0), (5, false, 5), (5, false, 5)]);
        check(&Purpose::Sync, false, [(4, true, 0), (5, false, 5), (4, true, 4)]);
        let streams = vec![Descriptor::new("inc", "")];
        let refresh = |truncate| Purpose::Refresh { streams: streams.clone(), truncate };
        check(&refresh(true), true, [(5, false, 5), (5, false, 5), (5, false, 5)]);
        check(&refresh(false), true, [(5, false, 0), (5, false, 5), (5, false, 5)]);
        check(&refresh(true), false, [(4, true, 4), (5, false, 5), (4, true, 4)]);
        check(&Purpose::Clear, true, [(5, false, 5), (5, false, 5), (5, false, 5)]);
        check(&Purpose::Clear, false, [(4, true, 4), (4, true, 4), (4, true, 4)]);
    }
}
