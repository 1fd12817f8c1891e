//! What documents are compiled to.

use std::fmt::Debug;

use super::document;
use crate::bpmn::{compile, lint};
use crate::graph::*;

fn graph(roots: &str, process: &str) -> Graph {
    let document = document(roots, process);
    let compiled = compile(document.as_bytes());
    let mut processes = compiled.unwrap_or_else(|problems| panic!("{problems:#?}")).processes;
    processes.pop().expect("there is one process")
}

fn node<'g>(graph: &'g Graph, id: &str) -> &'g Node {
    graph.node(graph.find(id).expect(id))
}

/// As text, with every expression as `=`.
fn show(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once("Expression {") {
        shown.push_str(before);
        shown.push('=');
        let mut depth = 1;
        let end = behind.find(|character| {
            depth += i32::from(character == '{') - i32::from(character == '}');
            depth == 0
        });
        rest = &behind[end.expect("braces match") + 1..];
    }
    shown.push_str(rest);
    shown.replace("Static(", "(").replace("Feel(=)", "=")
}

#[test]
fn nodes_are_numbered_in_document_order() {
    let graph = graph(
        "",
        "endEvent e
         s -> sub
         <subProcess id='sub'>
         startEvent s2
         service a
         s2 -> a
         </subProcess>
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

/// The kind that the element `x` is compiled to, beside a start event.
fn check(roots: &str, element: &str, expected: &str) {
    let graph = graph(roots, &format!("startEvent s\n{element}"));
    assert_eq!(show(&node(&graph, "x").kind), expected, "{element}");
}

#[test]
fn tasks() {
    let task = |name: &str, extensions: &str| format!("<{name} id='x'>{{{extensions}}}</{name}>");
    let check = |name: &str, extensions: &str, expected: &str| {
        check("<message id='m' name='=n'/>", &task(name, extensions), expected);
    };
    let job = |retries: &str| {
        format!(
            r#"Job(JobSpec {{ job_type: ("t"), retries: ("{retries}"), priority: None, headers: "", computed_headers: [] }})"#
        )
    };
    let definition = "<zeebe:taskDefinition type='t'/>";
    for name in ["serviceTask", "scriptTask", "businessRuleTask", "sendTask"] {
        check(name, definition, &job("3"));
    }
    check("serviceTask", "<zeebe:taskDefinition type='t' retries='5'/>", &job("5"));
    check(
        "serviceTask",
        "<zeebe:taskDefinition type='=t' retries='=n'/><zeebe:jobPriorityDefinition priority='7'/>
         <zeebe:taskHeaders><zeebe:header key='a' value='1'/><zeebe:header key='b' value='&quot;'/>
         <zeebe:header key='a' value='2'/><zeebe:header key='' value='3'/><zeebe:header key='c'/>
         </zeebe:taskHeaders>",
        r#"Job(JobSpec { job_type: =, retries: =, priority: Some(("7")), headers: "{\"a\":\"2\",\"b\":\"\\\"\"}", computed_headers: [] })"#,
    );
    for name in ["task", "manualTask"] {
        check(name, "", "PassThrough");
    }
    check(
        "scriptTask",
        "<zeebe:script expression='=1 + 1' resultVariable='r'/>",
        r#"Script(Script { expression: =, result_variable: "r" })"#,
    );
    check(
        "businessRuleTask",
        "<zeebe:calledDecision decisionId='=d' resultVariable='r' bindingType='deployment'/>",
        r#"Decision(Decision { decision_id: =, binding: Deployment, result_variable: "r" })"#,
    );
    check(
        "callActivity",
        "<zeebe:calledElement processId='p'/>",
        r#"Call(Call { process_id: ("p"), binding: Latest, child_variables: true, parent_variables: true })"#,
    );
    check(
        "callActivity",
        "<zeebe:calledElement processId='p' propagateAllChildVariables='false'
         propagateAllParentVariables='false' bindingType='versionTag' versionTag='v1'/>",
        r#"Call(Call { process_id: ("p"), binding: VersionTag("v1"), child_variables: false, parent_variables: false })"#,
    );
}

#[test]
fn user_tasks() {
    let extensions =
        "<zeebe:assignmentDefinition assignee='=a' candidateGroups='b, c' candidateUsers='=d'/>
         <zeebe:taskSchedule dueDate='2026-01-31T12:00:00Z' followUpDate='=f'/>
         <zeebe:priorityDefinition priority='80'/>
         <zeebe:taskHeaders><zeebe:header key='h' value='v'/></zeebe:taskHeaders>";
    let task = format!(
        "<userTask id='x'>{{<zeebe:userTask/>{extensions}
         <zeebe:formDefinition formId='form' bindingType='deployment'/>}}</userTask>"
    );
    check(
        "",
        &task,
        r#"UserTask(UserTask { assignee: Some(=), candidate_groups: Some(("b, c")), candidate_users: Some(=), due_date: Some(("2026-01-31T12:00:00Z")), follow_up_date: Some(=), priority: Some(("80")), form_id: Some(("form")), form_binding: Deployment, form_key: None, headers: "{\"h\":\"v\"}", listeners: [] })"#,
    );
    let task = "<userTask id='x'>{<zeebe:userTask/><zeebe:taskListeners>
         <zeebe:taskListener eventType='completing' type='a' retries='1'/>
         <zeebe:taskListener eventType='creating' type='=b'><zeebe:taskHeaders>
         <zeebe:header key='h' value='v'/></zeebe:taskHeaders></zeebe:taskListener>
         </zeebe:taskListeners>}</userTask>";
    check(
        "",
        task,
        r#"UserTask(UserTask { assignee: None, candidate_groups: None, candidate_users: None, due_date: None, follow_up_date: None, priority: None, form_id: None, form_binding: Latest, form_key: None, headers: "", listeners: [TaskListener { event: Completing, job: JobSpec { job_type: ("a"), retries: ("1"), priority: None, headers: "", computed_headers: [] } }, TaskListener { event: Creating, job: JobSpec { job_type: =, retries: ("3"), priority: None, headers: "{\"h\":\"v\"}", computed_headers: [] } }] })"#,
    );
    let task =
        format!("<userTask id='x'>{{{extensions}<zeebe:formDefinition formKey='k'/>}}</userTask>");
    check(
        "",
        &task,
        r#"Job(JobSpec { job_type: ("io.camunda.zeebe:userTask"), retries: ("1"), priority: None, headers: "{\"h\":\"v\",\"io.camunda.zeebe:candidateGroups\":\"[\\\"b\\\",\\\"c\\\"]\",\"io.camunda.zeebe:dueDate\":\"2026-01-31T12:00:00Z\",\"io.camunda.zeebe:formKey\":\"k\"}", computed_headers: [("io.camunda.zeebe:assignee", =), ("io.camunda.zeebe:candidateUsers", =), ("io.camunda.zeebe:followUpDate", =)] })"#,
    );
}

#[test]
fn messages() {
    let roots = "<message id='m' name='n'>{<zeebe:subscription correlationKey='=k'/>}</message>";
    let event = |name: &str, rest: &str| {
        format!("<{name} id='x'><messageEventDefinition messageRef='m'/>{rest}</{name}>")
    };
    let wait = r#"MessageCatch { name: ("n"), correlation_key: Some(=) }"#;
    check(roots, "<receiveTask id='x' messageRef='m'/>", &format!("Receive({wait})"));
    check(roots, &event("intermediateCatchEvent", ""), &format!("Catch(Message({wait}))"));
    check(
        roots,
        &event("startEvent", ""),
        r#"Start(Start { trigger: Some(Message(MessageCatch { name: ("n"), correlation_key: None })), interrupting: true, form_id: "" })"#,
    );
    check(
        "<message id='m' name='=&quot;a&quot; + &quot;b&quot;'/>",
        &event("startEvent", ""),
        r#"Start(Start { trigger: Some(Message(MessageCatch { name: ("ab"), correlation_key: None })), interrupting: true, form_id: "" })"#,
    );
    let publish = "<zeebe:publishMessage correlationKey='=k' messageId='i' timeToLive='PT1H'/>";
    let throw = r#"MessageThrow { name: ("n"), correlation_key: =, message_id: Some(("i")), time_to_live: Some(("PT1H")) }"#;
    check(
        roots,
        &format!("<sendTask id='x' messageRef='m'>{{{publish}}}</sendTask>"),
        &format!("Throw(Message({throw}))"),
    );
    check(
        roots,
        &event("intermediateThrowEvent", &format!("{{{publish}}}")),
        &format!("Throw(Message({throw}))"),
    );
    let inside = format!(
        "<endEvent id='x'><messageEventDefinition messageRef='m'>{{{publish}}}
         </messageEventDefinition></endEvent>"
    );
    check(roots, &inside, &format!("End(Message({throw}))"));
    check(
        roots,
        "<endEvent id='x'><messageEventDefinition/>{<zeebe:taskDefinition type='t'/>}</endEvent>",
        r#"End(Job(JobSpec { job_type: ("t"), retries: ("3"), priority: None, headers: "", computed_headers: [] }))"#,
    );
}

#[test]
fn events() {
    let roots =
        "<signal id='i' name='=n'/><error id='r' errorCode='R'/><error id='q' errorCode='=c'/>
        <error id='all'/><escalation id='l' escalationCode='L'/>";
    let check = |event: &str, definition: &str, expected: &str| {
        let element = format!("<{event} id='x'>{definition}</{event}>");
        check(roots, &element, expected);
    };
    let (catch, throw, end) = ("intermediateCatchEvent", "intermediateThrowEvent", "endEvent");
    check(throw, "", "Throw(None)");
    check(end, "", "End(None)");
    check(end, "<terminateEventDefinition/>", "End(Terminate)");
    let signal = "<signalEventDefinition signalRef='i'/>";
    check(catch, signal, "Catch(Signal(=))");
    check(throw, signal, "Throw(Signal(=))");
    check(end, signal, "End(Signal(=))");
    check(end, "<errorEventDefinition errorRef='r'/>", r#"End(Error(("R")))"#);
    check(end, "<errorEventDefinition errorRef='q'/>", "End(Error(=))");
    let escalation = "<escalationEventDefinition escalationRef='l'/>";
    check(throw, escalation, r#"Throw(Escalation(("L")))"#);
    check(end, "<compensateEventDefinition/>", "End(Compensate(None))");
    check(
        catch,
        "<timerEventDefinition><timeDuration> PT1S <!-- a second --></timeDuration></timerEventDefinition>",
        r#"Catch(Timer(Timer { kind: Duration, value: ("PT1S") }))"#,
    );
    check(
        catch,
        "<timerEventDefinition><timeDate><![CDATA[=a > b]]></timeDate></timerEventDefinition>",
        "Catch(Timer(Timer { kind: Date, value: = }))",
    );
    check(
        "startEvent",
        "<timerEventDefinition><timeCycle>0 0 9-17 * * MON-FRI</timeCycle></timerEventDefinition>",
        r#"Start(Start { trigger: Some(Timer(Timer { kind: Cycle, value: ("0 0 9-17 * * MON-FRI") })), interrupting: true, form_id: "" })"#,
    );
}

#[test]
fn boundary_events_and_event_sub_processes() {
    let roots = "<error id='r' errorCode='R'/><error id='all'/><signal id='i' name='n'/>
        <escalation id='l' escalationCode='L'/>";
    let graph = graph(
        roots,
        "startEvent s
         service a
         <boundaryEvent id='b' attachedToRef='a'><errorEventDefinition errorRef='r'/></boundaryEvent>
         b -> z
         <boundaryEvent id='c' attachedToRef='a'><errorEventDefinition errorRef='all'/></boundaryEvent>
         c -> z
         <boundaryEvent id='d' attachedToRef='a' cancelActivity='false'>
         <escalationEventDefinition escalationRef='l'/></boundaryEvent>
         d -> z
         endEvent z
         <subProcess id='e' triggeredByEvent='true'>
         <startEvent id='f' isInterrupting='false'><signalEventDefinition signalRef='i'/></startEvent>
         </subProcess>
         <startEvent id='t'><signalEventDefinition signalRef='i'/></startEvent>",
    );
    let id = |id: &str| graph.find(id).expect(id);
    let kind = |id: &str| show(&node(&graph, id).kind);
    assert_eq!(node(&graph, "a").boundaries, [id("b"), id("c"), id("d")]);
    assert_eq!(
        kind("b"),
        r#"Boundary(Boundary { host: NodeId(2), trigger: Error(Some("R")), interrupting: true })"#
    );
    assert_eq!(
        kind("c"),
        "Boundary(Boundary { host: NodeId(2), trigger: Error(None), interrupting: true })"
    );
    assert_eq!(
        kind("d"),
        r#"Boundary(Boundary { host: NodeId(2), trigger: Escalation(Some("L")), interrupting: false })"#
    );
    assert_eq!(
        kind("f"),
        r#"Start(Start { trigger: Some(Signal(("n"))), interrupting: false, form_id: "" })"#
    );
    let process = node(&graph, "P");
    assert_eq!(process.event_scopes, [id("e")]);
    assert_eq!(process.event_starts, [id("t")]);
    assert_eq!(process.start, Some(id("s")));
    assert_eq!(node(&graph, "e").start, Some(id("f")));
    assert_eq!(node(&graph, "e").element_type, "EVENT_SUB_PROCESS");
}

#[test]
fn links_and_compensation() {
    let graph = graph(
        "",
        "startEvent s
         <intermediateThrowEvent id='a'><linkEventDefinition name='l'/></intermediateThrowEvent>
         <intermediateCatchEvent id='b'><linkEventDefinition name='l'/></intermediateCatchEvent>
         service c
         <boundaryEvent id='d' attachedToRef='c'><compensateEventDefinition/></boundaryEvent>
         <association id='d-e' sourceRef='d' targetRef='e'/>
         <manualTask id='e' isForCompensation='true'/>
         <intermediateThrowEvent id='f'><compensateEventDefinition activityRef='c'/></intermediateThrowEvent>",
    );
    let id = |id: &str| graph.find(id).expect(id);
    assert_eq!(show(&node(&graph, "a").kind), "Throw(Link(NodeId(3)))");
    assert_eq!(show(&node(&graph, "b").kind), r#"Catch(Link("l"))"#);
    assert_eq!(node(&graph, "c").compensation, Some(id("e")));
    assert!(node(&graph, "e").is_compensation);
    assert_eq!(show(&node(&graph, "f").kind), "Throw(Compensate(Some(NodeId(4))))");
}

#[test]
fn gateways_and_conditions() {
    let graph = graph(
        "<signal id='i' name='n'/><signal id='j' name='o'/>",
        "startEvent s
         <exclusiveGateway id='g' default='g-b'/>
         g -> a if =x &lt; 1
         g -> b
         inclusiveGateway h
         parallelGateway i2
         eventBasedGateway k
         k -> c
         k -> d
         <intermediateCatchEvent id='c'><signalEventDefinition signalRef='i'/></intermediateCatchEvent>
         <intermediateCatchEvent id='d'><signalEventDefinition signalRef='j'/></intermediateCatchEvent>
         endEvent a
         endEvent b",
    );
    let gateway = node(&graph, "g");
    assert_eq!(gateway.outgoing, [FlowId(0), FlowId(1)]);
    assert_eq!(gateway.default_flow, Some(FlowId(1)));
    assert!(graph.flow(FlowId(0)).condition.is_some());
    assert!(graph.flow(FlowId(1)).condition.is_none());
    let kinds = ["g", "h", "i2", "k"].map(|id| show(&node(&graph, id).kind));
    assert_eq!(kinds, ["Exclusive", "Inclusive", "Parallel", "EventBased"]);
}

#[test]
fn what_every_element_can_have() {
    let graph = graph(
        "",
        "{<zeebe:versionTag value='v1'/><zeebe:jobPriorityDefinition priority='5'/>}
         startEvent s
         <manualTask id='x'>{<zeebe:ioMapping><zeebe:input source='=a' target='b'/>
         <zeebe:input source='text' target='c.d'/><zeebe:output source='=b' target='e'/></zeebe:ioMapping>
         <zeebe:taskHeaders><zeebe:header key='h' value='v'/></zeebe:taskHeaders>
         <zeebe:executionListeners><zeebe:executionListener eventType='start' type='t'/>
         <zeebe:executionListener eventType='end' type='=u' retries='9'>
         <zeebe:taskHeaders><zeebe:header key='i' value='w'/></zeebe:taskHeaders></zeebe:executionListener>
         </zeebe:executionListeners>}
         <multiInstanceLoopCharacteristics isSequential='true'>{<zeebe:loopCharacteristics inputCollection='=l'
         inputElement='i' outputCollection='o' outputElement='=p'/>}
         <completionCondition>=q</completionCondition></multiInstanceLoopCharacteristics></manualTask>",
    );
    assert_eq!(&*graph.version_tag, "v1");
    assert_eq!(show(&node(&graph, "P").job_priority), r#"Some(("5"))"#);
    let x = node(&graph, "x");
    assert_eq!(
        show(&x.inputs),
        r#"[Mapping { source: =, target: ["b"] }, Mapping { source: ("text"), target: ["c", "d"] }]"#
    );
    assert_eq!(show(&x.outputs), r#"[Mapping { source: =, target: ["e"] }]"#);
    assert_eq!(
        show(&x.on_start),
        r#"[Listener { job: JobSpec { job_type: ("t"), retries: ("3"), priority: None, headers: "", computed_headers: [] } }]"#
    );
    assert_eq!(
        show(&x.on_end),
        r#"[Listener { job: JobSpec { job_type: =, retries: ("9"), priority: None, headers: "{\"i\":\"w\"}", computed_headers: [] } }]"#
    );
    assert_eq!(
        show(&x.repeat),
        r#"Some(Repeat { sequential: true, input_collection: =, input_element: "i", output_collection: "o", output_element: Some(=), completion_condition: Some(=) })"#
    );
}

/// Pools, lanes, data, annotations and diagrams do not run; other processes may not be executable.
#[test]
fn what_does_not_run_is_ignored() {
    let text = "<?xml version='1.0' encoding='UTF-8'?>
<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' xmlns:di='http://www.omg.org/spec/DD/20100524/DI'>
<collaboration id='C'><participant id='p1' processRef='P'/><participant id='p2' processRef='Q'/>
<messageFlow id='m' sourceRef='p1' targetRef='p2'/><textAnnotation id='t'/></collaboration>
<process id='Q'><transaction id='x'/><startEvent/></process>
<process id='P' isExecutable='true'><documentation>text</documentation>
<laneSet id='l'><lane id='l1'><flowNodeRef>s</flowNodeRef></lane></laneSet>
<startEvent id='s'/><dataObject id='d'/><dataObjectReference id='r' dataObjectRef='d'/>
<dataStoreReference id='e'/><textAnnotation id='a'><text>...</text></textAnnotation>
<association id='b' sourceRef='s' targetRef='a'/><group id='g'/>
<manualTask id='k'><incoming>f</incoming><ioSpecification><inputSet/></ioSpecification>
<dataInputAssociation id='i'/></manualTask><sequenceFlow id='f' sourceRef='s' targetRef='k'/></process>
<process id='R' isExecutable='true'><startEvent id='s2'/></process>
<di:diagram><di:shape id='s'/></di:diagram></definitions>";
    assert_eq!(lint(text.as_bytes()), []);
    let compiled = compile(text.as_bytes()).expect("nothing is wrong with it");
    let ids: Vec<Vec<&str>> = compiled
        .processes
        .iter()
        .map(|graph| graph.nodes.iter().map(|node| &*node.id).collect())
        .collect();
    assert_eq!(ids, [vec!["P", "s", "k"], vec!["R", "s2"]]);
}
