//! Work for workers: a task's job, its queue, its limits and its deadlines. All of them are the
//! engine's own.

use serde_json::Value;
use windlass_record::flow::Key;
use windlass_record::workflow::{TASK_QUEUE_PREFIX, WorkflowEvent, task_queue};

use super::{emit, jitter_ms, lenient, workflows};
use crate::conductor::definition::{TaskDefinition, TimeoutPolicy};
use crate::conductor::plan::Kind;
use crate::conductor::verb::define;
use crate::kernel::{NewTaskJob, Port, TaskLimits};

/// A domain counts as served when somebody asked for its queue this long ago (ms).
const POLLED_WITHIN_MS: u64 = 10_000;

/// Makes the job.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let kind = task.node(&plan).kind;
    let definition = super::definition(state, task);
    // Limits are those of the definition as it is now, for all workflows alike.
    let limited = state.task_definition(&task.name);
    if limited.is_none() && definition.has_limits() {
        define::set_limits(port, &definition);
    }
    let limited = limited.unwrap_or_else(|| definition.clone());
    let state = workflows(port);
    let task = state.known_task(key);
    let workflow = state.known(task.workflow);
    let ours = kind == Kind::Builtin;
    let part = |text: &'_ str| if ours { text.to_owned() } else { String::new() };
    let namespace = part(&definition.execution_name_space);
    let isolation = part(&definition.isolation_group_id);
    let due_ms = if task.delay_s == 0 && definition.backoff_jitter_ms == 0 {
        0
    } else {
        let jitter_ms = if task.retry_count > 0 { jitter_ms(port, key, &definition) } else { 0 };
        task.scheduled_ms.saturating_add(u64::from(task.delay_s) * 1_000 + jitter_ms)
    };
    let job = NewTaskJob {
        queue: task_queue(&task.domain, &task.task_type, &namespace, &isolation),
        job_type: (*task.task_type).into(),
        priority: i32::try_from(workflow.priority).unwrap_or(0),
        due_ms: if due_ms > port.now_ms() { due_ms } else { 0 },
        // The kernel has the input; only workers of ours, which know jobs, take it from there.
        payload: if ours { task.input.as_bytes().into() } else { Box::default() },
        limits: limits(&definition, &limited, task.first_ms, port.now_ms()),
    };
    let job = port.create_task_job(&job);
    emit(port, WorkflowEvent::TaskJobAttached { task: key, job, evaluates: false });
}

fn limits(
    definition: &TaskDefinition,
    limited: &TaskDefinition,
    first_ms: u64,
    now_ms: u64,
) -> TaskLimits {
    let ms = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000);
    let key = |limit: Option<i64>| match limit {
        Some(1..) => limit_key(&limited.name),
        Some(_) | None => Box::default(),
    };
    let left = |total_ms: u64| {
        (total_ms > 0).then(|| total_ms.saturating_sub(now_ms.saturating_sub(first_ms)).max(1))
    };
    TaskLimits {
        concurrency_key: key(limited.concurrent_exec_limit),
        rate_key: key(limited.rate_limit_per_frequency),
        response_ms: ms(definition.response_timeout_seconds),
        waiting_ms: definition.poll_timeout_seconds.map(ms).filter(|it| *it > 0),
        attempt_ms: Some(ms(definition.timeout_seconds)).filter(|it| *it > 0),
        total_ms: left(ms(definition.total_timeout_seconds)),
        only_alert: definition.timeout_policy == TimeoutPolicy::AlertOnly,
    }
}

/// The limit key of a task definition.
pub(crate) fn limit_key(name: &str) -> Box<str> {
    format!("{TASK_QUEUE_PREFIX}{name}").into()
}

/// The domain that a task goes to: that of its type, else that of all; of several the first that
/// somebody serves, else the last.
pub(super) fn domain<P: Port>(port: &P, workflow: Key, task_type: &str, kind: Kind) -> String {
    let state = workflows(port);
    let given = &state.known(workflow).task_to_domain;
    if given.is_empty() || !kind.is_work() {
        return String::new();
    }
    let domains = lenient::parse_object(given);
    let of_type = domains.get(task_type).and_then(Value::as_str);
    let of_all = domains.get("*").filter(|_| kind != Kind::Builtin).and_then(Value::as_str);
    let Some(list) = of_type.or(of_all) else { return String::new() };
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
    let served = names.iter().find(|domain| {
        let last_ms = state.polls.get(&*task_queue(domain, task_type, "", ""));
        last_ms.is_some_and(|last_ms| port.now_ms().saturating_sub(*last_ms) < POLLED_WITHIN_MS)
    });
    match served.or(names.last()) {
        Some(&"NO_DOMAIN") | None => String::new(),
        Some(domain) => (*domain).to_owned(),
    }
}

/// Who works on a job, since when (0 is not yet), and how often it was handed out.
pub(crate) fn facts<P: Port>(port: &P, job: Key) -> (String, u64, u32) {
    port.task_job(job).map_or_else(Default::default, |now| {
        (now.worker.to_string(), now.started_ms, now.activations)
    })
}
