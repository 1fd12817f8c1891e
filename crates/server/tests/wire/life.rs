//! The server's own life: health, metrics, restart, crash, shutdown, and paths that nobody has.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tempfile::TempDir;
use tokio::time::timeout;
use tonic::Code;
use windlass_gateway::record::command::{ConfigureQueue, QueueName};
use windlass_gateway::record::policy::{JobOrder, QueueSettings};
use windlass_log::fs::{self, FileSystem};
use windlass_server::settings::DurabilityMode;
use windlass_server::{ServeError, StopReason, run, start, start_on};
use windlass_worker::v1;

use crate::common::{Bench, PATIENCE, activation, code, config, create, http, job, state, take};
use crate::grpc::wait_for_waiters;

#[tokio::test]
async fn health_and_metrics() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, job("q")).await;
    create(&mut grpc, job("q")).await;
    let taken = take(&mut grpc, "q", 1).await.remove(0);
    let request =
        v1::CompleteJobRequest { key, activation: Some(taken.activation), ..Default::default() };
    grpc.complete_job(request.clone()).await.unwrap();
    grpc.complete_job(request).await.unwrap_err();

    let health = bench.json("GET", "/health", "").await;
    assert_eq!(health["status"], "serving");
    assert_eq!(health["live_jobs"], 1);
    assert_eq!(health["durability"], "fsync before every acknowledgement");

    let page = bench.http("GET", "/metrics", "").await;
    assert!(page.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = page.text();
    for line in [
        "windlass_jobs_created_total 2",
        "windlass_jobs_handed_out_total 1",
        "windlass_commands_total{verb=\"complete\"} 1",
        "windlass_rejections_total{verb=\"complete\",code=\"job-not-found\"} 1",
        "windlass_live_jobs{tenant=\"default\",queue=\"q\",state=\"ready\"} 1",
        "windlass_jobs_finished_total{tenant=\"default\",queue=\"q\",end=\"completed\"} 1",
        "windlass_waiters 0",
        "windlass_durability{mode=\"fsync\"} 1",
        "windlass_answer_seconds_count 4",
        "windlass_log_batch_commands_sum 3.0",
        "windlass_alerts_total 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

/// Nobody heard of it but who read the log.
#[tokio::test]
async fn a_deadline_that_alerts_is_counted() {
    let bench = Bench::start().await;
    let waiting = r#"{"queue":"q","options":{"waiting":{"after_ms":1,"outcome":"alert"}}}"#;
    bench.json("POST", "/windlass/v1/jobs", waiting).await;
    let since = Instant::now();
    loop {
        let text = bench.http("GET", "/metrics", "").await.text();
        if text.lines().any(|line| line == "windlass_alerts_total 1") {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{text}");
        tokio::time::sleep(PATIENCE / 1_000).await;
    }
}

/// Every answer about durability says what is in force.
#[tokio::test]
async fn a_relaxed_durability_is_said_everywhere() {
    let bench = Bench::with(|config| config.durability = DurabilityMode::Interval).await;
    let mut grpc = bench.grpc().await;
    create(&mut grpc, job("q")).await;
    let words = "interval: acknowledged before it is on disk; fsync at most every 50 ms";
    let health = bench.json("GET", "/health", "").await;
    assert!(health["durability"].as_str().unwrap().starts_with(words), "{health}");
    let status = bench.json("GET", "/windlass/v1/status", "").await;
    assert!(status["durability"].as_str().unwrap().starts_with(words), "{status}");
    let status = grpc.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner();
    assert!(status.durability.starts_with(words), "{}", status.durability);
    let text = bench.http("GET", "/metrics", "").await.text();
    assert!(text.contains("windlass_durability{mode=\"interval\"} 1"), "{text}");
}

/// The operating system's files until it is told that the disk fails.
#[derive(Debug, Default)]
struct FailingDisk(Arc<AtomicBool>);

#[derive(Debug)]
struct FailingFile(Box<dyn fs::File>, Arc<AtomicBool>);

impl FailingDisk {
    fn file(&self, file: Box<dyn fs::File>) -> Box<dyn fs::File> {
        Box::new(FailingFile(file, self.0.clone()))
    }
}

impl FileSystem for FailingDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::OsFileSystem.create_dir_all(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn fs::File>> {
        fs::OsFileSystem.create(path).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn fs::File>> {
        fs::OsFileSystem.open(path).map(|file| self.file(file))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::OsFileSystem.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::OsFileSystem.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::OsFileSystem.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::OsFileSystem.sync_dir(dir)
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<u64> {
        fs::OsFileSystem.available_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn fs::Lock>> {
        fs::OsFileSystem.lock(path)
    }
}

impl fs::File for FailingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.0.set_len(len_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.1.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.0.len_bytes()
    }
}

/// A sync that failed is the end of the process, which says why; what it was asked is refused, and
/// what was acknowledged before is there after the next start.
#[tokio::test]
async fn a_failed_sync_ends_the_server() {
    let dir = TempDir::new().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let disk = Arc::new(FailingDisk(fails.clone()));
    let server = start_on(config(&dir), disk).await.unwrap();
    let bench = Bench { server, dir };
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, job("q")).await;
    fails.store(true, Ordering::SeqCst);
    let Bench { server, dir } = bench;
    let running = tokio::spawn(run(server));
    let request = v1::CreateJobRequest { job: Some(job("q")) };
    assert_eq!(grpc.create_job(request).await.unwrap_err().code(), Code::Unavailable);
    let ended = timeout(PATIENCE, running).await.unwrap().unwrap();
    let Err(ServeError::Stopped(StopReason::Log(error))) = &ended else { panic!("{ended:?}") };
    assert!(std::error::Error::source(error).unwrap().to_string().contains("the disk is gone"));
    let bench = Bench { server: start(config(&dir)).await.unwrap(), dir };
    let mut grpc = bench.grpc().await;
    assert_eq!(state(&mut grpc, key).await, v1::JobState::Ready);
}

#[tokio::test]
async fn metrics_tell_of_syncs_and_checkpoints() {
    let bench = Bench::with(|config| config.checkpoint_seconds = 0).await;
    let mut grpc = bench.grpc().await;
    create(&mut grpc, job("q")).await;
    let value = |text: &str, name: &str| -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    let text = timeout(PATIENCE, async {
        loop {
            let text = bench.http("GET", "/metrics", "").await.text();
            if value(&text, "windlass_checkpoint_duration_milliseconds").is_some() {
                return text;
            }
        }
    })
    .await
    .unwrap();
    assert!(value(&text, "windlass_checkpoint_age_milliseconds").unwrap() < 60_000.0);
    assert!(value(&text, "windlass_log_append_seconds_count").unwrap() >= 1.0);
    assert!(value(&text, "windlass_log_append_seconds_sum").unwrap() > 0.0);
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_stop_and_a_crash() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let first = create(&mut grpc, job("q")).await;
    let Bench { server, dir } = bench;
    server.stop().await;

    let server = start(config(&dir)).await.unwrap();
    assert_eq!(server.recovery().live_jobs, 1);
    let bench = Bench { server, dir };
    let mut grpc = bench.grpc().await;
    let second = create(&mut grpc, job("q")).await;
    take(&mut grpc, "q", 1).await;
    let Bench { server, dir } = bench;
    server.kill().await;

    let server = start(config(&dir)).await.unwrap();
    assert_eq!((server.recovery().live_jobs, server.recovery().epoch), (2, 3));
    let bench = Bench { server, dir };
    let mut grpc = bench.grpc().await;
    assert_eq!(state(&mut grpc, first).await, v1::JobState::Active);
    assert_eq!(state(&mut grpc, second).await, v1::JobState::Ready);
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused() {
    let bench = Bench::start().await;
    let Err(error) = start(config(&bench.dir)).await else { panic!("two servers, one directory") };
    assert!(matches!(error, ServeError::Log { .. }), "{error:?}");
}

#[tokio::test]
async fn a_lost_log_is_not_made_anew_beside_a_checkpoint() {
    let bench = Bench::start().await;
    let Bench { server, dir } = bench;
    server.stop().await;
    std::fs::remove_dir_all(dir.path().join("data/log")).unwrap();
    let Err(error) = start(config(&dir)).await else { panic!("the log was lost") };
    assert!(matches!(error, ServeError::LogMissing { .. }), "{error:?}");
}

#[tokio::test]
async fn other_addresses_are_refused_without_a_word() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    config.listen = "0.0.0.0:0".parse().unwrap();
    let Err(error) = start(config).await else { panic!("it listens to everybody") };
    assert!(error.to_string().contains("--allow-unauthenticated"), "{error}");
}

#[tokio::test]
async fn queues_of_the_configuration_are_seeded_once() {
    let seed = |aging_ms| ConfigureQueue {
        queue: QueueName { tenant: "default".into(), queue: "mail".into() },
        settings: QueueSettings { order: JobOrder::Creation, aging_ms, ..QueueSettings::DEFAULT },
        seed_only: true,
    };
    let bench = Bench::with(|config| config.queues = vec![seed(7)]).await;
    let Bench { server, dir } = bench;
    server.stop().await;
    let mut again = config(&dir);
    again.queues = vec![seed(8)];
    let bench = Bench { server: start(again).await.unwrap(), dir };
    let queues = bench.json("GET", "/windlass/v1/queues", "").await;
    assert_eq!(queues["queues"][0]["settings"]["aging_ms"], 7);
    assert_eq!(queues["queues"][0]["settings"]["order"], "creation");
}

#[tokio::test]
async fn the_ready_file_holds_the_address() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    let path = dir.path().join("ready");
    config.ready_file = Some(path.clone());
    let server = start(config).await.unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.trim(), server.address().to_string());
    server.stop().await;
}

#[tokio::test]
async fn a_shutdown_ends_polls_with_nothing_and_streams_with_unavailable() {
    let bench = Bench::start().await;
    let mut polling = bench.grpc().await;
    let request = v1::ActivateJobsRequest { wait_ms: 60_000, ..activation("q", 1) };
    let poll = tokio::spawn(async move { polling.activate_jobs(request).await });

    let mut grpc = bench.grpc().await;
    let (say, said) = tokio::sync::mpsc::channel(1);
    let hello = v1::Hello { queues: vec!["q".to_owned()], ..Default::default() };
    say.send(v1::WorkerMessage { hello: Some(hello), credits: 1, ..Default::default() })
        .await
        .unwrap();
    let said = tokio_stream::wrappers::ReceiverStream::new(said);
    let mut stream = grpc.work(said).await.unwrap().into_inner();
    stream.message().await.unwrap();
    wait_for_waiters(&bench, 2).await;

    let Bench { server, dir } = bench;
    let stopping = tokio::spawn(server.stop());
    let polled = timeout(PATIENCE, poll).await.unwrap().unwrap().unwrap();
    assert!(polled.into_inner().jobs.is_empty());
    let status = timeout(PATIENCE, stream.message()).await.unwrap().unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::Unavailable, "shutting-down"));
    drop((stream, say, grpc));
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
    drop(dir);
}

#[tokio::test]
async fn paths_that_nobody_has() {
    let bench = Bench::start().await;
    for path in ["/", "/nope", "/windlass/v2/jobs", "/windlass"] {
        let answer = bench.http("GET", path, "").await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(answer.json()["code"], "no-such-path", "{path}");
    }
    let headers = [("content-type", "application/grpc")];
    let answer = http(bench.address(), "POST", "/other.Service/Call", &headers, b"").await;
    assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("12")));
}
