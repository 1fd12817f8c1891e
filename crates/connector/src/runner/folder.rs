//! The folder of an attempt: what is true about it whoever dies.
//!
//! Every file is there whole or not at all, and durable before anybody relies on it. Whether the runner
//! lives is a lock that it holds, not a number of a process, which another may have by now.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::durable;
use crate::journal::Commit;
use crate::process::{Side, lock, sweep};
use crate::protocol::message::Descriptor;
use crate::summary::Summary;

/// Where the files of connectors are.
const WORK: &str = "work";

/// What an attempt is: written before its runner starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Where the server is.
    pub endpoint: String,
    /// Whose it is.
    pub tenant: String,
    /// Of which kind: the queue it came from.
    pub queue: String,
    /// The job.
    pub job: u64,
    /// The number of its activation.
    pub activation: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The job's payload.
    pub payload: Value,
    /// Where connectors, locks and attempts are.
    pub data: PathBuf,
    /// What that place is called, so that no two servers of a machine have attempts of one name: processes and
    /// containers are found by it.
    #[serde(default)]
    pub place: String,
    /// How long the lease is, from each heartbeat (ms).
    pub lease_ms: u64,
    /// Between two heartbeats (ms).
    pub heartbeat_ms: u64,
    /// How long the server may be away before the attempt ends (ms). Shorter than the lease by more than
    /// it takes to kill.
    pub stop_after_ms: u64,
    /// Memory of each connector (bytes).
    pub memory_bytes_max: Option<u64>,
    /// How long a source may be silent (s).
    pub source_silence_s: u64,
    /// How long a destination may take nothing (s).
    pub destination_silence_s: u64,
    /// How long connectors have to end by themselves (s).
    pub exit_grace_s: u64,
    /// How long it may take until connectors can be started (s); 0 for no bound.
    #[serde(default)]
    pub claimed_s: u64,
    /// How long it may take from there to their first word (s); 0 for no bound.
    #[serde(default)]
    pub launched_s: u64,
}

impl Spec {
    /// What the attempt is called: no other one is.
    #[must_use]
    pub fn name(&self) -> String {
        // Jobs have the same keys in every server, connections do not.
        let place = if self.is_question() && !self.place.is_empty() { &*self.place } else { "" };
        let dot = if place.is_empty() { "" } else { "." };
        format!("{}{dot}{place}.{}", self.subject(), self.short_name())
    }

    /// What the state of the connection calls it.
    #[must_use]
    pub fn short_name(&self) -> String {
        format!("{}-{}", self.job, self.attempt)
    }

    /// What it is about: the connection of a sync, else the job.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.connection().unwrap_or("question")
    }

    fn is_question(&self) -> bool {
        self.connection().is_none()
    }

    fn connection(&self) -> Option<&str> {
        let connection = self.payload.get("connectionId").and_then(Value::as_str);
        connection.filter(|id| is_id(id))
    }

    /// A text of the payload.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.payload.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A short name of a data directory, whatever it is called by.
#[must_use]
pub fn place(data: &Path) -> String {
    let path = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    // FNV-1a: the same in every version of this program.
    let mixed =
        path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{mixed:016x}")
}

/// Whether an id can be a part of the name of a file.
fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 100
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Where an attempt is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Marker {
    /// The job was taken.
    NotStarted,
    /// The runner is there.
    Initializing,
    /// Connectors run.
    Running,
    /// It ended well.
    Success,
    /// It ended otherwise.
    Failure,
}

const MARKERS: [(Marker, &str); 5] = [
    (Marker::NotStarted, "NOT_STARTED"),
    (Marker::Initializing, "INITIALIZING"),
    (Marker::Running, "RUNNING"),
    (Marker::Success, "SUCCESS"),
    (Marker::Failure, "FAILURE"),
];

impl Marker {
    /// As it stands in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        MARKERS.iter().find(|(marker, _)| *marker == self).map_or("", |(_, name)| name)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Marker::Success | Marker::Failure)
    }

    fn may_become(self, next: Marker) -> bool {
        match next {
            Marker::NotStarted => false,
            Marker::Initializing | Marker::Running | Marker::Success => {
                !self.is_final() && self < next
            }
            Marker::Failure => !self.is_final(),
        }
    }
}

/// What was acknowledged, with all that a commit at the server needs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spooled {
    /// Grows over all attempts of the connection.
    pub sequence: u64,
    /// The state and the counts.
    pub commit: Commit,
    /// The generation of each stream, and the smallest that the destination keeps.
    pub generations: Vec<(Descriptor, u64, u64)>,
    /// Whose state was there when the attempt began.
    pub before: String,
    /// When that was (ms since 1970).
    pub started_ms: u64,
}

/// The folder of one attempt.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes one, with the marker `NOT_STARTED`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(spec: &Spec) -> io::Result<Folder> {
        let path = Folder::root(&spec.data).join(spec.name());
        // A job that was put back comes with the same number again.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let folder = Folder { path };
        folder.put("spec.json", spec)?;
        folder.write("marker", Marker::NotStarted.name().as_bytes())?;
        Ok(folder)
    }

    /// Where all of them are.
    #[must_use]
    pub fn root(data: &Path) -> PathBuf {
        data.join("attempts")
    }

    /// One that is there.
    ///
    /// # Errors
    /// If it is not the folder of an attempt.
    pub fn open(path: &Path) -> io::Result<(Folder, Spec)> {
        let folder = Folder { path: path.to_owned() };
        let spec = folder.get("spec.json")?;
        let spec = spec.ok_or_else(|| io::Error::other("the attempt has no spec.json"))?;
        Ok((folder, spec))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its log is.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Where connectors find their files.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn work(&self) -> io::Result<PathBuf> {
        let work = self.path.join(WORK);
        fs::create_dir_all(&work)?;
        Ok(work)
    }

    /// Ends everything that the attempt has left, by its name. Says whether all is gone.
    #[must_use]
    pub fn sweep(&self, attempt: &str, patience: Duration) -> bool {
        sweep::sweep_all(&self.path.join(WORK), attempt, patience)
    }

    /// Says that the runner lives, for as long as the file is open; `None` if another one does.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn live(&self) -> io::Result<Option<File>> {
        lock::try_hold(&self.path.join("runner.lock"))
    }

    /// Whether a runner lives. Where nobody can tell, it does: what is taken for dead is killed.
    #[must_use]
    pub fn lives(&self) -> bool {
        match self.live() {
            Ok(lock) => lock.is_none(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Where it is in its life.
    ///
    /// # Errors
    /// If the marker cannot be read.
    pub fn marker(&self) -> io::Result<Marker> {
        let text = fs::read_to_string(self.path.join("marker"))?;
        let marker = MARKERS.iter().find(|(_, name)| *name == text.trim());
        marker.map(|(marker, _)| *marker).ok_or_else(|| io::Error::other("the marker is strange"))
    }

    /// Goes on in its life.
    ///
    /// # Errors
    /// If it cannot go there from where it is, or be written.
    pub fn mark(&self, next: Marker) -> io::Result<()> {
        let now = self.marker()?;
        if !now.may_become(next) {
            let (now, next) = (now.name(), next.name());
            return Err(io::Error::other(format!("an attempt that is {now} cannot become {next}")));
        }
        self.write("marker", next.name().as_bytes())
    }

    /// Keeps what was acknowledged. The last one stands for all before.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn spool(&self, spooled: &Spooled) -> io::Result<()> {
        self.put("commit.json", spooled)
    }

    /// What was acknowledged last.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn spooled(&self) -> io::Result<Option<Spooled>> {
        self.get("commit.json")
    }

    /// What was acknowledged is at the server, or of no use there any more.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget_spooled(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join("commit.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Keeps a new configuration, sealed.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn spool_configuration(&self, side: Side, configuration: &Value) -> io::Result<()> {
        self.put(&format!("{}.json", side.name()), configuration)
    }

    /// A configuration is at the server: it is not to be sent again.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget_configuration(&self, side: Side, configuration: &Value) -> io::Result<()> {
        if self.configuration(side)?.as_ref() == Some(configuration) {
            fs::remove_file(self.path.join(format!("{}.json", side.name())))?;
        }
        Ok(())
    }

    /// The newest configuration of a connector that is not at the server yet.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn configuration(&self, side: Side) -> io::Result<Option<Value>> {
        self.get(&format!("{}.json", side.name()))
    }

    /// Keeps what came of it, and then the marker.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn conclude(&self, outcome: &Outcome) -> io::Result<()> {
        self.put("summary.json", outcome)?;
        self.mark(if outcome.succeeded { Marker::Success } else { Marker::Failure })
    }

    /// What came of it.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn outcome(&self) -> io::Result<Option<Outcome>> {
        self.get("summary.json")
    }

    /// The server knows.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn set_reported(&self) -> io::Result<()> {
        self.write("reported", b"")
    }

    /// Whether the server knows.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.path.join("reported").exists()
    }

    fn put(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.write(name, &serde_json::to_vec(value)?)
    }

    fn get<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        durable::write(&self.path.join(name), bytes)
    }
}

impl Outcome {
    /// With no secret in what it says. Names of streams are what they are: they are looked up by others.
    #[must_use]
    pub fn masked(mut self, secrets: &[String]) -> Outcome {
        self.message = masked(&self.message, secrets);
        mask(&mut self.result, secrets);
        for failure in self.summary.iter_mut().flat_map(|summary| &mut summary.failures) {
            failure.external_message = masked(&failure.external_message, secrets);
            let more = [&mut failure.internal_message, &mut failure.stacktrace];
            for text in more.into_iter().flatten() {
                *text = masked(text, secrets);
            }
        }
        self
    }
}

/// Texts alone: a secret may be called as a field is, or be a number.
fn mask(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => *text = masked(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What stands where a secret was.
const MASK: &str = "**********";

/// Shorter texts stand in too many places that are none of theirs.
fn is_maskable(secret: &str) -> bool {
    secret.len() >= 6
}

/// A text without secrets.
pub(crate) fn masked(text: &str, secrets: &[String]) -> String {
    let is_in = |secret: &&String| is_maskable(secret) && text.contains(secret.as_str());
    let mut secrets: Vec<&String> = secrets.iter().filter(is_in).collect();
    // One may begin with another.
    secrets.sort_by_key(|secret| Reverse(secret.len()));
    let mask = |text: String, secret: &String| text.replace(secret.as_str(), MASK);
    secrets.into_iter().fold(text.to_owned(), mask)
}

/// What came of an attempt or a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Whether the job is done.
    pub succeeded: bool,
    /// Whether somebody cancelled it.
    pub cancelled: bool,
    /// Of an attempt.
    pub summary: Option<Summary>,
    /// What the job's result is.
    pub result: Value,
    /// Why not, for people.
    pub message: String,
    /// Whether another attempt cannot help.
    pub permanent: bool,
    /// What else was found: the specification, or the catalog.
    pub found: Option<Found>,
}

/// What a connector showed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Its message.
    pub value: Value,
    /// The version of the document that it was configured by.
    pub version: u64,
    /// When (ms since 1970).
    pub at_ms: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::{Failure, FailureType, Origin};

    pub(crate) fn spec(data: &Path) -> Spec {
        Spec {
            endpoint: String::new(),
            tenant: "default".to_owned(),
            queue: super::super::SYNC_QUEUE.to_owned(),
            job: 7,
            activation: 1,
            attempt: 2,
            payload: json!({ "connectionId": "c-1" }),
            data: data.to_owned(),
            place: String::new(),
            lease_ms: 1,
            heartbeat_ms: 1,
            stop_after_ms: 1,
            memory_bytes_max: None,
            source_silence_s: 1,
            destination_silence_s: 1,
            exit_grace_s: 1,
            claimed_s: 1,
            launched_s: 1,
        }
    }

    #[test]
    fn a_life_goes_forward_and_ends_once() {
        let data = tempfile::tempdir().unwrap();
        let folder = Folder::create(&spec(data.path())).unwrap();
        assert!(folder.path().ends_with("attempts/c-1.7-2"));
        assert_eq!(folder.marker().unwrap(), Marker::NotStarted);
        folder.mark(Marker::Initializing).unwrap();
        folder.mark(Marker::Running).unwrap();
        assert!(folder.mark(Marker::Initializing).is_err());
        folder.mark(Marker::Success).unwrap();
        let refused = folder.mark(Marker::Failure).unwrap_err().to_string();
        assert_eq!(refused, "an attempt that is SUCCESS cannot become FAILURE");
        let (again, read) = Folder::open(folder.path()).unwrap();
        assert_eq!((again.marker().unwrap(), read.job), (Marker::Success, 7));
    }

    #[test]
    fn a_runner_lives_as_long_as_its_lock() {
        let data = tempfile::tempdir().unwrap();
        let folder = Folder::create(&spec(data.path())).unwrap();
        let held = folder.live().unwrap();
        assert!(held.is_some() && folder.lives());
        drop(held);
        assert!(!folder.lives());
    }

    #[test]
    fn no_secret_is_in_what_is_said_and_nothing_else_is_touched() {
        let (origin, kind) = (Origin::Source, FailureType::SystemError);
        let failure = Failure::new(origin, kind, "abcdefghij").internal("of abcdef and abcdefghij");
        let catalog = json!({ "streams": [{ "name": "message" }] });
        let outcome = Outcome {
            succeeded: true,
            cancelled: false,
            summary: Some(Summary::never_began(failure)),
            result: json!({ "message": ["it says a \\secret\\\" here"], "at": 1_234_567 }),
            message: "the token a \\secret\\\" is wrong".to_owned(),
            permanent: false,
            found: Some(Found { value: catalog.clone(), version: 1, at_ms: 2 }),
        };
        let secrets = ["a \\secret\\\"", "message", "succeeded", "1234567", "abcdef", "abcdefghij"];
        let masked = outcome.masked(&secrets.map(str::to_owned));
        assert_eq!(masked.message, format!("the token {MASK} is wrong"));
        let expected = json!({ "message": [format!("it says {MASK} here")], "at": 1_234_567 });
        assert_eq!((masked.succeeded, masked.result), (true, expected));
        let failure = masked.summary.unwrap().failures.remove(0);
        let said = (&*failure.external_message, &*failure.internal_message.unwrap());
        assert_eq!(said, (MASK, &*format!("of {MASK} and {MASK}")));
        assert_eq!(masked.found.unwrap().value, catalog, "what it is called is no secret");
    }

    #[test]
    fn an_id_that_is_no_name_of_a_file_names_nothing() {
        let data = tempfile::tempdir().unwrap();
        let mut spec = spec(data.path());
        spec.payload = json!({ "connectionId": "../../etc" });
        assert_eq!(spec.name(), "question.7-2");
        spec.place = place(data.path());
        let name = spec.name();
        assert!(name.starts_with("question.") && name.ends_with(".7-2"), "{name}");
        // Another server has the same jobs, and must not end what is ours.
        spec.place = place(tempfile::tempdir().unwrap().path());
        assert_ne!(spec.name(), name);
    }
}
