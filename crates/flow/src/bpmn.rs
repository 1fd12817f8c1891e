//! BPMN 2.0 with the `zeebe:` extensions, compiled to a [`Graph`].
//!
//! [`compile`] refuses what cannot run and says everything that is wrong at once; [`lint`] also
//! says what is only suspicious. Both are functions of the text; its size is the caller's to bound.
//!
//! Reading order: `xml` guards the XML parser and names places in the text, `report` collects
//! problems, `outline` numbers the elements of a process and indexes what they refer to, `node`
//! makes nodes of them with `event`, `task` and `extension`, `link` ties them together, `rule` and
//! `cycle` check what only the whole shows. Nodes are numbered in document order, and nothing
//! depends on the order of a map.
//!
//! Absent on purpose: transactions, ad-hoc sub-processes, complex gateways, standard loops,
//! conditional, cancel and multiple events.

mod cycle;
mod event;
mod extension;
mod link;
mod node;
mod outline;
mod report;
mod rule;
mod task;
mod xml;

use std::fmt;

use crate::graph::Graph;
use outline::Model;
use report::Report;

/// A compiled document.
#[derive(Debug)]
pub struct Compiled {
    /// Its executable processes, in the order of the document.
    pub processes: Vec<Graph>,
}

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 if it is about the whole document.
    pub line: u32,
    /// The column, in characters, from 1; 0 if it is about the whole document.
    pub column: u32,
    /// The id of the element; may be empty.
    pub element: String,
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// Whether the document can run all the same.
    pub severity: Severity,
}

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It is refused.
    Error,
    /// It runs, but something in it has no effect.
    Warning,
}

/// Compiles the executable processes of a document, or says all that is wrong with it, in the order
/// of the document.
pub fn compile(xml: &[u8]) -> Result<Compiled, Vec<Problem>> {
    let (processes, mut problems) = run(xml);
    problems.retain(|problem| problem.severity == Severity::Error);
    if problems.is_empty() { Ok(Compiled { processes }) } else { Err(problems) }
}

/// All that is wrong or suspicious with a document, in its order.
pub fn lint(xml: &[u8]) -> Vec<Problem> {
    run(xml).1
}

fn run(xml: &[u8]) -> (Vec<Graph>, Vec<Problem>) {
    let text = match xml::text(xml) {
        Ok(text) => text,
        Err(problem) => return (Vec::new(), vec![problem]),
    };
    let document = match xml::parse(text) {
        Ok(document) => document,
        Err(problem) => return (Vec::new(), vec![problem]),
    };
    let mut report = Report::default();
    let model = Model::read(&document, &mut report);
    let mut processes = Vec::new();
    for outline in &model.processes {
        let mut graph = node::graph(&model, outline, &mut report);
        link::tie(outline, &mut graph, &mut report);
        rule::check(outline, &graph, &mut report);
        processes.push(graph);
    }
    cycle::check(&model.processes, &processes, &mut report);
    (processes, report.finish(text))
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(formatter, "line {}, column {}: ", self.line, self.column)?;
        }
        if self.severity == Severity::Warning {
            formatter.write_str("warning: ")?;
        }
        if !self.element.is_empty() {
            write!(formatter, "{}: ", OneLine(&self.element))?;
        }
        write!(formatter, "{}", OneLine(&self.message))
    }
}

/// The author's text without line breaks and other control characters.
struct OneLine<'t>(&'t str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(char::is_control) {
            let visible = part.trim_end_matches(char::is_control);
            formatter.write_str(visible)?;
            if visible.len() < part.len() {
                formatter.write_str(" ")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
