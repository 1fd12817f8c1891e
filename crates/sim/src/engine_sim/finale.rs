//! The end of a run: all faults heal, and every job must come to rest.

use windlass_engine::lifecycle::JobState;
use windlass_partition::request::Wanted;
use windlass_record::command::{
    CancelJob, Command, ConfigureLimit, ConfigureQueue, Lease, PauseQueue, ResolveIncident,
};
use windlass_record::id::JobKey;
use windlass_record::policy::{LimitSettings, QueueSettings};

use super::Sim;
use super::commands::{message, queue_name};
use super::flows;
use super::machine::Stop;
use crate::disk::Restart;

/// Rounds of work that must be enough.
const ROUNDS_MAX: u32 = 2_000;

impl Sim {
    /// Heals everything, finishes all work, and loses power once more.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.machine.disk.clear_faults();
        self.heal_disk();
        self.machine.clock.thaw();
        for attempt in 0..3 {
            self.ensure_started()?;
            match self.finish_work() {
                Ok(()) => break,
                // A fault of the store that was still waiting for its write.
                Err(Stop::Stopped(_)) if attempt < 2 => {
                    let stopped = Err(Stop::Stopped("in the end".to_owned()));
                    self.settle(stopped)?;
                }
                Err(Stop::Violation(what)) => return Err(format!("in the end: {what}")),
                Err(stop) => return Err(format!("in the end: {stop:?}")),
            }
        }
        self.crash(Restart::PowerLoss);
        self.ensure_started()?;
        let live = self.machine.ledger.jobs.len();
        if live > 0 {
            return Err(format!("{live} jobs came back in the end"));
        }
        match self.machine.ledger.flows.live_instances().count() {
            0 => Ok(()),
            live => Err(format!("{live} process instances came back in the end")),
        }
    }

    fn finish_work(&mut self) -> Result<(), Stop> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let clients = &mut self.clients;
        clients.close_streams(life);
        // Whatever waits with others' credits or leases has its answer first.
        self.machine.drain(life)?;
        clients.read_mail(&mut self.machine).map_err(Stop::Violation)?;
        // The log prepares segments again.
        self.machine.idle(life)?;
        self.machine.round(life)?;
        if life.refusing() {
            return Err(Stop::Violation("creates are refused though all is well".to_owned()));
        }
        let commands = let_everything_run(self.plan.queues);
        clients.send(life, commands, false);
        for _ in 0..ROUNDS_MAX {
            self.machine.drain(life)?;
            clients.read_mail(&mut self.machine).map_err(Stop::Violation)?;
            let state = life.core().engine().state();
            if state.jobs().live() == 0 && state.flow().live_elements() == 0 {
                return Ok(());
            }
            let wanted = Wanted {
                queues: (0..self.plan.queues).map(queue_name).chain([flows::queue()]).collect(),
                worker: "last".into(),
                lease_ms: 1_000,
                with_token: true,
            };
            let held: Vec<Lease> = std::mem::take(&mut clients.held);
            let mut words: Vec<Command> =
                held.into_iter().map(|lease| clients.complete(lease)).collect();
            for (_, instance) in self.machine.ledger.flows.live_instances() {
                words.push(Command::Flow(message(&instance.correlation_key)));
            }
            words.extend(
                self.machine
                    .ledger
                    .jobs
                    .iter()
                    .filter_map(|(key, job)| close(*key, job.state, job.lease_ends())),
            );
            for word in words {
                clients.send(life, vec![word], true);
            }
            clients.request_jobs(life, wanted, (16, 1 << 20, 0), false);
            self.machine.drain(life)?;
            let now_ms = life.core().now_ms();
            let next_ms = life.core().next_due_ms().unwrap_or(now_ms + 1);
            let wait_ms = next_ms.saturating_sub(now_ms).clamp(1, 4_000_000_000);
            self.machine.pass(life, wait_ms)?;
        }
        let left: Vec<String> = self
            .machine
            .ledger
            .jobs
            .iter()
            .map(|(key, job)| format!("{key} is {} until {}", job.state.name(), job.due_ms))
            .take(5)
            .collect();
        let instances = self.machine.ledger.flows.live_instances().count();
        let left = left.join(", ");
        Err(Stop::Violation(format!("{instances} instances and jobs do not come to rest: {left}")))
    }
}

/// No queue is paused and no key holds anything back.
fn let_everything_run(queues: u64) -> Vec<Command> {
    let mut commands = Vec::new();
    for queue in (0..queues).map(queue_name) {
        let settings = QueueSettings::DEFAULT;
        let configure = ConfigureQueue { queue: queue.clone(), settings, seed_only: false };
        commands.push(Command::ConfigureQueue(configure));
        commands.push(Command::PauseQueue(PauseQueue { queue, paused: false }));
    }
    for tenant in ["t", "u"] {
        for name in ["c0", "c1", "c2", "c3", "w0", "w1", "w2", "w3"] {
            commands.push(Command::ConfigureLimit(ConfigureLimit {
                tenant: tenant.into(),
                name: name.into(),
                settings: LimitSettings::default(),
            }));
        }
    }
    commands
}

/// What a person does about a job that time alone does not move.
fn close(key: JobKey, state: JobState, lease_ends: bool) -> Option<Command> {
    match state {
        JobState::Incident => {
            Some(Command::ResolveIncident(ResolveIncident { key, retries: Some(1), tenant: None }))
        }
        JobState::Active if !lease_ends => {
            let reason = "cancel: its worker is gone".into();
            Some(Command::CancelJob(CancelJob { key, force: true, reason, tenant: None }))
        }
        JobState::Scheduled
        | JobState::Ready
        | JobState::Active
        | JobState::Backoff
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Vacant => None,
    }
}
