//! A slab in pages: growing copies what is already there while it is little.

/// Pages are large, so that what an allocator adds to each is little beside it: with an eighth of this,
/// that was a tenth of the memory of all jobs.
const PAGE_BITS: u32 = 15;
const PAGE_LEN: usize = 1 << PAGE_BITS;
/// The first page grows to this as it fills, so that an idle process stays small, and then at once to its length.
const FIRST_GROWS_TO: usize = PAGE_LEN / 8;

/// Values by a number that is reused after removal. A vacant place holds the default value.
#[derive(Debug)]
pub(crate) struct Paged<T> {
    pages: Vec<Vec<T>>,
    free: Vec<u32>,
    live: u32,
}

impl<T> Default for Paged<T> {
    fn default() -> Paged<T> {
        Paged { pages: Vec::new(), free: Vec::new(), live: 0 }
    }
}

impl<T: Default> Paged<T> {
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.live += 1;
        if let Some(number) = self.free.pop() {
            *self.get_mut(number) = value;
            return number;
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE_LEN) {
            let room = if self.pages.is_empty() { 0 } else { PAGE_LEN };
            self.pages.push(Vec::with_capacity(room));
        }
        let page_index = self.pages.len() - 1;
        let page = self.pages.last_mut().expect("a page was just pushed");
        if page.len() == FIRST_GROWS_TO && page.capacity() == FIRST_GROWS_TO {
            page.reserve_exact(PAGE_LEN - FIRST_GROWS_TO);
        }
        let number = page_index << PAGE_BITS | page.len();
        page.push(value);
        u32::try_from(number).expect("the bounds on live things are far below 2^32")
    }

    /// Takes the value out; its number may be reused by the next insert.
    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        self.live -= 1;
        std::mem::take(self.get_mut(number))
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &T {
        let index = usize::try_from(number).expect("usize has at least 32 bits");
        self.pages
            .get(index >> PAGE_BITS)
            .and_then(|page| page.get(index & (PAGE_LEN - 1)))
            .expect("numbers are only made by insert")
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        let index = usize::try_from(number).expect("usize has at least 32 bits");
        self.pages
            .get_mut(index >> PAGE_BITS)
            .and_then(|page| page.get_mut(index & (PAGE_LEN - 1)))
            .expect("numbers are only made by insert")
    }

    /// Places from a number on, vacant ones too.
    pub(crate) fn iter_from(&self, number: u64) -> impl Iterator<Item = (u32, &T)> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let (page, place) = (index >> PAGE_BITS, index & (PAGE_LEN - 1));
        let first = u32::try_from(page << PAGE_BITS).unwrap_or(u32::MAX);
        // The pages come first, so that a number past the last page counts nothing.
        let places = self.pages.iter().skip(page).flatten().zip(first..);
        places.map(|(value, number)| (number, value)).skip(place)
    }

    /// All places in order of their number, vacant ones too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.pages.iter().flatten())
    }
}
