//! A server, its clients, and jobs as a process would make them.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use tonic::Status;
use tonic::transport::Channel;
use windlass_api_zeebe::queue::{TENANT_DEFAULT, queue_name};
use windlass_gateway::request::Answer;
use windlass_record::command::{Command, ConfigureQueue, CreateJob, Due, JobOptions};
use windlass_record::id::JobKey;
use windlass_record::policy::{Dialect, JobOrder, QueueSettings};
use windlass_server::settings::{DurabilityMode, FaceListen, Switch};
use windlass_server::{Config, ServerHandle, start};

use crate::protocol as p;
use crate::protocol::gateway_client::GatewayClient;

pub(crate) type Client = GatewayClient<Channel>;

/// Longer than anything here takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `round` three times, on [`Bench::off_the_disk`]. A round gives back when what it waited for was due and when it came.
///
/// # Panics
/// If a round ends before it is due, if one is late by 100 ms, or if two are by 50.
pub(crate) async fn in_time(mut round: impl AsyncFnMut() -> (Instant, Instant)) {
    // The engine counts whole milliseconds: the first of them may have begun already.
    const EARLY: Duration = Duration::from_millis(5);
    const SLACK: Duration = Duration::from_millis(50);
    let mut late = Vec::new();
    for _ in 0..3 {
        let (due, done) = round().await;
        assert!(done + EARLY >= due, "{:?} too early", due - done);
        late.push(done.saturating_duration_since(due));
    }
    late.sort_unstable();
    assert!(late[1] < SLACK && late[2] < 2 * SLACK, "late by {late:?}");
}

/// A server and its directory.
pub(crate) struct Bench {
    pub(crate) server: ServerHandle,
    _dir: TempDir,
}

impl Bench {
    pub(crate) async fn start() -> Bench {
        Bench::with(|_| {}).await
    }

    /// One whose answers do not wait for the disk, which all tests share and which stands still at times: for what is
    /// held against the clock.
    pub(crate) async fn off_the_disk() -> Bench {
        Bench::with(|config| config.durability = DurabilityMode::Interval).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Bench {
        let dir = TempDir::new().unwrap();
        let mut config = Config {
            data_dir: dir.path().join("data"),
            listen: "127.0.0.1:0".parse().unwrap(),
            zeebe_listen: FaceListen::On("127.0.0.1:0".parse().unwrap()),
            log_segment_mib: 16,
            log_reserve_segments: 1,
            shutdown_seconds: 5,
            builtin: Switch::Off,
            ..Config::default()
        };
        change(&mut config);
        Bench { server: start(config).await.unwrap(), _dir: dir }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.zeebe_address().unwrap())
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(self.url()).unwrap().connect().await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        GatewayClient::new(self.channel().await)
            .max_decoding_message_size(4 << 20)
            .max_encoding_message_size(8 << 20)
    }

    /// A client that reads nothing takes no more than 64 KiB on one connection.
    pub(crate) async fn client_with_small_windows(&self) -> Client {
        let endpoint = Channel::from_shared(self.url()).unwrap();
        let endpoint = endpoint.initial_stream_window_size(65_535);
        let endpoint = endpoint.initial_connection_window_size(65_535);
        GatewayClient::new(endpoint.connect().await.unwrap())
    }

    /// How many jobs of the first queue are active, once that no longer changes. That no more comes
    /// nothing says but time.
    pub(crate) async fn settled_active(&self) -> usize {
        const QUIET: Duration = Duration::from_millis(200);
        let mut before = usize::MAX;
        loop {
            tokio::time::sleep(QUIET).await;
            let queues = self.server.gateway().queues(None).await.unwrap();
            let active = usize::try_from(queues[0].counts.active).unwrap();
            if active == before {
                return active;
            }
            before = active;
        }
    }

    pub(crate) async fn create(&self, job_type: &str) -> i64 {
        self.create_with(job_type, |_| {}).await
    }

    /// A job in its queue, which is made if it is the first.
    pub(crate) async fn create_with(
        &self,
        job_type: &str,
        change: impl FnOnce(&mut CreateJob),
    ) -> i64 {
        let queue = queue_name(TENANT_DEFAULT, job_type);
        // Ordered as the engine orders jobs of flows, but finished ones can be looked at.
        let settings = QueueSettings { order: JobOrder::Creation, ..QueueSettings::DEFAULT };
        let configure = ConfigureQueue { queue: queue.clone(), settings, seed_only: true };
        let gateway = self.server.gateway();
        gateway.command(Command::ConfigureQueue(configure)).await.unwrap();
        let options = JobOptions { dialect: Dialect::Zeebe, ..JobOptions::default() };
        let mut job = CreateJob {
            queue,
            job_type: job_type.into(),
            group: "".into(),
            priority: 0,
            retries: 3,
            due: Due::Now,
            payload: br#"{"a":1,"b":{"c":[2]},"d":"3"}"#.as_slice().into(),
            options: Some(Box::new(options)),
        };
        change(&mut job);
        let answer = gateway.command(Command::CreateJob(job)).await.unwrap();
        let Answer::Created { key, .. } = answer else { panic!("{answer:?}") };
        key.raw().cast_signed()
    }

    /// Waits until this many polls and streams wait.
    pub(crate) async fn wait_for_waiters(&self, count: u32) {
        until(&format!("{count} waiters"), async || {
            self.server.gateway().status().await.unwrap().waiters == count
        })
        .await;
    }

    /// Waits until a job is in this state.
    pub(crate) async fn wait_for_state(&self, job_key: i64, state: &str) {
        let key = JobKey::from_raw(job_key.cast_unsigned());
        until(&format!("job {job_key} in state {state}"), async || {
            self.server.gateway().job(key).await.unwrap().unwrap().state == state
        })
        .await;
    }
}

/// Waits for what nobody is told of.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "there is never {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn activation(job_type: &str) -> p::ActivateJobsRequest {
    p::ActivateJobsRequest {
        r#type: job_type.to_owned(),
        worker: "w".to_owned(),
        timeout: 60_000,
        max_jobs_to_activate: 10,
        request_timeout: -1,
        ..Default::default()
    }
}

pub(crate) fn stream_of(job_type: &str) -> p::StreamActivatedJobsRequest {
    p::StreamActivatedJobsRequest {
        r#type: job_type.to_owned(),
        worker: "w".to_owned(),
        timeout: 60_000,
        ..Default::default()
    }
}

/// The jobs of all messages of an answer.
pub(crate) async fn activate(
    client: &mut Client,
    request: p::ActivateJobsRequest,
) -> Result<Vec<p::ActivatedJob>, Status> {
    let mut messages = client.activate_jobs(request).await?.into_inner();
    let mut jobs = Vec::new();
    while let Some(message) = messages.message().await? {
        jobs.extend(message.jobs);
    }
    Ok(jobs)
}

/// The jobs there are, by key.
pub(crate) async fn take(client: &mut Client, job_type: &str) -> Vec<i64> {
    let jobs = activate(client, activation(job_type)).await.unwrap();
    jobs.iter().map(|job| job.key).collect()
}

pub(crate) async fn complete(client: &mut Client, job_key: i64) -> Result<(), Status> {
    let request = p::CompleteJobRequest { job_key, ..Default::default() };
    client.complete_job(request).await.map(|_| ())
}

pub(crate) async fn fail(client: &mut Client, job_key: i64, retries: i32) -> Result<(), Status> {
    let request = p::FailJobRequest { job_key, retries, ..Default::default() };
    client.fail_job(request).await.map(|_| ())
}
