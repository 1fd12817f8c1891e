//! Script tasks: an expression, and where its value goes.

use windlass_record::flow::{FlowEvent, FlowIncidentKind, Key};

use crate::graph::Script;
use crate::kernel::job::no_front;
use crate::kernel::{Port, Stuck, expression, variables};

pub(super) fn activate<P: Port>(port: &mut P, key: Key, script: &Script) -> Result<(), Stuck> {
    let value = expression::evaluate(port, &script.expression, key, &no_front())
        .map_err(|problem| Stuck::new(FlowIncidentKind::ExtractValue, problem))?;
    let result = vec![(script.result_variable.clone(), value.to_json().into())];
    variables::check_fits(port, &result)?;
    port.emit(FlowEvent::ElementActivated { key });
    variables::deliver(port, key, &result);
    port.emit(FlowEvent::ElementCompleting { key });
    Ok(())
}
