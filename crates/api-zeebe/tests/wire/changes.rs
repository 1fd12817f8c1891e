//! Instances changed by hand, modified and migrated, and every way in which that is refused.

use tonic::Code;

use crate::common::{Bench, Client, complete};
use crate::flow::{NO_KEY, awaited, create, deploy, deployed, file, job, json, refused};
use crate::protocol as p;
use crate::protocol::deployment::Metadata;
use crate::protocol::migrate_process_instance_request as migrate;
use crate::protocol::modify_process_instance_request as modify;

fn enter(element_id: &str) -> modify::ActivateInstruction {
    modify::ActivateInstruction { element_id: element_id.to_owned(), ..Default::default() }
}

fn end(element_instance_key: i64) -> modify::TerminateInstruction {
    modify::TerminateInstruction { element_instance_key, ..Default::default() }
}

fn give(variables: &str, scope_id: &str) -> modify::VariableInstruction {
    modify::VariableInstruction { variables: variables.to_owned(), scope_id: scope_id.to_owned() }
}

fn changed(
    process_instance_key: i64,
    activate_instructions: Vec<modify::ActivateInstruction>,
    terminate_instructions: Vec<modify::TerminateInstruction>,
) -> p::ModifyProcessInstanceRequest {
    p::ModifyProcessInstanceRequest {
        process_instance_key,
        activate_instructions,
        terminate_instructions,
        ..Default::default()
    }
}

#[tokio::test]
async fn an_element_is_entered_again_with_variables() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("one-task.bpmn")]).await;
    let instance = create(&mut client, "one-task", r#"{"a":1}"#).await;
    let first = job(&mut client, "one-task").await;
    let entered = modify::ActivateInstruction {
        variable_instructions: vec![give(r#"{"g":1}"#, ""), give(r#"{"l":2}"#, "task")],
        // Clients say "the one there is" with 0 or -1.
        ancestor_element_instance_key: -1,
        ..enter("task")
    };
    let request = changed(instance, vec![entered], vec![end(first.element_instance_key)]);
    client.modify_process_instance(request).await.unwrap();
    refused(complete(&mut client, first.key).await, Code::NotFound, "no such job");
    let second = job(&mut client, "one-task").await;
    assert_eq!(json(&second.variables), json(r#"{"a":1,"g":1,"l":2}"#));
    // The last element ended by hand ends the instance.
    let request = changed(instance, vec![], vec![end(second.element_instance_key)]);
    client.modify_process_instance(request).await.unwrap();
    let request = changed(instance, vec![], vec![]);
    refused(client.modify_process_instance(request).await, Code::NotFound, "no process instance");
}

#[tokio::test]
async fn what_cannot_be_modified() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("one-task.bpmn")]).await;
    let instance = create(&mut client, "one-task", "").await;
    let taken = job(&mut client, "one-task").await;
    client.modify_process_instance(changed(instance, vec![], vec![])).await.unwrap();
    let with = |variables| modify::ActivateInstruction {
        variable_instructions: vec![variables],
        ..enter("task")
    };
    let under = |ancestor_element_instance_key| modify::ActivateInstruction {
        ancestor_element_instance_key,
        ..enter("task")
    };
    let unknown = format!(
        "Command 'MODIFY' rejected with code 'NOT_FOUND': Expected to modify process instance but \
         no process instance found with key '{NO_KEY}'"
    );
    let request = changed(NO_KEY, vec![], vec![]);
    refused(client.modify_process_instance(request).await, Code::NotFound, &unknown);
    let task = taken.element_instance_key;
    for (activate, terminate, words) in [
        (Some(enter("zip")), None, "element that could not be found: 'zip'"),
        (Some(enter("start")), None, "elements that are unsupported: 'start'"),
        (Some(under(NO_KEY)), None, "could not be found"),
        (Some(under(task)), None, "not one of its scopes"),
        (Some(with(give("[", ""))), None, "Invalid JSON value"),
        (Some(with(give("[]", ""))), None, "but was 'ARRAY'"),
        (Some(with(give("{}", "zip"))), None, "could not be found: 'zip'"),
        (Some(with(give("{}", "end"))), None, "does not contain it"),
        (None, Some(end(NO_KEY)), "could not be found"),
    ] {
        let request =
            changed(instance, activate.into_iter().collect(), terminate.into_iter().collect());
        let answer = client.modify_process_instance(request).await;
        refused(answer, Code::InvalidArgument, words);
    }
    let both = modify::TerminateInstruction { element_id: "task".to_owned(), ..end(task) };
    let answer = client.modify_process_instance(changed(instance, vec![], vec![both])).await;
    refused(answer, Code::InvalidArgument, "both were given");
    let nobody = changed(instance, vec![], vec![end_all("end")]);
    let answer = client.modify_process_instance(nobody).await;
    refused(answer, Code::InvalidArgument, "no active instance");
    complete(&mut client, taken.key).await.unwrap();
}

fn end_all(element_id: &str) -> modify::TerminateInstruction {
    modify::TerminateInstruction { element_id: element_id.to_owned(), ..Default::default() }
}

#[tokio::test]
async fn tokens_are_moved_and_ended_by_the_name_of_their_element() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("subprocess-mapping.bpmn")]).await;
    let instance = create(&mut client, "subprocess-mapping", r#"{"a":1}"#).await;
    let first = job(&mut client, "subprocess-mapping").await;
    let moved = modify::MoveInstruction {
        source_element_id: "work".to_owned(),
        target_element_id: "after".to_owned(),
        variable_instructions: vec![give(r#"{"l":2}"#, "after")],
        infer_ancestor_scope_from_source_hierarchy: true,
        ..Default::default()
    };
    let request = p::ModifyProcessInstanceRequest {
        move_instructions: vec![moved],
        ..changed(instance, vec![], vec![])
    };
    client.modify_process_instance(request).await.unwrap();
    refused(complete(&mut client, first.key).await, Code::NotFound, "no such job");
    let second = job(&mut client, "subprocess-after").await;
    assert_eq!(json(&second.variables), json(r#"{"a":1,"l":2}"#));
    let request = changed(instance, vec![], vec![end_all("after")]);
    client.modify_process_instance(request).await.unwrap();
    let request = changed(instance, vec![], vec![]);
    refused(client.modify_process_instance(request).await, Code::NotFound, "no process instance");
}

async fn definition(client: &mut Client, files: (&str, &str)) -> i64 {
    let response = deploy(client, &[files]).await.unwrap();
    let Some(Metadata::Process(process)) = &response.deployments[0].metadata else {
        panic!("{response:?}")
    };
    process.process_definition_key
}

fn migration(
    process_instance_key: i64,
    target_process_definition_key: i64,
    mappings: &[(&str, &str)],
) -> p::MigrateProcessInstanceRequest {
    let mapping_instructions = mappings
        .iter()
        .map(|(source, target)| migrate::MappingInstruction {
            source_element_id: (*source).to_owned(),
            target_element_id: (*target).to_owned(),
        })
        .collect();
    p::MigrateProcessInstanceRequest {
        process_instance_key,
        migration_plan: Some(migrate::MigrationPlan {
            target_process_definition_key,
            mapping_instructions,
        }),
        operation_reference: None,
    }
}

#[tokio::test]
async fn an_instance_goes_on_with_another_definition() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    definition(&mut client, file!("version-two-migrate-a.bpmn")).await;
    let target = definition(&mut client, file!("version-two-migrate-b.bpmn")).await;
    let instance = create(&mut client, "migrate-a", "").await;
    let taken = job(&mut client, "migrate-job").await;
    let request = migration(instance, target, &[("old", "fresh")]);
    client.migrate_process_instance(request).await.unwrap();
    // What was taken before is still good.
    complete(&mut client, taken.key).await.unwrap();
    let next = job(&mut client, "migrate-extra").await;
    assert_eq!(next.process_instance_key, instance);
    assert_eq!((next.bpmn_process_id.as_str(), next.process_definition_key), ("migrate-b", target));

    let instance = create(&mut client, "migrate-a", "").await;
    let request = migration(instance, target, &[("old", "fresh")]);
    client.migrate_process_instance(request).await.unwrap();
    let taken = job(&mut client, "migrate-job").await;
    assert_eq!((taken.element_id.as_str(), taken.bpmn_process_id.as_str()), ("fresh", "migrate-b"));
}

#[tokio::test]
async fn what_cannot_be_migrated() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    definition(&mut client, file!("version-two-migrate-a.bpmn")).await;
    let target = definition(&mut client, file!("version-two-migrate-b.bpmn")).await;
    let instance = create(&mut client, "migrate-a", "").await;
    let (wrong, argument) = (Code::FailedPrecondition, Code::InvalidArgument);
    for (request, code, words) in [
        (
            migration(NO_KEY, target, &[]),
            Code::NotFound,
            "Expected to migrate process instance but no process instance found with key",
        ),
        (
            migration(instance, NO_KEY, &[]),
            Code::NotFound,
            "to process definition but no process definition found with key",
        ),
        (
            p::MigrateProcessInstanceRequest {
                process_instance_key: instance,
                ..Default::default()
            },
            Code::NotFound,
            "no process definition found with key '0'",
        ),
        (migration(instance, target, &[]), wrong, "'old' is active but has no mapping"),
        (migration(instance, target, &[("old", "end")]), wrong, "another type"),
        (migration(instance, target, &[("zip", "fresh")]), argument, "'zip'"),
        (migration(instance, target, &[("old", "zip")]), argument, "'zip'"),
        (migration(instance, target, &[("old", "fresh"), ("old", "extra")]), argument, "twice"),
    ] {
        refused(client.migrate_process_instance(request).await, code, words);
    }
    let taken = job(&mut client, "migrate-job").await;
    assert_eq!(taken.element_id, "old");
}

#[tokio::test]
async fn a_process_without_work_needs_nobody() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("pass-through.bpmn")]).await;
    let request = awaited("pass-through", "");
    client.create_process_instance_with_result(request).await.unwrap();
}
