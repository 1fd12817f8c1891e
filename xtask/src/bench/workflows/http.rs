//! HTTP/1.1 on connections that stay open, as the SDKs of Conductor speak it: no more of it than
//! the two servers use.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::bench::failure::{Context, Failure, Result};

/// A request that is not answered by then has failed.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// A connection that was idle for this long is not used again: servers close theirs after 20 s.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Lines of an answer's head.
const HEAD_LINES_MAX: usize = 100;
/// Bytes of an answer's body.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A connection, opened anew when the server says that it closes it.
pub(super) struct Connection {
    address: String,
    stream: BufReader<TcpStream>,
    is_closed: bool,
    used: Instant,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The body of an answer that says that all is well.
    pub(super) fn expected(self, what: &str) -> Result<Vec<u8>> {
        if self.status == 200 {
            return Ok(self.body);
        }
        let body = String::from_utf8_lossy(&self.body);
        Err(Failure::new(format!("failed to {what}: status {}: {body}", self.status)))
    }
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Self> {
        let stream = connect(address).await.context("connect")?;
        let address = address.to_owned();
        Ok(Self { address, stream, is_closed: false, used: Instant::now() })
    }

    /// One request; `path` begins with a slash.
    pub(super) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let asked = tokio::time::timeout(ANSWER_MAX, self.exchange(method, path, body)).await;
        asked.context(format!("{method} {path}"))?.context(format!("{method} {path}"))
    }

    async fn exchange(&mut self, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
        if self.is_closed || self.used.elapsed() > IDLE_MAX {
            self.stream = connect(&self.address).await?;
            self.is_closed = false;
        }
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let line = self.line().await?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or_else(|| strange(&line))?;
        let (mut length, mut is_chunked) = (0, false);
        for _ in 0..HEAD_LINES_MAX {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| strange(&line))?;
            }
            if name.eq_ignore_ascii_case("connection") {
                self.is_closed = value.trim().eq_ignore_ascii_case("close");
            }
            if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.trim().eq_ignore_ascii_case("chunked");
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let line = self.line().await?;
                let size = usize::from_str_radix(&line, 16).map_err(|_| strange(&line))?;
                self.append(&mut body, size).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.append(&mut body, length).await?;
        }
        self.used = Instant::now();
        Ok(Answer { status, body })
    }

    async fn append(&mut self, body: &mut Vec<u8>, size: usize) -> std::io::Result<()> {
        let begin = body.len();
        if begin + size > BODY_BYTES_MAX {
            return Err(strange("a body that is too large"));
        }
        body.resize(begin + size, 0);
        self.stream.read_exact(&mut body[begin..]).await.map(drop)
    }

    /// A line without its end.
    async fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

async fn connect(address: &str) -> std::io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::with_capacity(64 << 10, stream))
}

fn strange(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, format!("not an answer: {what}"))
}
