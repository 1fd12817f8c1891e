//! Functions as values.

use std::fmt;
use std::sync::Arc;

use super::value::Value;
use super::{Budget, Environment, EvaluationError, Scope};

/// Something that can be invoked from an expression.
pub struct Function {
    body: Arc<dyn Invocable>,
    depth: u32,
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
        Function { body, depth: 1 }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Function").field("parameters", &self.body.parameters()).finish()
    }
}
