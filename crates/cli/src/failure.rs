//! How a command says that it did not work: what happened, what to do next, and an exit code.

use std::io;
use std::process::ExitCode;

use serde_json::json;
use windlass_worker::{Error, MetBound, Refusal, RefusalKind};

/// The exit codes, as `windlass --help` lists them. 2 is clap's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Whoever read our output has seen enough: no failure.
    OutputClosed = 0,
    Failed = 1,
    Unreachable = 3,
    NotFound = 4,
    Damaged = 5,
    /// The server stopped by itself, see `ServeError::Stopped`.
    Stopped = 6,
}

impl Exit {
    /// The name of a failure that has no other.
    fn code(self) -> &'static str {
        match self {
            Exit::OutputClosed => "output-closed",
            Exit::Failed => "failed",
            Exit::Unreachable => "unreachable",
            Exit::NotFound => "not-found",
            Exit::Damaged => "damaged",
            Exit::Stopped => "stopped",
        }
    }
}

/// See [`Failure::unknown_call`] and [`Failure::history_off`].
const UNKNOWN_CALL: &str = "unknown-call";
const HISTORY_OFF: &str = "history-off";

/// A command did not work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    /// The refusal's stable name.
    code: String,
    hint: Option<String>,
    /// The limit of the server that was met.
    bound: Option<Box<MetBound>>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let (code, hint, bound) = (String::new(), None, None);
        Self { exit: Exit::Failed, message: message.into(), code, hint, bound }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self { exit: Exit::Damaged, ..Self::new(message) }
    }

    /// Damage, with everything that caused it.
    pub(crate) fn damaged_by(error: &dyn std::error::Error) -> Self {
        Self { exit: Exit::Damaged, ..Self::caused(error) }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { exit: Exit::NotFound, ..Self::new(message) }
    }

    pub(crate) fn unreachable(error: &dyn std::error::Error) -> Self {
        Self { exit: Exit::Unreachable, ..Self::caused(error) }
    }

    /// The server is of a version that does not know what it was asked.
    pub(crate) fn unknown_call(message: impl Into<String>) -> Self {
        let failure = Self { code: UNKNOWN_CALL.to_owned(), ..Self::new(message) };
        failure.hint("the server does not know this call: compare `windlass status`")
    }

    /// The server keeps nothing that could be searched.
    pub(crate) fn history_off(message: impl Into<String>) -> Self {
        let failure = Self { code: HISTORY_OFF.to_owned(), ..Self::new(message) };
        failure.hint("a server that was started with `--history on` can be searched")
    }

    /// One of the two.
    pub(crate) fn cannot_search(&self) -> bool {
        self.is_unknown_call() || self.code == HISTORY_OFF
    }

    pub(crate) fn is_unknown_call(&self) -> bool {
        self.code == UNKNOWN_CALL
    }

    /// The engine ended by itself, with everything that caused it.
    pub(crate) fn stopped(error: &dyn std::error::Error) -> Self {
        Self { exit: Exit::Stopped, ..Self::caused(error) }
    }

    /// `what` completes "failed to …".
    pub(crate) fn io(what: impl std::fmt::Display, error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::OutputClosed, ..Self::new("the output was closed") };
        }
        Self::new(format!("failed to {what}: {error}"))
    }

    /// With everything that caused it.
    pub(crate) fn caused(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(message)
    }

    /// Says what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }

    /// Says what to do next if the server was reached and said no.
    pub(crate) fn hint_if_refused(self, hint: impl Into<String>) -> Self {
        match self.exit {
            Exit::Failed | Exit::NotFound => self.hint(hint),
            Exit::OutputClosed | Exit::Unreachable | Exit::Damaged | Exit::Stopped => self,
        }
    }

    /// Names the server that was asked.
    pub(crate) fn at(self, address: &str) -> Self {
        match self.exit {
            Exit::Unreachable => self.hint(format!(
                "no server answers at {address}; start one with `windlass serve`, or name another \
                 with --server or WINDLASS_SERVER"
            )),
            Exit::OutputClosed | Exit::Failed | Exit::NotFound | Exit::Damaged | Exit::Stopped => {
                self
            }
        }
    }

    pub(crate) fn report(self, json: bool) -> ExitCode {
        if self.exit != Exit::OutputClosed {
            if json {
                let Self { message, hint, .. } = &self;
                let code = if self.code.is_empty() { self.exit.code() } else { &self.code };
                let mut error = json!({ "message": message, "code": code, "hint": hint });
                if let Some(bound) = &self.bound {
                    error["bound"] = json!(bound.name);
                    error["max"] = json!(bound.max);
                    error["setting"] = json!(bound.setting);
                }
                eprintln!("{}", json!({ "error": error }));
            } else {
                eprintln!("error: {}", self.message);
                if let Some(hint) = &self.hint {
                    eprintln!("hint: {hint}");
                }
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Unreachable { .. } => {
                Self { exit: Exit::Unreachable, ..Self::new(error.to_string()) }
            }
            Error::Refused(refusal) => refused(refusal),
            Error::Address { .. }
            | Error::Protocol(_)
            | Error::Json(_)
            | Error::Stopped
            | Error::Invalid(_) => Self::caused(&error),
        }
    }
}

fn refused(refusal: &Refusal) -> Failure {
    let exit = match refusal.kind {
        RefusalKind::NotFound => Exit::NotFound,
        RefusalKind::InvalidArgument
        | RefusalKind::AlreadyExists
        | RefusalKind::FailedPrecondition
        | RefusalKind::ResourceExhausted
        | RefusalKind::Unavailable
        | RefusalKind::Denied
        | RefusalKind::Unimplemented
        | RefusalKind::Internal => Exit::Failed,
    };
    let hint = match (refusal.kind, refusal.holder) {
        (_, Some(holder)) => Some(format!("job {holder} holds it: `windlass job get {holder}`")),
        (_, None) if refusal.bound.is_some() => refusal.bound.as_deref().map(of_bound),
        (RefusalKind::Unimplemented, None) => {
            Some("the server is of another version: compare `windlass status`".to_owned())
        }
        (_, None) => None,
    };
    let (message, code) = (refusal.to_string(), refusal.code.clone());
    Failure { exit, message, code, hint, bound: refusal.bound.clone() }
}

/// Where a limit comes from.
fn of_bound(bound: &MetBound) -> String {
    let MetBound { name, max, setting } = bound;
    match setting {
        _ if name == "log-space" => "the disk of the server's data directory is full".to_owned(),
        Some(setting) => {
            let flag = setting.replace('_', "-");
            format!("the limit {name} follows `windlass serve --{flag}`")
        }
        None => format!("the limit {name} is fixed at {max}"),
    }
}
