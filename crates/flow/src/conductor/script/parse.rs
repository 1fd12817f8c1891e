//! The parser of scripts: statements here, expressions beside it. What it does not know, it refuses.

mod expression;

use std::rc::Rc;

use super::ScriptError;
use super::scan::{Placed, Token, scan};
use super::tree::{Block, Body, Case, Declares, For, ForEach, Function, Name, Statement};

/// How many constructs may lie inside one another.
const DEPTH_MAX: usize = 48;

/// How high the tree of a script may become; operators in a row make it higher too.
const HEIGHT_MAX: usize = 160;

/// What is no name, or is one with a meaning of its own.
const RESERVED: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

pub(super) type Parsed<T> = Result<T, ScriptError>;

pub(super) fn script(source: &str) -> Parsed<Body> {
    let mut parser = Parser::new(source, 0)?;
    let body = parser.body(Token::End)?;
    if parser.returns { Err(ScriptError::Unsupported) } else { Ok(body) }
}

struct Parser<'s> {
    tokens: Vec<Placed<'s>>,
    at: usize,
    depth: usize,
    /// Of what was parsed last.
    height: usize,
    /// What `var` has declared so far in the body at hand.
    variables: Vec<Name>,
    functions: Vec<Rc<Function>>,
    /// Whether the body at hand has a `return`, which a script must not.
    returns: bool,
    /// How many blocks of the body at hand are open; functions are declared outside of them.
    blocks: usize,
    /// How many loops and switches of the body at hand are open: `break` needs one.
    breakable: usize,
    loops: usize,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, depth: usize) -> Parsed<Parser<'s>> {
        Ok(Parser {
            tokens: scan(source)?,
            at: 0,
            depth,
            height: 0,
            variables: Vec::new(),
            functions: Vec::new(),
            returns: false,
            blocks: 0,
            breakable: 0,
            loops: 0,
        })
    }

    /// Statements up to `end`, with what they declare.
    fn body(&mut self, end: Token<'static>) -> Parsed<Body> {
        let statements = self.block_until(&end)?;
        let body = Body {
            variables: std::mem::take(&mut self.variables),
            functions: std::mem::take(&mut self.functions),
            statements,
        };
        let taken = |name: &Name| body.statements.lexical.contains(name);
        let functions = body.functions.iter().filter_map(|function| function.name.as_ref());
        if body.variables.iter().chain(functions).any(taken) {
            return Err(ScriptError::Unsupported);
        }
        Ok(body)
    }

    fn function_body(&mut self) -> Parsed<Body> {
        self.expect("{")?;
        let around = (
            std::mem::take(&mut self.variables),
            std::mem::take(&mut self.functions),
            std::mem::take(&mut self.blocks),
            std::mem::take(&mut self.breakable),
            std::mem::take(&mut self.loops),
            self.returns,
        );
        let body = self.body(Token::Sign("}"))?;
        (self.variables, self.functions, self.blocks, self.breakable, self.loops, self.returns) =
            around;
        Ok(body)
    }

    fn block_until(&mut self, end: &Token<'_>) -> Parsed<Block> {
        let mut block = Block::default();
        let mut height = 0;
        while self.token() != end {
            let statement = self.statement(true)?;
            height = height.max(self.height);
            if let Statement::Declare(Declares::Let | Declares::Const, names) = &statement {
                for (name, _) in names {
                    if block.lexical.contains(name) {
                        return Err(ScriptError::Unsupported);
                    }
                    block.lexical.push(Rc::clone(name));
                }
            }
            block.statements.push(statement);
        }
        self.advance();
        self.height = height;
        Ok(block)
    }

    /// A statement; `listed` where one may declare.
    fn statement(&mut self, listed: bool) -> Parsed<Statement> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ScriptError::Unsupported);
        }
        self.height = 0;
        let statement = match self.token().clone() {
            Token::Sign("{") => self.block().map(Statement::Block),
            Token::Sign(";") => {
                self.advance();
                Ok(Statement::Empty)
            }
            Token::Name("var") => self.declaration(Declares::Var),
            Token::Name("let") if listed => self.declaration(Declares::Let),
            Token::Name("const") if listed => self.declaration(Declares::Const),
            Token::Name("function") if listed && self.blocks == 0 => self.function_declaration(),
            Token::Name("if") => self.conditional_statement(),
            Token::Name("return") => self.return_statement(),
            Token::Name("break") if self.breakable > 0 => self.jump(Statement::Break),
            Token::Name("continue") if self.loops > 0 => self.jump(Statement::Continue),
            Token::Name("while") => self.while_loop(),
            Token::Name("do") => self.do_loop(),
            Token::Name("for") => self.for_loop(),
            Token::Name("switch") => self.switch(),
            Token::Name("function") => Err(ScriptError::Unsupported),
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Name(_)
            | Token::Sign(_)
            | Token::End => {
                let node = self.expression()?;
                self.semicolon()?;
                Ok(Statement::Expression(node))
            }
        }?;
        self.depth -= 1;
        self.raise(self.height)?;
        Ok(statement)
    }

    fn block(&mut self) -> Parsed<Block> {
        self.expect("{")?;
        self.blocks += 1;
        let block = self.block_until(&Token::Sign("}"))?;
        self.blocks -= 1;
        Ok(block)
    }

    fn declaration(&mut self, declares: Declares) -> Parsed<Statement> {
        let statement = self.declarations(declares)?;
        self.semicolon()?;
        Ok(statement)
    }

    fn declarations(&mut self, declares: Declares) -> Parsed<Statement> {
        self.advance();
        let mut names = Vec::new();
        let mut height = 0;
        loop {
            let name = self.binding()?;
            if declares == Declares::Var {
                self.variables.push(Rc::clone(&name));
            }
            let value = if self.eat("=") { Some(self.assignment()?) } else { None };
            height = height.max(self.height);
            if value.is_none() && declares == Declares::Const {
                return Err(ScriptError::Unsupported);
            }
            names.push((name, value));
            if !self.eat(",") {
                self.height = height;
                return Ok(Statement::Declare(declares, names));
            }
        }
    }

    fn function_declaration(&mut self) -> Parsed<Statement> {
        self.advance();
        let name = self.binding()?;
        let function = self.function(Some(name), false)?;
        self.functions.push(Rc::new(function));
        Ok(Statement::Empty)
    }

    /// Parameters and body.
    fn function(&mut self, name: Option<Name>, is_expression: bool) -> Parsed<Function> {
        let parameters = self.parameters()?;
        let body = self.function_body()?;
        Ok(Function { name, parameters, body, is_expression })
    }

    fn parameters(&mut self) -> Parsed<Vec<Name>> {
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.eat(")") {
            let name = self.binding()?;
            if parameters.contains(&name) {
                return Err(ScriptError::Unsupported);
            }
            parameters.push(name);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(parameters)
    }

    fn conditional_statement(&mut self) -> Parsed<Statement> {
        self.advance();
        let condition = self.in_parentheses()?;
        let mut height = self.height;
        let then = self.inner(&mut height)?;
        let otherwise =
            if self.eat_word("else") { Some(Box::new(self.inner(&mut height)?)) } else { None };
        self.height = height;
        Ok(Statement::If(condition, Box::new(then), otherwise))
    }

    fn return_statement(&mut self) -> Parsed<Statement> {
        self.advance();
        self.returns = true;
        let bare =
            self.on_new_line() || matches!(self.token(), Token::Sign(";" | "}") | Token::End);
        let value = if bare { None } else { Some(self.expression()?) };
        self.semicolon()?;
        Ok(Statement::Return(value))
    }

    fn jump(&mut self, statement: Statement) -> Parsed<Statement> {
        self.advance();
        self.semicolon()?;
        Ok(statement)
    }

    fn while_loop(&mut self) -> Parsed<Statement> {
        self.advance();
        let condition = self.in_parentheses()?;
        let mut height = self.height;
        let body = self.looped(&mut height)?;
        self.height = height;
        Ok(Statement::While(condition, Box::new(body)))
    }

    fn do_loop(&mut self) -> Parsed<Statement> {
        self.advance();
        let mut height = 0;
        let body = self.looped(&mut height)?;
        if !self.eat_word("while") {
            return Err(ScriptError::Unsupported);
        }
        let condition = self.in_parentheses()?;
        self.height = self.height.max(height);
        self.eat(";");
        Ok(Statement::DoWhile(Box::new(body), condition))
    }

    fn for_loop(&mut self) -> Parsed<Statement> {
        self.advance();
        self.expect("(")?;
        let declares = match self.token() {
            Token::Name("var") => Some(Declares::Var),
            Token::Name("let") => Some(Declares::Let),
            Token::Name("const") => Some(Declares::Const),
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Name(_)
            | Token::Sign(_)
            | Token::End => None,
        };
        if let Some(declares) = declares
            && let Some(Token::Name(word @ ("of" | "in"))) = self.token_behind(2)
        {
            let of_items = *word == "of";
            return self.for_each(declares, of_items);
        }
        let first = match declares {
            Some(declares) => Some(self.declarations(declares)?),
            None if *self.token() == Token::Sign(";") => None,
            None => Some(Statement::Expression(self.expression()?)),
        };
        self.expect(";")?;
        let mut height = self.height;
        let condition =
            if *self.token() == Token::Sign(";") { None } else { Some(self.expression()?) };
        height = height.max(self.height);
        self.expect(";")?;
        let next = if *self.token() == Token::Sign(")") { None } else { Some(self.expression()?) };
        height = height.max(self.height);
        self.expect(")")?;
        let body = self.looped(&mut height)?;
        self.height = height;
        Ok(Statement::For(Box::new(For { first, condition, next, body })))
    }

    fn for_each(&mut self, declares: Declares, of_items: bool) -> Parsed<Statement> {
        self.advance();
        let name = self.binding()?;
        self.advance();
        if declares == Declares::Var {
            self.variables.push(Rc::clone(&name));
        }
        let source = if of_items { self.assignment()? } else { self.expression()? };
        let mut height = self.height;
        self.expect(")")?;
        let body = self.looped(&mut height)?;
        self.height = height;
        Ok(Statement::ForEach(Box::new(ForEach { declares, name, of_items, source, body })))
    }

    fn switch(&mut self) -> Parsed<Statement> {
        self.advance();
        let value = self.in_parentheses()?;
        let mut height = self.height;
        self.expect("{")?;
        self.blocks += 1;
        self.breakable += 1;
        let mut cases: Vec<Case> = Vec::new();
        while !self.eat("}") {
            let test = if self.eat_word("case") {
                Some(self.expression()?)
            } else if self.eat_word("default") && cases.iter().all(|case| case.test.is_some()) {
                None
            } else {
                return Err(ScriptError::Unsupported);
            };
            height = height.max(self.height);
            self.expect(":")?;
            let mut statements = Vec::new();
            while !matches!(self.token(), Token::Name("case" | "default") | Token::Sign("}")) {
                // What a case declares is seen by all of them; that is left to others.
                statements.push(self.statement(false)?);
                height = height.max(self.height);
            }
            cases.push(Case { test, statements });
        }
        self.blocks -= 1;
        self.breakable -= 1;
        self.height = height;
        Ok(Statement::Switch(value, cases))
    }

    fn looped(&mut self, height: &mut usize) -> Parsed<Statement> {
        self.breakable += 1;
        self.loops += 1;
        let body = self.inner(height)?;
        self.breakable -= 1;
        self.loops -= 1;
        Ok(body)
    }

    /// A statement of another one.
    fn inner(&mut self, height: &mut usize) -> Parsed<Statement> {
        self.blocks += 1;
        let statement = self.statement(false)?;
        self.blocks -= 1;
        *height = self.height.max(*height);
        Ok(statement)
    }

    /// The end of a statement, which may be left out before `}` and at the end of a line.
    fn semicolon(&mut self) -> Parsed<()> {
        let left_out = self.on_new_line() || matches!(self.token(), Token::Sign("}") | Token::End);
        if self.eat(";") || left_out { Ok(()) } else { Err(ScriptError::Unsupported) }
    }

    /// A name that may be given to something.
    fn binding(&mut self) -> Parsed<Name> {
        match self.token() {
            Token::Name(name) if !RESERVED.contains(name) && *name != "undefined" => {
                let name = Name::from(*name);
                self.advance();
                Ok(name)
            }
            Token::Number(_)
            | Token::String(_)
            | Token::Template(..)
            | Token::Name(_)
            | Token::Sign(_)
            | Token::End => Err(ScriptError::Unsupported),
        }
    }

    /// One level above `height`.
    fn raise(&mut self, height: usize) -> Parsed<()> {
        self.height = height + 1;
        if self.height > HEIGHT_MAX { Err(ScriptError::Unsupported) } else { Ok(()) }
    }

    fn token(&self) -> &Token<'s> {
        self.token_behind(0).unwrap_or(&Token::End)
    }

    fn token_behind(&self, distance: usize) -> Option<&Token<'s>> {
        self.tokens.get(self.at + distance).map(|placed| &placed.token)
    }

    fn on_new_line(&self) -> bool {
        self.tokens.get(self.at).is_none_or(|placed| placed.on_new_line)
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn eat(&mut self, sign: &'static str) -> bool {
        let found = *self.token() == Token::Sign(sign);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &'static str) -> bool {
        let found = *self.token() == Token::Name(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { Err(ScriptError::Unsupported) }
    }
}
