//! The names of kinds of values, behind `instance of` and parameters.

use std::sync::Arc;

use super::{DEPTH_MAX, Parser};
use crate::feel::ParseError;
use crate::feel::kind::Kind;
use crate::feel::node::Node;

impl Parser<'_> {
    /// The name of a kind of values and nothing behind it; and how deeply it is nested.
    pub(crate) fn whole_kind(mut self) -> Result<(Kind, u32), ParseError> {
        let kind = self.kind()?;
        self.end()?;
        Ok((kind, self.kind_depth))
    }

    /// The name of a kind of values.
    pub(super) fn kind(&mut self) -> Result<Kind, ParseError> {
        let mut kind = None;
        self.nested(|parser| {
            kind = Some(parser.kind_inside()?);
            Ok(Node::Input)
        })?;
        Ok(kind.unwrap_or(Kind::Any))
    }

    fn kind_inside(&mut self) -> Result<Kind, ParseError> {
        let spaced = ["years and months duration", "days and time duration", "date and time"];
        if let Some(words) = spaced.into_iter().find(|words| self.scan.take_words(words)) {
            return Ok(Kind::named(words));
        }
        self.scan.skip_space();
        let Some(word) = self.scan.name().or_else(|| self.scan.word().map(Arc::from)) else {
            return self.scan.error(format!("expected a type and found {}", self.scan.found()));
        };
        let mut word = word.to_string();
        while word != "list" && (self.scan.sees(".") || self.scan.sees("-")) {
            // Qualified names, and the hyphenated names of durations in older models.
            let separator = if self.scan.take(".") { "." } else { "-" };
            if separator == "-" {
                self.scan.take("-");
            }
            let Some(next) = self.scan.word() else {
                return self.scan.error(format!("expected a name and found {}", self.scan.found()));
            };
            word = format!("{word}{separator}{next}");
        }
        match word.as_str() {
            "list" if self.scan.take("<") => {
                let inner = self.kind()?;
                self.scan.expect(">")?;
                Ok(Kind::List(Arc::new(inner)))
            }
            "range" if self.scan.take("<") => {
                let inner = self.kind()?;
                self.scan.expect(">")?;
                Ok(Kind::Range(Arc::new(inner)))
            }
            "context" if self.scan.take("<") => self.kind_of_context(),
            "function" if self.scan.take("<") => self.kind_of_function(),
            other => self.kind_named(other),
        }
    }

    fn kind_of_context(&mut self) -> Result<Kind, ParseError> {
        let mut entries = Vec::new();
        loop {
            let Some(name) = self.scan.name_before(&[':']) else {
                return self.scan.error(format!("expected a key and found {}", self.scan.found()));
            };
            self.scan.expect(":")?;
            entries.push((name, self.kind()?));
            if self.scan.take(">") {
                return Ok(Kind::Context(entries.into()));
            }
            self.scan.expect(",")?;
        }
    }

    fn kind_of_function(&mut self) -> Result<Kind, ParseError> {
        while !self.scan.take(">") {
            self.kind()?;
            self.scan.take(",");
        }
        self.scan.expect("->")?;
        self.kind()?;
        Ok(Kind::Function)
    }

    /// The model's kind of this name, or FEEL's own. What a model nests by its definitions counts
    /// like what is nested here.
    fn kind_named(&mut self, name: &str) -> Result<Kind, ParseError> {
        let defined = self.scan.defined_kind(name);
        let inner = defined.map_or(0, |defined| defined.depth);
        self.kind_depth = self.kind_depth.max(self.depth.saturating_add(inner));
        if self.kind_depth > DEPTH_MAX {
            return self.scan.error("types lie too deeply inside one another");
        }
        Ok(defined.map_or_else(|| Kind::named(name), |defined| defined.kind.clone()))
    }
}
