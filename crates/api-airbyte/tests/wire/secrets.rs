//! Secrets: sealed in documents, masked in answers, opened only by who has the key.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api_airbyte::scope;
use windlass_api_airbyte::vault::Vault;

use crate::bench::{Bench, TENANT, WORKSPACE, text, write};

const MASK: &str = "**********";

async fn make(bench: &Bench, configuration: Value) -> Value {
    let mut configuration = configuration;
    configuration["sourceType"] = json!("faker");
    let body = json!({ "name": "s", "workspaceId": WORKSPACE, "configuration": configuration });
    bench.post("/sources", body).await.shown()
}

/// What a launcher reads and opens.
async fn opened(bench: &Bench, id: &str) -> Value {
    let (_, document) = bench.document("airbyte.source", id).await.unwrap();
    let mut configuration = document["configuration"].clone();
    let vault = Vault::at(&bench.dir.path().join("data/airbyte.key")).unwrap();
    vault.open(&scope(TENANT, "airbyte.source", id), &mut configuration).unwrap();
    configuration
}

#[tokio::test]
async fn a_secret_is_masked_sealed_kept_and_changed() {
    let bench = Bench::start().await;
    let given = json!({ "host": "h", "password": "hunter2", "credentials": { "api_key": "k1" } });
    let made = make(&bench, given.clone()).await;
    let masked = json!({ "host": "h", "password": MASK, "credentials": { "api_key": MASK } });
    assert_eq!(made["configuration"], masked);
    let id = text(&made["sourceId"]);
    let path = format!("/sources/{id}");
    assert_eq!(bench.get(&path).await.shown()["configuration"], masked);
    assert_eq!(bench.get("/sources").await.shown()["data"][0]["configuration"], masked);
    let (_, document) = bench.document("airbyte.source", &id).await.unwrap();
    assert!(!document.to_string().contains("hunter2"), "{document}");
    assert_eq!(opened(&bench, &id).await, given);

    // The mask that comes back keeps the secret.
    let back = json!({ "configuration": { "host": "i", "password": MASK } });
    bench.patch(&path, back).await.shown();
    let whole = json!({ "name": "s", "configuration": { "password": MASK, "credentials": {
        "api_key": "k2" } } });
    bench.put(&path, whole).await.shown();
    let expected = json!({ "password": "hunter2", "credentials": { "api_key": "k2" } });
    assert_eq!(opened(&bench, &id).await, expected);
    let nothing = json!({ "configuration": { "host": MASK } });
    bench.patch(&path, nothing).await.fails(400, "bad-request");
    let forged = json!({ "configuration": { "x": document["configuration"]["password"] } });
    bench.patch(&path, forged).await.fails(400, "bad-request");
}

#[tokio::test]
async fn the_spec_says_what_is_secret_once_it_is_known() {
    let mut bench = Bench::start().await;
    let definition = "dfd88b22-b603-4c3d-aad7-3701784586b1";
    let made = make(&bench, json!({ "phrase": "p", "token_url": "u" })).await;
    assert_eq!(made["configuration"], json!({ "phrase": "p", "token_url": MASK }));
    let job = bench.take("airbyte.spec").await;
    let (_, mut kept) = bench.document("airbyte.definition", definition).await.unwrap();
    kept["spec"] = json!({ "connectionSpecification": { "properties": {
        "phrase": { "airbyte_secret": true }, "token_url": {} } } });
    bench.complete(&job, json!({}), vec![write("airbyte.definition", definition, kept)]).await;
    // What was written before is not shown any more; what was sealed stays so.
    let path = format!("/sources/{}", text(&made["sourceId"]));
    let shown = bench.get(&path).await.shown();
    assert_eq!(shown["configuration"], json!({ "phrase": MASK, "token_url": MASK }));
    bench.again().await;
    let (_, document) = bench.document("airbyte.source", &text(&made["sourceId"])).await.unwrap();
    assert!(document["configuration"]["phrase"]["$sealed"].is_string(), "{document}");
    let change = json!({ "configuration": { "phrase": "q", "token_url": "v" } });
    let shown = bench.patch(&path, change).await.shown();
    assert_eq!(shown["configuration"], json!({ "phrase": MASK, "token_url": "v" }));
    assert_eq!(
        opened(&bench, &text(&made["sourceId"])).await,
        json!({ "phrase": "q", "token_url": "v" })
    );
}

#[tokio::test]
async fn a_configuration_that_is_sealed_as_a_whole_can_be_changed() {
    let mut bench = Bench::start().await;
    let definition = "dfd88b22-b603-4c3d-aad7-3701784586b1";
    let made = make(&bench, json!({ "a": 1, "b": { "c": 2 } })).await;
    let job = bench.take("airbyte.spec").await;
    let (_, mut kept) = bench.document("airbyte.definition", definition).await.unwrap();
    kept["spec"] = json!({ "connectionSpecification": { "anyOf": vec![json!({}); 10_001] } });
    bench.complete(&job, json!({}), vec![write("airbyte.definition", definition, kept)]).await;
    bench.again().await;
    let id = text(&made["sourceId"]);
    let path = format!("/sources/{id}");
    let (_, document) = bench.document("airbyte.source", &id).await.unwrap();
    assert!(document["configuration"]["$sealed"].is_string(), "{document}");
    let change = json!({ "configuration": { "b": { "d": 3 } } });
    assert_eq!(bench.patch(&path, change).await.shown()["configuration"], MASK);
    assert_eq!(opened(&bench, &id).await, json!({ "a": 1, "b": { "c": 2, "d": 3 } }));

    std::fs::remove_file(bench.dir.path().join("data/airbyte.key")).unwrap();
    bench.again().await;
    let change = json!({ "configuration": { "a": 2 } });
    bench.patch(&path, change.clone()).await.fails(409, "state-conflict");
    let whole = json!({ "name": "s", "configuration": { "a": 2 } });
    bench.put(&path, whole).await.shown();
    assert_eq!(opened(&bench, &id).await, json!({ "a": 2 }));
}

#[tokio::test]
async fn one_source_that_cannot_be_sealed_leaves_the_others_in_order() {
    let mut bench = Bench::start().await;
    let given = json!({ "password": "hunter2" });
    let id = text(&make(&bench, json!({})).await["sourceId"]);
    let (_, mut document) = bench.document("airbyte.source", &id).await.unwrap();
    document["configuration"] = given.clone();
    let mut deep = json!({ "password": "p" });
    for _ in 0..100 {
        deep = json!({ "d": deep });
    }
    let bad = json!({ "sourceId": "0", "sourceType": "faker", "configuration": deep });
    let torn = json!({ "sourceId": 0 });
    bench
        .put_documents(vec![
            write("airbyte.source", "0", bad),
            write("airbyte.source", "00", torn),
            write("airbyte.source", &id, document),
        ])
        .await;
    bench.again().await;
    let (_, document) = bench.document("airbyte.source", &id).await.unwrap();
    assert!(document["configuration"]["password"]["$sealed"].is_string(), "{document}");
    assert_eq!(opened(&bench, &id).await, given);
}

#[tokio::test]
async fn the_key_outlives_a_restart() {
    let mut bench = Bench::start().await;
    let id = text(&make(&bench, json!({ "password": "hunter2" })).await["sourceId"]);
    bench.again().await;
    assert_eq!(opened(&bench, &id).await, json!({ "password": "hunter2" }));
}

#[tokio::test]
async fn a_key_that_is_lost_leaves_secrets_to_be_given_anew() {
    let mut bench = Bench::start().await;
    let given = json!({ "host": "h", "password": "hunter2" });
    let id = text(&make(&bench, given).await["sourceId"]);
    std::fs::remove_file(bench.dir.path().join("data/airbyte.key")).unwrap();
    bench.again().await;
    let path = format!("/sources/{id}");
    let masked = json!({ "host": "h", "password": MASK });
    assert_eq!(bench.get(&path).await.shown()["configuration"], masked);
    let (_, mut document) = bench.document("airbyte.source", &id).await.unwrap();
    let vault = Vault::at(&bench.dir.path().join("data/airbyte.key")).unwrap();
    let place = scope(TENANT, "airbyte.source", &id);
    vault.open(&place, &mut document["configuration"]).unwrap_err();
    let anew = json!({ "configuration": { "password": "hunter3" } });
    bench.patch(&path, anew).await.shown();
    assert_eq!(opened(&bench, &id).await, json!({ "host": "h", "password": "hunter3" }));
}

/// Names and places in which secrets stand.
fn secret_field() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("password"),
        Just("api_key"),
        Just("clientSecret"),
        Just("ACCESS_TOKEN"),
        Just("private-key"),
        Just("aws_access_key_id"),
        Just("refresh token"),
    ]
    .prop_map(str::to_owned)
}

/// A configuration with the secret somewhere in it.
fn configuration(secret: String) -> impl Strategy<Value = Value> {
    let leaf = (secret_field(), any::<bool>()).prop_map(move |(field, is_deep)| {
        if is_deep { json!({ field: { "a": [secret.clone()] } }) } else { json!({ field: secret }) }
    });
    leaf.prop_recursive(6, 32, 3, |inner| {
        prop_oneof![
            ("[a-z]{1,6}", inner.clone()).prop_map(|(name, inner)| json!({ "n": 1, name: inner })),
            inner.clone().prop_map(|inner| json!({ "list": [{ "y": true }, inner] })),
            inner.prop_map(|inner| json!({ "credentials": inner, "host": "h" })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_secret_is_in_a_document_or_an_answer(
        (secret, given, second) in "S3[a-zA-Z0-9]{12}".prop_flat_map(|secret| {
            (Just(secret.clone()), configuration(secret.clone()), configuration(secret))
        }),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = Bench::start().await;
            let made = make(&bench, given.clone()).await;
            assert!(!made.to_string().contains(&secret), "{made}");
            let id = text(&made["sourceId"]);
            let path = format!("/sources/{id}");
            assert_eq!(opened(&bench, &id).await, given);
            // What was shown comes back, and nothing is lost.
            let back = json!({ "name": "t", "configuration": made["configuration"] });
            bench.put(&path, back).await.shown();
            assert_eq!(opened(&bench, &id).await, given);
            let changed = bench.patch(&path, json!({ "configuration": second })).await;
            for said in [changed.text(), bench.get("/sources").await.text()] {
                assert!(!said.contains(&secret), "{said}");
            }
            let (_, document) = bench.document("airbyte.source", &id).await.unwrap();
            assert!(!document.to_string().contains(&secret), "{document}");
        });
    }
}
