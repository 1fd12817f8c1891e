//! Resolve an incident of an element: what failed is tried again.

use windlass_record::flow::{FlowEvent, Key};

use crate::kernel::Port;

/// Resolves the incident with this key. False when it is none of an element.
pub fn resolve<P: Port>(port: &mut P, incident: Key) -> bool {
    if port.state().incident(incident).is_none() {
        return false;
    }
    port.emit(FlowEvent::IncidentResolved { key: incident });
    true
}
