//! ActivateJobs: what it hands out, in what order, how long it waits, how it ends.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tonic::Code;
use windlass_record::command::JobOptions;

use crate::common::{Bench, PATIENCE, activate, activation, complete, fail, in_time, take};
use crate::protocol as p;

#[tokio::test]
async fn an_activated_job_says_everything() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench
        .create_with("mail", |job| {
            job.priority = -7;
            job.retries = 5;
            job.options = Some(Box::new(JobOptions {
                headers: br#"{"to":"you"}"#.as_slice().into(),
                ..*job.options.take().unwrap()
            }));
        })
        .await;
    let before = now_ms();
    let jobs = activate(&mut client, activation("mail")).await.unwrap();
    assert_eq!(jobs.len(), 1);
    let job = &jobs[0];
    assert_eq!((job.key, job.r#type.as_str(), job.worker.as_str()), (key, "mail", "w"));
    assert_eq!(job.key >> 51, 1, "the key carries the partition");
    assert_eq!((job.retries, job.priority), (5, -7));
    assert_eq!(job.custom_headers, r#"{"to":"you"}"#);
    assert_eq!(job.variables, r#"{"a":1,"b":{"c":[2]},"d":"3"}"#);
    assert_eq!(job.tenant_id, "<default>");
    assert_eq!(job.kind(), p::activated_job::JobKind::BpmnElement);
    assert_eq!(job.listener_event_type(), p::activated_job::ListenerEventType::Unspecified);
    assert_eq!(job.lease_token, None);
    assert!((before + 59_000..before + 80_000).contains(&job.deadline), "{}", job.deadline);
    complete(&mut client, key).await.unwrap();
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[tokio::test]
async fn a_job_without_variables_or_headers_says_empty_objects() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    bench.create_with("t", |job| job.payload = [].as_slice().into()).await;
    let jobs = activate(&mut client, activation("t")).await.unwrap();
    assert_eq!((jobs[0].variables.as_str(), jobs[0].custom_headers.as_str()), ("{}", "{}"));
}

#[tokio::test]
async fn only_the_wanted_variables() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    bench.create("t").await;
    let fetch_variable = vec!["b".to_owned(), "missing".to_owned()];
    let request = p::ActivateJobsRequest { fetch_variable, ..activation("t") };
    let jobs = activate(&mut client, request).await.unwrap();
    assert_eq!(jobs[0].variables, r#"{"b":{"c":[2]}}"#);
}

#[tokio::test]
async fn what_is_refused() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let good = || activation("t");
    let tenants = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (request, expected) in [
        (
            p::ActivateJobsRequest { r#type: String::new(), ..good() },
            "type to be present, but it was blank",
        ),
        (
            p::ActivateJobsRequest { r#type: "  ".into(), ..good() },
            "type to be present, but it was blank",
        ),
        (p::ActivateJobsRequest { timeout: 0, ..good() }, "timeout to be greater than zero"),
        (p::ActivateJobsRequest { timeout: -1, ..good() }, "timeout to be greater than zero"),
        (p::ActivateJobsRequest { max_jobs_to_activate: 0, ..good() }, "at least one job"),
        (p::ActivateJobsRequest { max_jobs_to_activate: -1, ..good() }, "at least one job"),
        (p::ActivateJobsRequest { tenant_ids: tenants(&["a"]), ..good() }, "multi-tenancy"),
        (
            p::ActivateJobsRequest { tenant_ids: tenants(&["<default>", "a"]), ..good() },
            "multi-tenancy",
        ),
        (p::ActivateJobsRequest { r#type: "t".repeat(300), ..good() }, "over the limit"),
    ] {
        let status = activate(&mut client, request.clone()).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{request:?}: {status}");
        assert!(status.message().contains(expected), "{status}");
    }
    let status = activate(&mut client, p::ActivateJobsRequest { timeout: 0, ..good() }).await;
    let status = status.unwrap_err();
    let shape = "Command 'ACTIVATE' rejected with code 'INVALID_ARGUMENT': Expected to activate";
    assert!(status.message().starts_with(shape), "{status}");
}

#[tokio::test]
async fn what_is_not_refused() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let default = vec!["<default>".to_owned()];
    let assigned = p::TenantFilter::Assigned.into();
    for request in [
        p::ActivateJobsRequest { worker: String::new(), ..activation("t") },
        p::ActivateJobsRequest { tenant_ids: default, ..activation("t") },
        p::ActivateJobsRequest {
            tenant_ids: vec!["a".to_owned()],
            tenant_filter: assigned,
            ..activation("t")
        },
        p::ActivateJobsRequest { max_jobs_to_activate: i32::MAX, ..activation("t") },
    ] {
        bench.create("t").await;
        assert_eq!(activate(&mut client, request).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_negative_request_timeout_answers_at_once() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    in_time(async || {
        let asked = Instant::now();
        assert!(activate(&mut client, activation("t")).await.unwrap().is_empty());
        let answered = Instant::now();
        // From the second time on the queue exists.
        let key = bench.create("t").await;
        assert_eq!(take(&mut client, "t").await, [key]);
        (asked, answered)
    })
    .await;
}

#[tokio::test]
async fn a_positive_request_timeout_ends_ok_and_empty() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    in_time(async || {
        let asked = Instant::now();
        let request = p::ActivateJobsRequest { request_timeout: 300, ..activation("t") };
        assert!(activate(&mut client, request).await.unwrap().is_empty());
        (asked + Duration::from_millis(300), Instant::now())
    })
    .await;
}

#[tokio::test]
async fn request_timeout_zero_waits_ten_seconds() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    let asked = Instant::now();
    let request = p::ActivateJobsRequest { request_timeout: 0, ..activation("t") };
    assert!(activate(&mut client, request).await.unwrap().is_empty());
    let took = asked.elapsed();
    let wait = Duration::from_millis(9_999)..Duration::from_secs(12);
    assert!(wait.contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_waiting_poll_gets_one_job_at_once_and_does_not_fill_up() {
    let bench = Bench::off_the_disk().await;
    let mut client = bench.client().await;
    in_time(async || {
        let request = p::ActivateJobsRequest { request_timeout: 60_000, ..activation("t") };
        let mut polling = client.clone();
        let poll = tokio::spawn(async move { activate(&mut polling, request).await });
        bench.wait_for_waiters(1).await;
        let created = Instant::now();
        let key = bench.create("t").await;
        let jobs = timeout(PATIENCE, poll).await.unwrap().unwrap().unwrap();
        assert_eq!(jobs.iter().map(|job| job.key).collect::<Vec<_>>(), [key]);
        (created, Instant::now())
    })
    .await;
    let second = bench.create("t").await;
    assert_eq!(take(&mut client, "t").await, [second]);
}

#[tokio::test]
async fn the_oldest_poll_is_served_first() {
    let bench = Bench::start().await;
    let mut polls = Vec::new();
    for waiting in 1..=3 {
        let mut client = bench.client().await;
        let request = p::ActivateJobsRequest { request_timeout: 60_000, ..activation("t") };
        polls.push(tokio::spawn(async move { activate(&mut client, request).await }));
        bench.wait_for_waiters(waiting).await;
    }
    for poll in polls {
        let key = bench.create("t").await;
        let jobs = timeout(PATIENCE, poll).await.unwrap().unwrap().unwrap();
        assert_eq!(jobs[0].key, key);
    }
}

#[tokio::test]
async fn priority_first_then_age_and_a_retried_job_keeps_its_age() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let first = bench.create("t").await;
    let high = bench.create_with("t", |job| job.priority = 5).await;
    let second = bench.create("t").await;
    let low = bench.create_with("t", |job| job.priority = -1).await;
    let one = || p::ActivateJobsRequest { max_jobs_to_activate: 1, ..activation("t") };
    assert_eq!(activate(&mut client, one()).await.unwrap()[0].key, high);
    assert_eq!(activate(&mut client, one()).await.unwrap()[0].key, first);
    fail(&mut client, first, 1).await.unwrap();
    assert_eq!(take(&mut client, "t").await, [first, second, low]);
}

#[tokio::test]
async fn max_jobs_is_kept() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    for _ in 0..5 {
        bench.create("t").await;
    }
    let two = p::ActivateJobsRequest { max_jobs_to_activate: 2, ..activation("t") };
    assert_eq!(activate(&mut client, two).await.unwrap().len(), 2);
    assert_eq!(take(&mut client, "t").await.len(), 3);
}

/// Variables of 1 MiB each: more than a message holds, in several messages.
#[tokio::test]
async fn an_answer_is_as_many_messages_as_it_needs() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let text = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    for _ in 0..9 {
        bench.create_with("t", |job| job.payload = text.as_bytes().into()).await;
    }
    let mut messages = client.activate_jobs(activation("t")).await.unwrap().into_inner();
    let mut counts = Vec::new();
    while let Some(message) = messages.message().await.unwrap() {
        assert!(message.jobs.iter().all(|job| job.variables.len() == text.len()));
        counts.push(message.jobs.len());
    }
    assert_eq!(counts.iter().sum::<usize>(), 9, "{counts:?}");
    assert!(counts.len() > 2, "{counts:?}");
}

/// The rest of an answer is not even handed out before the transport wants it.
#[tokio::test]
async fn a_client_that_does_not_read_its_answer_keeps_no_more_than_it_was_sent() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let text = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let mut created = Vec::new();
    for _ in 0..9 {
        let key = bench.create_with("t", |job| job.payload = text.as_bytes().into()).await;
        created.push(key);
    }
    let mut lazy = bench.client_with_small_windows().await;
    let messages = lazy.activate_jobs(activation("t")).await.unwrap().into_inner();
    let sent = bench.settled_active().await;
    assert!((1..=2).contains(&sent), "{sent} were sent");
    drop((messages, lazy));
    let sent = bench.settled_active().await;
    assert!((1..=2).contains(&sent), "{sent} were sent");
    assert_eq!(take(&mut client, "t").await, created.split_off(sent));
}

#[tokio::test]
async fn a_job_too_large_for_a_message_waits_for_a_person_and_holds_up_nobody() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let text = format!("{{\"a\":\"{}\"}}", "x".repeat((4 << 20) - 1_000));
    let large = bench.create_with("t", |job| job.payload = text.as_bytes().into()).await;
    let small = bench.create("t").await;
    assert_eq!(take(&mut client, "t").await, [small]);
    let key = windlass_record::id::JobKey::from_raw(large.cast_unsigned());
    bench.wait_for_state(large, "incident").await;
    let view = bench.server.gateway().job(key).await.unwrap().unwrap();
    assert!(view.message.contains("larger than a message may be"), "{}", view.message);
    let incident = view.extra.unwrap().incident.unwrap();
    assert_eq!(incident.kind, windlass_record::event::IncidentKind::TooLarge);
}

#[tokio::test]
async fn a_poll_whose_client_went_leaves_nothing() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let request = p::ActivateJobsRequest { request_timeout: 60_000, ..activation("t") };
    let mut polling = bench.client().await;
    let poll = tokio::spawn(async move { activate(&mut polling, request).await });
    bench.wait_for_waiters(1).await;
    poll.abort();
    bench.wait_for_waiters(0).await;
    let key = bench.create("t").await;
    assert_eq!(take(&mut client, "t").await, [key]);
}

#[tokio::test]
async fn too_many_waiting_polls_are_refused_for_now() {
    let bench = Bench::with(|config| config.waiters_max = 1).await;
    let mut client = bench.client().await;
    let request = p::ActivateJobsRequest { request_timeout: 60_000, ..activation("t") };
    let (mut polling, waiting) = (client.clone(), request.clone());
    let _poll = tokio::spawn(async move { activate(&mut polling, waiting).await });
    bench.wait_for_waiters(1).await;
    let status = activate(&mut client, request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
}
