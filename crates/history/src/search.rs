//! What can be searched for, and how it is asked.
//!
//! A search names fields, never columns: each entity has a list of them with the names that
//! the API that it is of gives them ([`Field::named`]), so that a face can turn a JSON filter into a
//! [`Filter`] member by member. Times are milliseconds since the epoch, keys are numbers.

mod cursor;
mod entities;
mod entity;
mod statement;

pub use entities::{
    DecisionDefinition, DecisionDefinitionField, DecisionRequirements, DecisionRequirementsField,
    ElementInstance, ElementInstanceField, Incident, IncidentField, Job, JobField,
    MessageSubscription, MessageSubscriptionField, ProcessDefinition, ProcessDefinitionField,
    ProcessInstance, ProcessInstanceField, Task, TaskField, UserTask, UserTaskField, Variable,
    VariableField, Workflow, WorkflowField,
};
pub use entity::{Entity, Field, FieldKind};
pub(crate) use statement::{find, get};

/// The most items of one page.
pub const PAGE_ITEMS_MAX: u32 = 10_000;

/// The most values that one test may name.
pub const VALUES_MAX: usize = 10_000;

/// A search.
#[derive(Clone, Debug)]
pub struct Search<F> {
    /// Which items.
    pub filter: Filter<F>,
    /// In which order; the key decides between equals.
    pub sort: Vec<(F, Order)>,
    /// Which of them.
    pub page: Page,
}

impl<F> Default for Search<F> {
    fn default() -> Search<F> {
        Search { filter: Filter::All(Vec::new()), sort: Vec::new(), page: Page::default() }
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The smallest first; what is absent is smaller than anything.
    Ascending,
    /// The largest first.
    Descending,
}

/// A part of what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many items; more than [`PAGE_ITEMS_MAX`] is as that. 0 only counts.
    pub limit: u32,
    /// From where.
    pub start: Start,
}

impl Default for Page {
    fn default() -> Page {
        Page { limit: 100, start: Start::Offset(0) }
    }
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// So many items are left out.
    Offset(u64),
    /// Behind the item of this cursor.
    After(String),
    /// The page that ends in front of it.
    Before(String),
}

/// Which items. `F` names the fields of what is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter<F> {
    /// Those that pass every one; with none, all.
    All(Vec<Filter<F>>),
    /// Those that pass at least one.
    Any(Vec<Filter<F>>),
    /// Those whose field passes.
    Field(F, Test),
    /// Those whose instance or element has a variable with a value that passes.
    Variable {
        /// Its name.
        name: String,
        /// Its value, JSON: text stands in quotes.
        value: Test,
        /// Where it is looked for.
        scope: VariableScope,
    },
    /// Those of whose instance some element passes.
    HasElement(Box<Filter<ElementInstanceField>>),
    /// Those of whose instance some job passes.
    HasJob(Box<Filter<JobField>>),
    /// Those of whose instance some incident passes.
    HasIncident(Box<Filter<IncidentField>>),
    /// Workflows of which some task passes.
    HasTask(Box<Filter<TaskField>>),
}

/// Where a variable is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    /// Anywhere in the instance.
    Anywhere,
    /// At the instance itself.
    Instance,
    /// At the element.
    Element,
}

/// A test of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `$eq`
    Equal(Value),
    /// `$neq`; what is absent passes.
    NotEqual(Value),
    /// `$in`
    In(Vec<Value>),
    /// `$notIn`; what is absent passes.
    NotIn(Vec<Value>),
    /// `$like`: `*` is any text, `?` any letter, a backslash takes their meaning away.
    Like(String),
    /// As a pattern in which `*` is any text and nothing else is special; a letter of ASCII is the
    /// same in capitals.
    Resembles(String),
    /// This text is somewhere in it; a letter of ASCII is the same in capitals.
    Contains(String),
    /// `$exists`
    Exists(bool),
    /// `$gt`
    Greater(Value),
    /// `$gte`
    GreaterOrEqual(Value),
    /// `$lt`
    Less(Value),
    /// `$lte`
    LessOrEqual(Value),
}

/// A value that a field is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, or a time in milliseconds since the epoch.
    Number(i64),
    /// Text.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

impl Value {
    /// A key.
    pub fn key(key: u64) -> Value {
        Value::Number(crate::schema::stored(key))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The page.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// The cursor of the first item.
    pub first_cursor: Option<String>,
    /// The cursor of the last item.
    pub last_cursor: Option<String>,
}
