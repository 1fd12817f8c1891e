//! Resources: deployed, told, deleted, and every way in which that is refused.

use tonic::Code;

use crate::common::{Bench, Client, complete};
use crate::flow::{NO_KEY, cancel, create, creation, deploy, file, job, refused};
use crate::protocol as p;
use crate::protocol::deployment::Metadata;

const PROCESS: (&str, &str) = file!("one-task.bpmn");

async fn delete(client: &mut Client, resource_key: i64) -> Result<(), tonic::Status> {
    let request = p::DeleteResourceRequest { resource_key, ..Default::default() };
    client.delete_resource(request).await.map(|_| ())
}

fn process(response: &p::DeployResourceResponse) -> &p::ProcessMetadata {
    let Some(Metadata::Process(process)) = &response.deployments[0].metadata else {
        panic!("{response:?}")
    };
    process
}

#[tokio::test]
async fn all_kinds_are_told_in_the_order_that_clients_know() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let files = [file!("form.form"), file!("decision-unique.dmn"), PROCESS];
    let response = deploy(&mut client, &files).await.unwrap();
    assert!(response.key > 0);
    assert_eq!(response.tenant_id, "<default>");
    let told: Vec<_> =
        response.deployments.iter().map(|it| it.metadata.as_ref().unwrap()).collect();
    let [
        Metadata::Process(process),
        Metadata::Decision(decision),
        Metadata::DecisionRequirements(graph),
        Metadata::Form(form),
    ] = told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((process.bpmn_process_id.as_str(), process.version), ("one-task", 1));
    assert_eq!(
        (process.resource_name.as_str(), process.tenant_id.as_str()),
        ("one-task.bpmn", "<default>")
    );
    assert_eq!(decision.dmn_decision_id, "ship-unique");
    assert_eq!(decision.dmn_decision_requirements_id, "ship-unique-drg");
    assert_eq!(decision.decision_requirements_key, graph.decision_requirements_key);
    assert_eq!(graph.resource_name, "decision-unique.dmn");
    assert_eq!((form.form_id.as_str(), form.version), ("scenario-form", 1));

    let again = deploy(&mut client, &files).await.unwrap();
    assert_eq!(again.deployments, response.deployments);
}

#[tokio::test]
async fn the_same_file_is_the_same_version_and_another_is_the_next() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let changed = format!("{} ", PROCESS.1);
    for (files, version) in [
        ([PROCESS], 1),
        ([PROCESS], 1),
        ([(PROCESS.0, changed.as_str())], 2),
        // Back to an earlier content is new again, and so is another name.
        ([PROCESS], 3),
        ([("other.bpmn", PROCESS.1)], 4),
    ] {
        let response = deploy(&mut client, &files).await.unwrap();
        assert_eq!(process(&response).version, version, "{}", files[0].0);
    }
}

#[tokio::test]
async fn what_cannot_be_deployed() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let whole = "Command 'CREATE' rejected with code 'INVALID_ARGUMENT': Expected to deploy new \
                 resources, but encountered the following errors:\n'a.bpmn': ";
    for (files, words) in [
        (vec![], "Expected to deploy at least one resource, but none given"),
        (vec![("a.bpmn", "<broken")], whole),
        (vec![("a.bpmn", "")], whole),
        (vec![PROCESS, ("a.bpmn", "<broken")], whole),
        (vec![("a.dmn", "<broken")], "'a.dmn': "),
        (vec![("a.form", "{")], "'a.form': "),
        (vec![("", "x")], "'': unknown resource type"),
        (vec![PROCESS, ("b.bpmn", PROCESS.1)], "one-task"),
    ] {
        let status = deploy(&mut client, &files).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(words), "{status}");
    }
    // All or nothing.
    let request = creation("one-task", "");
    refused(client.create_process_instance(request).await, Code::NotFound, "but none found");
}

#[tokio::test]
async fn the_older_way_knows_processes_only() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let of = |files: &[(&str, &str)]| p::DeployProcessRequest {
        processes: files
            .iter()
            .map(|(name, definition)| p::ProcessRequestObject {
                name: (*name).to_owned(),
                definition: definition.as_bytes().to_vec().into(),
            })
            .collect(),
    };
    let response = client.deploy_process(of(&[PROCESS])).await.unwrap().into_inner();
    assert_eq!(response.processes[0].bpmn_process_id, "one-task");
    assert!(response.key > 0);
    let invalid = Code::InvalidArgument;
    let form = client.deploy_process(of(&[file!("form.form")])).await;
    refused(form, invalid, "'form.form': unknown resource type");
    refused(client.deploy_process(of(&[])).await, invalid, "but none given");
}

#[tokio::test]
async fn deleted_is_gone_and_what_runs_is_not_deleted() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    refused(
        delete(&mut client, NO_KEY).await,
        Code::NotFound,
        &format!("Expected to delete resource but no resource found with key `{NO_KEY}`"),
    );
    let first = process(&deploy(&mut client, &[PROCESS]).await.unwrap()).process_definition_key;
    let changed = format!("{} ", PROCESS.1);
    let second = deploy(&mut client, &[(PROCESS.0, changed.as_str())]).await.unwrap();
    let second = process(&second).process_definition_key;
    let instance = create(&mut client, "one-task", "").await;
    let in_use = "but there are still running instances";
    refused(delete(&mut client, second).await, Code::FailedPrecondition, in_use);
    cancel(&mut client, instance).await.unwrap();
    delete(&mut client, second).await.unwrap();
    refused(delete(&mut client, second).await, Code::NotFound, "no resource found");

    // The one before it is the newest again.
    create(&mut client, "one-task", "").await;
    let job = job(&mut client, "one-task").await;
    assert_eq!(job.process_definition_key, first);
    complete(&mut client, job.key).await.unwrap();
    delete(&mut client, first).await.unwrap();
    let request = creation("one-task", "");
    refused(client.create_process_instance(request).await, Code::NotFound, "but none found");
    let next = deploy(&mut client, &[PROCESS]).await.unwrap();
    // The number of a deleted version is not used again.
    assert_eq!(process(&next).version, 3);

    let history = p::DeleteResourceRequest { delete_history: Some(true), ..Default::default() };
    refused(client.delete_resource(history).await, Code::Unimplemented, "not supported yet");
}
