//! The child: reads evaluations from standard input until it ends, answers on standard output.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::frame::{Answer, HEAD_BYTES, head, read_head};
use super::{MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX, RESULT_BYTES_MAX, javascript, jq};

/// Addresses a child may use. Engines have bounds of their own below; jq has this one only.
const ADDRESS_SPACE_BYTES_MAX: u64 = 1 << 30;

/// When the pool did not kill a child that is over its limit, it ends by itself. Then the pool is
/// gone.
const OVERTIME: Duration = Duration::from_secs(2);

/// Files and sockets: the three it was given, and some that a system's library may open.
const OPEN_FILES_MAX: u64 = 16;

/// An evaluation, as it comes with a job.
#[derive(Deserialize)]
pub(super) struct Request<'r> {
    language: Language,
    #[serde(default)]
    pub(super) form: Form,
    pub(super) script: String,
    #[serde(borrow, default)]
    pub(super) bindings: BTreeMap<String, &'r RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    JavaScript,
    Jq,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// Worth its last statement.
    #[default]
    Expression,
    /// The body of a function, worth what it returns.
    Function,
}

/// Evaluates what comes in on standard input, until that ends. This is a whole program.
pub fn serve() -> ExitCode {
    if let Err(error) = confine() {
        eprintln!("failed to confine the sandbox: {error}");
        return ExitCode::FAILURE;
    }
    let watchdog = watchdog();
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    loop {
        let mut first = [0; HEAD_BYTES];
        // The end of the input is the end of the pool.
        if input.read_exact(&mut first).is_err() {
            return ExitCode::SUCCESS;
        }
        let (limit_ms, length) = read_head(first);
        let mut request = Vec::new();
        let read =
            input.by_ref().take(u64::try_from(length).unwrap_or(0)).read_to_end(&mut request);
        if read.is_err() || request.len() != length || length > REQUEST_BYTES_MAX {
            return ExitCode::FAILURE;
        }
        let limit = Duration::from_millis(limit_ms.into());
        // Without a watchdog the pool still is one.
        let _ = watchdog.send(Some(limit));
        let answer = bounded(evaluate(&request, limit));
        let _ = watchdog.send(None);
        let (kind, text) = answer.parts();
        let head = head(kind.number(), text.len());
        let written = output.write_all(&head).and_then(|()| output.write_all(text.as_bytes()));
        if written.and_then(|()| output.flush()).is_err() {
            return ExitCode::FAILURE;
        }
    }
}

/// Gives up what an evaluation has no use for.
fn confine() -> rustix::io::Result<()> {
    let limits = [
        (Resource::As, ADDRESS_SPACE_BYTES_MAX),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, OPEN_FILES_MAX),
    ];
    limits.into_iter().try_for_each(|(resource, limit)| {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
    })
}

/// A thread that ends the process when an evaluation takes too long. It is told of each beginning
/// with its limit, and of each end.
fn watchdog() -> Sender<Option<Duration>> {
    /// It calls nothing that is deep.
    const STACK_BYTES: usize = 64 << 10;
    let (sender, receiver) = mpsc::channel::<Option<Duration>>();
    let watch = move || {
        while let Ok(word) = receiver.recv() {
            let Some(limit) = word else { continue };
            if receiver.recv_timeout(limit + OVERTIME) == Err(RecvTimeoutError::Timeout) {
                std::process::exit(1);
            }
        }
    };
    if let Err(error) = thread::Builder::new().stack_size(STACK_BYTES).spawn(watch) {
        eprintln!("failed to start the watchdog: {error}");
    }
    sender
}

fn evaluate(request: &[u8], limit: Duration) -> Answer {
    let request: Request<'_> = match serde_json::from_slice(request) {
        Ok(request) => request,
        Err(error) => return Answer::Script(format!("this is no evaluation: {error}")),
    };
    match request.language {
        Language::JavaScript => javascript::evaluate(&request, limit),
        Language::Jq => jq::evaluate(&request),
    }
}

fn bounded(answer: Answer) -> Answer {
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        text
    };
    match answer {
        Answer::Value(text) if text.len() > RESULT_BYTES_MAX => Answer::Limit(too_large()),
        Answer::Value(text) => Answer::Value(text),
        Answer::Script(text) => Answer::Script(cut(text)),
        Answer::Limit(text) => Answer::Limit(cut(text)),
    }
}

pub(super) fn too_large() -> String {
    format!("the result is larger than {} MiB", RESULT_BYTES_MAX >> 20)
}
