//! Events in, rows out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use support::{
    DEFINITION, Feed, activated, attached, completed, created, deployed, done, ended, entered,
    flow, key, set, started, waiting,
};
use windlass_history::names::{
    FlowState, IncidentState, JobState, SubscriptionState, UserTaskState,
};
use windlass_history::search::{
    DecisionDefinition, ElementInstance, Incident, Job, MessageSubscription, ProcessDefinition,
    ProcessInstance, UserTask, Variable,
};
use windlass_history::{Entity, JobLevel, Options, Search};
use windlass_record::event::{Event, FailureCounts, IncidentKind, Outcome, ReadyCause};
use windlass_record::flow::{
    DefinitionDeployed, DefinitionKind, FlowEvent, FlowIncidentKind, Key, MessagePublished,
    SubscriptionKind, SubscriptionOpened, UserTaskCreated,
};

fn feed() -> (Feed, tempfile::TempDir) {
    feed_with(Options::default())
}

fn feed_with(options: Options) -> (Feed, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("history.db"), options);
    feed.record(1_000, &deployed());
    (feed, dir)
}

fn all<E: Entity>(feed: &Feed) -> Vec<E> {
    feed.history.search::<E>(&Search::default()).unwrap().items
}

fn job(feed: &Feed, job: u64) -> Job {
    feed.history.get::<Job>(job).unwrap().unwrap()
}

fn raised(job: u64, incident: u64, kind: IncidentKind, code: &'static str) -> Event<'static> {
    Event::IncidentRaised {
        key: key(job),
        incident: key(incident),
        kind,
        retries: 0,
        failures: FailureCounts::default(),
        code,
        message: "boom",
    }
}

#[test]
fn an_instance_leaves_its_elements_variables_and_job() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    feed.flush();
    let instance = feed.history.get::<ProcessInstance>(100).unwrap().unwrap();
    assert_eq!(
        (instance.state, instance.start_ms, instance.end_ms),
        (FlowState::Active, 2_000, None)
    );
    assert_eq!((&*instance.process_id, instance.version), ("order", 1));
    assert_eq!(instance.tags, ["red", "big"]);
    assert_eq!(instance.business_id, None);
    done(&mut feed, 3_000, 100);
    feed.flush();

    let instance = feed.history.get::<ProcessInstance>(100).unwrap().unwrap();
    assert_eq!((instance.state, instance.end_ms), (FlowState::Completed, Some(3_001)));
    let elements = all::<ElementInstance>(&feed);
    let seen: Vec<_> = elements
        .iter()
        .map(|it| (it.key, it.element_id.as_str(), it.element_type.as_str(), it.state))
        .collect();
    assert_eq!(
        seen,
        [
            (101, "start", "START_EVENT", FlowState::Completed),
            (102, "pay", "SERVICE_TASK", FlowState::Completed),
            (104, "end", "END_EVENT", FlowState::Completed),
        ]
    );
    let variables = all::<Variable>(&feed);
    let seen: Vec<_> = variables.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
    assert_eq!(seen, [("amount", "17"), ("who", "\"bob\""), ("paid", "true")]);
    let job = job(&feed, 103);
    assert_eq!((job.state, &*job.job_type, &*job.queue), (JobState::Completed, "pay", "zeebe/pay"));
    assert_eq!((job.instance, job.element_id.as_deref()), (Some(100), Some("pay")));
    assert_eq!((job.worker.as_deref(), job.end_ms, job.priority), (Some("ann"), Some(3_001), 5));
    assert_eq!(feed.history.resource(DEFINITION).unwrap().unwrap().1, b"<xml/>");
}

#[test]
fn what_begins_and_ends_between_two_flushes_is_the_same() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    done(&mut feed, 3_000, 100);
    feed.flush();
    let (mut other, _dir) = self::feed();
    waiting(&mut other, 2_000, 100);
    while other.given < other.records.len() {
        other.give(1);
        other.history.flush(other.given as u64);
    }
    done(&mut other, 3_000, 100);
    other.flush();
    assert_eq!(all::<ProcessInstance>(&feed), all::<ProcessInstance>(&other));
    assert_eq!(all::<ElementInstance>(&feed), all::<ElementInstance>(&other));
    assert_eq!(all::<Variable>(&feed).len(), all::<Variable>(&other).len());
    assert_eq!(all::<Job>(&feed), all::<Job>(&other));
}

#[test]
fn a_job_says_the_last_thing_that_happened_to_it() {
    let retried = Event::JobRetried {
        key: key(103),
        due_ms: 0,
        retries: 2,
        attempt: 2,
        failures: FailureCounts::default(),
        message: "no luck",
    };
    let updated = |retries, priority, deadline_ms| Event::JobUpdated {
        key: key(103),
        retries,
        priority,
        deadline_ms,
    };
    let table = [
        (activated(103, 9_000), JobState::Created, Some(9_000)),
        (retried, JobState::Failed, None),
        (updated(9, 5, None), JobState::RetriesUpdated, None),
        (updated(9, 6, None), JobState::PriorityUpdated, None),
        (activated(103, 9_500), JobState::PriorityUpdated, Some(9_500)),
        (updated(9, 6, Some(9_600)), JobState::TimeoutUpdated, Some(9_600)),
        (
            Event::JobReadied { key: key(103), cause: ReadyCause::LeaseEnded },
            JobState::TimedOut,
            None,
        ),
        (ended(103, Outcome::Cancelled), JobState::Canceled, None),
    ];
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    for (event, state, deadline_ms) in table {
        feed.record(4_000, std::slice::from_ref(&event));
        let job = job(&feed, 103);
        assert_eq!((job.state, job.deadline_ms), (state, deadline_ms), "{event:?}");
    }
    assert_eq!(job(&feed, 103).error_message.as_deref(), Some("no luck"));
}

#[test]
fn an_incident_shows_at_its_job_element_and_instances() {
    let (mut feed, _dir) = feed();
    // 100 calls 200 from its element 102.
    waiting(&mut feed, 2_000, 100);
    let mut called = Vec::new();
    if let Event::Flow(FlowEvent::InstanceStarted(mut it)) = started(200, "") {
        it.parent = key(102);
        it.root = key(100);
        called.push(flow(FlowEvent::InstanceStarted(it)));
    }
    called.extend([entered(202, 200, 2), created(203), attached(202, 203)]);
    feed.record(2_500, &called);
    feed.record(3_000, &[raised(203, 300, IncidentKind::ErrorNotCaught, "E1")]);

    let incident = feed.history.get::<Incident>(300).unwrap().unwrap();
    assert_eq!(incident.error_type, "UNHANDLED_ERROR_EVENT");
    assert_eq!((incident.job, incident.instance, incident.root), (Some(203), Some(200), Some(100)));
    let element = feed.history.get::<ElementInstance>(202).unwrap().unwrap();
    assert_eq!(element.incident, Some(300));
    let failed = job(&feed, 203);
    assert_eq!((failed.state, failed.error_code.as_deref()), (JobState::ErrorThrown, Some("E1")));
    let instances = all::<ProcessInstance>(&feed);
    assert_eq!(instances.iter().map(|it| it.has_incident).collect::<Vec<_>>(), [true, true]);
    assert_eq!(instances.iter().map(|it| it.parent).collect::<Vec<_>>(), [None, Some(100)]);

    let resolved = Event::IncidentResolved { key: key(203), retries: 1, attempt: 2 };
    feed.record(4_000, &[resolved]);
    let incident = feed.history.get::<Incident>(300).unwrap().unwrap();
    assert_eq!((incident.state, incident.resolved_ms), (IncidentState::Resolved, Some(4_000)));
    assert!(all::<ProcessInstance>(&feed).iter().all(|it| !it.has_incident));
    assert_eq!(job(&feed, 203).state, JobState::RetriesUpdated);

    // One that nobody resolves is gone with its element.
    let kind = FlowIncidentKind::Condition;
    let element = key(102);
    let event = FlowEvent::IncidentRaised { key: key(301), element, kind, message: "no flow" };
    feed.record(5_000, &[flow(event)]);
    assert_eq!(
        all::<Incident>(&feed).iter().filter(|it| it.error_type == "CONDITION_ERROR").count(),
        1
    );
    feed.record(6_000, &[flow(FlowEvent::ElementTerminated { key: key(102) })]);
    assert!(all::<Incident>(&feed).iter().all(|it| it.state == IncidentState::Resolved));
    assert!(all::<ProcessInstance>(&feed).iter().all(|it| !it.has_incident));
}

#[test]
fn a_job_too_large_to_be_sent_is_an_incident_of_its_own_kind() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    feed.record(3_000, &[raised(103, 300, IncidentKind::TooLarge, "")]);
    let incident = feed.history.get::<Incident>(300).unwrap().unwrap();
    assert_eq!(incident.error_type, "MESSAGE_SIZE_EXCEEDED");
    assert_eq!(job(&feed, 103).state, JobState::Failed);
}

#[test]
fn plain_jobs_are_kept_by_level() {
    let run = |jobs| {
        let (mut feed, _dir) = feed_with(Options { jobs, ..Options::default() });
        feed.record(2_000, &[created(50)]);
        feed.write(2_001, &[created(51)]);
        feed.write(2_002, &[activated(50, 9_000), activated(51, 9_000)]);
        feed.record(2_003, &[raised(51, 60, IncidentKind::NoRetries, "")]);
        feed.record(2_004, &[ended(50, Outcome::Completed), ended(51, Outcome::Cancelled)]);
        let jobs: Vec<_> = all::<Job>(&feed).iter().map(|it| (it.key, it.state)).collect();
        (jobs, all::<Incident>(&feed).len())
    };
    assert_eq!(run(JobLevel::None), (vec![], 0));
    assert_eq!(run(JobLevel::Failures), (vec![(51, JobState::Canceled)], 1));
    let full = vec![(50, JobState::Completed), (51, JobState::Canceled)];
    assert_eq!(run(JobLevel::Full), (full, 1));
}

#[test]
fn user_tasks_have_properties_and_an_end() {
    let task = |assignee: &'static str, priority| UserTaskCreated {
        key: key(400),
        element: key(102),
        assignee: assignee.into(),
        candidate_groups: "[\"sales\"]".into(),
        candidate_users: "".into(),
        due_date: "2026-01-01T00:00:00Z".into(),
        follow_up_date: "".into(),
        priority,
        form: Key::NONE,
        form_reference: "".into(),
        headers: "".into(),
    };
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    feed.record(2_100, &[flow(FlowEvent::UserTaskCreated(Box::new(task("", 50))))]);
    let row = feed.history.get::<UserTask>(400).unwrap().unwrap();
    assert_eq!((row.assignee, row.state, row.instance), (None, UserTaskState::Created, 100));
    assert_eq!(
        (row.candidate_groups, row.name),
        (vec!["sales".to_owned()], Some("Pay".to_owned()))
    );
    feed.record(2_200, &[flow(FlowEvent::UserTaskChanged(Box::new(task("eve", 70))))]);
    feed.record(2_300, &[flow(FlowEvent::UserTaskEnded { key: key(400), completed: true })]);
    let row = feed.history.get::<UserTask>(400).unwrap().unwrap();
    assert_eq!((row.assignee.as_deref(), row.priority), (Some("eve"), 70));
    assert_eq!((row.state, row.completed_ms), (UserTaskState::Completed, Some(2_300)));
}

fn subscribed(subscription: u64, owner: u64, name: &'static str) -> Event<'static> {
    flow(FlowEvent::SubscriptionOpened(SubscriptionOpened {
        key: key(subscription),
        owner: key(owner),
        node: 2,
        kind: SubscriptionKind::Message,
        name,
        correlation_key: "c",
    }))
}

#[test]
fn a_subscription_that_got_its_message_stays_as_that() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    feed.write(2_100, &[subscribed(500, 102, "paid"), subscribed(501, 102, "refused")]);
    feed.write(2_101, &[subscribed(502, DEFINITION, "begin")]);
    let published = MessagePublished {
        key: key(510),
        tenant: "<default>",
        name: "paid",
        correlation_key: "c",
        message_id: "",
        until_ms: 0,
        variables: "{}",
    };
    feed.record(2_200, &[flow(FlowEvent::MessagePublished(published))]);
    let correlated = FlowEvent::MessageCorrelated {
        message: key(510),
        process_id: "order",
        instance: key(100),
        element: key(102),
    };
    let closed = |subscription| flow(FlowEvent::SubscriptionClosed { key: key(subscription) });
    feed.record(2_300, &[flow(correlated), closed(500), closed(501)]);
    let seen: Vec<_> = all::<MessageSubscription>(&feed)
        .iter()
        .map(|it| (it.key, it.state, it.instance))
        .collect();
    assert_eq!(
        seen,
        [
            (500, SubscriptionState::Correlated, Some(100)),
            (501, SubscriptionState::Deleted, Some(100)),
            (502, SubscriptionState::Created, None),
        ]
    );
}

#[test]
fn a_migrated_instance_belongs_to_the_new_definition() {
    let (mut feed, _dir) = feed();
    waiting(&mut feed, 2_000, 100);
    let Some(Event::Flow(FlowEvent::DefinitionDeployed(mut second))) = deployed().pop() else {
        panic!("the definition is last");
    };
    second.key = key(11);
    second.version = 2;
    let mut nodes = second.nodes.to_vec();
    nodes.swap(2, 3);
    nodes[3].id = "pay2".into();
    second.nodes = nodes.into();
    feed.record(2_500, &[flow(FlowEvent::DefinitionDeployed(second))]);
    let migrated = FlowEvent::InstanceMigrated {
        instance: key(100),
        definition: key(11),
        nodes: vec![(2, 3)].into(),
    };
    feed.record(2_600, &[flow(migrated)]);
    let instance = feed.history.get::<ProcessInstance>(100).unwrap().unwrap();
    assert_eq!((instance.definition, instance.version), (11, 2));
    let element = feed.history.get::<ElementInstance>(102).unwrap().unwrap();
    assert_eq!((&*element.element_id, element.definition), ("pay2", 11));
    let job = job(&feed, 103);
    assert_eq!((job.state, job.element_id.as_deref()), (JobState::Migrated, Some("pay2")));
    // An element that had ended stays what it was.
    let start = feed.history.get::<ElementInstance>(101).unwrap().unwrap();
    assert_eq!(start.definition, DEFINITION);
    done(&mut feed, 3_000, 100);
    feed.flush();
    assert_eq!(feed.history.get::<ElementInstance>(102).unwrap().unwrap().element_id, "pay2");
}

#[test]
fn a_variable_has_its_newest_value_and_one_row() {
    let (mut feed, _dir) = feed();
    feed.record(2_000, &[started(100, "b-1"), set(100, &[("a", "1")])]);
    let long: &'static str = Box::leak(format!("\"{}\"", "x".repeat(9_000)).into_boxed_str());
    feed.record(2_001, &[set(100, &[("a", "2")]), set(100, &[("a", long)])]);
    let variables = all::<Variable>(&feed);
    assert_eq!(variables.len(), 1);
    assert!(variables[0].is_truncated);
    assert_eq!(variables[0].value.len(), 8_192);
    assert_eq!(feed.history.variable_value(variables[0].key).unwrap().as_deref(), Some(long));
}

#[test]
fn decisions_stand_in_their_graph_and_deleted_ones_are_gone() {
    let (mut feed, _dir) = feed();
    let definition = |number, kind, id, group| {
        flow(FlowEvent::DefinitionDeployed(DefinitionDeployed {
            key: key(number),
            deployment: key(20),
            resource: key(21),
            tenant: "<default>",
            kind,
            id,
            version: 1,
            version_tag: "",
            name: "N",
            group: key(group),
            nodes: Vec::new().into(),
        }))
    };
    let graph = definition(22, DefinitionKind::DecisionRequirements, "graph", 0);
    feed.record(2_000, &[graph, definition(23, DefinitionKind::Decision, "price", 22)]);
    let decisions = all::<DecisionDefinition>(&feed);
    assert_eq!(decisions[0].requirements_id.as_deref(), Some("graph"));
    feed.record(2_001, &[flow(FlowEvent::DefinitionDeleted { key: key(23) })]);
    assert_eq!(all::<DecisionDefinition>(&feed), []);
    assert_eq!(all::<ProcessDefinition>(&feed).len(), 1);
}

#[test]
fn what_is_old_goes_with_all_that_belongs_to_it() {
    let options = Options { retention_ms: 10_000, ..Options::default() };
    let (mut feed, _dir) = feed_with(options);
    waiting(&mut feed, 2_000, 100);
    done(&mut feed, 3_000, 100);
    waiting(&mut feed, 2_000, 200);
    feed.flush();
    feed.record(14_000, &[started(300, "")]);
    while feed.history.idle() {}
    let instances: Vec<_> = all::<ProcessInstance>(&feed).iter().map(|it| it.key).collect();
    assert_eq!(instances, [200, 300]);
    assert!(all::<ElementInstance>(&feed).iter().all(|it| it.instance == 200));
    assert!(all::<Variable>(&feed).iter().all(|it| it.instance == 200));
    assert_eq!(all::<Job>(&feed).len(), 1);
}

#[test]
fn more_finished_ones_than_are_wanted_go_too() {
    let (mut feed, _dir) = feed_with(Options { finished_max: 3, ..Options::default() });
    for number in 1..=5 {
        feed.write(2_000 + number, &[started(number * 100, ""), completed(number * 100)]);
    }
    feed.flush();
    while feed.history.idle() {}
    let instances: Vec<_> = all::<ProcessInstance>(&feed).iter().map(|it| it.key).collect();
    assert_eq!(instances, [300, 400, 500]);
}
