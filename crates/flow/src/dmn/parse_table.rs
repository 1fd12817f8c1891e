//! Decision tables, from their elements.

use std::sync::Arc;

use roxmltree::Node;

use super::expression::Expression;
use super::model::{Aggregation, DecisionTable, HitPolicy, Input, Logic, Output, Rule};
use super::parse::Reader;
use super::problem::ProblemRule;
use super::xml;

impl Reader<'_, '_> {
    /// The table that `node` is.
    pub(super) fn table(&mut self, node: Node<'_, '_>) -> Logic {
        let hit_policy = match hit_policy(node) {
            Ok(hit_policy) => hit_policy,
            Err(rule) => return self.invalid(node, rule),
        };
        let inputs = xml::children_named(node, "input").map(|own| self.input(own)).collect();
        let output_nodes: Vec<_> = xml::children_named(node, "output").collect();
        if output_nodes.is_empty() {
            return self.invalid(node, ProblemRule::ElementMissing("output"));
        }
        let is_compound = output_nodes.len() > 1;
        let aggregates = matches!(
            hit_policy,
            HitPolicy::Collect(
                Aggregation::Sum | Aggregation::Min | Aggregation::Max | Aggregation::Count
            )
        );
        if is_compound && aggregates {
            return self.invalid(node, ProblemRule::AggregationOfCompoundOutput);
        }
        let mut outputs = Vec::with_capacity(output_nodes.len());
        for own in output_nodes {
            if is_compound && xml::name(own).is_none() {
                return self.invalid(own, ProblemRule::OutputNameMissing);
            }
            outputs.push(self.output(own));
        }
        let rules = xml::children_named(node, "rule").map(|own| self.rule(own)).collect();
        Logic::DecisionTable(Box::new(DecisionTable { hit_policy, inputs, outputs, rules }))
    }

    /// A column that is tested. Without an expression its label is one.
    fn input(&mut self, node: Node<'_, '_>) -> Input {
        let label = xml::attribute(node, "label").map(str::to_owned);
        let holder = xml::child(node, "inputExpression");
        let is_empty = holder.and_then(xml::child_text).is_none_or(|text| text.trim().is_empty());
        let expression = match (holder, &label) {
            (_, Some(label)) if is_empty => {
                let expression = Expression::parse(label.clone(), &self.names);
                if let Err(rule) = expression.parsed() {
                    self.problem(node, rule.clone());
                }
                expression
            }
            (Some(holder), _) => self.expression(holder),
            (None, _) => {
                self.problem(node, ProblemRule::ElementMissing("inputExpression"));
                Expression::broken(String::new(), ProblemRule::ExpressionEmpty)
            }
        };
        Input {
            id: id(node),
            label,
            expression,
            allowed: xml::child(node, "inputValues").map(|values| self.tests(values)),
        }
    }

    fn output(&mut self, node: Node<'_, '_>) -> Output {
        // Values that are no FEEL have no order, and that is all they would be good for.
        let allowed = xml::child(node, "outputValues")
            .and_then(xml::child_text)
            .map(|text| Expression::parse(format!("[{text}]"), &self.names))
            .filter(|expression| expression.parsed().is_ok());
        Output {
            id: id(node),
            name: Arc::from(xml::name(node).unwrap_or_default()),
            label: xml::attribute(node, "label").map(str::to_owned),
            allowed,
            default: xml::child(node, "defaultOutputEntry")
                .filter(|own| xml::child_text(*own).is_some_and(|text| !text.trim().is_empty()))
                .map(|own| self.expression(own)),
        }
    }

    fn rule(&mut self, node: Node<'_, '_>) -> Rule {
        let tests = xml::children_named(node, "inputEntry").map(|own| self.tests(own)).collect();
        let outputs = xml::children_named(node, "outputEntry");
        let outputs = outputs.map(|own| self.expression_or_null(own)).collect();
        Rule { id: id(node), tests, outputs }
    }
}

fn id(node: Node<'_, '_>) -> String {
    xml::attribute(node, "id").unwrap_or_default().to_owned()
}

fn hit_policy(node: Node<'_, '_>) -> Result<HitPolicy, ProblemRule> {
    let aggregation = match xml::attribute(node, "aggregation") {
        None | Some("LIST") => Aggregation::List,
        Some("SUM") => Aggregation::Sum,
        Some("MIN") => Aggregation::Min,
        Some("MAX") => Aggregation::Max,
        Some("COUNT") => Aggregation::Count,
        Some(other) => return Err(ProblemRule::UnknownAggregation(other.to_owned())),
    };
    match xml::attribute(node, "hitPolicy") {
        None | Some("UNIQUE") => Ok(HitPolicy::Unique),
        Some("FIRST") => Ok(HitPolicy::First),
        Some("ANY") => Ok(HitPolicy::Any),
        Some("PRIORITY") => Ok(HitPolicy::Priority),
        Some("RULE ORDER") => Ok(HitPolicy::RuleOrder),
        Some("OUTPUT ORDER") => Ok(HitPolicy::OutputOrder),
        Some("COLLECT") => Ok(HitPolicy::Collect(aggregation)),
        Some(other) => Err(ProblemRule::UnknownHitPolicy(other.to_owned())),
    }
}
