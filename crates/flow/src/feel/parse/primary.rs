//! What stands alone: literals, names, brackets, and what begins with a word of its own.

use std::sync::Arc;

use super::{Parsed, Parser};
use crate::feel::ParseError;
use crate::feel::builtin;
use crate::feel::kind::Kind;
use crate::feel::node::{
    Arguments, Call, Definition, For, Items, Node, Quantifier, RangeNode, Source,
};
use crate::feel::temporal;
use crate::feel::value::Value;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed {
        self.scan.skip_space();
        match self.scan.peek() {
            Some('"') => Ok(Node::Literal(Value::text(&self.scan.string()?))),
            Some('(') => self.parenthesis(),
            Some('[') => self.bracket(),
            Some(']') => {
                self.scan.take("]");
                let start = self.nested(Parser::additive)?;
                self.range_from(start, false)
            }
            Some('{') => self.context(),
            Some('?') => {
                self.scan.take("?");
                self.inputs += 1;
                Ok(Node::Input)
            }
            Some('@') => {
                self.scan.take("@");
                let text = self.scan.string()?;
                Ok(Node::Literal(temporal::literal(&text).unwrap_or_default()))
            }
            Some(found) if found.is_ascii_digit() || found == '.' => match self.scan.number() {
                Some(number) => Ok(Node::Literal(number.map_or(Value::Null, Value::Number))),
                None => self.unexpected(),
            },
            Some(_) => self.word_or_name(),
            None => self.unexpected(),
        }
    }

    fn unexpected(&mut self) -> Parsed {
        self.scan.error(format!("expected a value and found {}", self.scan.found()))
    }

    fn word_or_name(&mut self) -> Parsed {
        if self.scan.take_word("null") {
            return Ok(Node::Literal(Value::Null));
        }
        if self.scan.take_word("true") {
            return Ok(Node::Literal(Value::Bool(true)));
        }
        if self.scan.take_word("false") {
            return Ok(Node::Literal(Value::Bool(false)));
        }
        if let Some(node) = self.builtin_call()? {
            return Ok(node);
        }
        if self.scan.sees_word("function") {
            return self.function();
        }
        if self.scan.sees_word("if") {
            return self.nested(Parser::condition);
        }
        if self.sees_iteration("for") {
            return self.nested(Parser::iteration);
        }
        if self.sees_iteration("some") {
            return self.nested(|parser| parser.quantified(Quantifier::Some));
        }
        if self.sees_iteration("every") {
            return self.nested(|parser| parser.quantified(Quantifier::Every));
        }
        let Some(name) = self.scan.name() else { return self.unexpected() };
        if self.scan.sees("(") {
            let arguments = self.arguments()?;
            let builtin = builtin::find(&name);
            self.mentions.push(Arc::clone(&name));
            return Ok(self.call(name, builtin, arguments));
        }
        self.mentions.push(Arc::clone(&name));
        Ok(Node::Name(name))
    }

    /// A call of a built-in whose name is several words, or a word reserved for something else.
    fn builtin_call(&mut self) -> Result<Option<Node>, ParseError> {
        let start = self.scan.position;
        for found in builtin::spaced_names() {
            if self.scan.take_words(found.name) {
                if self.scan.sees("(") {
                    let arguments = self.arguments()?;
                    return Ok(Some(self.call(Arc::from(found.name), Some(found), arguments)));
                }
                self.scan.position = start;
            }
        }
        Ok(None)
    }

    fn call(
        &mut self,
        name: Arc<str>,
        builtin: Option<&'static builtin::Builtin>,
        arguments: Arguments,
    ) -> Node {
        if let Arguments::Positional(nodes) = &arguments
            && let [Node::Literal(Value::Text(text))] = &**nodes
            && let Some(value) = temporal::literal_of(&name, text)
        {
            return Node::Literal(value);
        }
        Node::Call(Box::new(Call { name, builtin, arguments }))
    }

    fn sees_iteration(&mut self, word: &str) -> bool {
        let start = self.scan.position;
        let seen = self.scan.take_word(word) && self.iterator_name().is_some();
        self.scan.position = start;
        seen
    }

    /// The name before `in`; it may have spaces in it.
    fn iterator_name(&mut self) -> Option<Arc<str>> {
        let start = self.scan.position;
        if let Some(name) = self.scan.name()
            && self.scan.take_word("in")
        {
            return Some(name);
        }
        self.scan.position = start;
        let mut words = Vec::new();
        loop {
            if !words.is_empty() && self.scan.take_word("in") {
                return Some(Arc::from(words.join(" ")));
            }
            self.scan.skip_space();
            match self.scan.word() {
                Some(word) if words.len() < 16 => words.push(word),
                Some(_) | None => break,
            }
        }
        self.scan.position = start;
        None
    }

    fn condition(&mut self) -> Parsed {
        self.scan.expect_word("if")?;
        let condition = self.expression()?;
        self.scan.expect_word("then")?;
        let then = self.expression()?;
        self.scan.expect_word("else")?;
        let otherwise = self.expression()?;
        Ok(Node::If(Box::new([condition, then, otherwise])))
    }

    fn iteration(&mut self) -> Parsed {
        self.scan.expect_word("for")?;
        let sources = self.sources()?;
        self.scan.expect_word("return")?;
        let mentioned = self.mentions.len();
        let body = self.expression()?;
        let uses_partial = self.mentions.iter().skip(mentioned).any(|name| &**name == "partial");
        Ok(Node::For(Box::new(For { sources, body, uses_partial })))
    }

    fn quantified(&mut self, quantifier: Quantifier) -> Parsed {
        let word = match quantifier {
            Quantifier::Some => "some",
            Quantifier::Every => "every",
        };
        self.scan.expect_word(word)?;
        let sources = self.sources()?;
        self.scan.expect_word("satisfies")?;
        let body = self.expression()?;
        Ok(Node::Quantified(quantifier, sources, Box::new(body)))
    }

    fn sources(&mut self) -> Result<Box<[Source]>, ParseError> {
        let mut sources = Vec::new();
        loop {
            let Some(name) = self.iterator_name() else {
                return self
                    .scan
                    .error(format!("expected a name and 'in' and found {}", self.scan.found()));
            };
            let first = self.nested(Parser::additive)?;
            let items = if self.scan.take("..") {
                Items::Count(first, self.nested(Parser::additive)?)
            } else {
                Items::Of(first)
            };
            self.scan.allow(&name);
            sources.push(Source { name, items });
            if !self.scan.take(",") {
                return Ok(sources.into());
            }
        }
    }

    /// `( expression )` or a range that does not include its start.
    fn parenthesis(&mut self) -> Parsed {
        self.scan.take("(");
        let node = self.expression()?;
        if self.scan.sees("..") {
            return self.range_from(node, false);
        }
        self.scan.expect(")")?;
        Ok(node)
    }

    /// A list or a range that includes its start.
    fn bracket(&mut self) -> Parsed {
        self.scan.take("[");
        if self.scan.take("]") {
            return Ok(Node::List(Box::default()));
        }
        let first = self.expression()?;
        if self.scan.sees("..") {
            return self.range_from(first, true);
        }
        let mut items = vec![first];
        while self.scan.take(",") {
            items.push(self.expression()?);
        }
        self.scan.expect("]")?;
        Ok(Node::List(items.into()))
    }

    fn range_from(&mut self, start: Node, start_included: bool) -> Parsed {
        self.scan.expect("..")?;
        let end = self.nested(|parser| {
            parser.in_range_end = true;
            parser.additive()
        })?;
        let end_included = self.scan.take("]");
        if !end_included && !self.scan.take(")") && !self.scan.take("[") {
            let found = self.scan.found();
            return self.scan.error(format!("expected the end of the range and found {found}"));
        }
        Ok(Node::Range(Box::new(RangeNode {
            start: Some(start),
            start_included,
            end: Some(end),
            end_included,
        })))
    }

    fn context(&mut self) -> Parsed {
        self.scan.take("{");
        let mut entries: Vec<(Arc<str>, Node)> = Vec::new();
        if self.scan.take("}") {
            return Ok(Node::Context(entries.into()));
        }
        loop {
            self.scan.skip_space();
            let key = if self.scan.peek() == Some('"') {
                Arc::from(self.scan.string()?)
            } else if let Some(name) = self.scan.name_before(&[':']) {
                name
            } else {
                let found = self.scan.found();
                return self.scan.error(format!("expected a key and ':' and found {found}"));
            };
            self.scan.expect(":")?;
            let node = self.expression()?;
            self.scan.allow(&key);
            entries.push((key, node));
            if self.scan.take("}") {
                return Ok(Node::Context(entries.into()));
            }
            self.scan.expect(",")?;
        }
    }

    fn function(&mut self) -> Parsed {
        let start = self.scan.position;
        self.scan.expect_word("function")?;
        if !self.scan.take("(") {
            self.scan.position = start;
            return self.unexpected();
        }
        let mut parameters = Vec::new();
        let mut kinds = Vec::new();
        while !self.scan.take(")") {
            if !parameters.is_empty() {
                self.scan.expect(",")?;
            }
            let Some(name) = self.scan.name_before(&[',', ')', ':']) else {
                return self
                    .scan
                    .error(format!("expected a parameter and found {}", self.scan.found()));
            };
            let is_typed = self.scan.take(":");
            kinds.push(if is_typed { self.kind()? } else { Kind::Any });
            self.scan.allow(&name);
            parameters.push(name);
        }
        let mentioned = self.mentions.len();
        let is_external = self.scan.take_word("external");
        let mut body = self.expression()?;
        if is_external {
            // Foreign code is never run here; such a function answers null.
            body = Node::Literal(Value::Null);
        }
        let mut mentions: Vec<Arc<str>> = self.mentions.iter().skip(mentioned).cloned().collect();
        mentions.sort();
        mentions.dedup();
        Ok(Node::Function(Arc::new(Definition {
            parameters: parameters.into(),
            kinds: kinds.into(),
            body,
            mentions: mentions.into(),
        })))
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments, ParseError> {
        self.scan.expect("(")?;
        if self.scan.take(")") {
            return Ok(Arguments::Positional(Box::default()));
        }
        if let Some(first) = self.scan.name_before(&[':']) {
            return self.named_arguments(first);
        }
        let mut nodes = vec![self.expression()?];
        while self.scan.take(",") {
            nodes.push(self.expression()?);
        }
        self.scan.expect(")")?;
        Ok(Arguments::Positional(nodes.into()))
    }

    fn named_arguments(&mut self, first: Arc<str>) -> Result<Arguments, ParseError> {
        let mut name = first;
        let mut named = Vec::new();
        loop {
            self.scan.expect(":")?;
            named.push((name, self.expression()?));
            if self.scan.take(")") {
                return Ok(Arguments::Named(named.into()));
            }
            self.scan.expect(",")?;
            match self.scan.name_before(&[':']) {
                Some(next) => name = next,
                None => {
                    return self.scan.error(format!(
                        "expected the name of an argument and found {}",
                        self.scan.found()
                    ));
                }
            }
        }
    }
}
