//! The parser: one function per rank of the grammar, from the loosest to the tightest.
//!
//! It goes back in two places only (a `[` behind the end of a range, which may close the range or
//! open a filter), and counts its work, so that no text makes it slow.

use std::sync::Arc;

use super::ParseError;
use super::builtin;
use super::kind::Kind;
use super::node::{
    Arguments, Call, Comparison, Definition, For, Items, Node, Operator, Quantifier, RangeNode,
    Source, Step, Test,
};
use super::scan::Scanner;
use super::value::Value;

/// How deeply expressions may lie inside one another.
const DEPTH_MAX: u32 = 64;

/// How many expressions may be tried, per byte of the text and at least.
const TRIES_PER_BYTE: usize = 16;

/// A parser of one text.
pub(crate) struct Parser<'a> {
    pub(crate) scan: Scanner<'a>,
    depth: u32,
    tries_left: usize,
    /// Every name mentioned so far, for the functions that have to keep what they mention.
    mentions: Vec<Arc<str>>,
    /// How many `?` were seen.
    inputs: usize,
    /// Whether the end of a range is being read, where `[` may close it.
    in_range_end: bool,
}

type Parsed = Result<Node, ParseError>;

impl<'a> Parser<'a> {
    pub(crate) fn new(scan: Scanner<'a>) -> Parser<'a> {
        let tries_left = scan.rest().len().saturating_mul(TRIES_PER_BYTE).saturating_add(1_000);
        Parser { scan, depth: 0, tries_left, mentions: Vec::new(), inputs: 0, in_range_end: false }
    }

    /// One expression and nothing behind it.
    pub(crate) fn whole(mut self) -> Parsed {
        let node = self.expression()?;
        self.end()?;
        Ok(node)
    }

    /// The tests of a cell: whether they are negated, and the tests; none means any input.
    pub(crate) fn whole_tests(mut self) -> Result<(bool, Vec<Test>), ParseError> {
        let start = self.scan.position;
        if self.scan.take("-") && self.scan.at_end() {
            return Ok((false, Vec::new()));
        }
        self.scan.position = start;
        if self.scan.take_word("not") && self.scan.take("(") {
            let tests = self.tests();
            if let Ok(tests) = tests
                && self.scan.take(")")
                && self.scan.at_end()
            {
                return Ok((true, tests));
            }
        }
        self.scan.position = start;
        let tests = self.tests()?;
        self.end()?;
        Ok((false, tests))
    }

    /// The name of a kind of values and nothing behind it.
    pub(crate) fn whole_kind(mut self) -> Result<Kind, ParseError> {
        let kind = self.kind()?;
        self.end()?;
        Ok(kind)
    }

    fn end(&mut self) -> Result<(), ParseError> {
        if self.scan.at_end() {
            return Ok(());
        }
        self.scan.error(format!("expected an operator or the end and found {}", self.scan.found()))
    }

    fn tests(&mut self) -> Result<Vec<Test>, ParseError> {
        let mut tests = vec![self.test()?];
        while self.scan.take(",") {
            tests.push(self.test()?);
        }
        Ok(tests)
    }

    fn test(&mut self) -> Result<Test, ParseError> {
        let inputs = self.inputs;
        if let Some(comparison) = self.comparison_sign() {
            return Ok(Test::Compare(comparison, self.additive()?));
        }
        let node = self.expression()?;
        Ok(if self.inputs > inputs { Test::Condition(node) } else { Test::Value(node) })
    }

    /// Any expression.
    fn expression(&mut self) -> Parsed {
        self.nested(Parser::disjunction)
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth >= DEPTH_MAX {
            return self.scan.error("expressions lie too deeply inside one another");
        }
        if self.tries_left == 0 {
            return self.scan.error("the expression is too tangled");
        }
        self.tries_left -= 1;
        self.depth += 1;
        let in_range_end = std::mem::replace(&mut self.in_range_end, false);
        let result = parse(self);
        self.in_range_end = in_range_end;
        self.depth -= 1;
        result
    }

    fn disjunction(&mut self) -> Parsed {
        let first = self.conjunction()?;
        if !self.scan.sees_word("or") {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.scan.take_word("or") {
            nodes.push(self.conjunction()?);
        }
        Ok(Node::Any(nodes.into()))
    }

    fn conjunction(&mut self) -> Parsed {
        let first = self.comparison()?;
        if !self.scan.sees_word("and") {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.scan.take_word("and") {
            nodes.push(self.comparison()?);
        }
        Ok(Node::All(nodes.into()))
    }

    fn comparison(&mut self) -> Parsed {
        if let Some(comparison) = self.comparison_sign() {
            let end = self.additive()?;
            return self.half_range(comparison, end);
        }
        let left = self.additive()?;
        if let Some(comparison) = self.comparison_sign() {
            let right = self.additive()?;
            return Ok(Node::Compare(comparison, Box::new((left, right))));
        }
        if self.scan.take_word("between") {
            let low = self.additive()?;
            self.scan.expect_word("and")?;
            let high = self.additive()?;
            return Ok(Node::Between(Box::new([left, low, high])));
        }
        if self.scan.take_words("instance of") {
            return Ok(Node::InstanceOf(Box::new(left), self.kind()?));
        }
        if self.scan.take_word("in") {
            return self.inclusion(left);
        }
        Ok(left)
    }

    fn comparison_sign(&mut self) -> Option<Comparison> {
        let signs = [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("!=", Comparison::NotEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        signs.into_iter().find(|(sign, _)| self.scan.take(sign)).map(|(_, comparison)| comparison)
    }

    /// A comparison without a left side is a range that is open on the other side.
    fn half_range(&mut self, comparison: Comparison, end: Node) -> Parsed {
        let included = matches!(comparison, Comparison::LessOrEqual | Comparison::GreaterOrEqual);
        let (start, end) = match comparison {
            Comparison::Less | Comparison::LessOrEqual => (None, Some(end)),
            Comparison::Greater | Comparison::GreaterOrEqual => (Some(end), None),
            Comparison::Equal | Comparison::NotEqual => {
                return self.scan.error("'=' and '!=' need a left side");
            }
        };
        Ok(Node::Range(Box::new(RangeNode {
            start_included: included && start.is_some(),
            end_included: included && end.is_some(),
            start,
            end,
        })))
    }

    fn inclusion(&mut self, left: Node) -> Parsed {
        let start = self.scan.position;
        let inputs = self.inputs;
        if self.scan.take("(") {
            let tests = self.nested_tests()?;
            if self.scan.take(")") {
                self.inputs = inputs;
                return Ok(Node::In(Box::new(left), tests.into()));
            }
            // It was the start of a range, such as (1..5].
            self.scan.position = start;
        }
        self.inputs = inputs;
        let comparison = self.comparison_sign();
        let mut node = self.additive()?;
        if comparison.is_none()
            && self.inputs > inputs
            && let Some(comparison) = self.comparison_sign()
        {
            node = Node::Compare(comparison, Box::new((node, self.additive()?)));
        }
        let test = match comparison {
            Some(comparison) => Test::Compare(comparison, node),
            None if self.inputs > inputs => Test::Condition(node),
            None => Test::Value(node),
        };
        self.inputs = inputs;
        Ok(Node::In(Box::new(left), Box::new([test])))
    }

    fn nested_tests(&mut self) -> Result<Vec<Test>, ParseError> {
        let mut tests = Vec::new();
        self.nested(|parser| {
            tests = parser.tests()?;
            Ok(Node::Input)
        })?;
        Ok(tests)
    }

    fn additive(&mut self) -> Parsed {
        let signs = [("+", Operator::Add), ("-", Operator::Subtract)];
        self.chain(&signs, Parser::multiplicative)
    }

    fn multiplicative(&mut self) -> Parsed {
        let signs = [("*", Operator::Multiply), ("/", Operator::Divide)];
        self.chain(&signs, Parser::power)
    }

    fn power(&mut self) -> Parsed {
        self.chain(&[("**", Operator::Power)], Parser::negation)
    }

    fn chain(
        &mut self,
        signs: &[(&str, Operator)],
        operand: impl Fn(&mut Self) -> Parsed,
    ) -> Parsed {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator(signs) {
            rest.push((operator, operand(self)?));
        }
        if rest.is_empty() { Ok(first) } else { Ok(Node::Chain(Box::new(first), rest.into())) }
    }

    fn operator(&mut self, signs: &[(&str, Operator)]) -> Option<Operator> {
        let found = signs.iter().find(|(sign, _)| self.scan.sees(sign))?;
        if found.1 == Operator::Multiply && self.scan.sees("**") {
            return None;
        }
        self.scan.take(found.0);
        Some(found.1)
    }

    fn negation(&mut self) -> Parsed {
        let mut signs = 0_u32;
        while self.scan.take("-") {
            signs += 1;
            if signs > DEPTH_MAX {
                return self.scan.error("too many signs");
            }
        }
        let mut node = self.postfix()?;
        for _ in 0..signs {
            node = if let Node::Literal(Value::Number(number)) = node {
                Node::Literal(Value::Number(-number))
            } else {
                Node::Negate(Box::new(node))
            };
        }
        Ok(node)
    }

    fn postfix(&mut self) -> Parsed {
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.scan.sees(".") && !self.scan.sees("..") {
                self.scan.take(".");
                steps.push(Step::Property(self.property()?));
            } else if self.scan.sees("[") {
                let Some(step) = self.filter()? else { break };
                steps.push(step);
            } else if self.scan.sees("(") {
                steps.push(Step::Call(self.arguments()?));
            } else {
                break;
            }
        }
        if steps.is_empty() { Ok(base) } else { Ok(Node::Postfix(Box::new(base), steps.into())) }
    }

    fn property(&mut self) -> Result<Arc<str>, ParseError> {
        if self.scan.take_words("time offset") {
            return Ok(Arc::from("time offset"));
        }
        let found = self.scan.name().or_else(|| self.scan.word().map(Arc::from));
        match found {
            Some(name) => Ok(name),
            None => self.scan.error(format!("expected a name and found {}", self.scan.found())),
        }
    }

    /// `[...]` behind a value; `None` if it closes a range instead.
    fn filter(&mut self) -> Result<Option<Step>, ParseError> {
        let start = self.scan.position;
        let may_close = self.in_range_end;
        self.scan.take("[");
        let closed = self.expression().and_then(|node| self.scan.expect("]").map(|()| node));
        match closed {
            Ok(node) => Ok(Some(Step::Filter(node))),
            Err(error) if !may_close || self.tries_left == 0 => Err(error),
            Err(_) => {
                self.scan.position = start;
                Ok(None)
            }
        }
    }

    fn primary(&mut self) -> Parsed {
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
                Ok(Node::Literal(super::temporal::literal(&text).unwrap_or_default()))
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
        // A function of the author whose name is several words, as feel-scala finds it: words up
        // to a parenthesis that are no keyword.
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
            && let Some(value) = super::temporal::literal_of(&name, text)
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

    fn arguments(&mut self) -> Result<Arguments, ParseError> {
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

    /// The name of a kind of values.
    fn kind(&mut self) -> Result<Kind, ParseError> {
        let mut kind = None;
        self.nested(|parser| {
            kind = Some(parser.kind_inside()?);
            Ok(Node::Input)
        })?;
        Ok(kind.unwrap_or(Kind::Any))
    }

    fn kind_inside(&mut self) -> Result<Kind, ParseError> {
        let spaced = ["years and months duration", "days and time duration", "date and time"];
        if let Some(words) = spaced.into_iter().find(|words| self.scan.take_words(words)) {
            return Ok(Kind::named(words));
        }
        self.scan.skip_space();
        let Some(word) = self.scan.name().or_else(|| self.scan.word().map(Arc::from)) else {
            return self.scan.error(format!("expected a type and found {}", self.scan.found()));
        };
        let mut word = word.to_string();
        while word != "list" && (self.scan.sees(".") || self.scan.sees("-")) {
            // Qualified names, and the hyphenated names of durations in older models.
            let separator = if self.scan.take(".") { "." } else { "-" };
            if separator == "-" {
                self.scan.take("-");
            }
            let Some(next) = self.scan.word() else {
                return self.scan.error(format!("expected a name and found {}", self.scan.found()));
            };
            word = format!("{word}{separator}{next}");
        }
        match word.as_str() {
            "list" if self.scan.take("<") => {
                let inner = self.kind()?;
                self.scan.expect(">")?;
                Ok(Kind::List(Box::new(inner)))
            }
            "range" if self.scan.take("<") => {
                let inner = self.kind()?;
                self.scan.expect(">")?;
                Ok(Kind::Range(Box::new(inner)))
            }
            "context" if self.scan.take("<") => self.kind_of_context(),
            "function" if self.scan.take("<") => self.kind_of_function(),
            other => Ok(self.scan.kind_named(other)),
        }
    }

    fn kind_of_context(&mut self) -> Result<Kind, ParseError> {
        let mut entries = Vec::new();
        loop {
            let Some(name) = self.scan.name_before(&[':']) else {
                return self.scan.error(format!("expected a key and found {}", self.scan.found()));
            };
            self.scan.expect(":")?;
            entries.push((name, self.kind()?));
            if self.scan.take(">") {
                return Ok(Kind::Context(entries.into()));
            }
            self.scan.expect(",")?;
        }
    }

    fn kind_of_function(&mut self) -> Result<Kind, ParseError> {
        while !self.scan.take(">") {
            self.kind()?;
            self.scan.take(",");
        }
        self.scan.expect("->")?;
        self.kind()?;
        Ok(Kind::Function)
    }
}
