//! What the kernel of flows asks of the engine: events, keys, the time, jobs.

use std::borrow::Cow;

use windlass_flow::FlowState;
use windlass_flow::kernel::{NewJob, Port};
use windlass_record::bound::Bounds;
use windlass_record::command::{JobOptions, QueueName};
use windlass_record::event::{Event, JobCreated, Outcome};
use windlass_record::flow::{FlowEvent, Key, job_queue};
use windlass_record::id::{Payload, QueueId};
use windlass_record::policy::{Dialect, JobOrder, QueueSettings};

use crate::{Sink, Step};

/// Jobs of flows are handed out in the order of their creation, a retried one at its old place, and
/// leave nothing behind: what they did stands in their flow.
const SETTINGS: QueueSettings =
    QueueSettings { order: JobOrder::Creation, finished_max: 0, ..QueueSettings::DEFAULT };

impl<S: Sink> Port for Step<'_, S> {
    fn state(&self) -> &FlowState {
        &self.state.flow
    }

    fn emit(&mut self, event: FlowEvent<'_>) {
        self.flow_bytes = self.flow_bytes.saturating_add(event.bytes());
        Step::emit(self, &Event::Flow(event));
    }

    fn next_key(&self) -> Key {
        Step::next_key(self)
    }

    fn now_ms(&self) -> u64 {
        self.context.now_ms
    }

    fn bounds(&self) -> &Bounds {
        self.bounds
    }

    fn create_job(&mut self, job: &NewJob) -> Key {
        let queue = queue_of(self, job);
        let options = JobOptions {
            headers: job.headers.as_bytes().into(),
            dialect: Dialect::Zeebe,
            ..JobOptions::default()
        };
        let key = Step::next_key(self);
        Step::emit(
            self,
            &Event::JobCreated(JobCreated {
                key,
                queue,
                job_type: &job.job_type,
                group: "",
                priority: job.priority,
                retries: job.retries.max(0),
                due_ms: 0,
                payload: Payload::EMPTY,
                concurrency: None,
                rate: None,
                options: Some(Cow::Borrowed(&options)),
            }),
        );
        key
    }

    fn cancel_job(&mut self, job: Key) {
        if let Some(slot) = self.state.find(job) {
            self.end(slot, Outcome::Cancelled, "its element was terminated");
        }
    }
}

fn queue_of<S: Sink>(step: &mut Step<'_, S>, job: &NewJob) -> QueueId {
    let queue = job_queue(&job.job_type);
    let name = QueueName { tenant: (*job.tenant).into(), queue };
    let known = step.state.queue_named(&name);
    known.unwrap_or_else(|| step.emit_queue(&name.tenant, &name.queue, &SETTINGS))
}
