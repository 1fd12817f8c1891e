//! The built-in functions: DMN's, and those that Camunda adds.
//!
//! One table says what there is. A function that is given what it cannot take answers null.

mod aggregate;
mod context;
mod conversion;
mod interval;
mod list;
mod logic;
mod numeric;
mod string;
mod temporal;

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::EvaluationError;
use super::evaluate::{Machine, Outcome, size};
use super::function;
use super::value::Value;

/// A function that is there without being defined.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// The parameters of each form it has, shorter ones first; none for a function that takes any
    /// number of arguments.
    forms: &'static [&'static [&'static str]],
    run: Run,
}

/// The result of a function; `None` is null.
type Result = std::result::Result<Option<Value>, EvaluationError>;

/// How it is carried out.
#[derive(Clone, Copy)]
enum Run {
    /// Its work is bounded by the length of its arguments.
    Plain(fn(&[Value]) -> Option<Value>),
    /// It counts its own steps.
    Metered(fn(&mut Machine<'_>, &[Value]) -> Result),
    /// It takes the items of one list, or any number of arguments instead.
    Spread(fn(&mut Machine<'_>, &[Value]) -> Result),
    /// It takes any number of arguments as they are.
    Open(fn(&mut Machine<'_>, &[Value]) -> Result),
}

const fn plain(
    name: &'static str,
    forms: &'static [&'static [&'static str]],
    run: fn(&[Value]) -> Option<Value>,
) -> Builtin {
    Builtin { name, forms, run: Run::Plain(run) }
}

const fn metered(
    name: &'static str,
    forms: &'static [&'static [&'static str]],
    run: fn(&mut Machine<'_>, &[Value]) -> Result,
) -> Builtin {
    Builtin { name, forms, run: Run::Metered(run) }
}

const fn spread(name: &'static str, run: fn(&mut Machine<'_>, &[Value]) -> Result) -> Builtin {
    Builtin { name, forms: &[&["list"], &["lists"]], run: Run::Spread(run) }
}

const fn open(
    name: &'static str,
    forms: &'static [&'static [&'static str]],
    run: fn(&mut Machine<'_>, &[Value]) -> Result,
) -> Builtin {
    Builtin { name, forms, run: Run::Open(run) }
}

/// Every table, one per field.
const TABLES: [&[Builtin]; 9] = [
    conversion::TABLE,
    logic::TABLE,
    string::TABLE,
    list::TABLE,
    aggregate::TABLE,
    numeric::TABLE,
    temporal::TABLE,
    interval::TABLE,
    context::TABLE,
];

/// The built-in of this name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    static SORTED: OnceLock<Vec<&'static Builtin>> = OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let mut all: Vec<&'static Builtin> = TABLES.iter().copied().flatten().collect();
        all.sort_by_key(|builtin| builtin.name);
        all
    });
    let at = sorted.binary_search_by_key(&name, |builtin| builtin.name).ok()?;
    sorted.get(at).copied()
}

/// The built-ins that the rule for names does not cover: several words, or a reserved one. Longer
/// names come first.
pub(crate) fn spaced_names() -> &'static [&'static Builtin] {
    static SPACED: OnceLock<Vec<&'static Builtin>> = OnceLock::new();
    SPACED.get_or_init(|| {
        let mut spaced: Vec<&'static Builtin> = TABLES
            .iter()
            .copied()
            .flatten()
            .filter(|builtin| builtin.name.contains(' ') || matches!(builtin.name, "and" | "or"))
            .collect();
        spaced.sort_by_key(|builtin| std::cmp::Reverse(builtin.name.len()));
        spaced
    })
}

impl Builtin {
    /// Its result for these arguments in order.
    pub(crate) fn run(&self, machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
        for argument in arguments {
            machine.spend(length(argument))?;
        }
        let fits = self.forms.iter().any(|form| form.len() == arguments.len());
        let result = match (self.run, arguments) {
            (Run::Plain(run), arguments) if fits => run(arguments),
            (Run::Metered(run), arguments) if fits => run(machine, arguments)?,
            (Run::Plain(_) | Run::Metered(_), _) => None,
            (Run::Spread(run), [Value::List(list)]) => run(machine, list)?,
            (Run::Spread(_) | Run::Open(_), []) => None,
            (Run::Spread(run) | Run::Open(run), arguments) => run(machine, arguments)?,
        };
        match result {
            None => Ok(Value::Null),
            Some(value @ (Value::Text(_) | Value::List(_) | Value::Context(_))) => {
                machine.built(value)
            }
            Some(value) => Ok(value),
        }
    }

    /// Arguments by name in the order of the first form that has them all.
    pub(crate) fn in_order(&self, named: &[(Arc<str>, Value)]) -> Option<Vec<Value>> {
        self.forms.iter().find_map(|form| function::in_order(form, named))
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The steps of looking at a value without looking inside its items.
fn length(value: &Value) -> u64 {
    match value {
        Value::Text(text) => size(text.len()) / 32 + 1,
        Value::List(list) => size(list.len()) / 4 + 1,
        Value::Context(context) => size(context.len()) / 4 + 1,
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::DaysDuration(_)
        | Value::YearsDuration(_)
        | Value::Range(_)
        | Value::Function(_) => 1,
    }
}

fn number(number: impl Into<rust_decimal::Decimal>) -> Option<Value> {
    Some(Value::Number(number.into()))
}

fn truth(truth: bool) -> Option<Value> {
    Some(Value::Bool(truth))
}
