//! Names of a model that FEEL cannot spell, such as `Monthly Salary`, and which of them an
//! expression may mean.
//!
//! Only names whose every word occurs in an expression are told to its parser: it is slower the
//! more names it is told, and a name that cannot occur can only mislead it.

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use crate::feel;

use super::problem::ProblemRule;

/// The most such names of a model.
pub(super) const NAMES_MAX: usize = 2048;
/// The most such names that one expression may mean.
const NAMES_PER_EXPRESSION_MAX: usize = 256;

/// The names of a model that FEEL cannot spell.
#[derive(Default)]
pub(super) struct SpecialNames {
    seen: HashSet<String, FxBuildHasher>,
    by_first_word: HashMap<String, Vec<String>, FxBuildHasher>,
}

impl SpecialNames {
    /// Adds a name, unless FEEL can spell it; whether there was room for it.
    pub(super) fn allow(&mut self, name: &str) -> bool {
        if is_path(name) || !self.seen.insert(name.to_owned()) {
            return true;
        }
        let first = words(name).next().unwrap_or_default().to_owned();
        self.by_first_word.entry(first).or_default().push(name.to_owned());
        self.seen.len() <= NAMES_MAX
    }

    /// The names that this text may mean.
    pub(super) fn within(&self, text: &str) -> Result<feel::Names, ProblemRule> {
        let mut names = feel::Names::default();
        if self.seen.is_empty() {
            return Ok(names);
        }
        let present: HashSet<&str, FxBuildHasher> = words(text).chain([""]).collect();
        let mut count = 0_usize;
        for word in &present {
            for name in self.by_first_word.get(*word).into_iter().flatten() {
                if !words(name).all(|own| present.contains(own)) {
                    continue;
                }
                count = count.saturating_add(1);
                if count > NAMES_PER_EXPRESSION_MAX {
                    return Err(ProblemRule::TooLarge);
                }
                names.allow(name);
            }
        }
        Ok(names)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|own: char| !own.is_alphanumeric() && own != '_').filter(|word| !word.is_empty())
}

/// Whether FEEL can spell a name without knowing it: as a word, or as a path of words, which some
/// models give to parameters.
fn is_path(name: &str) -> bool {
    name.split('.').all(|word| {
        let mut characters = word.chars();
        characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && characters.all(|own| own.is_alphanumeric() || own == '_')
    })
}
