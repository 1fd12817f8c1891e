//! Problems as they are found; at the end they stand in the order of the document.

use super::xml::{self, Element};
use super::{Problem, Severity};

/// More are not kept: nobody reads them.
const PROBLEMS_MAX: usize = 100;
/// Characters of the author's text in a message.
const QUOTE_MAX: usize = 80;
/// Characters of a message.
const MESSAGE_MAX: usize = 500;

/// Collects problems.
#[derive(Default)]
pub(super) struct Report {
    found: Vec<Found>,
}

struct Found {
    offset: Option<usize>,
    element: String,
    message: String,
    severity: Severity,
}

impl Report {
    /// The document is refused because of this element.
    pub(super) fn error(&mut self, element: Element<'_>, message: impl Into<String>) {
        self.add(element, Severity::Error, message.into());
    }

    /// This element runs otherwise than its author may think.
    pub(super) fn warning(&mut self, element: Element<'_>, message: impl Into<String>) {
        self.add(element, Severity::Warning, message.into());
    }

    /// The document is refused as a whole.
    pub(super) fn refuse(&mut self, message: &str) {
        self.keep(Found {
            offset: None,
            element: String::new(),
            message: message.to_owned(),
            severity: Severity::Error,
        });
    }

    /// All problems, in the order of the document.
    pub(super) fn finish(mut self, text: &str) -> Vec<Problem> {
        self.found.sort_by_key(|found| found.offset);
        let mut places = Places { text, offset: 0, line: 1, column: 1 };
        let mut problems: Vec<Problem> = Vec::new();
        for Found { offset, element, message, severity } in self.found {
            let (line, column) = match offset {
                Some(offset) => places.advance(offset),
                None => (0, 0),
            };
            let problem = Problem { line, column, element, message, severity };
            if problems.last() != Some(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    fn add(&mut self, element: Element<'_>, severity: Severity, message: String) {
        if self.is_full(severity) {
            return;
        }
        // Extensions and parts of an element are called by the id of the element.
        let whole = element.ancestors().filter(|element| !is_part(xml::name_of(*element)));
        let id = whole.filter_map(|element| xml::attribute(element, "id")).next();
        let element_id = cut(id.unwrap_or_default(), QUOTE_MAX);
        let offset = Some(element.range().start);
        self.keep(Found { offset, element: element_id, message, severity });
    }

    fn keep(&mut self, mut found: Found) {
        if !self.is_full(found.severity) {
            found.message = cut(&found.message, MESSAGE_MAX);
            self.found.push(found);
        }
    }

    fn is_full(&self, severity: Severity) -> bool {
        self.found.iter().filter(|found| found.severity == severity).count() >= PROBLEMS_MAX
    }
}

/// Parts of an element that may have an id that nobody knows.
fn is_part(name: &str) -> bool {
    ["Definition", "Expression", "Condition", "Characteristics", "Duration", "Date", "Cycle"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// The author's text, in quotes, not too much of it.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", cut(text, QUOTE_MAX))
}

fn cut(text: &str, characters: usize) -> String {
    if text.chars().nth(characters).is_none() {
        return text.to_owned();
    }
    text.chars().take(characters).chain("...".chars()).collect()
}

/// Lines and columns of growing offsets.
struct Places<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
    column: u32,
}

impl Places<'_> {
    fn advance(&mut self, offset: usize) -> (u32, u32) {
        for character in self.text.get(self.offset..offset).unwrap_or_default().chars() {
            if character == '\n' {
                self.line = self.line.saturating_add(1);
                self.column = 1;
            } else {
                self.column = self.column.saturating_add(1);
            }
        }
        self.offset = offset;
        (self.line, self.column)
    }
}
