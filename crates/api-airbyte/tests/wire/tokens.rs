//! Who asks.

use serde_json::{Value, json};

use crate::bench::{Bench, text};

const FORM: &str = "content-type: application/x-www-form-urlencoded";

async fn form(bench: &Bench, path: &str, body: &str) -> crate::bench::Answer {
    let length = format!("content-length: {}", body.len());
    bench.send("POST", path, &[FORM, &length], body.as_bytes()).await
}

#[tokio::test]
async fn a_token_is_given_for_either_body() {
    let bench = Bench::start().await;
    let body = "grant_type=client_credentials&client_id=a%2Bb&client_secret=s";
    for prefix in ["/api/public/v1", "/api/v1", ""] {
        let path = &format!("{prefix}/applications/token");
        let given = form(&bench, path, body).await.shown();
        assert_eq!((&given["token_type"], &given["expires_in"]), (&json!("Bearer"), &json!(3_600)));
        assert!(text(&given["access_token"]).len() > 20);
    }
    let body = json!({ "client_id": "a", "client_secret": "s" });
    bench.post("/applications/token", body).await.shown();
    let camel = json!({ "clientId": "a", "clientSecret": "s" });
    bench.post("/applications/token", camel).await.shown();
    bench.post("/applications/token", json!({})).await.fails(400, "bad-request");
    let password = json!({ "client_id": "a", "client_secret": "s", "grant_type": "password" });
    bench.post("/applications/token", password).await.fails(400, "bad-request");
    let path = "/api/public/v1/applications/token";
    form(&bench, path, "client_id=a").await.fails(400, "bad-request");
    bench.send("GET", "/api/public/v1/workspaces", &["authorization: Bearer x"], b"").await.shown();
}

const CLIENTS: &str = "[[client]]\nid = 'a.a'\nsecret = 'sa'\n\n\
    [[client]]\nid = 'b'\nsecret = 'sb'\ntenant = 'other'\n";

/// The file of clients.
fn clients(dir: &tempfile::TempDir, text: &str) -> String {
    let path = dir.path().join("clients.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn token(bench: &Bench, id: &str, secret: &str) -> String {
    let body = json!({ "client_id": id, "client_secret": secret });
    text(&bench.post("/applications/token", body).await.shown()["access_token"])
}

async fn workspaces(bench: &Bench, authorization: &str) -> crate::bench::Answer {
    let line = format!("authorization: {authorization}");
    bench.send("GET", "/api/public/v1/workspaces", &[&line], b"").await
}

#[tokio::test]
async fn with_a_list_of_clients_a_token_says_whose_things_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = clients(&dir, CLIENTS);
    let mut bench = Bench::with(|config| config.airbyte_clients = path).await;
    bench.get("/health").await;
    let refused = bench.get("/workspaces").await;
    refused.fails(401, "unauthorized");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let wrong = json!({ "client_id": "a.a", "client_secret": "sb" });
    bench.post("/applications/token", wrong).await.fails(401, "unauthorized");

    let (a, b) = (token(&bench, "a.a", "sa").await, token(&bench, "b", "sb").await);
    let make = |token: &str, name: &str| {
        let body = json!({ "name": name }).to_string();
        let lines =
            [format!("authorization: Bearer {token}"), format!("content-length: {}", body.len())];
        (lines, body)
    };
    let (lines, body) = make(&b, "theirs");
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    bench.send("POST", "/api/public/v1/workspaces", &lines, body.as_bytes()).await.shown();
    let names = |found: Value| -> Vec<String> {
        found["data"].as_array().unwrap().iter().map(|it| text(&it["name"])).collect()
    };
    let seen = workspaces(&bench, &format!("Bearer {a}")).await.shown();
    assert_eq!(names(seen), ["Default Workspace"]);
    let seen = workspaces(&bench, &format!("bearer {b}")).await.shown();
    assert_eq!(names(seen).len(), 2);
    // User and password work where a client has nothing else.
    workspaces(&bench, "Basic YS5hOnNh").await.shown();

    for wrong in ["Basic YS5hOnNi", "Basic !", "Bearer", "Digest x", &format!("Bearer {a}x")] {
        workspaces(&bench, wrong).await.fails(401, "unauthorized");
    }
    let (said, proof) = a.rsplit_once('.').unwrap();
    let longer = format!("Bearer {said}0.{proof}");
    workspaces(&bench, &longer).await.fails(401, "unauthorized");

    bench.again().await;
    workspaces(&bench, &format!("Bearer {a}")).await.shown();
}

#[tokio::test]
async fn a_token_is_no_good_without_the_secret_it_was_given_for() {
    // Without a list any secret gets a token.
    let mut bench = Bench::start().await;
    let open = format!("Bearer {}", token(&bench, "a.a", "guessed").await);
    let dir = tempfile::tempdir().unwrap();
    let path = clients(&dir, CLIENTS);
    bench.again_with(|config| config.airbyte_clients = path).await;
    workspaces(&bench, &open).await.fails(401, "unauthorized");

    let (a, b) = (token(&bench, "a.a", "sa").await, token(&bench, "b", "sb").await);
    clients(&dir, &CLIENTS.replace("'sa'", "'changed'"));
    bench.again().await;
    workspaces(&bench, &format!("Bearer {a}")).await.fails(401, "unauthorized");
    workspaces(&bench, &format!("Bearer {b}")).await.shown();
}

#[tokio::test]
async fn a_list_without_clients_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clients.toml");
    let twice = "[[client]]
id = 'a'
secret = 's'
[[client]]
id = 'a'
secret = 't'
";
    for text in [twice, "", "[[client]]\nid = ''\nsecret = 's'\n", "[[client]]\nid = 'a'\n", "?"] {
        std::fs::write(&path, text).unwrap();
        let config = windlass_server::Config {
            data_dir: dir.path().join("data"),
            listen: "127.0.0.1:0".parse().unwrap(),
            zeebe_listen: windlass_server::settings::FaceListen::Off,
            builtin: windlass_server::settings::Switch::Off,
            log_segment_mib: 16,
            log_reserve_segments: 1,
            airbyte_clients: path.to_str().unwrap().to_owned(),
            ..windlass_server::Config::default()
        };
        assert!(windlass_server::start(config).await.is_err(), "{text}");
    }
}
