//! Business rule tasks that decide, and decisions alone.

use windlass_record::flow::{DecisionReference, EvaluateDecision};

use super::*;

#[test]
fn a_business_rule_task() {
    for (amount, shipping) in [("50", r#"{"fee":5,"way":"post"}"#), (r#""x""#, "null")] {
        let mut check = Check::with(&[
            process!("decision-unique.dmn"),
            process!("business-rule-decision.bpmn"),
        ]);
        let variables = format!(r#"{{"amount":{amount}}}"#);
        let instance = check.start("business-rule-decision", &variables);
        let left = check.completed(instance).expect("it decides at once");
        let shipped =
            left.split_once("\"shipping\":").map(|(_, shipped)| shipped.trim_end_matches('}'));
        let sorted = |text: &str| {
            let mut parts: Vec<String> =
                text.trim_matches(['{', '}']).split(',').map(str::to_owned).collect();
            parts.sort();
            parts
        };
        assert_eq!(sorted(shipped.expect("a result")), sorted(shipping), "{left}");
    }
}

#[test]
fn a_decision_that_is_not_there_yet() {
    let mut check = Check::with(&[process!("business-rule-decision.bpmn")]);
    let instance = check.start("business-rule-decision", r#"{"amount":50}"#);
    let incident = check.assert_incident(
        "CALLED_DECISION_ERROR",
        "rule",
        "Expected to evaluate decision 'ship-unique', but no decision found for id 'ship-unique'",
    );
    check.deploy(&[process!("decision-unique.dmn")]).expect("it is sound");
    check.resolve(incident);
    assert!(check.completed(instance).is_some());
}

#[test]
fn every_hit_policy() {
    for (file, id, amount, expected) in [
        (process!("decision-first.dmn"), "first", 35, r#""low""#),
        (process!("decision-rule-order.dmn"), "rule-order", 35, r#"["low","mid","high"]"#),
        (process!("decision-output-order.dmn"), "output-order", 35, r#"["high","mid","low"]"#),
        (process!("decision-priority.dmn"), "priority", 35, r#""high""#),
        (process!("decision-collect.dmn"), "collect", 35, "[1,2,4]"),
        (process!("decision-collect-sum.dmn"), "collect-sum", 35, "7"),
        (process!("decision-collect-min.dmn"), "collect-min", 35, "1"),
        (process!("decision-collect-max.dmn"), "collect-max", 35, "4"),
        (process!("decision-collect-count.dmn"), "collect-count", 35, "3"),
        (process!("decision-any.dmn"), "any", 35, r#""same""#),
        (process!("decision-collect-sum.dmn"), "collect-sum", 1, "null"),
        (process!("decision-collect-count.dmn"), "collect-count", 1, "null"),
        (process!("decision-first.dmn"), "first", 1, "null"),
    ] {
        let mut check = Check::new();
        let deployed = check.deployed(&[file]);
        let decision = deployed
            .definitions
            .iter()
            .rfind(|it| it.kind == windlass_record::flow::DefinitionKind::Decision)
            .unwrap_or_else(|| panic!("{id} is a decision"));
        let command = EvaluateDecision {
            tenant: TENANT.into(),
            decision: DecisionReference::Key(decision.key),
            variables: format!(r#"{{"amount":{amount}}}"#).into_bytes().into(),
        };
        match check.flow(FlowCommand::EvaluateDecision(command)) {
            Ok(FlowAnswer::Evaluated(evaluated)) => {
                assert_eq!(evaluated.output, expected, "{id} {amount}: {}", evaluated.failure);
            }
            other => panic!("{id}: {other:?}"),
        }
    }
}
