//! Connectors that behave badly, one test for each way, with what must come of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Case, catalog, first_message};
use serde_json::{Value, json};
use windlass_connector::attempt::Steps;
use windlass_connector::process::{Command, Side};
use windlass_connector::protocol::catalog::{Mapping, NamespaceRule};
use windlass_connector::protocol::message::Descriptor;
use windlass_connector::summary::StreamState;
use windlass_connector::{FailureType, Origin, Status};

fn source(mode: &str) -> Value {
    json!({"mode": mode, "count": 10})
}

fn destination(mode: &str) -> Value {
    json!({ "mode": mode })
}

fn plain() -> Value {
    json!({})
}

#[test]
fn a_plain_sync_arrives_and_is_counted() {
    let mut case = Case::new(json!({"count": 1_003, "state_every": 10, "pad": 100}), plain());
    case.catalog = catalog(&["a", "b"], "incremental", "append");
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed);
    assert_eq!((summary.records_emitted, summary.records_committed), (2_006, 2_006));
    assert_eq!(case.rows(), 2_006);
    let cursor = |index: usize| summary.state[index]["stream"]["stream_state"]["cursor"].clone();
    assert_eq!((cursor(0), cursor(1)), (json!(1_000), json!(1_000)));
    assert!(summary.streams.iter().all(|stream| stream.status == StreamState::Complete));
    assert_eq!((summary.source_exit_code, summary.destination_exit_code), (Some(0), Some(0)));
    let last = case.memory.last();
    assert_eq!(last.streams.iter().map(|stream| stream.records_committed).sum::<u64>(), 2_000);
    let sequences: Vec<u64> =
        case.memory.commits.lock().unwrap().iter().map(|commit| commit.sequence).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_state_is_gone_on_from() {
    let mut case = Case::new(json!({"count": 100}), plain());
    let state = json!({"type": "STREAM", "stream": {"stream_descriptor": {"name": "a"},
        "stream_state": {"cursor": 90}}});
    case.state = vec![Arc::from(state.to_string())];
    let summary = case.run();
    assert_eq!((summary.status, summary.records_emitted), (Status::Completed, 10));
    assert_eq!(case.query("SELECT min(id), count(*) FROM rows"), json!([[90, 10]]));
}

#[test]
fn what_is_no_message_is_logged_and_never_forwarded() {
    let case = Case::new(source("bad_json"), json!({"keep_lines": true}));
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!((summary.records_emitted, case.rows()), (10, 10));
    let kinds = case.query("SELECT DISTINCT json_extract(line, '$.type') FROM lines ORDER BY 1");
    assert_eq!(kinds, json!([["RECORD"], ["STATE"], ["TRACE"]]));
    for part in ["hello, I am no JSON", "[1, 2, 3]", "NEW_KIND", "bytes", "a state is left out"] {
        assert!(case.memory.logged(part) > 0, "{part}");
    }
}

#[test]
fn every_spelling_arrives_as_it_was_written() {
    let case = Case::new(source("spellings"), json!({"keep_lines": true}));
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!((summary.records_emitted, summary.streams[0].records_filtered), (3, 2));
    let lines = case.query("SELECT line FROM lines");
    assert_eq!(
        lines[1][0],
        "{\"record\":{\"emitted_at\":1,\"data\":{\"id\":2},\"new\":{\"a\":[1]},\"stream\":\"a\"},\
         \"type\":\"RECORD\",\"later\":true}\n"
    );
    let state: Value = serde_json::from_str(lines[3][0].as_str().unwrap()).unwrap();
    assert_eq!(state["state"]["id"], 1);
    assert_eq!(state["state"]["new"], json!([1]));
    assert!(lines[3][0].as_str().unwrap().contains("1.50"));
    assert_eq!(summary.checksums.source_mismatched, 0, "{:?}", summary.checksums);
    assert_eq!(summary.state[0]["new"], json!([1]));
}

#[test]
fn a_record_of_an_unknown_stream_fails_the_attempt() {
    let case = Case::new(source("unknown_stream"), plain());
    let summary = case.run();
    assert_eq!(summary.status, Status::Failed);
    assert!(first_message(&summary).contains("nobody_asked"), "{}", first_message(&summary));
    assert_eq!(summary.failures[0].failure_origin, Origin::Source);
    // What came before is in the destination, and committed.
    assert_eq!((case.rows(), summary.records_committed), (10, 10));
    assert!(summary.partial_success && !summary.permanent);
    let summary = Case::new(source("unknown_complete"), plain()).run();
    assert!(first_message(&summary).contains("nobody_asked"));
}

/// It ends with 0 all the same: older generations must stay.
#[test]
fn a_stream_that_is_incomplete_fails_the_attempt() {
    let case = Case::new(source("incomplete"), json!({"keep_lines": true}));
    let summary = case.run();
    assert_eq!((summary.status, summary.source_exit_code), (Status::Failed, Some(0)));
    assert!(first_message(&summary).contains("the stream a is incomplete"));
    assert_eq!(case.query("SELECT count(*) FROM lines WHERE line LIKE '%TRACE%'"), json!([[0]]));
    assert_eq!(summary.records_committed, 10);
    let again = Case::new(json!({"mode": "incomplete", "again": true}), plain()).run();
    assert_eq!(again.status, Status::Completed);
}

#[test]
fn a_line_of_100_mb_passes() {
    let case = Case::new(json!({"mode": "long_line", "bytes": 100_000_000}), plain());
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!(case.query("SELECT length(data) > 100000000 FROM rows"), json!([[1]]));
}

#[test]
fn a_line_over_the_limit_fails_and_names_the_side() {
    let mut case = Case::new(json!({"mode": "long_line", "bytes": 5_000_000}), plain());
    case.limits.line_bytes_max = 4 << 20;
    let summary = case.run();
    assert_eq!(summary.status, Status::Failed);
    assert_eq!(
        first_message(&summary),
        "the source wrote a line of more than 4 MiB, which is the limit"
    );
    let mut case = Case::new(source("plain"), json!({"mode": "long_line", "bytes": 5_000_000}));
    case.limits.line_bytes_max = 4 << 20;
    let summary = case.run();
    assert!(first_message(&summary).starts_with("the destination wrote a line"));
}

#[test]
fn a_hanging_source_is_blamed_and_ended() {
    for mode in ["hang", "stubborn"] {
        let mut case = Case::new(source(mode), plain());
        case.limits.source_silence_max = Duration::from_millis(3_000);
        let began = Instant::now();
        let summary = case.run();
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(summary.status, Status::Failed);
        assert_eq!(summary.failures[0].failure_type, FailureType::HeartbeatTimeout);
        assert!(first_message(&summary).starts_with("the source hangs"));
        assert_eq!(summary.failures.len(), 1, "{:?}", summary.failures);
        // The destination could finish what it had.
        assert_eq!((case.rows(), summary.records_committed), (10, 10));
    }
}

#[test]
fn a_source_that_closes_its_output_and_stays_is_ended() {
    let summary = Case::new(source("hang_closed"), plain()).run();
    assert_eq!(summary.status, Status::Failed);
    assert!(first_message(&summary).contains("closed its output, but did not end"));
}

#[test]
fn a_hanging_destination_is_blamed_and_ended() {
    let large = json!({"count": 40_000, "pad": 1_000});
    for (mode, part) in
        [("hang", "took nothing"), ("hang_at_end", "said nothing"), ("closed_hang", "did not end")]
    {
        let mut case = Case::new(large.clone(), destination(mode));
        case.limits.destination_silence_max = Duration::from_millis(4_000);
        // A source is silent while nobody takes anything: that is not its fault.
        case.limits.source_silence_max = Duration::from_millis(3_000);
        if mode != "hang" {
            case.source.as_mut().unwrap().config = source("plain");
        }
        let summary = case.run();
        assert_eq!(summary.status, Status::Failed);
        assert_eq!(
            summary.failures[0].failure_origin,
            Origin::Destination,
            "{:?}",
            summary.failures
        );
        assert!(first_message(&summary).contains(part), "{mode}: {}", first_message(&summary));
    }
}

#[test]
fn what_forks_and_leaves_is_found_and_ended() {
    let began = Instant::now();
    let case = Case::new(source("fork_and_leave"), plain());
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!(case.rows(), 10);
    let summary = Case::new(source("plain"), destination("fork_and_leave")).run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// The source has long ended while a slow destination still takes what stands in the pipe.
#[test]
fn a_slow_destination_is_given_everything() {
    let config = json!({"delay_s": 0.01});
    let case = Case::new(json!({"count": 220, "state_every": 1, "pad": 10_000}), config);
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!((summary.records_committed, case.rows()), (220, 220));
}

/// It threw its environment away, too: it cannot be found, but nobody waits for it.
#[test]
fn who_cannot_be_found_holds_nothing_up() {
    let began = Instant::now();
    let config = json!({"mode": "fork_and_leave", "scrub": true, "sleep_s": 20});
    let summary = Case::new(config, plain()).run();
    assert_eq!(summary.status, Status::Failed);
    assert!(first_message(&summary).contains("left behind"), "{:?}", summary.failures);
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn exit_codes_in_words() {
    let cases = [
        (json!({"mode": "exit_with", "code": 137}), "out of memory"),
        (json!({"mode": "kill_self", "signal": 9}), "out of memory"),
        (json!({"mode": "kill_self", "signal": 11}), "signal 11"),
        (json!({"mode": "exit_with", "code": 143}), "exit code 143"),
        (json!({"mode": "exit_with", "code": 2}), "command line"),
        (json!({"mode": "exit_with", "code": 1}), "exit code 1"),
    ];
    for (config, part) in cases {
        let case = Case::new(config, json!({"keep_lines": true}));
        let summary = case.run();
        assert_eq!(summary.status, Status::Failed);
        assert!(first_message(&summary).contains(part), "{part}: {}", first_message(&summary));
        assert_eq!(summary.failures[0].failure_origin, Origin::Source);
        assert_eq!((case.rows(), summary.records_committed), (10, 10));
        // The destination is not told that a stream is complete: what is older stays.
        assert_eq!(
            case.query("SELECT count(*) FROM lines WHERE line LIKE '%TRACE%'"),
            json!([[0]])
        );
    }
    let summary = Case::new(source("plain"), json!({"mode": "exit_with", "code": 137})).run();
    assert!(first_message(&summary).starts_with("the destination was killed"));
    assert_eq!((summary.status, summary.destination_exit_code), (Status::Failed, Some(137)));
}

#[test]
fn the_end_of_standard_error_is_in_the_failure() {
    let summary = Case::new(json!({"mode": "exit_with", "code": 7}), plain()).run();
    assert_eq!(summary.failures[0].internal_message.as_deref(), Some("the last words"));
}

#[test]
fn a_program_that_is_missing_says_so() {
    let mut case = Case::new(plain(), plain());
    case.source.as_mut().unwrap().command = Command::local(vec!["/nowhere/at-all".to_owned()]);
    let summary = case.run();
    assert!(first_message(&summary).contains("could not be started"), "{:?}", summary.failures);
    assert!(summary.failures[0].internal_message.as_ref().unwrap().contains("/nowhere/at-all"));
}

#[test]
fn a_limit_of_memory_holds_and_is_named() {
    let mut case = Case::new(source("eat_memory"), plain());
    case.limits.memory_bytes_max = Some(200 << 20);
    let summary = case.run();
    assert!(first_message(&summary).contains("out of memory"), "{:?}", summary.failures);
}

#[test]
fn error_traces_become_failures_with_their_type() {
    let cases = [
        ("config_error", FailureType::ConfigError, true),
        ("transient_error", FailureType::TransientError, false),
        ("system_error", FailureType::SystemError, false),
        ("something_new", FailureType::SystemError, false),
    ];
    for (kind, expected, permanent) in cases {
        let summary = Case::new(json!({"mode": "error_trace", "failures": [kind]}), plain()).run();
        assert_eq!(summary.status, Status::Failed);
        assert_eq!(summary.failures.len(), 2);
        assert_eq!(summary.failures[0].failure_type, expected);
        assert_eq!(summary.failures[0].external_message, format!("it is {kind}"));
        assert_eq!(summary.failures[0].stacktrace.as_deref(), Some("at 1"));
        assert_eq!(summary.permanent, permanent, "{kind}");
    }
    // A trace alone does not fail: the exit code does.
    let config = json!({"mode": "error_trace", "failures": ["system_error"], "code": 0});
    let alone = Case::new(config, plain()).attempt();
    assert_eq!((alone.status, alone.failures.len()), (Status::Completed, 1));
    let many = json!({"mode": "error_trace", "failures": vec!["system_error"; 50]});
    let many = Case::new(many, plain()).run();
    assert_eq!(many.failures.len(), 11);
}

#[test]
fn states_out_of_order_are_committed_in_the_order_they_came() {
    let summary = Case::new(source("out_of_order"), plain()).run();
    assert_eq!(summary.status, Status::Completed);
    assert_eq!(summary.state[0]["stream"]["stream_state"]["cursor"], 2);
}

#[test]
fn acknowledgements_of_all_kinds() {
    // How a destination gives states back, and what is committed behind the last commit.
    let cases = [
        ("ack_none", 0),
        ("ack_unwrapped", 0),
        ("ack_twice", 10),
        ("ack_without_id", 10),
        ("ack_twice_without_id", 10),
        ("ack_renormalised", 10),
        ("ack_unknown", 10),
        ("noise", 10),
    ];
    for (mode, committed) in cases {
        let case = Case::new(json!({"count": 10, "state_every": 2}), destination(mode));
        let summary = case.run();
        assert_eq!(summary.status, Status::Completed, "{mode}: {:?}", summary.failures);
        // It ended well: everything is there, acknowledged or not.
        assert_eq!(summary.records_committed, 10, "{mode}");
        let last = case.memory.last();
        let by_state: u64 = last.streams.iter().map(|stream| stream.records_committed).sum();
        assert_eq!(by_state, committed, "{mode}");
    }
}

#[test]
fn acknowledgements_in_reverse_commit_the_newest_once() {
    let case = Case::new(json!({"count": 9, "state_every": 3}), destination("ack_reversed"));
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed);
    let commits = case.memory.commits.lock().unwrap();
    assert_eq!(commits.len(), 1);
    assert!(commits[0].state_json().contains("\"cursor\":9"));
    assert_eq!(commits[0].streams[0].records_committed, 9);
}

/// Without any acknowledgement a failed attempt has committed nothing.
#[test]
fn what_was_not_acknowledged_is_not_committed() {
    for mode in ["ack_none", "ack_unwrapped"] {
        let case = Case::new(json!({"mode": "exit_with", "code": 1}), destination(mode));
        let summary = case.run();
        assert_eq!((summary.status, summary.records_committed), (Status::Failed, 0));
        assert!(summary.state.is_empty() && !summary.partial_success);
    }
}

#[test]
fn a_source_that_closes_its_output_early_ends_as_its_exit_code_says() {
    let summary = Case::new(source("close_early"), plain()).run();
    assert_eq!((summary.status, summary.records_committed), (Status::Completed, 10));
}

#[test]
fn a_destination_that_dies_half_way() {
    let large = json!({"count": 5_000, "state_every": 100, "pad": 500});
    for (config, part) in [
        (json!({"mode": "die", "after": 2_050}), "exit code 1"),
        (json!({"mode": "kill_self", "after": 2_050}), "out of memory"),
    ] {
        let case = Case::new(large.clone(), config);
        let summary = case.run();
        assert_eq!(summary.status, Status::Failed);
        assert_eq!(
            summary.failures[0].failure_origin,
            Origin::Destination,
            "{:?}",
            summary.failures
        );
        assert!(first_message(&summary).contains(part), "{:?}", summary.failures);
        assert_eq!(summary.records_committed, 2_000);
        assert_eq!(summary.state[0]["stream"]["stream_state"]["cursor"], 2_000);
        assert!(case.rows() >= 2_000);
    }
}

/// It ended with 0 before it was given everything: that is no success.
#[test]
fn a_destination_that_leaves_early_has_failed() {
    let large = json!({"count": 20_000, "pad": 500});
    for config in [json!({"mode": "die", "after": 100, "code": 0}), destination("close_input")] {
        let summary = Case::new(large.clone(), config).run();
        assert_eq!(summary.status, Status::Failed);
        assert_eq!(
            summary.failures[0].failure_origin,
            Origin::Destination,
            "{:?}",
            summary.failures
        );
    }
}

#[test]
fn streams_without_states_get_one_and_are_acknowledged() {
    let mut case = Case::new(source("no_state"), plain());
    case.catalog = catalog(&["a", "b"], "full_refresh", "append");
    let summary = case.run();
    assert_eq!((summary.status, summary.records_committed), (Status::Completed, 20));
    let last = case.memory.last();
    assert_eq!(last.streams.iter().map(|stream| stream.records_committed).sum::<u64>(), 20);
    assert_eq!(summary.state[1]["stream"]["stream_state"], json!({}));
}

/// A source with nothing new says nothing: its state stays, and no empty one takes its place.
#[test]
fn a_stream_with_nothing_new_keeps_its_state() {
    let mut case = Case::new(json!({"count": 10}), plain());
    let state = json!({"type": "STREAM", "stream": {"stream_descriptor": {"name": "a"},
        "stream_state": {"cursor": 10}}});
    case.state = vec![Arc::from(state.to_string())];
    let summary = case.run();
    assert_eq!((summary.status, summary.records_emitted), (Status::Completed, 0));
    assert_eq!(summary.state, [state]);
    assert_eq!(case.memory.last().sequence, 0, "there was nothing to commit");
}

#[test]
fn mixed_states_are_an_error() {
    let summary = Case::new(source("mixed_states"), plain()).run();
    assert_eq!(summary.status, Status::Failed);
    assert!(first_message(&summary).contains("type GLOBAL after one of type STREAM"));
}

#[test]
fn global_and_legacy_states() {
    for mode in ["plain", "ack_without_id", "ack_renormalised"] {
        let mut case = Case::new(source("global_states"), destination(mode));
        case.catalog = catalog(&["a", "b"], "incremental", "append");
        let summary = case.run();
        assert_eq!(summary.status, Status::Completed);
        assert_eq!(summary.state.len(), 1);
        assert_eq!(summary.state[0]["global"]["shared_state"]["n"], 9);
        let last = case.memory.last();
        assert_eq!(last.streams.iter().map(|s| s.records_committed).sum::<u64>(), 20, "{mode}");
        let summary = Case::new(source("legacy_states"), destination(mode)).run();
        assert_eq!(summary.state, vec![json!({"data": {"n": 1}})], "{mode}");
    }
}

#[test]
fn a_new_configuration_is_kept_at_once() {
    let case = Case::new(source("control"), plain());
    assert_eq!(case.run().status, Status::Completed);
    let kept = case.memory.configurations.lock().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].0, Side::Source);
    assert!(kept[0].1.contains("rotated"));
}

#[test]
fn a_record_without_its_key_fails_where_it_is_deduplicated() {
    let mut case = Case::new(source("without_key"), plain());
    assert_eq!(case.run().status, Status::Completed);
    case.catalog = catalog(&["a"], "incremental", "append_dedup");
    let summary = case.run();
    assert_eq!(summary.status, Status::Failed);
    assert!(first_message(&summary).contains("primary key"));
    assert_eq!(summary.failures[0].stream_descriptor, Some(Descriptor::new("a", "")));
}

#[test]
fn wrong_types_warn_once_for_each_field() {
    let case = Case::new(source("wrong_types"), plain());
    assert_eq!(case.run().status, Status::Completed);
    assert_eq!(case.memory.logged("the field id is string"), 1);
    assert_eq!(case.memory.logged("the field text is number"), 1);
}

#[test]
fn names_and_fields_are_mapped_and_states_mapped_back() {
    let mut case = Case::new(source("estimates"), plain());
    let rule = NamespaceRule::Custom("into".to_owned());
    case.mapping = Mapping { namespace: rule, prefix: "p_".to_owned() };
    case.selected = vec![(Descriptor::new("a", ""), vec!["id".to_owned()])];
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!(case.query("SELECT DISTINCT stream FROM rows"), json!([["p_a"]]));
    assert_eq!(case.query("SELECT data FROM rows WHERE id = 3"), json!([["{\"id\": 3}"]]));
    assert_eq!(summary.state[0]["stream"]["stream_descriptor"], json!({"name": "a"}));
    assert_eq!(case.memory.last().streams[0].records_committed, 10);
    assert_eq!(summary.streams[0].estimated_records, Some(10));
}

#[test]
fn a_destination_that_counts_otherwise_is_reported() {
    let case = Case::new(source("plain"), json!({"count_wrong": true}));
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed);
    assert_eq!(summary.checksums.destination_mismatched, 2);
}

#[test]
fn a_connector_sees_little_of_the_world() {
    let case = Case::new(source("environment"), plain());
    assert_eq!(case.run().status, Status::Completed);
    let data = case.query("SELECT data FROM rows");
    let data: Value = serde_json::from_str(data[0][0].as_str().unwrap()).unwrap();
    assert_eq!(data["session"], true);
    let names: Vec<&str> =
        data["environment"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"WINDLASS_ATTEMPT") && names.contains(&"PATH"));
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

#[test]
fn a_flood_on_standard_error_holds_nothing_up() {
    let case = Case::new(source("flood_stderr"), plain());
    assert_eq!(case.run().status, Status::Completed);
    let log = case.memory.log.lock().unwrap();
    assert!(log.iter().all(|(_, _, text)| text.len() < 11_000));
}

#[test]
fn a_journal_that_fails_fails_the_attempt() {
    let mut case = Case::new(source("plain"), plain());
    case.memory.fails = true;
    let summary = case.run();
    assert_eq!(summary.status, Status::Failed);
    let failure = summary.failures.iter().find(|f| f.failure_origin == Origin::Persistence);
    assert!(failure.unwrap().internal_message.as_ref().unwrap().contains("the disk is full"));
    // Acknowledged, but not durable: the next attempt begins before it.
    assert_eq!((summary.records_committed, summary.state.len()), (0, 0));
}

#[test]
fn a_cancel_ends_it_at_any_step() {
    let hang = json!({"check": "hang"});
    for (config, steps) in [
        (source("hang"), Steps::default()),
        (source("stubborn"), Steps::default()),
        (hang, Steps { check_source: true, ..Steps::default() }),
    ] {
        let mut case = Case::new(config, plain());
        case.steps = steps;
        let cancel = case.cancel.clone();
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            cancel.cancel();
        });
        let began = Instant::now();
        let summary = case.run();
        canceller.join().unwrap();
        assert_eq!(summary.status, Status::Cancelled);
        assert_eq!(summary.failures[0].failure_type, FailureType::ManualCancellation);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn checks_come_first_and_a_failed_one_is_permanent() {
    let steps = Steps { check_source: true, check_destination: true, discover: true };
    let cases = [
        (
            json!({"check": "failed"}),
            plain(),
            Some("check of the source failed: the password is wrong"),
            true,
        ),
        (json!({"check": "failed_1"}), plain(), Some("the password is wrong"), true),
        (json!({"check": "silent"}), plain(), Some("ended without an answer"), false),
        (json!({"check": "crash"}), plain(), Some("exit code 1"), false),
        (plain(), destination("check_failed"), Some("check of the destination failed"), true),
        (plain(), plain(), None, false),
    ];
    for (from, to, expected, permanent) in cases {
        let mut case = Case::new(from.clone(), to);
        case.steps = steps;
        let summary = case.run();
        let Some(part) = expected else {
            assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
            let names: Vec<&str> = summary.steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names, ["check source", "check destination", "discover", "replicate"]);
            assert_eq!(summary.catalog.unwrap()["streams"][0]["name"], "a");
            continue;
        };
        assert_eq!(summary.status, Status::Failed);
        assert!(first_message(&summary).contains(part), "{from}: {}", first_message(&summary));
        assert_eq!(summary.permanent, permanent, "{from}");
        assert_eq!(summary.records_emitted, 0);
    }
}

#[test]
fn a_check_that_takes_too_long() {
    for how in ["hang", "babble"] {
        let mut case = Case::new(json!({"check": how}), plain());
        case.steps.check_source = true;
        case.limits.operation_max = Duration::from_millis(300);
        let summary = case.run();
        assert!(first_message(&summary).contains("check of the source took more than"), "{how}");
    }
}

#[test]
fn a_clear_needs_no_source() {
    let mut case = Case::new(source("plain"), plain());
    case.catalog["streams"][0]["generation_id"] = json!(1);
    assert_eq!(case.run().status, Status::Completed);
    assert_eq!(case.rows(), 10);
    case.source = None;
    case.catalog = catalog(&["a"], "full_refresh", "overwrite");
    case.catalog["streams"][0]["generation_id"] = json!(2);
    case.catalog["streams"][0]["minimum_generation_id"] = json!(2);
    case.state = vec![Arc::from(
        json!({"type": "STREAM", "stream": {"stream_descriptor": {"name": "a"}, "stream_state": {"cursor": 10}}}).to_string(),
    )];
    let summary = case.run();
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!((case.rows(), summary.state.len()), (0, 0));
}
