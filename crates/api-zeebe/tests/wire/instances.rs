//! Process instances: created, waited for, cancelled, and every way in which that is refused.

use std::time::{Duration, Instant};

use tonic::Code;

use crate::common::{Bench, Client, complete};
use crate::flow::{
    NO_KEY, awaited, cancel, complete_with, create, creation, deploy, deployed, file, job, json,
    refused, resolve_near,
};
use crate::protocol as p;
use crate::protocol::deployment::Metadata;

async fn bench() -> (Bench, Client) {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("one-task.bpmn"), file!("no-task.bpmn")]).await;
    (bench, client)
}

#[tokio::test]
async fn by_id_by_version_or_by_key() {
    let (_bench, mut client) = bench().await;
    let changed = format!("{} ", file!("no-task.bpmn").1);
    let second = deploy(&mut client, &[("no-task.bpmn", &changed)]).await.unwrap();
    let Some(Metadata::Process(second)) = second.deployments[0].metadata.clone() else {
        panic!("{second:?}")
    };
    let base = creation("no-task", "");
    for (request, version) in [
        (base.clone(), 2),
        (p::CreateProcessInstanceRequest { version: -5, ..base.clone() }, 2),
        (p::CreateProcessInstanceRequest { version: 1, ..base.clone() }, 1),
        // The id counts more than the key.
        (p::CreateProcessInstanceRequest { process_definition_key: NO_KEY, ..base.clone() }, 2),
        (
            p::CreateProcessInstanceRequest {
                process_definition_key: second.process_definition_key,
                bpmn_process_id: String::new(),
                ..base.clone()
            },
            2,
        ),
    ] {
        let answer = client.create_process_instance(request).await.unwrap().into_inner();
        assert_eq!(answer.version, version);
        assert_eq!(answer.bpmn_process_id, "no-task");
        assert_eq!(answer.tenant_id, "<default>");
        assert!(answer.process_instance_key > 0);
    }
}

#[tokio::test]
async fn what_cannot_be_created() {
    let (_bench, mut client) = bench().await;
    deployed(&mut client, &[file!("message-start.bpmn"), file!("multi-subprocess.bpmn")]).await;
    let base = creation("no-task", "");
    let id = |id: &str| creation(id, "");
    let variables = |variables: &str| creation("no-task", variables);
    let at = |process: &str, element: &str| p::CreateProcessInstanceRequest {
        start_instructions: vec![p::ProcessInstanceCreationStartInstruction {
            element_id: element.to_owned(),
        }],
        ..creation(process, "")
    };
    let keyed = |process_definition_key| p::CreateProcessInstanceRequest {
        process_definition_key,
        ..creation("", "")
    };
    let invalid = Code::InvalidArgument;
    for (request, code, words) in [
        (
            id("nope"),
            Code::NotFound,
            "Command 'CREATE' rejected with code 'NOT_FOUND': Expected to find process definition \
             with process ID 'nope', but none found",
        ),
        (keyed(0), Code::NotFound, "process definition with key '0', but none found"),
        (keyed(NO_KEY), Code::NotFound, "but none found"),
        (
            p::CreateProcessInstanceRequest { version: 77, ..base.clone() },
            Code::NotFound,
            "process ID 'no-task' and version '77', but none found",
        ),
        (
            p::CreateProcessInstanceRequest { version: 0, ..base.clone() },
            Code::NotFound,
            "version '0'",
        ),
        (variables("[]"), invalid, "root level object, but was 'ARRAY'"),
        (variables("\"x\""), invalid, "but was 'STRING'"),
        (variables("1"), invalid, "but was 'INTEGER'"),
        (variables("1.5"), invalid, "but was 'FLOAT'"),
        (variables("true"), invalid, "but was 'BOOLEAN'"),
        (variables("{"), invalid, "Invalid JSON value"),
        (
            id("message-start"),
            Code::FailedPrecondition,
            "Command 'CREATE' rejected with code 'INVALID_STATE': Expected to create instance of \
             process with none start event, but there is no such event",
        ),
        (at("no-task", "zip"), invalid, "no element found with id 'zip'"),
        (at("no-task", "start"), invalid, "id 'start' cannot be started at"),
        (at("multi-subprocess", "work"), invalid, "inside a multi-instance"),
        (
            p::CreateProcessInstanceRequest { tenant_id: "x".to_owned(), ..base.clone() },
            invalid,
            "Expected to handle gRPC request CreateProcessInstance with tenant identifier 'x', but \
             multi-tenancy is disabled",
        ),
        (
            p::CreateProcessInstanceRequest { tags: vec!["1".to_owned()], ..base.clone() },
            invalid,
            "a tag",
        ),
        (
            p::CreateProcessInstanceRequest { business_id: Some("b".repeat(257)), ..base.clone() },
            invalid,
            "a business id",
        ),
        (
            p::CreateProcessInstanceRequest {
                runtime_instructions: vec![p::ProcessInstanceCreationRuntimeInstruction::default()],
                ..base.clone()
            },
            Code::Unimplemented,
            "not supported yet",
        ),
    ] {
        let request_again = p::CreateProcessInstanceWithResultRequest {
            request: Some(request.clone()),
            request_timeout: 1_000,
            fetch_variables: Vec::new(),
        };
        refused(client.create_process_instance(request).await, code, words);
        let words = words.replace("'CREATE'", "'CREATE_WITH_AWAITING_RESULT'");
        let words = words.replace("Instance with tenant", "InstanceWithResult with tenant");
        refused(client.create_process_instance_with_result(request_again).await, code, &words);
    }
}

#[tokio::test]
async fn variables_may_be_nothing() {
    let (_bench, mut client) = bench().await;
    for variables in ["", "  ", "null", "{}", "{\"a\":1}"] {
        create(&mut client, "no-task", variables).await;
    }
}

#[tokio::test]
async fn a_business_id_is_of_one_live_instance() {
    let (_bench, mut client) = bench().await;
    let request = p::CreateProcessInstanceRequest {
        business_id: Some("order-1".to_owned()),
        tags: vec!["vip".to_owned()],
        ..creation("one-task", "")
    };
    let answer = client.create_process_instance(request.clone()).await.unwrap().into_inner();
    assert_eq!(answer.business_id.as_deref(), Some("order-1"));
    assert_eq!(answer.tags, ["vip"]);
    let job = job(&mut client, "one-task").await;
    assert_eq!(
        (job.business_id.as_str(), job.tags.as_slice()),
        ("order-1", answer.tags.as_slice())
    );
    let taken = client.create_process_instance(request.clone()).await;
    refused(taken, Code::AlreadyExists, "business id 'order-1'");
    complete(&mut client, job.key).await.unwrap();
    client.create_process_instance(request).await.unwrap();
}

#[tokio::test]
async fn an_end_is_waited_for_and_its_variables_are_filtered() {
    let (_bench, mut client) = bench().await;
    for (fetch, expected) in
        [(vec![], r#"{"a":1,"b":{"c":[2]}}"#), (vec!["a", "zz"], r#"{"a":1}"#), (vec!["zz"], "{}")]
    {
        let request = p::CreateProcessInstanceWithResultRequest {
            fetch_variables: fetch.into_iter().map(ToOwned::to_owned).collect(),
            ..awaited("no-task", r#"{"a":1,"b":{"c":[2]}}"#)
        };
        let answer = client.create_process_instance_with_result(request).await.unwrap();
        let answer = answer.into_inner();
        assert_eq!(json(&answer.variables), json(expected));
        assert_eq!((answer.bpmn_process_id.as_str(), answer.version), ("no-task", 1));
        assert_eq!(answer.tenant_id, "<default>");
    }
}

#[tokio::test]
async fn an_end_that_a_worker_brings_about_is_answered_at_once() {
    let (bench, mut client) = bench().await;
    let mut worker = bench.client().await;
    let work = tokio::spawn(async move {
        let job = job(&mut worker, "one-task").await;
        complete_with(&mut worker, job.key, r#"{"done":true}"#).await;
    });
    let since = Instant::now();
    let request = awaited("one-task", r#"{"a":1}"#);
    let answer = client.create_process_instance_with_result(request).await.unwrap().into_inner();
    assert_eq!(json(&answer.variables), json(r#"{"a":1,"done":true}"#));
    assert!(since.elapsed() < Duration::from_secs(5));
    work.await.unwrap();
}

#[tokio::test]
async fn an_end_that_does_not_come_is_a_deadline_and_the_instance_goes_on() {
    let (_bench, mut client) = bench().await;
    let since = Instant::now();
    let request = p::CreateProcessInstanceWithResultRequest {
        request_timeout: 300,
        ..awaited("one-task", "")
    };
    let answer = client.create_process_instance_with_result(request).await;
    refused(answer, Code::DeadlineExceeded, "Time out between gateway and broker");
    let waited = since.elapsed();
    // The engine counts whole milliseconds: the first of them may have begun already.
    assert!(waited >= Duration::from_millis(299), "{waited:?}");
    assert!(waited < Duration::from_millis(2_000), "{waited:?}");
    let job = job(&mut client, "one-task").await;
    complete(&mut client, job.key).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_instance_has_no_result() {
    let (bench, mut client) = bench().await;
    let mut other = bench.client().await;
    let ends = tokio::spawn(async move {
        let job = job(&mut other, "one-task").await;
        cancel(&mut other, job.process_instance_key).await.unwrap();
        let completed = complete(&mut other, job.key).await;
        refused(completed, Code::NotFound, "no such job was found");
    });
    let request = p::CreateProcessInstanceWithResultRequest {
        request_timeout: 700,
        ..awaited("one-task", "")
    };
    let answer = client.create_process_instance_with_result(request).await;
    refused(answer, Code::DeadlineExceeded, "Time out");
    ends.await.unwrap();
}

#[tokio::test]
async fn starts_where_it_is_told_to() {
    let (_bench, mut client) = bench().await;
    deployed(&mut client, &[file!("ten-tasks.bpmn"), file!("message-start.bpmn")]).await;
    let request = p::CreateProcessInstanceRequest {
        start_instructions: vec![p::ProcessInstanceCreationStartInstruction {
            element_id: "end".to_owned(),
        }],
        ..creation("one-task", "")
    };
    let request = p::CreateProcessInstanceWithResultRequest {
        request: Some(request),
        request_timeout: 5_000,
        fetch_variables: Vec::new(),
    };
    client.create_process_instance_with_result(request).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_cancelled() {
    let (_bench, mut client) = bench().await;
    deployed(&mut client, &[file!("call-activity.bpmn"), file!("call-child.bpmn")]).await;
    let none = "Expected to cancel a process instance with key";
    for key in [0, -1, 42, NO_KEY] {
        refused(cancel(&mut client, key).await, Code::NotFound, none);
    }
    let root = create(&mut client, "call-activity", "").await;
    let job = job(&mut client, "call-work").await;
    let child = job.process_instance_key;
    refused(
        cancel(&mut client, child).await,
        Code::FailedPrecondition,
        &format!(
            "with key '{child}', but it is created by a parent process instance. Cancel the root \
             process instance '{root}' instead."
        ),
    );
    let element = job.element_instance_key;
    refused(cancel(&mut client, element).await, Code::NotFound, "no such process was found");
    cancel(&mut client, root).await.unwrap();
    refused(cancel(&mut client, root).await, Code::NotFound, "no such process was found");
    refused(complete(&mut client, job.key).await, Code::NotFound, "no such job");
}

#[tokio::test]
async fn variables_are_set_where_they_are_or_exactly_here() {
    let (_bench, mut client) = bench().await;
    let set = |scope, variables: &str, local| p::SetVariablesRequest {
        element_instance_key: scope,
        variables: variables.to_owned(),
        local,
        operation_reference: None,
    };
    let instance = create(&mut client, "one-task", r#"{"a":1}"#).await;
    let taken = job(&mut client, "one-task").await;
    let task = taken.element_instance_key;
    for (request, code, words) in [
        (
            set(NO_KEY, "{}", false),
            Code::NotFound,
            "Command 'UPDATE' rejected with code 'NOT_FOUND': Expected to update variables for \
             element with key",
        ),
        (set(0, "{}", true), Code::NotFound, "no such element was found"),
        (set(task, "[]", true), Code::InvalidArgument, "but was 'ARRAY'"),
        (set(task, "{", true), Code::InvalidArgument, "Invalid JSON value"),
        // JSON is looked at first.
        (set(NO_KEY, "{", false), Code::InvalidArgument, "Invalid JSON value"),
    ] {
        refused(client.set_variables(request).await, code, words);
    }
    for request in [
        set(task, r#"{"a":2,"new":3}"#, false),
        set(task, r#"{"here":4}"#, true),
        set(instance, r#"{"above":5}"#, true),
        set(task, "", false),
    ] {
        assert!(client.set_variables(request).await.unwrap().into_inner().key > 0);
    }
    let request = p::FailJobRequest { job_key: taken.key, retries: 1, ..Default::default() };
    client.fail_job(request).await.unwrap();
    let again = job(&mut client, "one-task").await;
    assert_eq!(json(&again.variables), json(r#"{"a":2,"new":3,"here":4,"above":5}"#));
    complete(&mut client, again.key).await.unwrap();
    refused(
        client.set_variables(set(instance, "{}", false)).await,
        Code::NotFound,
        "no such element was found",
    );
}

#[tokio::test]
async fn an_incident_of_an_element_is_resolved_by_mending_its_cause() {
    let (_bench, mut client) = bench().await;
    deployed(&mut client, &[file!("exclusive-no-default.bpmn")]).await;
    let instance = create(&mut client, "exclusive-no-default", "{}").await;
    let first = resolve_near(&mut client, instance).await.unwrap();
    // What was not mended is a new incident with a new key.
    let second = resolve_near(&mut client, first + 1).await.unwrap();
    assert!(second > first);
    cancel(&mut client, instance).await.unwrap();
    assert_eq!(resolve_near(&mut client, second + 1).await, None);
}
