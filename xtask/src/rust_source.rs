//! Just enough understanding of Rust source for `tidy`: what is code, what is a test, where functions
//! and modules are. No syntax tree: a file that does not parse is the compiler's business.

/// A source file with its comments and literals blanked out.
pub(crate) struct Source {
    /// The text as it stands.
    pub(crate) text: String,
    /// The same, byte for byte and line for line, with comments, strings and characters as spaces.
    pub(crate) code: String,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// From `fn` to the closing brace.
    pub(crate) lines: usize,
}

/// A `mod name;`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// The inline modules it stands in, then its own name.
    pub(crate) path: Vec<String>,
    /// From `#[path = "…"]`.
    pub(crate) file: Option<String>,
    pub(crate) line: usize,
    /// Stands below `#[cfg(test)]`.
    pub(crate) test: bool,
}

impl Source {
    pub(crate) fn new(text: String) -> Self {
        let code = blank(&text);
        Self { text, code }
    }

    /// The code without what is below `#[cfg(test)]` or `#[test]`, which is blanked as well.
    pub(crate) fn shipped(&self) -> String {
        let mut shipped = self.code.clone().into_bytes();
        for marker in ["#[cfg(test)]", "#[test]", "#[cfg(all(test"] {
            for start in find_all(&self.code, marker) {
                let end = item_end(&self.code, start + marker.len());
                for byte in shipped.get_mut(start..end).into_iter().flatten() {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
            }
        }
        // Only whole ASCII-blanked items changed, so it is still text.
        String::from_utf8_lossy(&shipped).into_owned()
    }

    /// The functions of `code`, which is this file's `code` or `shipped`.
    pub(crate) fn functions(code: &str) -> Vec<Function> {
        let mut functions = Vec::new();
        for start in find_words(code, "fn") {
            let rest = code.get(start + 2..).unwrap_or_default();
            let name: String = rest
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if name.is_empty() {
                // A function pointer type.
                continue;
            }
            let end = item_end(code, start);
            let body = code.get(start..end).unwrap_or_default();
            if body.trim_end().ends_with('}') {
                let lines = body.lines().count();
                functions.push(Function { name, line: line_of(code, start), lines });
            }
        }
        functions
    }

    /// Every `mod name;`.
    pub(crate) fn modules(&self) -> Vec<Module> {
        let mut modules = Vec::new();
        let starts: Vec<usize> = find_words(&self.code, "mod").collect();
        // Inline modules, as (name, start of body, end of body).
        let mut inline: Vec<(String, usize, usize)> = Vec::new();
        for start in starts {
            let rest = self.code.get(start + 3..).unwrap_or_default();
            let name: String = rest
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let behind = start + 3 + rest.find(&name).unwrap_or_default() + name.len();
            let next = self.code.get(behind..).unwrap_or_default().trim_start();
            if name.is_empty() {
                continue;
            } else if next.starts_with('{') {
                inline.push((name, behind, item_end(&self.code, start)));
            } else if next.starts_with(';') {
                let around = inline.iter().filter(|(_, from, to)| (*from..*to).contains(&start));
                let mut path: Vec<String> = around.map(|(name, _, _)| name.clone()).collect();
                path.push(name);
                let attributes = self.attributes_before(start);
                let file = attributes
                    .split_once("path")
                    .and_then(|(_, value)| value.split('"').nth(1))
                    .map(str::to_owned);
                let test = attributes.contains("cfg(test)");
                modules.push(Module { path, file, line: line_of(&self.code, start), test });
            }
        }
        modules
    }

    /// The attributes in front of the item at `start`, as they stand in the text.
    fn attributes_before(&self, start: usize) -> &str {
        let before = self.code.get(..start).unwrap_or_default();
        // An item begins behind the end of the one before it.
        let begin = before.rfind([';', '}', '{']).map_or(0, |at| at + 1);
        self.text.get(begin..start).unwrap_or_default()
    }
}

/// The line of a byte offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// Offsets of `needle` where it is not part of a longer word.
pub(crate) fn find_words<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = code.as_bytes();
    let first_is_word = is_word(needle.as_bytes().first());
    let last_is_word = is_word(needle.as_bytes().last());
    find_all(code, needle).filter(move |start| {
        let before = start.checked_sub(1).and_then(|at| bytes.get(at));
        let behind = bytes.get(start + needle.len());
        let goes_on_before = first_is_word && is_word(before);
        let goes_on_behind = last_is_word && is_word(behind);
        !goes_on_before && !goes_on_behind
    })
}

fn find_all<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(needle).map(|(start, _)| start)
}

/// The end of the item that goes on at `start`: behind its `;`, or behind the brace that closes its body.
fn item_end(code: &str, start: usize) -> usize {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return at + 1;
                }
            }
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.saturating_sub(1),
            b';' if braces == 0 && others == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Replaces comments and the insides of strings and characters by spaces; lines stay lines.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        let end = match byte {
            b'/' if rest.starts_with(b"//") => {
                at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with(b"/*") => at + block_comment(rest),
            b'"' => at + string(rest),
            b'r' | b'b' | b'c' if !follows_word(bytes, at) => match raw_string(rest) {
                Some(length) => at + length,
                None => at,
            },
            b'\'' => at + character(rest),
            _ => at,
        };
        if end == at {
            out.push(byte);
            at += 1;
        } else {
            let blanked = bytes.get(at..end).unwrap_or_default();
            out.extend(blanked.iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' }));
            at = end;
        }
    }
    // Bytes of other alphabets only stand in what was blanked, or in names, which stay whole.
    String::from_utf8_lossy(&out).into_owned()
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|before| bytes.get(before))
        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = rest.get(at..).unwrap_or_default();
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a raw string, byte string or C string; `None` if it is just a name.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = rest.iter().take_while(|b| matches!(b, b'r' | b'b' | b'c')).count();
    let hashes = rest.iter().skip(prefix).take_while(|b| **b == b'#').count();
    if prefix > 2 || rest.get(prefix + hashes) != Some(&b'"') {
        return None;
    }
    if !rest.iter().take(prefix).any(|b| *b == b'r') {
        return (hashes == 0).then(|| prefix + string(rest.get(prefix..).unwrap_or_default()));
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let body = prefix + hashes + 1;
    let inside = rest.get(body..).unwrap_or_default();
    let length = inside.windows(close.len()).position(|window| window == close);
    Some(length.map_or(rest.len(), |length| body + length + close.len()))
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'\\') => {
            let quote = rest.iter().skip(3).position(|b| *b == b'\'');
            quote.map_or(0, |at| at + 4)
        }
        Some(_) => {
            // One character, of up to four bytes.
            let quote = rest.iter().take(6).skip(2).position(|b| *b == b'\'');
            match quote {
                Some(0) => 3,
                Some(more) if rest.get(1).is_some_and(|b| *b >= 0x80) => more + 3,
                Some(_) | None => 0,
            }
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new(text.to_owned())
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let text = "a(\"x\\\"y\"); // b\n/* c /* d */ e */ 'f' 'g: r#\"h\"i\"# b\"j\" '\\'' '\\u{1}' 'ä' k";
        let source = source(text);
        assert_eq!(source.code.len(), text.len());
        let left: String = source.code.split_whitespace().collect();
        assert_eq!(left, "a();'g:k");
    }

    #[test]
    fn tests_are_not_shipped() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[test]\nfn c() { x; }\nfn d() {}";
        let shipped = source(text).shipped();
        let names: Vec<_> = Source::functions(&shipped).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "d"]);
    }

    #[test]
    fn functions_have_lengths() {
        let text = "trait T {\n  fn a(&self);\n  fn b(x: [u8; 2]) -> u8\n  where u8: Copy {\n  }\n}\ntype F = fn(u8);";
        let functions = Source::functions(&source(text).code);
        assert_eq!(functions, [Function { name: "b".to_owned(), line: 3, lines: 3 }]);
    }

    #[test]
    fn modules_know_where_their_files_are() {
        let text =
            "pub mod a;\n#[path = \"x/y.rs\"]\nmod b;\nmod c { mod d; }\n#[cfg(test)]\nmod e;";
        let modules = source(text).modules();
        let found: Vec<_> =
            modules.iter().map(|m| (m.path.join("/"), m.file.as_deref(), m.line, m.test)).collect();
        let expected = [
            ("a".to_owned(), None, 1, false),
            ("b".to_owned(), Some("x/y.rs"), 3, false),
            ("c/d".to_owned(), None, 4, false),
            ("e".to_owned(), None, 6, true),
        ];
        assert_eq!(found, expected);
    }
}
