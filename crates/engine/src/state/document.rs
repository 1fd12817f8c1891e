//! Documents: (tenant, kind, id) -> version and bytes, with compare-and-set. A face owns its kinds;
//! the engine does not interpret them.

use std::collections::BTreeMap;

use windlass_record::id::Payload;

/// Names a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentName {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its id.
    pub id: Box<str>,
}

/// A document.
#[derive(Clone, Debug)]
pub struct Document {
    /// From 1; grows by one with each write.
    pub version: u64,
    /// Its bytes, kept by the shell.
    pub bytes: Payload,
    pub(crate) image_hash: u64,
}

/// All documents, in order of their names.
#[derive(Debug, Default)]
pub struct Documents {
    pub(crate) by_name: BTreeMap<DocumentName, Document>,
    pub(crate) changed: Vec<DocumentName>,
    pub(crate) dead: Vec<(DocumentName, u64)>,
}

impl Documents {
    /// The document with this name.
    pub fn get(&self, name: &DocumentName) -> Option<&Document> {
        self.by_name.get(name)
    }

    /// Documents of a tenant and kind whose id comes after `after`, in order.
    pub fn list<'a>(
        &'a self,
        tenant: &'a str,
        kind: &'a str,
        after: &str,
    ) -> impl Iterator<Item = (&'a DocumentName, &'a Document)> {
        let start = DocumentName { tenant: tenant.into(), kind: kind.into(), id: after.into() };
        let bounds = (std::ops::Bound::Excluded(start), std::ops::Bound::Unbounded);
        self.by_name
            .range(bounds)
            .take_while(move |(name, _)| &*name.tenant == tenant && &*name.kind == kind)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}
