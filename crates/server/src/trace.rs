//! A span for each request, for a collector of traces: its route or gRPC method, and how it was
//! answered. The span of a call or a stream ends with its answer's last byte.

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// Runs a request in its span.
pub(crate) async fn span_of_request(request: Request, next: Next) -> Response {
    let span = open(&request);
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let is_grpc = is_grpc(response.headers());
    if is_grpc {
        record_grpc_status(&span, response.headers());
    }
    response.map(|body| {
        // The frames are passed on as they are; the closure holds the span until the body's end.
        Body::new(body.map_frame(move |frame| {
            if let Some(trailers) = frame.trailers_ref().filter(|_| is_grpc) {
                record_grpc_status(&span, trailers);
            }
            frame
        }))
    })
}

fn open(request: &Request) -> Span {
    let method = request.method().as_str();
    let path = request.uri().path();
    if is_grpc(request.headers()) {
        // The path of a call is its service and method; others have ids in theirs.
        let name = path.trim_start_matches('/');
        return tracing::info_span!(
            "request",
            otel.name = name,
            otel.kind = "server",
            otel.status_code = Empty,
            rpc.system = "grpc",
            rpc.method = name,
            rpc.grpc.status_code = Empty,
            http.response.status_code = Empty,
        );
    }
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    tracing::info_span!(
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
    )
}

pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/grpc"))
}

/// A call that is refused at once says so in its headers, any other in its trailers.
fn record_grpc_status(span: &Span, headers: &HeaderMap) {
    let status = headers.get("grpc-status").and_then(|status| status.to_str().ok());
    let Some(code) = status.and_then(|status| status.parse::<u64>().ok()) else { return };
    span.record("rpc.grpc.status_code", code);
    // What a server is to blame for: unknown, deadline, unimplemented, internal, unavailable, loss.
    if matches!(code, 2 | 4 | 12 | 13 | 14 | 15) {
        span.record("otel.status_code", "ERROR");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing_subscriber::layer::{Context, SubscriberExt};
    use tracing_subscriber::registry::LookupSpan;
    use tracing_subscriber::{Layer, Registry};

    use super::*;

    type Fields = BTreeMap<&'static str, String>;

    struct Reading<'a>(&'a mut Fields);

    impl Visit for Reading<'_> {
        fn record_str(&mut self, field: &Field, value: &str) {
            self.0.insert(field.name(), value.to_owned());
        }

        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.insert(field.name(), format!("{value:?}"));
        }
    }

    /// Keeps the fields of spans that have ended.
    #[derive(Clone, Default)]
    struct Ended(Arc<Mutex<Vec<Fields>>>);

    impl<S: tracing::Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Ended {
        fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
            let mut fields = Fields::new();
            attributes.record(&mut Reading(&mut fields));
            context.span(id).unwrap().extensions_mut().insert(fields);
        }

        fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
            let span = context.span(id).unwrap();
            let mut extensions = span.extensions_mut();
            values.record(&mut Reading(extensions.get_mut::<Fields>().unwrap()));
        }

        fn on_close(&self, id: Id, context: Context<'_, S>) {
            let fields = context.span(&id).unwrap().extensions_mut().remove::<Fields>().unwrap();
            self.0.lock().unwrap().push(fields);
        }
    }

    #[tokio::test]
    async fn each_request_has_a_span_with_its_route_and_status() {
        let ended = Ended::default();
        let _while_tested =
            tracing::subscriber::set_default(Registry::default().with(ended.clone()));
        let refused = || async { [("content-type", "application/grpc"), ("grpc-status", "13")] };
        let router = Router::new()
            .route("/jobs/{key}", get(|| async { StatusCode::NOT_FOUND }))
            .route("/broken", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
            .route("/windlass.v1.Windlass/GetJob", post(refused))
            .layer(axum::middleware::from_fn(span_of_request));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_close, closing) = tokio::sync::watch::channel(false);
        let port = crate::listen::Port {
            listener,
            router,
            connections_max: 9,
            send_buffer_bytes_max: 1 << 20,
        };
        tokio::spawn(crate::listen::run(port, closing, Duration::ZERO));
        for (head, expected) in [
            ("GET /jobs/7 HTTP/1.1", "otel.name=GET /jobs/{key} http.response.status_code=404"),
            (
                "GET /broken HTTP/1.1",
                "otel.name=GET /broken http.response.status_code=500 otel.status_code=ERROR",
            ),
            (
                "POST /windlass.v1.Windlass/GetJob HTTP/1.1\r\ncontent-type: application/grpc",
                "otel.name=windlass.v1.Windlass/GetJob http.response.status_code=200 \
                 rpc.grpc.status_code=13 otel.status_code=ERROR",
            ),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let text = format!("{head}\r\nhost: h\r\nconnection: close\r\n\r\n");
            stream.write_all(text.as_bytes()).await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap();
            let spans = std::mem::take(&mut *ended.0.lock().unwrap());
            let [span] = &*spans else { panic!("{spans:?}") };
            for pair in expected.split(' ').filter(|pair| !pair.starts_with('/')) {
                let (name, value) = pair.split_once('=').unwrap();
                assert!(span[name].starts_with(value), "{name} in {span:?}");
            }
        }
    }
}
