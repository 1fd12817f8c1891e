//! Names in pairs: (tenant, queue) and (tenant, limit key).

use std::cmp::Ordering;
use std::sync::Arc;

/// Looks up a pair of names without making owned ones.
pub(crate) trait PairName {
    fn pair(&self) -> (&str, &str);
}

impl PairName for (Arc<str>, Arc<str>) {
    fn pair(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

impl PairName for (&str, &str) {
    fn pair(&self) -> (&str, &str) {
        *self
    }
}

impl std::hash::Hash for dyn PairName + '_ {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.pair().hash(state);
    }
}

impl PartialEq for dyn PairName + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.pair() == other.pair()
    }
}

impl Eq for dyn PairName + '_ {}

impl PartialOrd for dyn PairName + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn PairName + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pair().cmp(&other.pair())
    }
}

impl<'a> std::borrow::Borrow<dyn PairName + 'a> for (Arc<str>, Arc<str>) {
    fn borrow(&self) -> &(dyn PairName + 'a) {
        self
    }
}
