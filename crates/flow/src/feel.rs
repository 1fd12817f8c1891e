//! FEEL: the expression language of BPMN and DMN, with null where Camunda is lenient.

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression;
