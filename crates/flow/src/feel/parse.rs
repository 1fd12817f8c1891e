//! The parser: one function per rank of the grammar, from the loosest to the tightest.
//!
//! It goes back in two places only (a `[` behind the end of a range, which may close the range or
//! open a filter), and counts its work, so that no text makes it slow.

mod kind;
mod primary;

use std::sync::Arc;

use super::ParseError;
use super::node::{Comparison, Node, Operator, RangeNode, Step, Test};
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
    /// How deeply the kinds named so far are nested.
    kind_depth: u32,
}

type Parsed = Result<Node, ParseError>;

impl<'a> Parser<'a> {
    pub(crate) fn new(scan: Scanner<'a>) -> Parser<'a> {
        let tries_left = scan.rest().len().saturating_mul(TRIES_PER_BYTE).saturating_add(1_000);
        Parser {
            scan,
            depth: 0,
            tries_left,
            mentions: Vec::new(),
            inputs: 0,
            in_range_end: false,
            kind_depth: 0,
        }
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
}
