//! `${…}` in the strings of a definition.
//!
//! A string that is one expression becomes its value, of whatever type; an expression inside of a
//! longer string becomes text (null becomes `null`, objects and lists become JSON). An expression may
//! hold others: `${a.${b}}`. `$${` stands for `${`, and `${}` for nothing. What is missing is null.
//! `${workflow.secrets.…}` stays as it is, for the shell to fill in when work is handed out.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::path::{self, Budget, BudgetError, PathError};

/// How many expressions may lie inside one another.
pub const NESTING_MAX: usize = 16;

/// How many lists and objects of a template may lie inside one another.
pub const DEPTH_MAX: usize = 128;

/// What expressions are about.
pub trait Roots {
    /// What `root.field` is, for roots that know their fields: the outer `Option` says whether this
    /// is one of them, the inner one whether there is such a field. Asked before [`whole`](Self::whole),
    /// so that only what is used has to be made.
    fn part(&self, root: &str, field: &str) -> Option<Option<Value>>;

    /// All of a root: of one that has no fields of its own, or whose fields are not named plainly.
    fn whole(&self, root: &str) -> Option<Value>;
}

/// Why a template was not filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// A bound of the evaluation was reached.
    Budget(BudgetError),
    /// Expressions or values lie too deeply inside one another.
    TooDeep,
}

/// An expression of a template, for the checks at registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The nearest name in the template that it stands below.
    pub key: String,
    /// Without `${` and `}`.
    pub expression: String,
    /// What it names first; none if that is only known when it is evaluated.
    pub root: Option<String>,
    /// Whether its path could be parsed; nothing is wrong with one that depends on others.
    pub problem: Option<PathError>,
}

/// Fills in a template.
pub fn resolve(
    template: &Value,
    roots: &impl Roots,
    budget: &mut Budget,
) -> Result<Value, TemplateError> {
    Resolver { roots, budget, parts: Vec::new() }.value(template, DEPTH_MAX)
}

/// All expressions in a template, those inside others too. Secrets are left out.
pub fn references(template: &Value) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(template, "", DEPTH_MAX, &mut found);
    found
}

impl From<BudgetError> for TemplateError {
    fn from(error: BudgetError) -> TemplateError {
        TemplateError::Budget(error)
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Budget(error) => error.fmt(formatter),
            TemplateError::TooDeep => formatter.write_str("the expression nests too deeply"),
        }
    }
}

impl std::error::Error for TemplateError {}

struct Resolver<'a, R> {
    roots: &'a R,
    budget: &'a mut Budget,
    /// What was asked for so far, so that each is made once: root, field, value. The field is empty
    /// for a whole root.
    parts: Vec<(String, String, Option<Value>)>,
}

impl<R: Roots> Resolver<'_, R> {
    fn value(&mut self, template: &Value, depth_left: usize) -> Result<Value, TemplateError> {
        let depth_left = depth_left.checked_sub(1).ok_or(TemplateError::TooDeep)?;
        self.budget.step()?;
        match template {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, depth_left));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Value::Object(fields) => {
                let mut filled = Map::with_capacity(fields.len());
                for (name, field) in fields {
                    self.budget.build(name.len())?;
                    filled.insert(name.clone(), self.value(field, depth_left)?);
                }
                Ok(Value::Object(filled))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(template.clone()),
        }
    }

    fn text(&mut self, text: &str) -> Result<Value, TemplateError> {
        if let Some(Piece::Expression(expression)) = only(text)
            && !is_secret(expression)
        {
            return self.expression(expression, NESTING_MAX);
        }
        self.joined(text, NESTING_MAX).map(Value::String)
    }

    /// A string with its expressions as text.
    fn joined(&mut self, text: &str, nesting_left: usize) -> Result<String, TemplateError> {
        let mut joined = String::new();
        for piece in Pieces::of(text) {
            match piece {
                Piece::Text(text) => joined.push_str(text),
                Piece::Escape => joined.push_str("${"),
                Piece::Expression(expression) if is_secret(expression) => {
                    joined.push_str("${");
                    joined.push_str(expression);
                    joined.push('}');
                }
                Piece::Expression(expression) => {
                    let value = self.expression(expression, nesting_left)?;
                    joined.push_str(&shown(&value));
                }
            }
        }
        self.budget.build(joined.len())?;
        Ok(joined)
    }

    fn expression(
        &mut self,
        expression: &str,
        nesting_left: usize,
    ) -> Result<Value, TemplateError> {
        let nesting_left = nesting_left.checked_sub(1).ok_or(TemplateError::TooDeep)?;
        self.budget.step()?;
        let expression = if expression.contains("${") {
            Cow::Owned(self.joined(expression, nesting_left)?)
        } else {
            Cow::Borrowed(expression)
        };
        if expression.trim().is_empty() {
            return Ok(Value::String(String::new()));
        }
        // What is no path names nothing; a definition with such a path is not registered.
        let Ok(path) = path::compile(&expression) else { return Ok(Value::Null) };
        let Some(root) = path.name(0) else { return Ok(Value::Null) };
        let found = self.part(root, path.name(1));
        let Some((_, part, Some(value))) = self.parts.get(found) else { return Ok(Value::Null) };
        let skipped = if part.is_empty() { 1 } else { 2 };
        Ok(path.evaluate_behind(skipped, value, self.budget)?.unwrap_or_default())
    }

    /// Where among the parts that is what the first one or two names of a path lead to.
    fn part(&mut self, root: &str, field: Option<&str>) -> usize {
        let known = |parts: &[(String, String, Option<Value>)], field: &str| {
            parts.iter().position(|(name, part, _)| name == root && part == field)
        };
        if let Some(field) = field.filter(|field| !field.is_empty()) {
            if let Some(found) = known(&self.parts, field) {
                return found;
            }
            if let Some(part) = self.roots.part(root, field) {
                self.parts.push((root.to_owned(), field.to_owned(), part));
                return self.parts.len() - 1;
            }
        }
        known(&self.parts, "").unwrap_or_else(|| {
            self.parts.push((root.to_owned(), String::new(), self.roots.whole(root)));
            self.parts.len() - 1
        })
    }
}

/// A value inside of a longer string.
fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

fn is_secret(expression: &str) -> bool {
    expression.trim_start().starts_with("workflow.secrets.")
}

fn collect(template: &Value, key: &str, depth_left: usize, found: &mut Vec<Reference>) {
    // What lies deeper is refused when it is filled in.
    let Some(depth_left) = depth_left.checked_sub(1) else { return };
    match template {
        Value::String(text) => collect_text(text, key, NESTING_MAX, found),
        Value::Array(items) => {
            items.iter().for_each(|item| collect(item, key, depth_left, found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| collect(field, name, depth_left, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn collect_text(text: &str, key: &str, nesting_left: usize, found: &mut Vec<Reference>) {
    let Some(nesting_left) = nesting_left.checked_sub(1) else { return };
    for piece in Pieces::of(text) {
        let Piece::Expression(expression) = piece else { continue };
        if is_secret(expression) || expression.trim().is_empty() {
            continue;
        }
        let (root, problem) = match expression.split_once("${") {
            Some((before, _)) => (known_root(before), None),
            None => match path::compile(expression) {
                Ok(path) => (path.name(0).map(str::to_owned), None),
                Err(problem) => (known_root(expression), Some(problem)),
            },
        };
        found.push(Reference {
            key: key.to_owned(),
            expression: expression.to_owned(),
            root,
            problem,
        });
        collect_text(expression, key, nesting_left, found);
    }
}

/// The first name of a path that is only known in part.
fn known_root(before: &str) -> Option<String> {
    let before = before.trim_start();
    let end = before.find(['.', '['])?;
    let root = before.get(..end)?;
    (!root.is_empty()).then(|| root.to_owned())
}

/// A part of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    /// `$${`.
    Escape,
    Expression(&'t str),
}

/// The only piece of a string.
fn only(text: &str) -> Option<Piece<'_>> {
    let mut pieces = Pieces::of(text);
    let first = pieces.next()?;
    pieces.next().is_none().then_some(first)
}

struct Pieces<'t> {
    text: &'t str,
    at: usize,
    /// Braces that end one another, by where they open.
    braces: Vec<(usize, usize)>,
}

impl<'t> Pieces<'t> {
    fn of(text: &'t str) -> Pieces<'t> {
        let braces = if text.contains("${") { braces(text) } else { Vec::new() };
        Pieces { text, at: 0, braces }
    }

    fn take_until(&mut self, end: usize) -> &'t str {
        let piece = self.text.get(self.at..end).unwrap_or_default();
        self.at = end;
        piece
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with("$${") {
            self.at += "$${".len();
            return Some(Piece::Escape);
        }
        if rest.starts_with("${") {
            let open = self.at + 1;
            let known = self.braces.binary_search_by_key(&open, |(open, _)| *open).ok();
            // One that does not end is text.
            let Some((_, close)) = known.and_then(|at| self.braces.get(at).copied()) else {
                return Some(Piece::Text(self.take_until(open + 1)));
            };
            self.at = close + 1;
            return Some(Piece::Expression(self.text.get(open + 1..close).unwrap_or_default()));
        }
        let end = match rest.find("${") {
            Some(end) if rest.get(..end).is_some_and(|text| text.ends_with('$')) => end - 1,
            Some(end) => end,
            None => rest.len(),
        };
        Some(Piece::Text(self.take_until(self.at + end)))
    }
}

fn braces(text: &str) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    let mut braces = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => braces.extend(open.pop().map(|open| (open, at))),
            _ => {}
        }
    }
    braces.sort_unstable();
    braces
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Run {
        parts_made: Cell<u32>,
    }

    impl Roots for Run {
        fn part(&self, root: &str, field: &str) -> Option<Option<Value>> {
            let part = match (root, field) {
                ("workflow", "input") => json!({
                    "name": "Ada", "n": 3, "f": 1.5, "none": null, "which": "b", "list": [1, {"x": 2}],
                    "a": {"b": "found", "c": {"z": 1, "a": 2}}, "template": "${workflow.input.n}",
                }),
                ("workflow", "status") => json!("RUNNING"),
                ("workflow", _) => return Some(None),
                ("task", "output") => json!({"rows": [{"id": 1}, {"id": 2}]}),
                _ => return None,
            };
            self.parts_made.set(self.parts_made.get() + 1);
            Some(Some(part))
        }

        fn whole(&self, root: &str) -> Option<Value> {
            match root {
                "STACK" => Some(json!("prod")),
                "task" => Some(json!({"output": {"rows": []}, "status": "COMPLETED"})),
                _ => None,
            }
        }
    }

    fn check(template: Value, expected: Value) {
        let found = resolve(&template, &Run::default(), &mut Budget::default());
        assert_eq!(found, Ok(expected), "{template}");
    }

    #[test]
    fn a_whole_expression_keeps_its_type() {
        for (template, expected) in [
            ("${workflow.input.n}", json!(3)),
            ("${workflow.input.f}", json!(1.5)),
            ("${workflow.input.list}", json!([1, {"x": 2}])),
            ("${workflow.input.list[1].x}", json!(2)),
            ("${workflow.input.a['b']}", json!("found")),
            ("${workflow.input['name']}", json!("Ada")),
            ("${ workflow.input.n }", json!(3)),
            ("${workflow.input.none}", json!(null)),
            ("${workflow.input.no.such}", json!(null)),
            ("${workflow.nothing}", json!(null)),
            ("${nobody.output.x}", json!(null)),
            ("${workflow.status}", json!("RUNNING")),
            ("${task.output.rows[*].id}", json!([1, 2])),
            ("${task.output.rows.length()}", json!(2)),
            ("${task.status}", json!("COMPLETED")),
            ("${task..rows}", json!([[]])),
            ("${STACK}", json!("prod")),
            ("${}", json!("")),
            ("${  }", json!("")),
            ("${workflow.input.template}", json!("${workflow.input.n}")),
        ] {
            check(json!(template), expected);
        }
    }

    #[test]
    fn an_embedded_expression_becomes_text() {
        for (template, expected) in [
            ("Hello ${workflow.input.name}!", "Hello Ada!"),
            ("${workflow.input.name}${workflow.input.n}", "Ada3"),
            (" ${workflow.input.n}", " 3"),
            ("<${workflow.input.none}>", "<null>"),
            ("<${workflow.input.no}>", "<null>"),
            ("<${}>", "<>"),
            ("${workflow.input.a.c} ", r#"{"z":1,"a":2} "#),
            ("x${workflow.input.list}", r#"x[1,{"x":2}]"#),
            ("plain", "plain"),
            ("$5 {x} $", "$5 {x} $"),
            ("${unclosed", "${unclosed"),
            ("ä${workflow.input.n}ö", "ä3ö"),
        ] {
            check(json!(template), json!(expected));
        }
    }

    #[test]
    fn expressions_lie_in_expressions() {
        check(json!("${workflow.input.a.${workflow.input.which}}"), json!("found"));
        check(json!("${workflow.input.list[${workflow.input.no}]}"), json!(null));
        check(json!("${${workflow.input.no}.x}"), json!(null));
        check(json!("x ${workflow.input.a.${workflow.input.which}} y"), json!("x found y"));
    }

    #[test]
    fn escapes_and_secrets_stay() {
        check(json!("$${workflow.input.n}"), json!("${workflow.input.n}"));
        check(json!("a $${x} ${workflow.input.n}"), json!("a ${x} 3"));
        let secret = "${workflow.secrets.KEY}";
        check(json!(secret), json!(secret));
        check(
            json!(format!("Bearer {secret} ${{workflow.input.n}}")),
            json!(format!("Bearer {secret} 3")),
        );
    }

    #[test]
    fn maps_and_lists_are_filled_in_and_keep_their_order() {
        let template =
            json!({"z": {"b": ["${workflow.input.n}", 1, null]}, "a": "${workflow.input.name}"});
        let found = resolve(&template, &Run::default(), &mut Budget::default()).unwrap();
        assert_eq!(found.to_string(), r#"{"z":{"b":[3,1,null]},"a":"Ada"}"#);
    }

    #[test]
    fn a_part_is_made_once() {
        let roots = Run::default();
        let template = json!(["${workflow.input.n}", "${workflow.input.name}", "${workflow.no}"]);
        resolve(&template, &roots, &mut Budget::default()).unwrap();
        assert_eq!(roots.parts_made.get(), 1);
    }

    #[test]
    fn references_are_found_for_registration() {
        let template = json!({
            "a": "${workflow.input.x} and ${t1.output.y[0]}",
            "b": {"c": ["${t2.output.${t3.output.z}}", "$${no}", "${}", "${workflow.secrets.K}"]},
            "d": "${t4.output[}",
            "e": "${${t5.x}.y}",
        });
        let found: Vec<_> = references(&template)
            .into_iter()
            .map(|found| (found.key, found.root, found.problem.is_some()))
            .collect();
        let reference =
            |key: &str, root: Option<&str>, bad| (key.to_owned(), root.map(str::to_owned), bad);
        assert_eq!(
            found,
            [
                reference("a", Some("workflow"), false),
                reference("a", Some("t1"), false),
                reference("c", Some("t2"), false),
                reference("c", Some("t3"), false),
                reference("d", Some("t4"), true),
                reference("e", None, false),
                reference("e", Some("t5"), false),
            ]
        );
    }

    #[test]
    fn bounds_hold() {
        let many = json!(vec!["${workflow.input.a}"; 1_000]);
        let mut budget = Budget { steps_left: 1_000_000, size_left: 10_000 };
        let found = resolve(&many, &Run::default(), &mut budget);
        assert_eq!(found, Err(TemplateError::Budget(BudgetError::SizeExhausted)));
        let nested = format!("{}workflow.input.n{}", "${".repeat(100), "}".repeat(100));
        let found = resolve(&json!(nested), &Run::default(), &mut Budget::default());
        assert_eq!(found, Err(TemplateError::TooDeep));
        references(&json!(nested));
        let unclosed = json!("${".repeat(10_000));
        check(unclosed.clone(), unclosed);
    }
}
