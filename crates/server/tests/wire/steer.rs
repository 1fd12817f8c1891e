//! What operators see and what they may not reach: walls of tenants, limit keys, alerts, and the names of
//! bounds.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;
use windlass_worker::v1;

use crate::common::{Bench, PATIENCE};

const JOBS: &str = "/windlass/v1/jobs";

async fn create(bench: &Bench, job: Value) -> String {
    let created = bench.json("POST", JOBS, &job.to_string()).await;
    created["key"].as_str().expect("a key is text").to_owned()
}

async fn take(bench: &Bench, tenant: &str, queue: &str) -> Vec<Value> {
    let request = json!({ "tenant": tenant, "queues": [queue], "jobs_max": 10 });
    let answer = bench.json("POST", "/windlass/v1/jobs/activate", &request.to_string()).await;
    answer["jobs"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_key_names_no_job_of_another_tenant() {
    let bench = Bench::start().await;
    let key = create(&bench, json!({ "tenant": "a", "queue": "q", "retries": 0 })).await;
    let calls = [
        ("GET", format!("{JOBS}/{key}"), "job-not-found"),
        ("GET", format!("{JOBS}/{key}/why"), "job-not-found"),
        ("PATCH", format!("{JOBS}/{key}"), "job-not-found"),
        ("POST", format!("{JOBS}/{key}/cancel"), "job-not-found"),
    ];
    for (method, path, code) in &calls {
        let body = if *method == "GET" { "" } else { "{}" };
        let answer = bench.http(method, &format!("{path}?tenant=b"), body).await;
        assert_eq!((answer.status, &answer.json()["code"]), (404, &json!(code)), "{path}");
    }
    let taken = take(&bench, "a", "q").await;
    let failure = json!({ "activation": taken[0]["activation"], "message": "no" }).to_string();
    bench.json("POST", &format!("{JOBS}/{key}/fail"), &failure).await;
    let resolve = format!("/windlass/v1/incidents/{key}/resolve");
    let answer = bench.http("POST", &format!("{resolve}?tenant=b"), r#"{"retries":1}"#).await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("incident-not-found")));

    // Its own tenant, and whoever names none.
    bench.json("POST", &format!("{resolve}?tenant=a"), r#"{"retries":1}"#).await;
    for (method, path, _) in &calls {
        let body = if *method == "GET" { "" } else { "{}" };
        let named = if path.ends_with("cancel") { "" } else { "?tenant=a" };
        bench.json(method, &format!("{path}{named}"), body).await;
    }
    let job = bench.json("GET", &format!("{JOBS}/{key}?tenant=a"), "").await;
    assert_eq!(job["state"], "cancelled");
    // It has ended, and is as little theirs.
    assert_eq!(bench.http("GET", &format!("{JOBS}/{key}?tenant=b"), "").await.status, 404);
}

#[tokio::test]
async fn a_client_of_one_tenant_reaches_no_other() {
    let bench = Bench::start().await;
    let client = windlass_worker::Client::connect(format!("http://{}", bench.address()));
    let anybody = client.await.unwrap();
    let job = v1::NewJob { tenant: "a".into(), queue: "q".into(), ..Default::default() };
    let key = anybody.create_job(job).await.unwrap().key;
    let other = anybody.clone().of_tenant("b");
    let cancel = || v1::CancelJobRequest { key, ..Default::default() };
    let update = || v1::UpdateJobRequest { key, priority: Some(1), ..Default::default() };
    let refused = [
        other.job(key).await.map(drop),
        other.why_job(key).await.map(drop),
        other.cancel_job(cancel()).await.map(drop),
        other.update_job(update()).await,
        other.resolve_incident(key, None).await,
    ];
    for answer in refused {
        let error = answer.unwrap_err();
        let kind = error.refusal().map(|refusal| refusal.kind);
        assert_eq!(kind, Some(windlass_worker::RefusalKind::NotFound), "{error}");
    }
    let own = anybody.clone().of_tenant("a");
    own.update_job(update()).await.unwrap();
    assert_eq!(own.job(key).await.unwrap().priority, 1);
    own.cancel_job(cancel()).await.unwrap();
    assert_eq!(anybody.job(key).await.unwrap().state(), v1::JobState::Cancelled);
}

#[tokio::test]
async fn limits_are_read_back_with_what_is_used() {
    let bench = Bench::start().await;
    for (name, body) in [
        ("cpu", json!({ "active_max": 2 })),
        ("mail", json!({ "rate": { "max": 5, "window_ms": 60_000 } })),
        ("closed", json!({ "active_max": 0 })),
    ] {
        bench.json("PUT", &format!("/windlass/v1/limits/{name}"), &body.to_string()).await;
    }
    let other = json!({ "active_max": 9 }).to_string();
    bench.json("PUT", "/windlass/v1/limits/cpu?tenant=other", &other).await;
    let keys = json!({ "concurrency_key": "cpu", "rate_key": "mail" });
    for _ in 0..3 {
        create(&bench, json!({ "queue": "q", "options": keys })).await;
    }
    assert_eq!(take(&bench, "default", "q").await.len(), 2);

    let cpu = bench.json("GET", "/windlass/v1/limits/cpu", "").await;
    let expected = json!({
        "tenant": "default", "name": "cpu", "active_max": 2, "rate": null, "of_queue": false,
        "active": 2, "activated": 0,
    });
    assert_eq!(cpu, expected);
    let mail = bench.json("GET", "/windlass/v1/limits/mail", "").await;
    assert_eq!((&mail["rate"]["max"], &mail["activated"]), (&json!(5), &json!(2)));

    // A queue's own bounds on keys are listed with them, and paged.
    let settings = json!({ "key_active_max": 1 }).to_string();
    bench.json("PUT", "/windlass/v1/queues/keyed", &settings).await;
    let keyed = json!({ "queue": "keyed", "options": { "concurrency_key": "zoo" } });
    create(&bench, keyed).await;
    let (mut after, mut names) = (String::new(), Vec::new());
    loop {
        let path = format!("/windlass/v1/limits?limit=3&after={after}");
        let page = bench.json("GET", &path, "").await;
        let limits = page["limits"].as_array().unwrap().clone();
        names.extend(limits.iter().map(|limit| (limit["name"].clone(), limit["of_queue"].clone())));
        let Some(next) = page["next"].as_str() else { break };
        after = next.to_owned();
    }
    let expected = [("closed", false), ("cpu", false), ("mail", false), ("zoo", true)];
    assert_eq!(names, expected.map(|(name, of_queue)| (json!(name), json!(of_queue))));

    let answer = bench.http("GET", "/windlass/v1/limits/nobody", "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("limit-not-found")));

    // The same over gRPC, and a limit of 0 says what it does.
    let mut grpc = bench.grpc().await;
    let request = v1::ListLimitsRequest { tenant: "other".into(), ..Default::default() };
    let page = grpc.list_limits(request).await.unwrap().into_inner();
    assert_eq!((page.limits.len(), page.next_name.as_str()), (1, ""));
    assert_eq!((page.limits[0].name.as_str(), page.limits[0].active_max), ("cpu", Some(9)));
    let request = v1::GetLimitRequest { name: "nobody".into(), ..Default::default() };
    assert_eq!(grpc.get_limit(request).await.unwrap_err().code(), Code::NotFound);
    let closed = json!({ "queue": "shut", "options": { "concurrency_key": "closed" } });
    let key = create(&bench, closed).await;
    assert!(take(&bench, "default", "shut").await.is_empty());
    let why = bench.json("GET", &format!("{JOBS}/{key}/why"), "").await;
    assert_eq!(why["reason"], "concurrency-full");
    assert!(why["text"].as_str().unwrap().contains("is 0: none may start"), "{why}");
}

#[tokio::test]
async fn alerts_of_deadlines_stand_with_the_job() {
    let bench = Bench::start().await;
    let alert = json!({ "after_ms": 1, "outcome": "alert" });
    let options = json!({ "waiting": alert, "total": alert });
    let key = create(&bench, json!({ "queue": "q", "options": options })).await;
    let path = format!("{JOBS}/{key}");
    let both = async {
        while bench.json("GET", &path, "").await["alerts"] != json!(["waiting", "total"]) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, both).await.expect("both alerts");
    let why = bench.json("GET", &format!("{path}/why"), "").await;
    assert_eq!(why["alerts"], json!(["waiting", "total"]));
    assert!(why["text"].as_str().unwrap().ends_with("its total deadline has passed"), "{why}");
    // It waits no longer; the rest of its life goes on past its time.
    take(&bench, "default", "q").await;
    assert_eq!(bench.json("GET", &path, "").await["alerts"], json!(["total"]));
}

#[tokio::test]
async fn a_bound_is_named_with_its_value_and_its_setting() {
    let bench = Bench::with(|config| {
        config.live_jobs_max = 1;
        config.payload_bytes_max = 100;
    })
    .await;
    create(&bench, json!({ "queue": "q" })).await;
    let long = "x".repeat(300);
    for (job, bound, max, setting) in [
        (json!({ "queue": "q" }), "live-jobs", 1, json!("live_jobs_max")),
        (
            json!({ "queue": "q", "payload": long }),
            "payload-bytes",
            100,
            json!("payload_bytes_max"),
        ),
        (json!({ "queue": long }), "name-bytes", 256, Value::Null),
        (
            json!({ "queue": "q", "payload": "x".repeat(2 << 20) }),
            "body-bytes",
            (1 << 20) + 132,
            json!("payload_bytes_max"),
        ),
    ] {
        let problem = bench.http("POST", JOBS, &job.to_string()).await.json();
        let named = (&problem["bound"], &problem["max"], &problem["setting"]);
        assert_eq!(named, (&json!(bound), &json!(max), &setting), "{problem}");
    }
    let problem = bench.http("POST", JOBS, r#"{"queue":""}"#).await.json();
    assert_eq!((&problem["code"], &problem["bound"]), (&json!("name-empty"), &Value::Null));

    let client = windlass_worker::Client::connect(format!("http://{}", bench.address()));
    let client = client.await.unwrap();
    let job = || v1::NewJob { queue: "q".into(), ..Default::default() };
    let expected = windlass_worker::MetBound {
        name: "live-jobs".to_owned(),
        max: 1,
        setting: Some("live_jobs_max".to_owned()),
    };
    let alone = client.create_job(job()).await.unwrap_err();
    assert_eq!(alone.refusal().unwrap().bound.as_deref(), Some(&expected));
    let batch = client.create_jobs(vec![job()]).await.unwrap().remove(0).unwrap_err();
    assert_eq!(batch.bound.as_deref(), Some(&expected));
}

#[tokio::test]
async fn a_document_that_is_another_is_named() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let write = |id: &str, expected_version| v1::DocumentWrite {
        kind: "cursor".to_owned(),
        id: id.to_owned(),
        expected_version,
        value: Some("1".into()),
        ..Default::default()
    };
    let mut put = async |documents| {
        let answer = grpc.put_documents(v1::PutDocumentsRequest { documents }).await;
        answer.map(drop).map_err(|status| status.message().to_owned())
    };
    put(vec![write("a", None)]).await.unwrap();
    for (writes, message) in [
        (
            vec![write("b", None), write("a", Some(4))],
            "document cursor/a has version 1: version 4 was expected",
        ),
        (vec![write("a", Some(0))], "document cursor/a exists, in version 1"),
        (vec![write("b", Some(2))], "document cursor/b does not exist: version 2 was expected"),
    ] {
        assert_eq!(put(writes).await, Err(message.to_owned()));
    }
}

/// On every face: nothing of it is waited for.
#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_at_once() {
    let bench = Bench::with(|config| config.zeebe_listen = "127.0.0.1:0".parse().unwrap()).await;
    for path in [
        JOBS,
        "/windlass/v1/documents/k/d",
        "/api/metadata/taskdefs",
        "/api/public/v1/sources",
        "/v2/process-instances",
    ] {
        let method = if path.contains("documents") { "PUT" } else { "POST" };
        let mut stream = TcpStream::connect(bench.address()).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: 1000000000000\r\n\r\n[",
            bench.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        timeout(PATIENCE / 3, stream.read_exact(&mut first)).await.expect(path).unwrap();
        assert_eq!(str::from_utf8(&first), Ok("HTTP/1.1 413"), "{path}");
    }
}
