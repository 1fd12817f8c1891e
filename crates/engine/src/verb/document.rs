//! Write documents, alone or together with what a worker reports: all or nothing, each only if it
//! has the version that was expected.

use rustc_hash::FxHashMap;
use windlass_record::bound::Bound;
use windlass_record::command::{DocumentWrite, PutDocuments};
use windlass_record::event::Event;
use windlass_record::id::Payload;
use windlass_record::rejection::Rejection;

use super::guard::{at_most, room};
use crate::state::document::DocumentName;
use crate::{Answer, Sink, Step};

/// Decides [`PutDocuments`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &PutDocuments,
) -> Result<Answer, Rejection> {
    step.check_documents(&command.documents)?;

    // Cannot fail from here.
    Ok(Answer::Versions(step.put_documents(&command.documents)))
}

impl<S: Sink> Step<'_, S> {
    /// Refuses writes that would not all succeed.
    pub(super) fn check_documents(&self, writes: &[DocumentWrite]) -> Result<(), Rejection> {
        if writes.is_empty() {
            return Ok(());
        }
        let per_command = self.bounds.documents_per_command_max;
        at_most(Bound::DocumentsPerCommand, writes.len(), per_command)?;
        // What the writes before have made of it: they are applied one after the other.
        let mut versions = FxHashMap::default();
        for write in writes {
            self.name("tenant", &write.tenant)?;
            self.name("document kind", &write.kind)?;
            self.name("document id", &write.id)?;
            let len = write.bytes.as_ref().map_or(0, |bytes| bytes.len());
            at_most(Bound::PayloadBytes, len, self.bounds.payload_bytes_max)?;
            let version = versions.entry(name(write)).or_insert_with_key(|name| {
                self.state.documents.get(name).map_or(0, |old| old.version)
            });
            let actual = *version;
            if let Some(expected) = write.expected_version
                && expected != actual
            {
                let (kind, id) = (write.kind.clone(), write.id.clone());
                return Err(Rejection::DocumentVersion { kind, id, expected, actual });
            }
            *version = if write.bytes.is_some() { actual + 1 } else { 0 };
        }
        let is_new = |write: &&DocumentWrite| {
            write.bytes.is_some() && self.state.documents.get(&name(write)).is_none()
        };
        match writes.iter().filter(is_new).count() {
            0 => Ok(()),
            new => {
                let present = self.state.documents.len() + new - 1;
                room(Bound::Documents, present, self.bounds.documents_max)
            }
        }
    }

    /// Writes documents that were checked; returns their new versions.
    pub(super) fn put_documents(&mut self, writes: &[DocumentWrite]) -> Vec<u64> {
        writes.iter().map(|write| self.put_document(write)).collect()
    }

    fn put_document(&mut self, write: &DocumentWrite) -> u64 {
        let (tenant, kind, id) = (&*write.tenant, &*write.kind, &*write.id);
        let old = self.state.documents.get(&name(write)).map(|old| old.version);
        let Some(bytes) = &write.bytes else {
            if old.is_some() {
                self.emit(&Event::DocumentDeleted { tenant, kind, id });
            }
            return 0;
        };
        let version = old.unwrap_or(0) + 1;
        let bytes = if bytes.is_empty() { Payload::EMPTY } else { self.sink.keep(bytes) };
        self.emit(&Event::DocumentPut { tenant, kind, id, version, bytes });
        version
    }
}

fn name(write: &DocumentWrite) -> DocumentName {
    DocumentName { tenant: write.tenant.clone(), kind: write.kind.clone(), id: write.id.clone() }
}

#[cfg(test)]
mod tests {
    use windlass_record::bound::Bounds;
    use windlass_record::codec::Payloads;
    use windlass_record::command::{Bytes, Command, CompleteJob, Lease, ReportProgress};

    use super::*;
    use crate::verb::check::{Check, job};

    fn write(id: &str, expected_version: Option<u64>, bytes: Option<&str>) -> DocumentWrite {
        DocumentWrite {
            tenant: "t".into(),
            kind: "k".into(),
            id: id.into(),
            expected_version,
            bytes: bytes.map(|text| Bytes::from(text.as_bytes())),
        }
    }

    fn other(id: &str, expected: u64, actual: u64) -> Result<Answer, Rejection> {
        let (kind, id) = ("k".into(), id.into());
        Err(Rejection::DocumentVersion { kind, id, expected, actual })
    }

    fn put(check: &mut Check, documents: Vec<DocumentWrite>) -> Result<Answer, Rejection> {
        check.give(Command::PutDocuments(PutDocuments { documents }))
    }

    fn bytes(check: &Check, id: &str) -> Option<String> {
        let document = check.engine.state().documents.get(&name(&write(id, None, None)))?;
        let bytes = check.shelf.bytes(document.bytes);
        Some(String::from_utf8(bytes.to_vec()).expect("the tests write text"))
    }

    #[test]
    fn compare_and_set() {
        let mut check = Check::new();
        // The version that is expected, the new bytes, and the new version or the one it has.
        type Row = (Option<u64>, Option<&'static str>, Result<u64, u64>);
        let rows: [Row; 9] = [
            (Some(1), Some("a"), Err(0)),
            (Some(0), Some("a"), Ok(1)),
            (Some(0), Some("b"), Err(1)),
            (Some(1), Some("b"), Ok(2)),
            (None, Some("c"), Ok(3)),
            (Some(2), None, Err(3)),
            (Some(3), None, Ok(0)),
            (None, None, Ok(0)),
            (None, Some(""), Ok(1)),
        ];
        for (expected_version, bytes, expected) in rows {
            let said = put(&mut check, vec![write("x", expected_version, bytes)]);
            let expected = match expected {
                Ok(version) => Ok(Answer::Versions(vec![version])),
                Err(actual) => other("x", expected_version.unwrap_or_default(), actual),
            };
            assert_eq!(said, expected, "{expected_version:?} {bytes:?}");
        }
        assert_eq!(bytes(&check, "x").as_deref(), Some(""));
    }

    /// The second write of a document expects what the first makes of it.
    #[test]
    fn writes_of_one_command_follow_each_other() {
        let mut check = Check::new();
        let x = |expected, bytes| write("x", Some(expected), bytes);
        assert_eq!(put(&mut check, vec![x(0, Some("a")), x(0, Some("b"))]), other("x", 0, 1));
        let all = vec![x(0, Some("a")), x(1, Some("b")), x(2, None), x(0, Some("c"))];
        assert_eq!(put(&mut check, all), Ok(Answer::Versions(vec![1, 2, 0, 1])));
        assert_eq!(bytes(&check, "x").as_deref(), Some("c"));
    }

    #[test]
    fn all_or_nothing() {
        let mut check = Check::new();
        let both = vec![write("x", Some(0), Some("1")), write("y", Some(1), Some("1"))];
        let refused = other("y", 1, 0);
        assert_eq!(put(&mut check, both.clone()), refused);
        assert_eq!(bytes(&check, "x"), None);

        let key = check.create(job("q", "a", 0));
        check.take("q");
        let lease = Lease { key, activation: None };
        let report = |documents| {
            Command::ReportProgress(ReportProgress {
                lease,
                percent: 50,
                note: "half".into(),
                documents,
            })
        };
        assert_eq!(check.give(report(both.clone())), refused);
        assert!(check.job(key).extra().is_none(), "no progress either");
        check.give(report(vec![write("y", Some(0), Some("half"))])).expect("it is new");
        assert_eq!(bytes(&check, "y").as_deref(), Some("half"));

        let complete = CompleteJob { lease, result: Bytes::default(), documents: both };
        check.give(Command::CompleteJob(complete)).expect("y has version 1 now");
        assert_eq!((bytes(&check, "x"), bytes(&check, "y")), (Some("1".into()), Some("1".into())));
        assert_eq!(check.state_of(key), None, "state of a connection outlives its jobs");
    }

    #[test]
    fn bounds() {
        let bounds = Bounds {
            documents_max: 2,
            documents_per_command_max: 3,
            payload_bytes_max: 4,
            ..Bounds::default()
        };
        let mut check = Check::with_bounds(bounds);
        let one = |id: &str| write(id, None, Some("1"));
        let per_command = Bound::DocumentsPerCommand;
        assert_eq!(
            put(&mut check, vec![one("1"), one("2"), one("3"), one("4")]),
            Err(Rejection::TooLarge { bound: per_command, max: 3, given: 4 })
        );
        let exhausted = Err(Rejection::Exhausted { bound: Bound::Documents, max: 2 });
        assert_eq!(put(&mut check, vec![one("1"), one("2"), one("3")]), exhausted);
        put(&mut check, vec![one("1"), one("2")]).expect("there is room for two");
        assert_eq!(put(&mut check, vec![one("3")]), exhausted);
        // At the limit old documents can still be changed, and deleted.
        put(&mut check, vec![one("1"), one("2")]).expect("they are there");
        assert_eq!(
            put(&mut check, vec![write("1", None, Some("12345"))]),
            Err(Rejection::TooLarge { bound: Bound::PayloadBytes, max: 4, given: 5 })
        );
        put(&mut check, vec![write("1", Some(2), None)]).expect("it is there");
        put(&mut check, vec![one("3")]).expect("there is room for one");
        let nameless = write("", None, None);
        assert_eq!(
            put(&mut check, vec![nameless]),
            Err(Rejection::NameEmpty { field: "document id" })
        );
    }
}
