//! Boxed expressions, evaluated.

use std::sync::Arc;

use crate::feel::{List, Value};

use super::evaluate::{Frame, Run};
use super::evaluation::Reason;
use super::expression::Expression;
use super::model::{ContextEntry, Filter, Iteration, IterationKind, Logic, Relation};
use super::table::TableTrace;

impl Run<'_> {
    /// The value of some logic.
    pub(super) fn logic(&mut self, logic: &Logic, frame: &Frame<'_>) -> Result<Value, Reason> {
        self.pay(1)?;
        self.deeper(|run| match logic {
            Logic::DecisionTable(table) => run.table(table, frame, &mut TableTrace::default()),
            Logic::LiteralExpression(expression) => run.expression(expression, frame),
            Logic::Context(entries) => run.context(entries, frame),
            Logic::Invocation(invocation) => run.invocation(invocation, frame),
            Logic::List(items) => run.list(items, frame),
            Logic::Relation(relation) => run.relation(relation, frame),
            Logic::Function(definition) => run.function(definition, frame),
            Logic::Conditional(own) => {
                let condition = run.logic(&own.condition, frame)?;
                let holds = !condition.is_null() && truth(&condition)?;
                run.logic(if holds { &own.consequence } else { &own.alternative }, frame)
            }
            Logic::Filter(filter) => run.filter(filter, frame),
            Logic::Iteration(iteration) => run.iteration(iteration, frame),
            Logic::Invalid(rule) => Err(Reason::InvalidExpression(rule.clone())),
        })
    }

    /// The value of a FEEL expression.
    pub(super) fn expression(
        &mut self,
        expression: &Expression,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        match expression.parsed() {
            Ok(parsed) => Ok(parsed.evaluate(frame, self.environment, self.budget)?),
            Err(rule) => Err(Reason::InvalidExpression(rule.clone())),
        }
    }

    fn context(&mut self, entries: &[ContextEntry], outer: &Frame<'_>) -> Result<Value, Reason> {
        let mut frame = Frame::on(outer);
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            self.pay(2)?;
            let value = self.logic(&entry.logic, &frame)?;
            let Some(name) = &entry.name else {
                return Ok(value);
            };
            frame.names.insert(Arc::clone(name), value.clone());
            named.push((Arc::clone(name), value));
        }
        self.built(Value::context(named))
    }

    fn list(&mut self, items: &[Logic], frame: &Frame<'_>) -> Result<Value, Reason> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            self.pay(1)?;
            values.push(self.logic(item, frame)?);
        }
        self.built(Value::list(values))
    }

    fn relation(&mut self, relation: &Relation, frame: &Frame<'_>) -> Result<Value, Reason> {
        let mut rows = Vec::with_capacity(relation.rows.len());
        for row in &relation.rows {
            let mut named = Vec::with_capacity(row.len());
            for (name, cell) in relation.columns.iter().zip(row) {
                self.pay(1)?;
                named.push((Arc::clone(name), self.logic(cell, frame)?));
            }
            rows.push(Value::context(named));
        }
        self.built(Value::list(rows))
    }

    fn filter(&mut self, filter: &Filter, outer: &Frame<'_>) -> Result<Value, Reason> {
        let items = list(self.logic(&filter.list, outer)?)?;
        let mut kept = Vec::new();
        for item in items.iter() {
            self.pay(1)?;
            let mut frame = Frame::on(outer);
            if let Value::Context(entries) = item {
                self.walk(entries.len())?;
                let entries = entries.entries().iter();
                frame.names.extend(entries.map(|(name, value)| (Arc::clone(name), value.clone())));
            }
            frame.names.insert(Arc::from("item"), item.clone());
            let condition = self.logic(&filter.condition, &frame)?;
            if truth(&condition)? {
                kept.push(item.clone());
            }
        }
        self.built(Value::list(kept))
    }

    fn iteration(&mut self, iteration: &Iteration, outer: &Frame<'_>) -> Result<Value, Reason> {
        let items = list(self.logic(&iteration.list, outer)?)?;
        let mut results = Vec::new();
        let mut holds = iteration.kind == IterationKind::Every;
        for item in items.iter() {
            self.pay(1)?;
            let mut frame = Frame::on(outer);
            frame.names.insert(Arc::clone(&iteration.variable), item.clone());
            match iteration.kind {
                IterationKind::For => {
                    results.push(self.logic(&iteration.body, &frame)?);
                }
                IterationKind::Some => holds |= truth(&self.logic(&iteration.body, &frame)?)?,
                IterationKind::Every => holds &= truth(&self.logic(&iteration.body, &frame)?)?,
            }
        }
        match iteration.kind {
            IterationKind::For => self.built(Value::list(results)),
            IterationKind::Some | IterationKind::Every => Ok(Value::Bool(holds)),
        }
    }
}

fn list(value: Value) -> Result<List, Reason> {
    let Value::List(list) = value else {
        return Err(Reason::NotAList(Reason::quote(&value)));
    };
    Ok(list)
}

fn truth(value: &Value) -> Result<bool, Reason> {
    let Value::Bool(truth) = value else {
        return Err(Reason::NotACondition(Reason::quote(value)));
    };
    Ok(*truth)
}
