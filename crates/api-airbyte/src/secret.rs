//! Where the secrets of a configuration stand: where the connector's spec has `airbyte_secret`, and where a
//! field that no spec describes looks like one. In doubt it is a secret: to seal too much costs nothing,
//! as what a connector gets is opened.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::failure::{Answered, Failure};
use crate::limit::{BRANCHES_MAX, DEPTH_MAX, LIST_LOOKS_MAX};
use crate::vault::{MASK, SEALED, VaultError, is_sealed};

/// What is done with a secret.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&mut Value) -> Result<(), VaultError>;

/// Calls for each secret of a configuration. The spec is the connector's, with
/// `connectionSpecification`. Null and empty are no secrets.
pub(crate) fn each(
    configuration: &mut Value,
    spec: Option<&Value>,
    visit: Visit<'_>,
) -> Result<(), VaultError> {
    let schema = spec.and_then(|spec| spec.get("connectionSpecification"));
    match schema {
        Some(root) => by_schema(configuration, &Schemas { root, of: vec![root] }, visit, 0),
        None => by_looks(configuration, Place::Open, visit, 0),
    }
}

/// What a configuration looks like to people: the mask instead of what is sealed, and of what should be.
pub(crate) fn masked(mut configuration: Value, spec: Option<&Value>) -> Value {
    let hidden = each(&mut configuration, spec, &mut |secret| {
        *secret = Value::from(MASK);
        Ok(())
    });
    match hidden {
        Ok(()) => {
            mask_sealed(&mut configuration);
            configuration
        }
        // Too deep to be looked through: nothing of it is shown.
        Err(_) => Value::from(MASK),
    }
}

fn mask_sealed(value: &mut Value) {
    if is_sealed(value) {
        *value = Value::from(MASK);
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask_sealed),
        Value::Object(fields) => fields.values_mut().for_each(mask_sealed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A configuration as a client gave it, with what was kept before where it sent the mask back.
pub(crate) fn unmasked(given: &mut Value, before: Option<&Value>, path: &str) -> Answered<()> {
    if given.as_str() == Some(MASK) {
        let sentence = || format!("{path} is the mask of a secret, and none is kept there");
        *given = before.ok_or_else(|| Failure::invalid(sentence()))?.clone();
        return Ok(());
    }
    match given {
        Value::Object(fields) if fields.contains_key(SEALED) => {
            Err(Failure::invalid(format!("{path} has a field {SEALED}, which is not for clients")))
        }
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, field)| {
            let before = before.and_then(|before| before.get(name));
            unmasked(field, before, &format!("{path}.{name}"))
        }),
        Value::Array(items) => {
            let before = before.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let kept = counterparts(items, before);
            items.iter_mut().zip(kept).enumerate().try_for_each(|(index, (item, kept))| {
                unmasked(item, kept, &format!("{path}[{index}]"))
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Which item of a list each given one was before, as far as it matters. Clients take items out, add some and
/// change their order, and no secret may come to another's item: what counts is what they were shown. Only an
/// item that was changed itself is known by its place, in a list as long as it was.
fn counterparts<'b>(given: &[Value], before: &'b [Value]) -> Vec<Option<&'b Value>> {
    let counterpart = |(index, item): (usize, &Value)| {
        if !has_mask(item) {
            return None;
        }
        let in_place = before.get(index).filter(|_| given.len() == before.len());
        if let Some(kept) = in_place.filter(|kept| is_shown_as(kept, item)) {
            return Some(kept);
        }
        if given.len().saturating_mul(before.len()) > LIST_LOOKS_MAX {
            return None;
        }
        let mut alike = before.iter().filter(|kept| is_shown_as(kept, item));
        // Of several that look the same nobody knows which one is gone, unless all are there.
        let same = |others: &[Value]| others.iter().filter(|other| *other == item).count();
        match alike.clone().count() {
            0 => in_place.filter(|kept| !given.iter().any(|other| is_shown_as(kept, other))),
            count if count == same(given) => {
                alike.nth(same(given.get(..index).unwrap_or_default()))
            }
            _ => None,
        }
    };
    given.iter().enumerate().map(counterpart).collect()
}

fn has_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => items.iter().any(has_mask),
        Value::Object(fields) => fields.values().any(has_mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether clients saw this instead of what is kept. The mask may stand for all that can be secret.
fn is_shown_as(kept: &Value, shown: &Value) -> bool {
    if shown.as_str() == Some(MASK) {
        return !matches!(kept, Value::Null | Value::Bool(_));
    }
    match (kept, shown) {
        (Value::Array(kept), Value::Array(shown)) => {
            kept.len() == shown.len()
                && kept.iter().zip(shown).all(|(kept, it)| is_shown_as(kept, it))
        }
        (Value::Object(kept), Value::Object(shown)) => {
            let is_there = |(name, kept): (&String, &Value)| {
                shown.get(name).is_some_and(|shown| is_shown_as(kept, shown))
            };
            kept.len() == shown.len() && kept.iter().all(is_there)
        }
        (kept, shown) => kept == shown,
    }
}

/// Puts fields over those that are there; objects in each other likewise, null takes a field away.
pub(crate) fn merge(before: &mut Map<String, Value>, over: Map<String, Value>) {
    for (name, value) in over {
        match (before.get_mut(&name), value) {
            (_, Value::Null) => {
                before.shift_remove(&name);
            }
            (Some(Value::Object(old)), Value::Object(new)) if !old.contains_key(SEALED) => {
                merge(old, new);
            }
            (_, value) => {
                before.insert(name, value);
            }
        }
    }
}

/// What may describe one value: several, where a schema has branches.
struct Schemas<'s> {
    root: &'s Value,
    of: Vec<&'s Value>,
}

impl<'s> Schemas<'s> {
    /// With all branches, each once, as schemas may name themselves; `None` if there are too many.
    fn spread(&self) -> Option<Vec<&'s Value>> {
        let mut all: Vec<&Value> = Vec::new();
        let mut known: HashSet<*const Value> = HashSet::new();
        let mut add = |all: &mut Vec<&'s Value>, schema: &'s Value| {
            if known.insert(std::ptr::from_ref(schema)) {
                all.push(schema);
            }
        };
        self.of.iter().for_each(|schema| add(&mut all, schema));
        let mut next = 0;
        while let Some(schema) = all.get(next).copied() {
            next += 1;
            for branch in ["oneOf", "anyOf", "allOf"] {
                let branches = schema.get(branch).and_then(Value::as_array);
                branches.into_iter().flatten().for_each(|branch| add(&mut all, branch));
            }
            if let Some(at) = schema.get("$ref").and_then(Value::as_str)
                && let Some(named) = at.strip_prefix('#').and_then(|at| self.root.pointer(at))
            {
                add(&mut all, named);
            }
            if all.len() > BRANCHES_MAX {
                return None;
            }
        }
        Some(all)
    }
}

fn by_schema(
    value: &mut Value,
    schemas: &Schemas<'_>,
    visit: Visit<'_>,
    depth: usize,
) -> Result<(), VaultError> {
    match schemas.spread() {
        Some(all) => by_spread(value, schemas.root, &all, visit, depth),
        None => found(value, visit),
    }
}

/// The same, of schemas with all their branches.
fn by_spread(
    value: &mut Value,
    root: &Value,
    all: &[&Value],
    visit: Visit<'_>,
    depth: usize,
) -> Result<(), VaultError> {
    if depth > DEPTH_MAX {
        return Err(VaultError::Deep);
    }
    if all.iter().any(|schema| schema.get("airbyte_secret") == Some(&Value::Bool(true))) {
        return found(value, visit);
    }
    if is_sealed(value) {
        return visit(value);
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = Schemas { root, of: properties(all, name) };
                if below.of.is_empty() {
                    by_looks(field, Place::named(name), visit, depth + 1)?;
                } else {
                    by_schema(field, &below, visit, depth + 1)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => {
            let of = all.iter().filter_map(|schema| schema.get("items")).collect();
            // Once for all of them.
            let below = Schemas { root, of }.spread();
            items.iter_mut().try_for_each(|item| match &below {
                Some(all) => by_spread(item, root, all, visit, depth + 1),
                None => found(item, visit),
            })
        }
        Value::String(text) if looks_secret(text) => found(value, visit),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn properties<'s>(schemas: &[&'s Value], name: &str) -> Vec<&'s Value> {
    let named = |schema: &&'s Value| {
        let more = schema.get("additionalProperties").filter(|more| more.is_object());
        schema.get("properties").and_then(|properties| properties.get(name)).or(more)
    };
    schemas.iter().filter_map(named).collect()
}

/// What the fields above say of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing.
    Open,
    /// It is a secret, if it is a text.
    Credentials,
    /// It is a secret, whatever it is.
    Secret,
}

/// Parts of names of secrets, without anything between their words.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "accesskey",
    "connectionstring",
    "serviceaccount",
    "sshkey",
    "dsn",
    "certificate",
    "clientkey",
    "bearer",
];

/// Names of what is told of credentials and is none.
const TOLD: &[&str] = &["type", "authtype", "authmethod", "method", "optiontitle", "title", "auth"];

impl Place {
    fn named(name: &str) -> Place {
        let name: String = name.chars().filter(|it| it.is_alphanumeric()).collect();
        let name = name.to_lowercase();
        if NAMES.iter().any(|part| name.contains(part)) {
            Place::Secret
        } else if name.contains("credential") {
            Place::Credentials
        } else {
            Place::Open
        }
    }

    /// Of a field below.
    fn below(self, name: &str) -> Place {
        match (self, Place::named(name)) {
            (Place::Secret, _) | (_, Place::Secret) => Place::Secret,
            (Place::Credentials, Place::Open) if is_told(name) => Place::Open,
            (Place::Credentials, _) | (_, Place::Credentials) => Place::Credentials,
            (Place::Open, Place::Open) => Place::Open,
        }
    }
}

fn is_told(name: &str) -> bool {
    let name: String = name.chars().filter(|it| it.is_alphanumeric()).collect();
    TOLD.contains(&name.to_lowercase().as_str())
}

fn by_looks(
    value: &mut Value,
    place: Place,
    visit: Visit<'_>,
    depth: usize,
) -> Result<(), VaultError> {
    if depth > DEPTH_MAX {
        return Err(VaultError::Deep);
    }
    if place == Place::Secret {
        return found(value, visit);
    }
    if is_sealed(value) {
        return visit(value);
    }
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .try_for_each(|(name, field)| by_looks(field, place.below(name), visit, depth + 1)),
        Value::Array(items) => {
            items.iter_mut().try_for_each(|item| by_looks(item, place, visit, depth + 1))
        }
        Value::String(text) if place == Place::Credentials || looks_secret(text) => {
            found(value, visit)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// A private key, or an address with a password in it.
fn looks_secret(text: &str) -> bool {
    if text.contains("-----BEGIN") {
        return true;
    }
    let Some((_, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn found(value: &mut Value, visit: Visit<'_>) -> Result<(), VaultError> {
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        Value::String(text) if text.is_empty() => Ok(()),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => visit(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(configuration: Value, spec: Option<Value>) -> Value {
        masked(configuration, spec.as_ref())
    }

    #[test]
    fn a_spec_says_what_is_secret() {
        let spec = json!({ "connectionSpecification": { "properties": {
            "host": { "type": "string" },
            "phrase": { "airbyte_secret": true },
            "token_url": { "type": "string" },
            "auth": { "oneOf": [
                { "properties": { "kind": {}, "a": { "airbyte_secret": true } } },
                { "$ref": "#/definitions/other" },
            ]},
            "list": { "items": { "properties": { "x": { "airbyte_secret": true } } } },
            "more": { "additionalProperties": { "airbyte_secret": true } },
        }, "definitions": { "other": { "properties": { "b": { "airbyte_secret": true } } } } } });
        let given = json!({
            "host": "h", "phrase": "p", "token_url": "u", "auth": { "kind": "k", "a": "1", "b": 2 },
            "list": [{ "x": "s", "y": "t" }], "more": { "any": "s" }, "unknown_password": "p",
        });
        let expected = json!({
            "host": "h", "phrase": MASK, "token_url": "u",
            "auth": { "kind": "k", "a": MASK, "b": MASK }, "list": [{ "x": MASK, "y": "t" }],
            "more": { "any": MASK }, "unknown_password": MASK,
        });
        assert_eq!(shown(given, Some(spec)), expected);
    }

    #[test]
    fn without_a_spec_names_say_it() {
        let given = json!({
            "count": 7, "username": "u", "apiKey": "k", "API-Token": "t", "use_password": true,
            "empty_secret": "", "none_secret": null, "url": "https://u:p@h/x", "page": "https://h/x",
            "key": "-----BEGIN RSA", "credentials": { "auth_type": "oauth", "id": "i", "n": 1 },
            "client_secret": { "a": ["b"] },
        });
        let expected = json!({
            "count": 7, "username": "u", "apiKey": MASK, "API-Token": MASK, "use_password": true,
            "empty_secret": "", "none_secret": null, "url": MASK, "page": "https://h/x",
            "key": MASK, "credentials": { "auth_type": "oauth", "id": MASK, "n": 1 },
            "client_secret": MASK,
        });
        assert_eq!(shown(given, None), expected);
    }

    #[test]
    fn a_schema_that_names_itself_comes_to_an_end() {
        let spec = json!({ "connectionSpecification": {
            "oneOf": [{ "$ref": "#" }, { "$ref": "#" }],
            "properties": { "p": { "airbyte_secret": true }, "child": { "$ref": "#" } },
        } });
        let given = json!({ "a": "b", "child": { "child": { "a": "b", "p": "c" } } });
        let expected = json!({ "a": "b", "child": { "child": { "a": "b", "p": MASK } } });
        assert_eq!(shown(given, Some(spec)), expected);
    }

    #[test]
    fn what_too_many_schemas_describe_is_a_secret() {
        let many = vec![json!({}); BRANCHES_MAX + 1];
        let spec = json!({ "connectionSpecification": { "anyOf": many } });
        assert_eq!(shown(json!({ "a": "b" }), Some(spec)), json!(MASK));
    }

    #[test]
    fn the_mask_keeps_what_was_there() {
        let before = json!({ "a": { SEALED: "x" }, "l": [{ "b": "y" }] });
        let mut given = json!({ "a": MASK, "l": [{ "b": MASK }], "c": 1 });
        unmasked(&mut given, Some(&before), "configuration").unwrap();
        assert_eq!(given, json!({ "a": { SEALED: "x" }, "l": [{ "b": "y" }], "c": 1 }));
        assert!(unmasked(&mut json!({ "d": MASK }), Some(&before), "configuration").is_err());
        assert!(unmasked(&mut json!({ "a": { SEALED: "x" } }), None, "configuration").is_err());
    }

    #[test]
    fn a_mask_in_a_list_keeps_the_secret_of_its_own_item() {
        let item = |name: &str, secret: &str| json!({ "n": name, "s": { SEALED: secret } });
        let shown = |name: &str| json!({ "n": name, "s": MASK });
        let (a, b) = (item("a", "1"), item("b", "2"));
        let new = json!({ "n": "new", "s": "plain" });
        let many: Vec<Value> = (0..1_001).map(|it| item(&it.to_string(), "s")).collect();
        let back: Vec<Value> = (1..1_001).map(|it| shown(&it.to_string())).collect();
        for (before, given, expected) in [
            // Taken out, moved, added.
            (json!([a, b]), json!([shown("b")]), Some(json!([b]))),
            (json!([a, b]), json!([shown("b"), shown("a")]), Some(json!([b, a]))),
            (json!([a]), json!([new, shown("a")]), Some(json!([new, a]))),
            (json!([a, b]), json!([new, shown("a")]), Some(json!([new, a]))),
            // Changed in its place.
            (json!([a, b]), json!([shown("a"), shown("c")]), Some(json!([a, item("c", "2")]))),
            // What was shown elsewhere is not another's, and what is new has none.
            (json!([a, b]), json!([shown("c"), shown("a")]), None),
            (json!([a]), json!([shown("a"), shown("c")]), None),
            // Those that look the same are all there, or nobody knows.
            (
                json!([a, b, item("a", "3")]),
                json!([shown("a"), shown("a")]),
                Some(json!([a, item("a", "3")])),
            ),
            (json!([a, item("a", "3")]), json!([shown("a")]), None),
            (
                json!([{ SEALED: "1" }, { SEALED: "2" }]),
                json!([MASK, MASK]),
                Some(json!([{ SEALED: "1" }, { SEALED: "2" }])),
            ),
            (json!([{ SEALED: "1" }, { SEALED: "2" }]), json!([MASK]), None),
            (json!([[a], [b]]), json!([[shown("b")]]), Some(json!([[b]]))),
            // Nobody looks for ever.
            (json!(many), json!(back), None),
            (json!(many[1..]), json!(back[1..]), Some(json!(many[2..]))),
        ] {
            let mut after = given.clone();
            let done = unmasked(&mut after, Some(&before), "configuration");
            assert_eq!(done.is_ok().then_some(after), expected, "{before} {given}");
        }
    }

    #[test]
    fn fields_are_put_over_others() {
        let mut before =
            json!({ "a": 1, "o": { "x": 1, "y": 2 }, "s": { SEALED: "t" }, "gone": 1 });
        let over = json!({ "a": 2, "o": { "y": 3 }, "s": { "new": 1 }, "gone": null, "b": [] });
        merge(before.as_object_mut().unwrap(), over.as_object().unwrap().clone());
        let after = json!({ "a": 2, "o": { "x": 1, "y": 3 }, "s": { "new": 1 }, "b": [] });
        assert_eq!(before, after);
    }
}
