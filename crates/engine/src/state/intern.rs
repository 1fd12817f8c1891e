//! Text that many jobs share, by number.

use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::job::NONE;

/// Texts with a count of their users; a text nobody uses is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Vec<(Arc<str>, u32)>,
    numbers: HashMap<Arc<str>, u32, FxBuildHasher>,
    free: Vec<u32>,
    last: Option<u32>,
}

impl Interner {
    /// Distinct texts in use.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        self.numbers.contains_key(text)
    }

    /// The number of a text; counts one more user.
    pub(crate) fn add(&mut self, text: &str) -> u32 {
        // The same text mostly comes many times in a row.
        if let Some(last) = self.last
            && let Some((known, users)) = self.texts.get_mut(index(last))
            && *users > 0
            && **known == *text
        {
            *users += 1;
            return last;
        }
        let number = match self.numbers.get(text) {
            Some(&number) => number,
            None => self.make(text),
        };
        self.texts.get_mut(index(number)).expect("numbers are only made here").1 += 1;
        self.last = Some(number);
        number
    }

    /// One user less. `NONE` is nobody's.
    pub(crate) fn drop_user(&mut self, number: u32) {
        if number == NONE {
            return;
        }
        let (text, users) = self.texts.get_mut(index(number)).expect("numbers are only made here");
        *users -= 1;
        if *users == 0 {
            self.numbers.remove(&**text);
            self.free.push(number);
        }
    }

    pub(crate) fn text(&self, number: u32) -> &Arc<str> {
        &self.texts.get(index(number)).expect("numbers are only made here").0
    }

    /// Texts in use with their number and the count of their users.
    pub(crate) fn users(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..)
            .zip(&self.texts)
            .filter(|(_, (_, users))| *users > 0)
            .map(|(n, (_, users))| (n, *users))
    }

    fn make(&mut self, text: &str) -> u32 {
        let text: Arc<str> = text.into();
        let number = match self.free.pop() {
            Some(number) => {
                *self.texts.get_mut(index(number)).expect("it was made here") = (text.clone(), 0);
                number
            }
            None => {
                self.texts.push((text.clone(), 0));
                u32::try_from(self.texts.len() - 1).expect("texts are bounded by jobs")
            }
        };
        self.numbers.insert(text, number);
        number
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("usize has at least 32 bits")
}
