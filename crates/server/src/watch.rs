//! `/health` and `/metrics`, and the answer to paths that nobody has.

use std::fmt::{Error, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::timeout;
use windlass_gateway::read_model;
use windlass_gateway::request::{QueueView, StatusView};
use windlass_gateway::{Gateway, GatewayError};
use windlass_partition::tally::Tally;
use windlass_partition::{Durability, FollowLag};

/// How long a partition may take to say that it is well.
const HEALTH_WAIT_MAX: Duration = Duration::from_secs(5);
/// Queues that `/metrics` shows one by one; the others are added up under an empty name.
const QUEUES_SHOWN_MAX: usize = 1_000;

struct Pages {
    gateway: Gateway,
    registry: Registry,
    follow_lag: FollowLag,
}

/// The two pages.
pub(crate) fn router(gateway: Gateway, follow_lag: FollowLag) -> Router {
    let mut registry = Registry::with_prefix("windlass");
    gateway.metrics().register(&mut registry);
    let pages = Arc::new(Pages { gateway, registry, follow_lag });
    Router::new().route("/health", get(health)).route("/metrics", get(metrics)).with_state(pages)
}

/// Anything that no route has.
pub(crate) async fn not_found(uri: Uri, headers: HeaderMap) -> Response {
    let is_grpc = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/grpc"));
    if is_grpc {
        // How gRPC says that there is no such service.
        let headers = [("content-type", "application/grpc"), ("grpc-status", "12")];
        return headers.into_response();
    }
    windlass_api_native::rest::no_such_path(&uri)
}

/// Our own words, and those that Conductor's clients look for.
async fn health(State(pages): State<Arc<Pages>>) -> Response {
    let status = match timeout(HEALTH_WAIT_MAX, pages.gateway.status()).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return unhealthy("stopped", &error.to_string()),
        Err(_) => return unhealthy("stuck", "the partition does not answer"),
    };
    if pages.gateway.is_shutting_down() {
        return unhealthy("shutting-down", &GatewayError::ShuttingDown.to_string());
    }
    let (health, reason) = match status.refusing {
        Some(why) => ("refusing-creates", why.to_string()),
        None => ("serving", String::new()),
    };
    let body = serde_json::json!({
        "status": health,
        "reason": reason,
        "version": windlass_api_native::VERSION,
        "durability": pages.gateway.durability().to_string(),
        "lsn": status.lsn,
        "durable_lsn": status.durable_lsn,
        "live_jobs": status.live_jobs,
        "uptime_ms": u64::try_from(pages.gateway.uptime().as_millis()).unwrap_or(u64::MAX),
        "healthy": true,
        "healthResults": [],
        "suppressedHealthResults": [],
    });
    json(StatusCode::OK, &body)
}

fn unhealthy(status: &str, reason: &str) -> Response {
    let version = windlass_api_native::VERSION;
    let body = serde_json::json!({
        "status": status,
        "reason": reason,
        "version": version,
        "healthy": false,
        "healthResults": [],
        "suppressedHealthResults": [],
    });
    json(StatusCode::SERVICE_UNAVAILABLE, &body)
}

fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}

async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    match page(&pages).await {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn page(pages: &Pages) -> Result<String, Error> {
    let mut text = String::new();
    encode_registry(&mut text, &pages.registry)?;
    // A partition that does not answer has no numbers; the rest is still worth a look.
    let asked = async { (pages.gateway.status().await, pages.gateway.queues(None).await) };
    if let Ok((Ok(status), Ok(queues))) = timeout(HEALTH_WAIT_MAX, asked).await {
        let mut registry = Registry::with_prefix("windlass");
        let waiters = pages.gateway.waiters();
        let history = pages.gateway.searches().ok().map(|searches| {
            let (status, lag_bytes) = (searches.status(), pages.follow_lag.bytes());
            History { status, lag_bytes }
        });
        let queues = shown(queues);
        registry.register_collector(Box::new(Now {
            status,
            durability: pages.gateway.durability(),
            queues,
            waiters,
            history,
        }));
        encode_registry(&mut text, &registry)?;
    } else {
        text.write_str("# the partition does not answer\n")?;
    }
    encode_eof(&mut text)?;
    Ok(text)
}

/// Numbers that are read from the partition for one scrape.
#[derive(Debug)]
struct Now {
    status: Box<StatusView>,
    durability: Durability,
    queues: Vec<Row>,
    waiters: usize,
    history: Option<History>,
}

/// How far the read model is.
#[derive(Debug)]
struct History {
    status: read_model::Status,
    lag_bytes: u64,
}

/// A queue, or the sum of those that are not shown.
#[derive(Debug, Default)]
struct Row {
    tenant: String,
    queue: String,
    live: [u64; 5],
    finished: [u64; 3],
    groups: u64,
    waiting_workers: u64,
    paused: u64,
}

const STATES: [&str; 5] = ["scheduled", "ready", "active", "backoff", "incident"];
const ENDS: [&str; 3] = ["completed", "failed", "cancelled"];

fn shown(mut queues: Vec<QueueView>) -> Vec<Row> {
    let rest = queues.split_off(queues.len().min(QUEUES_SHOWN_MAX));
    let mut rows: Vec<Row> = queues.iter().map(row).collect();
    if rest.is_empty() {
        return rows;
    }
    let mut sum = Row::default();
    for other in rest.iter().map(row) {
        for (sum, more) in sum.live.iter_mut().zip(other.live) {
            *sum += more;
        }
        for (sum, more) in sum.finished.iter_mut().zip(other.finished) {
            *sum += more;
        }
        sum.groups += other.groups;
        sum.waiting_workers += other.waiting_workers;
        sum.paused += other.paused;
    }
    rows.push(sum);
    rows
}

fn row(queue: &QueueView) -> Row {
    let counts = &queue.counts;
    let live = [counts.scheduled, counts.ready, counts.active, counts.backoff, counts.incident];
    Row {
        tenant: queue.tenant.to_string(),
        queue: queue.name.to_string(),
        live: live.map(u64::from),
        finished: queue.finished,
        groups: queue.groups.into(),
        waiting_workers: queue.waiting_workers.into(),
        paused: queue.paused.into(),
    }
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let status = &self.status;
        let gauges: [(&str, &str, u64); 8] = [
            ("live_jobs_all", "Jobs that are not finished", status.live_jobs.into()),
            ("waiters", "Polls and streams in the partition", status.waiters.into()),
            ("open_waiters", "Polls and streams at the gateway", wide(self.waiters)),
            ("payload_bytes", "Bytes of payloads in memory", status.payload_bytes),
            ("lsn", "The newest record", status.lsn),
            ("durable_lsn", "The newest durable record", status.durable_lsn),
            ("checkpoint_lsn", "What the newest checkpoint covers", status.checkpoint_lsn),
            ("refusing_creates", "1 while creates are refused", status.refusing.is_some().into()),
        ];
        for (name, help, value) in gauges {
            gauge(&mut encoder, name, help, value)?;
        }
        let help = "Deadlines that passed with the outcome alert; the log names the jobs";
        let alerts = encoder.encode_descriptor("alerts", help, None, MetricType::Counter)?;
        ConstCounter::new(status.alerts).encode(alerts)?;
        let help =
            "1 for what an acknowledgement means: fsync before it, or at an interval after it";
        let mut family = encoder.encode_descriptor("durability", help, None, MetricType::Gauge)?;
        let mode = [("mode", self.durability.name())];
        ConstGauge::new(1).encode(family.encode_family(&mode)?)?;
        if status.last_sync_ms > 0 {
            let age_ms = now_ms().saturating_sub(status.last_sync_ms);
            gauge(&mut encoder, "last_sync_age_milliseconds", "Since the last sync", age_ms)?;
        }
        if status.checkpoint_ms > 0 {
            let age_ms = now_ms().saturating_sub(status.checkpoint_ms);
            let help = "How old the state of the newest checkpoint is";
            gauge(&mut encoder, "checkpoint_age_milliseconds", help, age_ms)?;
        }
        if status.checkpoint_took_ms > 0 {
            let help = "From the freeze of the newest checkpoint until it was durable";
            let took_ms = status.checkpoint_took_ms;
            gauge(&mut encoder, "checkpoint_duration_milliseconds", help, took_ms)?;
        }
        let help = "How long the log took to write and sync a batch";
        histogram(&mut encoder, "log_append_seconds", help, &status.appends_us, 1e-6)?;
        let help = "Commands in one batch of the log";
        histogram(&mut encoder, "log_batch_commands", help, &status.batch_commands, 1.0)?;
        self.encode_history(&mut encoder)?;
        self.encode_queues(encoder)
    }
}

impl Now {
    fn encode_history(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let Some(History { status, lag_bytes }) = &self.history else { return Ok(()) };
        let lag = self.status.durable_lsn.saturating_sub(status.covered_lsn);
        let gauges: [(&str, &str, u64); 5] = [
            ("history_lsn", "What the history covers", status.covered_lsn),
            ("history_lag_records", "Durable records that the history has not yet", lag),
            ("history_lag_bytes", "Bytes of the log that it has not yet read", *lag_bytes),
            ("history_gaps", "Ranges of records that never came to the history", status.gaps),
            ("history_records_missed", "Records in these ranges", status.lsns_missed),
        ];
        for (name, help, value) in gauges {
            gauge(encoder, name, help, value)?;
        }
        Ok(())
    }

    fn encode_queues(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Jobs that are not finished, by state";
        let mut family = encoder.encode_descriptor("live_jobs", help, None, MetricType::Gauge)?;
        for row in &self.queues {
            for (state, count) in STATES.iter().zip(row.live) {
                let labels = [
                    ("tenant", row.tenant.as_str()),
                    ("queue", row.queue.as_str()),
                    ("state", state),
                ];
                ConstGauge::new(signed(count)).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Jobs that came to rest since the partition came up";
        let mut family =
            encoder.encode_descriptor("jobs_finished", help, None, MetricType::Counter)?;
        for row in &self.queues {
            for (end, count) in ENDS.iter().zip(row.finished) {
                let labels =
                    [("tenant", row.tenant.as_str()), ("queue", row.queue.as_str()), ("end", end)];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        type Of = fn(&Row) -> u64;
        let per_queue: [(&str, &str, Of); 3] = [
            ("queue_groups", "Groups with live jobs, or remembered", |row| row.groups),
            ("queue_waiting_workers", "Polls and streams that wait", |row| row.waiting_workers),
            ("queue_paused", "1 while hand-out is stopped", |row| row.paused),
        ];
        for (name, help, value) in per_queue {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for row in &self.queues {
                let labels = [("tenant", row.tenant.as_str()), ("queue", row.queue.as_str())];
                ConstGauge::new(signed(value(row))).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), Error> {
    let unit: Option<&Unit> = None;
    let metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    ConstGauge::new(signed(value)).encode(metric)
}

/// What the partition tallied, in units of `unit`.
fn histogram(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    tally: &Tally,
    unit: f64,
) -> Result<(), Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    let buckets: Vec<(f64, u64)> = tally
        .classes()
        .map(|(up_to, count)| (up_to.map_or(f64::MAX, |up_to| float(up_to) * unit), count))
        .collect();
    metric.encode_histogram::<NoLabelSet>(float(tally.sum()) * unit, tally.count(), &buckets, None)
}

fn float(number: u64) -> f64 {
    let (high, low) = (number >> 32, number & u64::from(u32::MAX));
    let part = |part: u64| f64::from(u32::try_from(part).unwrap_or(u32::MAX));
    part(high) * 4_294_967_296.0 + part(low)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn wide(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
