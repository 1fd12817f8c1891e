//! Decision tables: hit policies, cells, defaults, what is told about them.

use super::support::{document, evaluate, model, outcome};

/// A decision with a table: `inputs` and `outputs` are separated by `|`, and so are the cells of
/// a rule. An output is `name`, `name = allowed values` or `name = allowed values = default`.
fn table(attributes: &str, inputs: &str, outputs: &str, rules: &[&str]) -> String {
    let mut xml = format!(r#"<decision id="d" name="D"><decisionTable {attributes}>"#);
    for (position, input) in cells(inputs).iter().enumerate() {
        xml += &format!(
            r#"<input id="i{position}" label="{input}"><inputExpression><text>{input}</text>
            </inputExpression></input>"#
        );
    }
    let width = cells(inputs).len();
    for (position, output) in cells(outputs).iter().enumerate() {
        let parts: Vec<&str> = output.split('=').map(str::trim).collect();
        xml += &format!(r#"<output id="o{position}" name="{}">"#, parts[0]);
        if parts.get(1).is_some_and(|allowed| !allowed.is_empty()) {
            xml += &format!("<outputValues><text>{}</text></outputValues>", parts[1]);
        }
        if let Some(default) = parts.get(2) {
            xml += &format!("<defaultOutputEntry><text>{default}</text></defaultOutputEntry>");
        }
        xml += "</output>";
    }
    for (position, rule) in rules.iter().enumerate() {
        xml += &format!(r#"<rule id="r{position}">"#);
        for (column, cell) in cells(rule).iter().enumerate() {
            let tag = if column < width { "inputEntry" } else { "outputEntry" };
            let cell = cell.replace('<', "&lt;").replace('>', "&gt;");
            xml += &format!("<{tag}><text>{cell}</text></{tag}>");
        }
        xml += "</rule>";
    }
    document(&(xml + "</decisionTable></decision>"))
}

fn cells(row: &str) -> Vec<&str> {
    row.split('|').map(str::trim).collect()
}

/// What becomes of a table with one numeric input `n` for a value of it.
fn check(attributes: &str, outputs: &str, rules: &[&str], n: &str, expected: &str) {
    let xml = table(attributes, "n", outputs, rules);
    let evaluation = evaluate(&model(&xml), "d", &format!(r#"{{"n": {n}}}"#));
    assert_eq!(outcome(&evaluation), expected, "{attributes} {outputs} {rules:?} n = {n}");
}

#[test]
fn unique() {
    let rules = ["< 10 | \"low\"", "[10..20] | \"middle\"", "> 15 | \"high\""];
    check("", "o", &rules, "3", r#""low""#);
    check("", "o", &rules, "12", r#""middle""#);
    check(r#"hitPolicy="UNIQUE""#, "o", &rules, "30", r#""high""#);
    check("", "o", &rules, "null", "null");
    check(
        "",
        "o",
        &rules,
        "18",
        r#"d failed: multiple values aren't allowed for UNIQUE hit policy. found: '["middle","high"]'"#,
    );
}

#[test]
fn first() {
    let rules = ["> 10 | \"a\"", "> 5 | \"b\"", "- | \"c\"", " | \"never\""];
    check(r#"hitPolicy="FIRST""#, "o", &rules, "20", r#""a""#);
    check(r#"hitPolicy="FIRST""#, "o", &rules, "7", r#""b""#);
    check(r#"hitPolicy="FIRST""#, "o", &rules, "null", r#""c""#);
}

#[test]
fn any() {
    let rules = ["> 10 | 1", "> 5 | 1.0", "> 20 | 2"];
    check(r#"hitPolicy="ANY""#, "o", &rules, "11", "1");
    check(r#"hitPolicy="ANY""#, "o", &rules, "1", "null");
    check(
        r#"hitPolicy="ANY""#,
        "o",
        &["> 10 | \"x\"", "> 5 | \"y\""],
        "21",
        r#"d failed: different values aren't allowed for ANY hit policy. found: '["x","y"]'"#,
    );
}

#[test]
fn priority() {
    let rules = ["> 0 | \"low\" ", "> 5 | \"high\"", "> 7 | \"other\"", "> 9 | \"middle\""];
    let outputs = r#"o = "high", "middle", "low""#;
    check(r#"hitPolicy="PRIORITY""#, outputs, &rules, "10", r#""high""#);
    check(r#"hitPolicy="PRIORITY""#, outputs, &rules, "1", r#""low""#);
    check(r#"hitPolicy="PRIORITY""#, outputs, &rules, "0", "null");
    check(r#"hitPolicy="PRIORITY""#, "o = 3, 2, 1", &["> 0 | 1", "> 0 | 2"], "1", "2");
    check(r#"hitPolicy="PRIORITY""#, "o", &rules, "10", r#""low""#);
    let expected = r#"["high","middle","low","other"]"#;
    check(r#"hitPolicy="OUTPUT ORDER""#, outputs, &rules, "10", expected);
    check(r#"hitPolicy="OUTPUT ORDER""#, outputs, &rules, "0", "null");
}

#[test]
fn priority_of_more_than_ten_values_is_not_their_order_as_text() {
    let allowed: Vec<String> = (0..12).map(|own| format!("\"v{own}\"")).collect();
    let outputs = format!("o = {}", allowed.join(", "));
    let rules = ["- | \"v10\"", "- | \"v2\""];
    check(r#"hitPolicy="PRIORITY""#, &outputs, &rules, "1", r#""v2""#);
}

#[test]
fn priority_of_several_outputs_goes_by_the_first() {
    let rules = ["- | \"b\" | \"x\"", "- | \"a\" | \"y\"", "- | \"a\" | \"x\""];
    let outputs = r#"p = "a", "b" | q = "x", "y""#;
    let expected = r#"[{"p":"a","q":"x"},{"p":"a","q":"y"},{"p":"b","q":"x"}]"#;
    check(r#"hitPolicy="OUTPUT ORDER""#, outputs, &rules, "1", expected);
}

#[test]
fn rule_order_and_collect() {
    let rules = ["> 1 | 10", "> 2 | 5.5", "> 3 | 20"];
    check(r#"hitPolicy="RULE ORDER""#, "o", &rules, "4", "[10,5.5,20]");
    check(r#"hitPolicy="RULE ORDER""#, "o", &rules, "2", "[10]");
    check(r#"hitPolicy="RULE ORDER""#, "o", &rules, "1", "null");
    check(r#"hitPolicy="COLLECT""#, "o", &rules, "4", "[10,5.5,20]");
    check(r#"hitPolicy="COLLECT" aggregation="SUM""#, "o", &rules, "4", "35.5");
    check(r#"hitPolicy="COLLECT" aggregation="MIN""#, "o", &rules, "4", "5.5");
    check(r#"hitPolicy="COLLECT" aggregation="MAX""#, "o", &rules, "4", "20");
    check(r#"hitPolicy="COLLECT" aggregation="COUNT""#, "o", &rules, "4", "3");
    check(r#"hitPolicy="COLLECT" aggregation="COUNT""#, "o", &rules, "1", "null");
    check(
        r#"hitPolicy="COLLECT" aggregation="SUM""#,
        "o",
        &["- | 1", "- | \"two\""],
        "4",
        r#"d failed: expected number but found '"two"'"#,
    );
}

#[test]
fn sum_beyond_what_a_number_holds_is_null() {
    let largest = "- | 79228162514264337593543950335";
    check(r#"hitPolicy="COLLECT" aggregation="SUM""#, "o", &[largest, largest], "1", "null");
}

#[test]
fn several_outputs() {
    let rules = ["> 5 | 1 | \"x\"", "> 7 | 2 | \"y\""];
    check("", "a | b", &rules, "6", r#"{"a":1,"b":"x"}"#);
    check(r#"hitPolicy="COLLECT""#, "a | b", &rules, "8", r#"[{"a":1,"b":"x"},{"a":2,"b":"y"}]"#);
    check(r#"hitPolicy="ANY""#, "a | b", &["- | 1 | 2", "- | 1 | 2"], "8", r#"{"a":1,"b":2}"#);
}

#[test]
fn default_outputs() {
    check("", r#"o = "x" = "none""#, &["> 5 | \"x\""], "1", r#""none""#);
    check("", r#"o = "x" = "none""#, &["> 5 | \"x\""], "6", r#""x""#);
    check("", "a = = 1 | b = = n + 1", &["> 5 | 8 | 9"], "1", r#"{"a":1,"b":2}"#);
    // As in Camunda: one default of several outputs stands alone, and it is not in a list.
    check("", "a | b = = 2", &["> 5 | 8 | 9"], "1", "2");
    check(r#"hitPolicy="COLLECT""#, "a = = 1", &["> 5 | 8"], "1", "1");
}

#[test]
fn cells_are_unary_tests() {
    check("", "o", &["1, 2 | \"few\"", "not(1, 2) | \"many\""], "2", r#""few""#);
    check("", "o", &["1, 2 | \"few\"", "not(1, 2) | \"many\""], "9", r#""many""#);
    check("", "o", &["? > 3 and ? < 5 | n * 2"], "4", "8");
    check("", "o", &["null | \"nothing\""], "null", r#""nothing""#);
    check("", "o", &["- |  "], "4", "null");
    check("", "o", &["\"text\" | 1"], "4", "null");
}

#[test]
fn several_inputs_and_dates() {
    let rules = [
        r#""Winter" | <= 8 | "Spareribs""#,
        r#""Winter" | > 8 | "Pasta""#,
        r#"not("Winter") | - | "Steak""#,
    ];
    let dish = model(&table("", "season | guests", "dish", &rules));
    for (json, expected) in [
        (r#"{"season": "Winter", "guests": 8}"#, r#""Spareribs""#),
        (r#"{"season": "Winter", "guests": 9}"#, r#""Pasta""#),
        (r#"{"season": "Summer"}"#, r#""Steak""#),
        (r#"{"season": "Winter"}"#, "null"),
    ] {
        assert_eq!(outcome(&evaluate(&dish, "d", json)), expected, "{json}");
    }
    let rules = [r#"[date("2026-01-01")..date("2026-12-31")] | true"#];
    let dates = model(&table("", "date(day)", "o", &rules));
    assert_eq!(outcome(&evaluate(&dates, "d", r#"{"day": "2026-07-01"}"#)), "true");
    assert_eq!(outcome(&evaluate(&dates, "d", r#"{"day": "2027-07-01"}"#)), "null");
}

#[test]
fn empty_input_expression_is_the_label() {
    let xml = document(
        r#"<decision id="d" name="D"><decisionTable>
        <input id="i" label="age"><inputExpression><text/></inputExpression></input>
        <output name="o"/>
        <rule><inputEntry><text>&gt; 17</text></inputEntry>
        <outputEntry><text>"adult"</text></outputEntry></rule></decisionTable></decision>"#,
    );
    assert_eq!(outcome(&evaluate(&model(&xml), "d", r#"{"age": 18}"#)), r#""adult""#);
}

#[test]
fn trace_tells_inputs_and_matched_rules() {
    let rules = ["> 1 | 10 | \"a\"", "> 9 | 20 | \"b\"", "> 2 | 30 | \"c\""];
    let own = model(&table(r#"hitPolicy="COLLECT""#, "n", "x | y", &rules));
    let evaluation = evaluate(&own, "d", r#"{"n": 3}"#);
    let decision = &evaluation.decisions[0];
    assert_eq!(decision.kind.word(), "DECISION_TABLE");
    assert_eq!(decision.output.to_json(), r#"[{"x":10,"y":"a"},{"x":30,"y":"c"}]"#);
    let inputs: Vec<_> = decision
        .inputs
        .iter()
        .map(|own| (own.id.as_str(), own.name.as_str(), own.value.to_json()))
        .collect();
    assert_eq!(inputs, [("i0", "n", "3".to_owned())]);
    let rules: Vec<_> = decision
        .rules
        .iter()
        .map(|own| {
            let outputs = own.outputs.iter();
            let outputs: Vec<_> = outputs
                .map(|own| format!("{} {} {}", own.id, own.name, own.value.to_json()))
                .collect();
            format!("{} {} {}", own.id, own.index, outputs.join(", "))
        })
        .collect();
    assert_eq!(rules, [r#"r0 1 o0 x 10, o1 y "a""#, r#"r2 3 o0 x 30, o1 y "c""#]);
}

#[test]
fn trace_of_a_failed_table_tells_the_rules_that_matched() {
    let own = model(&table("", "n", "o", &["- | 1", "- | 2"]));
    let evaluation = evaluate(&own, "d", r#"{"n": 3}"#);
    assert_eq!(evaluation.failed_decision(), Some("d"));
    assert_eq!(
        evaluation.failure_message("d").unwrap(),
        "Expected to evaluate decision 'd', but multiple values aren't allowed for UNIQUE hit \
         policy. found: '[1,2]'"
    );
    assert_eq!(evaluation.decisions[0].rules.len(), 2);
    assert!(evaluation.decisions[0].output.is_null());
}
