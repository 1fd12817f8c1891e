//! Expressions, by climbing over their operators.

use std::rc::Rc;

use super::super::ScriptError;
use super::super::scan::Token;
use super::super::tree::{
    Binary, Block, Body, Call, Field, Function, Item, Key, Member, Name, Node, Statement, Step,
    Target, Unary,
};
use super::{DEPTH_MAX, Parsed, Parser, RESERVED};

/// How an operator between two expressions combines them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Infix {
    Coalesce,
    Or,
    And,
    Binary(Binary),
}

/// How strongly `**` binds; it is the only one that groups to the right.
const POWER: u8 = 12;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Node> {
        let first = self.assignment()?;
        if *self.token() != Token::Sign(",") {
            return Ok(first);
        }
        let mut height = self.height;
        let mut nodes = vec![first];
        while self.eat(",") {
            nodes.push(self.assignment()?);
            height = height.max(self.height);
        }
        self.raise(height)?;
        Ok(Node::Sequence(nodes))
    }

    pub(super) fn in_parentheses(&mut self) -> Parsed<Node> {
        self.expect("(")?;
        let node = self.expression()?;
        self.expect(")")?;
        Ok(node)
    }

    pub(super) fn assignment(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ScriptError::Unsupported);
        }
        let node = if self.is_arrow() { self.arrow()? } else { self.assigned()? };
        self.depth -= 1;
        Ok(node)
    }

    fn assigned(&mut self) -> Parsed<Node> {
        let left = self.conditional()?;
        let operator = match self.token() {
            Token::Sign("=") => None,
            Token::Sign("+=") => Some(Binary::Add),
            Token::Sign("-=") => Some(Binary::Subtract),
            Token::Sign("*=") => Some(Binary::Multiply),
            Token::Sign("/=") => Some(Binary::Divide),
            Token::Sign("%=") => Some(Binary::Remainder),
            Token::Sign("**=") => Some(Binary::Power),
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Name(_)
            | Token::Sign(_)
            | Token::End => return Ok(left),
        };
        let target = target(left)?;
        let height = self.height;
        self.advance();
        let value = self.assignment()?;
        self.raise(height.max(self.height))?;
        Ok(Node::Assign(Box::new(target), operator, Box::new(value)))
    }

    fn conditional(&mut self) -> Parsed<Node> {
        let condition = self.binary(1)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let mut height = self.height;
        let then = self.assignment()?;
        height = height.max(self.height);
        self.expect(":")?;
        let otherwise = self.assignment()?;
        self.raise(height.max(self.height))?;
        Ok(Node::Conditional(Box::new((condition, then, otherwise))))
    }

    /// Operators that bind at least as strongly as `strength`.
    fn binary(&mut self, strength: u8) -> Parsed<Node> {
        let mut left = self.unary()?;
        // `??` does not stand beside `||` and `&&` without parentheses.
        let mut seen = None;
        while let Some((infix, binds)) = infix(self.token()) {
            if binds < strength {
                break;
            }
            let coalesces = infix == Infix::Coalesce;
            if matches!(infix, Infix::Coalesce | Infix::Or | Infix::And) {
                if seen.is_some_and(|seen| seen != coalesces) {
                    return Err(ScriptError::Unsupported);
                }
                seen = Some(coalesces);
            }
            let height = self.height;
            self.advance();
            let next = if binds == POWER { POWER } else { binds + 1 };
            let start = self.at;
            let right = self.deeper(|parser| parser.binary(next))?;
            if coalesces && self.mixes(start) {
                return Err(ScriptError::Unsupported);
            }
            self.raise(height.max(self.height))?;
            let sides = Box::new((left, right));
            left = match infix {
                Infix::Coalesce => Node::Coalesce(sides),
                Infix::Or => Node::Or(sides),
                Infix::And => Node::And(sides),
                Infix::Binary(binary) => Node::Binary(binary, sides),
            };
        }
        Ok(left)
    }

    /// Whether `||` or `&&` stands outside of brackets between `start` and here.
    fn mixes(&self, start: usize) -> bool {
        let mut open = 0_i32;
        let tokens = self.tokens.get(start..self.at).unwrap_or_default();
        tokens.iter().any(|placed| {
            match placed.token {
                Token::Sign("(" | "[" | "{") => open += 1,
                Token::Sign(")" | "]" | "}") => open -= 1,
                Token::Sign("||" | "&&") if open == 0 => return true,
                Token::Number(_)
                | Token::String(_)
                | Token::Template(..)
                | Token::Name(_)
                | Token::Sign(_)
                | Token::End => {}
            }
            false
        })
    }

    fn unary(&mut self) -> Parsed<Node> {
        let operator = match self.token() {
            Token::Sign("!") => Unary::Not,
            Token::Sign("-") => Unary::Minus,
            Token::Sign("+") => Unary::Plus,
            Token::Sign("~") => Unary::Invert,
            Token::Name("typeof") => Unary::TypeOf,
            Token::Name("void") => Unary::Void,
            Token::Sign("++") => return self.step_before(1.0),
            Token::Sign("--") => return self.step_before(-1.0),
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Name(_)
            | Token::Sign(_)
            | Token::End => return self.postfix(),
        };
        self.advance();
        let node = self.deeper(Self::unary)?;
        // `-a ** b` is an error, to make people say what they mean.
        if *self.token() == Token::Sign("**") {
            return Err(ScriptError::Unsupported);
        }
        self.raise(self.height)?;
        Ok(Node::Unary(operator, Box::new(node)))
    }

    fn step_before(&mut self, by: f64) -> Parsed<Node> {
        self.advance();
        let target = target(self.deeper(Self::unary)?)?;
        self.raise(self.height)?;
        Ok(Node::Step(Box::new(Step { target, by, before: true })))
    }

    fn postfix(&mut self) -> Parsed<Node> {
        let node = self.chain()?;
        let by = match self.token() {
            Token::Sign("++") => 1.0,
            Token::Sign("--") => -1.0,
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Name(_)
            | Token::Sign(_)
            | Token::End => return Ok(node),
        };
        if self.on_new_line() {
            return Ok(node);
        }
        self.advance();
        let target = target(node)?;
        self.raise(self.height)?;
        Ok(Node::Step(Box::new(Step { target, by, before: false })))
    }

    /// Members and calls, one behind the other.
    fn chain(&mut self) -> Parsed<Node> {
        let mut node = self.primary()?;
        let mut cut_short = false;
        loop {
            let height = self.height;
            let optional = self.eat("?.");
            cut_short |= optional;
            if *self.token() == Token::Sign("(") {
                let arguments = self.items("(", ")")?;
                node = Node::Call(Box::new(Call { callee: node, arguments, optional }));
            } else if self.eat("[") {
                let key = Key::Computed(self.expression()?);
                self.expect("]")?;
                node = Node::Member(Box::new(Member { object: node, key, optional }));
            } else if optional || self.eat(".") {
                let key = Key::Named(self.property()?);
                node = Node::Member(Box::new(Member { object: node, key, optional }));
                self.height = 0;
            } else {
                // A template with a tag before it.
                if matches!(self.token(), Token::Template(..)) && !self.on_new_line() {
                    return Err(ScriptError::Unsupported);
                }
                break;
            }
            self.raise(height.max(self.height))?;
        }
        Ok(if cut_short { Node::Chain(Box::new(node)) } else { node })
    }

    fn property(&mut self) -> Parsed<Name> {
        let Token::Name(name) = self.token() else { return Err(ScriptError::Unsupported) };
        let name = Name::from(*name);
        self.advance();
        Ok(name)
    }

    fn primary(&mut self) -> Parsed<Node> {
        self.height = 1;
        let node = match self.token().clone() {
            Token::Number(number) => Node::Number(number),
            Token::String(text) => Node::String(text),
            Token::Template(texts, sources) => self.template(texts, &sources)?,
            Token::Sign("(") => return self.in_parentheses(),
            Token::Sign("[") => return self.items("[", "]").map(Node::List),
            Token::Sign("{") => return self.object(),
            Token::Name("function") => return self.function_expression(),
            Token::Name("null") => Node::Null,
            Token::Name("true") => Node::Bool(true),
            Token::Name("false") => Node::Bool(false),
            Token::Name("undefined") => Node::Undefined,
            Token::Name(name) if !RESERVED.contains(&name) => Node::Name(name.into()),
            Token::Name(_) | Token::Sign(_) | Token::End => return Err(ScriptError::Unsupported),
        };
        self.advance();
        Ok(node)
    }

    fn template(&mut self, texts: Vec<Rc<str>>, sources: &[&str]) -> Parsed<Node> {
        let mut nodes = Vec::new();
        let mut height = 0;
        for source in sources {
            let mut parser = Parser::new(source, self.depth + 1)?;
            nodes.push(parser.expression()?);
            // What declares in there would have to be known out here; only functions can.
            if *parser.token() != Token::End {
                return Err(ScriptError::Unsupported);
            }
            height = height.max(parser.height);
        }
        self.raise(height)?;
        Ok(Node::Template(texts, nodes))
    }

    /// Expressions between brackets.
    fn items(&mut self, open: &'static str, close: &'static str) -> Parsed<Vec<Item>> {
        self.expect(open)?;
        let mut items = Vec::new();
        let mut height = 0;
        while !self.eat(close) {
            let spread = self.eat("...");
            let node = self.assignment()?;
            height = height.max(self.height);
            items.push(if spread { Item::Spread(node) } else { Item::One(node) });
            if !self.eat(",") {
                self.expect(close)?;
                break;
            }
        }
        self.raise(height)?;
        Ok(items)
    }

    fn object(&mut self) -> Parsed<Node> {
        self.expect("{")?;
        let mut fields = Vec::new();
        let mut height = 0;
        while !self.eat("}") {
            fields.push(self.field()?);
            height = height.max(self.height);
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        self.raise(height)?;
        Ok(Node::Object(fields))
    }

    fn field(&mut self) -> Parsed<Field> {
        if self.eat("...") {
            return self.assignment().map(Field::Spread);
        }
        if self.eat("[") {
            let name = self.assignment()?;
            let height = self.height;
            self.expect("]")?;
            self.expect(":")?;
            let value = self.assignment()?;
            self.height = height.max(self.height);
            return Ok(Field::Computed(name, value));
        }
        let token = self.token().clone();
        self.advance();
        let name = match token {
            Token::Name(name) => {
                let bare = matches!(self.token(), Token::Sign("," | "}"));
                if bare && !RESERVED.contains(&name) {
                    self.height = 1;
                    let value =
                        if name == "undefined" { Node::Undefined } else { Node::Name(name.into()) };
                    return Ok(Field::Named(name.into(), value));
                }
                Name::from(name)
            }
            Token::String(text) => text,
            Token::Number(number) => super::super::coerce::number_text(number).into(),
            Token::Template(..) | Token::Sign(_) | Token::End => {
                return Err(ScriptError::Unsupported);
            }
        };
        // It would set what the object inherits from.
        if &*name == "__proto__" {
            return Err(ScriptError::Unsupported);
        }
        self.expect(":")?;
        Ok(Field::Named(name, self.assignment()?))
    }

    fn function_expression(&mut self) -> Parsed<Node> {
        self.advance();
        let named = matches!(self.token(), Token::Name(_));
        let name = if named { Some(self.binding()?) } else { None };
        let function = self.function(name, true)?;
        self.raise(self.height)?;
        Ok(Node::Function(Rc::new(function)))
    }

    /// Whether the parameters of an arrow function come next.
    fn is_arrow(&self) -> bool {
        match self.token() {
            Token::Name(_) => self.token_behind(1) == Some(&Token::Sign("=>")),
            Token::Sign("(") => {
                // Parameters are names and commas.
                let mut distance = 1;
                while let Some(Token::Name(_) | Token::Sign(",")) = self.token_behind(distance) {
                    distance += 1;
                }
                self.token_behind(distance) == Some(&Token::Sign(")"))
                    && self.token_behind(distance + 1) == Some(&Token::Sign("=>"))
            }
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Sign(_)
            | Token::End => false,
        }
    }

    fn arrow(&mut self) -> Parsed<Node> {
        let parameters = if *self.token() == Token::Sign("(") {
            self.parameters()?
        } else {
            vec![self.binding()?]
        };
        if self.on_new_line() {
            return Err(ScriptError::Unsupported);
        }
        self.expect("=>")?;
        let body = if *self.token() == Token::Sign("{") {
            self.function_body()?
        } else {
            let value = self.assignment()?;
            let statements = vec![Statement::Return(Some(value))];
            Body { statements: Block { statements, ..Block::default() }, ..Body::default() }
        };
        self.raise(self.height)?;
        let function = Function { name: None, parameters, body, is_expression: true };
        Ok(Node::Function(Rc::new(function)))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ScriptError::Unsupported);
        }
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }
}

/// What can be assigned to.
fn target(node: Node) -> Parsed<Target> {
    match node {
        Node::Name(name) => Ok(Target::Name(name)),
        Node::Member(member) => Ok(Target::Member(*member)),
        Node::Undefined
        | Node::Null
        | Node::Bool(_)
        | Node::Number(_)
        | Node::String(_)
        | Node::Template(..)
        | Node::List(_)
        | Node::Object(_)
        | Node::Function(_)
        | Node::Call(_)
        | Node::Chain(_)
        | Node::Unary(..)
        | Node::Binary(..)
        | Node::And(_)
        | Node::Or(_)
        | Node::Coalesce(_)
        | Node::Conditional(_)
        | Node::Assign(..)
        | Node::Step(_)
        | Node::Sequence(_) => Err(ScriptError::Unsupported),
    }
}

fn infix(token: &Token<'_>) -> Option<(Infix, u8)> {
    let sign = match token {
        Token::Sign(sign) => sign,
        Token::Name("in") => return Some((Infix::Binary(Binary::In), 8)),
        Token::Number(_) | Token::String(_) | Token::Template(..) | Token::Name(_) | Token::End => {
            return None;
        }
    };
    Some(match *sign {
        "??" => (Infix::Coalesce, 1),
        "||" => (Infix::Or, 2),
        "&&" => (Infix::And, 3),
        "|" => (Infix::Binary(Binary::BitOr), 4),
        "^" => (Infix::Binary(Binary::BitXor), 5),
        "&" => (Infix::Binary(Binary::BitAnd), 6),
        "==" => (Infix::Binary(Binary::Equal), 7),
        "!=" => (Infix::Binary(Binary::NotEqual), 7),
        "===" => (Infix::Binary(Binary::Same), 7),
        "!==" => (Infix::Binary(Binary::NotSame), 7),
        "<" => (Infix::Binary(Binary::Less), 8),
        "<=" => (Infix::Binary(Binary::AtMost), 8),
        ">" => (Infix::Binary(Binary::More), 8),
        ">=" => (Infix::Binary(Binary::AtLeast), 8),
        "<<" => (Infix::Binary(Binary::ShiftLeft), 9),
        ">>" => (Infix::Binary(Binary::ShiftRight), 9),
        ">>>" => (Infix::Binary(Binary::ShiftRightZero), 9),
        "+" => (Infix::Binary(Binary::Add), 10),
        "-" => (Infix::Binary(Binary::Subtract), 10),
        "*" => (Infix::Binary(Binary::Multiply), 11),
        "/" => (Infix::Binary(Binary::Divide), 11),
        "%" => (Infix::Binary(Binary::Remainder), 11),
        "**" => (Infix::Binary(Binary::Power), POWER),
        _ => return None,
    })
}
