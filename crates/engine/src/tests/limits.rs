//! Concurrency limits and rate windows: exact, in order, and free at once. Defects of the first
//! version stand here as tests named after them.

use std::collections::VecDeque;

use windlass_record::codec::{Decoder, decode_event};
use windlass_record::command::{Command, CreateJob, JobOptions, ReleaseJob, UpdateJob};
use windlass_record::event::Event;
use windlass_record::id::{JobKey, Token};
use windlass_record::policy::{JobOrder, LimitSettings, QueueSettings, RateWindow};

use super::random::{World, seeds, small_bounds};
use crate::verb::check::{Check, Shelf, active_max, job, job_with, rate};

fn keyed(queue: &str, group: &str, concurrency: &str, rate: &str) -> CreateJob {
    let options = JobOptions {
        concurrency_key: concurrency.into(),
        rate_key: rate.into(),
        ..JobOptions::default()
    };
    job_with(queue, group, options)
}

/// A freed slot wakes exactly one bay, the oldest, and a hand-out does not send those who wait to
/// the end of the line. (It did: the emptied bay woke the next one, which parked again behind all.)
#[test]
fn bays_are_woken_in_the_order_in_which_they_parked() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    let keys: Vec<JobKey> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|group| check.create(keyed("q", group, "k", "")))
        .collect();
    for key in keys {
        assert_eq!(check.take_many(&["q"], 5), [key]);
        check.complete(key).expect("it is held");
    }
}

/// A place is not kept for a queue that is paused, or that nobody asks, while another could use it.
/// (It was: the oldest bay was woken wherever it was, and nobody else.)
#[test]
fn a_queue_that_nobody_serves_does_not_block_its_key() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    let first = check.create(keyed("served", "a", "k", ""));
    let blocked = check.create(keyed("paused", "a", "k", ""));
    let second = check.create(keyed("served", "b", "k", ""));
    check.pause("paused", true);
    assert_eq!(check.take("served"), Some(first));
    check.complete(first).expect("it is held");
    assert_eq!(check.take_many(&["served", "paused"], 5), [second]);
    check.complete(second).expect("it is held");
    check.pause("paused", false);
    assert_eq!(check.take("paused"), Some(blocked));
}

/// A completion gives no rate token back, and a window slides: the third job waits for the first to
/// leave it, to the millisecond.
#[test]
fn a_window_slides() {
    let mut check = Check::new();
    check.limit("r", rate(2, 100));
    let keys: Vec<JobKey> = (0..4).map(|_| check.create(keyed("q", "a", "", "r"))).collect();
    assert_eq!(check.take("q"), Some(keys[0]));
    check.complete(keys[0]).expect("it is held");
    check.pass(60);
    assert_eq!(check.take_many(&["q"], 5), [keys[1]]);
    check.pass(39);
    assert_eq!(check.take("q"), None);
    check.pass(1);
    assert_eq!(check.take_many(&["q"], 5), [keys[2]]);
    check.pass(59);
    assert_eq!(check.take("q"), None);
    check.pass(1);
    assert_eq!(check.take_many(&["q"], 5), [keys[3]]);
}

/// A job that becomes ready after the window has slid does not wait for the timer. (It did: the
/// window was only looked at when the timer ran.)
#[test]
fn an_open_window_needs_no_timer() {
    let mut check = Check::new();
    check.limit("r", rate(1, 100));
    let first = check.create(keyed("q", "a", "", "r"));
    assert_eq!(check.take("q"), Some(first));
    check.now_ms += 100;
    let second = check.create(keyed("q", "b", "", "r"));
    assert_eq!(check.take("q"), Some(second));
}

/// The token that is given back is the job's own. (It was the newest: the window then forgot a
/// hand-out that was still within it, and let one too many through.)
#[test]
fn a_returned_job_gives_back_its_own_token() {
    let mut check = Check::new();
    check.limit("r", rate(2, 100));
    let keys: Vec<JobKey> = (0..4).map(|_| check.create(keyed("q", "a", "", "r"))).collect();
    let first = check.hand_out(&["q"], 1, true);
    check.pass(50);
    assert_eq!(check.take("q"), Some(keys[1]));
    check.take_back(&first[0]).expect("it was never sent");
    assert_eq!(check.take_many(&["q"], 5), [keys[0]], "one token, its own");
    check.pass(99);
    assert_eq!(check.take("q"), None, "both hand-outs are within the window");
    check.pass(1);
    assert_eq!(check.take_many(&["q"], 5), [keys[2], keys[3]]);
}

/// A job that is taken back goes before those that wait for its key.
#[test]
fn a_returned_job_keeps_its_slot() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    let first = check.create(keyed("q", "a", "k", ""));
    let second = check.create(keyed("q", "b", "k", ""));
    let third = check.create(keyed("q", "c", "k", ""));
    let handed = check.hand_out(&["q"], 1, true);
    check.take_back(&handed[0]).expect("it was never sent");
    for key in [first, second, third] {
        assert_eq!(check.take_many(&["q"], 5), [key]);
        check.complete(key).expect("it is held");
    }
}

/// New settings count at once, for more and for less.
#[test]
fn new_settings_wake_and_park() {
    let mut check = Check::new();
    check.limit("k", active_max(0));
    for group in ["a", "b", "c", "d"] {
        check.create(keyed("q", group, "k", ""));
    }
    assert_eq!(check.take_many(&["q"], 9).len(), 0);
    check.limit("k", active_max(2));
    assert_eq!(check.take_many(&["q"], 9).len(), 2);
    check.limit("k", active_max(1));
    assert_eq!(check.take_many(&["q"], 9).len(), 0);
    check.limit("k", LimitSettings::default());
    assert_eq!(check.take_many(&["q"], 9).len(), 2);
}

/// A group whose only job gets a new priority, or whose queue gets new settings, keeps its turn.
/// (It lost it: the job left its lane before it entered the new one.)
#[test]
fn a_group_keeps_its_turn_when_its_job_moves() {
    let mut check = Check::new();
    let first = check.create(job("q", "a", 0));
    let second = check.create(job("q", "b", 0));
    check
        .give(Command::UpdateJob(UpdateJob {
            key: first,
            activation: None,
            retries: None,
            priority: Some(5),
            lease_ms: None,
            tenant: None,
        }))
        .expect("it lives");
    let settings =
        QueueSettings { order: JobOrder::Creation, retries_first: true, ..QueueSettings::DEFAULT };
    check.configure("q", settings);
    assert_eq!(check.take_many(&["q"], 5), [first, second]);
}

/// A change of the order moves what waits.
#[test]
fn a_new_order_moves_what_waits() {
    let mut check = Check::new();
    let first = check.create(job("q", "a", 0));
    let second = check.create(job("q", "a", 0));
    assert_eq!(check.take("q"), Some(first));
    let lease = Token { key: first, activation: 1 }.into();
    check.give(Command::ReleaseJob(ReleaseJob { lease, delay_ms: 0 })).expect("it is held");
    let settings = QueueSettings { order: JobOrder::Creation, ..QueueSettings::DEFAULT };
    check.configure("q", settings);
    assert_eq!(check.take_many(&["q"], 5), [first, second]);
}

/// The settings of the queue hold for keys that have none of their own, and such a key is forgotten
/// with its last job, but not before its window has ended.
#[test]
fn implied_keys_come_and_go() {
    let mut check = Check::new();
    let settings = QueueSettings {
        key_active_max: 1,
        key_rate: Some(RateWindow { max: 1, window_ms: 100 }),
        ..QueueSettings::DEFAULT
    };
    check.configure("q", settings);
    let first = check.create(keyed("q", "a", "k", "r"));
    assert_eq!(check.engine.state().limits.len(), 2);
    assert_eq!(check.take("q"), Some(first));
    check.complete(first).expect("it is held");
    assert_eq!(check.engine.state().limits.len(), 1, "the window of r goes on");
    let second = check.create(keyed("q", "a", "k", "r"));
    assert_eq!(check.take("q"), None);
    check.pass(100);
    assert_eq!(check.take("q"), Some(second));
    check.complete(second).expect("it is held");
    check.pass(100);
    assert_eq!(check.engine.state().limits.len(), 0);
    assert_eq!(check.engine.next_due_ms(), None);
}

/// From the log of random histories: never more active than the limit at the time, never more
/// hand-outs than the rate in any window, as long as the settings stand.
#[test]
fn limits_hold_in_the_log() {
    seeds("limits_hold_in_the_log", 40, |seed| {
        let mut check = Check::with_bounds(small_bounds());
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step(&mut check);
        }
        let mut shelf = Shelf::default();
        let mut limits = std::collections::BTreeMap::new();
        let mut keys = std::collections::BTreeMap::new();
        let mut handed: std::collections::BTreeMap<_, VecDeque<(u64, JobKey)>> = Default::default();
        for (now_ms, bytes) in &check.shelf.log {
            let event = decode_event(&mut Decoder::new(bytes), &mut shelf).expect("own encoding");
            if let Event::LimitConfigured { limit, settings, .. } = &event {
                limits.insert(*limit, settings.rate);
                handed.remove(limit);
            }
            if let Event::JobCreated(created) = &event {
                keys.insert(created.key, created.rate);
            }
            if let Event::JobReturned { key, .. } = &event {
                for window in handed.values_mut() {
                    if let Some(place) = window.iter().rposition(|(_, other)| other == key) {
                        window.remove(place);
                    }
                }
            }
            let Event::JobActivated(activated) = &event else { continue };
            let Some(limit) = keys.get(&activated.key).copied().flatten() else { continue };
            let Some(rate) = limits.get(&limit).copied().flatten() else { continue };
            let window = handed.entry(limit).or_default();
            window.push_back((*now_ms, activated.key));
            while window.front().is_some_and(|(at_ms, _)| at_ms + rate.window_ms <= *now_ms) {
                window.pop_front();
            }
            assert!(window.len() <= rate.max as usize, "too many in {rate:?} at {now_ms}");
        }
    });
}
