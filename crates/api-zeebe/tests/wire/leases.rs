//! `withLease`: tokens that fence stale workers.

use tonic::{Code, Status};

use crate::common::{Bench, Client, activate, activation, complete, stream_of};
use crate::protocol as p;

fn leased(timeout: i64) -> p::ActivateJobsRequest {
    p::ActivateJobsRequest { with_lease: true, timeout, ..activation("t") }
}

async fn take_leased(client: &mut Client, timeout: i64) -> String {
    let jobs = activate(client, leased(timeout)).await.unwrap();
    jobs[0].lease_token.clone().unwrap()
}

async fn complete_with(client: &mut Client, job_key: i64, token: &str) -> Result<(), Status> {
    let lease_token = Some(token.to_owned());
    let request = p::CompleteJobRequest { job_key, lease_token, ..Default::default() };
    client.complete_job(request).await.map(|_| ())
}

fn fenced(result: Result<(), Status>) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(status.message().contains("lease"), "{status}");
}

#[tokio::test]
async fn results_of_a_leased_job_need_its_token() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let token = take_leased(&mut client, 60_000).await;
    fenced(complete(&mut client, key).await);
    fenced(complete_with(&mut client, key, "nonsense").await);
    fenced(complete_with(&mut client, key, &format!("{token}0")).await);
    let fail = p::FailJobRequest { job_key: key, retries: 1, ..Default::default() };
    fenced(client.fail_job(fail.clone()).await.map(|_| ()));
    let throw = p::ThrowErrorRequest { job_key: key, error_code: "e".into(), ..Default::default() };
    fenced(client.throw_error(throw).await.map(|_| ()));
    let lease_token = Some(token);
    client.fail_job(p::FailJobRequest { lease_token, ..fail }).await.unwrap();
}

#[tokio::test]
async fn a_token_is_stale_after_the_next_activation_and_not_before() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let first = take_leased(&mut client, 50).await;
    bench.wait_for_state(key, "ready").await;
    let second = take_leased(&mut client, 50).await;
    assert_ne!(first, second);
    fenced(complete_with(&mut client, key, &first).await);
    // Its time is over, and nobody else has the job.
    bench.wait_for_state(key, "ready").await;
    complete_with(&mut client, key, &second).await.unwrap();
    let gone = complete_with(&mut client, key, &second).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test]
async fn updates_need_no_token_and_refuse_a_wrong_one() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let token = take_leased(&mut client, 60_000).await;
    let retries = |lease_token: Option<&str>| p::UpdateJobRetriesRequest {
        job_key: key,
        retries: 5,
        lease_token: lease_token.map(str::to_owned),
        ..Default::default()
    };
    client.update_job_retries(retries(None)).await.unwrap();
    client.update_job_retries(retries(Some(&token))).await.unwrap();
    fenced(client.update_job_retries(retries(Some("x"))).await.map(|_| ()));
    let timeout = |lease_token: Option<&str>| p::UpdateJobTimeoutRequest {
        job_key: key,
        timeout: 60_000,
        lease_token: lease_token.map(str::to_owned),
        ..Default::default()
    };
    client.update_job_timeout(timeout(None)).await.unwrap();
    fenced(client.update_job_timeout(timeout(Some("x"))).await.map(|_| ()));
    let priority = |lease_token: Option<&str>| p::UpdateJobPriorityRequest {
        job_key: key,
        priority: Some(3),
        lease_token: lease_token.map(str::to_owned),
        ..Default::default()
    };
    client.update_job_priority(priority(None)).await.unwrap();
    fenced(client.update_job_priority(priority(Some("x"))).await.map(|_| ()));
}

/// A job that was once leased goes to callers who lease, and to nobody else.
#[tokio::test]
async fn a_job_once_leased_is_for_callers_who_lease() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let first = take_leased(&mut client, 50).await;
    let wait = p::ActivateJobsRequest { request_timeout: 300, ..activation("t") };
    assert!(activate(&mut client, wait).await.unwrap().is_empty());
    let second = take_leased(&mut client, 60_000).await;
    fenced(complete(&mut client, key).await);
    fenced(complete_with(&mut client, key, &first).await);
    complete_with(&mut client, key, &second).await.unwrap();
}

#[tokio::test]
async fn streams_lease_too() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let request = p::StreamActivatedJobsRequest { with_lease: true, ..stream_of("t") };
    let mut jobs = client.stream_activated_jobs(request).await.unwrap().into_inner();
    let job = jobs.message().await.unwrap().unwrap();
    assert_eq!(job.key, key);
    fenced(complete(&mut client, key).await);
    complete_with(&mut client, key, &job.lease_token.unwrap()).await.unwrap();
}
