//! The scanner of scripts: tokens, each with whether a line ended before it.

use std::rc::Rc;

use super::ScriptError;

/// How many template literals may lie inside one another.
const TEMPLATES_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'s> {
    Number(f64),
    String(Rc<str>),
    /// One text more than there are expressions, which stand between them.
    Template(Vec<Rc<str>>, Vec<&'s str>),
    Name(&'s str),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Placed<'s> {
    pub(super) token: Token<'s>,
    /// Behind the end of a line, where a semicolon may be left out.
    pub(super) on_new_line: bool,
}

type Scanned<T> = Result<T, ScriptError>;

/// Longer ones first.
const SIGNS: &[&str] = &[
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=",
    "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "<<", ">>", "**", "{", "}", "(", ")", "[", "]", ";", ",", "<", ">", "+", "-", "*", "/", "%",
    "&", "|", "^", "!", "~", "?", ":", "=", ".",
];

pub(super) fn scan(source: &str) -> Scanned<Vec<Placed<'_>>> {
    // Two more ways to write a comment.
    if source.contains("<!--") || source.contains("-->") {
        return Err(ScriptError::Unsupported);
    }
    let mut scanner = Scanner { source, at: 0, templates: 0 };
    let mut tokens = Vec::new();
    loop {
        let placed = scanner.next()?;
        let ends = placed.token == Token::End;
        tokens.push(placed);
        if ends {
            return Ok(tokens);
        }
    }
}

/// White space as the language has it, ends of lines among them.
pub(super) fn is_space(c: char) -> bool {
    match c {
        '\u{feff}' => true,
        '\u{85}' => false,
        c => c.is_whitespace(),
    }
}

struct Scanner<'s> {
    source: &'s str,
    at: usize,
    templates: usize,
}

impl<'s> Scanner<'s> {
    fn next(&mut self) -> Scanned<Placed<'s>> {
        let on_new_line = self.space()?;
        let Some(c) = self.peek() else { return Ok(Placed { token: Token::End, on_new_line }) };
        let digit_behind = |rest: &str| rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        let token = if c.is_ascii_digit() || (c == '.' && digit_behind(self.rest())) {
            self.number()?
        } else if is_name(c) {
            Token::Name(self.take_while(|c| is_name(c) || c.is_ascii_digit()))
        } else if matches!(c, '\'' | '"') {
            self.at += 1;
            Token::String(self.text(c)?.into())
        } else if c == '`' {
            self.at += 1;
            self.template()?
        } else {
            Token::Sign(self.sign()?)
        };
        Ok(Placed { token, on_new_line })
    }

    /// Skips space and comments; says whether a line ended.
    fn space(&mut self) -> Scanned<bool> {
        let mut new_line = false;
        loop {
            let space = self.take_while(is_space);
            new_line |= ends_line(space);
            if self.rest().starts_with("//") {
                self.take_while(|c| !matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}'));
            } else if let Some(comment) = self.rest().strip_prefix("/*") {
                let length = comment.find("*/").ok_or(ScriptError::Unsupported)?;
                new_line |= ends_line(comment.get(..length).unwrap_or_default());
                self.at += length + 4;
            } else {
                return Ok(new_line);
            }
        }
    }

    fn sign(&mut self) -> Scanned<&'static str> {
        let rest = self.rest();
        let fits = |sign: &&&str| {
            // `a?.5:b` is a conditional.
            let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
            rest.strip_prefix(**sign).is_some_and(|behind| **sign != "?." || !digit(behind))
        };
        let sign = SIGNS.iter().find(fits).ok_or(ScriptError::Unsupported)?;
        self.at += sign.len();
        Ok(sign)
    }

    fn number(&mut self) -> Scanned<Token<'s>> {
        let rest = self.rest();
        let lower = rest.get(..2).unwrap_or_default().to_ascii_lowercase();
        let number = match lower.as_str() {
            "0x" => self.radix(16)?,
            "0o" => self.radix(8)?,
            "0b" => self.radix(2)?,
            _ => {
                let start = self.at;
                let whole = self.take_while(|c| c.is_ascii_digit());
                // Octal, or not, depending on its digits.
                if whole.len() > 1 && whole.starts_with('0') {
                    return Err(ScriptError::Unsupported);
                }
                if self.eat('.') {
                    self.take_while(|c| c.is_ascii_digit());
                }
                if self.eat('e') || self.eat('E') {
                    if !self.eat('+') {
                        self.eat('-');
                    }
                    if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                        return Err(ScriptError::Unsupported);
                    }
                }
                let digits = self.source.get(start..self.at).unwrap_or_default();
                digits.parse().map_err(|_| ScriptError::Unsupported)?
            }
        };
        // `1n`, `1_000`, `3in`.
        match self.peek() {
            Some(c) if is_name(c) || c.is_ascii_digit() => Err(ScriptError::Unsupported),
            Some(_) | None => Ok(Token::Number(number)),
        }
    }

    fn radix(&mut self, radix: u32) -> Scanned<f64> {
        self.at += 2;
        let digits = self.take_while(|c| c.is_digit(radix));
        let number = u32::from_str_radix(digits, radix).map_err(|_| ScriptError::Unsupported)?;
        Ok(number.into())
    }

    fn text(&mut self, quote: char) -> Scanned<String> {
        let mut text = String::new();
        loop {
            match self.pop()? {
                c if c == quote => return Ok(text),
                '\\' => self.escape(&mut text)?,
                '\n' | '\r' => return Err(ScriptError::Unsupported),
                c => text.push(c),
            }
        }
    }

    fn template(&mut self) -> Scanned<Token<'s>> {
        self.templates += 1;
        if self.templates > TEMPLATES_MAX {
            return Err(ScriptError::Unsupported);
        }
        let (mut texts, mut expressions) = (Vec::new(), Vec::new());
        let mut text = String::new();
        loop {
            match self.pop()? {
                '`' => break,
                '\\' => self.escape(&mut text)?,
                '\r' => return Err(ScriptError::Unsupported),
                '$' if self.eat('{') => {
                    texts.push(std::mem::take(&mut text).into());
                    expressions.push(self.inside()?);
                }
                c => text.push(c),
            }
        }
        texts.push(text.into());
        self.templates -= 1;
        Ok(Token::Template(texts, expressions))
    }

    /// The source up to the brace that ends an expression of a template.
    fn inside(&mut self) -> Scanned<&'s str> {
        let start = self.at;
        let mut open = 0_u32;
        loop {
            let placed = self.next()?;
            match placed.token {
                Token::Sign("{") => open += 1,
                Token::Sign("}") if open == 0 => {
                    return Ok(self.source.get(start..self.at - 1).unwrap_or_default());
                }
                Token::Sign("}") => open -= 1,
                Token::End => return Err(ScriptError::Unsupported),
                Token::Number(_)
                | Token::String(_)
                | Token::Template(..)
                | Token::Name(_)
                | Token::Sign(_) => {}
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Scanned<()> {
        let c = match self.pop()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            'x' => self.code(2)?,
            'u' => self.unicode()?,
            '\n' => return Ok(()),
            c if c.is_ascii_digit() || c == '\r' || !c.is_ascii() => {
                return Err(ScriptError::Unsupported);
            }
            c => c,
        };
        text.push(c);
        Ok(())
    }

    fn unicode(&mut self) -> Scanned<char> {
        if self.eat('{') {
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16).map_err(|_| ScriptError::Unsupported)?;
            let ends = self.eat('}');
            return char::from_u32(code).filter(|_| ends).ok_or(ScriptError::Unsupported);
        }
        // Halves of pairs are left to others.
        self.code(4)
    }

    fn code(&mut self, digits: usize) -> Scanned<char> {
        let text = self.rest().get(..digits).unwrap_or_default();
        if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ScriptError::Unsupported);
        }
        self.at += digits;
        let code = u32::from_str_radix(text, 16).map_err(|_| ScriptError::Unsupported)?;
        char::from_u32(code).ok_or(ScriptError::Unsupported)
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn pop(&mut self) -> Scanned<char> {
        let c = self.peek().ok_or(ScriptError::Unsupported)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'s str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$')
}

fn ends_line(space: &str) -> bool {
    space.contains(['\n', '\r', '\u{2028}', '\u{2029}'])
}
