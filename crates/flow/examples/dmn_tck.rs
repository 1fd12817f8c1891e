//! Runs the decision model test kit (<https://github.com/dmn-tck/tck>) and counts what passes.
//!
//! `cargo run -p windlass-flow --example dmn_tck -- <folder of the kit> [--failures] [part of a path]`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use roxmltree::Node;
use windlass_flow::dmn;
use windlass_flow::feel::{self, Budget, Context, Environment, Value};

/// 2026-01-01, a time like any other.
const NOW_MS: u64 = 1_767_225_600_000;
/// How far apart numbers may be.
const TOLERANCE: &str = "0.00000001";

#[derive(Default)]
struct Count {
    passed: u32,
    failed: u32,
}

struct Kit {
    shows_failures: bool,
    levels: BTreeMap<String, Count>,
    folders: BTreeMap<String, Count>,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let shows_failures = arguments.iter().any(|own| own == "--failures");
    let mut plain = arguments.iter().filter(|own| !own.starts_with("--"));
    let Some(root) = plain.next() else {
        eprintln!("usage: dmn_tck <folder of the kit> [--failures] [part of a path]");
        std::process::exit(2);
    };
    let part = plain.next().cloned().unwrap_or_default();
    let root = Path::new(root).join("TestCases");
    let mut kit = Kit { shows_failures, levels: BTreeMap::new(), folders: BTreeMap::new() };
    for level in folders(&root) {
        for folder in folders(&level) {
            for file in files(&folder, "xml") {
                if file.to_string_lossy().contains(&part) {
                    kit.run_file(&level, &folder, &file);
                }
            }
        }
    }
    for (folder, count) in kit.folders.iter().filter(|(_, count)| count.failed > 0) {
        println!("{folder}: {} failed of {}", count.failed, count.passed + count.failed);
    }
    for (level, count) in &kit.levels {
        println!("{level}: {} passed, {} failed", count.passed, count.failed);
    }
}

impl Kit {
    fn run_file(&mut self, level: &Path, folder: &Path, file: &Path) {
        let text = fs::read_to_string(file).unwrap_or_default();
        let Ok(document) = roxmltree::Document::parse(&text) else {
            return;
        };
        let root = document.root_element();
        if root.tag_name().name() != "testCases" {
            return;
        }
        let named = child(root, "modelName").and_then(|own| own.text()).map(str::trim);
        let model_file = named.map(|name| folder.join(name)).filter(|path| path.exists());
        let model_file = model_file.or_else(|| files(folder, "dmn").into_iter().next());
        let bytes = model_file.and_then(|path| fs::read(path).ok()).unwrap_or_default();
        let model = dmn::parse_leniently(&bytes);
        if let (true, Err(problems) | Ok((_, problems))) = (self.shows_failures, &model) {
            for problem in problems {
                println!("MODEL {}: {problem}", name(folder));
            }
        }
        let cases = root.children().filter(|own| own.tag_name().name() == "testCase");
        for case in cases {
            let result = match &model {
                Ok((model, _)) => run_case(model, case),
                Err(_) => Err("the model cannot be read".to_owned()),
            };
            self.count(name(level), &name(folder), &name(file), case, result);
        }
    }

    fn count(
        &mut self,
        level: String,
        folder: &str,
        file: &str,
        case: Node<'_, '_>,
        result: Result<(), String>,
    ) {
        let folder = format!("{level}/{folder}");
        let counts = [
            self.folders.entry(folder.clone()).or_default(),
            self.levels.entry(level).or_default(),
        ];
        for count in counts {
            match result {
                Ok(()) => count.passed += 1,
                Err(_) => count.failed += 1,
            }
        }
        if let (true, Err(reason)) = (self.shows_failures, result) {
            let id = case.attribute("id").unwrap_or_default();
            println!("FAIL {folder} {file} {id}: {reason}");
        }
    }
}

fn run_case(model: &dmn::Model, case: Node<'_, '_>) -> Result<(), String> {
    if case.attribute("type").is_some_and(|own| own != "decision") {
        return Err("not a decision".to_owned());
    }
    let inputs = case.children().filter(|own| own.tag_name().name() == "inputNode");
    let variables: Vec<(Arc<str>, Value)> = inputs
        .map(|own| (Arc::from(own.attribute("name").unwrap_or_default()), value_of(own)))
        .collect();
    let variables = Context::from_entries(variables);
    for node in case.children().filter(|own| own.tag_name().name() == "resultNode") {
        let wanted = node.attribute("name").unwrap_or_default();
        let Some(decision) = model.decisions().iter().find(|own| own.name == wanted) else {
            return Err(format!("no decision '{wanted}'"));
        };
        let environment = Environment { now_ms: NOW_MS, seed: 1 };
        let mut budget = Budget::default();
        let evaluation = model.evaluate(&decision.id, &variables, &environment, &mut budget);
        let expected = child(node, "expected").map_or(Value::Null, value_of);
        let is_error = node.attribute("errorResult") == Some("true");
        match evaluation.output {
            Ok(output) if same(&output, &expected) => {}
            Ok(output) => {
                let (output, expected) = (show(&output), show(&expected));
                return Err(format!("{wanted}: expected {expected}, got {output}"));
            }
            Err(_) if is_error => {}
            Err(failure) => {
                let expected = show(&expected);
                return Err(format!("{wanted}: expected {expected}, but {}", failure.reason));
            }
        }
    }
    Ok(())
}

fn value_of(node: Node<'_, '_>) -> Value {
    if let Some(own) = child(node, "value") {
        return plain(own);
    }
    if let Some(own) = child(node, "list") {
        if is_nil(own) {
            return Value::Null;
        }
        let items = own.children().filter(|item| item.tag_name().name() == "item");
        return Value::list(items.map(value_of).collect());
    }
    let components: Vec<_> =
        node.children().filter(|own| own.tag_name().name() == "component").collect();
    if components.iter().any(|own| own.attribute("name").is_none()) || components.is_empty() {
        return Value::Null;
    }
    let entries = components.into_iter().map(|own| {
        let value = if is_nil(own) { Value::Null } else { value_of(own) };
        (Arc::from(own.attribute("name").unwrap_or_default()), value)
    });
    Value::context(entries.collect())
}

fn plain(node: Node<'_, '_>) -> Value {
    if is_nil(node) {
        return Value::Null;
    }
    let text: String = node.children().filter_map(|own| own.text()).collect();
    let schema = "http://www.w3.org/2001/XMLSchema-instance";
    let kind = node.attribute((schema, "type")).unwrap_or_default();
    let kind = kind.split_once(':').map_or(kind, |(_, local)| local);
    let trimmed = text.trim();
    match kind {
        "decimal" | "double" | "integer" | "int" | "long" | "float" | "boolean" => {
            evaluate(trimmed, &Context::default())
        }
        "date" => evaluate(&format!("date(\"{trimmed}\")"), &Context::default()),
        "time" => evaluate(&format!("time(\"{trimmed}\")"), &Context::default()),
        "dateTime" => evaluate(&format!("date and time(\"{trimmed}\")"), &Context::default()),
        "duration" => evaluate(&format!("duration(\"{trimmed}\")"), &Context::default()),
        _ => Value::text(&text),
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let tolerance = TOLERANCE.parse().unwrap_or_default();
            left.checked_sub(*right).is_some_and(|apart| apart.abs() < tolerance)
        }
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| same(a, b))
        }
        (Value::Context(left), Value::Context(right)) => {
            left.len() == right.len()
                && left
                    .entries()
                    .iter()
                    .all(|(name, value)| right.get(name).is_some_and(|own| same(value, own)))
        }
        (left, right) => {
            let entries = vec![(Arc::from("a"), left.clone()), (Arc::from("b"), right.clone())];
            evaluate("a = b", &Context::from_entries(entries)).is_true()
        }
    }
}

fn evaluate(text: &str, scope: &Context) -> Value {
    let environment = Environment { now_ms: NOW_MS, seed: 1 };
    let parsed = feel::parse(text).ok();
    let value =
        parsed.and_then(|own| own.evaluate(scope, &environment, &mut Budget::default()).ok());
    value.unwrap_or_default()
}

fn show(value: &Value) -> String {
    value.to_json()
}

fn is_nil(node: Node<'_, '_>) -> bool {
    node.attribute(("http://www.w3.org/2001/XMLSchema-instance", "nil")) == Some("true")
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|own| own.tag_name().name() == name)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = entries(root).into_iter().filter(|own| own.is_dir()).collect();
    found.sort();
    found
}

fn files(root: &Path, extension: &str) -> Vec<PathBuf> {
    let has = |own: &PathBuf| own.extension().is_some_and(|own| own == extension);
    let mut found: Vec<_> = entries(root).into_iter().filter(has).collect();
    found.sort();
    found
}

fn entries(root: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(root).into_iter().flatten().flatten();
    found.map(|own| own.path()).collect()
}
