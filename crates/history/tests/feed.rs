//! How it is fed: restarts, gaps, damage, waiting.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::time::Duration;

use support::workflow::{begun, changed, defined, job_of, over, schedule, scheduled, start};
use support::{
    Feed, LIFE, QUEUE, activated, created, deployed, done, ended, is_of_jobs_alone, waiting,
};
use windlass_history::names::JobState;
use windlass_history::search::{ElementInstance, Job, ProcessInstance, Variable};
use windlass_history::{Entity, History, HistoryError, JobLevel, Options, Origin, Page, Search};
use windlass_record::event::{Event, Outcome};
use windlass_record::workflow::{TaskStatus, WorkflowStatus};

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

/// What is remembered beside the rows is read again after a failure; until that succeeds, nothing is
/// taken, for a job that is not remembered would live for ever.
#[test]
fn what_cannot_be_read_again_after_a_failure_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.db");
    let mut feed = Feed::open(&path, Options::default());
    feed.write(1_000, &deployed());
    waiting(&mut feed, 2_000, 100);
    feed.flush();
    let kept = feed.history.covered();

    let other = rusqlite::Connection::open(&path).unwrap();
    let rename = |from: &str, to: &str| {
        other.execute_batch(&format!("ALTER TABLE {from} RENAME TO {to}")).unwrap();
    };
    rename("queues", "hidden");
    feed.write(3_000, &deployed());
    done(&mut feed, 3_000, 100);
    for _ in 0..2 {
        feed.given = kept as usize;
        feed.give(usize::MAX);
        assert_eq!(feed.history.flush(feed.given as u64), kept);
    }
    rename("hidden", "queues");
    let mut rounds = 0;
    while feed.history.covered() < feed.records.len() as u64 {
        rounds += 1;
        assert!(rounds <= 2, "it recovers, then takes all");
        feed.given = feed.history.covered() as usize;
        feed.give(usize::MAX);
        feed.history.flush(feed.given as u64);
    }
    assert_eq!(feed.history.get::<Job>(103).unwrap().unwrap().state, JobState::Completed);
    assert_eq!(feed.history.status().gaps, 0);
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

/// A plain job lives and ends.
fn lived(feed: &mut Feed, now_ms: u64, job: u64) {
    feed.write(now_ms, &[created(job)]);
    feed.write(now_ms + 1, &[activated(job, now_ms + 500)]);
    feed.write(now_ms + 2, &[ended(job, Outcome::Completed)]);
}

/// Plain jobs before, beside and after a process and a workflow.
fn mixed(feed: &mut Feed) {
    feed.write(1_000, &deployed());
    feed.write(1_001, &defined());
    lived(feed, 2_000, 9_001);
    waiting(feed, 3_000, 100);
    lived(feed, 4_000, 9_002);
    done(feed, 5_000, 100);
    lived(feed, 6_000, 9_003);
    feed.write(7_000, &[begun(start(200)), scheduled(schedule(201, 200))]);
    feed.write(7_001, &[created(202), job_of(201, 202)]);
    feed.write(7_002, &[activated(202, 8_000)]);
    lived(feed, 7_100, 9_004);
    let ends = [ended(202, Outcome::Completed), changed(201, TaskStatus::Completed)];
    feed.write(7_200, &ends);
    feed.write(7_201, &[over(200, WorkflowStatus::Completed, "")]);
    lived(feed, 9_000, 9_005);
}

#[test]
fn leaving_out_records_about_jobs_alone_changes_no_row() {
    // How many of the 17 records about jobs alone are left out: not those beside a live job of a flow,
    // and none where plain jobs have rows.
    for (level, expected) in [(JobLevel::None, 9), (JobLevel::Failures, 0), (JobLevel::Full, 0)] {
        let options = Options { jobs: level, ..Options::default() };
        let dir = tempfile::tempdir().unwrap();
        let mut all = Feed::open(&dir.path().join("all.db"), options);
        mixed(&mut all);
        all.flush();
        let mut some = Feed::open(&dir.path().join("some.db"), options);
        mixed(&mut some);
        let mut left_out = 0;
        while let Some(record) = some.records.get(some.given) {
            if is_of_jobs_alone(record) && some.history.leave_out(0) {
                some.given += 1;
                left_out += 1;
            } else {
                some.give(1);
            }
            assert_eq!(some.history.flush(some.given as u64), some.given as u64);
        }
        assert_eq!(left_out, expected, "{level:?}");
        assert_eq!(totals(&some.history), totals(&all.history), "{level:?}");
        let jobs = |feed: &Feed| {
            let found = feed.history.search::<Job>(&Search::default()).unwrap();
            found.items.iter().map(|job| format!("{job:?}")).collect::<Vec<_>>()
        };
        assert_eq!(jobs(&some), jobs(&all), "{level:?}");
    }
}

#[test]
fn it_is_as_late_as_what_was_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("h.db"), Options::default());
    feed.record(10_000, &deployed());
    for (time_ms, kept) in [(10_500, 1), (9_000, 1), (11_000, 4)] {
        feed.write(time_ms, &[created(time_ms)]);
        assert!(feed.history.leave_out(time_ms));
        feed.given += 1;
        feed.history.flush(feed.given as u64);
        assert_eq!(feed.history.kept(), kept, "how far it is is written once a second");
    }
}
