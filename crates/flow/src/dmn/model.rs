//! What a model holds, as it was read from its document.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::expression::{Expression, Tests};
use super::problem::ProblemRule;

/// The decisions of one document. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Model(pub(super) Arc<Definitions>);

#[derive(Debug)]
pub(super) struct Definitions {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) decisions: Vec<Decision>,
    pub(super) knowledge: Vec<Knowledge>,
    pub(super) inputs: Vec<RequiredInput>,
    pub(super) decision_by_id: HashMap<String, usize, FxBuildHasher>,
    pub(super) knowledge_by_id: HashMap<String, usize, FxBuildHasher>,
    pub(super) knowledge_by_name: HashMap<String, usize, FxBuildHasher>,
}

/// One decision.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The name of the variable that decisions requiring this one see: that of its variable, or
    /// else its id.
    pub variable: String,
    /// The type its output must have, if it says.
    pub type_name: Option<String>,
    /// How it is made.
    pub logic: Logic,
    /// The ids of the decisions it requires.
    pub required_decisions: Vec<String>,
    /// The ids of the input data it requires.
    pub required_inputs: Vec<String>,
    /// The ids of the business knowledge models it requires.
    pub required_knowledge: Vec<String>,
}

/// Input data of a model.
#[derive(Clone, Debug)]
pub struct RequiredInput {
    /// Its id.
    pub id: String,
    /// Its name, which is the name of a variable.
    pub name: String,
    /// The type it should have, if it says; not enforced.
    pub type_name: Option<String>,
}

/// A business knowledge model: a function that decisions can require.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// Its id.
    pub id: String,
    /// Its name, under which it is invoked.
    pub name: String,
    /// The name of its variable, if that is another one.
    pub variable: Option<String>,
    /// The function.
    pub function: Arc<FunctionDefinition>,
    /// The ids of the business knowledge models it requires.
    pub required_knowledge: Arc<[String]>,
}

/// Which kind of logic a decision has, in the words of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// A decision table.
    DecisionTable,
    /// A FEEL expression.
    LiteralExpression,
    /// A boxed context.
    Context,
    /// A boxed list.
    List,
    /// A relation.
    Relation,
    /// A boxed invocation.
    Invocation,
    /// A kind the protocol has no word for.
    Unknown,
}

/// How a decision, or a part of one, is made.
#[derive(Clone, Debug)]
pub enum Logic {
    /// By the rules of a table.
    DecisionTable(Box<DecisionTable>),
    /// By a FEEL expression.
    LiteralExpression(Expression),
    /// By entries that may use the ones before them; an entry without a name is the result.
    Context(Vec<ContextEntry>),
    /// By invoking a function.
    Invocation(Box<Invocation>),
    /// By listing values.
    List(Vec<Logic>),
    /// By listing contexts.
    Relation(Relation),
    /// By defining a function.
    Function(Arc<FunctionDefinition>),
    /// By a condition.
    Conditional(Box<Conditional>),
    /// By keeping some items of a list.
    Filter(Box<Filter>),
    /// By looking at every item of a list.
    Iteration(Box<Iteration>),
    /// Not at all: this is what is wrong with it.
    Invalid(ProblemRule),
}

/// A decision table.
#[derive(Clone, Debug)]
pub struct DecisionTable {
    /// What becomes of the rules that match.
    pub hit_policy: HitPolicy,
    /// The columns that are tested.
    pub inputs: Vec<Input>,
    /// The columns that are the result.
    pub outputs: Vec<Output>,
    /// The rows, in order.
    pub rules: Vec<Rule>,
}

/// What becomes of the rules that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitPolicy {
    /// One rule may match.
    Unique,
    /// The first rule that matches counts.
    First,
    /// Rules that match must agree.
    Any,
    /// The rule with the output of highest priority counts.
    Priority,
    /// All rules, in their order.
    RuleOrder,
    /// All rules, in the order of their outputs' priorities.
    OutputOrder,
    /// All rules, aggregated.
    Collect(Aggregation),
}

/// How the outputs of several rules become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// As a list.
    List,
    /// As their sum.
    Sum,
    /// As the least one.
    Min,
    /// As the greatest one.
    Max,
    /// As how many there are.
    Count,
}

/// A column of a table that is tested.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its id, possibly empty.
    pub id: String,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// What is tested.
    pub expression: Expression,
    /// What may occur; not enforced, as in Camunda.
    pub allowed: Option<Tests>,
}

/// A column of a table that is a result.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its id, possibly empty.
    pub id: String,
    /// Its name, possibly empty if it is the only one.
    pub name: Arc<str>,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// What may occur, from the highest to the lowest priority; a FEEL list.
    pub allowed: Option<Expression>,
    /// What holds if no rule matches.
    pub default: Option<Expression>,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its id, possibly empty.
    pub id: String,
    /// The tests, one for each input.
    pub tests: Vec<Tests>,
    /// The results, one for each output.
    pub outputs: Vec<Expression>,
}

/// An entry of a boxed context.
#[derive(Clone, Debug)]
pub struct ContextEntry {
    /// Its name; without one, it is the result.
    pub name: Option<Arc<str>>,
    /// Its value.
    pub logic: Logic,
}

/// An invocation of a function.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// What is invoked: a name, as a rule.
    pub function: Expression,
    /// The arguments by name.
    pub bindings: Vec<Binding>,
    /// The invocation in FEEL, which sees the arguments under names of its own.
    pub(super) call: Expression,
}

/// An argument of an invocation.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The parameter's name.
    pub name: Arc<str>,
    /// Its value; without logic, null.
    pub logic: Option<Logic>,
}

/// A list of contexts with the same names.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The names.
    pub columns: Vec<Arc<str>>,
    /// The values of each context.
    pub rows: Vec<Vec<Logic>>,
}

/// A function that is written in the model.
#[derive(Clone, Debug)]
pub struct FunctionDefinition {
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The parameters' names, in the same order.
    pub parameter_names: Vec<Arc<str>>,
    /// Its result; null without.
    pub body: Option<Logic>,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Arc<str>,
    /// The type an argument must have, if it says.
    pub type_name: Option<String>,
}

/// A condition and its two cases.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// What is asked.
    pub condition: Logic,
    /// The result if it is true.
    pub consequence: Logic,
    /// The result otherwise.
    pub alternative: Logic,
}

/// Items of a list that are kept.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The list.
    pub list: Logic,
    /// What must be true of an item, which is seen as `item`, for it to be kept.
    pub condition: Logic,
}

/// A look at every item of a list.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// What it is for.
    pub kind: IterationKind,
    /// The name of the variable that holds the item.
    pub variable: Arc<str>,
    /// The list.
    pub list: Logic,
    /// What is evaluated for each item.
    pub body: Logic,
}

/// What a look at every item is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationKind {
    /// A list of the results.
    For,
    /// Whether one result is true.
    Some,
    /// Whether all results are true.
    Every,
}

impl Model {
    /// The id of the definitions, possibly empty.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The name of the definitions, possibly empty.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The namespace of the definitions, possibly empty.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// The decisions in the order of the document.
    pub fn decisions(&self) -> &[Decision] {
        &self.0.decisions
    }

    /// The input data in the order of the document.
    pub fn inputs(&self) -> &[RequiredInput] {
        &self.0.inputs
    }

    /// The business knowledge models in the order of the document.
    pub fn knowledge(&self) -> &[Knowledge] {
        &self.0.knowledge
    }

    /// The decision with this id.
    pub fn decision(&self, id: &str) -> Option<&Decision> {
        let position = self.0.decision_by_id.get(id)?;
        self.0.decisions.get(*position)
    }
}

impl Decision {
    /// Its kind, in the words of the protocol.
    pub fn kind(&self) -> DecisionKind {
        self.logic.kind()
    }
}

impl Logic {
    pub(super) fn kind(&self) -> DecisionKind {
        match self {
            Logic::DecisionTable(_) => DecisionKind::DecisionTable,
            Logic::LiteralExpression(_) => DecisionKind::LiteralExpression,
            Logic::Context(_) => DecisionKind::Context,
            Logic::List(_) => DecisionKind::List,
            Logic::Relation(_) => DecisionKind::Relation,
            Logic::Invocation(_) => DecisionKind::Invocation,
            Logic::Function(_)
            | Logic::Conditional(_)
            | Logic::Filter(_)
            | Logic::Iteration(_)
            | Logic::Invalid(_) => DecisionKind::Unknown,
        }
    }
}

impl DecisionKind {
    /// The word of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            DecisionKind::DecisionTable => "DECISION_TABLE",
            DecisionKind::LiteralExpression => "LITERAL_EXPRESSION",
            DecisionKind::Context => "CONTEXT",
            DecisionKind::List => "LIST",
            DecisionKind::Relation => "RELATION",
            DecisionKind::Invocation => "INVOCATION",
            DecisionKind::Unknown => "UNKNOWN",
        }
    }
}

impl FunctionDefinition {
    pub(super) fn new(parameters: Vec<Parameter>, body: Option<Logic>) -> FunctionDefinition {
        let parameter_names = parameters.iter().map(|own| Arc::clone(&own.name)).collect();
        FunctionDefinition { parameters, parameter_names, body }
    }
}

impl fmt::Display for DecisionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}
