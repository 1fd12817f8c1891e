//! Processes as clients deploy and start them; what the tests of flows share.

use tonic::{Code, Status};

use crate::common::{Client, activate, activation};
use crate::protocol as p;

/// A key of this partition that names nothing.
pub(crate) const NO_KEY: i64 = (1 << 51) + 999_999_999;

/// A scenario's file.
macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../tests/zeebe/processes/", $name)))
    };
}
pub(crate) use file;

pub(crate) async fn deploy(
    client: &mut Client,
    files: &[(&str, &str)],
) -> Result<p::DeployResourceResponse, Status> {
    let resources = files
        .iter()
        .map(|(name, content)| p::Resource {
            name: (*name).to_owned(),
            content: content.as_bytes().to_vec().into(),
        })
        .collect();
    let request = p::DeployResourceRequest { resources, tenant_id: String::new() };
    Ok(client.deploy_resource(request).await?.into_inner())
}

pub(crate) async fn deployed(client: &mut Client, files: &[(&str, &str)]) {
    deploy(client, files).await.unwrap();
}

pub(crate) fn creation(process_id: &str, variables: &str) -> p::CreateProcessInstanceRequest {
    p::CreateProcessInstanceRequest {
        bpmn_process_id: process_id.to_owned(),
        version: -1,
        variables: variables.to_owned(),
        ..Default::default()
    }
}

pub(crate) async fn create(client: &mut Client, process_id: &str, variables: &str) -> i64 {
    let request = creation(process_id, variables);
    client.create_process_instance(request).await.unwrap().into_inner().process_instance_key
}

pub(crate) fn awaited(
    process_id: &str,
    variables: &str,
) -> p::CreateProcessInstanceWithResultRequest {
    p::CreateProcessInstanceWithResultRequest {
        request: Some(creation(process_id, variables)),
        request_timeout: 10_000,
        fetch_variables: Vec::new(),
    }
}

/// The next job of a type, which must come soon.
pub(crate) async fn job(client: &mut Client, job_type: &str) -> p::ActivatedJob {
    let request = p::ActivateJobsRequest {
        max_jobs_to_activate: 1,
        request_timeout: 10_000,
        ..activation(job_type)
    };
    let jobs = activate(client, request).await.unwrap();
    jobs.into_iter().next().unwrap_or_else(|| panic!("no job of type {job_type} came"))
}

pub(crate) async fn complete_with(client: &mut Client, job_key: i64, variables: &str) {
    let variables = variables.to_owned();
    let request = p::CompleteJobRequest { job_key, variables, ..Default::default() };
    client.complete_job(request).await.unwrap();
}

pub(crate) async fn publish(client: &mut Client, name: &str, correlation_key: &str) -> i64 {
    let request = p::PublishMessageRequest {
        name: name.to_owned(),
        correlation_key: correlation_key.to_owned(),
        time_to_live: 60_000,
        ..Default::default()
    };
    client.publish_message(request).await.unwrap().into_inner().key
}

pub(crate) async fn cancel(client: &mut Client, process_instance_key: i64) -> Result<(), Status> {
    let request = p::CancelProcessInstanceRequest { process_instance_key, ..Default::default() };
    client.cancel_process_instance(request).await.map(|_| ())
}

pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// Resolves the newest incident. This wire does not tell keys of incidents; they are near what
/// they are about.
pub(crate) async fn resolve_near(client: &mut Client, key: i64) -> Option<i64> {
    for incident_key in key..key + 100 {
        let request = p::ResolveIncidentRequest { incident_key, ..Default::default() };
        match client.resolve_incident(request).await {
            Ok(_) => return Some(incident_key),
            Err(status) => assert_eq!(status.code(), Code::NotFound, "{status}"),
        }
    }
    None
}

/// Refused with this code and these words.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, words: &str) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{status}");
}
