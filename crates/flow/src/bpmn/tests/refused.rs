//! Why documents are refused: each message once.

use super::document;
use crate::bpmn::{Problem, Severity, compile, lint};

fn lines(problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| without_feel(&format!("{}: {}", problem.element, problem.message)))
        .collect()
}

/// Without what the parser of FEEL says: its words are its own.
fn without_feel(line: &str) -> String {
    let (before, _) = line.split_once(" is not FEEL: ").unwrap_or((line, ""));
    let feel = if before.len() < line.len() { " is not FEEL" } else { "" };
    format!("{before}{feel}")
}

/// What a document is refused for.
fn check(roots: &str, process: &str, expected: &[&str]) {
    let document = document(roots, process);
    let problems = compile(document.as_bytes()).expect_err(process);
    assert_eq!(lines(&problems), expected, "{document}");
}

/// What a document runs with all the same.
fn check_warnings(roots: &str, process: &str, expected: &[&str]) {
    let document = document(roots, process);
    compile(document.as_bytes()).expect(process);
    let problems = lint(document.as_bytes());
    assert!(problems.iter().all(|problem| problem.severity == Severity::Warning));
    assert_eq!(lines(&problems), expected, "{document}");
}

#[test]
fn what_is_no_bpmn() {
    let check = |text: &[u8], expected: &str| {
        let problems = compile(text).expect_err(expected);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(lines, [expected]);
    };
    check(b"", "line 1, column 1: the XML is broken: the document does not have a root node");
    check(
        b"<a>\n <b></c></a>",
        "line 2, column 5: the XML is broken: expected 'b' tag, not 'c' at 2:5",
    );
    check(b"<a>\xff</a>", "the document is not UTF-8");
    check(b"<a/>", "this is not BPMN 2.0: it must begin with its 'definitions' element");
    check(b"<definitions/>", "this is not BPMN 2.0: it must begin with its 'definitions' element");
    check(
        b"<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL'><process id='P'/></definitions>",
        "there is no executable process: set isExecutable=\"true\"",
    );
    check(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "a document type definition is not allowed");
}

#[test]
fn all_problems_are_told_at_once_where_they_are() {
    let process = "startEvent s
        s -> a
        <serviceTask id='a'>
          {<zeebe:taskDefinition retries='many'/>}
        </serviceTask>
        a -> g
        exclusiveGateway g
        g -> a if =1 +
        g -> nowhere if =x";
    let document = document("", process);
    let problems = compile(document.as_bytes()).expect_err("it is full of errors");
    let lines: Vec<String> =
        problems.iter().map(|problem| without_feel(&problem.to_string())).collect();
    assert_eq!(
        lines,
        [
            "line 6, column 25: a: taskDefinition needs the attribute type",
            "line 6, column 25: a: retries 'many' is not a number",
            "line 10, column 57: g-a: conditionExpression '=1 +' is not FEEL",
            "line 11, column 1: g-nowhere: targetRef 'nowhere' is no flow node of this process",
        ]
    );
}

#[test]
fn a_problem_is_one_line() {
    let process = "startEvent s
        <serviceTask id='a&#10;b'>{<zeebe:taskDefinition type='t' retries='&#10;&#13;'/>}</serviceTask>
        <serviceTask id='c'>{<zeebe:taskDefinition type='t' retries='1&#10;2'/>}</serviceTask>";
    let document = document("", process);
    let problems = compile(document.as_bytes()).expect_err("retries are wrong");
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    assert_eq!(lines, ["line 5, column 50: c: retries '1 2' is not a number"]);
}

#[test]
fn ids() {
    check(
        "",
        "startEvent s
         service s
         <manualTask/>",
        &["s: the id 's' is used twice", "P: this manualTask has no id"],
    );
    check(
        "<process isExecutable='true' id=' '>
         startEvent s
         </process>",
        "startEvent t",
        &["D: this process has no id"],
    );
}

#[test]
fn elements_that_are_not_supported() {
    let start = |rest: &str| format!("startEvent s\n{rest}");
    for name in ["transaction", "adHocSubProcess", "complexGateway", "callChoreography"] {
        check(
            "",
            &start(&format!("s -> x\n<{name} id='x'><startEvent id='t'/></{name}>")),
            &[&format!("x: the element '{name}' is not supported")],
        );
    }
    check(
        "",
        &start("<manualTask id='a'><standardLoopCharacteristics/></manualTask>"),
        &["a: a standard loop is not supported: use multi-instance"],
    );
    check(
        "",
        &start(
            "<intermediateCatchEvent id='c'><timerEventDefinition/><signalEventDefinition/>\
             </intermediateCatchEvent>",
        ),
        &["c: an event with several definitions is not supported"],
    );
    for (event, definition, place) in [
        ("intermediateCatchEvent", "conditional", "an intermediate catch event"),
        ("intermediateCatchEvent", "error", "an intermediate catch event"),
        ("intermediateThrowEvent", "terminate", "an intermediate throw event"),
        ("intermediateThrowEvent", "error", "an intermediate throw event"),
        ("intermediateThrowEvent", "timer", "an intermediate throw event"),
        ("endEvent", "cancel", "an end event"),
        ("endEvent", "link", "an end event"),
        ("startEvent", "error", "the start event of a process"),
        ("startEvent", "conditional", "the start event of a process"),
    ] {
        let text = format!("<{event} id='e'><{definition}EventDefinition/></{event}>");
        let expected = format!("e: the event '{definition}' is not supported in {place}");
        check("", &start(&text), &[&expected]);
    }
    check(
        "",
        &start(
            "<userTask id='u'>{<zeebe:taskListeners><zeebe:taskListener/></zeebe:taskListeners>}</userTask>",
        ),
        &["u: task listeners are for user tasks that have a zeebe:userTask"],
    );
}

#[test]
fn task_listeners() {
    for (attributes, expected) in [
        ("type='t'", "u: taskListener needs the attribute eventType"),
        ("eventType='updating'", "u: taskListener needs the attribute type"),
        (
            "eventType='start' type='t'",
            "u: the listener's eventType 'start' is none of creating, assigning, updating, \
             completing and canceling",
        ),
        ("eventType='creating' type='t' retries='x'", "u: retries 'x' is not a number"),
        ("eventType='creating' type='=('", "u: type '=(' is not FEEL"),
    ] {
        let task = format!(
            "<userTask id='u'>{{<zeebe:userTask/><zeebe:taskListeners>\
             <zeebe:taskListener {attributes}/></zeebe:taskListeners>}}</userTask>"
        );
        let process = format!("startEvent s\ns -> u\n{task}\nu -> e\nendEvent e");
        check("", &process, &[expected]);
    }
}

#[test]
fn starts() {
    check("", "endEvent e", &["P: a process needs a start event"]);
    check(
        "",
        "startEvent s
         startEvent t",
        &["P: a process has at most one none start event"],
    );
    check(
        "",
        "startEvent s
         <subProcess id='u'>
         </subProcess>
         <subProcess id='v'>
         startEvent a
         startEvent b
         </subProcess>
         <subProcess id='w' triggeredByEvent='true'>
         </subProcess>",
        &[
            "u: a sub-process needs exactly one start event",
            "v: a sub-process needs exactly one start event",
            "w: an event sub-process needs exactly one start event",
        ],
    );
    check(
        "",
        "startEvent s
         s -> e
         <subProcess id='e' triggeredByEvent='true'>
         startEvent a
         </subProcess>
         <subProcess id='f' triggeredByEvent='true'>
         <startEvent id='b' isInterrupting='false'><errorEventDefinition/></startEvent>
         </subProcess>
         <subProcess id='u'>
         <startEvent id='c'><errorEventDefinition/></startEvent>
         </subProcess>",
        &[
            "e: an event sub-process must not have incoming or outgoing flows",
            "a: an event sub-process must start with one of message, timer, signal, error and \
             escalation",
            "b: an error event must be interrupting",
            "c: a sub-process must start with a none start event",
        ],
    );
    check(
        "<message id='m' name='m'/>
         <message id='n' name='=&quot;m&quot;'/>
         <message id='o' name='=o'/>",
        "<startEvent id='a'><messageEventDefinition messageRef='m'/></startEvent>
         <startEvent id='b'><messageEventDefinition messageRef='n'/></startEvent>
         <startEvent id='c'><messageEventDefinition messageRef='o'/></startEvent>",
        &[
            "b: another event here waits for the message 'm'",
            "c: the name that a process is started by must be text, and cannot depend on variables",
        ],
    );
}

#[test]
fn flows() {
    check(
        "",
        "startEvent s
         s -> x
         s -> a
         a -> s
         endEvent e
         e -> a
         <subProcess id='x'>
         startEvent s2
         manualTask a
         s2 -> a
         </subProcess>",
        &[
            "s: a start event must not have incoming flows",
            "s: this cycle has no wait state: 's' > 'a' > 's'",
            "s-a: a sequence flow must not leave or enter a sub-process",
            "a-s: a sequence flow must not leave or enter a sub-process",
            "e: an end event must not have outgoing flows",
            "e-a: a sequence flow must not leave or enter a sub-process",
        ],
    );
    check(
        "",
        "startEvent s
         s -> P
         s -> e if =true
         endEvent e
         <sequenceFlow id='f' sourceRef='s'/>",
        &[
            "s-P: targetRef 'P' is no flow node of this process",
            "s-e: a condition is supported behind exclusive and inclusive gateways only",
            "f: targetRef '' is no flow node of this process",
        ],
    );
}

#[test]
fn gateways() {
    check(
        "",
        "startEvent s
         s -> g
         <exclusiveGateway id='g' default='g-a'/>
         g -> a if =true
         g -> b
         g -> c if static
         g -> d if =
         <inclusiveGateway id='h' default='nothing'/>
         h -> a
         manualTask a
         manualTask b
         manualTask c
         manualTask d",
        &[
            "g-a: the default flow must not have a condition",
            "g-b: must have a condition or be the default flow of its gateway",
            "g-c: conditionExpression 'static' must be an expression: begin it with =",
            "g-d: conditionExpression '=' is not FEEL",
            "h: the default flow 'nothing' does not leave this element",
        ],
    );
    check(
        "<signal id='m' name='m'/>",
        "startEvent s
         s -> g
         s -> a
         eventBasedGateway g
         g -> a
         eventBasedGateway h
         h -> u
         h -> l
         manualTask u
         <intermediateCatchEvent id='a'><signalEventDefinition signalRef='m'/></intermediateCatchEvent>
         <intermediateCatchEvent id='l'><linkEventDefinition name='l'/></intermediateCatchEvent>
         eventBasedGateway i
         i -> b
         i -> c
         <intermediateCatchEvent id='b'><signalEventDefinition signalRef='m'/></intermediateCatchEvent>
         <intermediateCatchEvent id='c'><signalEventDefinition signalRef='m'/></intermediateCatchEvent>",
        &[
            "g: an event-based gateway needs at least two outgoing flows",
            "g: 'a', behind an event-based gateway, must have no other incoming flow",
            "h: behind an event-based gateway there are only receive tasks and catch events of \
             messages, timers and signals, not 'u'",
            "h: behind an event-based gateway there are only receive tasks and catch events of \
             messages, timers and signals, not 'l'",
            "c: another event here waits for the signal 'm'",
        ],
    );
}

#[test]
fn boundary_events() {
    check(
        "<error id='e' errorCode='E'/><escalation id='f' escalationCode='=E'/>",
        "startEvent s
         s -> a
         service a
         <boundaryEvent id='b' attachedToRef='a'><errorEventDefinition errorRef='e'/></boundaryEvent>
         a -> b
         <boundaryEvent id='c' attachedToRef='a'><errorEventDefinition errorRef='e'/></boundaryEvent>
         c -> z
         <boundaryEvent id='d' attachedToRef='s'><errorEventDefinition/></boundaryEvent>
         d -> z
         <boundaryEvent id='e' attachedToRef='x'><errorEventDefinition/></boundaryEvent>
         <boundaryEvent id='g' attachedToRef='a' cancelActivity='false'><errorEventDefinition/></boundaryEvent>
         g -> z
         <boundaryEvent id='h' attachedToRef='a'><escalationEventDefinition escalationRef='f'/></boundaryEvent>
         h -> z
         <boundaryEvent id='i' attachedToRef='a'/>
         i -> z
         endEvent z",
        &[
            "b: a boundary event must not have incoming flows",
            "b: a boundary event needs an outgoing flow",
            "c: another event here waits for the error 'E'",
            "d: a boundary event must be attached to an activity of its scope",
            "e: the id 'e' is used twice",
            "e: a boundary event must be attached to an activity",
            "e: a boundary event needs an outgoing flow",
            "g: an error event must be interrupting",
            "h: the code of an escalation that is caught must not be an expression",
            "i: a boundary event needs an event definition",
        ],
    );
}

#[test]
fn references() {
    check(
        "<message id='m'/><signal id='i'/><error id='r'/><escalation id='q'/><message id='n' name='n'/>
         <message id='k' name='k'>{<zeebe:subscription correlationKey='static'/>}</message>",
        "startEvent s
         receiveTask a
         <receiveTask id='b' messageRef='nothing'/>
         <receiveTask id='c' messageRef='i'/>
         <receiveTask id='d' messageRef='n'/>
         <receiveTask id='e' messageRef='k'/>
         <endEvent id='f'><errorEventDefinition/></endEvent>
         <endEvent id='g'><errorEventDefinition errorRef='r'/></endEvent>
         <endEvent id='h'><escalationEventDefinition escalationRef='q'/></endEvent>
         <endEvent id='j'><signalEventDefinition signalRef='i'/></endEvent>
         <endEvent id='l'><signalEventDefinition/></endEvent>",
        &[
            "i: signal needs the attribute name",
            "r: error needs the attribute errorCode",
            "q: escalation needs the attribute escalationCode",
            "n: a message that is waited for needs a zeebe:subscription",
            "k: correlationKey 'static' must be an expression: begin it with =",
            "a: must refer to a message",
            "b: refers to the message 'nothing', which is not there",
            "c: refers to the message 'i', which is not there",
            "f: must refer to an error",
            "l: must refer to a signal",
        ],
    );
}

#[test]
fn tasks() {
    check(
        "",
        "startEvent s
         serviceTask a
         <serviceTask id='b'>{<zeebe:taskDefinition type=' '/>}</serviceTask>
         <serviceTask id='c'>{<zeebe:taskDefinition type='=1 +' retries='=)'/>}</serviceTask>
         <serviceTask id='d'>{<zeebe:taskDefinition type='t'/><zeebe:jobPriorityDefinition priority='high'/>}</serviceTask>
         scriptTask e
         <scriptTask id='f'>{<zeebe:script/><zeebe:taskDefinition type='t'/>}</scriptTask>
         <scriptTask id='g'>{<zeebe:script expression='1'/>}</scriptTask>
         <businessRuleTask id='h'>{<zeebe:calledDecision/>}</businessRuleTask>
         <businessRuleTask id='i'>{<zeebe:calledDecision decisionId='d' resultVariable='r' bindingType='newest'/>}</businessRuleTask>
         callActivity j
         <callActivity id='k'>{<zeebe:calledElement bindingType='versionTag'/>}</callActivity>
         sendTask l
         <sendTask id='m'>{<zeebe:publishMessage timeToLive='1h'/>}</sendTask>",
        &[
            "a: a service task needs a zeebe:taskDefinition",
            "b: taskDefinition needs the attribute type",
            "c: type '=1 +' is not FEEL",
            "c: retries '=)' is not FEEL",
            "d: priority 'high' is not a number",
            "e: scriptTask needs either a zeebe:script or a zeebe:taskDefinition",
            "f: scriptTask needs either a zeebe:script or a zeebe:taskDefinition",
            "g: expression '1' must be an expression: begin it with =",
            "g: script needs the attribute resultVariable",
            "h: calledDecision needs the attribute decisionId",
            "h: calledDecision needs the attribute resultVariable",
            "i: bindingType 'newest' is none of latest, deployment and versionTag",
            "j: a call activity needs a zeebe:calledElement",
            "k: calledElement needs the attribute processId",
            "k: calledElement needs the attribute versionTag",
            "l: sendTask needs either a zeebe:publishMessage or a zeebe:taskDefinition",
            "m: must refer to a message",
            "m: publishMessage needs the attribute correlationKey",
            "m: timeToLive '1h' is not a duration like PT30S or P1DT12H",
        ],
    );
}

#[test]
fn user_tasks_and_extensions() {
    check(
        "",
        "startEvent s
         <userTask id='a'>{<zeebe:userTask/><zeebe:formDefinition formId='f' externalReference='g'/>}</userTask>
         <userTask id='b'>{<zeebe:formDefinition/>}</userTask>
         <userTask id='c'>{<zeebe:taskSchedule dueDate='tomorrow'/><zeebe:priorityDefinition priority='101'/>}</userTask>
         <manualTask id='d'>{<zeebe:ioMapping><zeebe:input source='=)' target='a'/>
         <zeebe:input target='b'/><zeebe:input source='=1' target='1x'/><zeebe:output source='=1' target='a..b'/>
         <zeebe:output source='abc' target='b'/></zeebe:ioMapping>}</manualTask>
         <manualTask id='e'>{<zeebe:executionListeners><zeebe:executionListener eventType='cancel' type='t'/>
         <zeebe:executionListener eventType='start'/></zeebe:executionListeners>}</manualTask>
         <manualTask id='f'><multiInstanceLoopCharacteristics/></manualTask>
         <manualTask id='g'><multiInstanceLoopCharacteristics>{<zeebe:loopCharacteristics inputCollection='a' outputElement='=b'/>}
         <completionCondition>c</completionCondition></multiInstanceLoopCharacteristics></manualTask>
         <parallelGateway id='i'><multiInstanceLoopCharacteristics/></parallelGateway>
         <manualTask id='h'><multiInstanceLoopCharacteristics>{<zeebe:loopCharacteristics/>}</multiInstanceLoopCharacteristics></manualTask>",
        &[
            "a: formDefinition names two forms: formId and another",
            "b: formDefinition needs one of formId, formKey and externalReference",
            "c: dueDate 'tomorrow' is not a date like 2026-01-31T12:00:00Z",
            "c: priority '101' is not a number between 0 and 100",
            "d: source '=)' is not FEEL",
            "d: input needs the attribute source",
            "d: target '1x' must be a name or a path like a.b",
            "d: target 'a..b' must be a name or a path like a.b",
            "d: source 'abc' must be an expression: begin it with =",
            "e: the listener's eventType 'cancel' is not supported",
            "e: executionListener needs the attribute type",
            "f: a multi-instance needs zeebe:loopCharacteristics",
            "g: inputCollection 'a' must be an expression: begin it with =",
            "g: outputCollection and outputElement must both be given, or neither",
            "g: completionCondition 'c' must be an expression: begin it with =",
            "i: only an activity can be multi-instance",
            "h: loopCharacteristics needs the attribute inputCollection",
        ],
    );
}

#[test]
fn timers() {
    let check = |event: &str, timer: &str, expected: &str| {
        let (name, _) = event.split_once(' ').expect("it has an id");
        let process = format!(
            "startEvent s
             s -> a
             service a
             <{event}><timerEventDefinition>{timer}</timerEventDefinition></{name}>"
        );
        check("", &process, &[expected]);
    };
    let catch = "intermediateCatchEvent id='t'";
    let one = "t: a timer needs one of timeDuration, timeDate and timeCycle";
    check(catch, "", one);
    check(catch, "<timeDuration>PT1S</timeDuration><timeDate>x</timeDate>", one);
    check(
        catch,
        "<timeDuration>1s</timeDuration>",
        "t: timeDuration: '1s' is not a duration like PT30S or P1DT12H",
    );
    check(
        catch,
        "<timeDate>soon</timeDate>",
        "t: timeDate: 'soon' is not a date like 2026-01-31T12:00:00Z",
    );
    check(
        catch,
        "<timeCycle>R/PT1S</timeCycle>",
        "t: an intermediate catch event cannot wait for a timeCycle",
    );
    check(catch, "<timeDuration>=PT1S(</timeDuration>", "t: timeDuration '=PT1S(' is not FEEL");
    check(
        "startEvent id='t'",
        "<timeCycle>R/1s</timeCycle>",
        "t: timeCycle: '1s' is not a duration like PT30S or P1DT12H",
    );
    check(
        "startEvent id='t'",
        "<timeCycle>* * * *</timeCycle>",
        "t: timeCycle: '* * * *' is not a schedule: cron has six fields, the first is the second; a \
         cycle begins with R",
    );
}

#[test]
fn a_cycle_does_not_fit_an_interrupting_timer() {
    let timer = "<timerEventDefinition><timeCycle>R/PT1S</timeCycle></timerEventDefinition>";
    let process = format!(
        "startEvent s
         service a
         <boundaryEvent id='b' attachedToRef='a'>{timer}</boundaryEvent>
         b -> a
         <boundaryEvent id='c' attachedToRef='a' cancelActivity='false'>{timer}</boundaryEvent>
         c -> a
         <subProcess id='e' triggeredByEvent='true'>
         <startEvent id='d'>{timer}</startEvent>
         </subProcess>"
    );
    let what = "an interrupting timer cannot have a timeCycle";
    check("", &process, &[&format!("b: {what}"), &format!("d: {what}")]);
}

#[test]
fn links() {
    check(
        "",
        "startEvent s
         <intermediateThrowEvent id='a'><linkEventDefinition name='l'/></intermediateThrowEvent>
         <intermediateThrowEvent id='b'><linkEventDefinition/></intermediateThrowEvent>
         <intermediateCatchEvent id='c'><linkEventDefinition name='k'/></intermediateCatchEvent>
         <intermediateCatchEvent id='d'><linkEventDefinition name='k'/></intermediateCatchEvent>
         <subProcess id='u'>
         startEvent t
         <intermediateCatchEvent id='e'><linkEventDefinition name='l'/></intermediateCatchEvent>
         </subProcess>",
        &[
            "a: there is no catch event for the link 'l' in this scope",
            "b: linkEventDefinition needs the attribute name",
            "d: another catch event of this scope has the link 'k'",
        ],
    );
}

#[test]
fn compensation() {
    check(
        "",
        "startEvent s
         s -> a
         service a
         <boundaryEvent id='b' attachedToRef='a'><compensateEventDefinition/></boundaryEvent>
         b -> z
         <association id='b-u' sourceRef='b' targetRef='u'/>
         manualTask u
         <boundaryEvent id='c' attachedToRef='u'><compensateEventDefinition/></boundaryEvent>
         <association id='c-v' sourceRef='c' targetRef='v'/>
         <manualTask id='v' isForCompensation='true'/>
         v -> z
         <boundaryEvent id='w' attachedToRef='v'><errorEventDefinition/></boundaryEvent>
         w -> z
         endEvent z
         <endEvent id='t'><compensateEventDefinition activityRef='v'/></endEvent>
         <endEvent id='y'><compensateEventDefinition activityRef='x'/></endEvent>
         <endEvent id='x'><compensateEventDefinition activityRef='a' waitForCompletion='false'/></endEvent>",
        &[
            "b: a compensation boundary event needs one association to an activity with \
             isForCompensation=\"true\"",
            "b: a compensation boundary event has an association instead of outgoing flows",
            "v: an activity for compensation must not have incoming or outgoing flows",
            "v: an activity for compensation must not have boundary events",
            "t: the activity to undo needs a compensation boundary event",
            "y: must refer to an activity of the same scope",
            "x: compensation that is not waited for is not supported",
        ],
    );
}

#[test]
fn cycles_without_a_wait_state() {
    check(
        "",
        "startEvent s
         s -> g
         exclusiveGateway g
         g -> a if =x
         g -> e if =y
         manualTask a
         a -> t
         <intermediateThrowEvent id='t'><linkEventDefinition name='back'/></intermediateThrowEvent>
         <intermediateCatchEvent id='c'><linkEventDefinition name='back'/></intermediateCatchEvent>
         c -> g
         task b
         b -> b
         <scriptTask id='i'>{<zeebe:script expression='=i + 1' resultVariable='i'/>}</scriptTask>
         i -> h
         exclusiveGateway h
         h -> i if =i &lt; 10
         h -> e if =i &gt; 9
         endEvent e",
        &[
            "a: this cycle has no wait state: 'a' > 't' > 'c' > 'g' > 'a'",
            "b: this cycle has no wait state: 'b' > 'b'",
            "i: this cycle has no wait state: 'i' > 'h' > 'i'",
        ],
    );
    let call = "<callActivity id='c'>{<zeebe:calledElement processId='P'/>}</callActivity>";
    check(
        "",
        &format!(
            "startEvent s\ns -> g\nexclusiveGateway g\ng -> c if =x\ng -> e if =y\n{call}\nendEvent e"
        ),
        &["s: this cycle has no wait state: 's' > 'g' > 'c' > 's'"],
    );
    check_warnings("", &format!("startEvent s\ns -> a\nservice a\na -> c\n{call}\nc -> a"), &[]);
    check_warnings(
        "",
        "startEvent s
         s -> g
         exclusiveGateway g
         g -> h
         exclusiveGateway h
         h -> g if =true
         h -> a if =false
         service a
         a -> u
         manualTask u
         u -> a
         <manualTask id='l'>{<zeebe:executionListeners>
         <zeebe:executionListener eventType='end' type='t'/></zeebe:executionListeners>}</manualTask>
         l -> l",
        &["g: this cycle of gateways never waits: 'g' > 'h' > 'g'"],
    );
}

#[test]
fn warnings() {
    check_warnings(
        "",
        "startEvent s
         <manualTask id='a'>{<zeebe:linkedResources/><zeebe:properties/>
         <camunda:inputOutput xmlns:camunda='http://camunda.org/schema/1.0/bpmn'/>}</manualTask>
         <intermediateCatchEvent id='c'><linkEventDefinition name='k'/></intermediateCatchEvent>
         <manualTask id='v' isForCompensation='true'/>",
        &[
            "a: is never entered: no flow leads here",
            "a: zeebe:linkedResources is not known here",
            "a: extensions of Camunda 7 have no effect",
            "c: no throw event of this scope has the link 'k'",
            "v: no compensation boundary event leads to this activity",
        ],
    );
}
