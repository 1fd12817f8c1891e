//! beanstalkd over raw sockets: pipelined `put`, `reserve` and `delete`.
//!
//! Checked with strace (1.12, `-b DIR -f 0`): every `put` and every `delete` is a write and an
//! fsync of the binlog before its answer, one by one even when pipelined (no group commit);
//! `reserve` writes nothing, so a lease is forgotten by a restart and the job is ready again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::failure::{Context, Failure, Result};
use super::measure::{self, Figures, Run, Shape, WORKERS};
use super::peer::{Durability, Peer, Workplace};
use super::server::{self, Server};

/// Creates per write of the producer.
const PUTS_MAX: u64 = 256;
/// Reserves a worker pipelines at most.
const RESERVES_MAX: usize = 64;
/// Seconds a job is leased for; no run is that long.
const LEASE_S: u32 = 600;
/// A server that is silent for this long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The peer.
pub(crate) struct Beanstalkd {
    work: PathBuf,
}

impl Beanstalkd {
    /// Installs the server if it is missing.
    pub(crate) fn set_up(workplace: &Workplace) -> Result<Box<dyn Peer>> {
        workplace.need_debian("beanstalkd", "beanstalkd")?;
        Ok(Box::new(Self { work: workplace.dir("beanstalkd")? }))
    }
}

impl Peer for Beanstalkd {
    fn durability(&self) -> Durability {
        Durability {
            create: "answered after write and fsync of the binlog, one fsync per put (strace)",
            lease: "memory only; after a restart the job is ready again",
            complete: "answered after write and fsync of the binlog, one fsync per delete (strace)",
            durable_create: true,
            durable_peer: true,
        }
    }

    fn configuration(&self) -> String {
        format!(
            "-b DIR -f 0; puts pipelined by {PUTS_MAX}, reserves and deletes by up to \
             {RESERVES_MAX} per worker; raw sockets from Rust"
        )
    }

    fn version(&self) -> String {
        server::run(std::process::Command::new("beanstalkd").arg("-v"))
            .map_or_else(|_| "unknown".to_owned(), |out| out.trim().to_owned())
    }

    fn measure(&mut self, shape: Shape) -> Result<Figures> {
        std::fs::create_dir_all(&self.work).context("create the data folder")?;
        let port = server::free_port()?;
        let mut command = server::guarded("beanstalkd", None);
        command.args(["-l", "127.0.0.1", "-f", "0", "-p"]).arg(port.to_string());
        command.arg("-b").arg(&self.work);
        let server = Server::start(command, &self.work, port)?;
        let address = server.address();

        let run = Run::new(shape);
        let window = thread::scope(|scope| {
            scope.spawn(|| run.guard(|| produce(&run, address)));
            if run.has_workers() {
                for _ in 0..WORKERS {
                    scope.spawn(|| run.guard(|| work(&run, address)));
                }
            }
            run.drive()
        })?;
        let left = jobs_held(address)?;
        run.figures(window, Some(left))
    }
}

fn produce(run: &Run, address: SocketAddr) -> Result<()> {
    let (mut input, output) = connect(address)?;
    let (sent, to_confirm) = mpsc::channel::<Range<u64>>();
    thread::scope(|scope| {
        scope.spawn(|| run.guard(|| confirm_puts(run, output, to_confirm)));
        let mut commands = Vec::new();
        while let Some(jobs) = run.take(1, PUTS_MAX) {
            commands.clear();
            for job in jobs.clone() {
                let payload = measure::payload(job);
                let head = format!("put 1 0 {LEASE_S} {}\r\n", payload.len());
                commands.extend_from_slice(head.as_bytes());
                commands.extend_from_slice(&payload);
                commands.extend_from_slice(b"\r\n");
            }
            if sent.send(jobs).is_err() {
                break; // the confirming side failed and has said so
            }
            input.write_all(&commands).context("send puts to beanstalkd")?;
        }
        drop(sent);
        Ok(())
    })
}

fn confirm_puts(
    run: &Run,
    mut output: BufReader<TcpStream>,
    to_confirm: mpsc::Receiver<Range<u64>>,
) -> Result<()> {
    let mut line = String::new();
    for jobs in to_confirm {
        for job in jobs {
            read_line(&mut output, &mut line)?;
            if !line.starts_with("INSERTED ") {
                return Err(unexpected("put", &line));
            }
            run.created(job..job + 1);
        }
    }
    Ok(())
}

/// Rounds of: delete what is held, wait for one job, take more that are ready. Only the first
/// reserve may block, so no held job waits behind a blocked reserve.
fn work(run: &Run, address: SocketAddr) -> Result<()> {
    let (mut input, mut output) = connect(address)?;
    let mut line = String::new();
    let mut commands = String::new();
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut reserves = 1;
    while !run.finished() || !held.is_empty() {
        commands.clear();
        for (key, _) in &held {
            commands.push_str(&format!("delete {key}\r\n"));
        }
        commands.push_str("reserve-with-timeout 1\r\n");
        for _ in 1..reserves {
            commands.push_str("reserve-with-timeout 0\r\n");
        }
        input.write_all(commands.as_bytes()).context("send to beanstalkd")?;

        for (_, job) in held.drain(..) {
            read_line(&mut output, &mut line)?;
            if line.trim_end() != "DELETED" {
                return Err(unexpected("delete", &line));
            }
            run.completed(&[job]);
        }
        for _ in 0..reserves {
            if let Some((key, job)) = read_reserved(&mut output, &mut line)? {
                run.reached(job);
                held.push((key, job));
            }
        }
        reserves = (held.len() * 2).clamp(1, RESERVES_MAX);
    }
    Ok(())
}

fn read_reserved(
    output: &mut BufReader<TcpStream>,
    line: &mut String,
) -> Result<Option<(u64, u64)>> {
    read_line(output, line)?;
    if line.trim_end() == "TIMED_OUT" {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (word, key, length) = (words.next(), words.next(), words.next());
    let key = key.and_then(|key| key.parse::<u64>().ok());
    let length = length.and_then(|length| length.parse::<usize>().ok());
    let (Some("RESERVED"), Some(key), Some(length)) = (word, key, length) else {
        return Err(unexpected("reserve", line));
    };
    let mut body = vec![0; length + 2];
    output.read_exact(&mut body).context("read a job from beanstalkd")?;
    let job = measure::job_of(body.get(..length).unwrap_or_default())?;
    Ok(Some((key, job)))
}

fn jobs_held(address: SocketAddr) -> Result<u64> {
    let (mut input, mut output) = connect(address)?;
    input.write_all(b"stats-tube default\r\n").context("ask beanstalkd for its jobs")?;
    let mut line = String::new();
    let mut held = 0;
    read_line(&mut output, &mut line)?;
    while !line.trim().is_empty() {
        for name in ["ready", "reserved", "delayed", "buried"] {
            let count = line.strip_prefix(&format!("current-jobs-{name}: "));
            held += count.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
        read_line(&mut output, &mut line)?;
    }
    Ok(held)
}

fn connect(address: SocketAddr) -> Result<(TcpStream, BufReader<TcpStream>)> {
    let input = TcpStream::connect(address).context("connect to beanstalkd")?;
    input.set_nodelay(true).context("set up the connection")?;
    input.set_read_timeout(Some(SILENCE_MAX)).context("set up the connection")?;
    let output = input.try_clone().context("set up the connection")?;
    Ok((input, BufReader::with_capacity(1 << 16, output)))
}

fn read_line(output: &mut BufReader<TcpStream>, line: &mut String) -> Result<()> {
    line.clear();
    match output.read_line(line).context("read from beanstalkd")? {
        0 => Err(Failure::new("beanstalkd closed the connection")),
        _ => Ok(()),
    }
}

fn unexpected(command: &str, line: &str) -> Failure {
    Failure::new(format!("beanstalkd answered {:?} to {command}", line.trim_end()))
}
