//! What is wrong with a document, and where.

use std::fmt;

/// Something in a document that keeps it from being a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 when the problem has no place.
    pub line: u32,
    /// The column in characters, from 1; 0 when the problem has no place.
    pub column: u32,
    /// The element it is about, by name and id, such as `decision "dish"`.
    pub element: String,
    /// The rule that is broken.
    pub rule: ProblemRule,
}

/// The rules a document can break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemRule {
    /// The text is not UTF-8.
    NotUtf8,
    /// The text is not well-formed XML; the parser's words.
    NotXml(String),
    /// A document type declaration, which could define entities.
    DocumentType,
    /// More elements inside one another than allowed.
    NestedTooDeeply,
    /// More nodes, attributes or namespaces than allowed.
    TooLarge,
    /// The root is not `definitions` of a known version of DMN.
    NotDmn,
    /// An attribute that must be there is absent or empty.
    AttributeMissing(&'static str),
    /// A child element that must be there is absent.
    ElementMissing(&'static str),
    /// Two decisions or knowledge models have this id.
    DuplicateId(String),
    /// A requirement points at nothing in this document that could fulfil it.
    UnknownRequirement(String),
    /// Decisions or knowledge models require each other in a circle, along these ids.
    RequirementCycle(Vec<String>),
    /// A decision or function without an expression.
    LogicMissing,
    /// An expression of a kind that is not supported.
    LogicUnsupported(String),
    /// An expression in another language than FEEL.
    LanguageUnsupported(String),
    /// A function of another kind than FEEL.
    FunctionKindUnsupported(String),
    /// An expression that must not be empty.
    ExpressionEmpty,
    /// A text that is not FEEL; the parser's words.
    NotFeel(String),
    /// A hit policy that does not exist.
    UnknownHitPolicy(String),
    /// An aggregation that does not exist.
    UnknownAggregation(String),
    /// An aggregation over more than one output.
    AggregationOfCompoundOutput,
    /// One of several outputs has no name.
    OutputNameMissing,
    /// A row of a relation has another number of cells than there are columns.
    RowLength {
        /// How many columns there are.
        columns: usize,
        /// How many cells the row has.
        cells: usize,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(formatter, "line {}, column {}: ", self.line, self.column)?;
        }
        if !self.element.is_empty() {
            write!(formatter, "{}: ", self.element)?;
        }
        write!(formatter, "{}", self.rule)
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for ProblemRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemRule::NotUtf8 => formatter.write_str("the document is not UTF-8"),
            ProblemRule::NotXml(message) => write!(formatter, "not well-formed XML: {message}"),
            ProblemRule::DocumentType => {
                formatter.write_str("a document type declaration is not allowed")
            }
            ProblemRule::NestedTooDeeply => formatter.write_str("elements nest too deeply"),
            ProblemRule::TooLarge => {
                formatter.write_str("more elements, attributes, names or namespaces than allowed")
            }
            ProblemRule::NotDmn => {
                formatter.write_str("the root is not `definitions` of DMN 1.1 to 1.5")
            }
            ProblemRule::AttributeMissing(name) => {
                write!(formatter, "the attribute `{name}` is missing")
            }
            ProblemRule::ElementMissing(name) => {
                write!(formatter, "the element `{name}` is missing")
            }
            ProblemRule::DuplicateId(id) => {
                write!(formatter, "the id '{id}' is used more than once")
            }
            ProblemRule::UnknownRequirement(href) => {
                write!(formatter, "nothing in this document can be required as '{href}'")
            }
            ProblemRule::RequirementCycle(ids) => {
                write!(formatter, "requirements form a cycle: {}", ids.join(" -> "))
            }
            ProblemRule::LogicMissing => formatter.write_str("there is no expression"),
            ProblemRule::LogicUnsupported(name) => {
                write!(formatter, "expressions of kind `{name}` are not supported")
            }
            ProblemRule::LanguageUnsupported(language) => {
                write!(formatter, "expression language '{language}' is not supported")
            }
            ProblemRule::FunctionKindUnsupported(kind) => {
                write!(formatter, "functions of kind '{kind}' are not supported")
            }
            ProblemRule::ExpressionEmpty => formatter.write_str("the expression must not be empty"),
            ProblemRule::NotFeel(message) => write!(formatter, "not a FEEL expression: {message}"),
            ProblemRule::UnknownHitPolicy(name) => {
                write!(formatter, "there is no hit policy '{name}'")
            }
            ProblemRule::UnknownAggregation(name) => {
                write!(formatter, "there is no aggregation '{name}'")
            }
            ProblemRule::AggregationOfCompoundOutput => formatter
                .write_str("hit policy COLLECT with aggregator is not defined for compound output"),
            ProblemRule::OutputNameMissing => {
                formatter.write_str("each of several outputs needs a name")
            }
            ProblemRule::RowLength { columns, cells } => {
                write!(formatter, "a row of {columns} cells is needed, not of {cells}")
            }
        }
    }
}
