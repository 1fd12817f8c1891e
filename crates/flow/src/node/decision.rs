//! Business rule tasks that evaluate a decision.

use windlass_record::flow::{DefinitionKind, FlowEvent, FlowIncidentKind, Key};

use crate::graph::{Binding, Decision};
use crate::kernel::expression::{View, budget, environment};
use crate::kernel::job::no_front;
use crate::kernel::{Port, Stuck, expression, variables};

pub(super) fn activate<P: Port>(port: &mut P, key: Key, decision: &Decision) -> Result<(), Stuck> {
    let id = expression::text(port, &decision.decision_id, key, "decision id")?;
    let definition =
        super::call::bound(port, key, DefinitionKind::Decision, &id, &decision.binding)
            .and_then(|key| port.state().definition(key));
    let Some(model) = definition.and_then(|definition| definition.model.clone()) else {
        let message = format!(
            "Expected to evaluate decision '{id}', but no decision found for id '{id}'{}",
            if decision.binding == Binding::Latest { "" } else { " with its binding" }
        );
        return Err(Stuck::new(FlowIncidentKind::CalledDecision, message));
    };
    let front = no_front();
    let view = View { state: port.state(), scope: key, front: &front };
    let evaluation = model.evaluate(&id, &view, &environment(port, key), &mut budget());
    let output = match &evaluation.output {
        Ok(output) => output.to_json(),
        Err(_) => {
            let message = evaluation.failure_message(&id).unwrap_or_default();
            return Err(Stuck::new(FlowIncidentKind::DecisionEvaluation, message));
        }
    };
    let result = vec![(decision.result_variable.clone(), output.into())];
    variables::check_fits(port, &result)?;
    port.emit(FlowEvent::ElementActivated { key });
    variables::deliver(port, key, &result);
    port.emit(FlowEvent::ElementCompleting { key });
    Ok(())
}
