//! Large fan-outs, circles, depth, size: nothing grows without a bound, nobody is starved.

use windlass_record::bound::Bounds;
use windlass_record::id::PartitionId;

use super::*;
use crate::Engine;
use crate::tests::digest::{assert_same, digest};
use crate::tests::store::{Store, Writing, replay};
use crate::verb::check::Shelf;

const MANY: usize = 10_000;

impl Check {
    /// Steps without looking at all invariants after each.
    fn run(&mut self) -> usize {
        let context = self.context();
        let mut steps = 0;
        while self.engine.go_on(context, 32, &mut self.shelf) > 0 {
            steps += 1;
            assert!(steps < 1_000_000, "it never rests");
        }
        steps
    }

    fn give_quietly(&mut self, command: Command) {
        let context = self.context();
        self.engine.decide(&command, context, &mut self.shelf).expect("it is sound");
    }

    /// Starts an instance and takes no step that is not in its first frame.
    fn begin(&mut self, process: &str, variables: &str) {
        self.give_quietly(Command::Flow(FlowCommand::CreateInstance(CreateInstance {
            tenant: TENANT.into(),
            process: ProcessReference::Latest(process.into()),
            variables: variables.as_bytes().into(),
            start_at: Vec::new(),
            business_id: "".into(),
            tags: Vec::new(),
            awaited: true,
        })));
    }

    /// The partition was killed: a new engine from the checkpoint and the log behind it, or from
    /// the log alone.
    fn restart(&mut self, store: Option<(&Store, usize)>) {
        let mut shelf = Shelf::default();
        shelf.now_ms = self.now_ms;
        let (mut engine, from) = match store {
            Some((store, from)) => (store.load(Bounds::default(), &mut shelf), from),
            None => (Engine::new(PartitionId::FIRST, Bounds::default()), 0),
        };
        replay(&mut engine, &mut shelf, &self.shelf.log[from..]);
        shelf.log = std::mem::take(&mut self.shelf.log);
        (self.engine, self.shelf) = (engine, shelf);
    }

    fn checkpoint(&mut self, store: &mut Store) -> usize {
        self.engine.freeze(&mut Writing { store, shelf: &self.shelf });
        let at = self.shelf.log.len();
        while !self.engine.write_frozen(1_000, &mut Writing { store, shelf: &self.shelf }) {}
        store.commit();
        at
    }

    /// Completes all jobs of a type, killed `kills` times on the way.
    fn work_off(&mut self, job_type: &str, kills: usize) -> usize {
        let mut done = 0;
        let every = MANY / kills.max(1);
        let mut store = Store::default();
        let mut covered = None;
        loop {
            let jobs = self.work_quietly(job_type, 500);
            if jobs.is_empty() {
                return done;
            }
            for job in jobs {
                self.give_quietly(Command::CompleteJob(CompleteJob {
                    lease: Lease { key: job, activation: None },
                    result: format!(r#"{{"result":{done}}}"#).into_bytes().into(),
                    documents: Vec::new(),
                }));
                done += 1;
                if done % every == 0 {
                    let by_log = done / every % 2 == 1;
                    if !by_log {
                        covered = Some(self.checkpoint(&mut store));
                    }
                    let before = by_log.then(|| digest(self.engine.state(), &self.shelf));
                    self.restart(covered.map(|from| (&store, from)));
                    if let Some(before) = before {
                        let after = digest(self.engine.state(), &self.shelf);
                        assert_same("after a kill", &before, &after);
                    }
                }
                self.run();
            }
        }
    }

    fn work_quietly(&mut self, job_type: &str, jobs_max: u32) -> Vec<Key> {
        let name = windlass_record::command::QueueName {
            tenant: TENANT.into(),
            queue: windlass_record::flow::job_queue(job_type),
        };
        let Some(queue) = self.engine.state().queue_named(&name) else { return Vec::new() };
        let command = Command::ActivateJobs(ActivateJobs {
            queues: vec![queue],
            worker: "w".into(),
            lease_ms: LEASE_MS,
            jobs_max,
            bytes_max: u64::MAX,
            with_token: false,
        });
        let context = self.context();
        match self.engine.decide(&command, context, &mut self.shelf) {
            Ok(Answer::Activated(handed)) => handed.iter().map(|handed| handed.key).collect(),
            other => panic!("{other:?}"),
        }
    }
}

fn items(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    format!(r#"{{"items":[{}]}}"#, numbers.join(","))
}

/// Killed between any two batches while it fans out and while it is worked off.
#[test]
fn a_multi_instance_of_ten_thousand_is_killed_again_and_again() {
    let mut check = Check::with(&[process!("multi-parallel.bpmn")]);
    check.begin("multi-parallel", &items(MANY));
    let mut frames = 0;
    loop {
        let context = check.context();
        if check.engine.go_on(context, 32, &mut check.shelf) == 0 {
            break;
        }
        frames += 1;
        if frames % 80 == 1 {
            check.restart(None);
        }
    }
    check.check_invariants();
    assert_eq!(check.engine.state().jobs().iter().count(), MANY);
    assert_eq!(check.work_off("multi-parallel", 6), MANY);
    let jobs = check.work("multi-after", 2);
    assert_eq!(jobs.len(), 1, "one token came out");
    let seen = check.seen_by(jobs[0]);
    let (_, results) = seen.split_once("\"results\":[").expect("results");
    let numbers: Vec<usize> = results
        .trim_end_matches("]}")
        .split(',')
        .map(|number| number.parse().expect("a result for each"))
        .collect();
    assert_eq!(numbers, (0..MANY).collect::<Vec<_>>());
    check.done(jobs[0], "");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

/// So many branches of one fork, to one join.
fn fork(count: usize, gateway: &str) -> String {
    let mut body =
        format!("<startEvent id='s'/><{gateway} id='f'/><{gateway} id='j'/><endEvent id='e'/>");
    let mut flows = String::from("\ns -> f\nj -> e");
    for number in 0..count {
        body.push_str(&format!(
            "<serviceTask id='t{number}'><extensionElements><z:taskDefinition type='branch'/></extensionElements></serviceTask>"
        ));
        let condition = if gateway == "inclusiveGateway" { " if true" } else { "" };
        flows.push_str(&format!("\nf -> t{number}{condition}\nt{number} -> j"));
    }
    document("fork", "", &format!("{body}{flows}"))
}

#[test]
fn a_fork_of_ten_thousand_is_killed_again_and_again() {
    let text = fork(MANY, "parallelGateway");
    let mut check = Check::new();
    check.deploy(&[("fork.bpmn", &text)]).expect("it is sound");
    check.begin("fork", "");
    check.run();
    check.check_invariants();
    assert_eq!(check.engine.state().jobs().iter().count(), MANY);
    assert_eq!(check.work_off("branch", 3), MANY);
    check.check_invariants();
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

#[test]
fn an_inclusive_fork_of_thousands() {
    let text = fork(2_000, "inclusiveGateway");
    let mut check = Check::new();
    check.deploy(&[("fork.bpmn", &text)]).expect("it is sound");
    check.begin("fork", "");
    check.run();
    assert_eq!(check.work_off("branch", 0), 2_000);
    check.check_invariants();
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

#[test]
fn ten_thousand_are_cancelled_in_bounded_frames() {
    let mut check = Check::with(&[process!("multi-subprocess.bpmn")]);
    check.begin("multi-subprocess", &items(MANY));
    check.run();
    let instance = check.engine.state().flow().elements().find(|(_, it)| it.process.is_some());
    let (instance, _) = instance.expect("it lives");
    let logged = check.shelf.log.len();
    check
        .give_quietly(Command::Flow(FlowCommand::CancelInstance(CancelInstance { key: instance })));
    assert!(check.shelf.log.len() - logged < 5_000, "the first frame is bounded");
    let frames = check.run();
    assert!(frames > 300, "and so are the others: {frames}");
    check.check_invariants();
    assert_eq!(check.engine.state().flow().live_elements(), 0);
    assert_eq!(check.engine.state().jobs().iter().count(), 0);
}

#[test]
fn too_many_items() {
    let bounds = Bounds { loop_items_max: 3, ..Bounds::default() };
    let mut check = Check::with_bounds(bounds);
    check.deploy(&[process!("multi-parallel.bpmn")]).expect("it is sound");
    let instance = check.start("multi-parallel", r#"{"items":[1,2,3,4]}"#);
    let incident = check.assert_incident(
        "MESSAGE_SIZE_EXCEEDED",
        "each",
        "the input collection has 4 items: more than the bound of 3 items of a multi-instance",
    );
    check.set(instance, r#"{"items":[1,2,3]}"#, false);
    check.resolve(incident);
    assert_eq!(check.work("multi-parallel", 9).len(), 3);
}

/// A circle of gateways never waits. Others go on beside it, and it stops in an incident.
#[test]
fn a_circle_without_a_wait_state() {
    let text = document(
        "circle",
        "",
        "<startEvent id='s'/><exclusiveGateway id='a'/><exclusiveGateway id='b' default='b-a'/><endEvent id='e'/>
         s -> a
         a -> b
         b -> a
         b -> e if out",
    );
    let mut check =
        Check::with_bounds(Bounds { elements_without_wait_max: 5_000, ..Bounds::default() });
    check.deploy(&[("circle.bpmn", &text), process!("one-task.bpmn")]).expect("a warning at most");
    check.begin("circle", r#"{"out":false}"#);
    check.begin("one-task", "");
    // It has had a few frames: the other one is at its task.
    assert_eq!(check.work_quietly("one-task", 1).len(), 1);
    check.run();
    check.check_invariants();
    let (incident, kind, _, message) = check.incident();
    assert_eq!(kind, "EXTRACT_VALUE_ERROR");
    assert!(message.contains("round in a circle"), "{message}");
    assert!(message.contains("elements entered without a wait state"), "{message}");
    let instance = check.engine.state().flow().incident(incident).map(|it| it.element);
    let instance = check.engine.state().flow().element(instance.expect("it")).expect("it").instance;
    check.set(instance, r#"{"out":true}"#, false);
    check.resolve(incident);
    check.assert_completed(instance, r#"{"out":true}"#);
}

/// The same circle with a task in it may go round for ever.
#[test]
fn a_circle_that_waits() {
    let text = document(
        "circle",
        "",
        &format!(
            "<startEvent id='s'/><exclusiveGateway id='a'/>{}<endEvent id='e'/><exclusiveGateway id='b' default='b-a'/>
             s -> a
             a -> work
             work -> b
             b -> a
             b -> e if out",
            task("work")
        ),
    );
    let mut check =
        Check::with_bounds(Bounds { elements_without_wait_max: 1_500, ..Bounds::default() });
    check.deploy(&[("circle.bpmn", &text)]).expect("it is sound");
    let instance = check.start("circle", r#"{"out":false}"#);
    for _ in 0..2_000 {
        check.do_one("work", "");
    }
    check.do_one("work", r#"{"out":true}"#);
    check.assert_completed(instance, r#"{"out":true}"#);
}

/// A process that calls itself.
fn recursion(copies: usize) -> String {
    let mut body = String::from("<startEvent id='s'/>");
    for number in 0..copies {
        body.push_str(&format!(
            "<callActivity id='c{number}'><extensionElements><z:calledElement processId='again' \
             propagateAllParentVariables='false' propagateAllChildVariables='false'/></extensionElements></callActivity>"
        ));
    }
    for number in 0..copies {
        body.push_str(&format!("\ns -> c{number}"));
    }
    // The compiler refuses a straight loop of calls in one document: a task stands before it.
    document("again", "", &body)
}

#[test]
fn processes_that_call_themselves_for_ever() {
    for (copies, live_max) in [(1, 1_000 * 3), (2, 500 * 3)] {
        let text = recursion(copies);
        let mut check =
            Check::with_bounds(Bounds { called_instances_max: 400, ..Bounds::default() });
        if copies == 1 {
            check = Check::new();
        }
        let call = text.replace("processId='again'", "processId='=\"again\"'");
        check.deploy(&[("again.bpmn", &call)]).expect("a computed id is not looked at");
        check.begin("again", "");
        check.run();
        check.check_invariants();
        let flow = check.engine.state().flow();
        assert!(flow.live_elements() <= live_max, "{}", flow.live_elements());
        let messages: Vec<_> = flow.incidents().map(|(_, it)| it.message.to_string()).collect();
        assert!(!messages.is_empty());
        assert!(messages.iter().all(|it| it.contains("more than the bound of")), "{messages:?}");
        let root = flow.elements().filter(|(_, it)| it.process.is_some()).map(|(key, _)| key).min();
        check.give_quietly(Command::Flow(FlowCommand::CancelInstance(CancelInstance {
            key: root.expect("it lives"),
        })));
        check.run();
        assert_eq!(check.engine.state().flow().live_elements(), 0);
    }
}

/// Frames stay bounded where each of many instances gets much.
#[test]
fn large_items_and_payloads_come_in_small_frames() {
    const LARGE: usize = 300_000;
    let large = "x".repeat(LARGE);
    let bytes = |check: &Check, from: usize| -> usize {
        check.shelf.log[from..].iter().map(|(_, event)| event.len()).sum()
    };
    let mut check = Check::with(&[process!("multi-parallel.bpmn"), process!("signal-catch.bpmn")]);
    let item = format!("\"{large}\"");
    let items = vec![item; 12].join(",");
    check.begin("multi-parallel", &format!(r#"{{"items":[{items}]}}"#));
    for _ in 0..20 {
        check.begin("signal-catch", "");
    }
    check.run();
    let signal = BroadcastSignal {
        tenant: TENANT.into(),
        name: "scenario-signal".into(),
        variables: format!(r#"{{"v":"{large}"}}"#).into_bytes().into(),
    };
    let logged = check.shelf.log.len();
    check.give_quietly(Command::Flow(FlowCommand::BroadcastSignal(signal)));
    assert!(bytes(&check, logged) < 3 << 20, "{}", bytes(&check, logged));
    loop {
        let context = check.context();
        let logged = check.shelf.log.len();
        if check.engine.go_on(context, 32, &mut check.shelf) == 0 {
            break;
        }
        assert!(bytes(&check, logged) < 3 << 20, "{}", bytes(&check, logged));
    }
    check.check_invariants();
    assert_eq!(check.work_quietly("multi-parallel", 99).len(), 12);
}

/// Values are bounded where the process itself makes them.
#[test]
fn values_that_grow_without_end() {
    let bounds = Bounds { variable_bytes_max: 1_000, ..Bounds::default() };
    let mut check = Check::with_bounds(bounds);
    let text = process!("script-task.bpmn").1.replace("=x * 2 + 1", "=x + x");
    check.deploy(&[("p.bpmn", &text), process!("multi-parallel.bpmn")]).expect("it is sound");
    let long = "x".repeat(600);
    let instance = check.start("script-task", &format!(r#"{{"x":"{long}"}}"#));
    let incident =
        check.assert_incident("MESSAGE_SIZE_EXCEEDED", "calc", "1000 bytes of variables");
    check.set(instance, r#"{"x":"s"}"#, false);
    check.resolve(incident);
    check.assert_completed(instance, r#"{"x":"s","y":"ss"}"#);
    check.start("multi-parallel", r#"{"items":[1,2]}"#);
    for _ in 0..2 {
        check.do_one("multi-parallel", &format!(r#"{{"result":"{long}"}}"#));
    }
    check.assert_incident("MESSAGE_SIZE_EXCEEDED", "each", "the results of the multi-instance");
}

#[test]
fn documents_that_are_bombs() {
    let mut check = Check::new();
    let entities =
        "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><x>&b;</x>";
    let deep = document(
        "P",
        "",
        &format!(
            "{}<startEvent id='s'/>{}",
            (0..200).map(|n| format!("<subProcess id='s{n}'>")).collect::<String>(),
            "</subProcess>".repeat(200)
        ),
    );
    let nested = format!("<a>{}{}</a>", "<a>".repeat(200_000), "</a>".repeat(200_000));
    let parentheses = process!("script-task.bpmn")
        .1
        .replace("=x * 2 + 1", &format!("={}1{}", "(".repeat(10_000), ")".repeat(10_000)));
    for text in [entities, &deep, &nested, &parentheses] {
        assert!(check.deploy(&[("bomb.bpmn", text)]).is_err());
    }
    // The partition is alive.
    check.deploy(&[process!("no-task.bpmn")]).expect("it is sound");
    let instance = check.start("no-task", "");
    check.assert_completed(instance, "{}");
}
