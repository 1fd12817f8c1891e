//! What documents are refused, and where the problem is said to be.

use super::support::document;
use crate::dmn::xml::{ATTRIBUTES_MAX, DEPTH_MAX, NAMESPACES_MAX};
use crate::dmn::{Problem, parse, parse_leniently};

/// The problems of a document, in words.
fn check(xml: &str, expected: &[&str]) {
    let problems = parse(xml.as_bytes()).err().unwrap_or_default();
    let words: Vec<String> = problems.iter().map(Problem::to_string).collect();
    assert_eq!(words, expected, "{xml}");
}

fn decision(attributes: &str, inside: &str) -> String {
    document(&format!("<decision {attributes}>{inside}</decision>"))
}

#[test]
fn namespaces_of_all_versions_are_accepted() {
    for namespace in [
        "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
        "http://www.omg.org/spec/DMN/20180521/MODEL/",
        "https://www.omg.org/spec/DMN/20191111/MODEL/",
        "https://www.omg.org/spec/DMN/20211108/MODEL/",
        "https://www.omg.org/spec/DMN/20230324/MODEL/",
    ] {
        let xml = format!(
            r#"<dmn:definitions xmlns:dmn="{namespace}" id="a" name="b" namespace="c">
            <dmn:decision id="d" name="D"><dmn:literalExpression><dmn:text><![CDATA[1 < 2]]></dmn:text>
            </dmn:literalExpression></dmn:decision></dmn:definitions>"#
        );
        let model = parse(xml.as_bytes()).unwrap();
        assert_eq!((model.id(), model.name(), model.namespace()), ("a", "b", "c"));
        assert_eq!(model.decision("d").unwrap().name, "D");
    }
    check(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="x"/>"#,
        &["line 1, column 1: definitions 'x': the root is not `definitions` of DMN 1.1 to 1.5"],
    );
}

#[test]
fn what_is_not_xml_is_refused() {
    check("", &["line 1, column 1: not well-formed XML: the document does not have a root node"]);
    assert!(parse(b"\xff\xfe<\0").is_err());
    assert!(parse(b"<a>").is_err());
    assert!(parse(b"<a><b></a></b>").is_err());
}

#[test]
fn document_types_are_refused() {
    let bomb = r#"<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>"#;
    check(bomb, &["a document type declaration is not allowed"]);
    check("<!DOCTYPE a><a/>", &["a document type declaration is not allowed"]);
}

#[test]
fn deep_and_wide_documents_are_refused() {
    let deep = "<a>".repeat(DEPTH_MAX + 1);
    check(&deep, &["elements nest too deeply"]);
    let attributes: String = (0..=ATTRIBUTES_MAX).map(|own| format!(" a{own}='='")).collect();
    let limit = "more elements, attributes, names or namespaces than allowed";
    check(&format!("<a{attributes}/>"), &[limit]);
    let namespaces: String =
        (0..=NAMESPACES_MAX).map(|own| format!("<a xmlns:n{own}='{own}'/>")).collect();
    check(&format!("<a>{namespaces}</a>"), &[limit]);
}

#[test]
fn comments_and_data_are_no_tags() {
    let comment = format!("<!-- {} -->", "<a>".repeat(DEPTH_MAX + 1));
    let logic = "<literalExpression><text>1<!-- two --> + 1</text></literalExpression>";
    let xml = decision(r#"id="d" name="D""#, &(comment + logic));
    let model = parse(xml.as_bytes()).unwrap();
    assert_eq!(model.decisions().len(), 1);
}

#[test]
fn decisions_need_an_id_a_name_and_logic() {
    let logic = "<literalExpression><text>1</text></literalExpression>";
    check(
        &decision(r#"name="D""#, logic),
        &["line 3, column 51: decision 'D': the attribute `id` is missing"],
    );
    check(
        &decision(r#"id="d""#, logic),
        &["line 3, column 51: decision 'd': the attribute `name` is missing"],
    );
    check(
        &decision(r#"id="d" name="D""#, ""),
        &["line 3, column 51: decision 'd': there is no expression"],
    );
    let twice = format!(r#"<decision id="d" name="D">{logic}</decision>"#).repeat(2);
    check(
        &document(&twice),
        &["line 3, column 141: decision 'd': the id 'd' is used more than once"],
    );
}

#[test]
fn expressions_must_be_feel() {
    let literal = |attributes: &str, text: &str| {
        let logic = format!(
            "<literalExpression id='x' {attributes}><text>{text}</text></literalExpression>"
        );
        decision(r#"id="d" name="D""#, &logic)
    };
    check(
        &literal("", " "),
        &["line 3, column 77: literalExpression 'x': the expression must not be empty"],
    );
    check(
        &literal("expressionLanguage='javascript'", "1"),
        &[
            "line 3, column 77: literalExpression 'x': expression language 'javascript' is not supported",
        ],
    );
    let problems = parse(literal("", "1 +").as_bytes()).unwrap_err();
    assert!(problems[0].to_string().contains("not a FEEL expression"), "{problems:?}");
    assert!(parse(literal("expressionLanguage='feel'", "1").as_bytes()).is_ok());
    assert!(
        parse(
            literal("expressionLanguage='https://www.omg.org/spec/DMN/20191111/FEEL/'", "1")
                .as_bytes()
        )
        .is_ok()
    );
}

#[test]
fn tables_must_be_whole() {
    let table = |attributes: &str, inside: &str| {
        decision(
            r#"id="d" name="D""#,
            &format!("<decisionTable id='t' {attributes}>{inside}</decisionTable>"),
        )
    };
    let place = "line 3, column 77: decisionTable 't'";
    let two = "<output name='a'/><output name='b'/>";
    check(&table("", ""), &[&format!("{place}: the element `output` is missing")]);
    check(&table("hitPolicy='LAST'", two), &[&format!("{place}: there is no hit policy 'LAST'")]);
    check(
        &table("hitPolicy='COLLECT' aggregation='SUM'", two),
        &[&format!(
            "{place}: hit policy COLLECT with aggregator is not defined for compound output"
        )],
    );
    check(
        &table("", "<output name='a'/><output/>"),
        &["line 3, column 118: output: each of several outputs needs a name"],
    );
    check(
        &table("", "<input><inputExpression id='e'><text/></inputExpression></input><output/>"),
        &["line 3, column 107: inputExpression 'e': the expression must not be empty"],
    );
}

#[test]
fn requirements_must_be_fulfilled() {
    let logic = "<literalExpression><text>1</text></literalExpression>";
    let requires = |target: &str, href: &str| {
        let (holder, element) = match target {
            "decision" => ("informationRequirement", "requiredDecision"),
            "input" => ("informationRequirement", "requiredInput"),
            _ => ("knowledgeRequirement", "requiredKnowledge"),
        };
        format!("<{holder}><{element} href='{href}'/></{holder}>")
    };
    let place = "line 3, column 51: decision 'd'";
    for target in ["decision", "knowledge"] {
        check(
            &decision(r#"id="d" name="D""#, &(requires(target, "#none") + logic)),
            &[&format!("{place}: nothing in this document can be required as 'none'")],
        );
    }
    check(&decision(r#"id="d" name="D""#, &(requires("input", "#none") + logic)), &[]);
    let own = requires("decision", "http://camunda.org/schema/1.0/dmn#e") + logic;
    let other = format!(
        r#"<decision id="d" name="D">{own}</decision><decision id="e" name="E">{logic}</decision>"#
    );
    let model = parse(document(&other).as_bytes()).unwrap();
    assert_eq!(model.decision("d").unwrap().required_decisions, ["e"]);
}

#[test]
fn circles_are_refused() {
    let decision = |id: &str, required: &str| {
        format!(
            r##"<decision id="{id}" name="{id}"><informationRequirement>
            <requiredDecision href="#{required}"/></informationRequirement>
            <literalExpression><text>1</text></literalExpression></decision>"##
        )
    };
    let xml = document(&(decision("a", "b") + &decision("b", "c") + &decision("c", "b")));
    let problems = parse(xml.as_bytes()).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(
        problems[0].to_string(),
        "line 5, column 77: decision 'b': requirements form a cycle: b -> c -> b"
    );
    check(
        &document(
            r##"<businessKnowledgeModel id="f" name="f"><knowledgeRequirement>
            <requiredKnowledge href="#f"/></knowledgeRequirement></businessKnowledgeModel>"##,
        ),
        &["line 3, column 51: businessKnowledgeModel 'f': requirements form a cycle: f -> f"],
    );
}

#[test]
fn a_lenient_model_keeps_what_is_valid() {
    let xml = document(
        r#"<decision id="good" name="G"><literalExpression><text>1</text></literalExpression></decision>
        <decision id="bad" name="B"><literalExpression><text>1 +</text></literalExpression></decision>"#,
    );
    let (model, problems) = parse_leniently(xml.as_bytes()).unwrap();
    assert_eq!(problems.len(), 1);
    assert!(super::support::evaluate(&model, "good", "{}").output.is_ok());
    assert!(super::support::evaluate(&model, "bad", "{}").output.is_err());
}

#[test]
fn a_hundred_problems_are_enough() {
    let many = "<decision id='x'/>".repeat(1000);
    assert_eq!(parse(document(&many).as_bytes()).unwrap_err().len(), 100);
}

#[test]
fn two_thousand_special_names_are_enough() {
    let inputs = |count: usize| -> String {
        (0..count).map(|own| format!("<inputData id='i{own}' name='an input {own}'/>")).collect()
    };
    assert!(parse(document(&inputs(2048)).as_bytes()).is_ok());
    let problems = parse(document(&inputs(2049)).as_bytes()).unwrap_err();
    assert!(problems[0].to_string().ends_with("names or namespaces than allowed"), "{problems:?}");
}

#[test]
fn a_special_name_is_one_only_where_its_words_are_apart() {
    let xml = document(
        r#"<decision id="d" name="D"><literalExpression><text>{LoanAmount: 1, Loan: 2}.LoanAmount</text>
        </literalExpression></decision><inputData id="i" name="Loan Amount"/>
        <inputData id="j" name="Loan.Amount"/>"#,
    );
    let model = parse(xml.as_bytes()).unwrap();
    let evaluation = super::support::evaluate(&model, "d", "{}");
    assert_eq!(super::support::outcome(&evaluation), "1");
}
