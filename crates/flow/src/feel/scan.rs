//! The characters of a FEEL text: white space, comments, names, numbers, strings.

use std::sync::Arc;

use rust_decimal::Decimal;

use super::kind::DefinedKind;
use super::{Names, ParseError};

/// Words that cannot be names.
const RESERVED: [&str; 11] =
    ["null", "true", "false", "function", "in", "return", "then", "else", "satisfies", "and", "or"];

/// A place in a text.
pub(crate) struct Scanner<'a> {
    source: &'a str,
    pub(crate) position: usize,
    /// Names that are not plain words, longest first, each as its words.
    spaced: Vec<String>,
    /// What the types of a model are.
    kinds: &'a [DefinedKind],
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a str, names: &'a Names) -> Scanner<'a> {
        let mut scanner = Scanner { source, position: 0, spaced: Vec::new(), kinds: &names.kinds };
        for name in &names.names {
            scanner.allow(name);
        }
        scanner
    }

    /// Allows a name that is not a plain word from here on.
    pub(crate) fn allow(&mut self, name: &str) {
        let is_plain = name.chars().all(is_name_part);
        if is_plain || name.is_empty() || self.spaced.iter().any(|own| own == name) {
            return;
        }
        let place = self.spaced.partition_point(|own| own.len() >= name.len());
        self.spaced.insert(place, name.to_owned());
    }

    /// What a model defines by this name.
    pub(crate) fn defined_kind(&self, name: &str) -> Option<&'a DefinedKind> {
        self.kinds.iter().rev().find(|defined| defined.name == name)
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { position: self.position, message: message.into() })
    }

    /// What is left from here.
    pub(crate) fn rest(&self) -> &'a str {
        self.source.get(self.position..).unwrap_or("")
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.skip_space();
        self.position >= self.source.len()
    }

    /// What was found here, for messages.
    pub(crate) fn found(&self) -> String {
        let rest = self.rest();
        if rest.is_empty() {
            return "the end".to_owned();
        }
        let word: String = rest.chars().take_while(|found| is_name_part(*found)).take(40).collect();
        if word.is_empty() {
            format!("'{}'", rest.chars().take(1).collect::<String>())
        } else {
            format!("'{word}'")
        }
    }

    /// Steps over white space and comments.
    pub(crate) fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_space);
            self.position += rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').map_or(trimmed.len(), |end| end + 1)
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
            } else {
                return;
            };
            self.position += comment;
        }
    }

    /// Whether the text goes on with this symbol, behind white space.
    pub(crate) fn sees(&mut self, symbol: &str) -> bool {
        self.skip_space();
        self.rest().starts_with(symbol)
    }

    /// Steps over this symbol, behind white space.
    pub(crate) fn take(&mut self, symbol: &str) -> bool {
        let seen = self.sees(symbol);
        if seen {
            self.position += symbol.len();
        }
        seen
    }

    /// Steps over this symbol or says that it is missing.
    pub(crate) fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.take(symbol) {
            return Ok(());
        }
        self.error(format!("expected '{symbol}' and found {}", self.found()))
    }

    /// Whether the text goes on with this word, and the word ends there.
    pub(crate) fn sees_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let Some(behind) = self.rest().strip_prefix(word) else { return false };
        !behind.starts_with(is_name_part)
    }

    /// Steps over this word.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let seen = self.sees_word(word);
        if seen {
            self.position += word.len();
        }
        seen
    }

    /// Steps over this word or says that it is missing.
    pub(crate) fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take_word(word) {
            return Ok(());
        }
        self.error(format!("expected '{word}' and found {}", self.found()))
    }

    /// Steps over these words, with any white space between them.
    pub(crate) fn take_words(&mut self, words: &str) -> bool {
        let start = self.position;
        let all = words.split(' ').all(|word| self.take_word(word));
        if !all {
            self.position = start;
        }
        all
    }

    /// A name: a plain word, one in backticks, or one of those that were allowed.
    pub(crate) fn name(&mut self) -> Option<Arc<str>> {
        self.skip_space();
        if let Some(name) = self.spaced_name() {
            return Some(name);
        }
        if self.rest().starts_with('`') {
            return self.quoted_name();
        }
        let word = self.word()?;
        if RESERVED.contains(&word) {
            self.position -= word.len();
            return None;
        }
        Some(Arc::from(word))
    }

    /// A plain word, reserved or not.
    pub(crate) fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        if !rest.starts_with(is_name_start) {
            return None;
        }
        let end = rest.find(|found| !is_name_part(found)).unwrap_or(rest.len());
        self.position += end;
        rest.get(..end)
    }

    /// A name that may have spaces in it because one of `ends` has to follow; the words are joined
    /// by single spaces. Nothing is stepped over if it is not one.
    pub(crate) fn name_before(&mut self, ends: &[char]) -> Option<Arc<str>> {
        self.skip_space();
        let start = self.position;
        if self.rest().starts_with('`') {
            let name = self.quoted_name();
            self.skip_space();
            if name.is_some() && self.rest().starts_with(ends) {
                return name;
            }
            self.position = start;
            return None;
        }
        let rest = self.rest();
        let stop = |found: char| {
            ends.contains(&found)
                || matches!(found, '"' | '{' | '}' | '[' | ']' | '`' | '(' | ')' | ',' | ':')
        };
        let end = rest.find(stop)?;
        let name = rest.get(..end)?;
        if !rest.get(end..)?.starts_with(ends) || name.trim_matches(is_space).is_empty() {
            return None;
        }
        self.position += end;
        let words: Vec<&str> = name.split(is_space).filter(|word| !word.is_empty()).collect();
        Some(Arc::from(words.join(" ")))
    }

    fn quoted_name(&mut self) -> Option<Arc<str>> {
        let inner = self.rest().strip_prefix('`')?;
        let end = inner.find('`').filter(|end| *end > 0)?;
        self.position += end + 2;
        inner.get(..end).map(Arc::from)
    }

    fn spaced_name(&mut self) -> Option<Arc<str>> {
        let rest = self.rest();
        let (name, length) = self.spaced.iter().find_map(|name| {
            let length = length_of_words(rest, name)?;
            let ends_in_word = name.ends_with(is_name_part);
            let goes_on = rest.get(length..)?.starts_with(is_name_part);
            (!(ends_in_word && goes_on)).then(|| (Arc::from(name.as_str()), length))
        })?;
        self.position += length;
        Some(name)
    }

    /// A number without a sign; beyond the range of numbers it is `None` inside.
    pub(crate) fn number(&mut self) -> Option<Option<Decimal>> {
        let rest = self.rest();
        let whole = digits(rest);
        let fraction = rest.get(whole..)?.strip_prefix('.').map_or(0, digits);
        if whole == 0 && fraction == 0 {
            return None;
        }
        let mut end = if fraction == 0 { whole } else { whole + 1 + fraction };
        end += exponent(rest.get(end..)?);
        self.position += end;
        Some(super::number::parse(rest.get(..end)?))
    }

    /// A string in double quotes, without its escapes.
    pub(crate) fn string(&mut self) -> Result<String, ParseError> {
        let start = self.position;
        let Some(inner) = self.rest().strip_prefix('"') else {
            return self.error(format!("expected a string and found {}", self.found()));
        };
        let mut text = String::new();
        let mut characters = inner.char_indices();
        while let Some((at, found)) = characters.next() {
            match found {
                '"' => {
                    self.position = start + 1 + at + 1;
                    return Ok(text);
                }
                '\\' => {
                    let behind = inner.get(at + 1..).unwrap_or("");
                    let taken = unescape(behind, &mut text);
                    for _ in 0..taken {
                        characters.next();
                    }
                }
                other => text.push(other),
            }
        }
        self.error("the string has no end")
    }
}

/// How many bytes of `text` spell these words, with any white space between them.
fn length_of_words(text: &str, words: &str) -> Option<usize> {
    let mut rest = text;
    for (at, word) in words.split(' ').enumerate() {
        if at > 0 {
            rest = rest.trim_start_matches(is_space);
        }
        rest = rest.strip_prefix(word)?;
    }
    Some(text.len() - rest.len())
}

fn digits(text: &str) -> usize {
    text.find(|found: char| !found.is_ascii_digit()).unwrap_or(text.len())
}

fn exponent(text: &str) -> usize {
    let Some(behind) = text.strip_prefix(['e', 'E']) else { return 0 };
    let unsigned = behind.strip_prefix(['+', '-']).unwrap_or(behind);
    match digits(unsigned) {
        0 => 0,
        count => text.len() - unsigned.len() + count,
    }
}

/// Writes what an escape stands for; says how many characters of `behind` (what follows the
/// backslash) belong to it. An unknown escape stands for itself, so that patterns can be written
/// without doubling every backslash.
fn unescape(behind: &str, text: &mut String) -> usize {
    let plain = match behind.chars().next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('\'') => '\'',
        Some('"') => '"',
        Some('\\') => '\\',
        Some('u') => return unescape_code(behind, 4, text),
        Some('U') => return unescape_code(behind, 6, text),
        Some(_) | None => {
            text.push('\\');
            return 0;
        }
    };
    text.push(plain);
    1
}

fn unescape_code(behind: &str, length: usize, text: &mut String) -> usize {
    let code = |from: usize| {
        let hex = behind.get(from..from + length)?;
        u32::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+'))
    };
    let Some(first) = code(1) else {
        text.push('\\');
        return 0;
    };
    if let Some(found) = char::from_u32(first) {
        text.push(found);
        return 1 + length;
    }
    // The first half of a pair, as in JSON.
    let second = behind
        .get(1 + length..)
        .filter(|next| next.starts_with("\\u"))
        .and_then(|_| code(length + 3));
    match (first, second) {
        (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
            let joined = 0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00);
            text.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            2 * length + 3
        }
        _ => {
            text.push(char::REPLACEMENT_CHARACTER);
            1 + length
        }
    }
}

/// White space as FEEL counts it.
pub(crate) fn is_space(found: char) -> bool {
    found.is_whitespace()
        || matches!(
            found,
            '\u{180e}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}'
        )
}

fn is_name_start(found: char) -> bool {
    found == '_' || found == '$' || found.is_alphabetic() || (!found.is_ascii() && !is_space(found))
}

/// Whether a character can be inside a plain name.
pub(crate) fn is_name_part(found: char) -> bool {
    is_name_start(found) || found.is_ascii_digit()
}
