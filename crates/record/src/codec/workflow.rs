//! The events of workflows: one tag each below the tag that all of them share. As in `codec::flow`,
//! the tables are the format.

use super::flow::{enums, events, structs};
use super::{DecodeError, Decoder, Encoder, Field};
use crate::workflow::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowRevived, WorkflowStarted,
    WorkflowStatus,
};

events! { encode_workflow_event decode_workflow_event WorkflowEvent "event of a workflow";
    1 TaskDefined { key, name, json }
    2 TaskForgotten { key }
    3 WorkflowDefined { key, name, version, listed, snapshot_of, json }
    4 WorkflowForgotten { key }
    5 HandlerDefined { key, name, json }
    6 HandlerForgotten { key }
    8 WorkflowPaused { key, paused }
    9 WorkflowEnded { key, status, reason, output, compensate, by }
    10 WorkflowClosed { key, output }
    12 WorkflowRemoved { key, forget }
    13 WorkflowVariablesSet { key, variables }
    14 WorkflowQueued { key }
    15 WorkflowDue { key, at_ms }
    16 TasksAdded { task, tasks }
    19 TaskJobAttached { task, job, evaluates }
    20 TaskJobDetached { task }
    21 TaskDue { task, at_ms }
    22 TaskQueued { task }
    23 TaskAdvanced { task, to }
    24 TaskFollowed { task, retried }
    25 TasksDropped { tasks }
    26 TaskLogged { task, lines }
    27 TaskActed { task, handler, to }
    ;
    7 WorkflowStarted
    11 WorkflowRevived
    17 TaskScheduled
    18 TaskChanged
}

structs! {
    WorkflowStarted<'a> {
        key, definition, parent_task, input, variables, correlation_id, idempotency_key,
        task_to_domain, priority, created_by, event, rate_limit_key, waits
    }
    WorkflowRevived<'a> {
        key, definition, input, variables, correlation_id, anew, rerun
    }
    TaskScheduled<'a> {
        key, workflow, among, node, loop_task, iteration, reference, task_type, name, retry_count,
        retry_of, first_ms, status, input, reason, domain, delay_s
    }
    TaskChanged<'a> {
        key, status, input, output, reason, worker, started_ms, polls, callback_s, child
    }
}

enums! {
    TaskStatus "status of a task" {
        1 Scheduled 2 InProgress 3 Completed 4 CompletedWithErrors 5 Failed
        6 FailedWithTerminalError 7 TimedOut 8 Canceled 9 Skipped
    }
    WorkflowStatus "status of a workflow" {
        1 Running 2 Paused 3 Completed 4 Failed 5 TimedOut 6 Terminated
    }
}

impl<'a> Field<'a> for WorkflowEvent<'a> {
    fn encode(&self, out: &mut Encoder<'_>) {
        encode_workflow_event(self, out);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        decode_workflow_event(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Key, NO_KEY};

    #[track_caller]
    fn check(event: &WorkflowEvent<'_>) {
        let mut bytes = Vec::new();
        encode_workflow_event(event, &mut Encoder::new(&mut bytes));
        let mut input = Decoder::new(&bytes);
        let back = decode_workflow_event(&mut input).expect("it was just written");
        assert_eq!(format!("{back:?}"), format!("{event:?}"));
        assert!(input.is_empty(), "all of it was read");
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).expect("a prefix");
            assert!(decode_workflow_event(&mut Decoder::new(cut)).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn events_come_back() {
        let key = Key::from_raw(2_251_799_813_685_249);
        check(&WorkflowEvent::WorkflowStarted(Box::new(WorkflowStarted {
            key,
            definition: key,
            parent_task: NO_KEY,
            input: "{}",
            variables: "{\"a\":1}",
            correlation_id: "c",
            idempotency_key: "",
            task_to_domain: "",
            priority: 7,
            created_by: "me",
            event: "",
            rate_limit_key: "",
            waits: false,
        })));
        for status in TaskStatus::ALL {
            check(&WorkflowEvent::TaskChanged(Box::new(TaskChanged {
                status: Some(status),
                output: Some("{}"),
                polls: Some(2),
                ..TaskChanged::of(key)
            })));
        }
        for status in WorkflowStatus::ALL {
            let (reason, output) = ("r", "{}");
            let (compensate, by) = (true, NO_KEY);
            check(&WorkflowEvent::WorkflowEnded { key, status, reason, output, compensate, by });
        }
        check(&WorkflowEvent::WorkflowRemoved { key, forget: true });
        check(&WorkflowEvent::TasksDropped { tasks: vec![key, NO_KEY].into() });
        check(&WorkflowEvent::TaskActed { task: key, handler: key, to: 3 });
    }
}
