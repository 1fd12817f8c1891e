//! Messages, signals and decisions: what they do, and every way in which they are refused.

use tonic::Code;

use crate::common::Bench;
use crate::flow::{NO_KEY, awaited, create, deployed, file, job, json, publish, refused};
use crate::protocol as p;

#[tokio::test]
async fn a_message_reaches_who_waits_and_who_comes_in_time() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("message-catch.bpmn")]).await;
    // It is buffered, so the order does not matter.
    assert!(publish(&mut client, "scenario-catch", "k1").await > 0);
    let request = awaited("message-catch", r#"{"key":"k1"}"#);
    client.create_process_instance_with_result(request).await.unwrap();

    let mut other = bench.client().await;
    let waits = tokio::spawn(async move {
        let request = awaited("message-catch", r#"{"key":7}"#);
        other.create_process_instance_with_result(request).await.unwrap().into_inner()
    });
    let request = p::PublishMessageRequest {
        name: "scenario-catch".to_owned(),
        correlation_key: "7".to_owned(),
        time_to_live: 60_000,
        variables: r#"{"p":1}"#.to_owned(),
        ..Default::default()
    };
    client.publish_message(request).await.unwrap();
    assert_eq!(json(&waits.await.unwrap().variables), json(r#"{"key":7,"p":1}"#));
}

#[tokio::test]
async fn what_cannot_be_published() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let base = p::PublishMessageRequest {
        name: "m".to_owned(),
        correlation_key: "k".to_owned(),
        message_id: "id1".to_owned(),
        time_to_live: 60_000,
        ..Default::default()
    };
    for request in [
        base.clone(),
        p::PublishMessageRequest { correlation_key: "other".to_owned(), ..base.clone() },
        p::PublishMessageRequest { message_id: "id2".to_owned(), time_to_live: -1, ..base.clone() },
        p::PublishMessageRequest { message_id: "id2".to_owned(), ..base.clone() },
        p::PublishMessageRequest::default(),
    ] {
        client.publish_message(request).await.unwrap();
    }
    for (request, code, words) in [
        (
            base.clone(),
            Code::AlreadyExists,
            "Command 'PUBLISH' rejected with code 'ALREADY_EXISTS': Expected to publish a new \
             message with id 'id1', but a message with that id was already published",
        ),
        (
            p::PublishMessageRequest { variables: "[]".to_owned(), ..base.clone() },
            Code::InvalidArgument,
            "but was 'ARRAY'",
        ),
        (
            p::PublishMessageRequest { tenant_id: "x".to_owned(), ..base.clone() },
            Code::InvalidArgument,
            "gRPC request PublishMessage with tenant identifier 'x'",
        ),
        (
            p::PublishMessageRequest { business_id: Some("b".to_owned()), ..base.clone() },
            Code::Unimplemented,
            "not supported yet",
        ),
    ] {
        refused(client.publish_message(request).await, code, words);
    }
}

#[tokio::test]
async fn a_signal_reaches_everybody() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("signal-start.bpmn")]).await;
    let base = p::BroadcastSignalRequest {
        signal_name: "scenario-signal-start".to_owned(),
        variables: r#"{"s":1}"#.to_owned(),
        ..Default::default()
    };
    let bad = p::BroadcastSignalRequest { variables: "{".to_owned(), ..base.clone() };
    refused(client.broadcast_signal(bad).await, Code::InvalidArgument, "Invalid JSON value");
    let bad = p::BroadcastSignalRequest { tenant_id: "x".to_owned(), ..base.clone() };
    refused(client.broadcast_signal(bad).await, Code::InvalidArgument, "BroadcastSignal");
    let answer = client.broadcast_signal(base).await.unwrap().into_inner();
    assert!(answer.key > 0);
    assert_eq!(answer.tenant_id, "<default>");
}

#[tokio::test]
async fn a_decision_tells_how_it_was_made() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("decision-unique.dmn")]).await;
    let base = p::EvaluateDecisionRequest {
        decision_id: "ship-unique".to_owned(),
        variables: r#"{"amount":50}"#.to_owned(),
        ..Default::default()
    };
    let answer = client.evaluate_decision(base.clone()).await.unwrap().into_inner();
    assert_eq!(json(&answer.decision_output), json(r#"{"way":"post","fee":5}"#));
    assert_eq!(answer.decision_id, "ship-unique");
    assert_eq!((answer.decision_version, answer.tenant_id.as_str()), (1, "<default>"));
    assert_eq!(answer.decision_requirements_id, "ship-unique-drg");
    assert_eq!((answer.failed_decision_id.as_str(), answer.failure_message.as_str()), ("", ""));
    let [decision] = &answer.evaluated_decisions[..] else { panic!("{answer:?}") };
    assert_eq!(decision.decision_type, "DECISION_TABLE");
    let [input] = &decision.evaluated_inputs[..] else { panic!("{decision:?}") };
    assert_eq!(
        (input.input_id.as_str(), input.input_name.as_str(), input.input_value.as_str()),
        ("ship-unique_in1", "amount", "50")
    );
    let [rule] = &decision.matched_rules[..] else { panic!("{decision:?}") };
    assert_eq!((rule.rule_id.as_str(), rule.rule_index), ("ship-unique_r1", 1));
    let outputs: Vec<_> = rule
        .evaluated_outputs
        .iter()
        .map(|it| (it.output_id.as_str(), it.output_name.as_str(), it.output_value.as_str()))
        .collect();
    assert_eq!(
        outputs,
        [("ship-unique_out1", "way", "\"post\""), ("ship-unique_out2", "fee", "5")]
    );

    let by_key = p::EvaluateDecisionRequest {
        decision_key: answer.decision_key,
        decision_id: String::new(),
        ..base.clone()
    };
    let again = client.evaluate_decision(by_key).await.unwrap().into_inner();
    assert_eq!(again.decision_output, answer.decision_output);
    // The id counts more than the key.
    let both = p::EvaluateDecisionRequest { decision_key: NO_KEY, ..base };
    client.evaluate_decision(both).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_evaluated() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let base = p::EvaluateDecisionRequest { decision_id: "nope".to_owned(), ..Default::default() };
    for (request, code, words) in [
        (
            base.clone(),
            Code::NotFound,
            "Command 'EVALUATE' rejected with code 'NOT_FOUND': Expected to evaluate decision \
             'nope', but no decision found for id 'nope'",
        ),
        (
            p::EvaluateDecisionRequest::default(),
            Code::NotFound,
            "Expected to evaluate decision '0', but no decision found for key '0'",
        ),
        (
            p::EvaluateDecisionRequest { variables: "1".to_owned(), ..base.clone() },
            Code::InvalidArgument,
            "but was 'INTEGER'",
        ),
        (
            p::EvaluateDecisionRequest { tenant_id: "x".to_owned(), ..base },
            Code::InvalidArgument,
            "EvaluateDecision",
        ),
    ] {
        refused(client.evaluate_decision(request).await, code, words);
    }
}

#[tokio::test]
async fn an_error_of_a_job_is_caught_with_what_it_brings() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    deployed(&mut client, &[file!("error-event-subprocess.bpmn")]).await;
    create(&mut client, "error-event-subprocess", "").await;
    let taken = job(&mut client, "error-esp").await;
    let request = p::ThrowErrorRequest {
        job_key: taken.key,
        error_code: "BROKEN".to_owned(),
        variables: r#"{"ev":1}"#.to_owned(),
        ..Default::default()
    };
    client.throw_error(request).await.unwrap();
    let fix = job(&mut client, "error-esp-fix").await;
    assert_eq!(json(&fix.variables)["ev"], 1);
}
