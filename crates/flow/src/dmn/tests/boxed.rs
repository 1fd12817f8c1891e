//! Boxed expressions and functions.

use crate::feel::{Budget, Context, Environment, Value};

use super::support::{document, evaluate, evaluate_within, model, outcome};

/// What becomes of a decision with this logic and this type, and of these elements beside it.
fn check(logic: &str, type_name: &str, beside: &str, json: &str, expected: &str) {
    let xml = document(&format!(
        r##"<decision id="d" name="D"><variable name="d" {type_name}/>
        <knowledgeRequirement><requiredKnowledge href="#f"/></knowledgeRequirement>
        {logic}</decision>{beside}"##
    ));
    let evaluation = evaluate(&model(&xml), "d", json);
    assert_eq!(outcome(&evaluation), expected, "{logic} with {json}");
}

const EMPTY: &str = r#"<businessKnowledgeModel id="f" name="f"/>"#;

fn literal(text: &str) -> String {
    let text = text.replace('<', "&lt;");
    format!("<literalExpression><text>{text}</text></literalExpression>")
}

fn entry(name: &str, logic: &str) -> String {
    format!(r#"<contextEntry><variable name="{name}"/>{logic}</contextEntry>"#)
}

fn knowledge(parameters: &[&str], logic: &str) -> String {
    let parameters: String =
        parameters.iter().map(|own| format!("<formalParameter {own}/>")).collect();
    format!(
        r#"<businessKnowledgeModel id="f" name="f"><encapsulatedLogic>{parameters}{logic}
        </encapsulatedLogic></businessKnowledgeModel>"#
    )
}

fn invocation(name: &str, bindings: &[(&str, &str)]) -> String {
    let bindings: String = bindings
        .iter()
        .map(|(name, text)| {
            format!(r#"<binding><parameter name="{name}"/>{}</binding>"#, literal(text))
        })
        .collect();
    format!("<invocation>{}{bindings}</invocation>", literal(name))
}

#[test]
fn literal_expression_and_type() {
    check(&literal("a + 1"), "", EMPTY, r#"{"a": 1}"#, "2");
    check(&literal("a + 1"), r#"typeRef="number""#, EMPTY, r#"{"a": 1}"#, "2");
    check(&literal("missing"), r#"typeRef="string""#, EMPTY, "{}", "null");
    check(&literal("a"), r#"typeRef="tOwn""#, EMPTY, r#"{"a": 1}"#, "1");
    check(
        &literal("a"),
        r#"typeRef="string""#,
        EMPTY,
        r#"{"a": 1}"#,
        "d failed: expected 'string' but found '1'",
    );
    check(
        &literal("date(a)"),
        r#"typeRef="feel:date""#,
        EMPTY,
        r#"{"a": "2026-01-01"}"#,
        r#""2026-01-01""#,
    );
}

#[test]
fn context_entries_see_those_before() {
    let entries = entry("x", &literal("1")) + &entry("y", &literal("x + 1"));
    check(&format!("<context>{entries}</context>"), "", EMPTY, "{}", r#"{"x":1,"y":2}"#);
    let result = format!("<contextEntry>{}</contextEntry>", literal("y * 10"));
    check(&format!("<context>{entries}{result}</context>"), "", EMPTY, "{}", "20");
}

#[test]
fn list_and_relation() {
    let list = format!("<list>{}{}</list>", literal("1"), literal("a"));
    check(&list, "", EMPTY, r#"{"a": "x"}"#, r#"[1,"x"]"#);
    let relation = format!(
        r#"<relation><column name="p"/><column name="q"/><row>{}{}</row><row>{}{}</row></relation>"#,
        literal("1"),
        literal("2"),
        literal("3"),
        literal("a")
    );
    check(&relation, "", EMPTY, r#"{"a": 4}"#, r#"[{"p":1,"q":2},{"p":3,"q":4}]"#);
}

#[test]
fn knowledge_is_invoked_by_boxes_and_by_expressions() {
    let beside = knowledge(&[r#"name="x" typeRef="number""#, r#"name="y""#], &literal("x - y"));
    check(&invocation("f", &[("y", "1"), ("x", "10")]), "", &beside, "{}", "9");
    check(&literal("f(10, 1)"), "", &beside, "{}", "9");
    check(&literal("f(y: 1, x: 10)"), "", &beside, "{}", "9");
    check(
        &invocation("f", &[("x", "10")]),
        "",
        &beside,
        "{}",
        "d failed: no parameter found with name 'y'",
    );
    let wrong = invocation("f", &[("y", "1"), ("x", "\"ten\"")]);
    check(&wrong, "", &beside, "{}", r#"d failed: expected 'number' but found '"ten"'"#);
    check(&literal("f(\"ten\", 1)"), "", &beside, "{}", "null");
}

#[test]
fn knowledge_with_a_table() {
    let table = r#"<decisionTable hitPolicy="FIRST"><input><inputExpression><text>x</text>
        </inputExpression></input><output name="o"/>
        <rule><inputEntry><text>&gt; 5</text></inputEntry><outputEntry><text>"big"</text></outputEntry></rule>
        <rule><inputEntry><text>-</text></inputEntry><outputEntry><text>"small"</text></outputEntry></rule>
        </decisionTable>"#;
    let beside = knowledge(&[r#"name="x""#], table);
    check(&literal("for i in [1, 9] return f(i)"), "", &beside, "{}", r#"["small","big"]"#);
    check(&invocation("f", &[("x", "6")]), "", &beside, "{}", r#""big""#);
}

#[test]
fn boxed_function_sees_the_entries_before() {
    let function = |body: &str| {
        format!(
            r#"<functionDefinition><formalParameter name="x"/>{}</functionDefinition>"#,
            literal(body)
        )
    };
    let entries = entry("base", &literal("100"))
        + &entry("add", &function("x + base"))
        + &entry("twice", &function("add(add(x))"))
        + &entry("result", &literal("twice(1)"));
    let selected = format!("<contextEntry>{}</contextEntry>", literal("result"));
    check(&format!("<context>{entries}{selected}</context>"), "", EMPTY, "{}", "201");
    let invoked = format!("<contextEntry>{}</contextEntry>", invocation("twice", &[("x", "2")]));
    check(&format!("<context>{entries}{invoked}</context>"), "", EMPTY, "{}", "202");
}

#[test]
fn conditional_filter_and_iterations() {
    let part = |name: &str, text: &str| format!("<{name}>{}</{name}>", literal(text));
    let conditional = part("if", "a > 1") + &part("then", "\"yes\"") + &part("else", "\"no\"");
    let conditional = format!("<conditional>{conditional}</conditional>");
    check(&conditional, "", EMPTY, r#"{"a": 2}"#, r#""yes""#);
    check(&conditional, "", EMPTY, r#"{"a": 0}"#, r#""no""#);
    let filter = format!("<filter>{}{}</filter>", part("in", "a"), part("match", "item > 1"));
    check(&filter, "", EMPTY, r#"{"a": [1, 2, 3]}"#, "[2,3]");
    check(&filter, "", EMPTY, r#"{"a": 1}"#, "d failed: expected 'list' but found '1'");
    for (tag, body, expected) in [
        ("for", part("return", "i * 2"), "[2,4,6]"),
        ("some", part("satisfies", "i > 2"), "true"),
        ("every", part("satisfies", "i > 2"), "false"),
    ] {
        let logic =
            format!(r#"<{tag} iteratorVariable="i">{}{body}</{tag}>"#, part("in", "[1, 2, 3]"));
        check(&logic, "", EMPTY, "{}", expected);
    }
}

#[test]
fn recursion_without_end_reaches_a_bound() {
    let xml = document(&format!(
        r##"<decision id="d" name="D">
        <knowledgeRequirement><requiredKnowledge href="#f"/></knowledgeRequirement>{}</decision>{}"##,
        literal("f(1)"),
        knowledge(&[r#"name="x""#], &literal("f(x + 1)"))
    ));
    let evaluation = evaluate(&model(&xml), "d", "{}");
    assert!(evaluation.output.is_err(), "{evaluation:?}");
    assert_eq!(evaluation.failed_decision(), Some("d"));
}

#[test]
fn functions_without_end_reach_a_bound() {
    let function = format!(
        r#"<functionDefinition><formalParameter name="x"/>{}</functionDefinition>"#,
        literal("x")
    );
    let logic = format!(
        r#"<for iteratorVariable="i"><in>{}</in><return>{function}</return></for>"#,
        literal("for i in 1..3000 return i")
    );
    check(&logic, "", EMPTY, "{}", "d failed: too many functions are made");
}

#[test]
fn a_budget_is_kept() {
    let logic = format!(
        r#"<for iteratorVariable="i"><in>{}</in><return>{}</return></for>"#,
        literal("a"),
        literal("i")
    );
    let xml = document(&format!(r#"<decision id="d" name="D">{logic}</decision>"#));
    let items: Vec<String> = (0..1000).map(|own| own.to_string()).collect();
    let json = format!(r#"{{"a": [{}]}}"#, items.join(","));
    let mut budget = Budget { steps_left: 500, ..Budget::default() };
    let evaluation = evaluate_within(&model(&xml), "d", &json, &mut budget);
    assert_eq!(outcome(&evaluation), "d failed: the expression takes too many steps");
    assert_eq!(evaluate(&model(&xml), "d", &json).failed_decision(), None);
}

#[test]
fn logic_as_deep_as_a_document_may_be() {
    let list = "<list>".repeat(90) + &literal("[1]") + &"</list>".repeat(90);
    let nested = format!("{}[1]{}", "[".repeat(90), "]".repeat(90));
    check(&list, "", EMPTY, "{}", &nested);
    let open = "<context><contextEntry><variable name='x'/>";
    let close = "</contextEntry></context>";
    let context = open.repeat(45) + &literal("1") + &close.repeat(45);
    let nested = format!("{}1{}", "{\"x\":".repeat(45), "}".repeat(45));
    check(&context, "", EMPTY, "{}", &nested);
}

#[test]
fn knowledge_that_invokes_itself() {
    let beside = knowledge(&[r#"name="n""#], &literal("if n < 1 then 1 else n * f(n - 1)"));
    check(&literal("f(5)"), "", &beside, "{}", "120");
}

#[test]
fn knowledge_sees_variables_and_the_knowledge_it_requires_but_not_more() {
    let beside = format!(
        r##"<businessKnowledgeModel id="f" name="f"><encapsulatedLogic><formalParameter name="x"/>{}
        </encapsulatedLogic><knowledgeRequirement><requiredKnowledge href="#g"/></knowledgeRequirement>
        </businessKnowledgeModel><businessKnowledgeModel id="g" name="g"><encapsulatedLogic>
        <formalParameter name="y"/>{}</encapsulatedLogic></businessKnowledgeModel>"##,
        literal("g(x) + rate"),
        literal("y * 2")
    );
    check(&literal("f(4)"), "", &beside, r#"{"rate": 0.5}"#, "8.5");
    check(&literal("g(4)"), "", &beside, "{}", "null");
}

#[test]
fn functions_that_outlive_their_evaluation_tell_nothing() {
    let beside = knowledge(&[r#"name="x""#], &literal("x"));
    let xml = document(&format!(
        r##"<decision id="d" name="D">
        <knowledgeRequirement><requiredKnowledge href="#f"/></knowledgeRequirement>{}</decision>{beside}"##,
        literal("[f, f(1)]")
    ));
    let evaluation = evaluate(&model(&xml), "d", "{}");
    assert_eq!(evaluation.decisions.len(), 2);
    let Ok(Value::List(items)) = &evaluation.output else { panic!("{evaluation:?}") };
    let Value::Function(function) = &items[0] else { panic!("{evaluation:?}") };
    let environment = Environment { now_ms: 0, seed: 0 };
    let arguments = [items[0].clone()];
    let result =
        function.invoke(&arguments, &Context::default(), &environment, &mut Budget::default());
    assert!(matches!(result, Ok(Value::Function(_))), "{result:?}");
}

#[test]
fn functions_that_hold_each_other_can_be_dropped() {
    let function = |position: usize| {
        let body = format!("<functionDefinition>{}</functionDefinition>", literal("1"));
        entry(&format!("f{position}"), &body)
    };
    let context = |count: usize| -> String {
        let functions: String = (0..count).map(function).collect();
        let result = format!("f{}()", count - 1);
        format!("<context>{functions}{}</context>", entry("result", &literal(&result)))
    };
    let selected = |count: usize| {
        let xml = format!(
            r##"<informationRequirement><requiredDecision href="#c"/></informationRequirement>{}"##,
            literal("c.result")
        );
        let beside = format!(r#"{EMPTY}<decision id="c" name="C">{}</decision>"#, context(count));
        (xml, beside)
    };
    let (logic, beside) = selected(1000);
    check(&logic, "", &beside, "{}", "1");
    let (logic, beside) = selected(3000);
    check(&logic, "", &beside, "{}", "c failed: too many functions are made");
}
