//! Functions as values, and how they are invoked.

use std::fmt;
use std::sync::Arc;

use super::builtin::Builtin;
use super::evaluate::{Machine, Outcome};
use super::kind::Kind;
use super::locals::{Locals, Outer};
use super::node::{Arguments, Call, Definition};
use super::value::Value;
use super::{Budget, Environment, EvaluationError, Scope};

/// Something that can be invoked from an expression.
#[derive(Clone)]
pub struct Function {
    body: Body,
    depth: u32,
    weight: u64,
}

#[derive(Clone)]
enum Body {
    /// Written in FEEL: the definition, what it keeps of its surroundings, and its own name.
    Defined(Arc<Definition>, Arc<[(Arc<str>, Value)]>, Option<Arc<str>>),
    Foreign(Arc<dyn Invocable>),
}

/// A function that is not written in FEEL, such as a decision service or a table of a model.
pub trait Invocable: Send + Sync {
    /// The names of its parameters, in order.
    fn parameters(&self) -> &[Arc<str>];

    /// Its result for exactly as many arguments as it has parameters.
    fn invoke(
        &self,
        arguments: &[Value],
        scope: &dyn Scope,
        environment: &Environment,
        budget: &mut Budget,
    ) -> Result<Value, EvaluationError>;
}

impl Function {
    /// A function carried out by `body`.
    pub fn foreign(body: Arc<dyn Invocable>) -> Function {
        Function { body: Body::Foreign(body), depth: 1, weight: 64 }
    }

    pub(crate) fn defined(
        definition: &Arc<Definition>,
        captured: Vec<(Arc<str>, Value)>,
    ) -> Function {
        let depth = captured.iter().map(|(_, value)| value.depth()).max().unwrap_or(0);
        let weight = captured
            .iter()
            .fold(64_u64, |sum, (_, value)| sum.saturating_add(value.weight()).saturating_add(32));
        let body = Body::Defined(Arc::clone(definition), Arc::from(captured), None);
        Function { body, depth: depth.saturating_add(1), weight }
    }

    /// The same function, able to invoke itself by this name.
    pub(crate) fn named(&self, name: &Arc<str>) -> Function {
        let mut function = self.clone();
        if let Body::Defined(_, _, own) = &mut function.body {
            *own = Some(Arc::clone(name));
        }
        function
    }

    /// The names of its parameters.
    pub fn parameters(&self) -> &[Arc<str>] {
        match &self.body {
            Body::Defined(definition, _, _) => &definition.parameters,
            Body::Foreign(foreign) => foreign.parameters(),
        }
    }

    /// Its result for these arguments in order; null if they are not as many as it takes.
    pub fn invoke(
        &self,
        arguments: &[Value],
        scope: &dyn Scope,
        environment: &Environment,
        budget: &mut Budget,
    ) -> Result<Value, EvaluationError> {
        Machine::new(scope, environment, budget).invoke(self, arguments)
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Arguments by name, put in order; null where one is missing, `None` if one is not known.
    fn in_order(&self, named: &[(Arc<str>, Value)]) -> Option<Vec<Value>> {
        in_order(self.parameters(), named)
    }
}

/// Arguments by name in the order of parameters.
pub(crate) fn in_order<N: AsRef<str>>(
    parameters: &[N],
    named: &[(Arc<str>, Value)],
) -> Option<Vec<Value>> {
    let known = named.iter().all(|(name, _)| parameters.iter().any(|own| own.as_ref() == &**name));
    let value = |parameter: &N| {
        let given = named.iter().rev().find(|(name, _)| &**name == parameter.as_ref());
        given.map_or(Value::Null, |(_, value)| value.clone())
    };
    known.then(|| parameters.iter().map(value).collect())
}

impl Machine<'_> {
    /// An invocation by name: of a local function, a built-in, or a variable that is a function.
    pub(crate) fn call(&mut self, call: &Call, locals: Outer<'_>) -> Outcome {
        let local = locals.and_then(|locals| locals.find(&call.name));
        if let Some(Value::Function(function)) = local {
            return self.call_function(&Arc::clone(function), &call.arguments, locals);
        }
        if let Some(builtin) = call.builtin {
            return self.call_builtin(builtin, &call.arguments, locals);
        }
        match self.scope.get(&call.name) {
            Some(Value::Function(function)) => {
                self.call_function(&function, &call.arguments, locals)
            }
            Some(_) | None => Ok(Value::Null),
        }
    }

    /// An invocation of a value.
    pub(crate) fn call_value(
        &mut self,
        value: &Value,
        arguments: &Arguments,
        locals: Outer<'_>,
    ) -> Outcome {
        match value.as_function() {
            Some(function) => self.call_function(function, arguments, locals),
            None => Ok(Value::Null),
        }
    }

    fn call_function(
        &mut self,
        function: &Function,
        arguments: &Arguments,
        locals: Outer<'_>,
    ) -> Outcome {
        let values = match arguments {
            Arguments::Positional(_) => Some(self.positional(arguments, locals)?),
            Arguments::Named(_) => function.in_order(&self.named(arguments, locals)?),
        };
        match values {
            Some(values) => self.invoke(function, &values),
            None => Ok(Value::Null),
        }
    }

    fn call_builtin(
        &mut self,
        builtin: &'static Builtin,
        arguments: &Arguments,
        locals: Outer<'_>,
    ) -> Outcome {
        let values = match arguments {
            Arguments::Positional(_) => Some(self.positional(arguments, locals)?),
            Arguments::Named(_) => builtin.in_order(&self.named(arguments, locals)?),
        };
        match values {
            Some(values) => builtin.run(self, &values),
            None => Ok(Value::Null),
        }
    }

    fn positional(
        &mut self,
        arguments: &Arguments,
        locals: Outer<'_>,
    ) -> Result<Vec<Value>, EvaluationError> {
        let Arguments::Positional(nodes) = arguments else { return Ok(Vec::new()) };
        nodes.iter().map(|node| self.value(node, locals)).collect()
    }

    fn named(
        &mut self,
        arguments: &Arguments,
        locals: Outer<'_>,
    ) -> Result<Vec<(Arc<str>, Value)>, EvaluationError> {
        let Arguments::Named(nodes) = arguments else { return Ok(Vec::new()) };
        let value = |(name, node): &(Arc<str>, super::node::Node)| {
            Ok((Arc::clone(name), self.value(node, locals)?))
        };
        nodes.iter().map(value).collect()
    }

    /// The result of a function for arguments in order; null if they do not fit.
    pub(crate) fn invoke(&mut self, function: &Function, arguments: &[Value]) -> Outcome {
        self.enter()?;
        let outcome = match &function.body {
            Body::Foreign(foreign) if foreign.parameters().len() == arguments.len() => {
                foreign.invoke(arguments, self.scope, self.environment, self.budget)
            }
            Body::Foreign(_) => Ok(Value::Null),
            Body::Defined(definition, captured, own) => {
                let itself =
                    own.as_ref().map(|name| (name, Value::Function(Arc::new(function.clone()))));
                let itself =
                    itself.as_ref().map(|(name, value)| Locals::binding(None, name, value));
                let captured = Locals::bindings(itself.as_ref(), captured);
                self.invoke_defined(definition, arguments, &captured)
            }
        };
        self.leave();
        outcome
    }

    fn invoke_defined(
        &mut self,
        definition: &Definition,
        arguments: &[Value],
        captured: &Locals<'_>,
    ) -> Outcome {
        let fits = |(kind, value): (&Kind, &Value)| kind.admits(value);
        if definition.parameters.len() != arguments.len()
            || !definition.kinds.iter().zip(arguments).all(fits)
        {
            return Ok(Value::Null);
        }
        let names = definition.parameters.iter().cloned();
        let bindings: Vec<(Arc<str>, Value)> = names.zip(arguments.iter().cloned()).collect();
        let locals = Locals::bindings(Some(captured), &bindings);
        self.value(&definition.body, Some(&locals))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "function({})", self.parameters().join(", "))
    }
}
