//! One operation: its address, its words, its schemas and its handler in one value. The router and
//! the OpenAPI document are both made of a list of these, so neither has what the other lacks.

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use serde_json::{Map, Value, json};
use windlass_gateway::Gateway;

use super::problem::Failure;
use super::schema::Schema;
use super::{PREFIX, problem};
use crate::VERSION;

type Define = fn(&mut Map<String, Value>);

/// One operation.
pub(crate) struct Operation {
    method: Method,
    path: &'static str,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Vec<(u16, Value)>,
    problems: Vec<u16>,
    defines: Vec<Define>,
    handler: Option<MethodRouter<Gateway>>,
}

/// Where an operation is: `method path`, and its name.
pub(crate) struct At {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
}

impl Operation {
    /// An operation that may be unavailable, and says so.
    pub(crate) fn new(at: At, summary: &'static str, handler: MethodRouter<Gateway>) -> Operation {
        let At { method, path, id, tag } = at;
        Operation {
            method,
            path,
            id,
            tag,
            summary,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            problems: vec![400, 503],
            defines: Vec::new(),
            handler: Some(handler),
        }
    }

    /// An operation that the server has beside this face, for the document alone.
    pub(crate) fn of_the_server(at: At, summary: &'static str) -> Operation {
        let mut operation = Operation::new(at, summary, MethodRouter::new());
        operation.handler = None;
        operation.problems.clear();
        operation
    }

    /// A part of the path.
    pub(crate) fn path<T: Schema>(mut self, name: &str, words: &str) -> Operation {
        self.parameters.push(parameter("path", name, words, T::schema()));
        self
    }

    /// A field of the query.
    pub(crate) fn query<T: Schema>(mut self, name: &str, words: &str) -> Operation {
        self.parameters.push(parameter("query", name, words, T::schema()));
        self.defines.push(T::define);
        self
    }

    /// The field of the query that most have.
    pub(crate) fn tenant(self) -> Operation {
        self.query::<super::schema::MaybeName>(
            "tenant",
            "The wall of security; default when absent.",
        )
    }

    /// The tenant beside a key, which says by itself what it is about.
    pub(crate) fn owner(self) -> Operation {
        self.query::<super::schema::MaybeName>(
            "tenant",
            "When given, a job of another tenant is not found.",
        )
    }

    /// A header of this pattern.
    pub(crate) fn header(mut self, name: &str, words: &str, pattern: &str) -> Operation {
        let schema = json!({ "type": "string", "pattern": pattern });
        self.parameters.push(parameter("header", name, words, schema));
        self
    }

    /// A JSON body that must be there, or one that may be left out.
    pub(crate) fn body<T: Schema>(mut self, required: bool) -> Operation {
        self.defines.push(T::define);
        self.body = Some(json!({
            "required": required,
            "content": { "application/json": { "schema": T::schema() } },
        }));
        self.problems.extend([413, 415]);
        self
    }

    /// An answer with a JSON body.
    pub(crate) fn answer<T: Schema>(mut self, status: u16, words: &str) -> Operation {
        self.defines.push(T::define);
        let answer = json!({
            "description": words,
            "content": { "application/json": { "schema": T::schema() } },
        });
        self.answers.push((status, answer));
        self
    }

    /// An answer described by hand.
    pub(crate) fn other_answer(mut self, status: u16, answer: Value) -> Operation {
        self.answers.push((status, answer));
        self
    }

    /// An answer without a body.
    pub(crate) fn done(mut self, words: &str) -> Operation {
        self.answers.push((204, json!({ "description": words })));
        self
    }

    /// Further statuses with a problem document.
    pub(crate) fn problems(mut self, statuses: &[u16]) -> Operation {
        self.problems.extend_from_slice(statuses);
        self
    }

    fn described(&self) -> Value {
        let mut responses = Map::new();
        for (status, answer) in &self.answers {
            responses.insert(status.to_string(), answer.clone());
        }
        for status in &self.problems {
            let words = problem_words(*status);
            responses.insert(status.to_string(), json!({
                "description": words,
                "content": {
                    "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                },
            }));
        }
        let mut whole = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "responses": responses,
        });
        if let Value::Object(fields) = &mut whole {
            if !self.parameters.is_empty() {
                fields.insert("parameters".to_owned(), Value::from(self.parameters.clone()));
            }
            if let Some(body) = &self.body {
                fields.insert("requestBody".to_owned(), body.clone());
            }
        }
        whole
    }
}

fn parameter(place: &str, name: &str, words: &str, schema: Value) -> Value {
    json!({
        "in": place,
        "name": name,
        "description": words,
        "required": place == "path",
        "schema": schema,
    })
}

fn problem_words(status: u16) -> &'static str {
    match status {
        400 => "The request can never succeed.",
        404 => "There is no such thing.",
        409 => "The thing is not in a state for it, or exists already.",
        412 => "The document or schedule has another version.",
        413 => "The body, the payload or the document is past its limit.",
        415 => "The body is not JSON.",
        429 => "A limit of the installation is reached.",
        _ => "Too much is waiting, or the server is going down.",
    }
}

/// The router of all operations, without the prefix.
pub(crate) fn router(operations: Vec<Operation>) -> Router<Gateway> {
    operations.into_iter().fold(Router::new(), |router, operation| {
        let asks = operation.parameters.iter().any(|parameter| parameter["in"] == "query");
        match operation.handler {
            Some(handler) if asks => router.route(operation.path, handler),
            Some(handler) => router.route(operation.path, handler.layer(from_fn(refuse_query))),
            None => router,
        }
    })
}

/// Whoever says `?tenant=` where the tenant stands in the body means another tenant than the default.
async fn refuse_query(request: Request, next: Next) -> Response {
    match request.uri().query() {
        None | Some("") => next.run(request).await,
        Some(_) => {
            let detail =
                "there is nothing to ask for in the query here; a tenant stands in the body";
            Failure::bad("query-invalid", detail).into_response()
        }
    }
}

/// The OpenAPI 3.1 document of all operations.
pub(crate) fn document(operations: &[Operation]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    problem::define(&mut schemas);
    for operation in operations {
        for define in &operation.defines {
            define(&mut schemas);
        }
        let path = paths
            .entry(format!("{PREFIX}{}", operation.path))
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = path {
            methods.insert(operation.method.as_str().to_ascii_lowercase(), operation.described());
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "summary": "A durable job engine.",
            "description": "Keys are written as text and read as text or number. Times are \
                            milliseconds since 1970, durations milliseconds. Every error is a \
                            problem document (RFC 9457) with a stable code.",
            "version": VERSION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": { "schemas": schemas },
    })
}
