//! Functions that are written in a model: business knowledge models and boxed functions.
//!
//! What fails inside one is null to the expression that invokes it, as in Camunda; a bound that is
//! reached stays one. The variables of a process are those of the invocation, not those of the
//! place where the function was made: a model cannot tell the difference, as they do not change
//! during an evaluation, unless the invoking expression has local names of its own.

use std::sync::Arc;

use crate::feel::{Budget, Environment, EvaluationError, Function, Invocable, Scope, Value};

use super::evaluate::{Frame, Names, Run, Shared};
use super::evaluation::Reason;
use super::model::{FunctionDefinition, Invocation, Knowledge};
use super::types;

/// The name under which `Invocation::call` sees an argument.
pub(super) fn argument_name(position: usize) -> String {
    format!("windlass_argument_{position}")
}

/// A function of a model as a value.
struct ModelFunction {
    shared: Shared,
    definition: Arc<FunctionDefinition>,
    /// The place of the knowledge model that it is, if it is one.
    knowledge: Option<usize>,
    /// The ids of the knowledge models its body may invoke.
    requires: Arc<[String]>,
    /// The names its body sees besides its parameters.
    captured: Names,
}

impl Invocable for ModelFunction {
    fn parameters(&self) -> &[Arc<str>] {
        &self.definition.parameter_names
    }

    fn invoke(
        &self,
        arguments: &[Value],
        scope: &dyn Scope,
        environment: &Environment,
        budget: &mut Budget,
    ) -> Result<Value, EvaluationError> {
        let mut run = Run { shared: self.shared.clone(), environment, budget };
        match run.apply(self, arguments, scope) {
            Ok(value) => Ok(value),
            Err(Reason::Expression(error)) => Err(error),
            Err(_) => Ok(Value::Null),
        }
    }
}

impl Run<'_> {
    /// Gives required knowledge models their names.
    pub(super) fn name_knowledge(
        &mut self,
        ids: &[String],
        frame: &mut Frame<'_>,
    ) -> Result<(), Reason> {
        self.walk(ids.len())?;
        for id in ids {
            let definitions = &self.shared.definitions;
            let Some(position) = definitions.knowledge_by_id.get(id.as_str()).copied() else {
                continue;
            };
            let Some(own) = definitions.knowledge.get(position) else {
                continue;
            };
            let body = ModelFunction {
                shared: self.shared.clone(),
                definition: Arc::clone(&own.function),
                knowledge: Some(position),
                requires: Arc::clone(&own.required_knowledge),
                captured: Names::default(),
            };
            let value = Value::Function(Arc::new(Function::foreign(Arc::new(body))));
            if let Some(variable) = &own.variable {
                frame.names.insert(Arc::from(variable.as_str()), value.clone());
            }
            frame.names.insert(Arc::from(own.name.as_str()), value);
        }
        Ok(())
    }

    /// The result of a function that an expression invokes.
    fn apply(
        &mut self,
        function: &ModelFunction,
        arguments: &[Value],
        scope: &dyn Scope,
    ) -> Result<Value, Reason> {
        self.walk(function.captured.len())?;
        let mut outer = Frame::on_variables(scope);
        outer.names = function.captured.clone();
        self.name_knowledge(&function.requires, &mut outer)?;
        let mut frame = Frame::on(&outer);
        for (parameter, value) in function.definition.parameters.iter().zip(arguments) {
            frame.names.insert(Arc::clone(&parameter.name), value.clone());
        }
        let definitions = Arc::clone(&self.shared.definitions);
        let own = function.knowledge.and_then(|position| definitions.knowledge.get(position));
        self.body(&function.definition, own, &frame)
    }

    /// The value that a function definition is.
    pub(super) fn function(
        &mut self,
        definition: &Arc<FunctionDefinition>,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        self.pay(frame.captured_len())?;
        let captured = frame.captured();
        self.pay_function(captured.values().map(Value::depth).max().unwrap_or(0))?;
        let body = ModelFunction {
            shared: self.shared.clone(),
            definition: Arc::clone(definition),
            knowledge: None,
            requires: Arc::default(),
            captured,
        };
        Ok(Value::Function(Arc::new(Function::foreign(Arc::new(body)))))
    }

    /// An invocation with the arguments it binds.
    pub(super) fn invocation(
        &mut self,
        invocation: &Invocation,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        let mut bound = Names::default();
        for binding in &invocation.bindings {
            self.pay(1)?;
            let value = match &binding.logic {
                Some(logic) => self.logic(logic, frame)?,
                None => Value::Null,
            };
            bound.insert(Arc::clone(&binding.name), value);
        }
        let definitions = Arc::clone(&self.shared.definitions);
        let name = invocation.function.text().split_whitespace().collect::<Vec<_>>().join(" ");
        let position = definitions.knowledge_by_name.get(&name);
        if let Some(own) = position.and_then(|position| definitions.knowledge.get(*position)) {
            return self.knowledge(own, frame, bound);
        }
        let mut inner = Frame::on(frame);
        for (position, binding) in invocation.bindings.iter().enumerate() {
            let value = bound.remove(&binding.name).unwrap_or_default();
            inner.names.insert(Arc::from(argument_name(position)), value);
        }
        self.expression(&invocation.call, &inner)
    }

    /// A knowledge model invoked by the model itself: what fails in it fails its invocation.
    fn knowledge(
        &mut self,
        own: &Knowledge,
        frame: &Frame<'_>,
        bound: Names,
    ) -> Result<Value, Reason> {
        let mut inner = Frame::on(frame);
        self.name_knowledge(&own.required_knowledge, &mut inner)?;
        for parameter in &own.function.parameters {
            if !bound.contains_key(&parameter.name) && frame.get(&parameter.name).is_none() {
                return Err(Reason::ParameterMissing(parameter.name.to_string()));
            }
        }
        inner.names.extend(bound);
        self.body(&own.function, Some(own), &inner)
    }

    /// The result of a function whose parameters are in `frame`, told if it is a knowledge model.
    fn body(
        &mut self,
        definition: &FunctionDefinition,
        knowledge: Option<&Knowledge>,
        frame: &Frame<'_>,
    ) -> Result<Value, Reason> {
        for parameter in &definition.parameters {
            self.pay(1)?;
            let value = frame.get(&parameter.name).unwrap_or_default();
            types::check(value, parameter.type_name.as_deref())?;
        }
        let Some(logic) = &definition.body else {
            return Ok(Value::Null);
        };
        self.deeper(|run| match knowledge {
            Some(own) => run.told_logic(&own.id, &own.name, logic, frame),
            None => run.logic(logic, frame),
        })
    }
}
