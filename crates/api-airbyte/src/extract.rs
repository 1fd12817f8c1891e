//! Reads requests: who asks, bodies, paths, parameters, pages. What is unknown is passed over.

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, OriginalUri, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;

use crate::failure::{Answered, Failure};
use crate::limit::{BODY_BYTES_MAX, NAME_BYTES_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};

/// A JSON object.
pub(crate) struct Object<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Object<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Answered<Object<T>> {
        check_json(request.headers())?;
        let bytes = whole(request, state).await?;
        parse_object(&bytes).map(Object)
    }
}

/// Reads a JSON object.
pub(crate) fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Answered<T> {
    // Without this, a list would be taken as an object's members in order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Failure::invalid("The body must be a JSON object."));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::invalid(format!("The body cannot be read: {error}")))
}

/// A missing type is taken as JSON. Another one is refused: browsers send those anywhere, unasked.
fn check_json(headers: &HeaderMap) -> Answered<()> {
    let essence = essence(headers);
    let is_json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if is_json || essence.is_empty() {
        return Ok(());
    }
    let detail = format!("The content type {essence} is not supported; send application/json.");
    Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", detail))
}

/// The content type without its parameters; empty if there is none.
pub(crate) fn essence(headers: &HeaderMap) -> String {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The whole body.
pub(crate) async fn whole<S: Send + Sync>(request: Request, state: &S) -> Answered<Bytes> {
    if usize::try_from(request.body().size_hint().lower()).is_ok_and(|bytes| bytes > BODY_BYTES_MAX)
    {
        return Err(too_large());
    }
    Bytes::from_request(request, state).await.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large();
        }
        Failure::invalid("The body did not arrive whole.")
    })
}

/// What is said of a body that is too large.
pub(crate) fn too_large() -> Failure {
    let detail = format!("The body is over the limit of {BODY_BYTES_MAX} bytes.");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "payload-too-large", detail)
}

/// Parts of the path.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for At<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answered<At<T>> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(at)) => Ok(At(at)),
            Err(rejection) => Err(Failure::invalid(rejection.body_text())),
        }
    }
}

/// The parameters of a query.
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answered<Params> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(given)) => Ok(Params(given)),
            Err(rejection) => Err(Failure::invalid(rejection.body_text())),
        }
    }
}

impl Params {
    /// The first of a name; what is empty is not there.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        let mut matching = self.0.iter().filter(|(key, value)| key == name && !value.is_empty());
        matching.next().map(|(_, value)| value.as_str())
    }

    /// Every one of a name, with commas between them or given again.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let matching = self.0.iter().filter(|(key, _)| key == name);
        let parts = matching.flat_map(|(_, value)| value.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).collect()
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Answered<&str> {
        self.find(name)
            .ok_or_else(|| Failure::invalid(format!("The parameter {name} is required.")))
    }

    /// Yes or no.
    pub(crate) fn flag(&self, name: &str) -> Answered<bool> {
        match self.find(name) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(Failure::invalid(format!(
                "The parameter {name} must be true or false, not {text}."
            ))),
        }
    }

    /// A time in ISO 8601, in milliseconds; UTC if it does not say.
    pub(crate) fn moment(&self, name: &str) -> Answered<Option<u64>> {
        let Some(text) = self.find(name) else { return Ok(None) };
        // A plus that was not encoded has become a space.
        let text = text.trim().replace(' ', "+");
        let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).map(|at| at.timestamp());
        let at = text
            .parse::<Timestamp>()
            .or_else(|_| text.parse::<DateTime>().and_then(utc))
            .or_else(|_| text.parse::<Date>().and_then(|date| utc(date.at(0, 0, 0, 0))))
            .map_err(|_| {
                Failure::invalid(format!(
                    "The parameter {name} must be a time such as 2026-01-31T08:00:00Z."
                ))
            })?;
        Ok(Some(u64::try_from(at.as_millisecond()).unwrap_or(0)))
    }

    fn number(&self, name: &str, default: usize) -> Answered<usize> {
        let Some(text) = self.find(name) else { return Ok(default) };
        let wrong =
            |_| Failure::invalid(format!("The parameter {name} must be a number, not {text}."));
        text.trim().parse().map_err(wrong)
    }
}

/// Which part of a list, and how clients get to the others.
pub(crate) struct Page {
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    /// The address of the list with its other parameters.
    address: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answered<Page> {
        let params = Params::from_request_parts(parts, state).await?;
        let limit = params.number("limit", PAGE_ITEMS_DEFAULT)?;
        if !(1..=PAGE_ITEMS_MAX).contains(&limit) {
            let detail = format!("The parameter limit must be from 1 to {PAGE_ITEMS_MAX}.");
            return Err(Failure::invalid(detail));
        }
        let offset = params.number("offset", 0)?;
        let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
        let others = uri.query().unwrap_or_default().split('&').filter(|part| {
            let name = part.split('=').next().unwrap_or_default();
            !part.is_empty() && name != "limit" && name != "offset"
        });
        let others: String = others.map(|part| format!("{part}&")).collect();
        let address = format!("{}{}?{others}", origin(&parts.headers), uri.path());
        Ok(Page { limit, offset, address })
    }
}

impl Page {
    /// Its part of what was found, and whether more follows.
    pub(crate) fn part<T>(&self, found: Vec<T>) -> (Vec<T>, bool) {
        let more = found.len() > self.offset.saturating_add(self.limit);
        (found.into_iter().skip(self.offset).take(self.limit).collect(), more)
    }

    /// The address of another part.
    pub(crate) fn at(&self, offset: usize) -> String {
        format!("{}limit={}&offset={offset}", self.address, self.limit)
    }
}

/// Where the client thinks that this is.
fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    match text("x-forwarded-host").or_else(|| text("host")) {
        Some(host) => format!("{scheme}://{host}"),
        None => String::new(),
    }
}

/// A name that somebody gives.
pub(crate) fn checked_name(name: &str) -> Answered<String> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::invalid("The name must not be empty."));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Failure::invalid(format!(
            "The name is over the limit of {NAME_BYTES_MAX} bytes."
        )));
    }
    Ok(name.to_owned())
}
