//! What a script is parsed to.

use std::rc::Rc;

pub(super) type Name = Rc<str>;

/// A script, or a function's body.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    /// What `var` declares anywhere in it.
    pub(super) variables: Vec<Name>,
    /// What is declared as a function at its top.
    pub(super) functions: Vec<Rc<Function>>,
    pub(super) statements: Block,
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: Option<Name>,
    pub(super) parameters: Vec<Name>,
    pub(super) body: Body,
    /// Whether it is an expression, whose name only it sees itself.
    pub(super) is_expression: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// What `let` and `const` declare in it, known before they are reached.
    pub(super) lexical: Vec<Name>,
    pub(super) statements: Vec<Statement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Declares {
    Var,
    Let,
    Const,
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// Declarations of functions too, which are done when their body begins.
    Empty,
    Expression(Node),
    Declare(Declares, Vec<(Name, Option<Node>)>),
    Block(Block),
    If(Node, Box<Statement>, Option<Box<Statement>>),
    Return(Option<Node>),
    Break,
    Continue,
    While(Node, Box<Statement>),
    DoWhile(Box<Statement>, Node),
    For(Box<For>),
    ForEach(Box<ForEach>),
    Switch(Node, Vec<Case>),
}

#[derive(Clone, Debug)]
pub(super) struct For {
    pub(super) first: Option<Statement>,
    pub(super) condition: Option<Node>,
    pub(super) next: Option<Node>,
    pub(super) body: Statement,
}

/// `for (… of …)`, `for (… in …)`.
#[derive(Clone, Debug)]
pub(super) struct ForEach {
    pub(super) declares: Declares,
    pub(super) name: Name,
    pub(super) of_items: bool,
    pub(super) source: Node,
    pub(super) body: Statement,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    /// None is `default`.
    pub(super) test: Option<Node>,
    pub(super) statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    String(Rc<str>),
    Name(Name),
    Template(Vec<Rc<str>>, Vec<Node>),
    List(Vec<Item>),
    Object(Vec<Field>),
    Function(Rc<Function>),
    Member(Box<Member>),
    Call(Box<Call>),
    /// Around a chain with `?.` in it, which ends here when one is cut short.
    Chain(Box<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<(Node, Node)>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Coalesce(Box<(Node, Node)>),
    Conditional(Box<(Node, Node, Node)>),
    /// With an operator: `+=` and the like.
    Assign(Box<Target>, Option<Binary>, Box<Node>),
    Step(Box<Step>),
    Sequence(Vec<Node>),
}

#[derive(Clone, Debug)]
pub(super) enum Item {
    One(Node),
    /// `...list`.
    Spread(Node),
}

#[derive(Clone, Debug)]
pub(super) enum Field {
    Named(Name, Node),
    Computed(Node, Node),
    Spread(Node),
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) object: Node,
    pub(super) key: Key,
    pub(super) optional: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Key {
    Named(Name),
    Computed(Node),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) callee: Node,
    pub(super) arguments: Vec<Item>,
    pub(super) optional: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Target {
    Name(Name),
    Member(Member),
}

/// `++` and `--`.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) target: Target,
    pub(super) by: f64,
    /// Whether the value is the one after the step.
    pub(super) before: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
    Invert,
    TypeOf,
    Void,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Equal,
    NotEqual,
    Same,
    NotSame,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
}
