//! Tables of what is committed when.

use serde_json::{Value, json};

use super::*;
use crate::protocol::catalog::Mapping;

fn ledger(names: &[&str]) -> Ledger {
    ledger_from(names, &[])
}

fn ledger_from(names: &[&str], state: &[&str]) -> Ledger {
    let streams = names.iter().map(|name| {
        json!({"stream": {"name": name, "json_schema": {}}, "sync_mode": "incremental",
               "destination_sync_mode": "append"})
    });
    let catalog = json!({ "streams": streams.collect::<Vec<_>>() });
    let mapping = Mapping { prefix: "p_".to_owned(), ..Mapping::default() };
    let catalog = Catalog::new(&catalog, &mapping).unwrap();
    let state: Vec<Arc<str>> = state.iter().map(|text| Arc::from(*text)).collect();
    Ledger::new(Arc::new(catalog), &state).unwrap()
}

fn state(stream: &str, cursor: u64) -> String {
    json!({"type": "STREAM", "stream": {"stream_descriptor": {"name": stream},
           "stream_state": {"cursor": cursor}}})
    .to_string()
}

fn send(ledger: &mut Ledger, records: &[u64], state: &str) -> Value {
    let mut tallies: Vec<Tally> = records
        .iter()
        .map(|count| Tally { records: *count, bytes: count * 10, filtered: 0 })
        .collect();
    ledger.count(&mut tallies);
    let line: Value = serde_json::from_str(&ledger.sent(state).unwrap()).unwrap();
    line["state"].clone()
}

fn without_id(state: &Value) -> String {
    let mut state = state.clone();
    state.as_object_mut().unwrap().remove("id");
    state.to_string()
}

fn committed(ledger: &Ledger) -> Vec<u64> {
    ledger.accounts.iter().map(|account| account.stats.records_committed).collect()
}

#[test]
fn an_acknowledgement_implies_those_before_it_in_its_stream() {
    let mut ledger = ledger(&["a", "b"]);
    let _ = send(&mut ledger, &[5, 0], &state("a", 1));
    let b = send(&mut ledger, &[0, 7], &state("b", 1));
    let a = send(&mut ledger, &[3, 0], &state("a", 2));
    assert_eq!(a["stream"]["stream_descriptor"]["name"], "p_a");
    assert_eq!(a["sourceStats"]["recordCount"], 3.0);
    assert_eq!(ledger.acknowledged(&a.to_string()).unwrap(), Acknowledged::New);
    assert_eq!(committed(&ledger), [8, 0]);
    let commit = ledger.take_commit().unwrap();
    assert_eq!((commit.sequence, commit.state_json()), (1, format!("[{}]", state("a", 2))));
    assert!(ledger.take_commit().is_none());
    assert_eq!(ledger.acknowledged(&b.to_string()).unwrap(), Acknowledged::New);
    assert_eq!(committed(&ledger), [8, 7]);
    assert_eq!(ledger.take_commit().unwrap().state.len(), 2);
}

#[test]
fn a_second_copy_and_an_unknown_state_change_nothing() {
    let mut ledger = ledger(&["a"]);
    let first = send(&mut ledger, &[5], &state("a", 1));
    let _ = send(&mut ledger, &[5], &state("a", 2));
    for text in [first.to_string(), without_id(&first)] {
        let expected =
            if committed(&ledger) == [0] { Acknowledged::New } else { Acknowledged::Again };
        assert_eq!(ledger.acknowledged(&text).unwrap(), expected);
        assert_eq!(ledger.acknowledged(&text).unwrap(), Acknowledged::Again);
        assert_eq!(committed(&ledger), [5]);
    }
    for unknown in [state("p_a", 9), state("a", 2), state("z", 1)] {
        assert_eq!(ledger.acknowledged(&unknown).unwrap(), Acknowledged::Unknown, "{unknown}");
    }
    assert!(ledger.acknowledged("{\"type\":\"STREAM\"}").is_err());
    assert_eq!(committed(&ledger), [5]);
}

#[test]
fn without_ids_states_are_matched_by_meaning() {
    let mut ledger = ledger(&["a"]);
    let text = r#"{"type":"STREAM","stream":{"stream_descriptor":{"name":"a","namespace":null},"stream_state":{"x":1.50,"y":"z"}}}"#;
    let _ = send(&mut ledger, &[4], text);
    let echoed = r#"{"stream":{"stream_state":{"y":"z","x":1.5},"stream_descriptor":{"name":"p_a"}},"type":"STREAM","destinationStats":{"recordCount":3.0,"rejectedRecordCount":1.0}}"#;
    assert_eq!(ledger.acknowledged(echoed).unwrap(), Acknowledged::New);
    let stats = &ledger.stats()[0];
    assert_eq!((stats.records_committed, stats.records_rejected), (3, 1));
    assert_eq!(ledger.checksums().destination_compared, 1);
    assert_eq!(ledger.checksums().destination_mismatched, 0);
    // As the source wrote it, not as the destination does.
    assert!(ledger.state()[0].contains("1.50"));
}

/// Two states that mean the same, and a destination that says everything twice and loses ids.
#[test]
fn where_it_is_not_clear_too_little_is_committed() {
    let mut ledger = ledger(&["a"]);
    let same = send(&mut ledger, &[5], &state("a", 1));
    let _ = send(&mut ledger, &[5], &state("a", 1));
    let last = send(&mut ledger, &[5], &state("a", 2));
    let same = without_id(&same);
    assert_eq!(ledger.acknowledged(&same).unwrap(), Acknowledged::New);
    assert_eq!(ledger.acknowledged(&same).unwrap(), Acknowledged::Again);
    assert_eq!(committed(&ledger), [5]);
    assert_eq!(ledger.acknowledged(&without_id(&last)).unwrap(), Acknowledged::New);
    assert_eq!(committed(&ledger), [15]);
}

#[test]
fn states_out_of_order_do_not_go_back() {
    let mut ledger = ledger(&["a"]);
    let one = send(&mut ledger, &[1], &state("a", 1));
    let two = send(&mut ledger, &[1], &state("a", 2));
    assert_eq!(ledger.acknowledged(&two.to_string()).unwrap(), Acknowledged::New);
    assert_eq!(ledger.acknowledged(&one.to_string()).unwrap(), Acknowledged::Again);
    assert_eq!(&*ledger.state()[0], state("a", 2));
    assert_eq!(committed(&ledger), [2]);
}

#[test]
fn global_and_legacy_states_are_the_whole() {
    let global = |cursor: u64| {
        json!({"type": "GLOBAL", "global": {"shared_state": cursor, "stream_states": []}})
            .to_string()
    };
    let mut ledger = ledger_from(&["a", "b"], &[&state("a", 1)]);
    let sent = send(&mut ledger, &[2, 3], &global(1));
    assert_eq!(sent["sourceStats"]["recordCount"], 5.0);
    assert_eq!(ledger.acknowledged(&without_id(&sent)).unwrap(), Acknowledged::New);
    assert_eq!(committed(&ledger), [2, 3]);
    assert_eq!(ledger.take_commit().unwrap().state_json(), format!("[{}]", global(1)));
    let mixed = ledger.sent(&state("a", 1));
    assert!(matches!(mixed, Err(StateRefused::Mixed { before: "GLOBAL", now: "STREAM" })));
    assert!(ledger.missing().is_empty());

    let mut legacy = ledger_from(&["a"], &[]);
    let sent = send(&mut legacy, &[2], r#"{"data":{"cursor":1}}"#);
    assert_eq!(legacy.acknowledged(&sent.to_string()).unwrap(), Acknowledged::New);
    assert_eq!(legacy.take_commit().unwrap().state_json(), r#"[{"data":{"cursor":1}}]"#);
}

#[test]
fn a_null_state_takes_the_stream_out() {
    let mut ledger = ledger_from(&["a", "b"], &[&state("a", 1), &state("gone", 7)]);
    let reset =
        r#"{"type":"STREAM","stream":{"stream_descriptor":{"name":"a"},"stream_state":null}}"#;
    let sent = send(&mut ledger, &[0, 0], reset);
    assert_eq!(ledger.acknowledged(&sent.to_string()).unwrap(), Acknowledged::New);
    // A stream that is not synced keeps what it has.
    assert_eq!(ledger.take_commit().unwrap().state_json(), format!("[{}]", state("gone", 7)));
}

#[test]
fn a_full_queue_merges_and_never_commits_too_much() {
    let mut ledger = ledger(&["a"]);
    let first = send(&mut ledger, &[1], &state("a", 1));
    let mut last = Value::Null;
    for cursor in 0..STATES_WAITING_MAX as u64 {
        last = send(&mut ledger, &[1], &state("a", cursor + 2));
    }
    assert_eq!(ledger.acknowledged(&first.to_string()).unwrap(), Acknowledged::Unknown);
    assert_eq!(committed(&ledger), [0]);
    assert_eq!(ledger.acknowledged(&last.to_string()).unwrap(), Acknowledged::New);
    assert_eq!(committed(&ledger), [STATES_WAITING_MAX as u64 + 1]);
    assert_eq!(ledger.bodies_bytes, 0);
}

#[test]
fn estimates_of_both_kinds_are_not_believed() {
    let mut ledger = ledger(&["a"]);
    let estimate = |kind: &str| Estimate {
        name: "a".to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        row_estimate: Some(10.0),
        byte_estimate: None,
    };
    ledger.estimated(&estimate("STREAM"));
    assert_eq!(ledger.stats()[0].estimated_records, Some(10));
    ledger.estimated(&estimate("SYNC"));
    ledger.estimated(&estimate("STREAM"));
    assert_eq!((ledger.stats()[0].estimated_records, ledger.progress().estimate), (None, None));
}

#[test]
fn a_stream_is_complete_when_its_last_state_is_back() {
    let mut ledger = ledger(&["a"]);
    let sent = send(&mut ledger, &[1], &state("a", 1));
    let status = |text: &str| -> StreamStatus { serde_json::from_str(text).unwrap() };
    assert!(
        !ledger.stream_status(&status(r#"{"stream_descriptor":{"name":"x"},"status":"COMPLETE"}"#))
    );
    assert!(
        ledger.stream_status(&status(r#"{"stream_descriptor":{"name":"a"},"status":"COMPLETE"}"#))
    );
    assert_eq!(ledger.stats()[0].status, StreamState::Running);
    let _ = ledger.acknowledged(&sent.to_string()).unwrap();
    assert_eq!(ledger.stats()[0].status, StreamState::Complete);
}
