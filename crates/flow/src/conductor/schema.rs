//! JSON Schema, as far as definitions use it: what an input or an output must look like.
//!
//! A schema is that of draft 7 and later (<https://json-schema.org/specification>) without remote
//! references, `$dynamicRef`, `unevaluated…` and `format`, which is only a note there too. Ours,
//! because a step of the kernel has to be bounded: references into a schema may visit a value any
//! number of times.

use std::fmt;

use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Values that one check visits at most.
const STEPS_MAX: u32 = 1_000_000;

/// References and containers in each other.
const DEPTH_MAX: u32 = 128;

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 16;

/// Bytes of a text that are looked at in the time of one step.
const TEXT_BYTES_PER_STEP: usize = 64;

/// Fields or items that are passed in the time of one step.
const LOOKS_PER_STEP: usize = 8;

/// Why a value does not match, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// A JSON pointer into the value; empty is all of it.
    pub at: String,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "/" } else { &self.at };
        write!(f, "{at}: {}", self.problem)
    }
}

/// Holds a value against the schema of a `SchemaDef`: the one in its `data`. One of another type than
/// `JSON`, or without data, asks for nothing.
pub(crate) fn check(definition: &Value, value: &Value) -> Result<(), Mismatch> {
    let is_json = matches!(definition.get("type").and_then(Value::as_str), Some("JSON") | None);
    match definition.get("data") {
        Some(schema) if is_json && !schema.is_null() => matches(schema, value),
        Some(_) | None => Ok(()),
    }
}

/// The schema of a definition that is to be enforced: `inputSchema` or `outputSchema`.
pub(crate) fn enforced<'a>(definition: &'a Value, field: &str) -> Option<&'a Value> {
    let enforced = definition.get("enforceSchema") != Some(&Value::Bool(false));
    definition.get(field).filter(|_| enforced)
}

/// Holds a value against a schema; says the first thing that is wrong.
pub fn matches(schema: &Value, value: &Value) -> Result<(), Mismatch> {
    let mut check = Check { root: schema, steps_left: STEPS_MAX, depth: 0, at: String::new() };
    check.value(schema, value)
}

struct Check<'a> {
    root: &'a Value,
    steps_left: u32,
    depth: u32,
    at: String,
}

impl<'a> Check<'a> {
    fn wrong<T>(&self, problem: impl Into<String>) -> Result<T, Mismatch> {
        Err(Mismatch { at: self.at.clone(), problem: problem.into() })
    }

    /// Takes steps of what is left, as many as something costs.
    fn pay(&mut self, steps: usize) -> Result<(), Mismatch> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps_left = self.steps_left.saturating_sub(steps);
        if self.steps_left == 0 { self.wrong("the schema takes too many steps") } else { Ok(()) }
    }

    fn value(&mut self, schema: &'a Value, value: &Value) -> Result<(), Mismatch> {
        self.pay(1)?;
        if self.depth == DEPTH_MAX {
            return self.wrong("the schema goes too deep");
        }
        self.depth += 1;
        let result = match schema {
            Value::Object(schema) => self.object_schema(schema, value),
            Value::Bool(false) => self.wrong("no value is allowed here"),
            Value::Bool(true) => Ok(()),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.wrong("the schema is neither an object nor true or false")
            }
        };
        self.depth -= 1;
        result
    }

    fn object_schema(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
    ) -> Result<(), Mismatch> {
        if let Some(reference) = schema.get("$ref") {
            let schema = self.referred(reference)?;
            self.value(schema, value)?;
        }
        self.kind(schema, value)?;
        self.combined(schema, value)?;
        match value {
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => self.text(schema, text),
            Value::Array(list) => self.list(schema, list),
            Value::Object(_) => self.object(schema, value),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn referred(&mut self, reference: &Value) -> Result<&'a Value, Mismatch> {
        let pointer = reference.as_str().and_then(|it| it.strip_prefix('#'));
        self.pay(pointer.map_or(0, str::len) / TEXT_BYTES_PER_STEP)?;
        match pointer.and_then(|pointer| self.root.pointer(pointer)) {
            Some(schema) => Ok(schema),
            None => self.wrong(format!("the schema refers to {reference}, which it does not hold")),
        }
    }

    fn kind(&mut self, schema: &Map<String, Value>, value: &Value) -> Result<(), Mismatch> {
        self.pay(of_list(schema, "type").len() / LOOKS_PER_STEP)?;
        match schema.get("type") {
            Some(Value::String(kind)) if !is_of(value, kind) => {
                self.wrong(format!("{} is expected, not {}", kind, kind_of(value)))
            }
            Some(Value::Array(kinds))
                if !kinds.iter().any(|kind| kind.as_str().is_some_and(|it| is_of(value, it))) =>
            {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                self.wrong(format!("{} is expected, not {}", kinds.join(" or "), kind_of(value)))
            }
            Some(_) | None => Ok(()),
        }?;
        let allowed = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        let compared = allowed + usize::from(schema.contains_key("const"));
        if compared > 0 {
            self.pay(compared * size(value))?;
        }
        if let Some(expected) = schema.get("const")
            && !same(expected, value)
        {
            self.pay(size(expected))?;
            return self.wrong(format!("{} is expected", shown(expected)));
        }
        match schema.get("enum") {
            Some(Value::Array(all)) if !all.iter().any(|one| same(one, value)) => {
                self.wrong("it is none of the allowed values")
            }
            Some(_) | None => Ok(()),
        }
    }

    fn combined(&mut self, schema: &'a Map<String, Value>, value: &Value) -> Result<(), Mismatch> {
        for part in of_list(schema, "allOf") {
            self.value(part, value)?;
        }
        if schema.contains_key("anyOf") && self.matching(schema, "anyOf", value)? == 0 {
            return self.wrong("it matches none of anyOf");
        }
        if schema.contains_key("oneOf") {
            let matching = self.matching(schema, "oneOf", value)?;
            if matching != 1 {
                return self.wrong(format!("it matches {matching} of oneOf, not one"));
            }
        }
        if let Some(not) = schema.get("not")
            && self.holds(not, value)?
        {
            return self.wrong("it matches what it must not");
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.holds(condition, value)? { "then" } else { "else" };
            if let Some(branch) = schema.get(branch) {
                self.value(branch, value)?;
            }
        }
        Ok(())
    }

    /// Whether a value matches; an error only where no more steps are left.
    fn holds(&mut self, schema: &'a Value, value: &Value) -> Result<bool, Mismatch> {
        let (at, depth) = (self.at.len(), self.depth);
        let result = self.value(schema, value);
        self.at.truncate(at);
        self.depth = depth;
        match result {
            Err(mismatch) if self.steps_left == 0 => Err(mismatch),
            result => Ok(result.is_ok()),
        }
    }

    fn matching(
        &mut self,
        schema: &'a Map<String, Value>,
        field: &str,
        value: &Value,
    ) -> Result<u32, Mismatch> {
        let mut matching = 0;
        for part in of_list(schema, field) {
            matching += u32::from(self.holds(part, value)?);
        }
        Ok(matching)
    }

    fn number(&self, schema: &Map<String, Value>, number: f64) -> Result<(), Mismatch> {
        let bound = |field: &str| schema.get(field).and_then(Value::as_f64);
        if bound("minimum").is_some_and(|least| number < least) {
            return self.wrong(format!("{number} is less than {}", schema["minimum"]));
        }
        if bound("maximum").is_some_and(|most| number > most) {
            return self.wrong(format!("{number} is more than {}", schema["maximum"]));
        }
        if bound("exclusiveMinimum").is_some_and(|least| number <= least) {
            return self.wrong(format!("{number} is not more than {}", schema["exclusiveMinimum"]));
        }
        if bound("exclusiveMaximum").is_some_and(|most| number >= most) {
            return self.wrong(format!("{number} is not less than {}", schema["exclusiveMaximum"]));
        }
        if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
            let times = number / step;
            // As near as a double tells: 0.3 is a multiple of 0.1.
            if (times - times.round()).abs() > 1e-9 * times.abs().max(1.0) {
                return self.wrong(format!("{number} is no multiple of {step}"));
            }
        }
        Ok(())
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str) -> Result<(), Mismatch> {
        self.pay(text.len() / TEXT_BYTES_PER_STEP)?;
        self.count(schema, ("minLength", "maxLength"), text.chars().count(), "characters")?;
        match schema.get("pattern").and_then(Value::as_str) {
            Some(pattern) if !self.pattern(pattern, text)? => {
                self.wrong(format!("it does not match the pattern {pattern}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &str, text: &str) -> Result<bool, Mismatch> {
        /// What reading a pattern costs.
        const STEPS: usize = 1_000;
        self.pay(STEPS + (pattern.len() + 1) * (text.len() / TEXT_BYTES_PER_STEP + 1))?;
        match RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(pattern) => Ok(pattern.is_match(text)),
            Err(_) => self.wrong(format!("the schema's pattern {pattern} cannot be read")),
        }
    }

    fn count(
        &self,
        schema: &Map<String, Value>,
        (least, most): (&str, &str),
        count: usize,
        what: &str,
    ) -> Result<(), Mismatch> {
        let bound = |field: &str| schema.get(field).and_then(Value::as_f64);
        let count = count as f64;
        if bound(least).is_some_and(|least| count < least) {
            return self.wrong(format!("{count} {what} are fewer than {}", schema[least]));
        }
        if bound(most).is_some_and(|most| count > most) {
            return self.wrong(format!("{count} {what} are more than {}", schema[most]));
        }
        Ok(())
    }

    fn list(&mut self, schema: &'a Map<String, Value>, list: &[Value]) -> Result<(), Mismatch> {
        self.count(schema, ("minItems", "maxItems"), list.len(), "items")?;
        self.pay(list.len() / LOOKS_PER_STEP)?;
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.unique(list)?;
        }
        // Before 2020-12 a list of `items` was what `prefixItems` is now, and `additionalItems` the rest.
        let (prefix, rest) = match schema.get("items") {
            Some(Value::Array(prefix)) => (prefix.as_slice(), schema.get("additionalItems")),
            items => (of_list(schema, "prefixItems"), items),
        };
        for (index, item) in list.iter().enumerate() {
            if let Some(schema) = prefix.get(index).or(rest) {
                self.inside(&index.to_string(), schema, item)?;
            }
        }
        let Some(contained) = schema.get("contains") else { return Ok(()) };
        let mut matching = 0;
        for item in list {
            matching += usize::from(self.holds(contained, item)?);
        }
        let needs_one = !schema.contains_key("minContains");
        if needs_one && matching == 0 {
            return self.wrong("no item is of the kind that it must contain");
        }
        self.count(schema, ("minContains", "maxContains"), matching, "such items")
    }

    fn unique(&mut self, list: &[Value]) -> Result<(), Mismatch> {
        for (index, item) in list.iter().enumerate() {
            self.pay((index + 1) * size(item))?;
            if list[..index].iter().any(|other| same(other, item)) {
                return self.wrong("an item is there twice");
            }
        }
        Ok(())
    }

    fn object(&mut self, schema: &'a Map<String, Value>, whole: &Value) -> Result<(), Mismatch> {
        let Value::Object(object) = whole else { return Ok(()) };
        self.count(schema, ("minProperties", "maxProperties"), object.len(), "fields")?;
        self.pay((object.len() + of_list(schema, "required").len()) / LOOKS_PER_STEP)?;
        for name in of_list(schema, "required").iter().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                return self.wrong(format!("'{name}' is missing"));
            }
        }
        let of_object = |field: &str| schema.get(field).and_then(Value::as_object);
        let (properties, patterns) = (of_object("properties"), of_object("patternProperties"));
        for (name, value) in object {
            let mut known = false;
            if let Some(schema) = properties.and_then(|it| it.get(name)) {
                known = true;
                self.inside(name, schema, value)?;
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.pattern(pattern, name)? {
                    known = true;
                    self.inside(name, schema, value)?;
                }
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) if !known => {
                    return self.wrong(format!("'{name}' is not known"));
                }
                Some(schema) if !known => self.inside(name, schema, value)?,
                Some(_) | None => {}
            }
            if let Some(schema) = schema.get("propertyNames") {
                self.inside(name, schema, &Value::String(name.clone()))?;
            }
        }
        self.dependencies(schema, whole)
    }

    fn dependencies(
        &mut self,
        schema: &'a Map<String, Value>,
        whole: &Value,
    ) -> Result<(), Mismatch> {
        let Value::Object(object) = whole else { return Ok(()) };
        for field in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let Some(asked) = schema.get(field).and_then(Value::as_object) else { continue };
            self.pay(asked.len() / LOOKS_PER_STEP)?;
            for (_, needs) in asked.iter().filter(|(name, _)| object.contains_key(*name)) {
                let Value::Array(names) = needs else {
                    self.value(needs, whole)?;
                    continue;
                };
                self.pay(names.len() / LOOKS_PER_STEP)?;
                for name in names.iter().filter_map(Value::as_str) {
                    if !object.contains_key(name) {
                        return self.wrong(format!("'{name}' is missing"));
                    }
                }
            }
        }
        Ok(())
    }

    fn inside(&mut self, name: &str, schema: &'a Value, value: &Value) -> Result<(), Mismatch> {
        self.pay(name.len() / TEXT_BYTES_PER_STEP)?;
        let before = self.at.len();
        self.at.push('/');
        self.at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        self.value(schema, value)?;
        self.at.truncate(before);
        Ok(())
    }
}

fn of_list<'a>(schema: &'a Map<String, Value>, field: &str) -> &'a [Value] {
    schema.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a comparison of a value costs, about.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() / TEXT_BYTES_PER_STEP,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 1,
        Value::Object(fields) => fields.values().map(size).sum::<usize>() + 1,
    }
}

/// A value in a message; not all of a large one.
fn shown(value: &Value) -> String {
    /// Bytes of it.
    const MAX: usize = 200;
    if size(value) > MAX { "another value".to_owned() } else { value.to_string() }
}

fn is_of(value: &Value, kind: &str) -> bool {
    if kind == "integer" {
        return value.as_f64().is_some_and(|number| number.fract() == 0.0);
    }
    kind_of(value) == kind
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Equal as JSON Schema has it: 1 and 1.0 are one number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other = |(name, value)| other.get(name).is_some_and(|it| same(value, it));
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn assert_says(schema: &Value, value: &Value, said: &str) {
        let result = matches(schema, value).map_or_else(|it| it.to_string(), |()| "ok".to_owned());
        assert_eq!(result, said, "{schema} {value}");
    }

    #[test]
    fn every_keyword_has_its_mismatch() {
        let node = json!({ "$defs": { "node": { "type": "object", "required": ["v"],
            "properties": { "v": { "type": "integer" }, "next": { "$ref": "#/$defs/node" } } } },
            "$ref": "#/$defs/node" });
        for (schema, value, said) in [
            (json!({ "type": "string" }), json!(1), "/: string is expected, not number"),
            (
                json!({ "type": ["string", "null"] }),
                json!([]),
                "/: string or null is expected, not array",
            ),
            (json!({ "type": "integer" }), json!(1.0), "ok"),
            (json!({ "type": "integer" }), json!(1.5), "/: integer is expected, not number"),
            (json!({ "const": 1 }), json!(1.0), "ok"),
            (json!({ "const": { "a": 1 } }), json!({ "a": 2 }), "/: {\"a\":1} is expected"),
            (json!({ "enum": ["a", "b"] }), json!("c"), "/: it is none of the allowed values"),
            (json!({ "minimum": 2 }), json!(1), "/: 1 is less than 2"),
            (json!({ "maximum": 2 }), json!(3), "/: 3 is more than 2"),
            (json!({ "exclusiveMinimum": 2 }), json!(2), "/: 2 is not more than 2"),
            (json!({ "exclusiveMaximum": 2 }), json!(2), "/: 2 is not less than 2"),
            (json!({ "multipleOf": 0.1 }), json!(0.3), "ok"),
            (json!({ "multipleOf": 2 }), json!(3), "/: 3 is no multiple of 2"),
            (json!({ "minLength": 2 }), json!("ä"), "/: 1 characters are fewer than 2"),
            (json!({ "maxLength": 1 }), json!("ab"), "/: 2 characters are more than 1"),
            (json!({ "pattern": "^a+$" }), json!("ab"), "/: it does not match the pattern ^a+$"),
            (json!({ "pattern": "(" }), json!("ab"), "/: the schema's pattern ( cannot be read"),
            (
                json!({ "items": { "type": "null" } }),
                json!([null, 1]),
                "/1: null is expected, not number",
            ),
            (json!({ "items": [true, false] }), json!([1, 2]), "/1: no value is allowed here"),
            (
                json!({ "prefixItems": [true], "items": false }),
                json!([1, 2]),
                "/1: no value is allowed here",
            ),
            (json!({ "minItems": 1 }), json!([]), "/: 0 items are fewer than 1"),
            (json!({ "uniqueItems": true }), json!([1, 2, 1.0]), "/: an item is there twice"),
            (
                json!({ "contains": { "const": 1 } }),
                json!([2]),
                "/: no item is of the kind that it must contain",
            ),
            (
                json!({ "contains": true, "maxContains": 1 }),
                json!([2, 2]),
                "/: 2 such items are more than 1",
            ),
            (json!({ "required": ["a"] }), json!({}), "/: 'a' is missing"),
            (
                json!({ "properties": { "a/b": { "minimum": 2 } } }),
                json!({ "a/b": 1 }),
                "/a~1b: 1 is less than 2",
            ),
            (
                json!({ "patternProperties": { "^x": false } }),
                json!({ "xy": 1 }),
                "/xy: no value is allowed here",
            ),
            (json!({ "additionalProperties": false }), json!({ "a": 1 }), "/: 'a' is not known"),
            (
                json!({ "propertyNames": { "maxLength": 1 } }),
                json!({ "ab": 1 }),
                "/ab: 2 characters are more than 1",
            ),
            (
                json!({ "dependentRequired": { "a": ["b"] } }),
                json!({ "a": 1 }),
                "/: 'b' is missing",
            ),
            (
                json!({ "dependencies": { "a": { "required": ["c"] } } }),
                json!({ "a": 1 }),
                "/: 'c' is missing",
            ),
            (json!({ "maxProperties": 0 }), json!({ "a": 1 }), "/: 1 fields are more than 0"),
            (json!({ "allOf": [true, { "minimum": 2 }] }), json!(1), "/: 1 is less than 2"),
            (
                json!({ "anyOf": [{ "minimum": 2 }, false] }),
                json!(1),
                "/: it matches none of anyOf",
            ),
            (json!({ "oneOf": [true, true] }), json!(1), "/: it matches 2 of oneOf, not one"),
            (json!({ "not": {} }), json!(1), "/: it matches what it must not"),
            (
                json!({ "if": { "minimum": 1 }, "then": { "maximum": 2 } }),
                json!(3),
                "/: 3 is more than 2",
            ),
            (
                json!({ "if": { "minimum": 1 }, "else": false }),
                json!(0),
                "/: no value is allowed here",
            ),
            (
                node.clone(),
                json!({ "v": 1, "next": { "v": "x" } }),
                "/next/v: integer is expected, not string",
            ),
            (node, json!({ "v": 1, "next": { "v": 2, "next": { "v": 3 } } }), "ok"),
            (
                json!({ "$ref": "http://x/y" }),
                json!(1),
                "/: the schema refers to \"http://x/y\", which it does not hold",
            ),
            (json!({ "format": "email", "unknown": 1 }), json!("x"), "ok"),
            (json!(1), json!(1), "/: the schema is neither an object nor true or false"),
        ] {
            assert_says(&schema, &value, said);
        }
    }

    #[test]
    fn a_schema_that_never_ends_does() {
        let around = json!({ "$ref": "#" });
        assert_says(&around, &json!(1), "/: the schema goes too deep");
        let branches: Vec<Value> = (0..40).map(|_| json!({ "$ref": "#/a" })).collect();
        let bomb = json!({ "a": { "allOf": branches, "anyOf": branches }, "oneOf": branches });
        assert!(matches(&bomb, &json!(1)).is_err());
        // What a visit costs counts as well as that there was one.
        let fields: Map<String, Value> =
            (0..100_000).map(|number| (format!("field{number}"), json!(number))).collect();
        for large in [Value::Object(fields), json!(vec![1; 100_000])] {
            let mismatch =
                matches(&json!({ "allOf": vec![json!({}); 1_000] }), &large).unwrap_err();
            assert_eq!(mismatch.problem, "the schema takes too many steps");
        }
    }
}
