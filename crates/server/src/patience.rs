//! How long a silent peer is waited for, where the protocol has no word on it: a connection that says
//! nothing, and a body that does not go on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::trace::is_grpc;

/// How long a connection may say nothing at first.
pub(crate) const FIRST_WORD_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a body may pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What a client that speaks HTTP/2 says first. A part of it is no word yet: of what comes after it, HTTP/1
/// and HTTP/2 take care themselves.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that must say something soon, or reading it fails.
pub(crate) struct Expectant<S> {
    stream: S,
    /// What is still to come of the preface, as long as nothing else has come.
    preface: &'static [u8],
    /// Until the first word.
    silence: Option<Pin<Box<Sleep>>>,
}

impl<S> Expectant<S> {
    pub(crate) fn new(stream: S, at_most: Duration) -> Expectant<S> {
        Expectant { stream, preface: PREFACE, silence: Some(Box::pin(sleep(at_most))) }
    }
}

impl<S> Expectant<S> {
    fn heard(&mut self, words: &[u8]) {
        match self.preface.strip_prefix(words) {
            Some(rest) if !rest.is_empty() && !words.is_empty() => self.preface = rest,
            _ => self.silence = None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Expectant<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, into) {
            if self.silence.is_some() {
                self.heard(into.filled().get(before..).unwrap_or_default());
            }
            return Poll::Ready(read);
        }
        match &mut self.silence {
            Some(silence) => silence.as_mut().poll(cx).map(|()| Err(late())),
            None => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Expectant<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Runs a request whose body must go on. Those of gRPC may be silent for hours: a worker's stream
/// speaks when it has something to say, and HTTP/2 asks for signs of life.
pub(crate) async fn bound_body(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() || is_grpc(request.headers()) {
        return next.run(request).await;
    }
    next.run(request.map(|body| Body::new(Urged::new(body, PAUSE_MAX)))).await
}

/// A body that fails when it pauses for too long.
struct Urged {
    body: Body,
    pause: Pin<Box<Sleep>>,
    at_most: Duration,
}

impl Urged {
    fn new(body: Body, at_most: Duration) -> Urged {
        Urged { body, pause: Box::pin(sleep(at_most)), at_most }
    }
}

impl HttpBody for Urged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            let until = Instant::now() + self.at_most;
            self.pause.as_mut().reset(until);
            return Poll::Ready(frame);
        }
        self.pause.as_mut().poll(cx).map(|()| Some(Err(axum::Error::new(late()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "nothing came for too long")
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_connection_that_says_nothing_is_left() {
        let (near, mut far) = duplex(64);
        let mut silent = Expectant::new(near, SHORT);
        let error = silent.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        let (near, _open) = (silent.stream, far.write_u8(1).await.unwrap());
        let mut spoke = Expectant::new(near, SHORT);
        assert_eq!(spoke.read_u8().await.unwrap(), 1);
        let later = tokio::time::timeout(3 * SHORT, spoke.read_u8()).await;
        assert!(later.is_err(), "whoever spoke may be silent");
    }

    /// In pieces or at once; what begins like it and is HTTP/1 counts from where it differs.
    #[tokio::test]
    async fn a_part_of_a_preface_is_no_word() {
        for (words, may_be_silent) in [
            (&[&PREFACE[..23]][..], false),
            (&[b"PRI", b" * HTTP"], false),
            (&[PREFACE], true),
            (&[&PREFACE[..9], &PREFACE[9..]], true),
            (&[b"P", b"OST"], true),
            (&[b"GET"], true),
        ] {
            let (near, mut far) = duplex(64);
            let mut spoke = Expectant::new(near, SHORT);
            for word in words {
                far.write_all(word).await.unwrap();
                spoke.read_exact(&mut vec![0; word.len()]).await.unwrap();
            }
            let later = tokio::time::timeout(4 * SHORT, spoke.read_u8()).await;
            assert_eq!(later.is_err(), may_be_silent, "{words:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_pauses_for_too_long_fails() {
        let frames = tokio_stream::StreamExt::chain(
            tokio_stream::once(Ok::<_, io::Error>(Bytes::from_static(b"{"))),
            tokio_stream::pending(),
        );
        let error = Urged::new(Body::from_stream(frames), SHORT).collect().await.unwrap_err();
        assert!(error.to_string().contains("nothing came"), "{error}");

        let whole = Urged::new(Body::from("{}"), SHORT).collect().await.unwrap();
        assert_eq!(whole.to_bytes(), "{}");
    }
}
