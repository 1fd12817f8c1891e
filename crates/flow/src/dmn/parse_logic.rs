//! Boxed expressions, from their elements. Recursion is bounded by the depth of the document.

use std::sync::Arc;

use roxmltree::Node;

use super::expression::{Expression, Tests};
use super::function::argument_name;
use super::model::{
    Binding, Conditional, ContextEntry, Filter, FunctionDefinition, Invocation, Iteration,
    IterationKind, Logic, Parameter, Relation,
};
use super::parse::Reader;
use super::problem::ProblemRule;
use super::xml;

/// What `expressionLanguage` may say, in lower case.
const FEEL_LANGUAGES: [&str; 7] = [
    "feel",
    "http://www.omg.org/spec/feel/20140401",
    "http://www.omg.org/spec/dmn/20180521/feel/",
    "https://www.omg.org/spec/dmn/20191111/feel/",
    "https://www.omg.org/spec/dmn/20211108/feel/",
    "https://www.omg.org/spec/dmn/20230324/feel/",
    "http://www.omg.org/spec/feel/20151101",
];

/// The elements that are expressions.
const LOGIC_ELEMENTS: [&str; 12] = [
    "decisionTable",
    "literalExpression",
    "context",
    "invocation",
    "list",
    "relation",
    "functionDefinition",
    "conditional",
    "filter",
    "for",
    "some",
    "every",
];

impl Reader<'_, '_> {
    /// The expression that is a child of `node`.
    pub(super) fn logic_child(&mut self, node: Node<'_, '_>) -> Option<Logic> {
        let own = xml::children(node).find(|child| is_logic(*child))?;
        Some(self.logic(own))
    }

    /// The expression that `node` is.
    pub(super) fn logic(&mut self, node: Node<'_, '_>) -> Logic {
        match node.tag_name().name() {
            "decisionTable" => self.table(node),
            "literalExpression" => Logic::LiteralExpression(self.expression(node)),
            "context" => self.context(node),
            "invocation" => self.invocation(node),
            "list" => {
                let items: Vec<_> = xml::children(node).filter(|own| is_logic(*own)).collect();
                Logic::List(items.into_iter().map(|item| self.logic(item)).collect())
            }
            "relation" => self.relation(node),
            "functionDefinition" => Logic::Function(Arc::new(self.function(node))),
            "conditional" => Logic::Conditional(Box::new(Conditional {
                condition: self.part(node, "if"),
                consequence: self.part(node, "then"),
                alternative: self.part(node, "else"),
            })),
            "filter" => Logic::Filter(Box::new(Filter {
                list: self.part(node, "in"),
                condition: self.part(node, "match"),
            })),
            "for" => self.iteration(node, IterationKind::For, "return"),
            "some" => self.iteration(node, IterationKind::Some, "satisfies"),
            "every" => self.iteration(node, IterationKind::Every, "satisfies"),
            other => {
                let rule = ProblemRule::LogicUnsupported(other.to_owned());
                self.invalid(node, rule)
            }
        }
    }

    /// The FEEL expression that `node` holds as text.
    pub(super) fn expression(&mut self, node: Node<'_, '_>) -> Expression {
        let Some(text) = xml::child_text(node).filter(|own| !own.trim().is_empty()) else {
            return self.broken_expression(node, String::new(), ProblemRule::ExpressionEmpty);
        };
        if let Some(rule) = other_language(node) {
            return self.broken_expression(node, text, rule);
        }
        let expression = Expression::parse(text, &self.names);
        if let Err(rule) = expression.parsed() {
            self.problem(node, rule.clone());
        }
        expression
    }

    /// The FEEL expression that `node` holds as text; null if it holds none.
    pub(super) fn expression_or_null(&mut self, node: Node<'_, '_>) -> Expression {
        match xml::child_text(node) {
            Some(text) if text.trim().is_empty() => {
                Expression::parse("null".to_owned(), &self.names)
            }
            Some(_) | None => self.expression(node),
        }
    }

    fn broken_expression(
        &mut self,
        node: Node<'_, '_>,
        text: String,
        rule: ProblemRule,
    ) -> Expression {
        self.problem(node, rule.clone());
        Expression::broken(text, rule)
    }

    /// The tests that `node` holds as text.
    pub(super) fn tests(&mut self, node: Node<'_, '_>) -> Tests {
        let text = xml::child_text(node).unwrap_or_default();
        let tests = match other_language(node) {
            Some(rule) => Tests::broken(text, rule),
            None => Tests::parse(text, &self.names),
        };
        if let Err(rule) = tests.parsed() {
            self.problem(node, rule.clone());
        }
        tests
    }

    /// The function that `node` defines.
    pub(super) fn function(&mut self, node: Node<'_, '_>) -> FunctionDefinition {
        let kind = xml::attribute(node, "kind").unwrap_or("FEEL");
        let body = if kind == "FEEL" {
            self.logic_child(node)
        } else {
            Some(self.invalid(node, ProblemRule::FunctionKindUnsupported(kind.to_owned())))
        };
        let mut parameters = Vec::new();
        for own in xml::children_named(node, "formalParameter") {
            let Some(name) = xml::name(own) else {
                self.problem(own, ProblemRule::AttributeMissing("name"));
                continue;
            };
            let type_name = xml::attribute(own, "typeRef").map(str::to_owned);
            parameters.push(Parameter { name: Arc::from(name), type_name });
        }
        FunctionDefinition::new(parameters, body)
    }

    fn context(&mut self, node: Node<'_, '_>) -> Logic {
        let mut entries = Vec::new();
        for entry in xml::children_named(node, "contextEntry") {
            let name = xml::child(entry, "variable").and_then(xml::name).map(Arc::from);
            let logic = match self.logic_child(entry) {
                Some(logic) => logic,
                None => self.invalid(entry, ProblemRule::LogicMissing),
            };
            entries.push(ContextEntry { name, logic });
        }
        Logic::Context(entries)
    }

    fn invocation(&mut self, node: Node<'_, '_>) -> Logic {
        let Some(function) = xml::child(node, "literalExpression") else {
            return self.invalid(node, ProblemRule::ElementMissing("literalExpression"));
        };
        let function = self.expression(function);
        let mut bindings = Vec::new();
        for own in xml::children_named(node, "binding") {
            let Some(name) = xml::child(own, "parameter").and_then(xml::name) else {
                self.problem(own, ProblemRule::ElementMissing("parameter"));
                continue;
            };
            bindings.push(Binding { name: Arc::from(name), logic: self.logic_child(own) });
        }
        let arguments: Vec<String> = bindings
            .iter()
            .enumerate()
            .map(|(position, own)| format!("{}: {}", own.name, argument_name(position)))
            .collect();
        let call = format!("{}({})", function.text().trim(), arguments.join(", "));
        let call = Expression::parse(call, &self.names);
        Logic::Invocation(Box::new(Invocation { function, bindings, call }))
    }

    fn relation(&mut self, node: Node<'_, '_>) -> Logic {
        let names = xml::children_named(node, "column").map(|own| xml::name(own));
        let columns: Vec<Arc<str>> =
            names.map(|name| Arc::from(name.unwrap_or_default())).collect();
        let mut rows = Vec::new();
        for row in xml::children_named(node, "row") {
            let cells: Vec<_> = xml::children(row).filter(|own| is_logic(*own)).collect();
            if cells.len() != columns.len() {
                let rule = ProblemRule::RowLength { columns: columns.len(), cells: cells.len() };
                return self.invalid(row, rule);
            }
            rows.push(cells.into_iter().map(|cell| self.logic(cell)).collect());
        }
        Logic::Relation(Relation { columns, rows })
    }

    fn iteration(&mut self, node: Node<'_, '_>, kind: IterationKind, body: &'static str) -> Logic {
        let Some(variable) = xml::attribute(node, "iteratorVariable") else {
            return self.invalid(node, ProblemRule::AttributeMissing("iteratorVariable"));
        };
        Logic::Iteration(Box::new(Iteration {
            kind,
            variable: Arc::from(variable),
            list: self.part(node, "in"),
            body: self.part(node, body),
        }))
    }

    /// The expression inside a named child.
    fn part(&mut self, node: Node<'_, '_>, name: &'static str) -> Logic {
        let logic = xml::child(node, name).and_then(|part| self.logic_child(part));
        match logic {
            Some(logic) => logic,
            None => self.invalid(node, ProblemRule::ElementMissing(name)),
        }
    }
}

fn is_logic(node: Node<'_, '_>) -> bool {
    LOGIC_ELEMENTS.contains(&node.tag_name().name())
}

fn other_language(node: Node<'_, '_>) -> Option<ProblemRule> {
    let language = xml::attribute(node, "expressionLanguage")?.to_lowercase();
    if FEEL_LANGUAGES.contains(&language.as_str()) {
        return None;
    }
    Some(ProblemRule::LanguageUnsupported(language))
}
