//! JSON compared by what it means.
//!
//! Destinations give states back as their libraries write them: keys in another order, `1.50` as `1.5`,
//! other spaces. A [`Print`] is the same for all of these, and different otherwise but for a chance of
//! one in 2^128.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Number, Value};

/// The fingerprint of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Print(u64, u64);

/// The fingerprint of a value.
#[must_use]
pub fn print(value: &Value) -> Print {
    let half = |side: u8| {
        let mut hasher = DefaultHasher::new();
        side.hash(&mut hasher);
        hash_value(value, &mut hasher);
        hasher.finish()
    };
    Print(half(1), half(2))
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0u8.hash(hasher),
        Value::Bool(truth) => (1u8, truth).hash(hasher),
        Value::Number(number) => hash_number(number, hasher),
        Value::String(text) => (3u8, text).hash(hasher),
        Value::Array(items) => {
            (4u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Object(fields) => {
            (5u8, fields.len()).hash(hasher);
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (key, item) in sorted {
                key.hash(hasher);
                hash_value(item, hasher);
            }
        }
    }
}

/// Whole numbers are the same with and without a fraction of zero.
fn hash_number(number: &Number, hasher: &mut DefaultHasher) {
    /// Below it every whole number is exact as a fraction too.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if let Some(whole) = number.as_i64() {
        (2u8, i128::from(whole)).hash(hasher);
    } else if let Some(whole) = number.as_u64() {
        (2u8, i128::from(whole)).hash(hasher);
    } else if let Some(fraction) = number.as_f64() {
        if fraction.fract() == 0.0 && fraction.abs() < EXACT_MAX {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
            let whole = fraction as i64;
            (2u8, i128::from(whole)).hash(hasher);
        } else {
            (6u8, fraction.to_bits()).hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Print {
        print(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn the_same_in_other_words() {
        let same = [
            (r#"{"a":1.50,"b":[1,2]}"#, r#"{ "b": [1, 2.0], "a": 1.5 }"#),
            ("1.0", "1"),
            ("-0.0", "0"),
            (r#""\u00e9""#, "\"é\""),
            ("1e2", "100"),
        ];
        for (left, right) in same {
            assert_eq!(of(left), of(right), "{left} {right}");
        }
    }

    #[test]
    fn what_differs_differs() {
        let different = [
            "null",
            "0",
            "1",
            "1.5",
            "\"1\"",
            "[]",
            "{}",
            "[[]]",
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[1,[2]]",
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"{"a":null}"#,
            "true",
            "false",
            "9007199254740993",
            "9007199254740992",
        ];
        for (index, left) in different.iter().enumerate() {
            for right in &different[index + 1..] {
                assert_ne!(of(left), of(right), "{left} {right}");
            }
        }
    }
}
