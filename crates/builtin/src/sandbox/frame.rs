//! What goes between the pool and a child: a head of 8 bytes, and what it announces.
//!
//! To the child: the limit in milliseconds and a length, both 32 bits, little end first; then the
//! evaluation as JSON, as it came with the job. From the child: a [`Kind`] and a length; then JSON, or
//! the text of a failure.

/// How long a head is.
pub(super) const HEAD_BYTES: usize = 8;

/// What a child answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Value,
    Script,
    Limit,
}

/// What came of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// JSON.
    Value(String),
    /// The script is at fault, in its engine's words.
    Script(String),
    /// A bound was reached.
    Limit(String),
}

pub(super) fn head(first: u32, length: usize) -> [u8; HEAD_BYTES] {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut head = [0; HEAD_BYTES];
    let (left, right) = head.split_at_mut(4);
    left.copy_from_slice(&first.to_le_bytes());
    right.copy_from_slice(&length.to_le_bytes());
    head
}

/// The two numbers of a head.
pub(super) fn read_head(head: [u8; HEAD_BYTES]) -> (u32, usize) {
    let [a, b, c, d, rest @ ..] = head;
    let length = u32::from_le_bytes(rest);
    (u32::from_le_bytes([a, b, c, d]), usize::try_from(length).unwrap_or(usize::MAX))
}

impl Kind {
    pub(super) fn number(self) -> u32 {
        match self {
            Kind::Value => 0,
            Kind::Script => 1,
            Kind::Limit => 2,
        }
    }

    pub(super) fn of(number: u32) -> Option<Kind> {
        [Kind::Value, Kind::Script, Kind::Limit].into_iter().find(|kind| kind.number() == number)
    }
}

impl Answer {
    pub(super) fn parts(&self) -> (Kind, &str) {
        match self {
            Answer::Value(text) => (Kind::Value, text),
            Answer::Script(text) => (Kind::Script, text),
            Answer::Limit(text) => (Kind::Limit, text),
        }
    }
}
