//! Listeners of user tasks: what their workers get, and what comes of what they say. What people do
//! with user tasks is said on the other wire.

use tonic::{Code, Status};

use crate::common::{Bench, Client};
use crate::flow::{create, deployed, file, job, json, refused};
use crate::protocol as p;
use crate::protocol::activated_job::{JobKind, ListenerEventType};

async fn say(client: &mut Client, job_key: i64, result: p::JobResult) -> Result<(), Status> {
    let request = p::CompleteJobRequest { job_key, result: Some(result), ..Default::default() };
    client.complete_job(request).await.map(|_| ())
}

async fn set(client: &mut Client, element_instance_key: i64) -> Result<(), Status> {
    let variables = r#"{"note":1}"#.to_owned();
    let request = p::SetVariablesRequest {
        element_instance_key,
        variables,
        local: true,
        ..Default::default()
    };
    client.set_variables(request).await.map(|_| ())
}

fn corrected(corrections: p::JobResultCorrections) -> p::JobResult {
    let kind = Some("userTask".to_owned());
    p::JobResult { r#type: kind, corrections: Some(corrections), ..Default::default() }
}

fn denied(reason: &str) -> p::JobResult {
    let reason = Some(reason.to_owned());
    p::JobResult { denied: Some(true), denied_reason: reason, ..Default::default() }
}

#[tokio::test]
async fn a_listener_gets_its_user_task_and_corrects_it() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("task-listeners.bpmn")]).await;
    create(&mut client, "task-listeners", r#"{"b":"ann","flag":true}"#).await;
    let made = job(&mut client, "listen-creating").await;
    let (kind, event) = (made.kind(), made.listener_event_type());
    assert_eq!((kind, event), (JobKind::TaskListener, ListenerEventType::Creating));
    let task = made.user_task.clone().unwrap();
    assert_eq!(
        task,
        p::UserTaskProperties {
            assignee: Some("ann".to_owned()),
            candidate_groups: vec!["clerks".to_owned(), "bosses".to_owned()],
            priority: Some(50),
            user_task_key: task.user_task_key,
            ..Default::default()
        }
    );
    let headers = json(&made.custom_headers);
    assert_eq!(headers["lane"], "b");
    assert_eq!(headers["io.camunda.zeebe:assignee"], "ann");
    refused(
        say(&mut client, made.key, denied("")).await,
        Code::InvalidArgument,
        "cannot be denied",
    );
    let who = p::JobResultCorrections { assignee: Some("eve".to_owned()), ..Default::default() };
    let said = say(&mut client, made.key, corrected(who.clone())).await;
    refused(said, Code::InvalidArgument, "the process says");
    for priority in [-1, 101] {
        let wrong = p::JobResultCorrections { priority: Some(priority), ..Default::default() };
        let said = say(&mut client, made.key, corrected(wrong)).await;
        refused(said, Code::InvalidArgument, "between 0 and 100");
    }
    let brings = p::CompleteJobRequest {
        job_key: made.key,
        variables: r#"{"x":1}"#.to_owned(),
        ..Default::default()
    };
    let said = client.complete_job(brings).await.map(|_| ());
    refused(said, Code::InvalidArgument, "no variables");
    say(&mut client, made.key, p::JobResult::default()).await.unwrap();

    let first = job(&mut client, "listen-assigning-1").await;
    assert_eq!(first.listener_event_type(), ListenerEventType::Assigning);
    assert_eq!(
        (first.retries, first.user_task.unwrap().changed_attributes),
        (2, vec!["assignee".to_owned()])
    );
    let throw = p::ThrowErrorRequest {
        job_key: first.key,
        error_code: "X".to_owned(),
        ..Default::default()
    };
    let thrown = client.throw_error(throw).await;
    refused(thrown.map(|_| ()), Code::FailedPrecondition, "from TASK_LISTENER job");
    let list = |name: &str| Some(p::StringList { values: vec![name.to_owned()] });
    let all = p::JobResultCorrections {
        due_date: Some("2030-01-01T00:00:00Z".to_owned()),
        follow_up_date: Some("2029-01-01T00:00:00Z".to_owned()),
        candidate_users: list("u"),
        candidate_groups: list("g"),
        priority: Some(7),
        ..who
    };
    say(&mut client, first.key, corrected(all)).await.unwrap();
    let second = job(&mut client, "listen-assigning-2").await.user_task.unwrap();
    let names = [
        "assignee",
        "candidateGroupsList",
        "candidateUsersList",
        "dueDate",
        "followUpDate",
        "priority",
    ];
    assert_eq!(second.changed_attributes, names);
    assert_eq!((second.assignee.as_deref(), second.priority), (Some("eve"), Some(7)));
    assert_eq!(second.due_date.as_deref(), Some("2030-01-01T00:00:00Z"));
    assert_eq!(
        (second.candidate_users, second.candidate_groups),
        (vec!["u".to_owned()], vec!["g".to_owned()])
    );
}

#[tokio::test]
async fn variables_of_a_user_task_wait_for_its_listener() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("task-listeners.bpmn")]).await;
    create(&mut client, "task-listeners", r#"{"b":null,"flag":true}"#).await;
    let made = job(&mut client, "listen-creating").await;
    let scope = made.element_instance_key;
    refused(set(&mut client, scope).await, Code::FailedPrecondition, "state 'CREATING'");
    say(&mut client, made.key, p::JobResult::default()).await.unwrap();

    for verdict in [denied("not now"), p::JobResult::default()] {
        let is_denied = verdict.denied();
        let (mut asks, mut listens) = (client.clone(), client.clone());
        let (answered, ()) = tokio::join!(set(&mut asks, scope), async {
            let updating = job(&mut listens, "listen-updating").await;
            assert_eq!(json(&updating.variables)["note"], 1, "what is about to be written");
            let changed = updating.user_task.unwrap().changed_attributes;
            assert_eq!(changed, ["variables"]);
            refused(set(&mut listens, scope).await, Code::FailedPrecondition, "state 'UPDATING'");
            say(&mut listens, updating.key, verdict).await.unwrap();
        });
        if is_denied {
            refused(answered, Code::FailedPrecondition, "Reason to deny: 'not now'");
        } else {
            answered.unwrap();
        }
    }
}
