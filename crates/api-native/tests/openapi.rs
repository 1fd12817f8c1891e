//! The OpenAPI document is a contract: what the binary serves is what `contracts/openapi.json`
//! says. After a change that is meant, write it again with
//! `WINDLASS_WRITE_CONTRACTS=1 cargo test -p windlass-api-native --test openapi`.

use std::path::Path;

use serde_json::Value;

#[test]
fn the_document_is_the_one_under_contracts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts/openapi.json");
    let mut document = serde_json::to_string_pretty(&windlass_api_native::rest::openapi()).unwrap();
    document.push('\n');
    if std::env::var_os("WINDLASS_WRITE_CONTRACTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &document).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == document, "the API differs from contracts/openapi.json: see this test's head");
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    found.push(reference.clone());
                }
                fields.values().for_each(|value| walk(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = windlass_api_native::rest::openapi();
    let mut found = Vec::new();
    walk(&document, &mut found);
    assert!(found.len() > 50);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        let target = document.pointer(pointer);
        assert!(target.is_some_and(|target| !target.is_null()), "{reference} leads nowhere");
    }
}

#[test]
fn every_operation_has_a_name_of_its_own_and_names_its_problems() {
    let document = windlass_api_native::rest::openapi();
    let mut names = std::collections::BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} twice");
            let mut statuses = operation["responses"].as_object().unwrap().keys();
            assert!(statuses.any(|status| status.starts_with('4')), "{name}");
        }
    }
    assert_eq!(names.len(), 37, "{names:?}");
}
