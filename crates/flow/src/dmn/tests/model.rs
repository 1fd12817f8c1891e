//! Whole models, with requirements between decisions.

use super::support::{document, evaluate, model, outcome};
use crate::dmn::Model;

/// The dish of the well-known example, with the season and the guests decided first.
const DISH: &str = r##"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/"
    xmlns:dmndi="https://www.omg.org/spec/DMN/20191111/DMNDI/" id="dish_drg" name="Dish"
    namespace="http://camunda.org/schema/1.0/dmn" exporter="Camunda Modeler">
  <decision id="dish" name="Dish">
    <informationRequirement id="q1"><requiredDecision href="#season"/></informationRequirement>
    <informationRequirement id="q2"><requiredDecision href="#guests"/></informationRequirement>
    <decisionTable id="dishTable" hitPolicy="UNIQUE">
      <input id="in1" label="Season">
        <inputExpression id="e1" typeRef="string"><text>season</text></inputExpression>
        <inputValues id="v1"><text>"Winter","Summer"</text></inputValues>
      </input>
      <input id="in2" label="How many guests">
        <inputExpression id="e2" typeRef="number"><text>guestCount</text></inputExpression>
      </input>
      <output id="out1" label="Dish" name="desiredDish" typeRef="string"/>
      <rule id="rule1">
        <inputEntry><text>"Winter"</text></inputEntry><inputEntry><text>&lt;= 8</text></inputEntry>
        <outputEntry><text>"Spareribs"</text></outputEntry>
      </rule>
      <rule id="rule2">
        <inputEntry><text>"Winter"</text></inputEntry><inputEntry><text>&gt; 8</text></inputEntry>
        <outputEntry><text>"Pasta"</text></outputEntry>
      </rule>
      <rule id="rule3">
        <inputEntry><text>"Summer"</text></inputEntry><inputEntry><text></text></inputEntry>
        <outputEntry><text>"Light Salad"</text></outputEntry>
      </rule>
    </decisionTable>
  </decision>
  <decision id="season" name="Season decision">
    <informationRequirement><requiredInput href="#temperature"/></informationRequirement>
    <decisionTable>
      <input id="in3"><inputExpression><text>temperature</text></inputExpression></input>
      <output id="out3" name="s"/>
      <rule id="cold"><inputEntry><text>&lt; 10</text></inputEntry>
        <outputEntry><text>"Winter"</text></outputEntry></rule>
      <rule id="warm"><inputEntry><text>&gt;= 10</text></inputEntry>
        <outputEntry><text>"Summer"</text></outputEntry></rule>
    </decisionTable>
  </decision>
  <decision id="guests" name="Guest Count">
    <variable name="guestCount" typeRef="number"/>
    <literalExpression><text>if dayType = "Weekend" then 15 else persons</text></literalExpression>
  </decision>
  <inputData id="temperature" name="Temperature"><variable name="temperature"/></inputData>
  <dmndi:DMNDI><dmndi:DMNDiagram/></dmndi:DMNDI>
</definitions>"##;

/// What becomes of a decision, and which decisions were evaluated on the way.
fn check(model: &Model, id: &str, json: &str, expected: &str, decisions: &[&str]) {
    let evaluation = evaluate(model, id, json);
    assert_eq!(outcome(&evaluation), expected, "{id} with {json}");
    let evaluated: Vec<String> = evaluation
        .decisions
        .iter()
        .map(|own| format!("{} {} {}", own.id, own.kind, own.output.to_json()))
        .collect();
    assert_eq!(evaluated, decisions, "{id} with {json}");
}

#[test]
fn required_decisions_come_first() {
    let dish = model(DISH);
    assert_eq!((dish.id(), dish.name()), ("dish_drg", "Dish"));
    assert_eq!(dish.inputs()[0].name, "temperature");
    check(
        &dish,
        "dish",
        r#"{"temperature": 3, "dayType": "Weekend"}"#,
        r#""Pasta""#,
        &[
            r#"season DECISION_TABLE "Winter""#,
            "guests LITERAL_EXPRESSION 15",
            r#"dish DECISION_TABLE "Pasta""#,
        ],
    );
    check(
        &dish,
        "season",
        r#"{"temperature": 25}"#,
        r#""Summer""#,
        &[r#"season DECISION_TABLE "Summer""#],
    );
}

#[test]
fn a_required_decision_that_fails_is_the_one_that_failed() {
    let dish = model(DISH);
    check(
        &dish,
        "dish",
        r#"{"temperature": 3, "persons": "many"}"#,
        r#"guests failed: expected 'number' but found '"many"'"#,
        &[r#"season DECISION_TABLE "Winter""#, r#"guests LITERAL_EXPRESSION "many""#],
    );
    let evaluation = evaluate(&dish, "dish", r#"{"persons": "many"}"#);
    assert_eq!(
        evaluation.failure_message("dish").unwrap(),
        "Expected to evaluate decision 'dish', but expected 'number' but found '\"many\"'"
    );
}

#[test]
fn unknown_decisions_are_said_to_be() {
    let expected = "soup failed: no decision found with id 'soup'";
    check(&model(DISH), "soup", "{}", expected, &[]);
}

#[test]
fn input_and_output_names_favour_labels() {
    let evaluation = evaluate(&model(DISH), "dish", r#"{"temperature": 3, "persons": 4}"#);
    let season = &evaluation.decisions[0];
    let dish = &evaluation.decisions[2];
    assert_eq!(season.inputs[0].name, "temperature");
    assert_eq!(dish.inputs[1].name, "How many guests");
    assert_eq!((dish.rules[0].id.as_str(), dish.rules[0].index), ("rule1", 1));
    assert_eq!(&*dish.rules[0].outputs[0].name, "Dish");
    assert_eq!(&*season.rules[0].outputs[0].name, "s");
}

#[test]
fn a_decision_is_visible_by_variable_and_where_nothing_else_is_by_id_and_name() {
    let both = |text: &str| {
        model(&document(&format!(
            r##"<decision id="two" name="Two">
            <informationRequirement><requiredDecision href="#one"/></informationRequirement>
            <literalExpression><text>{text}</text></literalExpression></decision>
            <decision id="one" name="The First"><variable name="first"/>
            <literalExpression><text>1</text></literalExpression></decision>"##
        )))
    };
    let decisions = |output: &str| {
        ["one LITERAL_EXPRESSION 1".to_owned(), format!("two LITERAL_EXPRESSION {output}")]
    };
    for (text, json, expected) in [
        ("first", "{}", "1"),
        ("one", "{}", "1"),
        ("The First + 1", "{}", "2"),
        ("first", r#"{"first": 7}"#, "1"),
        ("one", r#"{"one": 7}"#, "7"),
    ] {
        let told = decisions(expected);
        check(&both(text), "two", json, expected, &[&told[0], &told[1]]);
    }
}

#[test]
fn a_decision_required_twice_is_evaluated_once() {
    let decision = |id: &str, required: &[&str], text: &str| {
        let required: String = required
            .iter()
            .map(|own| {
                format!(
                    r##"<informationRequirement><requiredDecision href="#{own}"/></informationRequirement>"##
                )
            })
            .collect();
        format!(
            r#"<decision id="{id}" name="{id}">{required}<literalExpression><text>{text}</text>
            </literalExpression></decision>"#
        )
    };
    let xml = decision("top", &["left", "right"], "left + right")
        + &decision("left", &["base"], "base + 1")
        + &decision("right", &["base"], "base + 2")
        + &decision("base", &[], "n");
    check(
        &model(&document(&xml)),
        "top",
        r#"{"n": 10}"#,
        "23",
        &[
            "base LITERAL_EXPRESSION 10",
            "left LITERAL_EXPRESSION 11",
            "right LITERAL_EXPRESSION 12",
            "top LITERAL_EXPRESSION 23",
        ],
    );
}

#[test]
fn a_chain_of_ten_thousand_decisions_is_no_recursion() {
    let mut xml = String::new();
    for position in 0..10_000 {
        let next = position + 1;
        xml += &format!(
            r##"<decision id="d{position}" name="d{position}"><informationRequirement>
            <requiredDecision href="#d{next}"/></informationRequirement>
            <literalExpression><text>d{next} + 1</text></literalExpression></decision>"##
        );
    }
    xml += r#"<decision id="d10000" name="d10000"><literalExpression><text>0</text>
        </literalExpression></decision>"#;
    let evaluation = evaluate(&model(&document(&xml)), "d0", "{}");
    assert_eq!(outcome(&evaluation), "10000");
    assert_eq!(evaluation.decisions.len(), 10_001);
}

#[test]
fn names_with_spaces_need_no_quotes() {
    let xml = document(
        r##"<decision id="strategy" name="Strategy">
        <informationRequirement><requiredDecision href="#risk"/></informationRequirement>
        <knowledgeRequirement><requiredKnowledge href="#rate"/></knowledgeRequirement>
        <literalExpression><text>if Pre-bureau risk = "LOW" then base rate(Loan Amount) else 0</text>
        </literalExpression></decision>
        <decision id="risk" name="Pre-bureau risk"><variable name="Pre-bureau risk"/>
        <literalExpression><text>if Loan Amount > 100 then "HIGH" else "LOW"</text></literalExpression>
        </decision>
        <inputData id="amount" name="Loan Amount"><variable name="Loan Amount"/></inputData>
        <businessKnowledgeModel id="rate" name="base rate"><encapsulatedLogic>
        <formalParameter name="the amount"/><literalExpression><text>the amount / 2</text>
        </literalExpression></encapsulatedLogic></businessKnowledgeModel>"##,
    );
    let evaluation = evaluate(&model(&xml), "strategy", r#"{"Loan Amount": 50}"#);
    assert_eq!(outcome(&evaluation), "25");
}

#[test]
fn invoked_knowledge_is_told_before_the_decision_that_invokes_it() {
    let xml = document(
        r##"<decision id="call" name="Call">
        <informationRequirement><requiredDecision href="#person"/></informationRequirement>
        <knowledgeRequirement><requiredKnowledge href="#greet"/></knowledgeRequirement>
        <invocation><literalExpression><text>greet</text></literalExpression>
        <binding><parameter name="who"/><literalExpression><text>person.name</text></literalExpression>
        </binding></invocation></decision>
        <decision id="person" name="Person"><variable name="person"/><context>
        <contextEntry><variable name="name"/><literalExpression><text>upper case(given)</text>
        </literalExpression></contextEntry></context></decision>
        <businessKnowledgeModel id="greet" name="greet"><encapsulatedLogic>
        <formalParameter name="who" typeRef="string"/><literalExpression>
        <text>"Hello " + who</text></literalExpression></encapsulatedLogic></businessKnowledgeModel>"##,
    );
    check(
        &model(&xml),
        "call",
        r#"{"given": "ada"}"#,
        r#""Hello ADA""#,
        &[
            r#"person CONTEXT {"name":"ADA"}"#,
            r#"greet LITERAL_EXPRESSION "Hello ADA""#,
            r#"call INVOCATION "Hello ADA""#,
        ],
    );
}

/// A model as mutation tests take it: of every kind of logic something.
pub(super) fn of_everything() -> String {
    let literal =
        |text: &str| format!("<literalExpression><text>{text}</text></literalExpression>");
    let boxes = format!(
        r##"<decision id="boxes" name="Boxes"><variable name="boxes" typeRef="Any"/>
        <informationRequirement><requiredDecision href="#dish"/></informationRequirement>
        <knowledgeRequirement><requiredKnowledge href="#f"/></knowledgeRequirement>
        <context><contextEntry><variable name="own list"/><list>{one}{dish}</list></contextEntry>
        <contextEntry><variable name="g"/><functionDefinition kind="FEEL"><formalParameter name="x"/>
        {doubled}</functionDefinition></contextEntry>
        <contextEntry><variable name="r"/><relation><column name="a"/><row>{one}</row></relation>
        </contextEntry><contextEntry><variable name="c"/><conditional><if>{yes}</if><then>{one}</then>
        <else>{dish}</else></conditional></contextEntry>
        <contextEntry><variable name="i"/><for iteratorVariable="x"><in>{list}</in><return>{doubled}
        </return></for></contextEntry><contextEntry><variable name="w"/><filter><in>{list}</in><match>
        {yes}</match></filter></contextEntry><contextEntry><invocation>{f}<binding><parameter name="n"/>
        {one}</binding></invocation></contextEntry></context></decision>
        <businessKnowledgeModel id="f" name="f"><encapsulatedLogic><formalParameter name="n"
        typeRef="number"/><decisionTable hitPolicy="COLLECT" aggregation="SUM"><input label="n">
        <inputExpression><text>n</text></inputExpression></input><output name="o"><outputValues>
        <text>1, 2, 3</text></outputValues><defaultOutputEntry><text>3</text></defaultOutputEntry>
        </output><rule id="r"><inputEntry><text>[1..5]</text></inputEntry><outputEntry><text>n * 2</text>
        </outputEntry></rule></decisionTable></encapsulatedLogic></businessKnowledgeModel></definitions>"##,
        one = literal("1"),
        dish = literal("dish"),
        doubled = literal("x * 2"),
        yes = literal("1 &lt; 2"),
        list = literal("[1, 2]"),
        f = literal("f"),
    );
    DISH.replace("</definitions>", &boxes)
}

#[test]
fn everything_at_once() {
    let evaluation = evaluate(&model(&of_everything()), "boxes", r#"{"temperature": 20}"#);
    assert_eq!(outcome(&evaluation), "2");
}
