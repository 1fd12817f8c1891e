//! From conditions to a typed filter. Fields that are not known are left out, as in the original.

use super::query::{self, Comparison, Condition, QueryError};
use crate::search::{Field, FieldKind, Filter, TaskField, Test, Value, WorkflowField};

/// Where a free text is looked for.
pub(super) trait FreeText: Field {
    /// These fields.
    const FIELDS: &'static [Self];
}

impl FreeText for WorkflowField {
    const FIELDS: &'static [WorkflowField] = &[
        WorkflowField::Id,
        WorkflowField::ParentId,
        WorkflowField::Type,
        WorkflowField::CorrelationId,
        WorkflowField::Status,
        WorkflowField::Reason,
        WorkflowField::CreatedBy,
        WorkflowField::Event,
        WorkflowField::IdempotencyKey,
        WorkflowField::Input,
        WorkflowField::Output,
    ];
}

impl FreeText for TaskField {
    const FIELDS: &'static [TaskField] = &[
        TaskField::Id,
        TaskField::WorkflowId,
        TaskField::WorkflowType,
        TaskField::CorrelationId,
        TaskField::Reference,
        TaskField::Type,
        TaskField::Name,
        TaskField::Status,
        TaskField::Reason,
        TaskField::Domain,
        TaskField::Input,
        TaskField::Output,
    ];
}

/// What passes a query and has a free text in it.
pub(super) fn filter<F: FreeText>(
    query: &str,
    free_text: &str,
) -> Result<Vec<Filter<F>>, QueryError> {
    query::check_free_text(free_text)?;
    let mut filters = Vec::new();
    for condition in query::parse(query)? {
        let Some(field) = F::named(condition.field) else { continue };
        filters.push(Filter::Field(field, test(field.kind(), &condition)?));
    }
    let free_text = free_text.trim();
    if !free_text.is_empty() && free_text != "*" {
        let found = |field: &F| Filter::Field(*field, Test::Contains(free_text.to_owned()));
        filters.push(Filter::Any(F::FIELDS.iter().map(found).collect()));
    }
    Ok(filters)
}

fn test(kind: FieldKind, condition: &Condition<'_>) -> Result<Test, QueryError> {
    let value = |text: &String| value(kind, text, condition);
    Ok(match &condition.test {
        Comparison::Equal(text) => equal(kind, text, condition)?,
        Comparison::Greater(text) => Test::Greater(value(text)?),
        Comparison::GreaterOrEqual(text) => Test::GreaterOrEqual(value(text)?),
        Comparison::Less(text) => Test::Less(value(text)?),
        Comparison::LessOrEqual(text) => Test::LessOrEqual(value(text)?),
        Comparison::In(texts) => match texts.as_slice() {
            [text] => equal(kind, text, condition)?,
            texts => Test::In(texts.iter().map(value).collect::<Result<_, _>>()?),
        },
    })
}

/// What is absent is an empty text to Conductor's clients.
fn equal(kind: FieldKind, text: &str, condition: &Condition<'_>) -> Result<Test, QueryError> {
    Ok(match kind {
        FieldKind::Text | FieldKind::Id | FieldKind::List if text.is_empty() => Test::Exists(false),
        FieldKind::Text | FieldKind::Id | FieldKind::List if text.contains('*') => {
            Test::Resembles(text.to_owned())
        }
        FieldKind::Text
        | FieldKind::Id
        | FieldKind::List
        | FieldKind::Key
        | FieldKind::Number
        | FieldKind::Time
        | FieldKind::Flag => Test::Equal(value(kind, text, condition)?),
    })
}

fn value(kind: FieldKind, text: &str, condition: &Condition<'_>) -> Result<Value, QueryError> {
    match kind {
        FieldKind::Text | FieldKind::Id | FieldKind::List => Ok(Value::Text(text.to_owned())),
        FieldKind::Key | FieldKind::Number | FieldKind::Time | FieldKind::Flag => {
            let number = text.parse().map(Value::Number);
            number.map_err(|_| QueryError::Condition { condition: condition.text.to_owned() })
        }
    }
}
