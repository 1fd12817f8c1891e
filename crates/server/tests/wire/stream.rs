//! The work stream: credits, results, stops, and what a dead connection leaves behind.

use std::collections::BTreeSet;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use windlass_worker::v1;

use crate::common::{Bench, Grpc, PATIENCE, code, create, job, state};
use crate::grpc::wait_for_waiters;

/// The far end of a stream.
struct Worker {
    say: mpsc::Sender<v1::WorkerMessage>,
    hear: Streaming<v1::ServerMessage>,
}

fn hello(queue: &str, credits: u32) -> v1::WorkerMessage {
    v1::WorkerMessage {
        hello: Some(v1::Hello {
            tenant: String::new(),
            queues: vec![queue.to_owned()],
            worker: "w".to_owned(),
            lease_ms: 0,
        }),
        credits,
        ..Default::default()
    }
}

async fn open(grpc: &mut Grpc, first: v1::WorkerMessage) -> Result<Worker, Status> {
    let (say, said) = mpsc::channel(16);
    say.send(first).await.unwrap();
    let hear = grpc.work(ReceiverStream::new(said)).await?.into_inner();
    Ok(Worker { say, hear })
}

impl Worker {
    async fn open(grpc: &mut Grpc, queue: &str, credits: u32) -> Worker {
        let mut worker = open(grpc, hello(queue, credits)).await.unwrap();
        let welcome = worker.next().await.welcome.unwrap();
        assert_eq!(welcome.lease_ms, 60_000);
        worker
    }

    async fn next(&mut self) -> v1::ServerMessage {
        let message = timeout(PATIENCE, self.hear.message()).await.expect("a message comes");
        message.unwrap().expect("the stream goes on")
    }

    async fn end(&mut self) -> Option<Status> {
        loop {
            match timeout(PATIENCE, self.hear.message()).await.expect("the stream ends") {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    }

    async fn jobs(&mut self, count: usize) -> Vec<v1::Job> {
        let mut jobs = Vec::new();
        while jobs.len() < count {
            jobs.extend(self.next().await.jobs);
        }
        assert_eq!(jobs.len(), count);
        jobs
    }

    async fn say(&self, message: v1::WorkerMessage) {
        self.say.send(message).await.unwrap();
    }

    async fn results(&mut self, results: Vec<v1::Result>) {
        self.say(v1::WorkerMessage { results, ..Default::default() }).await;
    }
}

fn done(job: &v1::Job) -> v1::Result {
    v1::Result {
        key: job.key,
        activation: job.activation,
        outcome: Some(v1::result::Outcome::Complete(v1::Complete::default())),
    }
}

async fn create_many(grpc: &mut Grpc, queue: &str, count: usize) -> BTreeSet<u64> {
    let jobs = (0..count).map(|_| job(queue)).collect();
    let answer = grpc.create_jobs(v1::CreateJobsRequest { jobs }).await.unwrap().into_inner();
    answer.results.iter().map(|result| result.key).collect()
}

#[tokio::test]
async fn jobs_come_within_the_credits_and_results_are_counted() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let keys = create_many(&mut grpc, "q", 10).await;
    let mut worker = Worker::open(&mut grpc, "q", 3).await;
    let first = worker.jobs(3).await;

    // Results give no credit back.
    worker.results(first.iter().map(done).collect()).await;
    let answer = worker.next().await;
    assert_eq!((answer.results, answer.jobs.len(), answer.refused.len()), (3, 0, 0));
    let status = grpc.list_queues(v1::ListQueuesRequest::default()).await.unwrap().into_inner();
    assert_eq!((status.queues[0].active, status.queues[0].ready), (0, 7));

    worker.say(v1::WorkerMessage { credits: 20, ..Default::default() }).await;
    let rest = worker.jobs(7).await;
    let mut seen: BTreeSet<u64> = first.iter().chain(&rest).map(|job| job.key).collect();
    assert_eq!(seen, keys);

    // A job that comes later is pushed.
    let late = create(&mut grpc, job("q")).await;
    assert_eq!(worker.jobs(1).await[0].key, late);
    seen.insert(late);
}

#[tokio::test]
async fn a_refused_result_is_named_by_its_place() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    create_many(&mut grpc, "q", 2).await;
    let mut worker = Worker::open(&mut grpc, "q", 2).await;
    let jobs = worker.jobs(2).await;
    let stale = v1::Result { activation: 99, ..done(&jobs[0]) };
    let unknown = v1::Result { key: 7, ..done(&jobs[0]) };
    worker.results(vec![stale, done(&jobs[0]), unknown, done(&jobs[1])]).await;
    let answer = worker.next().await;
    assert_eq!(answer.results, 4);
    let refused: Vec<(u64, u64, &str)> = answer
        .refused
        .iter()
        .map(|refused| {
            (refused.index, refused.key, refused.refusal.as_ref().unwrap().code.as_str())
        })
        .collect();
    assert_eq!(refused, [(0, jobs[0].key, "token-stale"), (2, 7, "job-not-found")]);

    worker.results(vec![done(&jobs[1])]).await;
    let answer = worker.next().await;
    assert_eq!((answer.results, answer.refused[0].index), (5, 4));
}

#[tokio::test]
async fn every_kind_of_result_goes_over_the_stream() {
    use v1::result::Outcome;
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    create_many(&mut grpc, "q", 4).await;
    let mut worker = Worker::open(&mut grpc, "q", 4).await;
    let jobs = worker.jobs(4).await;
    let result = |job: &v1::Job, outcome| v1::Result {
        key: job.key,
        activation: job.activation,
        outcome: Some(outcome),
    };
    let fail = v1::Fail { message: "no".to_owned(), permanent: true, ..Default::default() };
    let throw = v1::Throw { code: "E".to_owned(), message: "e".to_owned() };
    let progress = v1::Progress { percent: 10, note: "n".to_owned(), documents: Vec::new() };
    let log = v1::Log { lines: vec!["line".to_owned()] };
    worker
        .results(vec![
            result(&jobs[0], Outcome::Progress(progress)),
            result(&jobs[0], Outcome::Log(log)),
            result(&jobs[0], Outcome::Fail(fail)),
            result(&jobs[1], Outcome::Throw(throw)),
            result(&jobs[2], Outcome::Release(v1::Release { delay_ms: 60_000 })),
            result(&jobs[3], Outcome::Complete(v1::Complete::default())),
        ])
        .await;
    let answer = worker.next().await;
    assert_eq!((answer.results, answer.refused.len()), (6, 0));
    let states = [
        v1::JobState::Incident,
        v1::JobState::Incident,
        v1::JobState::Scheduled,
        v1::JobState::Completed,
    ];
    for (job, expected) in jobs.iter().zip(states) {
        assert_eq!(state(&mut grpc, job.key).await, expected);
    }
}

#[tokio::test]
async fn cancel_reaches_the_worker_over_its_stream() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let mut options = v1::JobOptions::default();
    options.set_cancel(v1::CancelPolicy::Cooperative);
    let key = create(&mut grpc, v1::NewJob { options: Some(Box::new(options)), ..job("q") }).await;
    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    let taken = worker.jobs(1).await.remove(0);
    let cancel = v1::CancelJobRequest { key, ..Default::default() };
    assert!(grpc.cancel_job(cancel).await.unwrap().into_inner().pending);
    let expected = v1::Stop { key, activation: taken.activation, lease_lost: false };
    assert_eq!(worker.next().await.stops, [expected]);

    // Heartbeats say it again.
    let heartbeat = v1::Token { key, activation: taken.activation };
    worker.say(v1::WorkerMessage { heartbeats: vec![heartbeat], ..Default::default() }).await;
    assert_eq!(worker.next().await.stops, [expected]);

    // The end of a job that did not complete is told as a stop too, even if its worker ended it.
    worker.results(vec![done(&taken)]).await;
    let (mut durable, mut stops) = (0, Vec::new());
    while durable < 1 || stops.is_empty() {
        let answer = worker.next().await;
        durable = durable.max(answer.results);
        stops.extend(answer.stops);
    }
    assert_eq!((durable, stops), (1, vec![expected]));
    assert_eq!(state(&mut grpc, key).await, v1::JobState::Cancelled);

    // And a job that is gone is a lease that is lost.
    worker.say(v1::WorkerMessage { heartbeats: vec![heartbeat], ..Default::default() }).await;
    assert_eq!(worker.next().await.stops, [v1::Stop { lease_lost: true, ..expected }]);
}

#[tokio::test]
async fn a_good_heartbeat_is_silent_and_moves_the_deadline() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let key = create(&mut grpc, job("q")).await;
    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    let taken = worker.jobs(1).await.remove(0);
    let heartbeat = v1::Token { key, activation: taken.activation };
    worker.say(v1::WorkerMessage { heartbeats: vec![heartbeat], ..Default::default() }).await;
    worker.results(vec![done(&taken)]).await;
    let mut answer = worker.next().await;
    if answer.results == 0 {
        assert_eq!(answer, v1::ServerMessage::default());
        answer = worker.next().await;
    }
    assert_eq!((answer.results, answer.stops.len()), (1, 0));
}

#[tokio::test]
async fn jobs_that_were_not_sent_are_ready_again_at_once() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    // More bytes than windows and buffers take: the client does not read.
    let payload: Vec<u8> = vec![b'1'; 64 << 10];
    for _ in 0..8 {
        let new = || v1::NewJob { payload: payload.clone().into(), ..job("q") };
        let jobs = (0..50).map(|_| new()).collect();
        grpc.create_jobs(v1::CreateJobsRequest { jobs }).await.unwrap();
    }
    let mut slow = bench.grpc().await;
    let worker = open(&mut slow, hello("q", 400)).await.unwrap();
    let active = |queues: v1::ListQueuesResponse| queues.queues[0].active;
    let list = v1::ListQueuesRequest::default;
    let all_leased = async {
        while active(grpc.list_queues(list()).await.unwrap().into_inner()) < 400 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, all_leased).await.expect("credits lease all jobs");

    drop(worker);
    drop(slow);
    wait_for_waiters(&bench, 0).await;
    let queue = grpc.list_queues(list()).await.unwrap().into_inner().queues.remove(0);
    // What the kernel and the transport had taken counts as sent; the rest is back long before
    // the lease of a minute ends.
    assert!(queue.ready > 200, "{} of 400 are ready again", queue.ready);
}

#[tokio::test]
async fn a_drain_returns_what_was_not_sent_and_answers_what_was() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    create_many(&mut grpc, "q", 3).await;
    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    let taken = worker.jobs(1).await.remove(0);
    worker.say(v1::WorkerMessage { drain: true, credits: 5, ..Default::default() }).await;
    worker.results(vec![done(&taken)]).await;
    loop {
        let message = worker.next().await;
        if message.results == 1 {
            break;
        }
    }
    let Worker { say, hear } = worker;
    drop(say);
    let mut rest = Worker { say: mpsc::channel(1).0, hear };
    assert!(rest.end().await.is_none(), "a stream that was drained ends well");
    let queue = grpc.list_queues(v1::ListQueuesRequest::default()).await.unwrap().into_inner();
    assert_eq!((queue.queues[0].ready, queue.queues[0].active), (2, 0));
}

#[tokio::test]
async fn a_stream_begins_with_one_hello() {
    let bench = Bench::start().await;
    let mut grpc = bench.grpc().await;
    let missing = v1::WorkerMessage { credits: 1, ..Default::default() };
    let status = open(&mut grpc, missing).await.err().expect("hello is missing");
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "hello-missing"));

    let empty = v1::WorkerMessage { hello: Some(v1::Hello::default()), ..Default::default() };
    let status = open(&mut grpc, empty).await.err().expect("no queue is named");
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "name-empty"));

    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    worker.say(hello("q", 1)).await;
    let status = worker.end().await.unwrap();
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "hello-repeated"));
}

#[tokio::test]
async fn bad_messages_end_the_stream_with_a_reason() {
    let bench = Bench::with(|config| config.batch_items_max = 3).await;
    let mut grpc = bench.grpc().await;

    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    worker.results(vec![v1::Result { key: 1, activation: 1, outcome: None }]).await;
    let status = worker.end().await.unwrap();
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "field-missing"));

    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    let heartbeats = vec![v1::Token { key: 1, activation: 1 }; 4];
    worker.say(v1::WorkerMessage { heartbeats, ..Default::default() }).await;
    let status = worker.end().await.unwrap();
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "too-large"));

    let mut worker = Worker::open(&mut grpc, "q", 1).await;
    worker.say(v1::WorkerMessage { credits: u32::MAX, ..Default::default() }).await;
    let status = worker.end().await.unwrap();
    assert_eq!((status.code(), code(&status)), (Code::InvalidArgument, "too-large"));
}
