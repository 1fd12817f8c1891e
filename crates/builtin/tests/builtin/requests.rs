//! Requests against a server of our own.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use windlass_builtin::http::{Caller, RESPONSE_BYTES_MAX, destination};

async fn server() -> SocketAddr {
    let echo = async |headers: HeaderMap, body: Bytes| {
        let header =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        axum::Json(json!({
            "body": String::from_utf8_lossy(&body),
            "type": header("content-type"), "accept": header("accept"), "mine": header("x-mine"),
            "host": header("host"), "who": header("authorization"),
        }))
    };
    let large = async || Body::from(vec![b'x'; RESPONSE_BYTES_MAX + 1]);
    let slow = async || {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "late"
    };
    let hop = async |Path(hops): Path<u32>| match hops {
        0 => "there".into_response(),
        hops => Redirect::temporary(&format!("/hops/{}", hops - 1)).into_response(),
    };
    let refused =
        async || (StatusCode::NOT_FOUND, [("x-why", "no")], "{\"error\": \"nothing here\"}");
    let two = async || ([(header::SET_COOKIE, "a=1")], "plain text");
    let router = Router::new()
        .route("/echo", any(echo))
        .route("/large", get(large))
        .route("/slow", get(slow))
        .route("/hops/{hops}", any(hop))
        .route("/loop", get(async || Redirect::to("/loop")))
        .route("/away", get(async || Redirect::to("http://169.254.169.254/latest/meta-data")))
        .route("/post", post(async || Redirect::to("/echo")))
        .route("/missing", get(refused))
        .route("/empty", get(async || StatusCode::NO_CONTENT))
        .route("/text", get(two));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn caller() -> Caller {
    Caller::new(destination::denied_default())
}

async fn get_from(path: &str) -> Result<Value, String> {
    let address = server().await;
    let input =
        json!({"http_request": {"uri": format!("http://{address}{path}"), "method": "GET"}});
    caller().task(&input).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn an_answer_is_the_output() {
    let address = server().await;
    let input = json!({
        "uri": format!("http://{address}/echo?a=b"), "method": "post", "body": {"z": 1, "a": [2]},
        "headers": {"X-Mine": 5, "Authorization": "Bearer t", "Host": "elsewhere"},
        "accept": ["text/plain", "application/json"], "readTimeOut": "5000",
    });
    let output = caller().task(&input).await.unwrap();
    let response = &output["response"];
    assert_eq!((&response["statusCode"], &response["reasonPhrase"]), (&json!(200), &json!("OK")));
    assert_eq!(response["headers"]["content-type"], json!(["application/json"]));
    assert_eq!(
        response["body"],
        json!({
            "body": "{\"z\":1,\"a\":[2]}", "type": "application/json", "accept": "text/plain, application/json",
            "mine": "5", "host": address.to_string(), "who": "Bearer t",
        })
    );
    let text = get_from("/text").await.unwrap();
    assert_eq!(text["response"]["body"], json!("plain text"));
    assert_eq!(text["response"]["headers"]["set-cookie"], json!(["a=1"]));
    let empty = get_from("/empty").await.unwrap();
    assert_eq!(
        (&empty["response"]["statusCode"], &empty["response"]["body"]),
        (&json!(204), &json!(null))
    );
}

#[tokio::test]
async fn a_refusal_is_a_failure() {
    let error = get_from("/missing").await.unwrap_err();
    assert_eq!(error, r#"404 Not Found: "{\"error\":\"nothing here\"}""#);
}

#[tokio::test]
async fn redirects_are_followed_a_few_times() {
    assert_eq!(get_from("/hops/5").await.unwrap()["response"]["body"], json!("there"));
    assert_eq!(get_from("/hops/6").await.unwrap_err(), "there were more than 5 redirects");
    assert_eq!(get_from("/loop").await.unwrap_err(), "there were more than 5 redirects");
    let address = server().await;
    let input = json!({"uri": format!("http://{address}/post"), "method": "POST", "body": "x"});
    let output = caller().task(&input).await.unwrap();
    assert_eq!(output["response"]["body"]["body"], json!(""), "a body is not sent on");
}

#[tokio::test]
async fn some_destinations_are_denied() {
    let denied =
        |address: &str, network: &str| format!("requests to {address} are denied, as {network} is");
    for (uri, address, network) in [
        ("http://169.254.169.254/latest", "169.254.169.254", "169.254.0.0/16"),
        ("http://[::ffff:169.254.169.254]/", "169.254.169.254", "169.254.0.0/16"),
        ("https://[fd00:ec2::254]/", "fd00:ec2::254", "fd00:ec2::254/128"),
    ] {
        let input = json!({"uri": uri, "method": "GET"});
        let error = caller().task(&input).await.unwrap_err().to_string();
        assert_eq!(error, denied(address, network), "{uri}");
    }
    assert_eq!(get_from("/away").await.unwrap_err(), denied("169.254.169.254", "169.254.0.0/16"));
    // A name is judged by what it means.
    let address = server().await;
    let networks = vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
    for host in ["localhost", "127.0.0.1", "0x7f.1"] {
        let input =
            json!({"uri": format!("http://{host}:{}/text", address.port()), "method": "GET"});
        assert!(Caller::new(networks.clone()).task(&input).await.is_err(), "{host}");
    }
}

#[tokio::test]
async fn bounds_hold() {
    assert_eq!(get_from("/large").await.unwrap_err(), "the response is larger than 10 MiB");
    let address = server().await;
    let input =
        json!({"uri": format!("http://{address}/slow"), "method": "GET", "readTimeOut": 50});
    let error = caller().task(&input).await.unwrap_err().to_string();
    assert_eq!(error, format!("{address} did not answer within 50 ms"));
}

#[tokio::test]
async fn what_cannot_be_asked_is_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for (input, expected) in [
        (json!({}), "Missing HTTP URI"),
        (json!({"http_request": {"uri": "http://a/"}}), "No HTTP method specified"),
        (
            json!({"uri": "file:///etc/passwd", "method": "GET"}),
            "\"file:///etc/passwd\" is no HTTP URI",
        ),
        (json!({"uri": "http://a/", "method": "G T"}), "\"G T\" is no HTTP method"),
        (
            json!({"uri": "http://a/", "method": "GET", "headers": {"a b": 1}}),
            "\"a b\" is no HTTP header",
        ),
        (
            json!({"uri": "http://a/", "method": "GET", "headers": {"a": "1\r\nb: 2"}}),
            "\"a\" is no HTTP header",
        ),
    ] {
        let error = caller().task(&input).await.unwrap_err().to_string();
        assert_eq!(error, expected, "{input}");
    }
    let input = json!({"uri": format!("http://{address}/"), "method": "GET"});
    let error = caller().task(&input).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("failed to connect to {address}: ")), "{error}");
    let input = json!({"uri": "http://nobody.invalid/", "method": "GET"});
    assert!(caller().task(&input).await.is_err());
}
