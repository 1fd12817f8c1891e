//! Late words and stale tokens.

use windlass_record::command::{
    Bytes, Command, CompleteJob, ExtendLease, FailJob, Lease, ReleaseJob, ThrowError, UpdateJob,
};
use windlass_record::id::{JobKey, Token};
use windlass_record::rejection::Rejection;

use crate::lifecycle::JobState;
use crate::verb::check::{Check, LEASE_MS, failure, job};

#[derive(Clone, Copy, Debug)]
enum Word {
    Complete,
    Fail,
    Throw,
    Extend,
    Release,
}

fn say(check: &mut Check, word: Word, lease: Lease) -> Result<(), Rejection> {
    let command = match word {
        Word::Complete => Command::CompleteJob(CompleteJob {
            lease,
            result: Bytes::default(),
            documents: Vec::new(),
        }),
        Word::Fail => Command::FailJob(FailJob { lease, ..failure(lease.key) }),
        Word::Throw => Command::ThrowError(ThrowError {
            lease,
            code: "E".into(),
            message: "".into(),
            variables: Default::default(),
        }),
        Word::Extend => Command::ExtendLease(ExtendLease { lease, lease_ms: 5 }),
        Word::Release => Command::ReleaseJob(ReleaseJob { lease, delay_ms: 0 }),
    };
    check.give(command).map(|_| ())
}

/// How things stand when the word comes.
#[derive(Clone, Copy, Debug)]
enum When {
    /// The lease lives.
    Live,
    /// It ended, and the timer has not run.
    Late,
    /// It ended, and the job is ready again.
    TimedOut,
    /// It ended, and somebody else has the job.
    TakenAgain,
    /// Somebody has completed it.
    Done,
}

fn bring(check: &mut Check, when: When, fenced: bool) -> Token {
    let key = check.create(job("q", "a", 0));
    check.hand_out(&["q"], 1, fenced);
    match when {
        When::Live => {}
        When::Late => check.now_ms += LEASE_MS,
        When::TimedOut => check.pass(LEASE_MS),
        When::TakenAgain => {
            check.pass(LEASE_MS);
            check.hand_out(&["q"], 1, fenced);
        }
        When::Done => {
            say(check, Word::Complete, Token { key, activation: 1 }.into()).expect("it is held");
        }
    }
    Token { key, activation: 1 }
}

/// The code of the refusal, or that there is none.
fn outcome(result: Result<(), Rejection>) -> &'static str {
    result.map_or_else(|rejection| rejection.code(), |()| "ok")
}

#[test]
fn words_with_and_without_tokens() {
    use When::{Done, Late, Live, TakenAgain, TimedOut};
    use Word::{Complete, Extend, Fail, Release, Throw};
    let rows: [(When, Word, [&str; 3]); 25] = [
        //                  no token ever  with its token  a token was given, none is sent
        (Live, Complete, ["ok", "ok", "token-missing"]),
        (Live, Fail, ["ok", "ok", "token-missing"]),
        (Live, Throw, ["ok", "ok", "token-missing"]),
        (Live, Extend, ["ok", "ok", "token-missing"]),
        (Live, Release, ["ok", "ok", "token-missing"]),
        (Late, Complete, ["ok", "ok", "token-missing"]),
        (Late, Fail, ["lease-ended", "lease-ended", "token-missing"]),
        (Late, Throw, ["ok", "ok", "token-missing"]),
        (Late, Extend, ["lease-ended", "lease-ended", "token-missing"]),
        (Late, Release, ["lease-ended", "lease-ended", "token-missing"]),
        (TimedOut, Complete, ["ok", "ok", "token-missing"]),
        (TimedOut, Fail, ["lease-ended", "lease-ended", "token-missing"]),
        (TimedOut, Throw, ["ok", "ok", "token-missing"]),
        (TimedOut, Extend, ["lease-ended", "lease-ended", "token-missing"]),
        (TimedOut, Release, ["lease-ended", "lease-ended", "token-missing"]),
        // Without tokens the second worker cannot be told from the first, as in Zeebe.
        (TakenAgain, Complete, ["ok", "token-stale", "token-missing"]),
        (TakenAgain, Fail, ["ok", "token-stale", "token-missing"]),
        (TakenAgain, Throw, ["ok", "token-stale", "token-missing"]),
        (TakenAgain, Extend, ["ok", "token-stale", "token-missing"]),
        (TakenAgain, Release, ["ok", "token-stale", "token-missing"]),
        (Done, Complete, ["job-not-found", "job-not-found", "job-not-found"]),
        (Done, Fail, ["job-not-found", "job-not-found", "job-not-found"]),
        (Done, Throw, ["job-not-found", "job-not-found", "job-not-found"]),
        (Done, Extend, ["job-not-found", "job-not-found", "job-not-found"]),
        (Done, Release, ["job-not-found", "job-not-found", "job-not-found"]),
    ];
    for (when, word, expected) in rows {
        let said = [(false, false), (true, true), (true, false)].map(|(fenced, sent)| {
            let mut check = Check::new();
            let token = bring(&mut check, when, fenced);
            let activation = sent.then_some(token.activation);
            outcome(say(&mut check, word, Lease { key: token.key, activation }))
        });
        assert_eq!(said, expected, "{when:?} {word:?}");
    }
}

/// Zeebe's rule: an update needs no token, and a wrong one is refused.
#[test]
fn an_update_may_omit_the_token() {
    let mut check = Check::new();
    let token = bring(&mut check, When::Live, true);
    for (activation, expected) in [(None, "ok"), (Some(1), "ok"), (Some(2), "token-stale")] {
        let command = UpdateJob {
            key: token.key,
            activation,
            retries: Some(1),
            priority: None,
            lease_ms: Some(5),
            tenant: None,
        };
        let result = check.give(Command::UpdateJob(command)).map(|_| ());
        assert_eq!(outcome(result), expected);
    }
}

/// The number never resets: not by a failure, not by an incident.
#[test]
fn activation_numbers_only_grow() {
    let mut check = Check::new();
    let key = check.create(job("q", "a", 0));
    for number in 1..4 {
        let token = check.take_fenced("q");
        assert_eq!(token, Token { key, activation: number });
        let command = FailJob { lease: token.into(), retries: Some(0), ..failure(key) };
        check.give(Command::FailJob(command)).expect("it is held");
        let resolve =
            windlass_record::command::ResolveIncident { key, retries: Some(1), tenant: None };
        check.give(Command::ResolveIncident(resolve)).expect("it waits");
    }
}

/// A late completion without a token ends the other lease and frees its slot, once.
#[test]
fn a_late_completion_frees_the_slot_once() {
    let mut check = Check::new();
    let with_key = || {
        let options = windlass_record::command::JobOptions {
            concurrency_key: "k".into(),
            ..Default::default()
        };
        crate::verb::check::job_with("q", "a", options)
    };
    check.limit("k", crate::verb::check::active_max(1));
    let first = check.create(with_key());
    let second = check.create(with_key());
    assert_eq!(check.take("q"), Some(first));
    check.pass(LEASE_MS);
    // Its order is that of becoming ready, so the other one goes first.
    assert_eq!(check.take("q"), Some(second));
    check.complete(first).expect("late, and nobody else finished it");
    assert_eq!(check.take("q"), None, "the slot is still used");
    check.complete(second).expect("it is held");
    let third = check.create(with_key());
    assert_eq!(check.take("q"), Some(third));
}

/// Keys of other partitions and numbers that name nothing.
#[test]
fn unknown_keys_are_not_found() {
    let mut check = Check::new();
    for raw in [0, 1, u64::MAX, JobKey::from_raw(1 << 51).raw()] {
        let key = JobKey::from_raw(raw);
        assert_eq!(check.complete(key), Err(Rejection::JobNotFound { key }));
        assert_eq!(check.cancel(key, true), Err(Rejection::JobNotFound { key }));
    }
}

/// A token that was never sent binds nobody. (It did: the next worker, without tokens, could not
/// complete the job.)
#[test]
fn a_returned_job_asks_for_no_token() {
    let mut check = Check::new();
    let key = check.create(job("q", "a", 0));
    let handed = check.hand_out(&["q"], 1, true);
    check.take_back(&handed[0]).expect("it was never sent");
    assert_eq!(check.take("q"), Some(key));
    check.complete(key).expect("no token was ever given");

    let key = check.create(job("q", "a", 0));
    check.hand_out(&["q"], 1, true);
    check.pass(LEASE_MS);
    let handed = check.hand_out(&["q"], 1, true);
    check.take_back(&handed[0]).expect("it was never sent");
    assert_eq!(check.complete(key), Err(Rejection::TokenMissing { key }), "the first one was");
}

/// A hand-out that was never sent leaves no trace but its number.
#[test]
fn a_returned_job_stands_where_it_stood() {
    let mut check = Check::new();
    let keys: Vec<_> =
        ["a", "a", "b"].map(|group| check.create(job("q", group, 0))).into_iter().collect();
    let handed = check.hand_out(&["q"], 1, true);
    let handed = handed.first().expect("a job was ready");
    assert_eq!(handed.key, keys[0]);
    check.take_back(handed).expect("it was never sent");
    assert_eq!(check.state_of(keys[0]), Some(JobState::Ready));
    assert_eq!(check.job(keys[0]).attempt, 1);
    let rest: Vec<_> = std::iter::from_fn(|| check.take_many(&["q"], 1).first().copied()).collect();
    assert_eq!(rest, [keys[0], keys[2], keys[1]], "its group had its turn back");
    assert_eq!(check.job(keys[0]).activation, 2, "the number is spent");
    let refused = check.take_back(handed);
    assert_eq!(
        refused,
        Err(Rejection::TokenStale { key: keys[0], given: 1, current: 2 }),
        "and it is returned once"
    );
}

/// Once a job was leased with a token, who asks without does not meet it, by whatever way it became
/// ready again.
#[test]
fn a_fenced_job_is_only_for_those_who_ask_with_tokens() {
    type Way = fn(&mut Check, Token);
    let ways: [(&str, Way); 5] = [
        ("its lease ended", |check, _| check.pass(LEASE_MS)),
        ("its worker failed", |check, token| {
            let command = FailJob { lease: token.into(), retries: Some(1), ..failure(token.key) };
            check.give(Command::FailJob(command)).expect("it is held");
        }),
        ("it failed and waited", |check, token| {
            let (retries, backoff_ms) = (Some(1), Some(5));
            let command =
                FailJob { lease: token.into(), retries, backoff_ms, ..failure(token.key) };
            check.give(Command::FailJob(command)).expect("it is held");
            check.pass(5);
        }),
        ("it was put back", |check, token| {
            say(check, Word::Release, token.into()).expect("it is held");
        }),
        ("an incident was resolved", |check, token| {
            say(check, Word::Throw, token.into()).expect("it is held");
            let resolve = windlass_record::command::ResolveIncident {
                key: token.key,
                retries: Some(1),
                tenant: None,
            };
            check.give(Command::ResolveIncident(resolve)).expect("it waits");
        }),
    ];
    for (what, way) in ways {
        let mut check = Check::new();
        let key = check.create(job("q", "a", 0));
        let token = check.take_fenced("q");
        way(&mut check, token);
        assert_eq!(check.state_of(key), Some(JobState::Ready), "{what}");
        assert_eq!(check.take("q"), None, "{what}");
        let other = check.create(job("q", "a", 0));
        assert_eq!(check.take("q"), Some(other), "{what}: it stands in nobody's way");
        assert_eq!(check.take_fenced("q"), Token { key, activation: 2 }, "{what}");
    }
}

/// Who asks with tokens is served by the rule of the group, as if it had one side.
#[test]
fn both_sides_of_a_group_are_one_to_those_with_tokens() {
    let mut check = Check::new();
    let keys = [3, 1, 2].map(|priority| check.create(job("q", "a", priority)));
    let first = check.take_fenced("q");
    assert_eq!(first.key, keys[0]);
    say(&mut check, Word::Release, first.into()).expect("it is held");
    let other = check.create(job("q", "b", 0));
    let order: Vec<_> = (0..4).map(|_| check.take_fenced("q").key).collect();
    assert_eq!(order, [keys[0], other, keys[2], keys[1]], "turns, then priorities over both sides");
}

/// A place at a limit was given to the oldest who waited; a fenced job that nobody with a token asks
/// for must not keep it from the others.
#[test]
fn a_fenced_job_keeps_no_place_at_a_limit_from_others() {
    let mut check = Check::new();
    check.limit("k", crate::verb::check::active_max(1));
    let options = || windlass_record::command::JobOptions {
        concurrency_key: "k".into(),
        ..Default::default()
    };
    let fenced = check.create(crate::verb::check::job_with("q", "a", options()));
    let open = check.create(crate::verb::check::job_with("q", "b", options()));
    let token = check.take_fenced("q");
    assert_eq!((token.key, check.take("q")), (fenced, None));
    say(&mut check, Word::Release, token.into()).expect("it is held");
    assert_eq!(check.take("q"), Some(open), "the place is free");
    check.complete(open).expect("it is held");
    assert_eq!(check.take("q"), None);
    assert_eq!(check.take_fenced("q").key, fenced);
}

/// A backlog of fenced jobs costs those who ask without tokens nothing: one look at the other list.
#[test]
fn many_fenced_groups_are_not_walked() {
    let mut check = Check::new();
    let groups = 2_000;
    for group in 0..groups {
        check.create(job("q", &format!("g{group}"), 0));
    }
    let handed = check.hand_out(&["q"], groups, true);
    let tokens: Vec<Token> = handed
        .iter()
        .map(|handed| Token { key: handed.key, activation: handed.activation })
        .collect();
    check.pass(LEASE_MS);
    let state = check.engine.state();
    let (id, queue) = state.queues().next().expect("one queue");
    assert_eq!((state.eligible_jobs(id, false), state.eligible_jobs(id, true)), (0, groups));
    assert_eq!((queue.open.head, tokens.len()), (crate::state::job::NONE, 2_000));
}
