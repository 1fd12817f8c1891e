//! Tables of expressions and their values.

use super::support::{ENVIRONMENT, check, check_tests};
use crate::feel::*;

#[test]
fn variables_and_paths() {
    check(&[
        ("a", "7"),
        ("missing", "null"),
        ("missing.deeper[1].still", "null"),
        ("order.id", r#""o-1""#),
        ("order.lines.sku", r#"["x","y"]"#),
        ("order.lines[count > 2].sku", r#"["y"]"#),
        ("order.lines[2].count", "5"),
        ("numbers[-1]", "2"),
        ("numbers[0]", "null"),
        ("numbers[item > 1]", "[3,2]"),
        ("name[1]", r#""Ada""#),
        ("`a` + 1", "8"),
        ("/* a comment */ a // and another", "7"),
    ]);
}

#[test]
fn null_where_there_is_no_answer() {
    check(&[
        ("missing > 5", "null"),
        ("null = null", "true"),
        ("missing = null", "true"),
        ("a = \"7\"", "null"),
        ("a + \"7\"", "null"),
        ("1 / 0", "null"),
        ("string length(5)", "null"),
        ("no such function(5)", "expected an operator or the end and found 'such' at byte 3"),
        ("unknown(5)", "null"),
        ("if missing > 5 then 1 else 2", "2"),
        ("not(missing)", "null"),
        ("null and false", "false"),
        ("null and true", "null"),
        ("null or true", "true"),
        ("sum([])", "null"),
        ("@\"2023-02-30\"", "null"),
        ("79228162514264337593543950335 * 10", "null"),
    ]);
}

#[test]
fn operators() {
    check(&[
        ("1 + 2 * 3 ** 2", "19"),
        ("2 ** 3 ** 2", "64"),
        ("-3 + 5", "2"),
        ("- a", "-7"),
        ("10 - 2 - 3", "5"),
        ("0.1 + 0.2", "0.3"),
        ("price * 2", "3"),
        ("1 / 3", "0.3333333333333333333333333333"),
        ("4 ** 0.5", "2"),
        ("\"a\" + \"b\"", r#""ab""#),
        ("5 between 3 and 7 and true", "true"),
        ("5 in [1..5)", "false"),
        ("5 in (1, 5)", "true"),
        ("5 in ]1..5]", "true"),
        ("5 in (> 3, < 2)", "true"),
        ("5 in [[1..3], [4..6]]", "true"),
        ("a in numbers", "false"),
        ("[1..3] = [1..3]", "true"),
        ("(1..3).end", "3"),
        ("5 instance of number", "true"),
        ("[1, 2] instance of list<number>", "true"),
        ("{a: 1} instance of context<a: number>", "true"),
        ("null instance of Any", "false"),
        ("@\"P1D\" instance of days and time duration", "true"),
    ]);
}

#[test]
fn iterations_and_functions() {
    check(&[
        ("for x in [1, 2], y in [10, 20] return x * y", "[10,20,20,40]"),
        ("for i in 3..1 return i", "[3,2,1]"),
        ("for i in 1..4 return if i = 1 then 1 else i * partial[-1]", "[1,2,6,24]"),
        ("for d in @\"2024-02-28\"..@\"2024-03-01\" return d.day", "[28,29,1]"),
        ("some x in numbers satisfies x > 2", "true"),
        ("every x in numbers satisfies x > 2", "false"),
        ("some x in 1..1000000000000 satisfies x > 3", "true"),
        ("{f: function(x) x + 1, r: f(2)}.r", "3"),
        ("{f: function(n) if n < 2 then 1 else n * f(n - 1), r: f(10)}.r", "3628800"),
        ("{add: function(a: number, b: number) a + b, r: add(b: 1, a: 2)}.r", "3"),
        ("{add: function(a: number) a, r: add(\"x\")}.r", "null"),
        ("(function(x) x * 2)(4)", "8"),
        ("sort(numbers, function(x, y) x < y)", "[1,2,3]"),
        ("{a: 1, b: a + 1, \"c d\": b}", r#"{"a":1,"b":2,"c d":2}"#),
        ("{a b: 2, c: a b + 1}.c", "3"),
    ]);
}

#[test]
fn built_in_functions() {
    check(&[
        ("substring(\"foobar\", 3)", r#""obar""#),
        ("substring(string: \"foobar\", start position: -2)", r#""ar""#),
        ("replace(\"abcd\", \"(ab)|(a)\", \"[1=$1]\")", r#""[1=ab]cd""#),
        ("matches(\"foobar\", \"^fo*b\")", "true"),
        ("matches(\"a\", \"[\")", "null"),
        ("split(\"a;b;;c\", \";\")", r#"["a","b","","c"]"#),
        ("string join([\"a\", null, \"b\"], \"-\")", r#""a-b""#),
        ("string({a: [1, \"x\"]})", r#""{a:[1, \"x\"]}""#),
        ("number(\"1 000,5\", \" \", \",\")", "1000.5"),
        ("min(3, 1, 2)", "1"),
        ("median([8, 2, 5, 3])", "4"),
        ("mode([6, 3, 9, 6, 6])", "[6]"),
        ("floor(-1.55, 1)", "-1.6"),
        ("decimal(2.5, 0)", "2"),
        ("round half up(5.5, 0)", "6"),
        ("modulo(-12, 5)", "3"),
        ("distinct values([1, 2, 1])", "[1,2]"),
        ("partition([1, 2, 3], 2)", "[[1,2],[3]]"),
        ("context put({a: {b: 1}}, [\"a\", \"c\"], 2)", r#"{"a":{"b":1,"c":2}}"#),
        ("get entries({a: 1})", r#"[{"key":"a","value":1}]"#),
        ("get or else(missing, 1)", "1"),
        ("is defined(missing)", "false"),
        ("overlaps before([1..5], [3..8])", "true"),
        ("to json({a: @\"2024-01-02\"})", r#""{\"a\":\"2024-01-02\"}""#),
        ("from json(\"[1.10, {}]\")", "[1.1,{}]"),
        ("fromAi(toolCall.city, \"which city\")", "null"),
        ("assert(a, a > 10, \"too small\")", "too small"),
        ("uuid() = uuid()", "false"),
        ("random number() < 1", "true"),
        ("matches(uuid(), \"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-\")", "true"),
    ]);
}

#[test]
fn days_and_times() {
    check(&[
        ("now()", r#""2023-11-14T22:13:20.123Z""#),
        ("today()", r#""2023-11-14""#),
        ("date(\"2024-01-31\") + duration(\"P1M\")", r#""2024-02-29""#),
        (
            "@\"2024-03-30T12:00:00@Europe/Berlin\" + @\"P1D\"",
            r#""2024-03-31T13:00:00+02:00[Europe/Berlin]""#,
        ),
        ("@\"2024-01-01T00:00:00Z\" = @\"2024-01-01T01:00:00+01:00\"", "true"),
        ("@\"2024-03-01\" - @\"2024-02-01\"", r#""P29D""#),
        ("@\"10:30:00\" + @\"PT20H\"", r#""06:30:00""#),
        ("@\"P1D\" / @\"PT6H\"", "4"),
        ("years and months duration(@\"2011-12-22\", @\"2013-08-24\")", r#""P1Y8M""#),
        ("@\"2024-02-29\".weekday", "4"),
        ("week of year(@\"2005-01-01\")", "53"),
        ("last day of month(@\"2023-02-01\")", r#""2023-02-28""#),
        ("@\"-999999999-01-01\" - @\"999999999-12-31\" < @\"P0D\"", "true"),
        (
            "date and time(@\"2024-07-01T12:00:00Z\", \"Asia/Tokyo\")",
            r#""2024-07-01T21:00:00+09:00[Asia/Tokyo]""#,
        ),
    ]);
}

#[test]
fn tests_of_a_cell() {
    check_tests(&[
        ("-", "null", true),
        ("> 5", "6", true),
        ("> 5", "null", false),
        ("[1..3]", "3", true),
        ("]1..3[", "3", false),
        ("\"a\",\"b\"", "\"b\"", true),
        ("not(\"a\",\"b\")", "\"b\"", false),
        ("not(1)", "2", true),
        ("false", "false", true),
        ("false", "true", false),
        ("null", "null", true),
        ("? > 3 and ? < 5", "4", true),
        ("contains(?, \"d\")", "\"Ada\"", true),
        ("< date(\"2024-01-01\")", "@\"2023-12-31\"", true),
        ("[1, 2, 3]", "2", true),
        ("-5", "-5", true),
    ]);
}

#[test]
fn names_that_only_a_model_knows() {
    let mut names = Names::default();
    names.allow("Monthly Salary");
    names.allow("a-b");
    let expression = parse_with("Monthly   Salary * 12 + a-b", &names).expect("it is FEEL");
    let scope = Value::from_json(r#"{"Monthly Salary": 100, "a-b": 5}"#).expect("it is JSON");
    let scope: &Context = scope.as_context().expect("it is an object");
    let value = expression.evaluate(scope, &ENVIRONMENT, &mut Budget::default());
    assert_eq!(value.map(|value| value.to_json()), Ok("1205".to_owned()));
}

#[test]
fn types_that_only_a_model_knows() {
    let mut names = Names::default();
    names.define_type("tLine", "context<sku: string>").expect("it is a type");
    names.define_type("tLines", "list<tLine>").expect("it is a type");
    names.define_type("tWrong", "list<").expect_err("it is no type");
    let mut deep = Ok(());
    for _ in 0..1_000 {
        names
            .define_type("tDeep", "context<a: tDeep, b: tDeep>")
            .unwrap_or_else(|error| deep = Err(error));
    }
    deep.expect_err("it is too deep");
    for (source, expected) in [
        ("[{sku: \"a\"}] instance of tLines", "true"),
        ("[{sku: 5}] instance of tLines", "false"),
        ("5 instance of tOther", "false"),
    ] {
        let expression = parse_with(source, &names).expect("it is FEEL");
        let value = expression.evaluate(&Context::default(), &ENVIRONMENT, &mut Budget::default());
        assert_eq!(value.map(|value| value.to_json()), Ok(expected.to_owned()), "{source}");
    }
}

#[test]
fn json_is_exact_and_in_order() {
    let text = r#"{"z":12345678901234567890.12345678,"a":"\n\u0001é😀","m":[true,null,-1]}"#;
    assert_eq!(Value::from_json(text).map(|value| value.to_json()), Ok(text.to_owned()));
    for wrong in ["", "01", "1.", "[1,]", "{\"a\" 1}", "\"\\x\"", "nul", "1 2", "\"\n\""] {
        assert!(Value::from_json(wrong).is_err(), "{wrong}");
    }
    let pair = Value::from_json(r#""\ud83d\ude00""#).map(|value| value.to_json());
    assert_eq!(pair, Ok("\"😀\"".to_owned()));
}

#[test]
fn parse_errors_say_where() {
    for (source, expected) in [
        ("1 +", "expected a value and found the end at byte 3"),
        ("if a then b", "expected 'else' and found the end at byte 11"),
        ("[1, 2", "expected ']' and found the end at byte 5"),
        ("a b", "expected an operator or the end and found 'b' at byte 2"),
        ("\"abc", "the string has no end at byte 0"),
    ] {
        assert_eq!(
            parse(source).map(|_| ()).map_err(|error| error.to_string()),
            Err(expected.to_owned())
        );
    }
}
