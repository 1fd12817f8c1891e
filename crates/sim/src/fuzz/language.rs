//! What people deploy, given arbitrary bytes: a document is compiled or refused with words, an
//! expression has a value or an error within its budget.

use windlass_flow::feel::{self, Budget, Context, Environment, Value};
use windlass_flow::{bpmn, dmn};

use crate::engine_sim::Remains;

macro_rules! files {
    ($($name:literal)*) => {
        vec![$(
            include_bytes!(concat!("../../../../tests/zeebe/processes/", $name)).to_vec(),
        )*]
    };
}

/// A process. What is refused has an error among what a lint says, what is compiled has none.
pub fn bpmn_documents(bytes: &[u8]) {
    let compiled = bpmn::compile(bytes);
    let problems = bpmn::lint(bytes);
    let is_refused = problems.iter().any(|it| it.severity == bpmn::Severity::Error);
    assert_eq!(compiled.is_err(), is_refused, "{problems:?}");
}

/// Decisions.
pub fn dmn_documents(bytes: &[u8]) {
    let Ok(model) = dmn::parse(bytes) else { return };
    for decision in model.decisions() {
        let _ = model.evaluate(&decision.id, &Context::default(), &ENVIRONMENT, &mut budget());
    }
}

/// An expression, and the same text as the tests of a decision's cell. A value can be written and
/// read again, and is then the same text.
pub fn feel_expressions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(tests) = feel::parse_unary_tests(text) {
        let _ = tests.matches(&Value::Null, &Context::default(), &ENVIRONMENT, &mut budget());
    }
    let Ok(expression) = feel::parse(text) else { return };
    let value = expression.evaluate(&Context::default(), &ENVIRONMENT, &mut budget());
    if let Ok(value) = value {
        let written = value.to_json();
        if let Ok(again) = Value::from_json(&written) {
            assert_eq!(again.to_json(), written);
        }
    }
}

const ENVIRONMENT: Environment = Environment { now_ms: 1_800_000_000_000, seed: 7 };

/// Small, so that a run of the target is quick.
fn budget() -> Budget {
    Budget { steps_left: 20_000, size_left: 1 << 20, depth_left: 256 }
}

pub(super) fn processes(_: &Remains) -> Vec<Vec<u8>> {
    files! {
        "call-no-propagation.bpmn" "compensation.bpmn" "error-boundary.bpmn" "event-gateway.bpmn"
        "event-subprocess-message.bpmn" "execution-listeners.bpmn" "inclusive-gateway.bpmn"
        "io-mapping.bpmn" "link-event.bpmn" "multi-condition.bpmn" "timer-boundary-cycle.bpmn"
        "user-task-native.bpmn" "business-rule-decision.bpmn" "signal-throw.bpmn" "ornaments.bpmn"
        "task-listeners.bpmn"
    }
}

pub(super) fn decisions(_: &Remains) -> Vec<Vec<u8>> {
    files! {
        "decision-any.dmn" "decision-collect-sum.dmn" "decision-priority.dmn"
        "decision-requirements.dmn" "decision-literal.dmn" "decision-unique.dmn"
    }
}

pub(super) fn expressions(_: &Remains) -> Vec<Vec<u8>> {
    [
        "if a.b[item > 1] = null then {x: 1, \"y z\": [1, 2.50, -3]} else not(true)",
        "for i in 1..10, j in [1, 2] return i * j ** 2 - partial[-1]",
        "some x in [1, 2] satisfies x >= 2 and x between 1 and 3 or x in ]1..5[",
        "date and time(\"2024-02-29T10:00:00@Europe/Paris\") + duration(\"P1DT2H\")",
        "string join(sort([\"b\", \"a\"], function(x, y) x < y), \"-\") + upper case(\"\\u00e9\")",
        "{a: 1, b: a + 1, f: function(x: number) x + b, c: f(2)}.c instance of number",
        "< 10, [20..30), \"gold\", null, not(5)",
        "get or else(matches(\"abc\", \"a.*\"), -(-1)) // a comment",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}
