//! Every call of `windlass.v1.Windlass`, and what it answers to bad input.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Code;
use windlass_worker::v1;

use crate::common::{Bench, PATIENCE, activation, code, create, job, state, take};

#[tokio::test]
async fn a_job_lives_from_create_to_complete() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let payload = r#"{ "to" : "ä" }"#.as_bytes().to_vec();
    let key =
        create(&mut grpc, v1::NewJob { payload: payload.clone().into(), ..job("mail") }).await;
    assert_eq!(state(&mut grpc, key).await, v1::JobState::Ready);

    let jobs = take(&mut grpc, "mail", 10).await;
    assert_eq!(jobs.len(), 1);
    let taken = &jobs[0];
    assert_eq!((taken.key, taken.activation, taken.attempt), (key, 1, 1));
    assert_eq!((taken.queue.as_str(), taken.r#type.as_str()), ("mail", "mail"));
    assert_eq!((taken.retries, &taken.payload[..]), (3, &payload[..]));
    assert_eq!(state(&mut grpc, key).await, v1::JobState::Active);

    let request = v1::CompleteJobRequest {
        key,
        activation: Some(1),
        result: b"\"sent\"".to_vec().into(),
        documents: Vec::new(),
    };
    grpc.complete_job(request.clone()).await.unwrap();
    let view =
        grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!((view.state(), view.outcome.as_str()), (v1::JobState::Completed, "completed"));
    assert_eq!(&view.result[..], b"\"sent\"");

    let second = grpc.complete_job(request).await.unwrap_err();
    assert_eq!((second.code(), code(&second)), (Code::NotFound, "job-not-found"));
}

#[tokio::test]
async fn a_batch_answers_for_each_item() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let unique = |key: &str| v1::NewJob {
        options: Some(Box::new(v1::JobOptions {
            unique_key: key.to_owned(),
            ..Default::default()
        })),
        ..job("q")
    };
    // What makes no command is refused for itself too.
    let never = || v1::NewJob { due_ms: u64::MAX, ..job("q") };
    let jobs = vec![never(), unique("a"), unique("a"), never(), job(""), unique("b"), never()];
    let answer = grpc.create_jobs(v1::CreateJobsRequest { jobs }).await.unwrap().into_inner();
    let codes: Vec<&str> = answer
        .results
        .iter()
        .map(|result| result.refusal.as_ref().map_or("", |refusal| refusal.code.as_str()))
        .collect();
    let never_code = "out-of-range";
    let said = [never_code, "", "unique-key-held", never_code, "name-empty", "", never_code];
    assert_eq!(codes, said);
    let refusal = answer.results[2].refusal.as_ref().unwrap();
    assert_eq!(refusal.holder, answer.results[1].key);
    assert_eq!(refusal.grpc_code, 6);
    let request = v1::CreateJobsRequest { jobs: vec![never(), never()] };
    let answer = grpc.create_jobs(request).await.unwrap().into_inner();
    assert!(answer.results.iter().all(|result| result.refusal.is_some()));
    assert_eq!(answer.results.len(), 2);
    assert_eq!(take(&mut grpc, "q", 10).await.len(), 2);
}

#[tokio::test]
async fn of_a_hundred_concurrent_creates_with_one_unique_key_one_wins() {
    let bench = Bench::start().await;
    let grpc = bench.grpc().await;
    let mut set = JoinSet::new();
    for _ in 0..100 {
        let mut grpc = grpc.clone();
        set.spawn(async move {
            let options = v1::JobOptions { unique_key: "one".to_owned(), ..Default::default() };
            let job = v1::NewJob { options: Some(Box::new(options)), ..job("q") };
            grpc.create_job(v1::CreateJobRequest { job: Some(job) }).await
        });
    }
    let (mut won, mut held) = (Vec::new(), Vec::new());
    while let Some(answer) = set.join_next().await {
        match answer.unwrap() {
            Ok(created) => won.push(created.into_inner().key),
            Err(status) => {
                assert_eq!(
                    (status.code(), code(&status)),
                    (Code::AlreadyExists, "unique-key-held")
                );
                let holder = status.metadata().get("windlass-holder").unwrap();
                held.push(holder.to_str().unwrap().parse::<u64>().unwrap());
            }
        }
    }
    assert_eq!((won.len(), held.len()), (1, 99));
    assert!(held.iter().all(|holder| *holder == won[0]));
}

#[tokio::test]
async fn a_repeated_request_is_answered_with_the_first_ones_key() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let options = v1::JobOptions { request_id: "r-1".to_owned(), ..Default::default() };
    let request = v1::CreateJobRequest {
        job: Some(v1::NewJob { options: Some(Box::new(options)), ..job("q") }),
    };
    let first = grpc.create_job(request.clone()).await.unwrap().into_inner();
    let second = grpc.create_job(request).await.unwrap().into_inner();
    assert_eq!((first.existing, second.existing), (false, true));
    assert_eq!(first.key, second.key);
}

#[tokio::test]
async fn a_waiting_poll_gets_a_new_job_at_once() {
    let bench = Bench::start().await;
    let mut waiting = bench.grpc().await;
    let poll = tokio::spawn(async move {
        let request = v1::ActivateJobsRequest { wait_ms: 15_000, ..activation("late", 5) };
        let answer = waiting.activate_jobs(request).await.unwrap().into_inner();
        (answer.jobs, Instant::now())
    });
    let mut grpc = bench.grpc().await;
    wait_for_waiters(&bench, 1).await;
    let before = Instant::now();
    let key = create(&mut grpc, job("late")).await;
    let (jobs, at) = timeout(PATIENCE, poll).await.unwrap().unwrap();
    assert_eq!(jobs[0].key, key);
    let took = at.saturating_duration_since(before);
    assert!(took < Duration::from_secs(2), "the poll was woken after {took:?}");
}

#[tokio::test]
async fn one_request_takes_jobs_of_several_tenants_in_turn() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let of = |tenant: &str, group: &str| v1::NewJob {
        tenant: tenant.to_owned(),
        group: group.to_owned(),
        ..job("q")
    };
    // One tenant has two groups with much to do, another one a single job, and a third is not asked for.
    for (tenant, group) in [("a", "1"), ("a", "1"), ("a", "2"), ("a", "2"), ("b", ""), ("c", "")] {
        create(&mut grpc, of(tenant, group)).await;
    }
    let tenants = ["b", "a", "nobody", "default"].map(str::to_owned).to_vec();
    let request = v1::ActivateJobsRequest { tenants, ..activation("q", 10) };
    let jobs = grpc.activate_jobs(request.clone()).await.unwrap().into_inner().jobs;
    let whose: Vec<String> =
        jobs.iter().map(|job| format!("{}{}", job.tenant, job.group)).collect();
    assert_eq!(whose, ["a1", "a2", "b", "a1", "a2"]);

    // Also a queue that there was not when they asked.
    let mut waiting = bench.grpc().await;
    let request = v1::ActivateJobsRequest { wait_ms: 15_000, ..request };
    let poll = tokio::spawn(async move { waiting.activate_jobs(request).await });
    wait_for_waiters(&bench, 1).await;
    create(&mut grpc, of("nobody", "")).await;
    let jobs = timeout(PATIENCE, poll).await.unwrap().unwrap().unwrap().into_inner().jobs;
    assert_eq!((jobs.len(), &*jobs[0].tenant), (1, "nobody"));

    // Who asks for one tenant knows whose they are.
    let request = v1::ActivateJobsRequest { tenant: "c".to_owned(), ..activation("q", 10) };
    let jobs = grpc.activate_jobs(request).await.unwrap().into_inner().jobs;
    assert_eq!((jobs.len(), &*jobs[0].tenant), (1, ""));
}

#[tokio::test]
async fn a_poll_ends_with_nothing_when_its_time_is_over() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let request = v1::ActivateJobsRequest { wait_ms: 50, ..activation("none", 1) };
    let answer = timeout(PATIENCE, grpc.activate_jobs(request)).await.unwrap().unwrap();
    assert!(answer.into_inner().jobs.is_empty());
    assert_eq!(bench.server.gateway().waiters(), 0);
}

#[tokio::test]
async fn a_poll_whose_client_is_gone_leaves_nothing_waiting() {
    let bench = Bench::start().await;
    let mut gone = bench.grpc().await;
    let request = v1::ActivateJobsRequest { wait_ms: 60_000, ..activation("q", 1) };
    let poll = tokio::spawn(async move { gone.activate_jobs(request).await.map(drop) });
    wait_for_waiters(&bench, 1).await;
    poll.abort();
    wait_for_waiters(&bench, 0).await;
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, job("q")).await;
    assert_eq!(state(&mut grpc, key).await, v1::JobState::Ready);
    assert_eq!(take(&mut grpc, "q", 1).await.len(), 1);
}

#[tokio::test]
async fn fail_error_release_and_incidents() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, v1::NewJob { retries: Some(1), ..job("q") }).await;

    let taken = take(&mut grpc, "q", 1).await.remove(0);
    let fail = |activation, message: &str| v1::FailJobRequest {
        key,
        activation: Some(activation),
        fail: Some(v1::Fail { message: message.to_owned(), ..Default::default() }),
    };
    grpc.fail_job(fail(taken.activation, "once")).await.unwrap();
    let view =
        grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!((view.retries, view.message.as_str()), (0, "once"));

    let taken = take(&mut grpc, "q", 1).await.remove(0);
    let release = v1::ReleaseJobRequest { key, activation: Some(taken.activation), delay_ms: 0 };
    grpc.release_job(release).await.unwrap();

    let taken = take(&mut grpc, "q", 1).await.remove(0);
    grpc.fail_job(fail(taken.activation, "twice")).await.unwrap();
    let view =
        grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!(view.state(), v1::JobState::Incident);
    let incident = view.incident.unwrap();
    assert_eq!(incident.kind, "no-retries");
    let why =
        grpc.why_job(v1::WhyJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!((why.state(), why.reason.as_str()), (v1::JobState::Incident, "incident"));

    let resolve =
        |retries| v1::ResolveIncidentRequest { key: incident.key, retries, ..Default::default() };
    let refused = grpc.resolve_incident(resolve(None)).await.unwrap_err();
    assert_eq!((refused.code(), code(&refused)), (Code::FailedPrecondition, "no-retries-left"));
    grpc.resolve_incident(resolve(Some(2))).await.unwrap();

    let taken = take(&mut grpc, "q", 1).await.remove(0);
    let throw = v1::ThrowErrorRequest {
        key,
        activation: Some(taken.activation),
        throw: Some(v1::Throw { code: "NO_MONEY".to_owned(), message: "poor".to_owned() }),
    };
    grpc.throw_error(throw).await.unwrap();
    let view =
        grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    let incident = view.incident.unwrap();
    assert_eq!((incident.kind.as_str(), incident.code.as_str()), ("error-not-caught", "NO_MONEY"));
}

#[tokio::test]
async fn leases_progress_and_logs() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, job("q")).await;
    let taken = take(&mut grpc, "q", 1).await.remove(0);
    let activation = Some(taken.activation);

    let extend = v1::ExtendLeaseRequest { key, activation, lease_ms: 600_000 };
    let held = grpc.extend_lease(extend).await.unwrap().into_inner();
    assert!(held.deadline_ms > taken.deadline_ms);
    assert!(!held.cancel_asked);

    let progress = v1::Progress { percent: 40, note: "half".to_owned(), documents: Vec::new() };
    let progress = v1::ReportProgressRequest { key, activation, progress: Some(progress) };
    grpc.report_progress(progress).await.unwrap();
    let lines = vec!["one".to_owned(), "two".to_owned()];
    grpc.append_log(v1::AppendLogRequest { key, activation, lines }).await.unwrap();

    let view =
        grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!((view.percent, view.note.as_str(), view.worker.as_str()), (40, "half", "w"));
    assert_eq!(view.log, ["one", "two"]);

    let update = v1::UpdateJobRequest {
        key,
        activation,
        retries: Some(7),
        priority: Some(-5),
        lease_ms: Some(1_000),
        ..Default::default()
    };
    grpc.update_job(update).await.unwrap();
    let view =
        grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!((view.retries, view.priority), (7, -5));
}

#[tokio::test]
async fn stale_and_missing_tokens_are_refused_by_name() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, job("q")).await;
    let taken = take(&mut grpc, "q", 1).await.remove(0);
    let complete = |activation| v1::CompleteJobRequest { key, activation, ..Default::default() };

    let missing = grpc.complete_job(complete(None)).await.unwrap_err();
    assert_eq!((missing.code(), code(&missing)), (Code::FailedPrecondition, "token-missing"));
    let stale = grpc.complete_job(complete(Some(taken.activation + 5))).await.unwrap_err();
    assert_eq!((stale.code(), code(&stale)), (Code::FailedPrecondition, "token-stale"));
    assert!(stale.message().contains("is stale"), "{}", stale.message());
    grpc.complete_job(complete(Some(taken.activation))).await.unwrap();
}

#[tokio::test]
async fn cancel_at_once_and_by_asking() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let cancel = |key, force| v1::CancelJobRequest {
        key,
        force,
        reason: "enough".to_owned(),
        ..Default::default()
    };
    let at_once = create(&mut grpc, job("q")).await;
    assert!(!grpc.cancel_job(cancel(at_once, false)).await.unwrap().into_inner().pending);
    assert_eq!(state(&mut grpc, at_once).await, v1::JobState::Cancelled);

    let mut options = v1::JobOptions::default();
    options.set_cancel(v1::CancelPolicy::Cooperative);
    let asked =
        create(&mut grpc, v1::NewJob { options: Some(Box::new(options)), ..job("q") }).await;
    let taken = take(&mut grpc, "q", 1).await.remove(0);
    assert!(grpc.cancel_job(cancel(asked, false)).await.unwrap().into_inner().pending);
    let extend =
        v1::ExtendLeaseRequest { key: asked, activation: Some(taken.activation), lease_ms: 1_000 };
    assert!(grpc.extend_lease(extend).await.unwrap().into_inner().cancel_asked);
    grpc.cancel_job(cancel(asked, true)).await.unwrap();
    assert_eq!(state(&mut grpc, asked).await, v1::JobState::Cancelled);
}

#[tokio::test]
async fn queues_and_limits_are_configured_listed_and_paused() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let settings = v1::QueueSettings {
        scheme_high: 2,
        scheme_low: 1,
        creation_order: true,
        retries_first: true,
        aging_ms: 5_000,
        key_active_max: 3,
        key_rate: Some(v1::RateWindow { max: 10, window_ms: 1_000 }),
        finished_max: Some(5),
        finished_ms: Some(60_000),
        one_type: false,
    };
    let configure = v1::ConfigureQueueRequest {
        tenant: String::new(),
        queue: "q".to_owned(),
        settings: Some(settings),
    };
    grpc.configure_queue(configure).await.unwrap();
    let pause = |paused| v1::PauseQueueRequest {
        tenant: "default".to_owned(),
        queue: "q".to_owned(),
        paused,
    };
    grpc.pause_queue(pause(true)).await.unwrap();
    let key = create(&mut grpc, job("q")).await;
    assert!(take(&mut grpc, "q", 1).await.is_empty());
    let why =
        grpc.why_job(v1::WhyJobRequest { key, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!(why.reason, "paused");

    let queues = grpc.list_queues(v1::ListQueuesRequest::default()).await.unwrap().into_inner();
    let queue = &queues.queues[0];
    assert_eq!((queue.name.as_str(), queue.paused, queue.ready), ("q", true, 1));
    assert_eq!(queue.settings, Some(settings));
    grpc.pause_queue(pause(false)).await.unwrap();
    assert_eq!(take(&mut grpc, "q", 1).await.len(), 1);

    let limit = v1::ConfigureLimitRequest {
        tenant: String::new(),
        name: "cpu".to_owned(),
        active_max: Some(1),
        rate: None,
    };
    grpc.configure_limit(limit).await.unwrap();
    let limited = || v1::NewJob {
        options: Some(Box::new(v1::JobOptions {
            concurrency_key: "cpu".to_owned(),
            ..Default::default()
        })),
        ..job("limited")
    };
    create(&mut grpc, limited()).await;
    let second = create(&mut grpc, limited()).await;
    assert_eq!(take(&mut grpc, "limited", 10).await.len(), 1);
    let why = grpc
        .why_job(v1::WhyJobRequest { key: second, ..Default::default() })
        .await
        .unwrap()
        .into_inner();
    assert_eq!((why.reason.as_str(), why.limit_key.as_str()), ("concurrency-full", "cpu"));
    assert_eq!((why.limit_max, why.limit_used), (1, 1));
}

#[tokio::test]
async fn documents_are_compared_and_set() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let write = |id: &str, expected_version, value: Option<&str>| v1::DocumentWrite {
        tenant: String::new(),
        kind: "state".to_owned(),
        id: id.to_owned(),
        expected_version,
        value: value.map(|value| value.as_bytes().to_vec().into()),
    };
    let put = |documents| v1::PutDocumentsRequest { documents };
    let both = put(vec![write("a", Some(0), Some("1")), write("b", None, Some("2"))]);
    assert_eq!(grpc.put_documents(both.clone()).await.unwrap().into_inner().versions, [1, 1]);
    let again = grpc.put_documents(both).await.unwrap_err();
    assert_eq!((again.code(), code(&again)), (Code::FailedPrecondition, "document-version"));

    let get = |id: &str| v1::GetDocumentRequest {
        tenant: String::new(),
        kind: "state".to_owned(),
        id: id.to_owned(),
    };
    let found = grpc.get_document(get("a")).await.unwrap().into_inner();
    assert_eq!((found.version, &found.value[..]), (1, &b"1"[..]));
    let list = |after: &str| v1::ListDocumentsRequest {
        tenant: String::new(),
        kind: "state".to_owned(),
        after_id: after.to_owned(),
        limit: 1,
    };
    let page = grpc.list_documents(list("")).await.unwrap().into_inner();
    assert_eq!((page.documents[0].id.as_str(), page.next_id.as_str()), ("a", "a"));
    let page = grpc.list_documents(list(&page.next_id)).await.unwrap().into_inner();
    assert_eq!((page.documents[0].id.as_str(), page.next_id.as_str()), ("b", ""));

    grpc.put_documents(put(vec![write("a", Some(1), None)])).await.unwrap();
    let gone = grpc.get_document(get("a")).await.unwrap_err();
    assert_eq!((gone.code(), code(&gone)), (Code::NotFound, "document-not-found"));
}

#[tokio::test]
async fn lists_go_page_by_page() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let jobs = (0..25).map(|_| job("q")).collect();
    grpc.create_jobs(v1::CreateJobsRequest { jobs }).await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = 0;
    loop {
        let request = v1::ListJobsRequest {
            queue: "q".to_owned(),
            state: v1::JobState::Ready.into(),
            cursor,
            limit: 10,
            ..Default::default()
        };
        let page = grpc.list_jobs(request).await.unwrap().into_inner();
        assert!(page.jobs.len() <= 10);
        for job in page.jobs {
            assert!(seen.insert(job.key), "twice");
        }
        cursor = page.next_cursor;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen.len(), 25);
}

#[tokio::test]
async fn status_says_what_an_acknowledgement_means() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    create(&mut grpc, job("q")).await;
    let status = grpc.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.health.as_str(), status.live_jobs), ("serving", 1));
    assert!(status.durability.contains("fsync"), "{}", status.durability);
    assert!(status.durable_lsn > 0 && status.epoch == 1);
}

/// One line per bad request: what is sent, the gRPC code, the stable code.
#[tokio::test]
async fn bad_input_is_refused_with_a_code_and_a_sentence() {
    let bench = Bench::with(|config| config.batch_items_max = 3).await;
    let mut grpc = bench.grpc().await;
    let with = |change: fn(&mut v1::NewJob)| {
        let mut job = job("q");
        change(&mut job);
        v1::CreateJobRequest { job: Some(job) }
    };
    let options = |change: fn(&mut v1::JobOptions)| {
        let mut options = v1::JobOptions::default();
        change(&mut options);
        v1::CreateJobRequest {
            job: Some(v1::NewJob { options: Some(Box::new(options)), ..job("q") }),
        }
    };
    let creates = [
        (v1::CreateJobRequest { job: None }, "field-missing"),
        (with(|job| job.queue.clear()), "name-empty"),
        (with(|job| job.queue = "q".repeat(257)), "too-large"),
        (with(|job| job.queue = "a\0b".to_owned()), "out-of-range"),
        (with(|job| job.group = "g".repeat(257)), "too-large"),
        (with(|job| job.retries = Some(u32::MAX)), "out-of-range"),
        (with(|job| job.delay_ms = u64::MAX), "too-large"),
        (with(|job| job.due_ms = u64::MAX), "out-of-range"),
        (options(|options| options.exhausted = 99), "unknown-enum-value"),
        (options(|options| options.cancel = -1), "unknown-enum-value"),
        (options(|options| options.lease_outcome = 4), "unknown-enum-value"),
        (
            options(|options| options.total = Some(v1::Deadline { after_ms: 1, outcome: 9 })),
            "unknown-enum-value",
        ),
        (
            options(|options| options.total = Some(v1::Deadline { after_ms: 0, outcome: 0 })),
            "out-of-range",
        ),
        (options(|options| options.unique_hold_ms = u64::MAX), "too-large"),
        (options(|options| options.headers = vec![b' '; 70_000].into()), "too-large"),
    ];
    for (request, expected) in creates {
        let shown = format!("{request:?}").chars().take(200).collect::<String>();
        let status = grpc.create_job(request).await.expect_err(&shown);
        assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, expected), "{shown}");
        assert!(!status.message().is_empty());
    }

    let polls = [
        (v1::ActivateJobsRequest { queues: Vec::new(), ..activation("q", 1) }, "name-empty"),
        (
            v1::ActivateJobsRequest { tenants: vec![String::new()], ..activation("q", 1) },
            "name-empty",
        ),
        (
            v1::ActivateJobsRequest { tenants: vec!["t".to_owned(); 4], ..activation("q", 1) },
            "too-large",
        ),
        (
            v1::ActivateJobsRequest {
                tenant: "t".to_owned(),
                tenants: vec!["t".to_owned()],
                ..activation("q", 1)
            },
            "tenant-and-tenants",
        ),
        (activation("", 1), "name-empty"),
        (activation("q", 0), "out-of-range"),
        (activation("q", u32::MAX), "too-large"),
        (v1::ActivateJobsRequest { lease_ms: Some(0), ..activation("q", 1) }, "out-of-range"),
        (v1::ActivateJobsRequest { lease_ms: Some(u64::MAX), ..activation("q", 1) }, "too-large"),
        (v1::ActivateJobsRequest { wait_ms: u64::MAX, ..activation("q", 1) }, "too-large"),
        (v1::ActivateJobsRequest { worker: "w".repeat(300), ..activation("q", 1) }, "too-large"),
    ];
    for (request, expected) in polls {
        let shown = format!("{request:?}").chars().take(200).collect::<String>();
        let status = grpc.activate_jobs(request).await.expect_err(&shown);
        assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, expected), "{shown}");
    }

    let many = v1::CreateJobsRequest { jobs: (0..4).map(|_| job("q")).collect() };
    let status = grpc.create_jobs(many).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "too-large"));
    assert!(status.message().contains("4 items of a batch is over the limit of 3"), "{status}");

    for key in [0, 1, u64::MAX] {
        let status =
            grpc.get_job(v1::GetJobRequest { key, ..Default::default() }).await.unwrap_err();
        assert_eq!((status.code(), code(&status)), (Code::NotFound, "job-not-found"));
        let status =
            grpc.why_job(v1::WhyJobRequest { key, ..Default::default() }).await.unwrap_err();
        assert_eq!((status.code(), code(&status)), (Code::NotFound, "job-not-found"));
        let cancel = v1::CancelJobRequest { key, ..Default::default() };
        let status = grpc.cancel_job(cancel).await.unwrap_err();
        assert_eq!((status.code(), code(&status)), (Code::NotFound, "job-not-found"));
        let resolve = v1::ResolveIncidentRequest { key, ..Default::default() };
        let status = grpc.resolve_incident(resolve).await.unwrap_err();
        assert_eq!((status.code(), code(&status)), (Code::NotFound, "incident-not-found"));
    }

    let list = |state, limit| v1::ListJobsRequest { state, limit, ..Default::default() };
    let status = grpc.list_jobs(list(77, 1)).await.unwrap_err();
    assert_eq!(code(&status), "unknown-enum-value");
    let status = grpc.list_jobs(list(0, 1_001)).await.unwrap_err();
    assert_eq!(code(&status), "too-large");
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let request = |bytes: usize| {
        let payload = vec![b'1'; bytes].into();
        v1::CreateJobRequest { job: Some(v1::NewJob { payload, ..job("q") }) }
    };
    grpc.create_job(request(4 << 20)).await.expect("the largest payload fits");
    let status = grpc.create_job(request((4 << 20) + 1)).await.unwrap_err();
    assert_eq!(code(&status), "too-large");
    let status = grpc.create_job(request(7 << 20)).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert!(status.message().contains("6640980"), "{status}");
}

#[tokio::test]
async fn a_limit_of_the_installation_is_resource_exhausted() {
    let bench = Bench::with(|config| config.live_jobs_max = 2).await;
    let mut grpc = bench.grpc().await;
    create(&mut grpc, job("q")).await;
    create(&mut grpc, job("q")).await;
    let status = grpc.create_job(v1::CreateJobRequest { job: Some(job("q")) }).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::ResourceExhausted, "exhausted"));
    assert!(status.message().contains("live jobs"), "{status}");
}

#[tokio::test]
async fn more_waiters_than_there_may_be_are_refused() {
    let bench = Bench::with(|config| config.waiters_max = 1).await;
    let mut first = bench.grpc().await;
    let request = v1::ActivateJobsRequest { wait_ms: 60_000, ..activation("q", 1) };
    let again = request.clone();
    let poll = tokio::spawn(async move { first.activate_jobs(request).await.map(drop) });
    wait_for_waiters(&bench, 1).await;
    let status = bench.grpc().await.activate_jobs(again).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::ResourceExhausted, "exhausted"));
    poll.abort();
}

/// Waits until this many polls and streams wait at the gateway and in the partition.
pub(crate) async fn wait_for_waiters(bench: &Bench, count: u32) {
    let gateway = bench.server.gateway();
    let reached = async {
        loop {
            let inside = gateway.status().await.unwrap().waiters;
            if inside == count && gateway.waiters() == usize::try_from(count).unwrap() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, reached).await.expect("waiters come and go");
}
