//! The query language of searches, for what is not in the history: `field (=|>|<|IN) value`, joined
//! by ` AND `. Quotes and parentheses mean nothing; what has no such field passes.

use crate::failure::{Answered, Failure};

/// Conditions that must all hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conditions(Vec<Condition>);

#[derive(Debug, PartialEq, Eq)]
struct Condition {
    field: String,
    test: Test,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    Above(u64),
    Below(u64),
}

impl Conditions {
    pub(crate) fn parse(query: &str) -> Answered<Conditions> {
        let parts = query.split(" AND ").map(str::trim).filter(|part| !part.is_empty());
        parts.map(condition).collect::<Answered<Vec<Condition>>>().map(Conditions)
    }

    /// Whether they hold for something with these fields.
    pub(crate) fn hold(&self, field: impl Fn(&str) -> Option<String>) -> bool {
        self.0.iter().all(|condition| {
            let Some(value) = field(&condition.field) else { return true };
            match &condition.test {
                Test::In(values) => values.contains(&value),
                Test::Above(bound) => value.parse::<u64>().is_ok_and(|value| value > *bound),
                Test::Below(bound) => value.parse::<u64>().is_ok_and(|value| value < *bound),
            }
        })
    }
}

fn condition(text: &str) -> Answered<Condition> {
    let wrong = || Failure::invalid(format!("Incorrectly formatted query string: {text}"));
    let bare: String = text.chars().filter(|it| !matches!(it, '\'' | '"' | '(' | ')')).collect();
    let end = bare.find(|letter: char| !letter.is_ascii_alphabetic());
    let end = end.filter(|end| *end > 0).ok_or_else(wrong)?;
    let (field, rest) = bare.split_at(end);
    let rest = rest.trim_start();
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let test = if let Some(value) = rest.strip_prefix('=') {
        Test::In(vec![value.trim().to_owned()])
    } else if let Some(value) = rest.strip_prefix('>') {
        Test::Above(number(value)?)
    } else if let Some(value) = rest.strip_prefix('<') {
        Test::Below(number(value)?)
    } else if let Some(values) = rest.strip_prefix("IN") {
        Test::In(values.split(',').map(|value| value.trim().to_owned()).collect())
    } else {
        return Err(wrong());
    };
    Ok(Condition { field: field.to_owned(), test })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_or_do_not() {
        let field = |name: &str| match name {
            "name" => Some("a b".to_owned()),
            "time" => Some("100".to_owned()),
            _ => None,
        };
        for (query, holds) in [
            ("", true),
            ("name='a b'", true),
            ("name = \"a\"", false),
            ("name IN (x, a b) AND time>99", true),
            ("name IN (x,y)", false),
            ("time<100", false),
            ("time > 100", false),
            ("other=7", true),
        ] {
            assert_eq!(Conditions::parse(query).unwrap().hold(field), holds, "{query}");
        }
        for query in ["name", "= x", "name LIKE x", "time > soon", "a=1 AND b"] {
            assert!(Conditions::parse(query).is_err(), "{query}");
        }
    }
}
