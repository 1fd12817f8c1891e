//! kill -9 of the real binary under load, again and again: every acknowledged create is completed
//! in the end, and no job whose completion was acknowledged is ever handed out again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass_worker::{Client, v1};

const ROUNDS: u64 = 6;
const BATCH: usize = 50;
const CREDITS: u32 = 200;
const PATIENCE: Duration = Duration::from_secs(120);

/// What clients were told.
#[derive(Default)]
struct Told {
    /// Acknowledged creates: key to the number in the payload.
    created: HashMap<u64, u64>,
    /// Acknowledged completions.
    completed: HashSet<u64>,
    /// Completions that were sent and may have happened: their answer died with the server.
    sent: HashSet<u64>,
    /// What must never happen.
    wrong: Vec<String>,
    next_number: u64,
}

impl Told {
    /// Acknowledged creates that nobody was ever given to complete.
    fn lost(&self) -> Vec<u64> {
        let known = |key: &&u64| !self.completed.contains(key) && !self.sent.contains(key);
        self.created.keys().filter(known).copied().collect()
    }
}

struct Server(Child);

impl Server {
    fn start(data: &Path, address: &str) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["serve", "--log-level", "error", "--listen", address]);
        command.args(["--zeebe-listen", "off"]);
        command.args(["--checkpoint-seconds", "1", "--log-segment-mib", "16"]);
        command.arg("--data-dir").arg(data).stdin(Stdio::null()).stdout(Stdio::null());
        Server(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

async fn client(address: &str) -> Client {
    const START_MAX: Duration = Duration::from_secs(30);
    let started = Instant::now();
    loop {
        if let Ok(client) = Client::connect(format!("http://{address}")).await
            && client.status().await.is_ok()
        {
            return client;
        }
        assert!(started.elapsed() < START_MAX, "the server does not answer");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Creates until the server is gone.
async fn produce(client: Client, told: Arc<Mutex<Told>>) {
    loop {
        let first = {
            let mut told = told.lock().unwrap();
            told.next_number += BATCH as u64;
            told.next_number - BATCH as u64
        };
        let numbers = first..first + BATCH as u64;
        let jobs = numbers.clone().map(|number| v1::NewJob {
            queue: "q".to_owned(),
            group: format!("g{}", number % 7),
            priority: (number % 3) as i32,
            payload: number.to_string().into(),
            ..v1::NewJob::default()
        });
        let Ok(results) = client.create_jobs(jobs.collect()).await else { return };
        let mut told = told.lock().unwrap();
        for (number, result) in numbers.zip(results) {
            told.created.insert(result.unwrap().key, number);
        }
    }
}

/// Completes until the server is gone, or until nothing comes for a while when `drain` is set.
async fn work(client: Client, told: Arc<Mutex<Told>>, drain: bool) {
    let hello = v1::Hello {
        queues: vec!["q".to_owned()],
        worker: "w".to_owned(),
        // Jobs that a killed server had handed out come back soon.
        lease_ms: 2_000,
        ..v1::Hello::default()
    };
    let Ok(mut stream) = client.work(hello, CREDITS).await else { return };
    let mut unanswered: VecDeque<u64> = VecDeque::new();
    loop {
        let wait = if drain { Duration::from_secs(15) } else { PATIENCE };
        let received = match tokio::time::timeout(wait, stream.next()).await {
            Ok(Ok(Some(received))) => received,
            ended => {
                assert!(!drain, "the last stream ended: {ended:?}");
                return;
            }
        };
        let mut told = told.lock().unwrap();
        let refused: HashSet<u64> = received.refused.iter().map(|one| one.result.key).collect();
        for key in unanswered.drain(..received.answered) {
            if !refused.contains(&key) {
                told.completed.insert(key);
            }
        }
        for job in &received.jobs {
            if told.completed.contains(&job.key) {
                told.wrong.push(format!("job {} came again after its completion", job.key));
            }
            if let Some(number) = told.created.get(&job.key)
                && job.payload != number.to_string()
            {
                told.wrong.push(format!("job {} has the payload of another", job.key));
            }
            unanswered.push_back(job.key);
        }
        told.sent.extend(received.jobs.iter().map(|job| job.key));
        let done = received.jobs.iter().map(|job| (job.into(), Default::default()));
        stream.sender().complete_all(done, received.jobs.len());
        if drain && unanswered.is_empty() && told.lost().is_empty() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_nine_under_load_loses_nothing_and_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let address = free_address();
    let told = Arc::new(Mutex::new(Told::default()));
    for round in 0..ROUNDS {
        let mut server = Server::start(dir.path(), &address);
        let mut tasks = Vec::new();
        for _ in 0..2 {
            tasks.push(tokio::spawn(produce(client(&address).await, told.clone())));
            tasks.push(tokio::spawn(work(client(&address).await, told.clone(), false)));
        }
        // Early and late, before, in and behind checkpoints.
        tokio::time::sleep(Duration::from_millis(150 + round * 370)).await;
        server.kill();
        for task in tasks {
            let _ = tokio::time::timeout(PATIENCE, task).await.expect("clients notice the end");
        }
    }
    let _server = Server::start(dir.path(), &address);
    work(client(&address).await, told.clone(), true).await;
    let told = told.lock().unwrap();
    assert!(told.wrong.is_empty(), "{:?}", &told.wrong[..told.wrong.len().min(5)]);
    let lost = told.lost();
    assert!(lost.is_empty(), "{} of {} created jobs are lost", lost.len(), told.created.len());
    // At most what was in flight at each kill may have lost its answer.
    let unsure = told.created.keys().filter(|key| !told.completed.contains(key)).count() as u64;
    assert!(unsure <= ROUNDS * 2 * u64::from(CREDITS), "{unsure} completions without an answer");
    println!("{} jobs created and completed over {ROUNDS} kills", told.created.len());
    assert!(told.created.len() > 1_000, "there was load: {}", told.created.len());
}
