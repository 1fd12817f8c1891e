//! What no document may do: panic, overflow the stack, or take more time and memory than its size
//! allows.

use std::time::{Duration, Instant};

use super::document;
use crate::bpmn::{Problem, compile, lint};

/// Documents of this size are what a gateway lets through.
const SIZE: usize = 4 * 1024 * 1024;
/// Fifty times what the slowest takes in a debug build.
const TIME: Duration = Duration::from_secs(20);

/// Compiles a large document; gives its problems.
fn check(what: &str, text: &str) -> Vec<String> {
    let start = Instant::now();
    let problems = lint(text.as_bytes());
    let elapsed = start.elapsed();
    assert!(elapsed < TIME, "{what}: {elapsed:?} for {} bytes", text.len());
    assert!(problems.len() <= 200, "{what}");
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    assert!(lines.iter().all(|line| line.chars().count() < 800), "{what}");
    lines
}

/// `part`, with `#` as a number, as often as it fits.
fn many(part: &str) -> String {
    (0..SIZE / (part.len() + 6)).map(|number| part.replace('#', &number.to_string())).collect()
}

#[test]
fn deep_documents() {
    let depth = 100_000;
    let text = format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert_eq!(
        check("elements", &text),
        ["this is not BPMN 2.0: it must begin with its 'definitions' element"]
    );
    let nested = |depth: usize| {
        let open: String =
            (0..depth).map(|n| format!("<subProcess id='u{n}'><startEvent id='s{n}'/>")).collect();
        document("", &format!("startEvent s\n{open}{}", "</subProcess>".repeat(depth)))
    };
    compile(nested(64).as_bytes()).expect("64 levels are allowed");
    let lines = check("sub-processes", &nested(10_000));
    let errors: Vec<&String> = lines.iter().filter(|line| !line.contains("warning")).collect();
    assert!(errors[0].contains("u64: sub-processes lie more than 64 deep"), "{errors:?}");
    assert_eq!(errors.len(), 1);
    let expression = format!("={}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let script = format!("<zeebe:script expression='{expression}' resultVariable='r'/>");
    check("parentheses", &document("", &format!("<scriptTask id='a'>{{{script}}}</scriptTask>")));
}

#[test]
fn bombs() {
    let entities = "<!DOCTYPE a [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><a>&b;</a>";
    assert_eq!(check("entities", entities), ["a document type definition is not allowed"]);
    let attributes = format!("<a {}/>", many("a#='' "));
    assert_eq!(check("attributes", &attributes), ["an element has more than 256 attributes"]);
    let namespaces = many("<a xmlns:n#='u#'>");
    assert_eq!(
        check("namespaces", &namespaces),
        ["there are more than 1024 namespace declarations"]
    );
    assert_eq!(
        check("nodes", &format!("<a>{}</a>", "<a/>".repeat(600_000))),
        ["there are more than 500000 XML nodes"]
    );
    // Quotation marks in comments, CDATA and text are no attributes.
    let quotes = "\"'\"".repeat(2_000);
    let text = format!("<a><!--{quotes}--><![CDATA[{quotes}]]><?pi {quotes}?>{quotes}</a>");
    assert_eq!(
        check("quotation marks", &text),
        ["this is not BPMN 2.0: it must begin with its 'definitions' element"]
    );
}

#[test]
fn large_documents() {
    let process = |part: &str| document("", &format!("<startEvent id='s'/>{}", many(part)));
    check("tasks", &process("<task id='t#'/>"));
    check("duplicates", &process("<task id='t'/>"));
    check("no ids", &process("<task/>"));
    check("unknown elements", &process("<anything id='t#'/>"));
    check("flows to nowhere", &process("<sequenceFlow id='f#' sourceRef='s' targetRef='x'/>"));
    check("a self loop", &process("<sequenceFlow sourceRef='s' targetRef='s'/>"));
    check(
        "loops",
        &process("<task id='t#'/><sequenceFlow id='f#' sourceRef='t#' targetRef='t#'/>"),
    );
    check("a fork", &process("<task id='t#'/><sequenceFlow sourceRef='s' targetRef='t#'/>"));
    check(
        "compensation",
        &process(
            "<boundaryEvent id='b#' attachedToRef='t#'><compensateEventDefinition/></boundaryEvent>\
             <task id='t#' isForCompensation='true'/><association sourceRef='b#' targetRef='t#'/>",
        ),
    );
    check(
        "boundary events",
        &process(
            "<boundaryEvent id='b#' attachedToRef='s'><errorEventDefinition/></boundaryEvent>",
        ),
    );
    let processes = many("<process id='P#' isExecutable='true'><startEvent id='s#'/></process>");
    check(
        "processes",
        &format!("<definitions xmlns='{}'>{processes}</definitions>", crate::bpmn::xml::BPMN),
    );
    let inside = |part: &str| {
        let task = format!("<serviceTask id='t'>{{{}}}</serviceTask>", many(part));
        document("", &format!("<startEvent id='s'/>{task}"))
    };
    check("unknown extensions", &inside("<zeebe:anything/>"));
    let headers = many("<zeebe:header key='#' value='x'/>");
    let list = format!("<zeebe:taskHeaders>{headers}</zeebe:taskHeaders>");
    let listeners = "<zeebe:executionListener eventType='start' type='t'/>".repeat(2_000);
    let task = format!(
        "<task id='t'>{{{list}<zeebe:executionListeners>{listeners}</zeebe:executionListeners>}}</task>"
    );
    check("listeners with headers", &document("", &format!("<startEvent id='s'/>{task}")));
    let chain: String = (0..20_000)
        .map(|n| {
            format!(
                "<task id='t{n}'/><sequenceFlow sourceRef='t{n}' targetRef='t{}'/>",
                (n + 1) % 20_000
            )
        })
        .collect();
    let lines = check("a large cycle", &document("", &format!("<startEvent id='s'/>{chain}")));
    assert!(lines[0].contains("t0: this cycle has no wait state: 't0' > 't1' > "), "{lines:?}");
    let long = "x".repeat(SIZE);
    let script = format!("<zeebe:script expression='{long}' resultVariable='{long}'/>");
    check(
        "long text",
        &document("", &format!("<scriptTask id='{long}'>{{{script}}}</scriptTask>")),
    );
}

/// The document that is mutated: a little of everything.
const RICH: &str = "startEvent s
    s -> a
    <serviceTask id='a'>{<zeebe:taskDefinition type='=t' retries='5'/><zeebe:taskHeaders>
    <zeebe:header key='h' value='v'/></zeebe:taskHeaders><zeebe:ioMapping>
    <zeebe:input source='=b' target='c.d'/><zeebe:output source='=c' target='e'/></zeebe:ioMapping>
    <zeebe:executionListeners><zeebe:executionListener eventType='end' type='u'/></zeebe:executionListeners>}
    <multiInstanceLoopCharacteristics>{<zeebe:loopCharacteristics inputCollection='=l' inputElement='i'
    outputCollection='o' outputElement='=p'/>}<completionCondition>=q &gt; 3</completionCondition>
    </multiInstanceLoopCharacteristics></serviceTask>
    <boundaryEvent id='b' attachedToRef='a'><errorEventDefinition errorRef='r'/></boundaryEvent>
    b -> g
    <boundaryEvent id='c' attachedToRef='a'><compensateEventDefinition/></boundaryEvent>
    <association id='c-d' sourceRef='c' targetRef='d'/>
    <manualTask id='d' isForCompensation='true'/>
    a -> g
    <exclusiveGateway id='g' default='g-u'/>
    g -> e if =x = \"y\"
    g -> u
    eventBasedGateway e
    e -> e1
    e -> e2
    <intermediateCatchEvent id='e1'><messageEventDefinition messageRef='m'/></intermediateCatchEvent>
    <intermediateCatchEvent id='e2'><timerEventDefinition><timeDuration>PT1M</timeDuration>
    </timerEventDefinition></intermediateCatchEvent>
    e1 -> k
    e2 -> k
    <intermediateThrowEvent id='k'><linkEventDefinition name='L'/></intermediateThrowEvent>
    <intermediateCatchEvent id='k2'><linkEventDefinition name='L'/></intermediateCatchEvent>
    k2 -> t
    <userTask id='t'>{<zeebe:userTask/><zeebe:assignmentDefinition assignee='=a' candidateGroups='x,y'/>
    <zeebe:formDefinition formId='f' bindingType='deployment'/>}</userTask>
    t -> z
    <subProcess id='u'>
    startEvent u1
    u1 -> u2
    <callActivity id='u2'>{<zeebe:calledElement processId='Q' bindingType='versionTag' versionTag='v'/>}</callActivity>
    </subProcess>
    u -> w
    <scriptTask id='w'>{<zeebe:script expression='=[1, 2][item > 1]' resultVariable='r'/>}</scriptTask>
    w -> z
    <subProcess id='v' triggeredByEvent='true'>
    <startEvent id='v1' isInterrupting='false'><timerEventDefinition><timeCycle>R3/PT10S</timeCycle>
    </timerEventDefinition></startEvent>
    v1 -> v2
    <endEvent id='v2'><escalationEventDefinition escalationRef='l'/></endEvent>
    </subProcess>
    <endEvent id='z'><messageEventDefinition messageRef='m'>{<zeebe:publishMessage correlationKey='=k'
    timeToLive='PT1H'/>}</messageEventDefinition></endEvent>";

const RICH_ROOTS: &str =
    "<message id='m' name='n'>{<zeebe:subscription correlationKey='=k'/>}</message>
    <error id='r' errorCode='R'/><escalation id='l' escalationCode='L'/>";

/// Names the seed of a run that panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!(
                "seed {seed}: set FIRST to it and run `cargo test -p windlass-flow mutations`"
            );
        }
    }
}

/// The first seed, and how many.
const FIRST: u64 = 0;
const RUNS: u64 = 4_000;

#[test]
fn mutations_do_not_panic() {
    let original = document(RICH_ROOTS, RICH);
    compile(original.as_bytes()).expect("the original is right");
    let mut accepted = 0;
    for seed in FIRST..FIRST + RUNS {
        let seed = Seed(seed);
        let mutated = mutate(&original, seed.0);
        let problems = lint(&mutated);
        let compiled = compile(&mutated);
        match &compiled {
            Ok(compiled) => accepted += compiled.processes.len(),
            Err(errors) => assert!(errors.iter().all(|error| problems.contains(error))),
        }
        assert_eq!(format!("{compiled:?}"), format!("{:?}", compile(&mutated)));
    }
    assert!(accepted > 20, "most mutations break the XML only: {accepted}");
}

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(bound.max(1)).expect("it fits")).expect("it fits")
    }
}

/// A few changes: mostly whole elements and words, so that the XML stays right.
fn mutate(original: &str, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut lines: Vec<String> = original.lines().map(str::to_owned).collect();
    let words: Vec<&str> = original.split(['\'', '"', '>', '<', ' ', '\n']).collect();
    for _ in 0..=random.below(3) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(6) {
            0 => {
                lines.remove(at);
            }
            1 => lines.swap(at, other),
            2 => lines.insert(at, lines[other].clone()),
            _ => {
                let old = words[random.below(words.len())];
                let new = words[random.below(words.len())];
                if !old.is_empty() && random.below(2) == 0 {
                    lines[at] = lines[at].replacen(old, new, 1);
                } else if !old.is_empty() {
                    lines.iter_mut().for_each(|line| *line = line.replace(old, new));
                }
            }
        }
    }
    let mut bytes = lines.join("\n").into_bytes();
    if random.below(8) == 0 {
        let at = random.below(bytes.len());
        bytes[at] = u8::try_from(random.below(256)).expect("it is a byte");
    }
    if random.below(16) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}
