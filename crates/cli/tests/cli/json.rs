//! What programs read: the JSON of `--json` is that of REST, and so are its errors.

use serde_json::{Value, json};

use crate::{Server, error};

/// A job with everything that a command line can say of it, and one with nothing.
fn jobs(server: &Server) -> [String; 2] {
    let all = [
        ["mail", "{\"to\": [1, \"a\"]}", "--group=g", "--priority=-3", "--retries=7"],
        ["--unique=u", "--unique-hold=2h", "--request-id=r", "--concurrency-key=c", "--rate-key=w"],
        [
            "--exhausted=fail",
            "--cancel=completion-counts",
            "--headers={\"h\": 1}",
            "--type=t",
            "--delay=1h",
        ],
        [
            "--retry=exponential:1s,3,5m,jitter=250ms",
            "--lease-timeout=alert",
            "--attempt-timeout=10m,end",
            "--total-timeout=1d,alert",
            "--waiting-timeout=2d",
        ],
    ];
    let all: Vec<&str> = all.iter().flatten().copied().collect();
    [server.create(&all), server.create(&["mail", "no JSON"])]
}

#[test]
fn a_job_and_why_it_waits() {
    let server = Server::start();
    let keys = jobs(&server);
    for key in &keys {
        let shown = server.json(&["job", "get", key]);
        assert_eq!(shown, server.rest(&format!("/windlass/v1/jobs/{key}")));
        let mut why = server.json(&["job", "why", key]);
        assert_eq!(why["key"].take(), json!(key));
        why.as_object_mut().unwrap().remove("key");
        assert_eq!(why, server.rest(&format!("/windlass/v1/jobs/{key}/why")));
    }
    let options = server.json(&["job", "get", &keys[0]])["options"].clone();
    let expected = json!({
        "headers": { "h": 1 },
        "unique_key": "u",
        "unique_hold_ms": 7_200_000,
        "request_id": "r",
        "concurrency_key": "c",
        "rate_key": "w",
        "retry": {
            "kind": "exponential",
            "delay_ms": 1_000,
            "base": 3,
            "cap_ms": 300_000,
            "jitter_ms": 250,
            "from_start": false,
        },
        "exhausted": "fail",
        "lease_outcome": "alert",
        "waiting": { "after_ms": 172_800_000, "outcome": "end" },
        "attempt": { "after_ms": 600_000, "outcome": "end" },
        "total": { "after_ms": 86_400_000, "outcome": "alert" },
        "cancel": "cooperative-completion-counts",
    });
    assert_eq!(options, expected);

    // In an incident, at rest, and in lists.
    let worker = server.worker(&[], "read -r n; echo it went wrong >&2; exit 3");
    let failed = server.create(&["mail", "1", "--retries", "0"]);
    server.reached(&failed, "incident");
    worker.stop();
    server.json(&["job", "cancel", &keys[1], "--reason", "enough"]);
    for key in [&failed, &keys[1]] {
        let shown = server.json(&["job", "get", key]);
        assert_eq!(shown, server.rest(&format!("/windlass/v1/jobs/{key}")));
    }
    for state in ["", "incident", "failed", "cancelled"] {
        let asked = if state.is_empty() { vec![] } else { vec!["--state", state] };
        let listed = server.json(&[&["job", "list"][..], &asked].concat());
        let state = if state.is_empty() { state.to_owned() } else { format!("?state={state}") };
        assert_eq!(listed, server.rest(&format!("/windlass/v1/jobs{state}")));
    }
}

#[test]
fn queues_limits_and_status() {
    let server = Server::start();
    server.json(&["queue", "configure", "mail", "--scheme", "2,1", "--key-rate", "5/1m"]);
    server.json(&["queue", "configure", "other", "--creation-order", "true"]);
    assert_eq!(server.json(&["queue", "list"]), server.rest("/windlass/v1/queues"));

    server.json(&["limit", "set", "cpu", "--active-max", "3"]);
    server.json(&["limit", "set", "web", "--rate", "100/1m"]);
    let listed = server.json(&["limit", "list"]);
    assert_eq!(listed, server.rest("/windlass/v1/limits"));
    assert_eq!(listed["limits"].as_array().map(Vec::len), Some(2));
    assert_eq!(server.json(&["limit", "list", "--limit", "1"])["next"], "cpu");
    assert_eq!(server.json(&["limit", "list", "--after", "cpu"])["limits"][0]["name"], "web");
    assert_eq!(server.json(&["limit", "get", "web"]), server.rest("/windlass/v1/limits/web"));
    let told = String::from_utf8(server.ask(&["limit", "get", "cpu"]).stdout).unwrap();
    assert!(told.contains("0 of 3"), "{told}");
    assert_eq!(server.ask(&["limit", "get", "nobody"]).status.code(), Some(4));
    let none = server.ask(&["limit", "set", "web", "--rate", "0/1m"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(error(&none).contains("at least 1 in at least 1ms"), "{}", error(&none));

    // This server has no processes, so nothing is said of them.
    let incidents = server.ask(&["incident", "list"]);
    assert_eq!(String::from_utf8(incidents.stdout).unwrap(), "no incidents\n");

    let (mut told, mut asked) = (server.json(&["status"]), server.rest("/windlass/v1/status"));
    for status in [&mut told, &mut asked] {
        assert!(status["uptime_ms"].take().is_u64());
    }
    assert_eq!(told, asked);
}

/// The error on standard error.
fn failure(server: &Server, arguments: &[&str]) -> Value {
    let output = server.command(arguments).arg("--json").output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let failure: Value = serde_json::from_slice(&output.stderr).unwrap();
    failure["error"].clone()
}

#[test]
fn errors_have_a_code_and_name_the_bound() {
    let server = Server::start();
    let long = "x".repeat(300);
    let met = failure(&server, &["job", "create", &long]);
    assert_eq!((&met["code"], &met["bound"]), (&json!("too-large"), &json!("name-bytes")));
    assert_eq!((&met["max"], &met["setting"]), (&json!(256), &Value::Null));
    let large = format!("@{}", server.dir.path().join("large").display());
    std::fs::write(&large[1..], "x".repeat((4 << 20) + 1)).unwrap();
    let met = failure(&server, &["job", "create", "mail", &large]);
    assert_eq!(
        (&met["bound"], &met["setting"]),
        (&json!("payload-bytes"), &json!("payload_bytes_max"))
    );
    assert!(met["hint"].as_str().unwrap().contains("--payload-bytes-max"), "{met}");

    // What the command line itself gets wrong.
    for wrong in [&["job", "create"][..], &["nonsense"], &["job", "get", "x"], &["job"]] {
        let met = failure(&server, wrong);
        assert_eq!(met["code"], "usage", "{wrong:?}: {met}");
        assert!(!met["message"].as_str().unwrap().is_empty(), "{wrong:?}: {met}");
    }
    // A command of a worker has words of its own.
    let words = server.ask(&["worker", "--", "true", "--json"]);
    assert!(error(&words).starts_with("error: "), "{}", error(&words));
    assert!(serde_json::from_slice::<Value>(&words.stderr).is_err());
}

#[test]
fn a_tenant_named_beside_a_key_is_a_wall() {
    let server = Server::start();
    let key = server.create(&["mail", "1", "--tenant", "a"]);
    for command in [
        &["job", "get"][..],
        &["job", "why"],
        &["job", "cancel"],
        &["job", "update", "--priority", "1"],
        &["job", "retry"],
        &["job", "tail"],
        &["incident", "resolve"],
    ] {
        let asked = [command, &[&key, "--tenant", "b"]].concat();
        assert_eq!(server.ask(&asked).status.code(), Some(4), "{asked:?}");
    }
    assert_eq!(server.json(&["job", "get", &key, "--tenant", "a"])["state"], "ready");
}
