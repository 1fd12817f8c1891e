//! The worker against a server that a test plays by hand.

#![allow(clippy::unwrap_used, reason = "a test may stop here")]

mod fake;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fake::v1::result::Outcome;
use fake::v1::{RefusedResult, ServerMessage, Stop};
use fake::{Fake, Session, job, v1};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};
use tokio::task::JoinHandle;
use windlass_worker::{
    BatchCreator, BatchOptions, Client, Drained, Error, Failure, Job, RefusalKind, Worker,
    WorkerBuilder, WorkerHandle,
};

type Ended = JoinHandle<Result<Drained, Error>>;

/// A fake server, its first session, and a worker at work.
async fn begin(
    set_up: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
) -> (Fake, Session, WorkerHandle, Ended) {
    let mut fake = Fake::start().await;
    let builder = Worker::builder(Client::lazy(fake.address.as_str()).unwrap()).queue("q");
    let worker = set_up(builder.concurrency(4)).build().unwrap();
    let handle = worker.handle();
    let ended = tokio::spawn(worker.run());
    let session = fake.session().await;
    (fake, session, handle, ended)
}

async fn double(job: Job<u64>) -> Result<u64, Failure> {
    Ok(job.payload * 2)
}

fn completed(result: &v1::Result) -> Value {
    let Some(Outcome::Complete(complete)) = &result.outcome else { panic!("{result:?}") };
    serde_json::from_slice(&complete.result).unwrap()
}

fn failed(result: &v1::Result) -> &v1::Fail {
    let Some(Outcome::Fail(fail)) = &result.outcome else { panic!("{result:?}") };
    fail
}

#[tokio::test]
async fn completes_jobs_and_drains() {
    let (_fake, mut session, handle, ended) =
        begin(|worker| worker.worker("w").lease(Duration::from_secs(9)).handler(double)).await;
    let first = session.message().await;
    let hello = first.hello.unwrap();
    assert_eq!((hello.queues, hello.worker, hello.lease_ms), (vec!["q".into()], "w".into(), 9_000));
    assert_eq!(first.credits, 4);

    session.send_jobs([job(1, "21")]);
    let message = session.message().await;
    assert_eq!(message.credits, 1);
    let [result] = message.results.as_slice() else { panic!("{message:?}") };
    assert_eq!((result.key, result.activation, completed(result)), (1, 1, json!(42)));

    handle.drain();
    assert!(session.message().await.drain);
    assert!(!ended.is_finished(), "a result is not answered yet");
    session.answer(1);
    let drained = ended.await.unwrap().unwrap();
    assert_eq!((drained.put_back, drained.unanswered), (0, 0));
    assert_eq!((drained.metrics.completed, drained.metrics.answered), (1, 1));
}

#[tokio::test]
async fn a_batch_of_ready_jobs_is_answered_as_one_batch() {
    let (_fake, mut session, ..) = begin(|worker| worker.concurrency(500).handler(double)).await;
    assert_eq!(session.message().await.credits, 500);
    session.send_jobs((0..500).map(|key| job(key, "1")));
    let mut messages = 0;
    let (mut results, mut credits) = (0, 0);
    while results < 500 {
        let message = session.message().await;
        messages += 1;
        results += message.results.len();
        credits += message.credits;
    }
    assert_eq!(credits, 500);
    // One, unless this machine was so slow that a job took longer than a task is worth.
    assert!(messages < 100, "{messages} messages");
}

#[tokio::test]
async fn a_panic_fails_its_job_and_not_the_worker() {
    let (_fake, mut session, handle, _ended) = begin(|worker| {
        worker.handler(async |job: Job<u64>| -> Result<u64, Failure> {
            if job.payload == 0 {
                panic!("at once");
            }
            tokio::task::yield_now().await;
            assert!(job.payload != 1, "later");
            Ok(job.payload)
        })
    })
    .await;
    session.message().await;
    session.send_jobs([job(1, "0"), job(2, "1"), job(3, "7")]);
    let mut results = session.results(3).await;
    results.sort_by_key(|result| result.key);
    assert_eq!(failed(&results[0]).message, "the handler panicked: at once");
    assert_eq!(failed(&results[1]).message, "the handler panicked: later");
    assert_eq!(completed(&results[2]), json!(7));
    assert_eq!(handle.metrics().panicked, 2);
}

#[tokio::test]
async fn every_way_to_fail_reaches_the_server() {
    let (_fake, mut session, ..) = begin(|worker| {
        worker.handler(async |job: Job<String>| -> Result<(), Failure> {
            match job.payload.as_str() {
                "error" => Err("x".parse::<u8>().unwrap_err())?,
                "permanent" => Err(Failure::permanent("never")),
                "mine" => {
                    let backoff = Duration::from_secs(1);
                    Err(Failure::new("later").retries(7).backoff(backoff).progressed())
                }
                "throw" => Err(Failure::throw("sold-out", "none left")),
                _ => Err(Failure::release(Duration::from_secs(5))),
            }
        })
    })
    .await;
    session.message().await;
    let payloads = ["\"error\"", "\"permanent\"", "\"mine\"", "\"throw\"", "\"put back\"", "{"];
    session.send_jobs(payloads.iter().zip(1..).map(|(payload, key)| job(key, payload)));
    let mut results = session.results(6).await;
    results.sort_by_key(|result| result.key);
    assert_eq!(failed(&results[0]).message, "invalid digit found in string");
    assert!(!failed(&results[0]).permanent && failed(&results[0]).retries.is_none());
    assert!(failed(&results[1]).permanent);
    let mine = failed(&results[2]);
    assert_eq!((mine.retries, mine.backoff_ms, mine.progressed), (Some(7), Some(1_000), true));
    let thrown = v1::Throw { code: "sold-out".into(), message: "none left".into() };
    assert_eq!(results[3].outcome, Some(Outcome::Throw(thrown)));
    assert_eq!(results[4].outcome, Some(Outcome::Release(v1::Release { delay_ms: 5_000 })));
    assert!(failed(&results[5]).permanent);
    assert!(failed(&results[5]).message.starts_with("failed to read the payload: "));
}

#[tokio::test]
async fn an_unanswered_result_is_said_again_after_the_connection_broke() {
    let (mut fake, mut session, handle, _ended) = begin(|worker| worker.handler(double)).await;
    session.message().await;
    session.send_jobs([job(1, "1"), job(2, "2"), job(3, "3")]);
    assert_eq!(session.results(3).await.len(), 3);
    session.answer(1);
    while handle.metrics().answered < 1 {
        tokio::task::yield_now().await;
    }
    session.break_off();

    let mut session = fake.session().await;
    let message = session.message().await;
    assert!(message.hello.is_some());
    assert_eq!(message.credits, 4, "all slots are free");
    let keys: Vec<u64> = message.results.iter().map(|result| result.key).collect();
    assert_eq!(keys, [2, 3]);

    // The first of the two was durable already: told so, the worker forgets it.
    let refusal = v1::Refusal { code: "job-not-found".into(), grpc_code: 5, ..Default::default() };
    let refused = vec![RefusedResult { index: 0, key: 2, refusal: Some(refusal) }];
    session.send(ServerMessage { results: 2, refused, ..ServerMessage::default() });
    while handle.metrics().answered < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(handle.metrics().refused, 1);
    assert_eq!(handle.metrics().connections_lost, 1);
}

#[tokio::test]
async fn a_result_that_no_job_can_have_fails_it() {
    let (_fake, mut session, handle, _ended) = begin(|worker| worker.handler(double)).await;
    session.message().await;
    session.send_jobs([job(1, "1")]);
    assert_eq!(session.results(1).await.len(), 1);
    let message = "the payload is too large".to_owned();
    let refusal = v1::Refusal { message, grpc_code: 3, ..Default::default() };
    let refused = vec![RefusedResult { index: 0, key: 1, refusal: Some(refusal) }];
    session.send(ServerMessage { results: 1, refused, ..ServerMessage::default() });
    let said = session.results(1).await.remove(0);
    let Some(Outcome::Fail(fail)) = said.outcome else { panic!("{said:?}") };
    assert_eq!((said.key, said.activation), (1, 1));
    assert!(fail.permanent);
    assert_eq!(fail.message, "the result was refused: the payload is too large");
    assert_eq!(handle.metrics().refused, 1);
}

#[tokio::test]
async fn a_result_that_no_message_can_hold_fails_its_job() {
    let large = |_: Job<Bytes>| async { Ok::<_, Failure>(Bytes::from(vec![b'1'; 4 << 20])) };
    let (_fake, mut session, ..) = begin(|worker| worker.raw_handler(large)).await;
    session.message().await;
    session.send_jobs([job(1, "1")]);
    let said = session.results(1).await.remove(0);
    let Some(Outcome::Fail(fail)) = said.outcome else { panic!("{said:?}") };
    assert!(fail.permanent);
    assert_eq!(fail.message, "the result has 4194304 bytes, more than 4128768");
}

#[tokio::test]
async fn leases_are_extended_for_as_long_as_a_job_runs() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let (mut fake, mut session, ..) = begin(|worker| {
        worker.lease(Duration::from_millis(300)).handler(move |_: Job<Value>| {
            let held = Arc::clone(&held);
            async move {
                held.notified().await;
                Ok::<_, Failure>(())
            }
        })
    })
    .await;
    session.message().await;
    session.send_jobs([job(5, "")]);
    for _ in 0..3 {
        let message = session.message().await;
        assert_eq!(message.heartbeats, [v1::Token { key: 5, activation: 1 }]);
    }
    session.break_off();

    // The new stream extends it at once: nobody knows how much of the lease the outage took.
    let mut session = fake.session().await;
    let message = session.message().await;
    assert_eq!((message.credits, message.heartbeats.len()), (3, 1));
    release.notify_one();
    assert_eq!(session.results(1).await.len(), 1);
}

#[tokio::test]
async fn a_lease_that_was_given_more_time_is_not_shortened_by_a_new_stream() {
    let (mut fake, mut session, ..) = begin(|worker| {
        worker.handler(async |job: Job<Value>| -> Result<(), Failure> {
            if job.key() == 1 {
                job.context().extend(Duration::from_secs(600)).await.unwrap();
                job.context().log("extended");
            }
            std::future::pending().await
        })
    })
    .await;
    session.message().await;
    session.send_jobs([job(1, ""), job(2, "")]);
    assert_eq!(session.results(1).await[0].key, 1, "it says when it is extended");
    session.break_off();

    let mut session = fake.session().await;
    let message = session.message().await;
    assert_eq!(message.heartbeats, [v1::Token { key: 2, activation: 1 }]);
}

#[tokio::test]
async fn a_stop_cancels_the_context_of_its_job() {
    let (_fake, mut session, ..) = begin(|worker| {
        worker.handler(async |job: Job<Value>| -> Result<bool, Failure> {
            job.context().cancelled().cancelled().await;
            Ok(job.context().lease_lost())
        })
    })
    .await;
    session.message().await;
    session.send_jobs([job(1, ""), job(2, "")]);
    let stop = |key, lease_lost| Stop { key, activation: 1, lease_lost };
    let other_activation = Stop { key: 1, activation: 9, lease_lost: true };
    let stops = vec![other_activation, stop(1, false), stop(2, true), stop(3, true)];
    session.send(ServerMessage { stops, ..ServerMessage::default() });
    let mut results = session.results(2).await;
    results.sort_by_key(|result| result.key);
    assert_eq!((completed(&results[0]), completed(&results[1])), (json!(false), json!(true)));
}

#[tokio::test]
async fn a_drain_cancels_and_then_puts_back_what_does_not_end() {
    let (_fake, mut session, handle, ended) = begin(|worker| {
        worker.drain_timeout(Duration::from_millis(50)).handler(
            async |job: Job<String>| -> Result<String, Failure> {
                job.context().cancelled().cancelled().await;
                if job.payload == "stubborn" {
                    std::future::pending::<()>().await;
                }
                Ok(job.payload)
            },
        )
    })
    .await;
    session.message().await;
    session.send_jobs([job(1, "\"polite\""), job(2, "\"stubborn\"")]);
    while handle.metrics().received < 2 {
        tokio::task::yield_now().await;
    }
    handle.drain();
    let results = session.results(2).await;
    assert_eq!((results[0].key, completed(&results[0])), (1, json!("polite")));
    let put_back = Some(Outcome::Release(v1::Release::default()));
    assert_eq!((results[1].key, &results[1].outcome), (2, &put_back));
    session.answer(2);
    let drained = ended.await.unwrap().unwrap();
    assert_eq!((drained.put_back, drained.unanswered), (1, 0));
}

#[tokio::test]
async fn a_drain_waits_for_a_job_although_others_have_left_before() {
    let (_fake, mut session, handle, ended) = begin(|worker| {
        worker.handler(async |job: Job<u64>| -> Result<u64, Failure> {
            tokio::time::sleep(Duration::from_millis(job.payload)).await;
            Ok(job.payload)
        })
    })
    .await;
    session.message().await;
    session.send_jobs([job(1, "1")]);
    session.results(1).await;
    session.answer(1);
    session.send_jobs([job(2, "6000")]);
    while handle.metrics().received < 2 {
        tokio::task::yield_now().await;
    }
    handle.drain();
    assert_eq!(completed(&session.results(1).await[0]), json!(6_000));
    session.answer(2);
    assert_eq!(ended.await.unwrap().unwrap().put_back, 0);
}

/// Until the stream ends, jobs may be on their way: their leases would else have to end first.
#[tokio::test]
async fn what_arrives_behind_a_drain_is_put_back() {
    let (fake, mut session, handle, ended) = begin(|worker| worker.handler(double)).await;
    session.message().await;
    handle.drain();
    assert!(session.message().await.drain);
    assert!(session.incoming.message().await.unwrap().is_none(), "its side is closed");
    session.send_jobs([job(1, "1"), job(2, "2")]);
    drop(session);
    let drained = ended.await.unwrap().unwrap();
    assert_eq!((drained.put_back, drained.metrics.released), (2, 2));
    assert_eq!(*fake.released.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn jobs_that_wait_run_side_by_side_and_blocking_ones_too() {
    let meeting = Arc::new(Barrier::new(4));
    let (_fake, mut session, ..) = begin(|worker| {
        worker.handler(move |_: Job<Value>| {
            let meeting = Arc::clone(&meeting);
            async move {
                meeting.wait().await;
                Ok::<_, Failure>(())
            }
        })
    })
    .await;
    session.message().await;
    session.send_jobs((0..4).map(|key| job(key, "")));
    assert_eq!(session.results(4).await.len(), 4);

    let meeting = Arc::new(std::sync::Barrier::new(4));
    let (_fake, mut session, ..) = begin(|worker| {
        worker.blocking_handler(move |job: Job<u64>| -> Result<u64, Failure> {
            meeting.wait();
            assert!(job.payload != 3, "three");
            Ok(job.payload)
        })
    })
    .await;
    session.message().await;
    session.send_jobs((0..4).map(|key| job(key, &key.to_string())));
    let mut results = session.results(4).await;
    results.sort_by_key(|result| result.key);
    assert_eq!(completed(&results[2]), json!(2));
    assert_eq!(failed(&results[3]).message, "the handler panicked: three");
}

#[tokio::test]
async fn log_lines_and_progress_leave_before_the_result() {
    let (_fake, mut session, ..) = begin(|worker| {
        worker.raw_handler(async |job: Job<Bytes>| -> Result<Bytes, Failure> {
            job.context().log("one");
            job.context().log("two");
            job.context().progress(150, "half");
            Ok(job.payload)
        })
    })
    .await;
    session.message().await;
    session.send_jobs([job(1, "not JSON")]);
    let results = session.results(3).await;
    let log = v1::Log { lines: vec!["one".into(), "two".into()] };
    assert_eq!(results[0].outcome, Some(Outcome::Log(log)));
    let Some(Outcome::Progress(progress)) = &results[1].outcome else { panic!("{results:?}") };
    assert_eq!((progress.percent, progress.note.as_str()), (100, "half"));
    let Some(Outcome::Complete(complete)) = &results[2].outcome else { panic!("{results:?}") };
    assert_eq!(complete.result, "not JSON");
}

#[tokio::test]
async fn a_refusal_that_no_retry_heals_ends_the_worker() {
    let (_fake, session, _handle, ended) = begin(|worker| worker.handler(double)).await;
    let _ = session.outgoing.send(Err(tonic::Status::invalid_argument("no such queue name")));
    let error = ended.await.unwrap().unwrap_err();
    assert_eq!(error.refusal().map(|refusal| refusal.kind), Some(RefusalKind::InvalidArgument));
}

#[tokio::test]
async fn a_worker_may_start_before_its_server_and_may_be_told_to_stop_meanwhile() {
    let client = Client::lazy("http://127.0.0.1:1").unwrap();
    assert!(matches!(client.status().await, Err(Error::Unreachable { .. })));
    let worker = Worker::builder(client).queue("q").handler(double).build().unwrap();
    let handle = worker.handle();
    let ended = tokio::spawn(worker.run());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!ended.is_finished());
    handle.drain();
    assert_eq!(ended.await.unwrap().unwrap().metrics.connections, 0);
}

#[test]
fn a_worker_needs_a_queue_a_handler_and_sane_numbers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _guard = runtime.enter();
    let builder = || Worker::builder(Client::lazy("http://127.0.0.1:1").unwrap());
    assert!(builder().handler(double).build().is_err());
    assert!(builder().queue("q").build().is_err());
    assert!(builder().queue("q").handler(double).concurrency(0).build().is_err());
    assert!(builder().queue("q").handler(double).lease(Duration::ZERO).build().is_err());
    assert!(builder().queue("q").handler(double).build().is_ok());
}

#[tokio::test]
async fn creates_of_many_callers_share_batches() {
    let fake = Fake::start().await;
    let client = Client::lazy(fake.address.as_str()).unwrap();
    let creator = BatchCreator::new(client, BatchOptions::default());
    let creates = (0..200_u8).map(|key| {
        let creator = creator.clone();
        tokio::spawn(async move { creator.create(new_job(key)).await.unwrap().key })
    });
    for (key, create) in (0..200).zip(creates.collect::<Vec<_>>()) {
        assert_eq!(create.await.unwrap(), key);
    }
    let refused = creator.create(windlass_worker::v1::NewJob::new("q")).await.unwrap_err();
    assert_eq!(refused.refusal().map(|refusal| refusal.code.as_str()), Some("empty"));
    let batches = fake.creates.lock().unwrap().batches.len();
    assert!(batches < 100, "{batches} batches");
}

#[tokio::test]
async fn a_retried_create_asks_again_with_the_same_request_id() {
    let fake = Fake::start().await;
    fake.creates.lock().unwrap().unavailable = 2;
    let client = Client::lazy(fake.address.as_str()).unwrap();
    let retry_for = Some(Duration::from_secs(30));
    let options = BatchOptions { retry_for, ..BatchOptions::default() };
    let created = BatchCreator::new(client, options).create(new_job(9)).await.unwrap();
    assert_eq!(created.key, 9);
    let creates = fake.creates.lock().unwrap();
    assert_eq!(creates.batches.len(), 3);
    let id = &creates.batches[0][0].options.as_ref().unwrap().request_id;
    assert_eq!(id.len(), 32);
    assert!(creates.batches.iter().all(|batch| batch[0] == creates.batches[0][0]));
}

fn new_job(key: u8) -> windlass_worker::v1::NewJob {
    windlass_worker::v1::NewJob::new("q").payload(vec![key])
}
