//! One decision with everything it requires, and the names its logic sees.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::feel::{Budget, Environment, EvaluationError, Scope, Value};

use super::evaluation::{EvaluatedDecision, Evaluation, Failure, Reason};
use super::model::{Decision, Definitions, Logic, Model};
use super::table::TableTrace;
use super::{requirements, types};

/// How deeply values may lie inside one another that functions of a model hold, all functions of
/// one evaluation together: each may hold the ones before it, and they are dropped recursively.
const FUNCTION_DEPTH_MAX: u32 = 2048;
/// How deeply lists and contexts may lie inside one another, as in FEEL.
const VALUE_DEPTH_MAX: u32 = 256;
/// What a value costs that is kept in a list, a context or a trace.
const VALUE_BYTES: u64 = 64;

/// What it costs to tell of a decision, in values, besides those in it.
const TOLD_VALUES: u64 = 4;

/// Named values; a walk over them never decides anything, so they need no order.
pub(super) type Names = HashMap<Arc<str>, Value, FxBuildHasher>;

impl Model {
    /// Evaluates a decision after those it requires, each of them once.
    pub fn evaluate(
        &self,
        decision_id: &str,
        variables: &dyn Scope,
        environment: &Environment,
        budget: &mut Budget,
    ) -> Evaluation {
        let Some(target) = self.0.decision_by_id.get(decision_id).copied() else {
            let failure = Failure {
                failed_decision: decision_id.to_owned(),
                reason: Reason::UnknownDecision(decision_id.to_owned()),
            };
            return Evaluation { output: Err(failure), decisions: Vec::new() };
        };
        let shared = Shared {
            definitions: Arc::clone(&self.0),
            function_depth_left: Arc::new(AtomicU32::new(FUNCTION_DEPTH_MAX)),
            told: Arc::new(Mutex::new(Some(Vec::new()))),
        };
        let told = Arc::clone(&shared.told);
        let mut run = Run { shared, environment, budget };
        let output = run.decide_all(target, variables);
        // From here on functions that outlive the evaluation tell nothing: they would tell it to
        // what they are part of.
        let decisions = told.lock().unwrap_or_else(PoisonError::into_inner).take();
        Evaluation { output, decisions: decisions.unwrap_or_default() }
    }
}

/// The outputs of decisions already made, by id.
type Made<'a> = HashMap<&'a str, Value, FxBuildHasher>;

/// What functions of a model keep between the evaluation that made them and the one that invokes
/// them.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) definitions: Arc<Definitions>,
    function_depth_left: Arc<AtomicU32>,
    /// What was evaluated so far, until the evaluation ends.
    told: Arc<Mutex<Option<Vec<EvaluatedDecision>>>>,
}

/// An evaluation under way.
pub(super) struct Run<'a> {
    pub(super) shared: Shared,
    pub(super) environment: &'a Environment,
    pub(super) budget: &'a mut Budget,
}

/// Names that some logic sees on top of what the logic around it sees.
pub(super) struct Frame<'a> {
    parent: Parent<'a>,
    pub(super) names: Names,
    /// Seen only where nothing else has the name.
    aliases: Names,
}

enum Parent<'a> {
    Variables(&'a dyn Scope),
    Frame(&'a Frame<'a>),
}

impl Run<'_> {
    /// Makes a decision and all that it requires.
    fn decide_all(&mut self, target: usize, variables: &dyn Scope) -> Result<Value, Failure> {
        let definitions = Arc::clone(&self.shared.definitions);
        let mut made = Made::default();
        let mut output = Value::Null;
        for position in requirements::order(&definitions, target) {
            let Some(decision) = definitions.decisions.get(position) else {
                continue;
            };
            output = self
                .decide(decision, variables, &made)
                .map_err(|reason| Failure { failed_decision: decision.id.clone(), reason })?;
            made.insert(decision.id.as_str(), output.clone());
        }
        Ok(output)
    }

    /// Makes one decision.
    fn decide(
        &mut self,
        decision: &Decision,
        variables: &dyn Scope,
        made: &Made<'_>,
    ) -> Result<Value, Reason> {
        let mut frame = Frame::on_variables(variables);
        let definitions = Arc::clone(&self.shared.definitions);
        for id in &decision.required_decisions {
            let position = definitions.decision_by_id.get(id.as_str());
            let required = position.and_then(|position| definitions.decisions.get(*position));
            if let (Some(required), Some(value)) = (required, made.get(id.as_str())) {
                frame.names.insert(Arc::from(required.variable.as_str()), value.clone());
                frame.aliases.insert(Arc::from(required.id.as_str()), value.clone());
                frame.aliases.insert(Arc::from(required.name.as_str()), value.clone());
            }
        }
        self.name_knowledge(&decision.required_knowledge, &mut frame)?;
        let result = self.told_logic(&decision.id, &decision.name, &decision.logic, &frame);
        types::check(result?, decision.type_name.as_deref())
    }

    /// The value of the logic of a decision or a knowledge model; it is told, even if it fails.
    pub(super) fn told_logic(
        &mut self,
        id: &str,
        name: &str,
        logic: &Logic,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        let mut trace = TableTrace::default();
        let result = match logic {
            Logic::DecisionTable(table) => self.table(table, frame, &mut trace),
            Logic::LiteralExpression(_)
            | Logic::Context(_)
            | Logic::Invocation(_)
            | Logic::List(_)
            | Logic::Relation(_)
            | Logic::Function(_)
            | Logic::Conditional(_)
            | Logic::Filter(_)
            | Logic::Iteration(_)
            | Logic::Invalid(_) => self.logic(logic, frame),
        };
        let output = result.as_ref().ok().cloned().unwrap_or_default();
        let kept = self.pay(TOLD_VALUES).and_then(|()| self.keep(&output));
        let told = EvaluatedDecision {
            id: id.to_owned(),
            name: name.to_owned(),
            kind: logic.kind(),
            output,
            inputs: trace.inputs,
            rules: trace.rules,
        };
        if let Some(all) = &mut *self.shared.told.lock().unwrap_or_else(PoisonError::into_inner) {
            all.push(told);
        }
        kept?;
        result
    }

    /// Pays for as many steps as something has parts.
    pub(super) fn walk(&mut self, parts: usize) -> Result<(), Reason> {
        let steps = u64::try_from(parts).unwrap_or(u64::MAX);
        self.budget.steps_left =
            self.budget.steps_left.checked_sub(steps).ok_or(EvaluationError::StepsExhausted)?;
        Ok(())
    }

    /// Pays for one step and `values` values that are kept.
    pub(super) fn pay(&mut self, values: u64) -> Result<(), Reason> {
        self.walk(1)?;
        self.budget.size_left = self
            .budget
            .size_left
            .checked_sub(values.saturating_mul(VALUE_BYTES))
            .ok_or(EvaluationError::SizeExhausted)?;
        Ok(())
    }

    /// Does something one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        let depth = self.budget.depth_left;
        self.budget.depth_left = depth.checked_sub(1).ok_or(EvaluationError::TooDeep)?;
        let result = work(self);
        self.budget.depth_left = depth;
        result
    }

    /// Pays for a value that is kept or told, with all that lies inside it: shared parts too, as
    /// they are not shared when they are written down.
    pub(super) fn keep(&mut self, value: &Value) -> Result<(), Reason> {
        self.budget.size_left = self
            .budget
            .size_left
            .checked_sub(value.weight())
            .ok_or(EvaluationError::SizeExhausted)?;
        Ok(())
    }

    /// A value that was put together, unless it is nested too deeply.
    pub(super) fn built(&mut self, value: Value) -> Result<Value, Reason> {
        if value.depth() > VALUE_DEPTH_MAX {
            return Err(Reason::Expression(EvaluationError::TooDeep));
        }
        self.keep(&value)?;
        Ok(value)
    }

    /// Pays for a function that holds values nested this deeply.
    pub(super) fn pay_function(&mut self, depth: u32) -> Result<(), Reason> {
        let taken = self.shared.function_depth_left.fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |left| left.checked_sub(depth.saturating_add(1)),
        );
        taken.map(|_| ()).map_err(|_| Reason::TooManyFunctions)
    }
}

impl<'a> Frame<'a> {
    /// No names on top of the variables of the caller.
    pub(super) fn on_variables(variables: &'a dyn Scope) -> Frame<'a> {
        Frame {
            parent: Parent::Variables(variables),
            names: Names::default(),
            aliases: Names::default(),
        }
    }

    /// No names on top of those of `parent`.
    pub(super) fn on(parent: &'a Frame<'a>) -> Frame<'a> {
        Frame { parent: Parent::Frame(parent), names: Names::default(), aliases: Names::default() }
    }

    /// All names between this frame and the variables of the caller.
    pub(super) fn captured(&self) -> Names {
        let mut captured = self.aliases.clone();
        if let Parent::Frame(parent) = &self.parent {
            captured.extend(parent.captured());
        }
        captured.extend(self.names.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        captured
    }

    /// How many names there are between this frame and the variables of the caller.
    pub(super) fn captured_len(&self) -> u64 {
        let own = self.names.len().saturating_add(self.aliases.len());
        let own = u64::try_from(own).unwrap_or(u64::MAX);
        match &self.parent {
            Parent::Variables(_) => own,
            Parent::Frame(parent) => own.saturating_add(parent.captured_len()),
        }
    }
}

impl Scope for Frame<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.names.get(name) {
            return Some(value.clone());
        }
        let found = match &self.parent {
            Parent::Variables(variables) => variables.get(name),
            Parent::Frame(parent) => parent.get(name),
        };
        found.or_else(|| self.aliases.get(name).cloned())
    }
}
