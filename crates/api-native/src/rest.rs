//! REST.

use axum::Router;
use windlass_gateway::Gateway;

/// The routes.
pub fn router(gateway: Gateway) -> Router {
    let _ = gateway;
    Router::new()
}

/// The answer to a path that nobody has.
pub fn no_such_path(uri: &axum::http::Uri) -> axum::response::Response {
    use axum::response::IntoResponse;
    (axum::http::StatusCode::NOT_FOUND, uri.to_string()).into_response()
}
