//! What scripts do here. That a real engine does the same is tested where there is one.

use serde_json::{Value, json};

use super::{ScriptError, evaluate, function, truthy};

const STEPS: u64 = 100_000;

fn input() -> Value {
    json!({
        "n": 3, "f": 1.5, "zero": 0, "whole": 5.0, "text": "hello", "empty": "", "digits": "12",
        "none": null, "yes": true, "no": false, "long": 1_234_567_890_123_456_789_i64,
        "umlaut": "ä😀", "list": [3, 1, 2], "names": ["a", "b"], "rows": [{"id": 1}, {"id": 2}],
        "a": {"b": {"c": 7}, "key with space": 1}, "2": "two", "1": "one",
    })
}

fn run(source: &str) -> Result<Value, ScriptError> {
    let input = input();
    evaluate(source, &[("$", &input), ("task", &input)], STEPS)
}

fn check(cases: &[(&str, Value)]) {
    for (source, expected) in cases {
        assert_eq!(run(source), Ok(expected.clone()), "{source}");
    }
}

#[test]
fn paths_and_literals() {
    check(&[
        ("$.n", json!(3)),
        ("$.f", json!(1.5)),
        ("$.whole", json!(5)),
        ("$.long", json!(1_234_567_890_123_456_789_i64)),
        ("$['a'].b['c']", json!(7)),
        ("$.a['key with space']", json!(1)),
        ("task.text", json!("hello")),
        ("$.list[1]", json!(1)),
        ("$.list[9]", json!(null)),
        ("$.list.length", json!(3)),
        ("$.text.length", json!(5)),
        ("$.umlaut.length", json!(3)),
        ("$.text[0]", json!("h")),
        ("$.missing", json!(null)),
        ("$.missing?.x.y", json!(null)),
        ("$.a?.b?.c", json!(7)),
        ("$.missing?.[0]", json!(null)),
        ("$.missing?.f()", json!(null)),
        (
            "({a: 1, 'b c': [1, 'x', null], ['d' + 1]: undefined, n: NaN})",
            json!({"a": 1, "b c": [1, "x", null], "n": null}),
        ),
        ("[1, undefined, ...$.list]", json!([1, null, 3, 1, 2])),
        ("var n = 1; ({n, ...$.a.b, 'x': -0})", json!({"n": 1, "c": 7, "x": 0})),
        ("`${$.text} ${1 + 1} ${`in ${$.n}`}`", json!("hello 2 in 3")),
        ("'\\u0041\\x42\\n'", json!("AB\n")),
        ("0x10 + .5 + 1e3", json!(1016.5)),
        ("", json!(null)),
        ("$", input()),
    ]);
}

#[test]
fn operators() {
    check(&[
        ("1 + 2 * 3 - 4 / 2", json!(5)),
        ("7 % 3 + -7 % 3", json!(0)),
        ("2 ** 3 ** 2", json!(512)),
        ("0.1 + 0.2", json!(0.300_000_000_000_000_04)),
        ("1 / 0", json!(null)),
        ("'a' + 1 + 2", json!("a12")),
        ("1 + 2 + 'a'", json!("3a")),
        ("'3' * '4'", json!(12)),
        ("'a' - 1", json!(null)),
        ("+'  12  ' + +'' + +null + +true", json!(13)),
        ("'1' == 1", json!(true)),
        ("'1' === 1", json!(false)),
        ("null == undefined", json!(true)),
        ("null === undefined", json!(false)),
        ("null == 0", json!(false)),
        ("'' == 0", json!(true)),
        ("[1] == 1", json!(true)),
        ("$.list === $.list", json!(true)),
        ("[] === []", json!(false)),
        ("NaN == NaN", json!(false)),
        ("'b' > 'a'", json!(true)),
        ("'10' < '9'", json!(true)),
        ("'10' < 9", json!(false)),
        ("null >= 0", json!(true)),
        ("undefined >= 0", json!(false)),
        ("!$.empty && !$.zero && !$.none", json!(true)),
        ("$.none || 'else'", json!("else")),
        ("$.zero ?? 1", json!(0)),
        ("$.none ?? 1", json!(1)),
        ("$.n > 2 ? 'big' : 'small'", json!("big")),
        (
            "typeof $.n + typeof $.text + typeof $.none + typeof $.list",
            json!("numberstringobjectobject"),
        ),
        ("typeof undefined", json!("undefined")),
        ("'n' in $", json!(true)),
        ("5 & 3 | 8 ^ 1", json!(9)),
        ("-1 >>> 28", json!(15)),
        ("1 << 31", json!(-2_147_483_648_i64)),
        ("~5", json!(-6)),
        ("'' + [1, [2, null], 3]", json!("1,2,,3")),
        ("'' + {}", json!("[object Object]")),
        (
            "'' + 1e21 + ' ' + 1e-7 + ' ' + 123456789012345680000 + ' ' + 0.000001 + ' ' + 1.5e300",
            json!("1e+21 1e-7 123456789012345680000 0.000001 1.5e+300"),
        ),
        ("100 * 1.1 + ''", json!("110.00000000000001")),
    ]);
}

#[test]
fn a_script_is_worth_its_last_statement() {
    check(&[
        ("if ($.n > 1) { true; } else { false; }", json!(true)),
        ("if ($.n > 5) { true; } else { false; }", json!(false)),
        ("if ( $.n < 5 ) true; else false", json!(true)),
        ("1; var x = 2;", json!(1)),
        ("1; if (false) { 2 }", json!(null)),
        ("1; {}", json!(1)),
        ("var x = 1\nx = x + 1\nx", json!(2)),
        ("let x = 1; x += 2; x", json!(3)),
        ("const x = {a: 1}; x.a = 2; x['b'] = 3; x", json!({"a": 2, "b": 3})),
        ("var i = 0; while (i < 3) { i++; }", json!(2)),
        ("var s = 0; for (var i = 0; i < 4; i++) { s += i } s", json!(6)),
        ("var s = ''; for (const x of $.names) { s += x; } s", json!("ab")),
        ("var s = ''; for (var k in $.a) s += k + ';'; s", json!("b;key with space;")),
        ("var s = ''; for (var k in $) { s += k; if (s.length > 3) break; } s", json!("12nf")),
        ("var i = 0; do { i++; if (i == 2) continue; } while (i < 5); i", json!(5)),
        ("switch ($.text) { case 'x': 1; break; case 'hello': 2; break; default: 3 }", json!(2)),
        ("switch (9) { case 1: 1; default: 3 }", json!(3)),
        ("// a comment\n/* and another */ 4 // and one more", json!(4)),
        ("1\n+ 2", json!(3)),
        ("'use strict'; 5", json!(5)),
    ]);
}

#[test]
fn functions() {
    check(&[
        ("(function () { return $.n * 2; })()", json!(6)),
        ("(function(){ if ($.n > 1) { return 'a'; } return 'b'; }());", json!("a")),
        ("function e() { return $.n > 1 } e();", json!(true)),
        ("e(); function e() { return later; var later = 1; }", json!(null)),
        ("(() => { let x = 1; return x })()", json!(1)),
        ("((a, b) => a + b)(1, 2)", json!(3)),
        ("var f = x => ({v: x}); f(1)", json!({"v": 1})),
        ("(function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) })(10)", json!(55)),
        (
            "var fs = []; for (let i = 0; i < 3; i++) { fs.push(() => i) } fs.map(f => f())",
            json!([0, 1, 2]),
        ),
        (
            "var fs = []; for (var i = 0; i < 3; i++) { fs.push(() => i) } fs.map(f => f())",
            json!([3, 3, 3]),
        ),
        ("function f() {} f()", json!(null)),
        ("var o = {f: function (x) { return x + 1 }}; o.f(1)", json!(2)),
    ]);
    assert_eq!(run(&function("return $.n; // done")), Ok(json!(3)));
    assert_eq!(run(&function("if ($.n > 5) { return 1; }")), Ok(json!(null)));
}

#[test]
fn methods_and_globals() {
    check(&[
        ("$.list.map(x => x * 2).filter((x, i) => x > 2 || i == 5)", json!([6, 4])),
        ("$.rows.find(r => r.id == 2).id", json!(2)),
        ("$.list.reduce((a, b) => a + b, 0) + $.list.reduce((a, b) => a + b)", json!(12)),
        ("$.list.some(x => x > 2) && !$.list.every(x => x > 2)", json!(true)),
        ("$.list.includes(2) && $.text.includes('ell') && $.list.indexOf(9) === -1", json!(true)),
        (
            "var l = []; $.list.forEach(x => { l.push(x) }); l.push(4, 5); l.pop(); l",
            json!([3, 1, 2, 4]),
        ),
        ("$.list.slice(-2).concat([9], 8).join('-')", json!("1-2-9-8")),
        ("$.text.toUpperCase() + ' X '.trim() + $.text.charAt(1)", json!("HELLOXe")),
        ("$.text.substring(3, 1) + $.text.slice(-2) + $.text.indexOf('l')", json!("ello2")),
        ("'a,b,,c'.split(',')", json!(["a", "b", "", "c"])),
        ("'abc'.split('')", json!(["a", "b", "c"])),
        ("$.text.startsWith('he') && $.text.endsWith('lo')", json!(true)),
        ("'a-b-c'.replace('-', '+') + 'a-b-c'.replaceAll('-', '')", json!("a+b-cabc")),
        ("'7'.padStart(3, '0') + 'ab'.repeat(2)", json!("007abab")),
        (
            "JSON.stringify({b: [1, 'x\\n', null, undefined], a: undefined, c: 1.50})",
            json!("{\"b\":[1,\"x\\n\",null,null],\"c\":1.5}"),
        ),
        ("JSON.stringify($.a)", json!("{\"b\":{\"c\":7},\"key with space\":1}")),
        ("JSON.parse('{\"x\": [1, 2.5]}').x[1]", json!(2.5)),
        ("Math.max(1, $.n, 2) + Math.floor(1.7) + Math.round(2.5) + Math.abs(-1)", json!(8)),
        ("Math.round(-2.5)", json!(-2)),
        ("parseInt('12px') + parseInt('-3') + parseFloat('1.5abc')", json!(10.5)),
        ("Number('0x1f') + Number(' ') + Number($.digits)", json!(43)),
        ("[Number('abc'), Number('1 2'), Number(undefined)]", json!([null, null, null])),
        ("String(1.0) + String(null) + String([1])", json!("1null1")),
        ("Object.keys({b: 1, 2: 1, a: 1, 1: 1})", json!(["1", "2", "b", "a"])),
        ("Object.entries($.a.b)", json!([["c", 7]])),
        ("Array.isArray($.list) && !Array.isArray($.a) && isNaN('x')", json!(true)),
        ("$.names.map(String).map(Boolean)", json!([true, true])),
        ("(12).toString() + true.toString()", json!("12true")),
        ("$.hasOwnProperty('n') && !$.hasOwnProperty('zzz')", json!(true)),
    ]);
}

#[test]
fn what_is_not_known_is_left_to_a_real_engine() {
    for source in [
        "return 1",
        "new Date()",
        "Date.now()",
        "Math.random()",
        "/a/.test('a')",
        "'a'.match(/a/)",
        "x = 1",
        "nobody",
        "typeof nobody",
        "this",
        "try { 1 } catch (e) { 2 }",
        "throw 'x'",
        "class A {}",
        "$.n = 4",
        "delete $.n",
        "$.n instanceof Object",
        "a: 1",
        "1n",
        "010",
        "async () => 1",
        "$.text.nothing",
        "$.list.nothing()",
        "$.toString",
        "({}).constructor",
        "({__proto__: null})",
        "$.__proto__",
        "let x = 1; let x = 2",
        "const c = 1; c = 2",
        "x; let x = 1",
        "var x = []; for (const x of [x]) {}",
        "{ function f() {} }",
        "function (",
        "1 +",
        "'a",
        "`a",
        "a b",
        "-1 ** 2",
        "1 ?? 2 || 3",
        "1 || 2 ?? 3",
        "f(1",
        "[,1]",
        "(0.5).toFixed(1)",
        "$.long + 1",
        "'ä😀'.slice(1)",
        "var [a] = [1]",
        "var {n} = $",
        "(a = 1) => a",
        "break",
        "continue",
        "console.log(1)",
        "$.list.push(1)",
        "$.list.sort()",
        "yield",
        "eval('1')",
        "java.lang.System",
        "var $ = 1; $",
        "'\\07'",
        "<!-- x",
        "2 ** 0.5",
        "isFinite",
        "() => 1",
        "var l = [1, 2]; l.forEach(x => l.push(x))",
        "var l = []; l[5] = 1",
        "arguments",
        "(function () { return arguments })()",
        "var o = {}; o.o = o; o",
        "`${`",
        "if (1) let x = 1",
        "JSON.parse('{')",
        "$.missing.f?.()",
    ] {
        assert_eq!(run(source), Err(ScriptError::Unsupported), "{source}");
    }
}

#[test]
fn failures_are_those_of_any_engine() {
    let failed = |message: &str| Err(ScriptError::Failed(message.to_owned()));
    assert_eq!(run("$.missing.x"), failed("TypeError: Cannot read property 'x' of undefined"));
    assert_eq!(run("$.none['y']"), failed("TypeError: Cannot read property 'y' of null"));
    assert_eq!(run("$.none.f(1)"), failed("TypeError: Cannot read property 'f' of null"));
}

#[test]
fn bounds_hold() {
    for source in [
        "while (true) {}",
        "for (;;) {}",
        "var s = 'x'; while (true) { s += s; }",
        "var l = [1]; while (true) { l = l.concat(l); }",
        "var l = []; for (;;) { l.push([[]]); }",
        "'x'.repeat(999999999)",
        "'x'.padStart(999999999)",
        "var f = () => { while (true) ; }; [1].map(f)",
        "var o = {}; for (var i = 0; ; i++) { o['k' + i] = o; }",
        "var s = 'x'.repeat(1000000); for (;;) { s.split(''); }",
    ] {
        assert_eq!(run(source), Err(ScriptError::Budget), "{source}");
    }
    let deep =
        |open: &str, close: &str, count| format!("{}1{}", open.repeat(count), close.repeat(count));
    for source in [
        deep("(", ")", 20_000),
        deep("[", "]", 20_000),
        deep("{a:", "}", 10_000),
        deep("!", "", 60_000),
        deep("`${", "}`", 10_000),
        deep("if(1){", "}", 8_000),
        deep("(function(){return ", "})()", 2_000),
        deep("", "+1", 30_000),
        deep("", ".a", 30_000),
        deep("1?1:", "", 10_000),
        deep("x=>", "", 20_000),
        deep("a=", "", 20_000),
        deep("2**", "", 20_000),
        deep("if(1);else ", "", 5_000),
        deep("(", "+1)", 40).replace('1', &"1+1".repeat(100)),
        "function f() { return f() } f()".to_owned(),
        "var a = []; for (var i = 0; i < 500; i++) { a = [a] } a".to_owned(),
        "var a = []; for (var i = 0; i < 500; i++) { a = [a] } '' + a".to_owned(),
        "var a = []; for (var i = 0; i < 500; i++) { a = [a] } JSON.stringify(a)".to_owned(),
        "x".repeat(100_000),
    ] {
        let short: String = source.chars().take(60).collect();
        assert_eq!(run(&source), Err(ScriptError::Unsupported), "{short}");
    }
    assert!(run(&deep("", "+1", 100)).is_ok());
}

#[test]
fn truth_is_conductors() {
    for (value, truth) in [
        (json!(true), true),
        (json!(false), false),
        (json!(1), true),
        (json!(0.5), true),
        (json!(0), false),
        (json!(-1), false),
        (json!("true"), false),
        (json!(null), false),
        (json!([1]), false),
    ] {
        assert_eq!(truthy(&value), truth, "{value}");
    }
}
