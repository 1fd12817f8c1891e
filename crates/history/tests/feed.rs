//! How it is fed: restarts, gaps, damage, waiting.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::time::Duration;

use support::{Feed, LIFE, QUEUE, deployed, done, waiting};
use windlass_history::search::{ElementInstance, Job, ProcessInstance, Variable};
use windlass_history::{Entity, History, HistoryError, Options, Origin, Page, Search};
use windlass_record::event::Event;

fn total<E: Entity>(history: &History) -> u64 {
    let page = Page { limit: 0, ..Page::default() };
    history.search::<E>(&Search { page, ..Search::default() }).unwrap().total
}

fn totals(history: &History) -> [u64; 4] {
    [
        total::<ProcessInstance>(history),
        total::<ElementInstance>(history),
        total::<Variable>(history),
        total::<Job>(history),
    ]
}

fn written(feed: &mut Feed) {
    feed.write(1_000, &deployed());
    for number in 1..=5 {
        waiting(feed, 2_000, number * 100);
    }
    for number in 1..=4 {
        done(feed, 3_000, number * 100);
    }
}

#[test]
fn a_crash_between_any_two_records_loses_and_doubles_nothing() {
    let records = {
        let dir = tempfile::tempdir().unwrap();
        let mut feed = Feed::open(&dir.path().join("h.db"), Options::default());
        written(&mut feed);
        feed.records.len()
    };
    for flushed in 0..records {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.db");
        let mut feed = Feed::open(&path, Options::default());
        written(&mut feed);
        feed.give(flushed);
        feed.history.flush(feed.given as u64);
        // Taken, and never flushed.
        feed.give(2);
        let mut feed = feed.reopen(&path, Options::default());
        assert_eq!(feed.given, flushed, "what was not flushed is given again");
        feed.flush();
        assert_eq!(totals(&feed.history), [5, 14, 14, 5], "after {flushed} records");
        assert_eq!(feed.history.status().gaps, 0);
    }
}

#[test]
fn records_that_change_nothing_are_in_it_at_once_and_kept_once_a_second() {
    let paused = |feed: &mut Feed, now_ms| {
        feed.record(now_ms, &[Event::QueuePaused { queue: QUEUE, paused: true }]);
        (feed.history.covered(), feed.history.kept())
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    let mut feed = Feed::open(&path, Options::default());
    feed.record(10_000, &deployed());
    assert_eq!(feed.history.kept(), 1, "a definition is written");
    assert_eq!(paused(&mut feed, 10_400), (2, 1));
    assert_eq!(paused(&mut feed, 10_999), (3, 1));
    assert_eq!(paused(&mut feed, 11_000), (4, 4));
    assert_eq!(paused(&mut feed, 11_001), (5, 4));
    let mut feed = feed.reopen(&path, Options::default());
    assert_eq!(feed.given, 4, "the log must still have what is behind this");
    feed.flush();
    assert!(!feed.history.idle(), "there is nothing to delete");
    assert_eq!(feed.history.kept(), 5, "when nothing comes there is time to write it");
    assert_eq!(feed.history.status().gaps, 0);
}

#[test]
fn a_database_that_is_none_is_put_aside_and_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    std::fs::write(&path, [b'x'; 8_192]).unwrap();
    let mut feed = Feed::open(&path, Options::default());
    written(&mut feed);
    feed.flush();
    assert_eq!(totals(&feed.history), [5, 14, 14, 5]);
    assert!(dir.path().join("h.db.damaged").exists());
}

#[test]
fn a_gap_is_recorded_and_outlives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    let mut feed = Feed::open(&path, Options::default());
    written(&mut feed);
    feed.given = 3;
    feed.history.miss(1, 3);
    feed.flush();
    let feed = feed.reopen(&path, Options::default());
    assert_eq!(feed.given, feed.records.len());
    let status = feed.history.status();
    assert_eq!((status.gaps, status.lsns_missed), (1, 3));
    let gaps = feed.history.gaps().unwrap();
    assert_eq!((gaps[0].first_lsn, gaps[0].last_lsn), (1, 3));
    // The first instance began in the gap; of the others the definition is missing, and no more.
    assert_eq!(total::<ProcessInstance>(&feed.history), 4);
    assert_eq!(total::<Job>(&feed.history), 4);
}

#[test]
fn the_history_of_another_log_is_put_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    let mut feed = Feed::open(&path, Options::default());
    written(&mut feed);
    feed.flush();
    assert_eq!(total::<ProcessInstance>(&feed.history), 5);
    let durable_lsn = feed.records.len() as u64;
    assert_eq!(feed.history.begin(&Origin { life: LIFE + 1, durable_lsn }), 0);
    assert_eq!(total::<ProcessInstance>(&feed.history), 0);
    // And one that is ahead of its log: a log of before was put back.
    feed.given = 0;
    feed.flush();
    assert_eq!(total::<ProcessInstance>(&feed.history), 5);
    assert_eq!(feed.history.begin(&Origin { life: LIFE + 1, durable_lsn: 3 }), 0);
}

#[test]
fn a_record_that_makes_no_sense_is_a_gap_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("h.db"), Options::default());
    feed.write(1_000, &deployed());
    feed.records.push(vec![99, 0]);
    waiting(&mut feed, 2_000, 100);
    feed.flush();
    assert_eq!(total::<ProcessInstance>(&feed.history), 1);
    let gaps = feed.history.gaps().unwrap();
    assert_eq!(gaps.iter().map(|gap| (gap.first_lsn, gap.last_lsn)).collect::<Vec<_>>(), [(2, 2)]);
}

#[test]
fn a_search_may_wait_for_an_lsn() {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("h.db"), Options::default());
    written(&mut feed);
    let lsn = feed.records.len() as u64;
    let early = feed.history.wait_for(lsn, Duration::from_millis(1));
    assert!(matches!(early, Err(HistoryError::NotYet { covered: 0, .. })));
    let history = feed.history.clone();
    let waits = std::thread::spawn(move || history.wait_for(lsn, Duration::from_secs(60)));
    feed.flush();
    waits.join().unwrap().unwrap();
    feed.history.wait_for(lsn, Duration::ZERO).unwrap();
}
