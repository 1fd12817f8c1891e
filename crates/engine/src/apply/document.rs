//! Events about documents.

use windlass_record::id::Payload;

use crate::state::State;
use crate::state::document::{Document, DocumentName};

impl State {
    pub(super) fn document_put(&mut self, name: DocumentName, version: u64, bytes: Payload) {
        self.documents.changed.push(name.clone());
        let document = Document { version, bytes, image_hash: 0 };
        if let Some(old) = self.documents.by_name.insert(name.clone(), document) {
            if old.bytes.len > 0 {
                self.effects.freed.push(old.bytes);
            }
            if let Some(new) = self.documents.by_name.get_mut(&name) {
                new.image_hash = old.image_hash;
            }
        }
    }

    pub(super) fn document_deleted(&mut self, name: DocumentName) {
        let Some(old) = self.documents.by_name.remove(&name) else { return };
        if old.bytes.len > 0 {
            self.effects.freed.push(old.bytes);
        }
        if old.image_hash != 0 {
            self.documents.dead.push((name, old.image_hash));
        }
    }
}
