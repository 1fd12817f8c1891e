//! Write documents, alone or together with what a worker reports: all or nothing, each only if it
//! has the version that was expected.

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
        for (index, write) in (0..).zip(writes) {
            self.name("tenant", &write.tenant)?;
            self.name("document kind", &write.kind)?;
            self.name("document id", &write.id)?;
            let len = write.bytes.as_ref().map_or(0, |bytes| bytes.len());
            at_most(Bound::PayloadBytes, len, self.bounds.payload_bytes_max)?;
            let actual = self.state.documents.get(&name(write)).map_or(0, |old| old.version);
            if write.expected_version.is_some_and(|expected| expected != actual) {
                return Err(Rejection::DocumentVersion { index, actual });
            }
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
