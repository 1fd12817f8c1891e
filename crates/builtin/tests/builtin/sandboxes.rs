//! What scripts may and may not do in a sandbox.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_builtin::sandbox::{Pool, PoolSettings, SandboxError};

use crate::{evaluate, pool};

/// Enough for a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_secs(20);

async fn javascript(pool: &Pool, script: &str) -> Result<Value, SandboxError> {
    let input = json!({"n": 3, "list": [1, 2], "o": {"b": 1, "a": 2}});
    evaluate(pool, "javascript", "expression", script, &input).await
}

async fn jq(pool: &Pool, script: &str, input: Value) -> Result<Value, SandboxError> {
    evaluate(pool, "jq", "expression", script, &input).await
}

fn limit(outcome: Result<Value, SandboxError>) -> String {
    match outcome {
        Err(SandboxError::Limit(message)) => message,
        other => panic!("no limit: {other:?}"),
    }
}

fn script(outcome: Result<Value, SandboxError>) -> String {
    match outcome {
        Err(SandboxError::Script(message)) => message,
        other => panic!("no fault of the script: {other:?}"),
    }
}

#[tokio::test]
async fn scripts_have_values() {
    let pool = pool(1, LIMIT);
    for (source, expected) in [
        ("$.n + 1", json!(4)),
        ("new Date(0).toISOString()", json!("1970-01-01T00:00:00.000Z")),
        ("/(b+)/.exec('abbc')[1]", json!("bb")),
        ("try { throw new Error('x') } catch (e) { e.message }", json!("x")),
        ("x = 5; x", json!(5)),
        ("$.o.c = 3; $.o", json!({"b": 1, "a": 2, "c": 3})),
        ("undefined", json!(null)),
        ("(function () {})", json!(null)),
        ("NaN", json!(null)),
        ("if ($.n > 1) { true; } else { false; }", json!(true)),
        (
            "typeof std + typeof os + typeof console + typeof require + typeof fetch",
            json!("undefined".repeat(5)),
        ),
    ] {
        assert_eq!(
            javascript(&pool, source).await.unwrap(),
            json!({"value": expected}),
            "{source}"
        );
    }
    // Nothing is left of one script for the next.
    assert_eq!(javascript(&pool, "typeof x").await.unwrap(), json!({"value": "undefined"}));
    let function = evaluate(&pool, "javascript", "function", "return $ + 1 // so", &json!(1)).await;
    assert_eq!(function.unwrap(), json!({"value": 2}));
}

#[tokio::test]
async fn faults_are_told_in_the_engines_words() {
    let pool = pool(1, LIMIT);
    for (source, expected) in [
        ("nobody", "ReferenceError: nobody is not defined"),
        ("$.x.y", "TypeError: cannot read property 'y' of undefined"),
        ("throw new RangeError('mine')", "RangeError: mine"),
        ("throw 'text'", "text"),
        ("var o = {}; o.o = o; o", "TypeError: circular reference"),
    ] {
        assert_eq!(script(javascript(&pool, source).await), expected, "{source}");
    }
    assert!(script(javascript(&pool, "return 1").await).starts_with("SyntaxError: "));
    assert!(script(javascript(&pool, "1 +").await).starts_with("SyntaxError: "));
    let error = javascript(&pool, "nobody").await.unwrap_err();
    assert_eq!(error.to_string(), "script: ReferenceError: nobody is not defined");
    let request = pool.evaluate(b"{\"language\": \"cobol\"}").await;
    assert!(matches!(request, Err(SandboxError::Script(_))), "{request:?}");
}

#[tokio::test]
async fn what_takes_too_long_is_stopped() {
    let pool = pool(1, Duration::from_millis(300));
    let began = Instant::now();
    for source in [
        "while (true) {}",
        "for (;;) { try { (function f() { f() })() } catch (e) {} }",
        "/(a*)*b/.exec('a'.repeat(50))",
    ] {
        let message = limit(javascript(&pool, source).await);
        assert!(message.contains("300 ms"), "{source}: {message}");
    }
    for filter in
        ["def f: f; f", "[range(0; infinite)] | length", "reduce range(0; 1e18) as $x (0; . + 1)"]
    {
        let message = limit(jq(&pool, filter, json!(null)).await);
        assert!(
            message.contains("300 ms") || message.contains("ended its process"),
            "{filter}: {message}"
        );
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    // Killed ones are replaced.
    assert_eq!(jq(&pool, ".", json!(1)).await.unwrap()["value"], json!(1));
}

#[tokio::test]
async fn what_takes_too_much_is_stopped() {
    let pool = pool(1, LIMIT);
    for source in [
        "var a = []; while (true) { a.push(new Array(1000).fill(1)) }",
        "var s = 'x'; while (true) { s = s + s }",
        "new ArrayBuffer(1e12)",
    ] {
        match javascript(&pool, source).await {
            Err(SandboxError::Limit(message)) => {
                assert!(message.contains("memory"), "{source}: {message}");
            }
            // The engine has bounds of its own for a single string or buffer.
            Err(SandboxError::Script(message)) => {
                assert!(
                    message.contains("invalid") || message.contains("too"),
                    "{source}: {message}"
                );
            }
            other => panic!("{source}: {other:?}"),
        }
    }
    let message = limit(javascript(&pool, "'x'.repeat(100 * 1024 * 1024)").await);
    assert!(message.contains("10 MiB") || message.contains("memory"), "{message}");
    let message = limit(javascript(&pool, "'x'.repeat(11 * 1024 * 1024)").await);
    assert_eq!(message, "the result is larger than 10 MiB");
    let message = limit(jq(&pool, "\"x\" * 100000000", json!(null)).await);
    assert!(message.contains("10 MiB") || message.contains("ended its process"), "{message}");
    let message = limit(jq(&pool, "[limit(1000000000; repeat(\"x\" * 1000))]", json!(null)).await);
    assert!(message.contains("ended its process") || message.contains("10 MiB"), "{message}");
    let large = vec![b' '; 17 << 20];
    assert!(matches!(pool.evaluate(&large).await, Err(SandboxError::Limit(_))));
}

#[tokio::test]
async fn what_goes_too_deep_is_stopped() {
    let pool = pool(1, LIMIT);
    let message = script(javascript(&pool, "(function f() { return 1 + f() })()").await);
    assert!(message.contains("stack"), "{message}");
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(javascript(&pool, &nested).await.is_err());
    assert!(jq(&pool, &nested, json!(null)).await.is_err());
    assert!(jq(&pool, "def f: 1 + f; f", json!(null)).await.is_err());
    assert_eq!(javascript(&pool, "1").await.unwrap(), json!({"value": 1}));
}

#[tokio::test]
async fn filters_have_a_first_value_and_all() {
    let pool = pool(1, LIMIT);
    let input = json!({"z": [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}], "a": 1.5});
    for (filter, values) in [
        (".z[].id", json!([1, 2])),
        (".z | map(select(.id > 1).n)", json!([["b"]])),
        ("empty", json!([])),
        (".missing", json!([null])),
        ("{x: .a, y: (.z | length)}", json!([{"x": 1.5, "y": 2}])),
        (".z | map({(.n): .id}) | add", json!([{"a": 1, "b": 2}])),
        ("[.z[] | \"\\(.n)-\\(.id)\"] | join(\",\")", json!(["a-1,b-2"])),
        (
            "(.a | floor), (\"x1\" | test(\"[0-9]\")), (\"a,b\" | split(\",\"))",
            json!([1, true, ["a", "b"]]),
        ),
        ("to_entries | map(.key)", json!([["a", "z"]])),
        ("try error(\"x\") catch .", json!(["x"])),
        ("if .a > 1 then \"big\" else \"small\" end", json!(["big"])),
        ("reduce .z[] as $x (0; . + $x.id)", json!([3])),
        ("env | length", json!([1])),
    ] {
        let mut found = jq(&pool, filter, input.clone()).await.unwrap();
        if filter.starts_with("to_entries") {
            found["values"][0].as_array_mut().unwrap().sort_by_key(Value::to_string);
        }
        assert_eq!(found["values"], values, "{filter}");
        if !filter.starts_with("to_entries") {
            assert_eq!(found["value"], values.get(0).cloned().unwrap_or_default(), "{filter}");
        }
    }
    assert!(script(jq(&pool, ".a | keys", input.clone()).await).contains("1.5"));
    assert!(script(jq(&pool, ".[", input.clone()).await).starts_with("the filter cannot be read"));
    assert!(script(jq(&pool, "nobody", input).await).starts_with("the filter is not understood"));
}

/// The kinds of filters that workflows of Conductor have.
#[tokio::test]
async fn filters_put_together_fill_in_and_choose() {
    let pool = pool(1, LIMIT);
    let lists = json!({"of": {"a": {"list": ["a", "b"]}, "b": {"list": ["c"]}}});
    let both = ".of as $_ | { out: ($_.a.list + $_.b.list) }";
    let request = json!({"of": {"body": {"name": "bear", "title": "brown"}, "method": "POST"}});
    let named = json!({"of": {"ways": [{"name": "again"}, {"name": "on"}]}});
    for (filter, input, expected) in [
        (both, &lists, json!({"out": ["a", "b", "c"]})),
        (
            "{ method: .of.method // \"GET\", on: .of.on // \"true\" }",
            &request,
            json!({"method": "POST", "on": "true"}),
        ),
        (
            "{ name: (.of.body.name + \" is \" + .of.body.title) }",
            &request,
            json!({"name": "bear is brown"}),
        ),
        ("if(.data | length >0) then \"THERE\" else \"NEW\" end", &request, json!("NEW")),
        (".of.ways | map(.name)", &named, json!(["again", "on"])),
    ] {
        assert_eq!(jq(&pool, filter, input.clone()).await.unwrap()["value"], expected, "{filter}");
    }
    let words = json!({"of": {"a": "x", "b": "y"}});
    let problem = script(jq(&pool, both, words).await);
    assert!(problem.contains("cannot index"), "{problem}");
}

#[tokio::test]
async fn one_that_dies_costs_one_evaluation() {
    let pool = pool(2, LIMIT);
    let bomb = jq(&pool, "[limit(1000000000; repeat(\"x\" * 1000))]", json!(null));
    let (dead, alive) = tokio::join!(bomb, javascript(&pool, "1 + 1"));
    assert!(dead.is_err());
    assert_eq!(alive.unwrap(), json!({"value": 2}));
}

#[tokio::test]
async fn processes_come_when_needed_and_go() {
    let pool = pool(2, LIMIT);
    assert_eq!(pool.idle_processes(), 0);
    let three =
        tokio::join!(javascript(&pool, "1"), javascript(&pool, "2"), javascript(&pool, "3"));
    assert_eq!(three.2.unwrap(), json!({"value": 3}));
    assert!((1..=2).contains(&pool.idle_processes()));
    let began = Instant::now();
    while pool.idle_processes() > 0 {
        assert!(began.elapsed() < LIMIT, "nobody lets go of them");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(javascript(&pool, "4").await.unwrap(), json!({"value": 4}));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_no_fault_of_the_script() {
    let pool = Pool::new(PoolSettings {
        command: vec!["/nowhere/windlass".into()],
        processes_max: 1,
        limit: LIMIT,
        idle: LIMIT,
    });
    let outcome = javascript(&pool, "1").await;
    assert!(matches!(outcome, Err(SandboxError::Unavailable(_))), "{outcome:?}");
}
