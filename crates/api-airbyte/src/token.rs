//! Who asks: access tokens, and the tenant that each stands for. Without a list of clients everybody is
//! welcome and works in one tenant, with a token or without.

use axum::extract::rejection::FormRejection;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Form, Router};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Shown;
use crate::extract::{essence, parse_object, too_large, whole};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::limit::TOKEN_SECONDS;
use crate::{Client, Settings, TENANT_DEFAULT, start};

pub(crate) fn routes() -> Router<Face> {
    Router::new().route("/applications/token", post(give))
}

/// Whose documents and jobs a request is about.
pub(crate) struct Caller {
    pub(crate) tenant: String,
}

impl FromRequestParts<Face> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, face: &Face) -> Answered<Caller> {
        let settings = &face.settings;
        let tenant = if settings.clients.is_empty() {
            TENANT_DEFAULT
        } else {
            let now_ms = face.now_ms().await?;
            &client_of(settings, &parts.headers, now_ms)?.tenant
        };
        start::ready(face, tenant).await?;
        Ok(Caller { tenant: tenant.to_owned() })
    }
}

fn client_of<'s>(settings: &'s Settings, headers: &HeaderMap, now_ms: u64) -> Answered<&'s Client> {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, proof)) = given.and_then(|given| given.trim().split_once(' ')) else {
        return Err(Failure::unauthorized("An access token is required."));
    };
    let client = if scheme.eq_ignore_ascii_case("bearer") {
        by_token(settings, proof.trim(), now_ms)
    } else if scheme.eq_ignore_ascii_case("basic") {
        by_password(settings, proof.trim())
    } else {
        None
    };
    client.ok_or_else(|| Failure::unauthorized("The access token is not valid, or no longer."))
}

/// A token is `<client>.<end>.<proof>`, the first and the last in base64.
fn by_token<'s>(settings: &'s Settings, token: &str, now_ms: u64) -> Option<&'s Client> {
    let (said, proof) = token.rsplit_once('.')?;
    let (id, end) = said.split_once('.')?;
    let id = String::from_utf8(BASE64.decode(id).ok()?).ok()?;
    let client = settings.clients.iter().find(|client| client.id == id)?;
    let proof = BASE64.decode(proof).ok()?;
    if !settings.vault.has_signed(&signed(said, &client.secret), &proof) {
        return None;
    }
    let end: u64 = end.parse().ok()?;
    (end > now_ms / 1_000).then_some(client)
}

/// What a token's proof is of: its client's secret too, so that no token outlives the secret it was given for.
fn signed(said: &str, secret: &str) -> String {
    format!("{said}.{secret}")
}

fn by_password<'s>(settings: &'s Settings, text: &str) -> Option<&'s Client> {
    let pair = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    known(settings, id, secret)
}

fn known<'s>(settings: &'s Settings, id: &str, secret: &str) -> Option<&'s Client> {
    let client = settings.clients.iter().find(|client| client.id == id)?;
    settings.vault.same(&client.secret, secret).then_some(client)
}

fn token(settings: &Settings, id: &str, secret: &str, now_ms: u64) -> String {
    let end = now_ms / 1_000 + TOKEN_SECONDS;
    let said = format!("{}.{end}", BASE64.encode(id));
    let proof = BASE64.encode(settings.vault.sign(&signed(&said, secret)));
    format!("{said}.{proof}")
}

/// What asks for a token, in either kind of body.
#[derive(Deserialize)]
struct TokenRequest {
    #[serde(alias = "clientId")]
    client_id: Option<String>,
    #[serde(alias = "clientSecret")]
    client_secret: Option<String>,
    #[serde(alias = "grant-type", alias = "grantType")]
    grant_type: Option<String>,
}

/// The only kind of grant.
const GRANT: &str = "client_credentials";

fn unread(rejection: FormRejection) -> Failure {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        too_large()
    } else {
        Failure::invalid(rejection.body_text())
    }
}

async fn give(State(face): State<Face>, request: Request) -> Answered<Shown<Value>> {
    let is_form = essence(request.headers()) == "application/x-www-form-urlencoded";
    let asked: TokenRequest = if is_form {
        let Form(asked) = Form::from_request(request, &face).await.map_err(unread)?;
        asked
    } else {
        parse_object(&whole(request, &face).await?)?
    };
    if asked.grant_type.is_some_and(|grant| !grant.eq_ignore_ascii_case(GRANT)) {
        return Err(Failure::invalid(format!("The grant_type must be {GRANT}.")));
    }
    let (Some(id), Some(secret)) = (asked.client_id, asked.client_secret) else {
        return Err(Failure::invalid("client_id and client_secret are required."));
    };
    let settings = &face.settings;
    if !settings.clients.is_empty() && known(settings, &id, &secret).is_none() {
        return Err(Failure::unauthorized("No client has this id and secret."));
    }
    let token = token(settings, &id, &secret, face.now_ms().await?);
    Ok(Shown(json!({
        "access_token": token, "token_type": "Bearer", "expires_in": TOKEN_SECONDS,
    })))
}
