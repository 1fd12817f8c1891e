//! FEEL texts of a model: kept with what became of parsing them.

use crate::feel;

use super::names::SpecialNames;
use super::problem::ProblemRule;

/// A FEEL expression of a model.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    parsed: Result<feel::Expression, ProblemRule>,
}

/// The tests of one cell of a decision table.
#[derive(Clone, Debug)]
pub struct Tests {
    text: String,
    parsed: Result<ParsedTests, ProblemRule>,
}

#[derive(Clone, Debug)]
pub(super) enum ParsedTests {
    Anything,
    Tests(feel::UnaryTests),
}

impl Expression {
    /// The text as it is in the document.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn parse(text: String, names: &SpecialNames) -> Expression {
        let parsed = names.within(&text).and_then(|names| {
            feel::parse_with(text.trim(), &names)
                .map_err(|error| ProblemRule::NotFeel(error.to_string()))
        });
        Expression { text, parsed }
    }

    pub(super) fn broken(text: String, rule: ProblemRule) -> Expression {
        Expression { text, parsed: Err(rule) }
    }

    pub(super) fn parsed(&self) -> Result<&feel::Expression, &ProblemRule> {
        self.parsed.as_ref()
    }
}

impl Tests {
    /// The text as it is in the document.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn parse(text: String, names: &SpecialNames) -> Tests {
        let trimmed = text.trim();
        let parsed = if trimmed.is_empty() || trimmed == "-" {
            Ok(ParsedTests::Anything)
        } else {
            names.within(trimmed).and_then(|names| {
                feel::parse_unary_tests_with(trimmed, &names)
                    .map(ParsedTests::Tests)
                    .map_err(|error| ProblemRule::NotFeel(error.to_string()))
            })
        };
        Tests { text, parsed }
    }

    pub(super) fn broken(text: String, rule: ProblemRule) -> Tests {
        Tests { text, parsed: Err(rule) }
    }

    pub(super) fn parsed(&self) -> Result<&ParsedTests, &ProblemRule> {
        self.parsed.as_ref()
    }
}
