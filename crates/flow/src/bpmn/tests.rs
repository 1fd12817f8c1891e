//! Tables: documents, and what they are compiled to or why they are refused.

use super::*;
use crate::graph::{FlowId, Node, NodeId};

/// A document with these elements beside its one process, which holds these.
fn document(roots: &str, process: &str) -> String {
    format!(
        r#"<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
 xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="D">{roots}
<bpmn:process id="P" name="a process" isExecutable="true">{}</bpmn:process></bpmn:definitions>"#,
        expand(process)
    )
}

/// Short forms, so that tables stay readable: `a -> b` at the beginning of a line is a sequence
/// flow, `task a` a service task.
fn expand(process: &str) -> String {
    let mut text = String::new();
    for line in process.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        let element = match words.as_slice() {
            [from, "->", to] => {
                format!(
                    r#"<bpmn:sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"/>"#
                )
            }
            [from, "->", to, "if", condition @ ..] => format!(
                r#"<bpmn:sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}">
<bpmn:conditionExpression>{}</bpmn:conditionExpression></bpmn:sequenceFlow>"#,
                condition.join(" ")
            ),
            ["service", id] => format!(
                r#"<bpmn:serviceTask id="{id}"><bpmn:extensionElements><zeebe:taskDefinition type="t"/>
</bpmn:extensionElements></bpmn:serviceTask>"#
            ),
            [tag, id] if !tag.starts_with('<') => format!(r#"<bpmn:{tag} id="{id}"/>"#),
            _ => line.to_owned(),
        };
        text.push_str(&element);
        text.push('\n');
    }
    text
}

fn graph(roots: &str, process: &str) -> Graph {
    let compiled = compile(document(roots, process).as_bytes());
    let mut processes = compiled.unwrap_or_else(|problems| panic!("{problems:#?}")).processes;
    processes.pop().expect("there is one process")
}

fn node<'g>(graph: &'g Graph, id: &str) -> &'g Node {
    graph.node(graph.find(id).expect(id))
}

#[test]
fn nodes_are_numbered_in_document_order() {
    let graph = graph(
        "",
        "endEvent e
         s -> sub
         <bpmn:subProcess id='sub'>
         startEvent s2
         service a
         s2 -> a
         </bpmn:subProcess>
         startEvent s
         sub -> e",
    );
    let ids: Vec<&str> = graph.nodes.iter().map(|node| &*node.id).collect();
    assert_eq!(ids, ["P", "e", "sub", "s2", "a", "s"]);
    let scopes: Vec<u32> = graph.nodes.iter().map(|node| node.scope.0).collect();
    assert_eq!(scopes, [0, 0, 0, 2, 2, 0]);
    let flows: Vec<&str> = graph.flows.iter().map(|flow| &*flow.id).collect();
    assert_eq!(flows, ["s-sub", "s2-a", "sub-e"]);
    assert_eq!(node(&graph, "sub").incoming, [FlowId(0)]);
    assert_eq!(node(&graph, "sub").outgoing, [FlowId(2)]);
    assert_eq!(node(&graph, "sub").start, Some(NodeId(3)));
    assert_eq!(node(&graph, "P").start, Some(NodeId(5)));
    assert_eq!((&*graph.id, &*graph.name), ("P", "a process"));
}
