//! One request: resolve, check, connect, encrypt, ask, read; and again for a redirect.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::destination::{self, Network};
use super::{CALL_MAX, HttpError, REDIRECTS_MAX, RESPONSE_BYTES_MAX, Request, location};

/// Sends requests. It has no state but what it knows of certificates.
#[derive(Debug)]
pub struct Caller {
    denied: Vec<Network>,
    /// Read when the first request wants it: most never do.
    tls: OnceLock<Arc<ClientConfig>>,
}

/// A whole response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

impl Caller {
    /// Sends requests anywhere but into these networks.
    #[must_use]
    pub fn new(denied: Vec<Network>) -> Caller {
        Caller { denied, tls: OnceLock::new() }
    }

    pub(super) async fn call(&self, request: Request) -> Result<Answer, HttpError> {
        let authority = authority_of(&request.uri);
        match timeout(CALL_MAX, self.follow(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(late("finish", &authority, CALL_MAX)),
        }
    }

    async fn follow(&self, mut request: Request) -> Result<Answer, HttpError> {
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.once(&request).await?;
            let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
            let (true, Some(location)) = (is_redirect(answer.status), location) else {
                return Ok(answer);
            };
            let Some(uri) = location::joined(&request.uri, location) else { return Ok(answer) };
            redirect(&mut request, answer.status, uri);
        }
        Err(HttpError::Redirects)
    }

    async fn once(&self, request: &Request) -> Result<Answer, HttpError> {
        let authority = authority_of(&request.uri);
        let limit = request.connect_timeout;
        let stream = timeout(limit, self.connect(&request.uri, &authority))
            .await
            .map_err(|_| late("let us connect", &authority, limit))??;
        if request.uri.scheme_str() != Some("https") {
            return exchange(stream, request, &authority).await;
        }
        let failed = |source| failure("agree on encryption with", &authority, source);
        let host = host_of(&request.uri);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(error.into()))?;
        let tls = TlsConnector::from(self.tls()?);
        let stream = timeout(limit, tls.connect(name, stream))
            .await
            .map_err(|_| late("agree on encryption", &authority, limit))?
            .map_err(|error| failed(error.into()))?;
        exchange(stream, request, &authority).await
    }

    /// A connection to one of the addresses of a name: the first that is not denied and answers.
    async fn connect(&self, uri: &Uri, authority: &str) -> Result<TcpStream, HttpError> {
        let host = host_of(uri);
        let port =
            uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
        let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => lookup_host((host, port))
                .await
                .map_err(|error| failure("resolve", authority, error.into()))?
                .collect(),
        };
        let mut last = HttpError::Input(format!("{authority} has no address"));
        for address in addresses {
            // What is checked is what is connected to: a name may mean something else next time.
            if let Err(denied) = destination::check(address, &self.denied) {
                last = denied.into();
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = failure("connect to", authority, error.into()),
            }
        }
        Err(last)
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, HttpError> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let mut roots = RootCertStore::empty();
        // One that cannot be read is one less; without any, nobody is trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failure("prepare encryption with", "anybody", error.into()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::clone(self.tls.get_or_init(|| Arc::new(config))))
    }
}

async fn exchange<S>(stream: S, request: &Request, authority: &str) -> Result<Answer, HttpError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |source: hyper::Error| failure("ask", authority, source.into());
    let limit = request.read_timeout;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let exchange = async {
        let sending = sender.send_request(message(request, authority)?);
        let response = timeout(limit, sending)
            .await
            .map_err(|_| late("answer", authority, limit))?
            .map_err(failed)?;
        let (head, body) = response.into_parts();
        let body = read(body, authority, limit).await?;
        Ok(Answer { status: head.status, headers: head.headers, body })
    };
    // The connection lives as long as the exchange, and no longer.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = connection => exchange.await,
    }
}

fn message(request: &Request, authority: &str) -> Result<HttpRequest<Full<Bytes>>, HttpError> {
    let path = request.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let body = Full::new(Bytes::from(request.body.clone()));
    let failed = |source: Failed| failure("ask", authority, source);
    let mut message = HttpRequest::builder()
        .method(&request.method)
        .uri(path)
        .body(body)
        .map_err(|error| failed(error.into()))?;
    *message.headers_mut() = request.headers.clone();
    let host = HeaderValue::from_str(authority).map_err(|error| failed(error.into()))?;
    message.headers_mut().insert(HOST, host);
    Ok(message)
}

async fn read(mut body: Incoming, authority: &str, limit: Duration) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    loop {
        let frame = timeout(limit, body.frame())
            .await
            .map_err(|_| late("go on with its answer", authority, limit))?;
        let Some(frame) = frame else { return Ok(bytes) };
        let frame = frame.map_err(|error| failure("read from", authority, error.into()))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > RESPONSE_BYTES_MAX {
                return Err(HttpError::TooLarge);
            }
            bytes.extend_from_slice(&data);
        }
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// What is asked next.
fn redirect(request: &mut Request, status: StatusCode, uri: Uri) {
    let keeps = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !keeps && request.method != Method::GET && request.method != Method::HEAD {
        request.method = Method::GET;
        request.body = Vec::new();
        request.headers.remove(CONTENT_TYPE);
        request.headers.remove(CONTENT_LENGTH);
    }
    // Who one is, is for the one that was named.
    let elsewhere =
        uri.authority() != request.uri.authority() || uri.scheme() != request.uri.scheme();
    if elsewhere {
        request.headers.remove(AUTHORIZATION);
        request.headers.remove(COOKIE);
    }
    request.uri = uri;
}

/// Host and port, without a name and a password before them.
fn authority_of(uri: &Uri) -> String {
    let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_owned()
}

/// Without the brackets of an address.
fn host_of(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn failure(step: &'static str, authority: &str, source: Failed) -> HttpError {
    HttpError::Failed { step, authority: authority.to_owned(), source }
}

fn late(step: &'static str, authority: &str, limit: Duration) -> HttpError {
    HttpError::Timeout { step, authority: authority.to_owned(), limit_ms: limit.as_millis() }
}
