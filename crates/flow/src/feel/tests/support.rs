//! The one way in which tests evaluate: over the same variables, at the same time.

use std::fmt::Write;

use crate::feel::*;

pub(super) const ENVIRONMENT: Environment = Environment { now_ms: 1_700_000_000_123, seed: 7 };

pub(super) fn variables() -> Value {
    let text = r#"{
        "a": 7, "price": 1.50, "name": "Ada", "none": null, "yes": true,
        "order": {"id": "o-1", "lines": [{"sku": "x", "count": 2}, {"sku": "y", "count": 5}]},
        "numbers": [3, 1, 2]
    }"#;
    Value::from_json(text).expect("the variables are JSON")
}

pub(super) fn evaluate(source: &str, budget: &mut Budget) -> Result<Value, String> {
    let expression = parse(source).map_err(|error| error.to_string())?;
    let variables = variables();
    let scope: &Context = variables.as_context().expect("the variables are an object");
    expression.evaluate(scope, &ENVIRONMENT, budget).map_err(|error| error.to_string())
}

/// Every expression has the value beside it, as JSON.
pub(super) fn check(table: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (source, expected) in table {
        let found = evaluate(source, &mut Budget::default())
            .map_or_else(|error| error, |value| value.to_json());
        if found != *expected {
            writeln!(wrong, "{source}\n    gave {found}\n    not  {expected}")
                .expect("a string takes what is written to it");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Whether every input passes the tests beside it.
pub(super) fn check_tests(table: &[(&str, &str, bool)]) {
    for (tests, input, expected) in table {
        let parsed = parse_unary_tests(tests).expect("the tests are FEEL");
        let input = evaluate(input, &mut Budget::default()).expect("the input is FEEL");
        let scope = Context::default();
        let matched = parsed.matches(&input, &scope, &ENVIRONMENT, &mut Budget::default());
        assert_eq!(matched, Ok(*expected), "{tests} of {input:?}");
    }
}
