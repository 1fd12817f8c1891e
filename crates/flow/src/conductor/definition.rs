//! Task definitions: what is known about a type of task, wherever it is used.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::lenient;

/// A task definition, see the fields of Conductor's `TaskDef`. What is not here is kept in its JSON
/// and given back as it came.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskDefinition {
    /// Its name.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,
    /// Retries after the first attempt.
    #[serde(deserialize_with = "lenient::or_zero")]
    pub retry_count: i64,
    /// How the delay between attempts grows.
    pub retry_logic: RetryLogic,
    /// The delay before a retry (s).
    #[serde(deserialize_with = "lenient::or_zero")]
    pub retry_delay_seconds: i64,
    /// The factor of linear growth.
    #[serde(deserialize_with = "lenient::or_zero")]
    pub backoff_scale_factor: i64,
    /// The longest delay (s); 0 is none.
    #[serde(deserialize_with = "lenient::or_zero")]
    pub max_retry_delay_seconds: i64,
    /// Up to so much is added to a delay (ms).
    #[serde(deserialize_with = "lenient::or_zero")]
    pub backoff_jitter_ms: i64,
    /// How long an attempt may take (s); 0 is for ever.
    #[serde(deserialize_with = "lenient::or_zero")]
    pub timeout_seconds: i64,
    /// How long all attempts may take (s); 0 is for ever.
    #[serde(deserialize_with = "lenient::or_zero")]
    pub total_timeout_seconds: i64,
    /// What follows when it takes too long.
    pub timeout_policy: TimeoutPolicy,
    /// How long a worker may be silent (s).
    #[serde(deserialize_with = "lenient::or_zero")]
    pub response_timeout_seconds: i64,
    /// How long it may wait for a worker (s).
    pub poll_timeout_seconds: Option<i64>,
    /// How many may be at work at once.
    pub concurrent_exec_limit: Option<i64>,
    /// How many may be handed out per window.
    pub rate_limit_per_frequency: Option<i64>,
    /// The length of that window (s).
    pub rate_limit_frequency_in_seconds: Option<i64>,
    /// Defaults of the input.
    #[serde(deserialize_with = "lenient::or_default")]
    pub input_template: serde_json::Map<String, Value>,
    /// A part of the queue's name.
    #[serde(deserialize_with = "lenient::or_default")]
    pub isolation_group_id: String,
    /// A part of the queue's name.
    #[serde(deserialize_with = "lenient::or_default")]
    pub execution_name_space: String,
    /// What its input must look like.
    pub input_schema: Option<Value>,
    /// What its output must look like.
    pub output_schema: Option<Value>,
    /// Whether the schemas are enforced.
    #[serde(deserialize_with = "lenient::or_default")]
    pub enforce_schema: bool,
}

/// How the delay between attempts grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RetryLogic {
    /// Not at all.
    #[default]
    Fixed,
    /// By the same each time.
    LinearBackoff,
    /// Twice as long each time.
    ExponentialBackoff,
}

/// What follows when a task takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TimeoutPolicy {
    /// Another attempt, if any is left.
    Retry,
    /// The end of the workflow.
    #[default]
    TimeOutWf,
    /// Nothing; somebody is told.
    AlertOnly,
}

impl RetryLogic {
    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            RetryLogic::Fixed => "FIXED",
            RetryLogic::LinearBackoff => "LINEAR_BACKOFF",
            RetryLogic::ExponentialBackoff => "EXPONENTIAL_BACKOFF",
        }
    }
}

impl TimeoutPolicy {
    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            TimeoutPolicy::Retry => "RETRY",
            TimeoutPolicy::TimeOutWf => "TIME_OUT_WF",
            TimeoutPolicy::AlertOnly => "ALERT_ONLY",
        }
    }
}

impl Default for TaskDefinition {
    fn default() -> TaskDefinition {
        TaskDefinition {
            name: String::new(),
            retry_count: 3,
            retry_logic: RetryLogic::Fixed,
            retry_delay_seconds: 60,
            backoff_scale_factor: 1,
            max_retry_delay_seconds: 0,
            backoff_jitter_ms: 0,
            timeout_seconds: 0,
            total_timeout_seconds: 0,
            timeout_policy: TimeoutPolicy::TimeOutWf,
            response_timeout_seconds: 3600,
            poll_timeout_seconds: None,
            concurrent_exec_limit: None,
            rate_limit_per_frequency: None,
            rate_limit_frequency_in_seconds: None,
            input_template: serde_json::Map::new(),
            isolation_group_id: String::new(),
            execution_name_space: String::new(),
            input_schema: None,
            output_schema: None,
            enforce_schema: false,
        }
    }
}

impl TaskDefinition {
    /// Reads one. Unknown fields are kept for whoever asks for its JSON.
    pub fn parse(json: &Value) -> Result<TaskDefinition, String> {
        TaskDefinition::deserialize(json).map_err(|error| error.to_string())
    }

    /// What is used for a system task that has no definition: it is tried once.
    pub fn of_system_task(name: &str) -> Arc<TaskDefinition> {
        Arc::new(TaskDefinition {
            name: name.to_owned(),
            retry_count: 0,
            response_timeout_seconds: 0,
            ..TaskDefinition::default()
        })
    }

    /// What is used for a worker's task that has no definition.
    pub fn of_worker_task(name: &str) -> Arc<TaskDefinition> {
        Arc::new(TaskDefinition { name: name.to_owned(), ..TaskDefinition::default() })
    }

    /// Everything that is wrong with it, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut expect = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };
        let name = &self.name;
        expect(!name.is_empty(), "TaskDef name cannot be null or empty".to_owned());
        expect(
            self.retry_count >= 0,
            format!("TaskDef retryCount: {} must be >= 0", self.retry_count),
        );
        expect(
            self.retry_delay_seconds >= 0,
            format!("TaskDef retryDelaySeconds: {} must be >= 0", self.retry_delay_seconds),
        );
        expect(
            self.backoff_scale_factor >= 1,
            "Backoff scale factor. Applicable for LINEAR_BACKOFF must be >= 1".to_owned(),
        );
        expect(
            self.max_retry_delay_seconds >= 0,
            "TaskDef maxRetryDelaySeconds must be >= 0".to_owned(),
        );
        expect(self.backoff_jitter_ms >= 0, "TaskDef backoffJitterMs must be >= 0".to_owned());
        expect(self.timeout_seconds >= 0, "TaskDef timeoutSeconds must be >= 0".to_owned());
        expect(
            self.total_timeout_seconds >= 0,
            "TaskDef totalTimeoutSeconds must be >= 0".to_owned(),
        );
        expect(
            self.poll_timeout_seconds.is_none_or(|seconds| seconds >= 0),
            "TaskDef pollTimeoutSeconds must be >= 0".to_owned(),
        );
        expect(
            self.concurrent_exec_limit.is_none_or(|limit| limit >= 0),
            "TaskDef concurrentExecLimit must be >= 0".to_owned(),
        );
        expect(
            self.response_timeout_seconds >= 1,
            format!(
                "TaskDef responseTimeoutSeconds: {} should be minimum 1 second",
                self.response_timeout_seconds
            ),
        );
        expect(
            self.timeout_seconds <= 0 || self.response_timeout_seconds <= self.timeout_seconds,
            format!(
                "TaskDef: {name} responseTimeoutSeconds: {} must be less than timeoutSeconds: {}",
                self.response_timeout_seconds, self.timeout_seconds
            ),
        );
        expect(
            self.total_timeout_seconds <= 0 || self.timeout_seconds <= self.total_timeout_seconds,
            format!(
                "TaskDef: {name} timeoutSeconds: {} must be less than or equal to \
                 totalTimeoutSeconds: {}",
                self.timeout_seconds, self.total_timeout_seconds
            ),
        );
        problems
    }

    /// Whether how many are at work, or handed out, is limited.
    pub(crate) fn has_limits(&self) -> bool {
        let limited = |limit: Option<i64>| limit.is_some_and(|limit| limit > 0);
        limited(self.concurrent_exec_limit) || limited(self.rate_limit_per_frequency)
    }

    /// The delay before the retry of attempt `retry_count` (0 is the first), without jitter (s).
    /// As Conductor counts: linear by `n + 1`, exponential by `2^n`, an overflow is the longest.
    pub fn retry_delay_s(&self, retry_count: u32) -> u32 {
        let delay = self.retry_delay_seconds.max(0);
        let grown = match self.retry_logic {
            RetryLogic::Fixed => delay,
            RetryLogic::LinearBackoff => delay
                .saturating_mul(self.backoff_scale_factor.max(1))
                .saturating_mul(i64::from(retry_count) + 1),
            RetryLogic::ExponentialBackoff => {
                delay.saturating_mul(2_i64.saturating_pow(retry_count))
            }
        };
        let cap = if self.max_retry_delay_seconds > 0 {
            self.max_retry_delay_seconds
        } else {
            i64::from(i32::MAX)
        };
        u32::try_from(grown.min(cap).min(i64::from(i32::MAX))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_nulls() {
        let read = TaskDefinition::parse(&json!({"name": "a", "retryDelaySeconds": null, "x": 1}));
        let expected = TaskDefinition {
            name: "a".to_owned(),
            retry_delay_seconds: 0,
            ..TaskDefinition::default()
        };
        assert_eq!(read, Ok(expected));
        assert!(TaskDefinition::parse(&json!({"name": "a", "retryLogic": "NEVER"})).is_err());
    }

    #[test]
    fn delays() {
        let definition = |logic, delay, scale, cap| TaskDefinition {
            retry_logic: logic,
            retry_delay_seconds: delay,
            backoff_scale_factor: scale,
            max_retry_delay_seconds: cap,
            ..TaskDefinition::default()
        };
        for (logic, delay, scale, cap, expected) in [
            (RetryLogic::Fixed, 60, 9, 0, [60, 60, 60, 60]),
            (RetryLogic::Fixed, 60, 9, 10, [10, 10, 10, 10]),
            (RetryLogic::LinearBackoff, 5, 2, 0, [10, 20, 30, 40]),
            (RetryLogic::LinearBackoff, 5, 2, 25, [10, 20, 25, 25]),
            (RetryLogic::ExponentialBackoff, 1, 9, 0, [1, 2, 4, 8]),
            (RetryLogic::ExponentialBackoff, 3, 1, 7, [3, 6, 7, 7]),
        ] {
            let definition = definition(logic, delay, scale, cap);
            let delays: Vec<u32> = (0..4).map(|n| definition.retry_delay_s(n)).collect();
            assert_eq!(delays, expected, "{logic:?}");
        }
        let far = definition(RetryLogic::ExponentialBackoff, 60, 1, 0).retry_delay_s(4_000);
        assert_eq!(far, u32::try_from(i32::MAX).expect("positive"));
    }

    #[test]
    fn what_is_refused() {
        let bad = TaskDefinition {
            name: String::new(),
            retry_count: -1,
            response_timeout_seconds: 10,
            timeout_seconds: 5,
            total_timeout_seconds: 3,
            ..TaskDefinition::default()
        };
        let problems = bad.problems();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(
            TaskDefinition { name: "a".to_owned(), ..TaskDefinition::default() }
                .problems()
                .is_empty()
        );
    }
}
