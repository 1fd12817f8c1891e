//! What workers and people say about jobs: what it does, and every way in which it is refused.

use std::time::{Duration, Instant};

use tonic::{Code, Status};
use windlass_record::id::JobKey;

use crate::common::{Bench, Client, activate, activation, complete, fail, in_time, take};
use crate::protocol as p;

/// Names nothing.
const NO_KEY: i64 = 42;

fn refused(result: Result<(), Status>, code: Code, words: &str) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{status}");
}

async fn throw(client: &mut Client, job_key: i64, error_code: &str) -> Result<(), Status> {
    let error_code = error_code.to_owned();
    let request = p::ThrowErrorRequest { job_key, error_code, ..Default::default() };
    client.throw_error(request).await.map(|_| ())
}

async fn retries(client: &mut Client, job_key: i64, retries: i32) -> Result<(), Status> {
    let request = p::UpdateJobRetriesRequest { job_key, retries, ..Default::default() };
    client.update_job_retries(request).await.map(|_| ())
}

async fn push_deadline(client: &mut Client, job_key: i64, timeout: i64) -> Result<(), Status> {
    let request = p::UpdateJobTimeoutRequest { job_key, timeout, ..Default::default() };
    client.update_job_timeout(request).await.map(|_| ())
}

async fn prefer(client: &mut Client, job_key: i64, priority: Option<i32>) -> Result<(), Status> {
    let request = p::UpdateJobPriorityRequest { job_key, priority, ..Default::default() };
    client.update_job_priority(request).await.map(|_| ())
}

async fn resolve(client: &mut Client, incident_key: i64) -> Result<(), Status> {
    let request = p::ResolveIncidentRequest { incident_key, ..Default::default() };
    client.resolve_incident(request).await.map(|_| ())
}

/// The incident of a job, which this wire does not tell.
async fn incident(bench: &Bench, job_key: i64) -> i64 {
    let key = JobKey::from_raw(job_key.cast_unsigned());
    let view = bench.server.gateway().job(key).await.unwrap().unwrap();
    view.extra.unwrap().incident.unwrap().key.raw().cast_signed()
}

/// A job that its worker failed for the last time.
async fn failed(bench: &Bench, client: &mut Client) -> i64 {
    let key = bench.create("t").await;
    assert_eq!(take(client, "t").await, [key]);
    fail(client, key, 0).await.unwrap();
    key
}

#[tokio::test]
async fn a_key_that_names_nothing_is_not_found() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    for key in [NO_KEY, 0, -1, i64::MIN, i64::MAX] {
        let found = "no such job was found";
        refused(complete(&mut client, key).await, Code::NotFound, found);
        refused(fail(&mut client, key, 1).await, Code::NotFound, found);
        refused(throw(&mut client, key, "e").await, Code::NotFound, found);
        refused(retries(&mut client, key, 1).await, Code::NotFound, found);
        refused(push_deadline(&mut client, key, 1).await, Code::NotFound, found);
        refused(prefer(&mut client, key, Some(1)).await, Code::NotFound, found);
        refused(resolve(&mut client, key).await, Code::NotFound, "no such incident was found");
    }
    let status = complete(&mut client, NO_KEY).await.unwrap_err();
    assert_eq!(
        status.message(),
        "Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key \
         '42', but no such job was found"
    );
}

#[tokio::test]
async fn the_first_completion_wins() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    take(&mut client, "t").await;
    complete(&mut client, key).await.unwrap();
    refused(complete(&mut client, key).await, Code::NotFound, "no such job");
    refused(fail(&mut client, key, 1).await, Code::NotFound, "no such job");
}

#[tokio::test]
async fn anybody_may_complete_a_job_that_nobody_took() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    complete(&mut client, key).await.unwrap();
    assert!(take(&mut client, "t").await.is_empty());
}

#[tokio::test]
async fn variables_are_an_object() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    take(&mut client, "t").await;
    for variables in ["[1]", "1", "{", "x", "\"a\""] {
        let variables = variables.to_owned();
        let request = p::CompleteJobRequest {
            job_key: key,
            variables: variables.clone(),
            ..Default::default()
        };
        let done = client.complete_job(request).await.map(|_| ());
        refused(done, Code::InvalidArgument, "variables");
        let request =
            p::FailJobRequest { job_key: key, variables: variables.clone(), ..Default::default() };
        let done = client.fail_job(request).await.map(|_| ());
        refused(done, Code::InvalidArgument, "variables");
        let request = p::ThrowErrorRequest { job_key: key, variables, ..Default::default() };
        let done = client.throw_error(request).await.map(|_| ());
        refused(done, Code::InvalidArgument, "variables");
    }
    let variables = r#"{"x":1}"#.to_owned();
    let request = p::CompleteJobRequest { job_key: key, variables, ..Default::default() };
    client.complete_job(request).await.unwrap();
    let view = bench.server.gateway().job(JobKey::from_raw(key.cast_unsigned())).await.unwrap();
    assert_eq!(&*view.unwrap().result, br#"{"x":1}"#);
}

#[tokio::test]
async fn a_timeout_gives_the_job_to_the_next_within_fifty_milliseconds_and_costs_no_retry() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    in_time(async || {
        let asked = Instant::now();
        let short = p::ActivateJobsRequest { timeout: 200, ..activation("t") };
        assert_eq!(activate(&mut client, short).await.unwrap()[0].key, key);
        let held = Instant::now();
        let wait = p::ActivateJobsRequest { request_timeout: 10_000, ..activation("t") };
        let jobs = activate(&mut client, wait).await.unwrap();
        let done = Instant::now();
        assert_eq!((jobs[0].key, jobs[0].retries), (key, 3));
        assert!(done - asked >= Duration::from_millis(199), "{:?}", done - asked);
        fail(&mut client, key, 3).await.unwrap();
        // Its lease ends between the two, so it is early at no time.
        (done.min(held + Duration::from_millis(200)), done)
    })
    .await;
}

#[tokio::test]
async fn a_late_completion_counts_and_a_late_failure_does_not() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let short = p::ActivateJobsRequest { timeout: 50, ..activation("t") };
    activate(&mut client, short).await.unwrap();
    bench.wait_for_state(key, "ready").await;
    let late = fail(&mut client, key, 1).await;
    refused(late, Code::FailedPrecondition, "Command 'FAIL' rejected with code 'INVALID_STATE'");
    let jobs = activate(&mut client, activation("t")).await.unwrap();
    assert_eq!(jobs[0].retries, 3, "it cost no retry");
    // Somebody else has it by now; still the first completion wins.
    complete(&mut client, key).await.unwrap();
    refused(complete(&mut client, key).await, Code::NotFound, "no such job");
}

#[tokio::test]
async fn a_failure_sets_retries_and_waits_for_its_backoff() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    take(&mut client, "t").await;
    fail(&mut client, key, 9).await.unwrap();
    let jobs = activate(&mut client, activation("t")).await.unwrap();
    assert_eq!(jobs[0].retries, 9, "the number given, not one less");

    in_time(async || {
        let failed = Instant::now();
        fail_for(&mut client, key, 300).await;
        let wait = p::ActivateJobsRequest { request_timeout: 10_000, ..activation("t") };
        let jobs = activate(&mut client, wait).await.unwrap();
        assert_eq!((jobs[0].key, jobs[0].retries), (key, 2));
        (failed + Duration::from_millis(300), Instant::now())
    })
    .await;

    fail_for(&mut client, key, 60_000).await;
    assert!(take(&mut client, "t").await.is_empty());
    let state = "it is in state 'FAILED'";
    refused(complete(&mut client, key).await, Code::FailedPrecondition, state);
    refused(fail(&mut client, key, 1).await, Code::FailedPrecondition, state);
    refused(throw(&mut client, key, "e").await, Code::FailedPrecondition, state);
}

/// Fails a job that is to be tried twice more, after `backoff_ms`.
async fn fail_for(client: &mut Client, key: i64, backoff_ms: i64) {
    let request = p::FailJobRequest {
        job_key: key,
        retries: 2,
        error_message: "no".into(),
        retry_back_off: backoff_ms,
        ..Default::default()
    };
    client.fail_job(request).await.unwrap();
}

#[tokio::test]
async fn without_retries_a_job_waits_for_a_person() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = failed(&bench, &mut client).await;
    assert!(take(&mut client, "t").await.is_empty());
    let state = "it is in state 'FAILED'";
    refused(complete(&mut client, key).await, Code::FailedPrecondition, state);
    refused(fail(&mut client, key, 1).await, Code::FailedPrecondition, state);
    refused(throw(&mut client, key, "e").await, Code::FailedPrecondition, state);

    let incident = incident(&bench, key).await;
    let none_left = "no retries left";
    refused(resolve(&mut client, incident).await, Code::FailedPrecondition, none_left);
    retries(&mut client, key, 2).await.unwrap();
    assert!(take(&mut client, "t").await.is_empty(), "new retries wake nobody");
    resolve(&mut client, incident).await.unwrap();
    let jobs = activate(&mut client, activation("t")).await.unwrap();
    assert_eq!((jobs[0].key, jobs[0].retries), (key, 2));
    refused(resolve(&mut client, incident).await, Code::NotFound, "no such incident");
}

#[tokio::test]
async fn negative_retries_are_none() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    take(&mut client, "t").await;
    fail(&mut client, key, -3).await.unwrap();
    assert!(incident(&bench, key).await > 0);
}

#[tokio::test]
async fn an_error_that_nobody_catches_waits_for_a_person() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    take(&mut client, "t").await;
    throw(&mut client, key, "E1").await.unwrap();
    let state = "it is in state 'ERROR_THROWN'";
    refused(complete(&mut client, key).await, Code::FailedPrecondition, state);
    refused(fail(&mut client, key, 1).await, Code::FailedPrecondition, state);
    refused(throw(&mut client, key, "E1").await, Code::FailedPrecondition, state);
    resolve(&mut client, incident(&bench, key).await).await.unwrap();
    assert_eq!(take(&mut client, "t").await, [key], "the same job again");
}

/// pyzeebe sends an empty code unless it is given one.
#[tokio::test]
async fn an_error_may_have_no_code() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    throw(&mut client, key, "").await.unwrap();
    assert!(incident(&bench, key).await > 0);
}

#[tokio::test]
async fn retries_must_be_positive() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    for wrong in [0, -1] {
        refused(retries(&mut client, key, wrong).await, Code::InvalidArgument, "a positive amount");
    }
    retries(&mut client, key, 7).await.unwrap();
    let jobs = activate(&mut client, activation("t")).await.unwrap();
    assert_eq!(jobs[0].retries, 7);
}

#[tokio::test]
async fn a_new_timeout_counts_from_now() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let state = "Expected to update the timeout of job with key";
    refused(push_deadline(&mut client, key, 1_000).await, Code::FailedPrecondition, state);
    take(&mut client, "t").await;
    in_time(async || {
        let updated = Instant::now();
        push_deadline(&mut client, key, 300).await.unwrap();
        let wait = p::ActivateJobsRequest { request_timeout: 10_000, ..activation("t") };
        assert_eq!(activate(&mut client, wait).await.unwrap()[0].key, key);
        (updated + Duration::from_millis(300), Instant::now())
    })
    .await;
    // Past is now.
    push_deadline(&mut client, key, -1).await.unwrap();
    let wait = p::ActivateJobsRequest { request_timeout: 10_000, ..activation("t") };
    assert_eq!(activate(&mut client, wait).await.unwrap()[0].key, key);
}

#[tokio::test]
async fn a_new_priority_reorders() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let first = bench.create("t").await;
    let second = bench.create("t").await;
    refused(prefer(&mut client, second, None).await, Code::InvalidArgument, "no priority");
    prefer(&mut client, second, Some(1)).await.unwrap();
    assert_eq!(take(&mut client, "t").await, [second, first]);
}

#[tokio::test]
async fn only_listeners_of_user_tasks_have_a_result() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let result =
        |result| p::CompleteJobRequest { job_key: key, result: Some(result), ..Default::default() };
    let corrections = p::JobResultCorrections { priority: Some(1), ..Default::default() };
    let corrected = p::JobResult { corrections: Some(corrections), ..Default::default() };
    let denied = p::JobResult { denied: Some(true), ..Default::default() };
    for given in [denied.clone(), corrected.clone()] {
        let done = client.complete_job(result(given)).await;
        refused(done.map(|_| ()), Code::InvalidArgument, "only the listener of a user task");
    }
    let both = p::JobResult { denied: Some(true), ..corrected };
    let done = client.complete_job(result(both)).await;
    refused(done.map(|_| ()), Code::InvalidArgument, "denies and corrects");
    let fulfilled = Some(true);
    let ad_hoc =
        p::JobResult { is_completion_condition_fulfilled: fulfilled, ..Default::default() };
    let done = client.complete_job(result(ad_hoc)).await;
    refused(done.map(|_| ()), Code::Unimplemented, "not supported yet");
    let empty = p::JobResult { denied: Some(false), ..Default::default() };
    client.complete_job(result(empty)).await.unwrap();
}
