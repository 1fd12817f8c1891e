//! The names an expression itself has bound.

use std::sync::Arc;

use super::value::Value;

/// One layer of names; the innermost is asked first.
#[derive(Clone, Copy)]
pub(crate) struct Locals<'a> {
    outer: Outer<'a>,
    frame: Frame<'a>,
}

/// The layers around a node; `None` where nothing is bound.
pub(crate) type Outer<'a> = Option<&'a Locals<'a>>;

#[derive(Clone, Copy)]
enum Frame<'a> {
    Binding(&'a str, &'a Value),
    Bindings(&'a [(Arc<str>, Value)]),
    Item(&'a Value),
    Input(&'a Value),
}

impl<'a> Locals<'a> {
    /// One name.
    pub(crate) fn binding(outer: Outer<'a>, name: &'a str, value: &'a Value) -> Locals<'a> {
        Locals { outer, frame: Frame::Binding(name, value) }
    }

    /// Several names: the entries of a context so far, or what a function was given. Of equal
    /// names the last counts.
    pub(crate) fn bindings(outer: Outer<'a>, bindings: &'a [(Arc<str>, Value)]) -> Locals<'a> {
        Locals { outer, frame: Frame::Bindings(bindings) }
    }

    /// The item a filter looks at: `item`, and its entries by their names.
    pub(crate) fn item(outer: Outer<'a>, item: &'a Value) -> Locals<'a> {
        Locals { outer, frame: Frame::Item(item) }
    }

    /// What `?` is.
    pub(crate) fn input(outer: Outer<'a>, input: &'a Value) -> Locals<'a> {
        Locals { outer, frame: Frame::Input(input) }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'a Value> {
        let mut here = Some(self);
        while let Some(locals) = here {
            let found = match locals.frame {
                Frame::Binding(own, value) => (own == name).then_some(value),
                Frame::Bindings(bindings) => {
                    bindings.iter().rev().find(|(own, _)| &**own == name).map(|(_, value)| value)
                }
                Frame::Item(item) => of_item(item, name),
                Frame::Input(_) => None,
            };
            if found.is_some() {
                return found;
            }
            here = locals.outer;
        }
        None
    }

    pub(crate) fn find_input(&self) -> Option<&'a Value> {
        let mut here = Some(self);
        while let Some(locals) = here {
            if let Frame::Input(input) = locals.frame {
                return Some(input);
            }
            here = locals.outer;
        }
        None
    }
}

fn of_item<'a>(item: &'a Value, name: &str) -> Option<&'a Value> {
    let entry = if let Value::Context(context) = item { context.get(name) } else { None };
    entry.or_else(|| (name == "item").then_some(item))
}
