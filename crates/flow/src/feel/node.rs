//! The tree of a parsed expression.

use std::sync::Arc;

use super::builtin::Builtin;
use super::kind::Kind;
use super::value::Value;

/// One node. Chains of operators of one rank are one node, so that the height of a tree is the
/// nesting its author wrote and not the length of what they wrote.
#[derive(Debug)]
pub(crate) enum Node {
    Literal(Value),
    Name(Arc<str>),
    /// `?`: the input of a unary test.
    Input,
    /// A value and what is taken of it, from left to right.
    Postfix(Box<Node>, Box<[Step]>),
    Negate(Box<Node>),
    /// Operators of one rank, from left to right.
    Chain(Box<Node>, Box<[(Operator, Node)]>),
    Compare(Comparison, Box<(Node, Node)>),
    All(Box<[Node]>),
    Any(Box<[Node]>),
    Between(Box<[Node; 3]>),
    In(Box<Node>, Box<[Test]>),
    InstanceOf(Box<Node>, Kind),
    If(Box<[Node; 3]>),
    For(Box<For>),
    Quantified(Quantifier, Box<[Source]>, Box<Node>),
    List(Box<[Node]>),
    Context(Box<[(Arc<str>, Node)]>),
    Range(Box<RangeNode>),
    Function(Arc<Definition>),
    Call(Box<Call>),
}

/// What is taken of a value.
#[derive(Debug)]
pub(crate) enum Step {
    Property(Arc<str>),
    Filter(Node),
    Call(Arguments),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Some,
    Every,
}

/// One test of `in` or of a cell of a decision table.
#[derive(Debug)]
pub(crate) enum Test {
    /// `< 5`, `= 5`.
    Compare(Comparison, Node),
    /// An expression with `?`: its truth is the answer.
    Condition(Node),
    /// An expression without `?`: the input equals it, or is in it.
    Value(Node),
}

/// `for` with its iterators.
#[derive(Debug)]
pub(crate) struct For {
    pub(crate) sources: Box<[Source]>,
    pub(crate) body: Node,
    /// Whether the body looks at the results so far.
    pub(crate) uses_partial: bool,
}

/// A name and what it runs over.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) items: Items,
}

#[derive(Debug)]
pub(crate) enum Items {
    Of(Node),
    /// `from..to`, up or down.
    Count(Node, Node),
}

/// An interval; a missing end has no bound.
#[derive(Debug)]
pub(crate) struct RangeNode {
    pub(crate) start: Option<Node>,
    pub(crate) start_included: bool,
    pub(crate) end: Option<Node>,
    pub(crate) end_included: bool,
}

/// `function(a, b) body`.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) parameters: Box<[Arc<str>]>,
    /// The kind of each parameter.
    pub(crate) kinds: Box<[Kind]>,
    pub(crate) body: Node,
    /// Every name the body mentions: what has to be kept of the surroundings.
    pub(crate) mentions: Box<[Arc<str>]>,
}

/// An invocation by name.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: Arc<str>,
    /// The built-in of that name, if there is one; a local function of that name goes first.
    pub(crate) builtin: Option<&'static Builtin>,
    pub(crate) arguments: Arguments,
}

#[derive(Debug)]
pub(crate) enum Arguments {
    Positional(Box<[Node]>),
    Named(Box<[(Arc<str>, Node)]>),
}
