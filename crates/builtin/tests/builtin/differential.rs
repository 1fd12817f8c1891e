//! What the kernel evaluates itself is what a real engine makes of it.
//!
//! Scripts are made by hand and at random; each is evaluated by both. The kernel may say that it does
//! not know; it may not say anything else than the engine.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_builtin::sandbox::{Pool, SandboxError};
use windlass_flow::conductor::script::{self, ScriptError};

use crate::{evaluate, pool};

const STEPS: u64 = 100_000;

fn input() -> Value {
    json!({
        "n": 3, "f": 1.5, "neg": -2, "zero": 0, "text": "hello", "empty": "", "digits": "12",
        "none": null, "yes": true, "no": false, "list": [3, "a", null, 2.5], "l2": [],
        "o": {"b": {"c": 7}, "length": 2, "10": "x", "9": "y"}, "umlaut": "äé", "space": " 7 ",
    })
}

/// With every number as the language has it, since the same one can be written in several ways.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, plain(field))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

/// Says whether the kernel knew.
async fn compare(pool: &Pool, source: &str, origin: &str) -> bool {
    let input = input();
    let known = match script::evaluate(source, &[("$", &input)], STEPS) {
        Err(ScriptError::Unsupported | ScriptError::Budget) => return false,
        Ok(value) => Ok(value),
        Err(ScriptError::Failed(message)) => Err(message),
    };
    match (known, evaluate(pool, "javascript", "expression", source, &input).await) {
        (Ok(known), Ok(real)) => {
            let same = plain(json!({ "value": known.clone() })) == plain(real.clone());
            assert!(same, "{origin}\n{source}\nhere {known}\nthere {real}");
        }
        (Err(_), Err(SandboxError::Script(_))) => {}
        (known, real) => panic!("{origin}\n{source}\nhere {known:?}\nthere {real:?}"),
    }
    true
}

#[tokio::test]
async fn every_pair_of_values_under_every_operator() {
    let pool = pool(1, Duration::from_secs(20));
    let values = [
        "$.n",
        "$.f",
        "$.neg",
        "0",
        "-0",
        "1e21",
        "1e-7",
        "NaN",
        "Infinity",
        "'a'",
        "''",
        "'12'",
        "' 7 '",
        "'0x1f'",
        "'1e3'",
        "'.5'",
        "'5.'",
        "'-'",
        "'Infinity'",
        "null",
        "undefined",
        "true",
        "false",
        "[]",
        "[5]",
        "[1,2]",
        "[[]]",
        "[null]",
        "({})",
        "({a: 1})",
        "$.list",
        "$.o",
        "$.umlaut",
        "123456789012345680000",
    ];
    let operators = [
        "+", "-", "*", "/", "%", "**", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "&", "|",
        "^", "<<", ">>", ">>>", "&&", "||", "??",
    ];
    // Many in one script, to ask the engine less often.
    for left in values {
        for operator in operators {
            let all = values.map(|right| format!("({left}) {operator} ({right})"));
            let known = all.iter().filter(|source| {
                let outcome = script::evaluate(source, &[("$", &input())], STEPS);
                !matches!(outcome, Err(ScriptError::Unsupported))
            });
            let known: Vec<String> = known
                .map(|source| format!("(function () {{ var v = {source}; return v === undefined ? 'u' : [v, v + '', typeof v, !v] }})()"))
                .collect();
            if !known.is_empty() {
                let source = format!("[{}]", known.join(", "));
                compare(&pool, &source, "pairs").await;
            }
        }
    }
    for value in values {
        for form in [
            "+(@)",
            "-(@)",
            "!(@)",
            "~(@)",
            "typeof (@)",
            "String(@)",
            "Number(@)",
            "Boolean(@)",
            "parseInt(@)",
            "parseFloat(@)",
            "isNaN(@)",
            "isFinite(@)",
            "JSON.stringify(@)",
            "JSON.stringify([@])",
            "JSON.stringify({a: @})",
            "`<${@}>`",
            "(@)?.x",
            "(@) ? 1 : 2",
            "Math.round(@)",
            "Math.floor(@)",
            "Math.ceil(@)",
            "Math.trunc(@)",
            "Math.abs(@)",
            "Math.max(@, 1)",
            "Math.min(@, 1)",
            "Math.sign(@)",
            "Number.isInteger(@)",
            "Array.isArray(@)",
            "'abcabc'.slice(@)",
            "'abcabc'.slice(1, @)",
            "'abcabc'.substring(@)",
            "'abcabc'.substring(2, @)",
            "'abcabc'.substr(@, 2)",
            "'abcabc'.substr(1, @)",
            "'abcabc'.charAt(@)",
            "'abcabc'.charCodeAt(@)",
            "'abcabc'.indexOf(@)",
            "'a12a'.includes(@)",
            "'a,b'.split(@)",
            "'abcabc'.padStart(@, 'xy')",
            "'ab'.padEnd(4, @)",
            "[1, 2, 3].slice(@)",
            "[1, 2, 3].slice(0, @)",
            "[1, 2, 3].join(@)",
            "[1, null, 'a'].includes(@)",
            "[1, null, 'a'].indexOf(@)",
            "[1].concat(@)",
            "'a-b-c'.replace('-', @)",
            "[3, 4][@]",
            "'xyz'[@]",
            "({a: 1})[@]",
            "'a'.repeat(@)",
            "Object.keys(@)",
            "Object.values(@)",
            "(@) in {a: 1, 12: 2}",
            "var o = {}; o[@] = 1; o",
            "switch (@) { case 0: 'zero'; break; case '12': case 3: 'some'; default: 'other' }",
        ] {
            compare(&pool, &form.replace('@', value), "forms").await;
        }
    }
}

#[tokio::test]
async fn scripts_of_real_definitions() {
    let pool = pool(1, Duration::from_secs(20));
    let mut known = 0;
    let scripts = [
        "if ($.n < 5) { true; } else { false; }",
        "if ( $.o['b'].c > 5 && $.yes ) { true } else { false }",
        "$.n == 3 ? 'case_a' : $.n == 4 ? 'case_b' : 'default'",
        "(function () { if ($.text === 'hello') { return 'greeting'; } else { return 'other'; } })();",
        "function e() { return $.n > 2 ? 'x' : 'y' } e();",
        "function scriptFun(){ if ($.n == 1) { return {testvalue: true} } else { return {testvalue: false} } } scriptFun();",
        "(function(){ var out = []; for (var i = 0; i < $.list.length; i++) { out.push({i: i, v: $.list[i]}); } return out; })()",
        "(() => { const r = {}; for (const k in $.o) { r[k] = typeof $.o[k]; } return r; })()",
        "var total = 0; for (const x of [1, 2, 3]) { if (x == 2) continue; total += x; } total",
        "$.list.filter(x => x != null).map(x => x + '!').join(';')",
        "JSON.stringify($)",
        "JSON.stringify({a: [undefined, 1e21, -0, 'ü\\u2028\\n\"'], b: undefined, 2: 1, 1: 2})",
        "JSON.parse(JSON.stringify($)).o",
        "'' + $.list + $.o + [[1, [2]], {}]",
        "var s = ''; for (var k in $.o) { s += k + ','; } s",
        "var fs = []; for (let i = 0; i < 3; i++) { fs.push(() => i++) } [fs[0](), fs[0](), fs[1](), fs[2]()]",
        "var i = 0; while (true) { i++; if (i > 5) break; if (i % 2) { continue; } 'even' + i; }",
        "var i = 0; do { i += 2; i; } while (i < 7)",
        "1; if (true) {} ",
        "1; for (var i = 0; i < 2; i++) {}",
        "1; var x = 2; function f() {} ;",
        "switch (3) { case 1: 'a'; case 3: 'b'; case 4: 'c'; break; default: 'd' }",
        "var a = [1, 2, 3]; a.shift(); a.unshift(9, 8); a.reverse(); a.pop(); a",
        "var o = {a: 1}; var p = o; p.b = o.a++; ++o.a; o.a += 5; o",
        "((a, b) => a ?? b)(null, 2) + (function (x) { x = x || 5; return x })()",
        "$.missing?.a.b.c + '' + $.missing?.[0] + $?.o?.b?.c",
        "$.missing.a",
        "$.none.a",
        "$.list[9].x",
        "[0.1 + 0.2, 1 / 3, 100, 1e21, 123e-20, 5e-324, 1.7976931348623157e308, 4.35, 0.000001, 1e-7]",
        "[0.1 + 0.2, 1 / 3, 100, 1e21, 123e-20, 5e-324, 1.7976931348623157e308, 4.35, 0.000001, 1e-7].join(' ')",
        "[9007199254740993, 9007199254740992 + 1, 4611686018427387904, -9223372036854775808] + ''",
        "x",
        "var x; x",
        "typeof $.nothing",
        "void 0",
        "'use strict'; $.n",
        "`${$.n > 2 ? `a${1}b` : ''}c\\`\\${}`",
        "$.n > 2\n? 'a'\n: 'b'",
        "var a = 1\nvar b = 2\na + b",
        "/* c */ $.n // d",
        "{ let x = 1; { let x = 2; } x }",
        "(1, 2, 3)",
        "a = b => b; a(1)",
        "[...",
        "[...$.list, ...[1]].length",
        "({...$.o, ...null, n: $.n, ['k' + 1]: 2, 'x y': 3, if: 4})",
        "$.text.split('').map((c, i) => i + c).join('')",
        "$.list.reduce((a, x) => a + String(x), '>')",
        "[3, 1, 2].find(x => x > 2) + [3, 1, 2].findIndex(x => x == 9) + [1].some(x => !x) + [].every(x => x)",
        "'12px'.startsWith('12') && 'x'.endsWith('') && ' a '.trim().toUpperCase()",
    ];
    for source in scripts {
        known += usize::from(compare(&pool, source, "scripts").await);
    }
    assert!(known > scripts.len() * 8 / 10, "the kernel knew {known} of {}", scripts.len());
}

/// A random script: `seed` repeats it.
struct Writer {
    seed: u64,
}

impl Writer {
    fn below(&mut self, end: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % end
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[at]
    }

    fn expression(&mut self, depth: u32) -> String {
        const LEAVES: &[&str] = &[
            "$.n",
            "$.f",
            "$.text",
            "$.list",
            "$.o",
            "$.none",
            "$.missing",
            "$.o.b.c",
            "$.list[1]",
            "$.digits",
            "0",
            "1",
            "-1",
            "2.5",
            "'a'",
            "'7'",
            "''",
            "null",
            "undefined",
            "true",
            "false",
            "x",
            "y",
            "[1, 'b']",
            "({k: 1})",
            "$.umlaut",
        ];
        const OPERATORS: &[&str] = &[
            "+", "-", "*", "/", "%", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "&&", "||",
            "&", "|", "<<", ">>>",
        ];
        if depth == 0 {
            return self.one(LEAVES).to_owned();
        }
        let mut inner = || self.expression(depth - 1);
        let (a, b, c) = (inner(), inner(), inner());
        match self.below(14) {
            0..=4 => format!("({a} {} {b})", self.one(OPERATORS)),
            5 => format!("({a} ? {b} : {c})"),
            6 => format!("({}({a}))", self.one(&["!", "-", "+", "~", "typeof ", "void "])),
            7 => format!("[{a}, {b}]"),
            8 => format!("({{p: {a}, [{b}]: {c}}})"),
            9 => format!("`{{${{{a}}}-${{{b}}}}}`"),
            10 => format!(
                "String({a}).{}",
                self.one(&[
                    "length",
                    "slice(1)",
                    "toUpperCase()",
                    "split('')",
                    "indexOf('a')",
                    "trim()"
                ])
            ),
            11 => format!(
                "[{a}, {b}, {c}].{}",
                self.one(&[
                    "length",
                    "join('-')",
                    "map(e => e + 1)",
                    "filter(e => e)",
                    "slice(-2)",
                    "includes(1)",
                    "concat([x])"
                ])
            ),
            12 => format!(
                "{}({a})",
                self.one(&[
                    "Number",
                    "Boolean",
                    "parseInt",
                    "parseFloat",
                    "JSON.stringify",
                    "isNaN",
                    "Math.floor",
                    "Math.abs"
                ])
            ),
            _ => format!("((x, y) => {a})({b}, {c})"),
        }
    }

    fn statement(&mut self, depth: u32) -> String {
        let value = self.expression(2);
        if depth == 0 {
            return format!("{value};");
        }
        let (inner, other) = (self.statement(depth - 1), self.statement(depth - 1));
        match self.below(9) {
            0 => format!("if ({value}) {{ {inner} }} else {{ {other} }}"),
            1 => format!("if ({value}) {{ {inner} }}"),
            2 => format!("{} {value};", self.one(&["x =", "y =", "x +=", "y -="])),
            3 => format!(
                "for (var i{depth} = 0; i{depth} < 3; i{depth}++) {{ {inner} if ({value}) break; {other} }}"
            ),
            4 => format!("for (const y of [{value}, 1]) {{ {inner} }}"),
            5 => format!("{{ let x = {value}; {inner} {other} }}"),
            6 => format!(
                "switch ({value}) {{ case 1: {inner} case 'a': {other} break; default: {inner} }}"
            ),
            7 => format!("(function (x) {{ {inner} return {value}; }})(y);"),
            _ => format!("{inner} {other}"),
        }
    }
}

#[tokio::test]
async fn random_scripts() {
    const SCRIPTS: u64 = 3_000;
    let seed = std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let count = if seed.is_some() { 1 } else { SCRIPTS };
    let pool = pool(1, Duration::from_secs(20));
    let mut known = 0;
    for seed in first..first + count {
        let mut writer = Writer { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
        let source = format!("var x = 1, y = 'q'; {}", writer.statement(2));
        let origin = format!(
            "repeat with: WINDLASS_SEED={seed} cargo test -p windlass-builtin random_scripts"
        );
        known += u64::from(compare(&pool, &source, &origin).await);
    }
    assert!(seed.is_some() || known > count / 2, "the kernel knew only {known} of {count}");
}
