//! JSONPath as Conductor's definitions use it: Jayway's reading, without exceptions.
//!
//! A definite path has one value or none; an indefinite one (`*`, `..`, slices, filters, several
//! indexes) has a list, which may be empty. What does not fit its document is missing and no error:
//! an error means that a bound was reached.

mod filter;
mod function;
mod parse;
mod walk;

use std::fmt;

use filter::Filter;
use function::Function;
use serde_json::Value;

/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 4_096;

/// A path, parsed.
#[derive(Clone, Debug)]
pub struct Path {
    segments: Vec<Segment>,
}

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// Where in the text, in bytes.
    pub position: usize,
    /// What was expected or found, as a lowercase fragment.
    pub message: &'static str,
}

/// How much evaluations may still do. It may serve several, one after the other.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Values that may still be visited.
    pub steps_left: u64,
    /// Bytes, roughly, that may still be built.
    pub size_left: u64,
}

/// A bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetError {
    /// Too many values were visited.
    StepsExhausted,
    /// Too much was built.
    SizeExhausted,
}

#[derive(Clone, Debug)]
enum Segment {
    /// `.name`, `['name']`.
    Child(Box<str>),
    /// `['a','b']`: at the end an object of those that are there.
    Children(Vec<Box<str>>),
    /// `[0]`, `[-1]`: from the end if negative.
    Index(i64),
    /// `[0,2]`.
    Indexes(Vec<i64>),
    /// `[1:3]`.
    Slice(Option<i64>, Option<i64>),
    /// `*`.
    Every,
    /// The first half of `..name`: a value and all below it.
    Below,
    /// `[?(…)]`.
    Filter(Box<Filter>),
    /// `.length()` and the like; only at the end.
    Function(Function),
}

/// Parses a path; `$.` before it is optional.
pub fn compile(path: &str) -> Result<Path, PathError> {
    parse::path(path)
}

impl Path {
    /// The name that the segment at `position` is, when it is nothing more than that.
    pub fn name(&self, position: usize) -> Option<&str> {
        match self.segments.get(position) {
            Some(Segment::Child(name)) => Some(name),
            Some(
                Segment::Children(_)
                | Segment::Index(_)
                | Segment::Indexes(_)
                | Segment::Slice(..)
                | Segment::Every
                | Segment::Below
                | Segment::Filter(_)
                | Segment::Function(_),
            )
            | None => None,
        }
    }

    /// Whether it has one value at most.
    pub fn is_definite(&self) -> bool {
        walk::is_definite(&self.segments)
    }

    /// The value of this path in `document`; none if it is missing.
    pub fn evaluate(
        &self,
        document: &Value,
        budget: &mut Budget,
    ) -> Result<Option<Value>, BudgetError> {
        self.evaluate_behind(0, document, budget)
    }

    /// The value of what follows the first `skipped` segments, in what those have led to.
    pub fn evaluate_behind(
        &self,
        skipped: usize,
        document: &Value,
        budget: &mut Budget,
    ) -> Result<Option<Value>, BudgetError> {
        walk::evaluate(self.segments.get(skipped..).unwrap_or_default(), document, budget)
    }
}

impl Budget {
    pub(super) fn step(&mut self) -> Result<(), BudgetError> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(BudgetError::StepsExhausted)?;
        Ok(())
    }

    pub(super) fn build(&mut self, bytes: usize) -> Result<(), BudgetError> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.size_left = self.size_left.checked_sub(bytes).ok_or(BudgetError::SizeExhausted)?;
        Ok(())
    }

    /// A copy of a value, paid for.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, BudgetError> {
        self.weigh(value)?;
        Ok(value.clone())
    }

    /// Pays for a value as if it were built.
    pub(super) fn weigh(&mut self, value: &Value) -> Result<(), BudgetError> {
        /// What a value costs besides its text.
        const VALUE_BYTES: usize = 32;
        self.step()?;
        self.build(VALUE_BYTES)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => self.build(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.weigh(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
                self.build(name.len())?;
                self.weigh(field)
            }),
        }
    }
}

impl Default for Budget {
    /// Enough for what people write, and at worst some tens of milliseconds.
    fn default() -> Budget {
        Budget { steps_left: 1_000_000, size_left: 64 * 1024 * 1024 }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at byte {}", self.message, self.position)
    }
}

impl std::error::Error for PathError {}

impl fmt::Display for BudgetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            BudgetError::StepsExhausted => "the expression visits too many values",
            BudgetError::SizeExhausted => "the expression builds too large values",
        })
    }
}

impl std::error::Error for BudgetError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "a": {"b": [10, {"c d": "x"}, 30], "none": null, "it's": 1},
            "books": [
                {"title": "A", "price": 5, "tags": ["x", "y"], "isbn": "1"},
                {"title": "B", "price": 12.5, "tags": []},
                {"title": "C", "price": 8, "tags": ["y"], "isbn": null},
            ],
            "numbers": [3, 1, 2],
            "words": ["p", "q"],
            "text": "hello",
        })
    }

    fn check(path: &str, expected: Option<Value>) {
        let compiled = compile(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = compiled.evaluate(&document(), &mut Budget::default());
        assert_eq!(found, Ok(expected), "{path}");
    }

    #[test]
    fn definite_paths_have_one_value_or_none() {
        for (path, expected) in [
            ("a.b[0]", json!(10)),
            ("$.a.b[0]", json!(10)),
            ("  a.b[0] ", json!(10)),
            ("a.b[1]['c d']", json!("x")),
            ("a.b[1][\"c d\"]", json!("x")),
            ("['a']['b'][-1]", json!(30)),
            ("a['it\\'s']", json!(1)),
            ("a.none", json!(null)),
            ("text", json!("hello")),
            ("books[0]['title','price','no']", json!({"title": "A", "price": 5})),
        ] {
            check(path, Some(expected));
        }
        for path in
            ["no", "a.no.further", "a.b.c", "a.b[3]", "a.b[-4]", "text.x", "a[0]", "books.title"]
        {
            check(path, None);
        }
    }

    #[test]
    fn indefinite_paths_have_a_list() {
        for (path, expected) in [
            ("books[*].title", json!(["A", "B", "C"])),
            ("books.*.title", json!(["A", "B", "C"])),
            ("books[0,2].title", json!(["A", "C"])),
            ("books[1:].title", json!(["B", "C"])),
            ("books[:1].title", json!(["A"])),
            ("books[-2:].title", json!(["B", "C"])),
            ("books[0:-1].title", json!(["A", "B"])),
            ("..title", json!(["A", "B", "C"])),
            ("$..price", json!([5, 12.5, 8])),
            ("books..tags[0]", json!(["x", "y"])),
            ("a.*", json!([[10, {"c d": "x"}, 30], null, 1])),
            ("no[*]", json!([])),
            ("no..x", json!([])),
        ] {
            check(path, Some(expected));
        }
    }

    #[test]
    fn filters_are_those_of_jayway() {
        for (filter, expected) in [
            ("@.price > 6", json!(["B", "C"])),
            ("@.price >= 5 && @.price<12.5", json!(["A", "C"])),
            ("@.title == 'A' || @['title'] == \"C\"", json!(["A", "C"])),
            ("@.title != 'A'", json!(["B", "C"])),
            ("@.isbn", json!(["A", "C"])),
            ("!@.isbn", json!(["B"])),
            ("!(@.isbn)", json!(["B"])),
            ("@.isbn == null", json!(["C"])),
            ("@.isbn == 1", json!(["A"])),
            ("@.price == '5'", json!(["A"])),
            ("@.price === '5'", json!([])),
            ("5 == @.price", json!(["A"])),
            ("@.title in ['A', 'B']", json!(["A", "B"])),
            ("@.title nin ['A', 'B']", json!(["C"])),
            ("@.tags contains 'y'", json!(["A", "C"])),
            ("@.tags size 2", json!(["A"])),
            ("@.tags empty true", json!(["B"])),
            ("@.title =~ /[a-b]/i", json!(["A", "B"])),
            ("@.tags[0] == 'y'", json!(["C"])),
            ("(@.price > 6 && @.price < 10) || @.title == 'A'", json!(["A", "C"])),
            ("@.price > 'a'", json!([])),
            ("@.nothing > 1", json!([])),
        ] {
            check(&format!("books[?({filter})].title"), Some(expected));
        }
        check("numbers[?(@ > 1)]", Some(json!([3, 2])));
        check("a[?(@.none == null)]['it\\'s']", Some(json!([1])));
    }

    #[test]
    fn functions_end_a_path() {
        for (path, expected) in [
            ("books.length()", json!(3)),
            ("books.size()", json!(3)),
            ("a.length()", json!(3)),
            ("numbers.min()", json!(1.0)),
            ("numbers.max()", json!(3.0)),
            ("numbers.avg()", json!(2.0)),
            ("numbers.sum()", json!(6.0)),
            ("words.concat()", json!("pq")),
            ("words.first()", json!("p")),
            ("words.last()", json!("q")),
            ("a.keys()", json!(["b", "none", "it's"])),
            ("$..price.sum()", json!(25.5)),
            ("books[*].tags.length()", json!([2, 0, 1])),
        ] {
            check(path, Some(expected));
        }
        for path in ["text.length()", "words.sum()", "no.length()", "text.keys()"] {
            check(path, None);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in [
            "",
            " ",
            "$",
            ".",
            "a.",
            "a..",
            "a...b",
            "a[",
            "a[]",
            "a['b]",
            "a[1",
            "a[x]",
            "a b",
            "a[?(",
            "a[?(@.x ==)]",
            "a[?(@.x = 1)]",
            "a[?]",
            "a.unknown()",
            "a.length().b",
            "a]",
            "a[1:2:3:4]",
            "a[?(@.x =~ /(/)]",
            "a[99999999999999999999]",
            "a[?(@.x == 'y)]",
        ] {
            assert!(compile(path).is_err(), "{path:?} is accepted");
        }
        assert!(compile(&"a.".repeat(PATH_BYTES_MAX)).is_err());
        assert!(compile(&format!("a[?({}@.b{})]", "(".repeat(2_000), ")".repeat(2_000))).is_err());
    }

    #[test]
    fn a_bomb_is_stopped() {
        let mut document = json!(1);
        for _ in 0..40 {
            document = json!([document.clone(), 1, 2, 3]);
        }
        for path in ["..*..*..*..*..*", "..[*]..[*]..[*]..[*]", "..[?(@..*)]..[?(@..*)]..*..*"] {
            let found = compile(path).unwrap().evaluate(&document, &mut Budget::default());
            assert!(matches!(found, Err(BudgetError::StepsExhausted)), "{path}");
        }
    }
}
