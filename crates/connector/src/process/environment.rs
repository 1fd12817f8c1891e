//! What a connector sees of our environment: little, and none of our secrets.

use std::ffi::OsString;

use crate::process::Side;

/// Names the attempt in every process of it; how they are found again.
pub const ATTEMPT: &str = "WINDLASS_ATTEMPT";
/// Names the side, beside it.
pub const SIDE: &str = "WINDLASS_SIDE";

/// What is handed on where it is set.
const HANDED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "JAVA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
];

/// The ways out of this network, which a container is told too.
pub(crate) const PROXIES: &[&str] =
    &["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/// What connectors expect of whoever runs them.
const FIXED: &[(&str, &str)] = &[
    ("DEPLOYMENT_MODE", "OSS"),
    ("USE_STREAM_CAPABLE_STATE", "true"),
    ("WORKER_ENVIRONMENT", "docker"),
    ("LOG_LEVEL", "INFO"),
    // Text of Python programs is UTF-8 whatever the machine is set to.
    ("PYTHONUTF8", "1"),
];

/// What is handed on, where it is set.
pub(crate) fn handed_on() -> impl Iterator<Item = (OsString, OsString)> {
    let set = |name: &&str| std::env::var_os(name).map(|value| (OsString::from(name), value));
    HANDED_ON.iter().chain(PROXIES).filter_map(set)
}

/// What connectors expect, wherever they run.
pub(crate) fn expected(side: Side) -> impl Iterator<Item = (String, String)> {
    // What a destination says is little, and mostly states: they are to be heard at once. A source is left to
    // gather its records.
    let unbuffered = (side == Side::Destination).then_some(("PYTHONUNBUFFERED", "1"));
    let all = FIXED.iter().copied().chain(unbuffered);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// The whole environment of a connector; `extra` wins, the marks of the attempt win over it.
#[must_use]
pub fn of(attempt: &str, side: Side, extra: &[(String, String)]) -> Vec<(OsString, OsString)> {
    let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let mut all: Vec<(OsString, OsString)> = handed_on().collect();
    all.extend(expected(side).map(|(name, value)| pair(&name, &value)));
    all.extend(extra.iter().map(|(name, value)| pair(name, value)));
    all.push(pair(ATTEMPT, attempt));
    all.push(pair(SIDE, side.name()));
    all
}
