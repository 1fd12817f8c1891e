//! The parser of paths.

use serde_json::Value;

use super::filter::{Comparison, Filter, Operand};
use super::function::Function;
use super::{PATH_BYTES_MAX, Path, PathError, Segment};

/// How many conditions may lie inside one another.
const DEPTH_MAX: usize = 32;

type Parsed<T> = Result<T, PathError>;

pub(super) fn path(text: &str) -> Parsed<Path> {
    let trimmed = text.trim();
    let mut parser = Parser { text: trimmed, at: 0, depth: 0 };
    if trimmed.len() > PATH_BYTES_MAX {
        return parser.refuse("the path is too long");
    }
    let segments = if parser.eat("$") || trimmed.starts_with(['.', '[']) {
        parser.segments(false)?
    } else {
        parser.segments(true)?
    };
    if parser.at < trimmed.len() {
        return parser.refuse("expected `.` or `[`");
    }
    if segments.is_empty() {
        return parser.refuse("expected a name");
    }
    Ok(Path { segments })
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Segments as far as they go; `bare` when a name stands first, without its period.
    fn segments(&mut self, bare: bool) -> Parsed<Vec<Segment>> {
        let mut segments = Vec::new();
        if bare {
            self.dotted(&mut segments)?;
        }
        loop {
            if self.eat("..") {
                segments.push(Segment::Below);
                if self.peek() == Some('[') {
                    self.bracket(&mut segments)?;
                } else {
                    self.dotted(&mut segments)?;
                }
            } else if self.eat(".") {
                if self.peek() == Some('[') {
                    self.bracket(&mut segments)?;
                } else {
                    self.dotted(&mut segments)?;
                }
            } else if self.peek() == Some('[') {
                self.bracket(&mut segments)?;
            } else {
                break;
            }
            if let [.., Segment::Function(_)] = segments.as_slice() {
                break;
            }
        }
        Ok(segments)
    }

    fn dotted(&mut self, segments: &mut Vec<Segment>) -> Parsed<()> {
        if self.eat("*") {
            segments.push(Segment::Every);
            return Ok(());
        }
        // A condition ends a name sooner than a path alone does.
        let inside = self.depth > 0;
        let name = self.take_while(|c| {
            let ends = match c {
                '.' | '[' | ']' | '(' | ')' | '\'' | '"' => true,
                '=' | '!' | '<' | '>' | '&' | '|' | ',' => inside,
                c => c.is_whitespace(),
            };
            !ends
        });
        if name.is_empty() {
            return self.refuse("expected a name");
        }
        if self.eat("(") {
            let argument = self.take_while(|c| c == '-' || c.is_ascii_digit());
            if !self.eat(")") {
                return self.refuse("expected `)`");
            }
            let Some(function) = Function::named(name, argument) else {
                return self.refuse("there is no such function");
            };
            segments.push(Segment::Function(function));
        } else {
            segments.push(Segment::Child(name.into()));
        }
        Ok(())
    }

    fn bracket(&mut self, segments: &mut Vec<Segment>) -> Parsed<()> {
        self.expect("[", "expected `[`")?;
        self.space();
        match self.peek() {
            Some('*') => {
                self.expect("*", "expected `*`")?;
                segments.push(Segment::Every);
            }
            Some('\'' | '"') => segments.push(self.names()?),
            Some('?') => {
                self.expect("?", "expected `?`")?;
                self.space();
                self.expect("(", "expected `(` of a filter")?;
                let filter = self.any()?;
                self.space();
                self.expect(")", "expected `)` of a filter")?;
                segments.push(Segment::Filter(Box::new(filter)));
            }
            Some(_) | None => segments.push(self.indexes()?),
        }
        self.space();
        self.expect("]", "expected `]`")
    }

    fn names(&mut self) -> Parsed<Segment> {
        let first = self.quoted()?;
        let mut names = vec![first.into_boxed_str()];
        while self.eat_spaced(",") {
            self.space();
            names.push(self.quoted()?.into_boxed_str());
        }
        match <[Box<str>; 1]>::try_from(names) {
            Ok([name]) => Ok(Segment::Child(name)),
            Err(names) => Ok(Segment::Children(names)),
        }
    }

    fn indexes(&mut self) -> Parsed<Segment> {
        let from = self.integer()?;
        if self.eat_spaced(":") {
            let to = self.integer()?;
            return Ok(Segment::Slice(from, to));
        }
        let Some(first) = from else { return self.refuse("expected an index") };
        let mut indexes = vec![first];
        while self.eat_spaced(",") {
            match self.integer()? {
                Some(index) => indexes.push(index),
                None => return self.refuse("expected an index"),
            }
        }
        if indexes.len() == 1 { Ok(Segment::Index(first)) } else { Ok(Segment::Indexes(indexes)) }
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        self.space();
        let digits = self.take_while(|c| c == '-' || c.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(index) => Ok(Some(index)),
            Err(_) => self.refuse("expected an index"),
        }
    }

    fn any(&mut self) -> Parsed<Filter> {
        let mut filters = vec![self.all()?];
        while self.eat_spaced("||") {
            filters.push(self.all()?);
        }
        Ok(Filter::Any(filters))
    }

    fn all(&mut self) -> Parsed<Filter> {
        let mut filters = vec![self.condition()?];
        while self.eat_spaced("&&") {
            filters.push(self.condition()?);
        }
        Ok(Filter::All(filters))
    }

    fn condition(&mut self) -> Parsed<Filter> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.refuse("the filter nests too deeply");
        }
        self.space();
        let filter = if self.eat("!") {
            Filter::Not(Box::new(self.condition()?))
        } else if self.eat("(") {
            let filter = self.any()?;
            self.space();
            self.expect(")", "expected `)`")?;
            filter
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(filter)
    }

    fn comparison(&mut self) -> Parsed<Filter> {
        let left = self.operand()?;
        self.space();
        let Some(comparison) = self.operator()? else {
            return match left {
                Operand::Path(segments) => Ok(Filter::Exists(segments)),
                Operand::Literal(_) | Operand::Pattern(_) => self.refuse("expected an operator"),
            };
        };
        self.space();
        let right = self.operand()?;
        let fits = match comparison {
            Comparison::Matches => matches!(right, Operand::Pattern(_)),
            Comparison::Same
            | Comparison::Equal
            | Comparison::NotSame
            | Comparison::NotEqual
            | Comparison::Less
            | Comparison::AtMost
            | Comparison::More
            | Comparison::AtLeast
            | Comparison::In
            | Comparison::NotIn
            | Comparison::Contains
            | Comparison::Size
            | Comparison::Empty => !matches!(right, Operand::Pattern(_)),
        };
        if !fits || matches!(left, Operand::Pattern(_)) {
            return self.refuse("a pattern stands behind `=~` and nowhere else");
        }
        Ok(Filter::Compare(left, comparison, right))
    }

    fn operator(&mut self) -> Parsed<Option<Comparison>> {
        for (text, comparison) in Comparison::ALL {
            let word = text.starts_with(|c: char| c.is_ascii_alphabetic());
            let rest = self.rest();
            let Some(head) = rest.get(..text.len()) else { continue };
            let behind = rest.get(text.len()..).unwrap_or_default();
            let ends = !word || !behind.starts_with(|c: char| c.is_ascii_alphanumeric());
            if head.eq_ignore_ascii_case(text) && ends {
                self.at += text.len();
                return Ok(Some(*comparison));
            }
        }
        Ok(None)
    }

    fn operand(&mut self) -> Parsed<Operand> {
        self.space();
        match self.peek() {
            Some('@') => {
                self.expect("@", "expected `@`")?;
                Ok(Operand::Path(self.segments(false)?))
            }
            Some('/') => self.pattern(),
            Some(_) | None => Ok(Operand::Literal(self.literal()?)),
        }
    }

    fn literal(&mut self) -> Parsed<Value> {
        match self.peek() {
            Some('\'' | '"') => return Ok(Value::String(self.quoted()?)),
            Some('[') => return self.list(),
            Some(_) | None => {}
        }
        let word = self
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'))
            .to_ascii_lowercase();
        match word.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            word => match serde_json::from_str::<serde_json::Number>(word) {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => self.refuse("expected a value"),
            },
        }
    }

    fn list(&mut self) -> Parsed<Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.refuse("the filter nests too deeply");
        }
        self.expect("[", "expected `[`")?;
        let mut items = Vec::new();
        self.space();
        while self.peek() != Some(']') {
            items.push(self.literal()?);
            self.space();
            if !self.eat(",") {
                break;
            }
            self.space();
        }
        self.expect("]", "expected `]`")?;
        self.depth -= 1;
        Ok(Value::Array(items))
    }

    /// `/…/i`: matches the whole of a text, as Jayway has it.
    fn pattern(&mut self) -> Parsed<Operand> {
        self.expect("/", "expected `/`")?;
        let start = self.at;
        let mut escaped = false;
        let mut end = None;
        for (offset, c) in self.rest().char_indices() {
            match c {
                '/' if !escaped => {
                    end = Some(start + offset);
                    break;
                }
                _ => escaped = c == '\\' && !escaped,
            }
        }
        let Some(end) = end else { return self.refuse("expected `/`") };
        let body = self.text.get(start..end).unwrap_or_default().replace("\\/", "/");
        self.at = end + 1;
        let flags = self.take_while(|c| matches!(c, 'i' | 'm' | 's' | 'x' | 'u'));
        let flags = if flags.is_empty() { String::new() } else { format!("(?{flags})") };
        match regex::RegexBuilder::new(&format!("{flags}^(?:{body})$"))
            .size_limit(filter_pattern_bytes())
            .build()
        {
            Ok(pattern) => Ok(Operand::Pattern(pattern)),
            Err(_) => self.refuse("the pattern is not one that is understood"),
        }
    }

    fn quoted(&mut self) -> Parsed<String> {
        let Some(quote @ ('\'' | '"')) = self.peek() else {
            return self.refuse("expected a quoted text");
        };
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                c if c == quote => {
                    self.at += offset + 1;
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        self.refuse("the quoted text does not end")
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn eat_spaced(&mut self, token: &str) -> bool {
        let found = self.rest().trim_start().starts_with(token);
        if found {
            self.space();
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, message: &'static str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { self.refuse(message) }
    }

    fn space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn refuse<T>(&self, message: &'static str) -> Parsed<T> {
        Err(PathError { position: self.at, message })
    }
}

/// How large a compiled pattern may be.
const fn filter_pattern_bytes() -> usize {
    256 * 1024
}
