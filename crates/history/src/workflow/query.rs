//! The query language: `field (=|>|<|IN) value`, joined by ` AND `.
//!
//! It has no nesting and no escapes. Quotes and parentheses are of no meaning and left out wherever
//! they stand, as in the original; so a value cannot have them. What the original refuses by
//! accident, `>=` and blanks in lists, is taken.

use crate::search::Order;

/// Longer ones are refused. SQLite takes no pattern over 50,000 bytes.
const QUERY_BYTES_MAX: usize = 20_000;
/// Queries with more conditions are refused. SQLite takes no expression deeper than 1,000.
const CONDITIONS_MAX: usize = 200;

/// Why a search was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A part of the query that is no condition, or has a word where a number belongs.
    #[error("Incorrectly formatted query string: {condition}")]
    Condition {
        /// That part.
        condition: String,
    },
    /// The query is too long.
    #[error("a query may have {bytes_max} bytes and {conditions_max} conditions at most")]
    TooLong {
        /// How long it may be.
        bytes_max: usize,
        /// How many conditions it may have.
        conditions_max: usize,
    },
    /// More items were asked for than one answer may have.
    #[error("Cannot return more than {max} {of}. Please use pagination.")]
    TooMany {
        /// How many it may have.
        max: u32,
        /// Items of what.
        of: &'static str,
    },
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition<'a> {
    /// As it was written.
    pub(super) text: &'a str,
    pub(super) field: &'a str,
    pub(super) test: Comparison,
}

/// What is asked of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal(String),
    Greater(String),
    GreaterOrEqual(String),
    Less(String),
    LessOrEqual(String),
    In(Vec<String>),
}

/// The conditions of a query.
pub(super) fn parse(query: &str) -> Result<Vec<Condition<'_>>, QueryError> {
    let too_long =
        QueryError::TooLong { bytes_max: QUERY_BYTES_MAX, conditions_max: CONDITIONS_MAX };
    if query.len() > QUERY_BYTES_MAX {
        return Err(too_long);
    }
    if query.trim().is_empty() {
        return Ok(Vec::new());
    }
    let conditions = query.split(" AND ").map(condition).collect::<Result<Vec<_>, _>>()?;
    if conditions.len() > CONDITIONS_MAX { Err(too_long) } else { Ok(conditions) }
}

/// Whether a free text is short enough.
pub(super) fn check_free_text(text: &str) -> Result<(), QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        let (bytes_max, conditions_max) = (QUERY_BYTES_MAX, CONDITIONS_MAX);
        return Err(QueryError::TooLong { bytes_max, conditions_max });
    }
    Ok(())
}

/// The terms of a sort: what is none is left out, and a field counts once.
pub(super) fn parse_sort<F: Copy + PartialEq>(
    sort: &str,
    named: impl Fn(&str) -> Option<F>,
) -> Vec<(F, Order)> {
    let mut terms: Vec<(F, Order)> = Vec::new();
    for term in sort.split('|') {
        let Some((field, order)) = term.split_once(':') else { continue };
        let order = match order.trim() {
            word if word.eq_ignore_ascii_case("ASC") => Order::Ascending,
            word if word.eq_ignore_ascii_case("DESC") => Order::Descending,
            _ => continue,
        };
        let Some(field) = named(field.trim()) else { continue };
        if terms.iter().all(|(before, _)| *before != field) {
            terms.push((field, order));
        }
    }
    terms
}

/// The first word that an operator follows, the operator, and all the rest.
fn condition(text: &str) -> Result<Condition<'_>, QueryError> {
    let mut rest = text;
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_alphabetic()) {
        let word = rest.get(begin..).unwrap_or_default();
        let end = word.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(word.len());
        let (field, behind) = word.split_at(end);
        if let Some(test) = comparison(behind) {
            return Ok(Condition { text, field, test });
        }
        rest = behind;
    }
    Err(QueryError::Condition { condition: text.to_owned() })
}

fn comparison(text: &str) -> Option<Comparison> {
    let text = text.trim_start();
    if let Some(values) = text.strip_prefix("IN") {
        let values: Vec<String> = values.split(',').map(value).collect();
        return Some(Comparison::In(values));
    }
    let signs: [(&str, fn(String) -> Comparison); 5] = [
        (">=", Comparison::GreaterOrEqual),
        ("<=", Comparison::LessOrEqual),
        ("=", Comparison::Equal),
        (">", Comparison::Greater),
        ("<", Comparison::Less),
    ];
    signs.into_iter().find_map(|(sign, test)| Some(test(value(text.strip_prefix(sign)?))))
}

fn value(text: &str) -> String {
    let kept: String =
        text.chars().filter(|letter| !matches!(letter, '"' | '\'' | '(' | ')')).collect();
    kept.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(text: &str) -> Comparison {
        Comparison::Equal(text.into())
    }

    fn is_in(texts: &[&str]) -> Comparison {
        Comparison::In(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn queries() {
        let table: &[(&str, &[(&str, Comparison)])] = &[
            ("", &[]),
            ("  ", &[]),
            ("status=RUNNING", &[("status", equal("RUNNING"))]),
            ("status = 'RUNNING'", &[("status", equal("RUNNING"))]),
            ("status = \"RUNNING\"", &[("status", equal("RUNNING"))]),
            ("correlationId = ''", &[("correlationId", equal(""))]),
            ("workflowType IN (a,b)", &[("workflowType", is_in(&["a", "b"]))]),
            ("workflowType IN ('a', \"b\")", &[("workflowType", is_in(&["a", "b"]))]),
            ("workflowType IN(a)", &[("workflowType", is_in(&["a"]))]),
            (
                "startTime > 5 AND endTime<9",
                &[
                    ("startTime", Comparison::Greater("5".into())),
                    ("endTime", Comparison::Less("9".into())),
                ],
            ),
            ("startTime>=5", &[("startTime", Comparison::GreaterOrEqual("5".into()))]),
            ("startTime<=5", &[("startTime", Comparison::LessOrEqual("5".into()))]),
            ("input = a=b", &[("input", equal("a=b"))]),
            // An operator is looked for behind each word, and `and` is not `AND`.
            ("not a status = x and y", &[("status", equal("x and y"))]),
            ("(status = x)", &[("status", equal("x"))]),
            ("workflow_id = x", &[("id", equal("x"))]),
        ];
        for (query, expected) in table {
            let conditions = parse(query).expect("a query");
            let seen: Vec<_> = conditions.into_iter().map(|it| (it.field, it.test)).collect();
            assert_eq!(&seen, expected, "{query}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_its_text() {
        for (query, part) in [
            ("status", "status"),
            ("status = a AND what", "what"),
            ("= 5", "= 5"),
            ("status ! x", "status ! x"),
            ("äöü", "äöü"),
        ] {
            let expected = QueryError::Condition { condition: part.into() };
            assert_eq!(parse(query), Err(expected), "{query}");
        }
    }

    #[test]
    fn long_queries_are_refused() {
        let too_long = |query: &str| matches!(parse(query), Err(QueryError::TooLong { .. }));
        assert!(too_long(&"x".repeat(QUERY_BYTES_MAX + 1)));
        assert!(too_long(&vec!["a=1"; CONDITIONS_MAX + 1].join(" AND ")));
        assert!(!too_long(&vec!["a=1"; CONDITIONS_MAX].join(" AND ")));
    }

    #[test]
    fn sorts() {
        let named = |name: &str| ["a", "b"].into_iter().find(|field| *field == name);
        for (sort, expected) in [
            ("", &[][..]),
            ("a:ASC", &[("a", Order::Ascending)]),
            ("b:desc|a:Asc", &[("b", Order::Descending), ("a", Order::Ascending)]),
            ("a|b:UP|c:ASC|:|a:ASC:b", &[]),
            ("a:ASC|a:DESC", &[("a", Order::Ascending)]),
        ] {
            assert_eq!(parse_sort(sort, named), expected, "{sort}");
        }
    }

    /// Any text is a query or is refused.
    #[test]
    fn random_text_does_no_harm() {
        const PARTS: [&str; 20] = [
            " AND ",
            "status",
            "=",
            ">",
            "<",
            "IN",
            "(",
            ")",
            "'",
            "\"",
            ",",
            " ",
            "*",
            "%",
            "\\",
            "ä",
            "\u{0}",
            "workflowId",
            "5",
            "🦀",
        ];
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..20_000 {
            let mut text = String::new();
            for _ in 0..round % 17 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let part = usize::try_from(seed >> 59).expect("small");
                match PARTS.get(part) {
                    Some(part) => text.push_str(part),
                    None => text.push(char::from_u32((seed >> 32) as u32 % 0x800).unwrap_or('x')),
                }
            }
            if let Ok(conditions) = parse(&text) {
                for condition in conditions {
                    assert!(text.contains(condition.text), "{text:?}");
                    assert!(condition.field.bytes().all(|byte| byte.is_ascii_alphabetic()));
                }
            }
            parse_sort(&text, |name| Some(name.len()));
        }
    }
}
