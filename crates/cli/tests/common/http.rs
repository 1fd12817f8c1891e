//! Requests on one connection that stays open, as an SDK's worker makes them.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than a server that lives may take for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn expect_status(&self, status: u16) -> &Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A client of what stands under `/api`.
pub(crate) struct Http {
    address: String,
    /// Who asks, as the head of a request says it.
    authorization: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Http {
    pub(crate) fn new(address: &str) -> Http {
        Http { address: address.to_owned(), authorization: String::new(), stream: None }
    }

    /// The same, for somebody who has a token.
    pub(crate) fn with_token(self, token: &str) -> Http {
        Http { authorization: format!("authorization: Bearer {token}\r\n"), ..self }
    }

    /// One request; an error when the server is gone before the whole answer is here.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let answer = self.try_ask(method, path, body);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    /// The same until there is an answer, and when the request that has it was sent.
    pub(crate) fn insist(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        patience: Duration,
    ) -> (Instant, Answer) {
        let began = Instant::now();
        loop {
            let sent = Instant::now();
            match self.ask(method, path, body) {
                // Refused for load, or not ready yet.
                Ok(answer) if ![429, 503].contains(&answer.status) => return (sent, answer),
                Ok(_) | Err(_) => {
                    assert!(began.elapsed() < patience, "no answer to {method} {path}");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    fn try_ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_MAX))?;
                self.stream.insert(BufReader::new(stream))
            }
        };
        let request = format!(
            "{method} /api{path} HTTP/1.1\r\nhost: windlass\r\ncontent-type: application/json\r\n\
             {}content-length: {}\r\n\r\n{body}",
            self.authorization,
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let strange = || Error::new(ErrorKind::InvalidData, "not an answer");
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status = status.ok_or_else(strange)?;
        let mut length = 0;
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err(strange());
            }
            let Some((name, value)) = line.split_once(':') else { break };
            assert!(!name.eq_ignore_ascii_case("transfer-encoding"), "{line}");
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| strange())?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }
}
