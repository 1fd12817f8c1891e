//! BPMN.
