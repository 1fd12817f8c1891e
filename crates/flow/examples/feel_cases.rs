//! Runs cases of FEEL from a file, one JSON object a line, and counts what holds.
//!
//! A case is `{"level", "id", "names", "inputs": [[name, text]], "steps": [[name, text]],
//! "expected"}`: every text is FEEL; inputs and steps are evaluated in order, the last step is the
//! result. A case with `"tests"` asks instead whether the input `cellInput` passes those unary tests.
//! The decision-model test kit comes in this form by way of a script outside of the
//! repository; `cargo run -p windlass-flow --example feel_cases -- FILE [shown]`.

use std::collections::BTreeMap;

use windlass_flow::feel::{
    Budget, Decimal, Environment, Names, Scope, Value, parse_unary_tests, parse_with,
};

const ENVIRONMENT: Environment = Environment { now_ms: 1_700_000_000_000, seed: 7 };

struct Bound(BTreeMap<String, Value>);

impl Scope for Bound {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("the first argument is a file of cases");
    let shown = arguments.next();
    let cases = std::fs::read_to_string(path).expect("the file can be read");
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for line in cases.lines() {
        let case = Value::from_json(line).expect("a line is one JSON object");
        let counted = counts.entry(text(&case, "level")).or_default();
        counted.1 += 1;
        match run(&case) {
            Ok(()) => counted.0 += 1,
            Err(why) if shown.is_some() => println!("{}: {why}", text(&case, "id")),
            Err(_) => {}
        }
    }
    for (level, (passed, all)) in counts {
        println!("level {level}: {passed} of {all}");
    }
}

fn run(case: &Value) -> Result<(), String> {
    let mut names = Names::default();
    for name in list(case, "names") {
        names.allow(name.as_text().expect("a name is a string"));
    }
    let mut bound = Bound(BTreeMap::new());
    let mut last = Value::Null;
    let mut source = String::new();
    for pair in list(case, "inputs").iter().chain(list(case, "steps").iter()) {
        let pair = pair.as_list().expect("a step is a pair");
        let name = pair.first().and_then(Value::as_text).expect("a step has a name");
        source = pair.get(1).and_then(Value::as_text).expect("a step has a text").to_string();
        last = evaluate(&source, &names, &bound)?;
        bound.0.insert(name.to_string(), last.clone());
    }
    let tests = case.as_context().and_then(|case| case.get("tests"));
    let is_test = tests.is_some();
    if let Some(tests) = tests {
        source = tests.as_text().expect("tests are a text").to_string();
        let parsed = parse_unary_tests(&source).map_err(|error| format!("{source}: {error}"))?;
        let input = bound.get("cellInput").unwrap_or_default();
        let matched = parsed.matches(&input, &bound, &ENVIRONMENT, &mut Budget::default());
        last = Value::Bool(matched.map_err(|error| format!("{source}: {error}"))?);
    }
    let expected_text = text(case, "expected");
    let mut expected = evaluate(&expected_text, &Names::default(), &bound)?;
    if expected.is_null() && last.as_bool() == Some(false) && is_test {
        // Whether an input passes is told as a truth: null does not.
        expected = Value::Bool(false);
    }
    if alike(&last, &expected) {
        return Ok(());
    }
    Err(format!("{} gave {} and not {expected_text}", source.replace("\n", " "), last.to_json()))
}

fn evaluate(source: &str, names: &Names, scope: &dyn Scope) -> Result<Value, String> {
    let expression =
        parse_with(source, names).map_err(|error| format!("{}: {error}", source.trim()))?;
    expression
        .evaluate(scope, &ENVIRONMENT, &mut Budget::default())
        .map_err(|error| format!("{}: {error}", source.trim()))
}

fn text(case: &Value, name: &str) -> String {
    let value = case.as_context().and_then(|case| case.get(name)).and_then(Value::as_text);
    value.expect("a case has this text").to_string()
}

fn list<'a>(case: &'a Value, name: &str) -> &'a [Value] {
    case.as_context().and_then(|case| case.get(name)).and_then(Value::as_list).expect("a list")
}

/// Equal, numbers up to the kit's own tolerance.
fn alike(left: &Value, right: &Value) -> bool {
    if let (Some(left), Some(right)) = (left.as_number(), right.as_number()) {
        let distance = (left - right).abs();
        return distance <= Decimal::new(1, 8);
    }
    if let (Some(left), Some(right)) = (left.as_list(), right.as_list()) {
        return left.len() == right.len()
            && left.iter().zip(right.iter()).all(|(a, b)| alike(a, b));
    }
    if let (Some(left), Some(right)) = (left.as_context(), right.as_context()) {
        return left.len() == right.len()
            && left
                .entries()
                .iter()
                .all(|(name, value)| right.get(name).is_some_and(|other| alike(value, other)));
    }
    let kinds = std::mem::discriminant(left) == std::mem::discriminant(right);
    kinds && left.to_json() == right.to_json()
}
