//! Every operation of REST, and what it answers to bad input.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::{Bench, PATIENCE, http};
use crate::grpc::wait_for_waiters;

const JOBS: &str = "/windlass/v1/jobs";

async fn create(bench: &Bench, job: Value) -> String {
    let created = bench.json("POST", JOBS, &job.to_string()).await;
    created["key"].as_str().expect("a key is text").to_owned()
}

async fn take(bench: &Bench, queue: &str) -> Vec<Value> {
    let request = json!({ "queues": [queue], "worker": "w", "jobs_max": 10 });
    let answer = bench.json("POST", "/windlass/v1/jobs/activate", &request.to_string()).await;
    answer["jobs"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_job_lives_from_create_to_complete() {
    let bench = Bench::start().await;
    // Numbers beyond 2^53, spaces and escapes are kept byte for byte.
    let payload = r#"{ "n": 12345678901234567890123,  "s":"\u00e4" , "f":1.50 }"#;
    let body = format!(r#"{{"queue":"mail","group":"g","priority":-2,"payload":{payload}}}"#);
    let answer = bench.http("POST", JOBS, &body).await;
    assert_eq!(answer.status, 201);
    let key = answer.json()["key"].as_str().unwrap().to_owned();

    let request = r#"{"queues":["mail"]}"#;
    let answer = bench.http("POST", "/windlass/v1/jobs/activate", request).await;
    assert!(answer.text().contains(&format!(r#""payload":{payload}"#)), "{}", answer.text());
    let taken = answer.json()["jobs"][0].clone();
    assert_eq!((&taken["key"], &taken["activation"]), (&json!(key), &json!(1)));
    assert_eq!((&taken["group"], &taken["priority"]), (&json!("g"), &json!(-2)));

    let path = format!("{JOBS}/{key}/complete");
    let answer = bench.http("POST", &path, r#"{"activation":1,"result":null}"#).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let job = bench.json("GET", &format!("{JOBS}/{key}"), "").await;
    assert_eq!((&job["state"], &job["outcome"]), (&json!("completed"), &json!("completed")));

    let answer = bench.http("POST", &path, r#"{"activation":1}"#).await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("job-not-found")));
}

#[tokio::test]
async fn one_request_takes_jobs_of_several_tenants() {
    let bench = Bench::start().await;
    for tenant in ["a", "b", "c"] {
        create(&bench, json!({ "tenant": tenant, "queue": "q" })).await;
    }
    let request = json!({ "tenants": ["b", "a"], "queues": ["q"], "jobs_max": 10 });
    let answer = bench.json("POST", "/windlass/v1/jobs/activate", &request.to_string()).await;
    let jobs = answer["jobs"].as_array().unwrap();
    let whose: Vec<&str> = jobs.iter().map(|job| job["tenant"].as_str().unwrap()).collect();
    assert_eq!(whose, ["a", "b"]);
}

#[tokio::test]
async fn a_batch_answers_for_each_item() {
    let bench = Bench::start().await;
    let unique = json!({ "queue": "q", "options": { "unique_key": "u" } });
    let request =
        json!({ "jobs": [unique, unique, { "queue": "q" }, { "queue": "" }, { "queue": "q" }] });
    let answer = bench.json("POST", "/windlass/v1/jobs/batch", &request.to_string()).await;
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 5);
    assert_eq!(results[1]["key"], Value::Null);
    assert_eq!(results[1]["problem"]["code"], "unique-key-held");
    assert_eq!(results[1]["problem"]["holder"], results[0]["key"]);
    assert!(results[2]["key"].is_string() && results[4]["key"].is_string());
    assert_eq!(results[3]["problem"]["code"], "name-empty");

    let request = json!({ "jobs": [{ "queue": "" }] });
    let answer = bench.json("POST", "/windlass/v1/jobs/batch", &request.to_string()).await;
    assert_eq!(
        answer["results"][0]["problem"]["code"], "name-empty",
        "none of them is for the engine"
    );
}

#[tokio::test]
async fn options_come_back_as_they_were_given() {
    let bench = Bench::start().await;
    let options = json!({
        "headers": { "h": 1 },
        "unique_key": "u",
        "unique_hold_ms": 5,
        "request_id": "r",
        "concurrency_key": "c",
        "rate_key": "k",
        "retry": { "kind": "exponential", "delay_ms": 10, "base": 2, "cap_ms": 100,
                   "jitter_ms": 1, "from_start": true },
        "exhausted": "fail",
        "lease_outcome": "fail-attempt",
        "waiting": { "after_ms": 1_000_000, "outcome": "alert" },
        "attempt": { "after_ms": 2_000_000, "outcome": "fail-attempt" },
        "total": { "after_ms": 3_000_000, "outcome": "end" },
        "cancel": "cooperative-completion-counts",
    });
    let key = create(&bench, json!({ "queue": "q", "options": options })).await;
    let job = bench.json("GET", &format!("{JOBS}/{key}"), "").await;
    assert_eq!(job["options"], options);

    let rules = [
        json!({ "kind": "worker-given" }),
        json!({ "kind": "fixed", "delay_ms": 1, "jitter_ms": 0 }),
        json!({ "kind": "linear", "delay_ms": 1, "scale": 2, "cap_ms": 3, "jitter_ms": 4 }),
        json!({ "kind": "attempts", "complete_successive_max": 5, "complete_total_max": 10,
                "partial_successive_max": 1000, "partial_total_max": 20, "delay_ms": 10_000,
                "base": 3, "cap_ms": 1_800_000 }),
    ];
    for retry in rules {
        let options = json!({ "group": "g", "queue": "q",
                              "options": { "retry": retry, "rate_key": "k" } });
        let key = create(&bench, options).await;
        let job = bench.json("GET", &format!("{JOBS}/{key}"), "").await;
        assert_eq!(job["options"]["retry"], retry);
    }
}

#[tokio::test]
async fn a_waiting_poll_gets_a_new_job_at_once() {
    let bench = Bench::start().await;
    let address = bench.address();
    let poll = tokio::spawn(async move {
        let request = br#"{"queues":["late"],"wait_ms":15000}"#;
        let answer = http(address, "POST", "/windlass/v1/jobs/activate", &[], request).await;
        (answer.json(), Instant::now())
    });
    wait_for_waiters(&bench, 1).await;
    let before = Instant::now();
    let key = create(&bench, json!({ "queue": "late" })).await;
    let (answer, at) = timeout(PATIENCE, poll).await.unwrap().unwrap();
    assert_eq!(answer["jobs"][0]["key"], json!(key));
    let took = at.saturating_duration_since(before);
    assert!(took < Duration::from_secs(2), "the poll was woken after {took:?}");
}

#[tokio::test]
async fn a_poll_whose_client_is_gone_leaves_nothing_waiting() {
    let bench = Bench::start().await;
    let address = bench.address();
    let poll = tokio::spawn(async move {
        let request = br#"{"queues":["q"],"wait_ms":60000}"#;
        http(address, "POST", "/windlass/v1/jobs/activate", &[], request).await;
    });
    wait_for_waiters(&bench, 1).await;
    poll.abort();
    wait_for_waiters(&bench, 0).await;
    create(&bench, json!({ "queue": "q" })).await;
    assert_eq!(take(&bench, "q").await.len(), 1);
}

#[tokio::test]
async fn workers_report() {
    let bench = Bench::start().await;
    let key = create(&bench, json!({ "queue": "q", "retries": 1 })).await;
    let on = |verb: &str| format!("{JOBS}/{key}/{verb}");
    take(&bench, "q").await;

    let held = bench.json("POST", &on("extend"), r#"{"activation":1,"lease_ms":600000}"#).await;
    assert_eq!(held["cancel_asked"], false);
    let progress = r#"{"activation":1,"percent":250,"note":"n"}"#;
    bench.json("POST", &on("progress"), progress).await;
    bench.json("POST", &on("log"), r#"{"activation":1,"lines":["a","b"]}"#).await;
    let job = bench.json("GET", &format!("{JOBS}/{key}"), "").await;
    assert_eq!((&job["percent"], &job["log"]), (&json!(100), &json!(["a", "b"])));
    assert_eq!((&job["worker"], &job["note"]), (&json!("w"), &json!("n")));

    let change = r#"{"activation":1,"retries":1,"priority":9}"#;
    assert_eq!(bench.http("PATCH", &format!("{JOBS}/{key}"), change).await.status, 204);
    bench.json("POST", &on("release"), r#"{"activation":1}"#).await;
    assert_eq!(take(&bench, "q").await[0]["priority"], 9);
    bench.json("POST", &on("fail"), r#"{"activation":2,"message":"m"}"#).await;
    take(&bench, "q").await;
    bench.json("POST", &on("error"), r#"{"activation":3,"code":"E1","message":"e"}"#).await;
    let job = bench.json("GET", &format!("{JOBS}/{key}"), "").await;
    assert_eq!((&job["state"], &job["incident"]["code"]), (&json!("incident"), &json!("E1")));

    let why = bench.json("GET", &on("why"), "").await;
    assert_eq!(why["reason"], "incident");
    let path = format!("/windlass/v1/incidents/{key}/resolve");
    assert_eq!(bench.http("POST", &path, r#"{"retries":1}"#).await.status, 204);
    let answer = bench.http("POST", &path, "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("incident-not-found")));

    let cancelled = bench.json("POST", &on("cancel"), r#"{"reason":"enough"}"#).await;
    assert_eq!(cancelled["pending"], false);
    let list = bench.json("GET", "/windlass/v1/jobs?state=cancelled&queue=q", "").await;
    assert_eq!(list["jobs"][0]["key"], json!(key));
}

#[tokio::test]
async fn queues_limits_and_status() {
    let bench = Bench::start().await;
    let settings = json!({
        "scheme": { "high": 2, "low": 1 }, "order": "creation", "retries_first": true,
        "aging_ms": 5, "one_type": true, "key_active_max": 2,
        "key_rate": { "max": 3, "window_ms": 1000 }, "finished_max": 4, "finished_ms": 6,
    });
    // A name may hold a slash.
    let queue = "/windlass/v1/queues/a%2Fb";
    assert_eq!(bench.http("PUT", queue, &settings.to_string()).await.status, 204);
    assert_eq!(bench.http("POST", &format!("{queue}/pause"), "").await.status, 204);
    let list = bench.json("GET", "/windlass/v1/queues?tenant=default", "").await;
    assert_eq!(list["queues"][0]["name"], "a/b");
    assert_eq!(list["queues"][0]["paused"], true);
    assert_eq!(list["queues"][0]["settings"], settings);
    assert_eq!(bench.http("POST", &format!("{queue}/resume"), "").await.status, 204);
    let answer = bench.http("POST", "/windlass/v1/queues/none/pause", "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("queue-not-found")));

    let limit = r#"{"active_max":1,"rate":{"max":10,"window_ms":1000}}"#;
    assert_eq!(bench.http("PUT", "/windlass/v1/limits/cpu", limit).await.status, 204);
    let too_many = r#"{"rate":{"max":10001,"window_ms":1000}}"#;
    assert_eq!(bench.http("PUT", "/windlass/v1/limits/cpu", too_many).await.status, 400);

    let status = bench.json("GET", "/windlass/v1/status", "").await;
    assert_eq!(status["health"], "serving");
    let document = bench.json("GET", "/windlass/v1/openapi.json", "").await;
    assert_eq!(document["openapi"], "3.1.0");
}

#[tokio::test]
async fn documents_have_versions() {
    let bench = Bench::start().await;
    let address = bench.address();
    let path = "/windlass/v1/documents/state/a";
    let none_yet = [("if-none-match", "*")];
    let text = br#" {"cursor":  1} "#;
    let answer = http(address, "PUT", path, &none_yet, text).await;
    assert_eq!((answer.status, answer.header("etag")), (200, Some("\"1\"")));
    let answer = http(address, "PUT", path, &none_yet, b"2").await;
    assert_eq!((answer.status, &answer.json()["code"]), (412, &json!("document-version")));
    let answer = http(address, "PUT", path, &[("if-match", "\"1\"")], b"2").await;
    assert_eq!(answer.json()["version"], 2);
    let answer = http(address, "PUT", path, &[("if-match", "1")], b"2").await;
    assert_eq!(answer.status, 400, "an entity tag has quotes");
    let answer = http(address, "PUT", path, &[("if-match", "W/x")], b"2").await;
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("if-match-invalid")));

    let answer = bench.http("GET", path, "").await;
    assert_eq!((answer.text().as_str(), answer.header("etag")), ("2", Some("\"2\"")));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let list = bench.json("GET", "/windlass/v1/documents/state", "").await;
    assert_eq!(list, json!({ "documents": [{ "id": "a", "version": 2 }], "next": null }));
    let answer = http(address, "DELETE", path, &[("if-match", "\"1\"")], b"").await;
    assert_eq!(answer.status, 412);
    assert_eq!(http(address, "DELETE", path, &[], b"").await.status, 204);
    let answer = bench.http("GET", path, "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("document-not-found")));
    let answer = http(address, "PUT", path, &[], b"{").await;
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("json-invalid")));
}

#[tokio::test]
async fn bytes_that_are_not_json_are_shown_in_base64() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let new =
        windlass_worker::v1::NewJob { payload: vec![0xff, 0x00].into(), ..crate::common::job("q") };
    let key = crate::common::create(&mut grpc, new).await;
    let job = bench.json("GET", &format!("{JOBS}/{key}"), "").await;
    assert_eq!((&job["payload"], &job["payload_base64"]), (&Value::Null, &json!("/wA=")));
}

/// One line per bad request: method, path, body, status, code.
#[tokio::test]
async fn bad_input_is_a_problem_with_a_code_and_a_sentence() {
    let bench = Bench::with(|config| config.batch_items_max = 3).await;
    let key = create(&bench, json!({ "queue": "q" })).await;
    take(&bench, "q").await;
    let job = format!("{JOBS}/{key}");
    let complete = format!("{job}/complete");
    let activate = "/windlass/v1/jobs/activate";
    let long = format!(r#"{{"queue":"{}"}}"#, "q".repeat(257));
    let rows: &[(&str, &str, &str, u16, &str)] = &[
        ("POST", JOBS, "{", 400, "json-invalid"),
        (
            "POST",
            activate,
            r#"{"tenant":"a","tenants":["b"],"queues":["q"]}"#,
            400,
            "tenant-and-tenants",
        ),
        ("POST", activate, r#"{"tenants":[""],"queues":["q"]}"#, 400, "name-empty"),
        ("POST", JOBS, "", 400, "json-mismatch"),
        ("POST", JOBS, "[]", 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":1}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":""}"#, 400, "name-empty"),
        ("POST", JOBS, r#"{"queue":"a\u0000b"}"#, 400, "out-of-range"),
        ("POST", JOBS, &long, 400, "too-large"),
        ("POST", JOBS, r#"{"queue":"q","colour":1}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","retries":-1}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","retries":4294967295}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","retries":1e99}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","priority":2147483648}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","delay_ms":18446744073709551615}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","due_ms":-5}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","options":{"cancel":"softly"}}"#, 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","options":{"retry":{"kind":"x"}}}"#, 400, "json-mismatch"),
        (
            "POST",
            JOBS,
            r#"{"queue":"q","options":{"total":{"after_ms":0,"outcome":"end"}}}"#,
            400,
            "json-mismatch",
        ),
        (
            "POST",
            "/windlass/v1/jobs/batch",
            r#"{"jobs":[{"queue":"q"},{"queue":"q"},{"queue":"q"},{"queue":"q"}]}"#,
            400,
            "too-large",
        ),
        ("POST", activate, r#"{"queues":[]}"#, 400, "name-empty"),
        ("POST", activate, r#"{"queues":["q"],"jobs_max":0}"#, 400, "json-mismatch"),
        ("POST", activate, r#"{"queues":["q"],"jobs_max":100000}"#, 400, "json-mismatch"),
        ("POST", activate, r#"{"queues":["q"],"wait_ms":600001}"#, 400, "json-mismatch"),
        ("PUT", "/windlass/v1/limits/l", "[null,null]", 400, "json-mismatch"),
        ("POST", JOBS, r#"{"queue":"q","due_ms":9999999999999}"#, 400, "json-mismatch"),
        ("POST", activate, r#"{"queues":["q"],"lease_ms":0}"#, 400, "json-mismatch"),
        ("GET", "/windlass/v1/jobs/abc", "", 400, "key-invalid"),
        ("GET", "/windlass/v1/jobs/-1", "", 400, "key-invalid"),
        ("GET", "/windlass/v1/jobs/99999999999999999999", "", 400, "key-invalid"),
        ("GET", "/windlass/v1/jobs/1", "", 404, "job-not-found"),
        ("GET", "/windlass/v1/jobs/1/why", "", 404, "job-not-found"),
        ("POST", "/windlass/v1/jobs/1/complete", "{}", 404, "job-not-found"),
        ("POST", "/windlass/v1/jobs/1/cancel", "", 404, "job-not-found"),
        ("POST", &complete, "{}", 409, "token-missing"),
        ("POST", &complete, r#"{"activation":7}"#, 409, "token-stale"),
        ("POST", &complete, r#"{"activation":-7}"#, 400, "json-mismatch"),
        ("GET", "/windlass/v1/jobs?state=asleep", "", 400, "query-invalid"),
        ("GET", "/windlass/v1/jobs?quueue=q", "", 400, "query-invalid"),
        ("GET", "/windlass/v1/jobs?limit=1001", "", 400, "too-large"),
        ("POST", "/windlass/v1/jobs?tenant=t", r#"{"queue":"q"}"#, 400, "query-invalid"),
        ("GET", "/windlass/v1/jobs/1?colour=1", "", 400, "query-invalid"),
        ("GET", "/windlass/v1/jobs?limit=-1", "", 400, "query-invalid"),
        ("GET", "/windlass/v1/nothing", "", 404, "no-such-path"),
        ("GET", "/windlass/v1", "", 404, "no-such-path"),
        ("DELETE", JOBS, "", 405, "method-not-allowed"),
        ("GET", activate, "", 405, "method-not-allowed"),
        ("PUT", "/windlass/v1/queues/q", r#"{"aging":1}"#, 400, "json-mismatch"),
        ("PUT", "/windlass/v1/queues/q", r#"{"scheme":{"high":0,"low":0}}"#, 400, "out-of-range"),
    ];
    for (method, path, body, status, code) in rows {
        let answer = bench.http(method, path, body).await;
        let shown = format!("{method} {path} {body}: {}", answer.text());
        assert_eq!(answer.status, *status, "{shown}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{shown}");
        let problem = answer.json();
        assert_eq!(problem["code"], *code, "{shown}");
        assert_eq!(problem["status"], *status, "{shown}");
        assert!(!problem["detail"].as_str().unwrap().is_empty(), "{shown}");
    }
}

/// A cursor past 2^32 once made a debug build of the engine panic.
#[tokio::test]
async fn a_cursor_that_leads_nowhere_is_the_end() {
    let bench = Bench::start().await;
    create(&bench, json!({ "queue": "q" })).await;
    for cursor in [1, 4_096, 4_294_967_294, 4_294_967_295, 4_294_967_296, u64::MAX] {
        for state in ["", "&state=completed"] {
            let path = format!("/windlass/v1/jobs?cursor={cursor}{state}");
            let page = bench.json("GET", &path, "").await;
            assert_eq!(page, json!({ "jobs": [], "next_cursor": 0 }), "{path}");
        }
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let bench = Bench::start().await;
    let answer = bench.http("DELETE", "/windlass/v1/jobs", "").await;
    assert_eq!(answer.status, 405);
    let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    let detail = answer.json()["detail"].clone();
    assert_eq!(detail, "/windlass/v1/jobs does not take DELETE");
}

#[tokio::test]
async fn a_number_out_of_its_range_comes_with_the_range() {
    let bench = Bench::start().await;
    for (fields, said) in [
        (r#""retries":-1"#, "-1 is not between 0 and 2147483647"),
        (r#""priority":2147483648"#, "2147483648 is not between -2147483648 and 2147483647"),
        (r#""due_ms":-5"#, "-5 is not between 0 and 4102444800000"),
    ] {
        let body = format!(r#"{{"queue":"q",{fields}}}"#);
        let problem = bench.http("POST", JOBS, &body).await.json();
        assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
    }
}

#[tokio::test]
async fn bad_json_says_where() {
    let bench = Bench::start().await;
    let problem = bench.http("POST", JOBS, "{\n \"queue\": \"q\",\n oops }").await.json();
    assert_eq!((&problem["line"], &problem["column"]), (&json!(3), &json!(2)));
}

#[tokio::test]
async fn bodies_of_the_wrong_size_or_type_are_refused() {
    let bench = Bench::start().await;
    let address = bench.address();
    let of = |bytes: usize| format!(r#"{{"queue":"q","payload":"{}"}}"#, "x".repeat(bytes - 2));
    for (bytes, status, code) in [
        (4 << 20, 201, Value::Null),
        ((4 << 20) + 1, 413, json!("too-large")),
        (7 << 20, 413, json!("body-too-large")),
    ] {
        let answer = http(address, "POST", JOBS, &[], of(bytes).as_bytes()).await;
        assert_eq!((answer.status, &answer.json()["code"]), (status, &code), "{bytes}");
    }

    let plain = [("content-type", "text/plain")];
    let answer = http(address, "POST", JOBS, &plain, br#"{"queue":"q"}"#).await;
    assert_eq!((answer.status, &answer.json()["code"]), (415, &json!("unsupported-media-type")));
    for accepted in ["", "application/json; charset=utf-8", "application/merge-patch+json"] {
        let kind = [("content-type", accepted)];
        let answer = http(address, "POST", JOBS, &kind, br#"{"queue":"q"}"#).await;
        assert_eq!(answer.status, 201, "{accepted:?}");
    }
}

#[tokio::test]
async fn a_payload_over_its_own_limit_is_too_large() {
    let bench = Bench::with(|config| config.payload_bytes_max = 100).await;
    let body = format!(r#"{{"queue":"q","payload":"{}"}}"#, "x".repeat(200));
    let answer = bench.http("POST", JOBS, &body).await;
    assert_eq!((answer.status, &answer.json()["code"]), (413, &json!("too-large")));
}

#[tokio::test]
async fn a_limit_of_the_installation_is_429_and_says_when_to_come_back() {
    let bench = Bench::with(|config| config.live_jobs_max = 1).await;
    create(&bench, json!({ "queue": "q" })).await;
    let answer = bench.http("POST", JOBS, r#"{"queue":"q"}"#).await;
    assert_eq!((answer.status, &answer.json()["code"]), (429, &json!("exhausted")));
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn a_held_unique_key_names_its_holder() {
    let bench = Bench::start().await;
    let job = json!({ "queue": "q", "options": { "unique_key": "u" } });
    let key = create(&bench, job.clone()).await;
    let answer = bench.http("POST", JOBS, &job.to_string()).await;
    assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("unique-key-held")));
    assert_eq!(answer.json()["holder"], json!(key));
}
