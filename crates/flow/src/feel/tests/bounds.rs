//! What no text and no budget may do.

use super::support::{ENVIRONMENT, check, evaluate, variables};
use crate::feel::*;

/// What the soup is made of.
#[rustfmt::skip]
const TOKENS: [&str; 72] = [
    "1", "2.5", "\"a\"", "\"", "a", "b", "numbers", "order", "item",
    "?", "-", "+", "*", "/", "**", "(", ")", "[",
    "]", "{", "}", ",", ":", ".", "..", "<", "<=",
    ">", ">=", "=", "!=", "and", "or", "not", "in", "between",
    "if", "then", "else", "for", "return", "some", "every", "satisfies", "instance of",
    "function", "null", "true", "@", "@\"P1D\"", "@\"2024-01-01\"", "date", "count", "sum",
    "string length", "sort", "get or else", "partial", "x", "1..3", "[1..3]", "external", "list<",
    "`q`", "//", "/*", "*/", "\n", "\\u00e9", "é", "😀", " ",
];

/// The budget ends whatever would not end by itself, or not in the memory there is.
#[test]
fn every_evaluation_is_bounded() {
    let doubling = "for i in 1..100 return if i = 1 then [1] else [partial[-1], partial[-1]]";
    let deeper = "for i in 1..100000 return {a: partial[-1]}";
    let functions = "for i in 1..100000 return function() partial[-1]";
    let endless = "{f: function(n) f(n + 1), r: f(1)}";
    for source in [
        "for i in 1..1000000000 return i",
        "count(for i in 1..1000, j in 1..1000, k in 1..1000 return i)",
        doubling,
        deeper,
        functions,
        endless,
        "for i in 1..64 return if i = 1 then \"ab\" else partial[-1] + partial[-1]",
        "for i in 1..30 return if i = 1 then \"ab\" else replace(partial[-1], \".\", partial[-1])",
        "every x in 1..100000000 satisfies x > 0",
    ] {
        let error = evaluate(source, &mut Budget::default()).map(|_| ()).expect_err(source);
        assert!(error.starts_with("the expression "), "{source}: {error}");
    }
}

#[test]
fn a_budget_that_failed_once_is_as_deep_as_before() {
    let mut budget = Budget::default();
    let depth = budget.depth_left;
    evaluate("{f: function(n) f(n + 1), r: f(1)}", &mut budget).expect_err("it has no end");
    assert_eq!(budget.depth_left, depth);
}

#[test]
fn deep_texts_are_refused() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{a:", "}"),
        ("f(", ")"),
        ("a[", "]"),
        ("if ", ""),
        ("-", ""),
        ("x in (", ")"),
        ("]1..", "["),
        ("function(x) ", ""),
        ("for x in ", ""),
        ("a instance of list<", ">"),
    ] {
        let source = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        parse(&source).expect_err(open);
        parse_unary_tests(&source).expect_err(open);
    }
    let long = format!("0{}", " + 1".repeat(10_000));
    check(&[(&long, "10000")]);
}

/// Whatever is thrown at it, the parser answers, and so does the evaluator.
#[test]
fn token_soup() {
    let seed = std::env::var("FEEL_SOUP_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_251_121_u64);
    println!("FEEL_SOUP_SEED={seed} cargo test -p windlass-flow token_soup");
    let mut next = numbers(seed);
    let variables = variables();
    let scope: &Context = variables.as_context().expect("the variables are an object");
    let mut parsed = 0_u32;
    for _ in 0..100_000 {
        let mut source = String::new();
        for _ in 0..1 + next(12) {
            source.push_str(TOKENS[next(TOKENS.len())]);
            if next(3) > 0 {
                source.push(' ');
            }
        }
        let mut budget = Budget { steps_left: 2_000, size_left: 100_000, depth_left: 64 };
        if let Ok(expression) = parse(&source) {
            parsed += 1;
            if let Ok(value) = expression.evaluate(scope, &ENVIRONMENT, &mut budget) {
                Value::from_json(&value.to_json()).expect("what was written can be read");
            }
        }
        if let Ok(tests) = parse_unary_tests(&source) {
            let _ = tests.matches(&Value::Bool(true), scope, &ENVIRONMENT, &mut budget);
        }
    }
    assert!(parsed > 3_000, "only {parsed} of the texts were FEEL");
}

/// Numbers below a bound, one after the other, the same for the same seed.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |bound| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits fit") % bound
    }
}
