//! What is asked, and what is found.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use support::{Feed, completed, deployed, done, set, started, waiting};
use windlass_history::search::{
    DecisionDefinitionField, DecisionRequirementsField, ElementInstance, ElementInstanceField,
    IncidentField, Job, JobField, MessageSubscription, MessageSubscriptionField, ProcessDefinition,
    ProcessDefinitionField, ProcessInstance, ProcessInstanceField, Task, UserTask, UserTaskField,
    Variable, VariableField, Workflow,
};
use windlass_history::{
    Entity, Field, FieldKind, Filter, HistoryError, Options, Order, Page, Search, Start, Test,
    Value, VariableScope,
};

use ProcessInstanceField as P;

/// Instances 100 to 900; the odd ones are done; `n` is the number of each.
fn feed() -> (Feed, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("h.db"), Options::default());
    feed.write(1_000, &deployed());
    for number in 1..=9 {
        waiting(&mut feed, 2_000 + number, number * 100);
        let value: &'static str = Box::leak(number.to_string().into_boxed_str());
        feed.write(2_500, &[set(number * 100, &[("n", value)])]);
        if number % 2 == 1 {
            done(&mut feed, 3_000 + number, number * 100);
        }
    }
    feed.write(4_000, &[started(1_000, "order*7"), completed(1_000)]);
    feed.flush();
    (feed, dir)
}

fn keys(feed: &Feed, filter: Filter<P>) -> Vec<u64> {
    let found = feed.history.search::<ProcessInstance>(&Search { filter, ..Search::default() });
    let found = found.unwrap();
    assert_eq!(found.total, found.items.len() as u64);
    found.items.iter().map(|it| it.key / 100).collect()
}

fn text(text: &str) -> Value {
    text.into()
}

#[test]
fn filters() {
    let (feed, _dir) = feed();
    let key = |number: u64| Value::key(number * 100);
    let has_element = |field, test| Filter::HasElement(Box::new(Filter::Field(field, test)));
    let n = |value| Filter::Variable { name: "n".into(), value, scope: VariableScope::Anywhere };
    let table: Vec<(Filter<P>, Vec<u64>)> = vec![
        (Filter::Field(P::State, Test::Equal(text("ACTIVE"))), vec![2, 4, 6, 8]),
        (Filter::Field(P::State, Test::NotEqual(text("COMPLETED"))), vec![2, 4, 6, 8]),
        (Filter::Field(P::Key, Test::In(vec![key(3), key(5)])), vec![3, 5]),
        (Filter::Field(P::Key, Test::In(vec![])), vec![]),
        (Filter::Field(P::Key, Test::Greater(key(8))), vec![9, 10]),
        (Filter::Field(P::StartDate, Test::LessOrEqual(Value::Number(2_002))), vec![1, 2]),
        (Filter::Field(P::EndDate, Test::Exists(false)), vec![2, 4, 6, 8]),
        (Filter::Field(P::BusinessId, Test::Equal(text("order*7"))), vec![10]),
        (Filter::Field(P::BusinessId, Test::Like("order*".into())), vec![10]),
        (Filter::Field(P::BusinessId, Test::Like(r"order\*?".into())), vec![10]),
        (Filter::Field(P::BusinessId, Test::Like(r"order\?7".into())), vec![]),
        (Filter::Field(P::BusinessId, Test::NotIn(vec![text("order*7")])), (1..10).collect()),
        (Filter::Field(P::DefinitionId, Test::Equal(text("nothing"))), vec![]),
        (Filter::Field(P::HasIncident, Test::Equal(Value::Flag(true))), vec![]),
        (Filter::Field(P::Tags, Test::Equal(text("red"))), (1..=10).collect()),
        (Filter::Field(P::Tags, Test::Equal(text("blue"))), vec![]),
        (n(Test::Equal(text("4"))), vec![4]),
        (n(Test::In(vec![text("4"), text("5")])), vec![4, 5]),
        (
            has_element(ElementInstanceField::ElementId, Test::Equal(text("end"))),
            vec![1, 3, 5, 7, 9],
        ),
        (
            Filter::HasJob(Box::new(Filter::Field(JobField::State, Test::Equal(text("CREATED"))))),
            vec![2, 4, 6, 8],
        ),
        (
            Filter::HasIncident(Box::new(Filter::Field(IncidentField::State, Test::Exists(true)))),
            vec![],
        ),
        (
            Filter::Any(vec![
                Filter::Field(P::Key, Test::Equal(key(2))),
                Filter::All(vec![
                    Filter::Field(P::State, Test::Equal(text("COMPLETED"))),
                    Filter::Field(P::Key, Test::Less(key(3))),
                ]),
            ]),
            vec![1, 2],
        ),
        (Filter::Any(vec![]), vec![]),
        (Filter::Field(P::BusinessId, Test::Equal(text("' OR 1=1 --"))), vec![]),
    ];
    for (filter, expected) in table {
        assert_eq!(keys(&feed, filter.clone()), expected, "{filter:?}");
    }
}

fn paged(
    feed: &Feed,
    sort: &[(P, Order)],
    page: Page,
) -> (Vec<u64>, Option<String>, Option<String>) {
    let search = Search { filter: Filter::All(vec![]), sort: sort.to_vec(), page };
    let found = feed.history.search::<ProcessInstance>(&search).unwrap();
    assert_eq!(found.total, 10);
    let keys = found.items.iter().map(|it| it.key / 100).collect();
    (keys, found.first_cursor, found.last_cursor)
}

#[test]
fn pages_by_cursor_meet_every_item_once_in_any_order() {
    let (feed, _dir) = feed();
    let orders: [&[(P, Order)]; 5] = [
        &[],
        &[(P::Key, Order::Descending)],
        &[(P::State, Order::Descending), (P::EndDate, Order::Ascending)],
        &[(P::BusinessId, Order::Ascending), (P::StartDate, Order::Descending)],
        &[(P::DefinitionId, Order::Ascending)],
    ];
    for sort in orders {
        let whole = paged(&feed, sort, Page::default()).0;
        for limit in [1, 3, 4] {
            let mut start = Start::Offset(0);
            let mut seen = Vec::new();
            let mut first = None;
            loop {
                let (keys, begin, end) = paged(&feed, sort, Page { limit, start });
                if keys.is_empty() {
                    break;
                }
                seen.extend(keys);
                first = begin;
                start = Start::After(end.unwrap());
            }
            assert_eq!(seen, whole, "{sort:?} by {limit}");
            // And back from the last page.
            let mut seen = Vec::new();
            while let Some(begin) = first.take() {
                let start = Start::Before(begin);
                let (keys, begin, _) = paged(&feed, sort, Page { limit, start });
                seen.splice(0..0, keys);
                first = begin;
            }
            let last = match 10 % limit {
                0 => limit,
                rest => rest,
            };
            assert_eq!(seen, whole[..10 - last as usize], "{sort:?} back by {limit}");
        }
        let offset = paged(&feed, sort, Page { limit: 4, start: Start::Offset(8) }).0;
        assert_eq!(offset, whole[8..], "{sort:?} by offset");
    }
}

#[test]
fn a_cursor_of_something_else_is_refused() {
    let (feed, _dir) = feed();
    for cursor in ["", "%%", "e30=", "WzEsMiwzXQ=="] {
        let page = Page { limit: 1, start: Start::After(cursor.into()) };
        let found = feed.history.search::<ProcessInstance>(&Search { page, ..Search::default() });
        assert!(matches!(found, Err(HistoryError::Cursor)), "{cursor}");
    }
}

/// Every field of an entity works in a filter and in a sort.
fn try_all_fields<E: Entity>(feed: &Feed) {
    for field in E::Field::ALL.iter().copied() {
        assert_eq!(E::Field::named(field.name()).map(Field::name), Some(field.name()));
        let value = match field.kind() {
            FieldKind::Text | FieldKind::Id | FieldKind::List => text("x"),
            FieldKind::Key | FieldKind::Number | FieldKind::Time => Value::Number(1),
            FieldKind::Flag => Value::Flag(true),
        };
        let tests = [
            Test::Equal(value.clone()),
            Test::Greater(value.clone()),
            Test::NotIn(vec![value]),
            Test::Resembles("*x".into()),
            Test::Contains("x".into()),
            Test::Exists(true),
        ];
        for test in tests {
            let search = Search {
                filter: Filter::Field(field, test),
                sort: vec![(field, Order::Descending)],
                page: Page::default(),
            };
            let found = feed.history.search::<E>(&search);
            assert!(found.is_ok(), "{}: {:?}", field.name(), found.err());
        }
    }
    feed.history.get::<E>(100).unwrap();
}

#[test]
fn every_field_of_every_entity() {
    let (feed, _dir) = feed();
    try_all_fields::<ProcessInstance>(&feed);
    try_all_fields::<ElementInstance>(&feed);
    try_all_fields::<Variable>(&feed);
    try_all_fields::<Job>(&feed);
    try_all_fields::<windlass_history::search::Incident>(&feed);
    try_all_fields::<UserTask>(&feed);
    try_all_fields::<Workflow>(&feed);
    try_all_fields::<Task>(&feed);
    try_all_fields::<MessageSubscription>(&feed);
    try_all_fields::<ProcessDefinition>(&feed);
    try_all_fields::<windlass_history::search::DecisionDefinition>(&feed);
    try_all_fields::<windlass_history::search::DecisionRequirements>(&feed);
}

#[test]
fn names_are_those_of_the_rest_api() {
    assert!(UserTaskField::named("candidateGroup").is_some());
    assert!(VariableField::named("scopeKey").is_some());
    assert!(MessageSubscriptionField::named("messageSubscriptionState").is_some());
    assert!(ProcessDefinitionField::named("isLatestVersion").is_some());
    assert!(DecisionDefinitionField::named("decisionRequirementsKey").is_some());
    assert!(DecisionRequirementsField::named("resourceName").is_some());
    assert!(JobField::named("nothing").is_none());
}

#[test]
fn the_latest_version_is_one() {
    let (mut feed, _dir) = feed();
    let mut second = deployed();
    let Some(windlass_record::Event::Flow(windlass_record::flow::FlowEvent::DefinitionDeployed(
        it,
    ))) = second.last_mut()
    else {
        panic!("the definition is last");
    };
    it.key = support::key(11);
    it.version = 2;
    let second = second.pop().unwrap();
    feed.record(5_000, &[second]);
    let filter =
        Filter::Field(ProcessDefinitionField::IsLatestVersion, Test::Equal(Value::Flag(true)));
    let search = Search { filter, ..Search::default() };
    let found = feed.history.search::<ProcessDefinition>(&search).unwrap();
    assert_eq!(found.items.iter().map(|it| (it.key, it.version)).collect::<Vec<_>>(), [(11, 2)]);
}
