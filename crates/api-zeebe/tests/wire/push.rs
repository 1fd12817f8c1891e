//! StreamActivatedJobs: the backlog in order, then jobs as they become ready; bounded; what was not
//! sent goes back.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tonic::{Code, Streaming};
use windlass_api_zeebe::limit::STREAM_UNSENT_JOBS_MAX;

use crate::common::{Bench, PATIENCE, activate, activation, complete, fail, stream_of, take};
use crate::protocol as p;

type Jobs = Streaming<p::ActivatedJob>;

async fn next(jobs: &mut Jobs) -> p::ActivatedJob {
    timeout(PATIENCE, jobs.message()).await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn the_backlog_in_order_and_then_what_comes() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let first = bench.create("t").await;
    let high = bench.create_with("t", |job| job.priority = 5).await;
    let second = bench.create("t").await;
    let request =
        p::StreamActivatedJobsRequest { fetch_variable: vec!["a".to_owned()], ..stream_of("t") };
    let mut jobs = client.stream_activated_jobs(request).await.unwrap().into_inner();
    for expected in [high, first, second] {
        let job = next(&mut jobs).await;
        assert_eq!(job.key, expected);
        assert_eq!((job.variables.as_str(), job.worker.as_str()), (r#"{"a":1}"#, "w"));
    }
    let third = bench.create("t").await;
    assert_eq!(next(&mut jobs).await.key, third);

    fail(&mut client, first, 2).await.unwrap();
    let again = next(&mut jobs).await;
    assert_eq!((again.key, again.retries), (first, 2));
    complete(&mut client, first).await.unwrap();
}

#[tokio::test]
async fn a_long_backlog_comes_whole_and_in_order() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let mut created = Vec::new();
    for _ in 0..500 {
        created.push(bench.create("t").await);
    }
    let mut jobs = client.stream_activated_jobs(stream_of("t")).await.unwrap().into_inner();
    for expected in created {
        assert_eq!(next(&mut jobs).await.key, expected);
    }
}

#[tokio::test]
async fn backoff_timeout_and_incident_push_again() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let request = p::StreamActivatedJobsRequest { timeout: 300, ..stream_of("t") };
    let mut jobs = client.stream_activated_jobs(request).await.unwrap().into_inner();
    let key = bench.create("t").await;
    assert_eq!(next(&mut jobs).await.key, key);
    // The timeout of the first activation.
    assert_eq!(next(&mut jobs).await.key, key);

    let failed = Instant::now();
    let request =
        p::FailJobRequest { job_key: key, retries: 1, retry_back_off: 200, ..Default::default() };
    client.fail_job(request).await.unwrap();
    assert_eq!(next(&mut jobs).await.key, key);
    assert!(failed.elapsed() >= Duration::from_millis(190), "{:?}", failed.elapsed());
}

#[tokio::test]
async fn what_is_refused() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    for request in [
        p::StreamActivatedJobsRequest { r#type: " ".into(), ..stream_of("t") },
        p::StreamActivatedJobsRequest { timeout: 0, ..stream_of("t") },
        p::StreamActivatedJobsRequest { tenant_ids: vec!["a".into()], ..stream_of("t") },
    ] {
        let status = client.stream_activated_jobs(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
}

/// A client that does not read: it gets what the transport takes and a bounded number more, and
/// when it goes, what it was not sent is ready again at once, with its retries.
#[tokio::test]
async fn a_client_that_does_not_read_is_owed_little_and_gives_it_back() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let text = format!("{{\"a\":\"{}\"}}", "x".repeat(32 << 10));
    const JOBS: usize = 600;
    for _ in 0..JOBS {
        bench.create_with("t", |job| job.payload = text.as_bytes().into()).await;
    }
    let mut lazy = bench.client_with_small_windows().await;
    let jobs = lazy.stream_activated_jobs(stream_of("t")).await.unwrap().into_inner();
    let sent_max = (64 + 64) * 1024 / text.len() + 4;
    let active_max = usize::try_from(STREAM_UNSENT_JOBS_MAX).unwrap() + sent_max;
    let active = bench.settled_active().await;
    assert!((1..=active_max).contains(&active), "{active} are active, not {active_max}");

    drop((jobs, lazy));
    bench.wait_for_waiters(0).await;
    let mut ready = Vec::new();
    let all = || p::ActivateJobsRequest { max_jobs_to_activate: 1_000, ..activation("t") };
    let deadline = Instant::now() + PATIENCE;
    while ready.len() < JOBS - sent_max && Instant::now() < deadline {
        ready.extend(activate(&mut client, all()).await.unwrap());
    }
    assert!(ready.len() >= JOBS - sent_max, "{} are ready", ready.len());
    assert!(ready.iter().all(|job| job.retries == 3));
}

#[tokio::test]
async fn polls_and_streams_share_one_line() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let mut jobs = client.stream_activated_jobs(stream_of("t")).await.unwrap().into_inner();
    bench.wait_for_waiters(1).await;
    let mut polling = bench.client().await;
    let request = p::ActivateJobsRequest { request_timeout: 60_000, ..activation("t") };
    let poll = tokio::spawn(async move { activate(&mut polling, request).await });
    bench.wait_for_waiters(2).await;
    let first = bench.create("t").await;
    let second = bench.create("t").await;
    assert_eq!(next(&mut jobs).await.key, first);
    let polled = timeout(PATIENCE, poll).await.unwrap().unwrap().unwrap();
    assert_eq!(polled[0].key, second);
}

#[tokio::test]
async fn a_shutdown_ends_streams_with_unavailable_and_polls_with_nothing() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let mut jobs = client.stream_activated_jobs(stream_of("t")).await.unwrap().into_inner();
    let request = p::ActivateJobsRequest { request_timeout: 60_000, ..activation("t") };
    let mut polling = client.clone();
    let poll = tokio::spawn(async move { activate(&mut polling, request).await });
    bench.wait_for_waiters(2).await;
    let Bench { server, .. } = bench;
    let stopping = tokio::spawn(server.stop());
    let polled = timeout(PATIENCE, poll).await.unwrap().unwrap().unwrap();
    assert!(polled.is_empty());
    let status = timeout(PATIENCE, jobs.message()).await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    drop((jobs, client));
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
}

/// Clients ask often whether the connection lives; that ends none of them. Pings come by time alone
/// and nobody sees them: some dozens are waited for.
#[tokio::test]
async fn frequent_keep_alive_pings_end_nothing() {
    let bench = Bench::start().await;
    let endpoint = tonic::transport::Channel::from_shared(bench.url()).unwrap();
    let endpoint = endpoint
        .http2_keep_alive_interval(Duration::from_millis(10))
        .keep_alive_while_idle(true)
        .keep_alive_timeout(PATIENCE);
    let channel = endpoint.connect().await.unwrap();
    let mut client = p::gateway_client::GatewayClient::new(channel);
    let mut jobs = client.stream_activated_jobs(stream_of("t")).await.unwrap().into_inner();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let key = bench.create("t").await;
    assert_eq!(next(&mut jobs).await.key, key);
}

#[tokio::test]
async fn a_stream_that_is_gone_gets_nothing() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let jobs = client.stream_activated_jobs(stream_of("t")).await.unwrap().into_inner();
    bench.wait_for_waiters(1).await;
    drop(jobs);
    bench.wait_for_waiters(0).await;
    let key = bench.create("t").await;
    assert_eq!(take(&mut client, "t").await, [key]);
}
