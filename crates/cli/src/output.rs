//! What goes to standard output.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde_json::Value;

use crate::failure::Failure;

/// For people, or for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// Prints a value: as one line of JSON, or as the text made of it.
    pub(crate) fn show(self, value: &Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.line(&value.to_string()) } else { self.line(text().trim_end()) }
    }

    pub(crate) fn line(self, line: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.map_err(|error| Failure::io("write the output", error))
    }
}

/// Aligns columns: the first to the left, numbers to the right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|name| name.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let number = cell.starts_with(|c: char| c.is_ascii_digit());
            // Writing to a string does not fail.
            let _ = if number {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Aligns names and values; leaves out values that say nothing.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let shown = fields.iter().filter(|(_, value)| !value.is_empty());
    let width = shown.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in shown {
        let mut lines = value.lines();
        let _ = writeln!(text, "{name:<width$}  {}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(text, "{:<width$}  {line}", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_fields_align() {
        let rows =
            [vec!["mail".to_owned(), "7".to_owned()], vec!["x".to_owned(), "120".to_owned()]];
        assert_eq!(table(&["queue", "ready"], &rows), "queue  ready\nmail       7\nx        120\n");
        let pairs = [("a", "1\n2".to_owned()), ("long", String::new()), ("bc", "3".to_owned())];
        assert_eq!(fields(&pairs), "a   1\n    2\nbc  3\n");
    }
}
