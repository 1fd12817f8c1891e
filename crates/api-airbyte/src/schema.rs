//! Whether a configuration is what the specification of its connector asks for, a JSON Schema.
//!
//! In doubt it is: what is sealed may be anything, and what is not looked at (`not`, `if`, `format`, patterns of
//! other dialects, schemas without an end) refuses nothing. The connector itself has the last word.

use std::cell::Cell;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::limit::{BRANCHES_MAX, DEPTH_MAX, PATTERN_BYTES_MAX};
use crate::vault::is_sealed;

/// What is said of one configuration, at most.
const WRONG_MAX: usize = 10;

/// Choices that are named when none of them was taken.
const CHOICES_MAX: usize = 20;

/// What is wrong with a configuration, a fragment for each; no value of it is repeated. `specification` has a
/// `connectionSpecification`.
pub(crate) fn wrong(configuration: &Value, specification: &Value) -> Vec<String> {
    let Some(root) = specification.get("connectionSpecification") else { return Vec::new() };
    let checker = Checker { root, steps: Cell::new(0), depth: Cell::new(0) };
    let mut found = Vec::new();
    checker.look(configuration, root, &At::Root, &mut found);
    found.into_iter().map(|wrong| wrong.text).collect()
}

/// Where a value is.
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl At<'_> {
    fn name(&self) -> String {
        match self {
            At::Root => "configuration".to_owned(),
            At::Field(above, name) => format!("{}.{name}", above.name()),
            At::Item(above, index) => format!("{}[{index}]", above.name()),
        }
    }
}

struct Wrong {
    text: String,
    /// A value that names an alternative, and another one.
    is_choice: bool,
}

struct Checker<'s> {
    root: &'s Value,
    /// Schemas that were looked at: they may name themselves, and have branches.
    steps: Cell<usize>,
    /// In how many of them we are.
    depth: Cell<usize>,
}

impl Checker<'_> {
    fn look(&self, value: &Value, schema: &Value, at: &At<'_>, found: &mut Vec<Wrong>) {
        let (steps, depth) = (self.steps.get(), self.depth.get());
        let is_over = steps >= BRANCHES_MAX || depth >= DEPTH_MAX || found.len() >= WRONG_MAX;
        if is_over || is_sealed(value) {
            return;
        }
        self.steps.set(steps + 1);
        self.depth.set(depth + 1);
        self.look_at(value, schema, at, found);
        self.depth.set(depth);
    }

    fn look_at(&self, value: &Value, schema: &Value, at: &At<'_>, found: &mut Vec<Wrong>) {
        if schema == &Value::Bool(false) {
            say(found, at, "must not be there");
        }
        let Some(schema) = schema.as_object() else { return };
        if let Some(named) = self.named(schema) {
            self.look(value, named, at, found);
        }
        if !has_type(value, schema) {
            // Nothing else makes sense then.
            return say(found, at, &format!("must be {}", types(schema)));
        }
        choice(value, schema, at, found);
        match value {
            Value::Object(fields) => self.object(fields, schema, at, found),
            Value::Array(items) => self.array(items, schema, at, found),
            Value::String(text) => string(text, schema, at, found),
            Value::Number(number) => range(number.as_f64(), schema, at, found),
            Value::Null | Value::Bool(_) => {}
        }
        for all in list(schema, "allOf") {
            self.look(value, all, at, found);
        }
        for branches in ["oneOf", "anyOf"] {
            self.branches(value, list(schema, branches), at, found);
        }
    }

    fn named(&self, schema: &Map<String, Value>) -> Option<&Value> {
        let at = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(at)
    }

    /// One of them must do. That two of them do is no fault here: what is sealed fits all of them.
    fn branches(&self, value: &Value, branches: &[Value], at: &At<'_>, found: &mut Vec<Wrong>) {
        let mut meant = Vec::new();
        for branch in branches {
            let mut wrong = Vec::new();
            self.look(value, branch, at, &mut wrong);
            if wrong.is_empty() {
                return;
            }
            if !wrong.iter().any(|wrong| wrong.is_choice) {
                meant.push(wrong);
            }
        }
        match (branches.is_empty(), meant.pop()) {
            (true, _) => {}
            // The one that the value names.
            (false, Some(wrong)) if meant.is_empty() => found.extend(wrong),
            (false, _) => say(found, at, "is none of the alternatives that there are"),
        }
    }

    fn object(
        &self,
        fields: &Map<String, Value>,
        schema: &Map<String, Value>,
        at: &At<'_>,
        found: &mut Vec<Wrong>,
    ) {
        // Clients write null for what they do not give.
        let is_there = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
        for name in list(schema, "required").iter().filter_map(Value::as_str) {
            if !is_there(name) {
                say(found, &At::Field(at, name), "is required");
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let at = At::Field(at, name);
            let known = properties.and_then(|properties| properties.get(name));
            let has_patterns = schema.contains_key("patternProperties");
            match known.or_else(|| schema.get("additionalProperties").filter(|_| !has_patterns)) {
                Some(Value::Bool(false)) if known.is_none() => {
                    say(found, &at, "is not known to the connector");
                }
                Some(below) => self.look(value, below, &at, found),
                None => {}
            }
        }
    }

    fn array(
        &self,
        items: &[Value],
        schema: &Map<String, Value>,
        at: &At<'_>,
        found: &mut Vec<Wrong>,
    ) {
        bounds(items.len(), ["minItems", "maxItems"], "items", schema, at, found);
        let Some(below) = schema.get("items").filter(|below| below.is_object()) else { return };
        for (index, item) in items.iter().enumerate() {
            self.look(item, below, &At::Item(at, index), found);
        }
    }
}

fn say(found: &mut Vec<Wrong>, at: &At<'_>, what: &str) {
    found.push(Wrong { text: format!("{} {what}", at.name()), is_choice: false });
}

fn list<'s>(schema: &'s Map<String, Value>, name: &str) -> &'s [Value] {
    schema.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The names of the types that a schema allows; none is any.
fn type_names(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn types(schema: &Map<String, Value>) -> String {
    let with_article = |name: &str| match name {
        "array" | "object" | "integer" => format!("an {name}"),
        "null" => "null".to_owned(),
        _ => format!("a {name}"),
    };
    let names: Vec<String> = type_names(schema).into_iter().map(with_article).collect();
    names.join(" or ")
}

fn has_type(value: &Value, schema: &Map<String, Value>) -> bool {
    let names = type_names(schema);
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        // 1.0 is one too.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    names.is_empty() || names.iter().any(is)
}

fn choice(value: &Value, schema: &Map<String, Value>, at: &At<'_>, found: &mut Vec<Wrong>) {
    let one = schema.get("const").map(std::slice::from_ref);
    let some = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    for choices in one.into_iter().chain(some) {
        if !choices.iter().any(|choice| is_same(choice, value)) {
            let named: Vec<String> =
                choices.iter().take(CHOICES_MAX).map(ToString::to_string).collect();
            let more = if choices.len() > CHOICES_MAX { ", …" } else { "" };
            let text = format!("{} must be one of {}{more}", at.name(), named.join(", "));
            // Alternatives are told apart by a text that is theirs.
            found.push(Wrong { text, is_choice: choices.len() == 1 });
        }
    }
}

/// 1 is 1.0.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

fn string(text: &str, schema: &Map<String, Value>, at: &At<'_>, found: &mut Vec<Wrong>) {
    let characters = text.chars().count();
    bounds(characters, ["minLength", "maxLength"], "characters", schema, at, found);
    let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else { return };
    // An empty text is what a form has for nothing.
    let known = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
    if !text.is_empty() && known.is_ok_and(|known| !known.is_match(text)) {
        say(found, at, &format!("must have the pattern {pattern}"));
    }
}

fn bounds(
    count: usize,
    [least, most]: [&str; 2],
    what: &str,
    schema: &Map<String, Value>,
    at: &At<'_>,
    found: &mut Vec<Wrong>,
) {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    if let Some(least) = bound(least).filter(|least| count < *least) {
        say(found, at, &format!("must have at least {least} {what}"));
    }
    if let Some(most) = bound(most).filter(|most| count > *most) {
        say(found, at, &format!("must have at most {most} {what}"));
    }
}

fn range(number: Option<f64>, schema: &Map<String, Value>, at: &At<'_>, found: &mut Vec<Wrong>) {
    let Some(number) = number else { return };
    // The old dialect has true and false for the last two.
    let bound = |name: &str| schema.get(name).filter(|bound| bound.is_number());
    for (name, words, is_past) in [
        ("minimum", "at least", (|number, bound| number < bound) as fn(f64, f64) -> bool),
        ("maximum", "at most", |number, bound| number > bound),
        ("exclusiveMinimum", "more than", |number, bound| number <= bound),
        ("exclusiveMaximum", "less than", |number, bound| number >= bound),
    ] {
        if let Some(bound) = bound(name)
            && bound.as_f64().is_some_and(|bound| is_past(number, bound))
        {
            say(found, at, &format!("must be {words} {bound}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(schema: Value, value: Value) -> String {
        wrong(&value, &json!({ "connectionSpecification": schema })).join("; ")
    }

    fn database() -> Value {
        json!({
            "type": "object",
            "required": ["host", "port", "auth"],
            "additionalProperties": false,
            "properties": {
                "host": { "type": "string", "minLength": 2, "pattern": "^[a-z.]+$" },
                "port": { "type": "integer", "minimum": 1, "maximum": 65535 },
                "mode": { "type": "string", "enum": ["fast", "slow"] },
                "tables": { "type": "array", "minItems": 1, "items": { "$ref": "#/definitions/table" } },
                "note": { "type": ["string", "null"] },
                "auth": { "type": "object", "oneOf": [
                    { "properties": { "kind": { "const": "none" } }, "required": ["kind"] },
                    { "required": ["kind", "secret"], "properties": {
                        "kind": { "const": "key" },
                        "secret": { "type": "string", "airbyte_secret": true },
                    } },
                ] },
            },
            "definitions": { "table": { "type": "string", "maxLength": 3 } },
        })
    }

    fn with(name: &str, value: Value) -> Value {
        let mut whole = json!({ "host": "a.b", "port": 1.0, "auth": { "kind": "none" } });
        whole[name] = value;
        whole
    }

    #[test]
    fn each_field_that_is_wrong_is_named() {
        assert_eq!(said(database(), with("mode", json!("fast"))), "");
        assert_eq!(
            said(database(), json!({})),
            "configuration.host is required; configuration.port is required; configuration.auth is required"
        );
        for (name, value, expected) in [
            ("host", json!(5), "host must be a string"),
            ("host", json!("a"), "host must have at least 2 characters"),
            ("host", json!("A.B"), "host must have the pattern ^[a-z.]+$"),
            ("host", json!(null), "host is required"),
            ("port", json!("1"), "port must be an integer"),
            ("port", json!(1.5), "port must be an integer"),
            ("port", json!(0), "port must be at least 1"),
            ("port", json!(65536), "port must be at most 65535"),
            ("mode", json!("other"), r#"mode must be one of "fast", "slow""#),
            ("tables", json!([]), "tables must have at least 1 items"),
            ("tables", json!(["a", "long"]), "tables[1] must have at most 3 characters"),
            ("note", json!(1), "note must be a string or null"),
            ("other", json!(1), "other is not known to the connector"),
            ("auth", json!({ "kind": "key" }), "auth.secret is required"),
            ("auth", json!({ "kind": "key", "secret": 1 }), "auth.secret must be a string"),
            ("auth", json!({ "kind": "x" }), "auth is none of the alternatives that there are"),
            ("auth", json!([]), "auth must be an object"),
        ] {
            let shown = format!("{name} {value}");
            let expected = format!("configuration.{expected}");
            assert_eq!(said(database(), with(name, value)), expected, "{shown}");
        }
    }

    #[test]
    fn what_nobody_knows_is_not_refused() {
        let sealed = json!({ "$sealed": "1.x.y" });
        for (name, value) in [
            ("host", sealed.clone()),
            ("port", sealed.clone()),
            ("mode", json!(null)),
            ("auth", sealed.clone()),
            ("auth", json!({ "kind": "key", "secret": sealed })),
            ("auth", json!({ "kind": sealed })),
        ] {
            assert_eq!(said(database(), with(name, value.clone())), "", "{name} {value}");
        }
        assert_eq!(said(json!({ "type": "colour", "pattern": "(?<!a)b" }), json!("x")), "");
        assert_eq!(wrong(&json!(1), &json!({})).len(), 0, "there is no schema");
    }

    #[test]
    fn schemas_without_an_end_have_one() {
        let endless = json!({ "anyOf": [
            { "allOf": [{ "$ref": "#" }, { "required": ["a"] }] },
            { "allOf": [{ "$ref": "#" }, { "required": ["b"] }] },
        ] });
        // It ends; what comes of it is nobody's matter.
        let _ = said(endless, json!({ "c": 1 }));
        let many = json!({ "items": { "type": "string" } });
        let list = Value::Array(vec![json!(1); 100]);
        assert_eq!(said(many, list).matches("must be a string").count(), WRONG_MAX);
    }
}
