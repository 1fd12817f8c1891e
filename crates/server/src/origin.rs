//! Whose page a browser speaks for. There is no authentication, so that a page of anybody, open in a browser on
//! this machine, could have programs started: it may send what it likes, and only cannot read the answer.
//!
//! Three things are refused, of browsers alone: a change that another origin's page asks for; what such a page
//! has loaded into itself, as polls of Conductor's are no changes by their method; and, while the server
//! listens on loopback, anything that is asked of it under a name that is not its own (an attacker's, made
//! to lead here). Links lead here from everywhere. Browsers cannot be kept by pages from saying either. Clients that are
//! no browsers send neither header and notice nothing.

use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// What only browsers send, and pages cannot set: from where, what kind of request, for what.
const FETCH_SITE: &str = "sec-fetch-site";
const FETCH_MODE: &str = "sec-fetch-mode";
const FETCH_DEST: &str = "sec-fetch-dest";

/// What a proxy says that the browser asked. Pages of others cannot set it unasked, as they can no header of theirs.
const FORWARDED_HOST: &str = "x-forwarded-host";

/// The routes of the port with this address, behind the rules of the module.
pub(crate) fn guarded(router: Router, address: SocketAddr) -> Router {
    let door = Door { is_loopback: address.ip().is_loopback() };
    router.layer(axum::middleware::from_fn_with_state(door, check))
}

/// Whether the port is one of this machine only.
#[derive(Clone, Copy)]
struct Door {
    is_loopback: bool,
}

async fn check(State(door): State<Door>, request: Request, next: Next) -> Response {
    match refusal(door, request.method(), request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(why) => refused(why),
    }
}

fn refusal(door: Door, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    if !headers.contains_key(header::ORIGIN) && !headers.contains_key(FETCH_SITE) {
        return None;
    }
    // HTTP/2 has the host in the address.
    let host = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => text(headers, header::HOST.as_str()).unwrap_or_default(),
    };
    if door.is_loopback && !is_own(host) {
        return Some("this server listens on loopback only, and browsers must ask it by address");
    }
    let is_foreign = matches!(text(headers, FETCH_SITE), Some("cross-site" | "same-site"));
    let is_link = text(headers, FETCH_MODE) == Some("navigate")
        && text(headers, FETCH_DEST) == Some("document");
    if is_foreign && !is_link {
        return Some("a page of another origin may lead here, and no more");
    }
    let changes = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let forwarded = text(headers, FORWARDED_HOST);
    let is_same = |origin: &header::HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        named.is_some_and(|named| {
            named.eq_ignore_ascii_case(host)
                || forwarded.is_some_and(|forwarded| named.eq_ignore_ascii_case(forwarded))
        })
    };
    if changes && !headers.get_all(header::ORIGIN).iter().all(is_same) {
        return Some("a page of another origin may not change anything here");
    }
    None
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// Whether no name server can have led here: an address, or the name that every machine has for itself.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

/// A body with the fields that each wire's clients look for.
fn refused(why: &'static str) -> Response {
    let body = json!({
        "type": "urn:windlass:problem:cross-origin",
        "title": "Forbidden",
        "status": 403,
        "detail": why,
        "message": why,
        "code": "cross-origin",
    });
    let head = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::FORBIDDEN, head, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: Door = Door { is_loopback: false };
    const LOOPBACK: Door = Door { is_loopback: true };

    fn passes(door: Door, method: Method, headers: &[(&'static str, &str)]) -> bool {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, value.parse().unwrap());
        }
        refusal(door, &method, &Uri::from_static("/x"), &all).is_none()
    }

    #[test]
    fn pages_change_what_is_of_their_own_origin() {
        for (origin, host, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("https://Windlass.example", "windlass.example", true),
            ("http://127.0.0.1:8081", "127.0.0.1:8080", false),
            ("http://evil.example", "127.0.0.1:8080", false),
            ("http://127.0.0.1:8080.evil.example", "127.0.0.1:8080", false),
            ("null", "127.0.0.1:8080", false),
            ("", "", false),
        ] {
            let headers = [("origin", origin), ("host", host)];
            assert_eq!(passes(PUBLIC, Method::POST, &headers), expected, "{origin} {host}");
            assert!(passes(PUBLIC, Method::GET, &headers), "{origin} {host}");
        }
        let two = [("origin", "http://h"), ("origin", "http://evil"), ("host", "h")];
        assert!(!passes(PUBLIC, Method::DELETE, &two));
        let proxy = [
            ("origin", "https://w.example"),
            ("host", "[::1]:1"),
            ("x-forwarded-host", "w.example"),
        ];
        assert!(passes(LOOPBACK, Method::PUT, &proxy));
    }

    #[test]
    fn pages_of_others_lead_here_and_load_nothing() {
        for (site, mode, dest, expected) in [
            ("cross-site", "navigate", "document", true),
            ("cross-site", "navigate", "iframe", false),
            ("cross-site", "no-cors", "image", false),
            ("same-site", "cors", "empty", false),
            ("same-origin", "cors", "empty", true),
            ("none", "navigate", "document", true),
        ] {
            let headers = [
                ("host", "localhost:8080"),
                (FETCH_SITE, site),
                (FETCH_MODE, mode),
                (FETCH_DEST, dest),
            ];
            assert_eq!(passes(LOOPBACK, Method::GET, &headers), expected, "{site} {mode} {dest}");
        }
    }

    #[test]
    fn browsers_ask_a_server_on_loopback_by_address() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("LOCALHOST:1", true),
            ("evil.example:8080", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("", false),
        ] {
            let origin = format!("http://{host}");
            for browser in [("origin", &*origin), ("sec-fetch-site", "same-origin")] {
                let headers = [browser, ("host", host)];
                assert_eq!(passes(LOOPBACK, Method::GET, &headers), expected, "{host}");
                assert!(passes(PUBLIC, Method::GET, &headers), "{host}");
            }
            assert!(passes(LOOPBACK, Method::POST, &[("host", host)]), "no browser: {host}");
        }
    }

    #[test]
    fn the_address_of_http_2_has_the_host() {
        let headers = HeaderMap::from_iter([(header::ORIGIN, "http://h:1".parse().unwrap())]);
        let is_refused = |uri| refusal(PUBLIC, &Method::POST, &Uri::from_static(uri), &headers);
        assert_eq!(is_refused("http://h:1/x"), None);
        assert!(is_refused("http://other:1/x").is_some());
    }
}
