//! Documents: the body is the value, the entity tag is the version.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, put};
use serde_json::json;
use serde_json::value::RawValue;
use windlass_gateway::Gateway;
use windlass_gateway::read::DocumentName;
use windlass_gateway::request::Answer;
use windlass_record::command::{Command, DocumentWrite, PutDocuments};

use super::MISMATCH;
use super::extract::{Asked, NamePath, NamesPath, Raw, Shown};
use super::input::{DocumentsQuery, TenantQuery, tenant};
use super::jobs::PageLimit;
use super::operation::{At, Operation};
use super::output::{DocumentDetail, DocumentPage, DocumentVersion};
use super::problem::{Answered, Failure};
use super::schema::{MaybeName, Name, parse_key};
use crate::error::ApiError;

/// The operations of this file.
pub(super) fn operations() -> Vec<Operation> {
    let at = |method, path, id| At { method, path, id, tag: "documents" };
    let one = |operation: Operation| {
        operation.path::<Name>("kind", "Its kind.").path::<Name>("id", "Which one.").tenant()
    };
    let if_match = "The version it must have, as in \"3\".";
    let if_none_match = "* when it must not exist yet.";
    vec![
        Operation::new(
            at(Method::GET, "/documents/{kind}", "listDocuments"),
            "Lists documents without their values.",
            get(list),
        )
        .path::<Name>("kind", "Their kind.")
        .tenant()
        .query::<MaybeName>("after", "Ids after this one.")
        .query::<PageLimit>("limit", "Documents of a page; 100 when absent.")
        .answer::<DocumentPage>(200, "A page."),
        one(Operation::new(
            at(Method::GET, "/documents/{kind}/{id}", "getDocument"),
            "Gets a document.",
            get(show),
        ))
        .other_answer(
            200,
            json!({
                "description": "Its value as it was given; the entity tag is its version.",
                "headers": { "ETag": { "schema": { "type": "string" } } },
                "content": {
                    "application/json": { "schema": {} },
                    "application/octet-stream": { "schema": {} },
                },
            }),
        )
        .problems(&[404]),
        one(Operation::new(
            at(Method::PUT, "/documents/{kind}/{id}", "putDocument"),
            "Writes a document: any JSON value, kept byte for byte.",
            put(write),
        ))
        .header("If-Match", if_match, "^\"[0-9]{1,19}\"$")
        .header("If-None-Match", if_none_match, "^[*]$")
        .body::<Box<RawValue>>(true)
        .answer::<DocumentVersion>(200, "It is durable.")
        .problems(&[412, 429]),
        one(Operation::new(
            at(Method::DELETE, "/documents/{kind}/{id}", "deleteDocument"),
            "Deletes a document.",
            delete(remove),
        ))
        .header("If-Match", if_match, "^\"[0-9]{1,19}\"$")
        .done("It is gone.")
        .problems(&[412, 429]),
    ]
}

async fn list(
    State(gateway): State<Gateway>,
    NamePath(kind): NamePath,
    Asked(query): Asked<DocumentsQuery>,
) -> Answered<Shown<DocumentPage>> {
    let filter = query.filter(kind)?;
    let found = gateway.documents(filter).await?;
    let last = found.documents.last().map(|(id, _)| String::from(&**id));
    let documents = found
        .documents
        .into_iter()
        .map(|(id, version)| DocumentDetail { id: id.into(), version })
        .collect();
    Ok(Shown(DocumentPage { documents, next: last.filter(|_| found.more) }))
}

async fn show(
    State(gateway): State<Gateway>,
    NamesPath(kind, id): NamesPath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Response> {
    let name = DocumentName { tenant: tenant(query.tenant)?, kind: kind.into(), id: id.into() };
    let (version, value) = gateway.document(name).await?.ok_or_else(|| {
        ApiError::not_found("document-not-found", "no document has this kind and id")
    })?;
    let is_json = serde_json::from_slice::<&RawValue>(&value).is_ok();
    let kind = if is_json { "application/json" } else { "application/octet-stream" };
    let mut response = (StatusCode::OK, axum::body::Bytes::from_owner(value)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::ETAG, tag(version));
    Ok(response)
}

async fn write(
    State(gateway): State<Gateway>,
    NamesPath(kind, id): NamesPath,
    Asked(query): Asked<TenantQuery>,
    headers: HeaderMap,
    Raw(value): Raw,
) -> Answered<Response> {
    serde_json::from_slice::<&RawValue>(&value).map_err(|error| Failure::json(&error))?;
    let write = DocumentWrite {
        tenant: tenant(query.tenant)?,
        kind: kind.into(),
        id: id.into(),
        expected_version: expected_version(&headers)?,
        bytes: Some(Arc::from(&*value)),
    };
    let version = put_one(&gateway, write).await?;
    let mut response = Shown(DocumentVersion { version }).into_response();
    response.headers_mut().insert(header::ETAG, tag(version));
    Ok(response)
}

async fn remove(
    State(gateway): State<Gateway>,
    NamesPath(kind, id): NamesPath,
    Asked(query): Asked<TenantQuery>,
    headers: HeaderMap,
) -> Answered<StatusCode> {
    let write = DocumentWrite {
        tenant: tenant(query.tenant)?,
        kind: kind.into(),
        id: id.into(),
        expected_version: expected_version(&headers)?,
        bytes: None,
    };
    put_one(&gateway, write).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn put_one(gateway: &Gateway, write: DocumentWrite) -> Answered<u64> {
    let command = Command::PutDocuments(PutDocuments { documents: vec![write] });
    let Answer::Versions(versions) = gateway.command(command).await? else {
        unreachable!("{MISMATCH}")
    };
    Ok(versions.first().copied().unwrap_or_default())
}

pub(super) fn tag(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).expect("digits in quotes are a header value")
}

/// The version that the headers ask for: `If-Match: "3"`, or `If-None-Match: *` for "none yet".
pub(super) fn expected_version(headers: &HeaderMap) -> Answered<Option<u64>> {
    let text = |name| {
        let value = headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
        value.filter(|value| !value.trim().is_empty())
    };
    // As RFC 9110 has it, if-match counts first.
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(None),
        (None, Some(tag)) if tag.trim() == "*" => Ok(Some(0)),
        (None, Some(_)) => Err(Failure::bad("if-none-match-invalid", "if-none-match must be *")),
        (Some(tag), _) => version(tag).map(Some).ok_or_else(|| {
            Failure::bad("if-match-invalid", "if-match must be one version, as in \"3\"")
        }),
    }
}

fn version(tag: &str) -> Option<u64> {
    let digits = tag.trim().strip_prefix('"')?.strip_suffix('"')?;
    parse_key(digits).map(|number| number.0)
}
