//! What a seed draws before it begins: which features are used and what breaks. Swarm testing: a
//! run that uses a few features hard finds what a run that uses all of them a little does not.

use std::fmt;

use crate::disk::CrashPoint;
use crate::random::Random;

/// What can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Power is lost at some operation of the disk.
    PowerLoss,
    /// The process is killed between two steps, or at some operation of the disk.
    ProcessKill,
    /// A sync of the log fails.
    FailedSync,
    /// The disk is full for a while.
    FullDisk,
    /// A bit of the log or of the checkpoint flips while the partition is down.
    BitFlip,
    /// The checkpoint store refuses a write.
    CheckpointRefused,
    /// A checkpoint fails half way.
    CheckpointTorn,
    /// The checkpoint store is full.
    CheckpointFull,
    /// A checkpoint becomes durable and says that it failed.
    CheckpointUnknown,
    /// The wall clock is set an hour ahead.
    WallAhead,
    /// The wall clock is set an hour back.
    WallBack,
    /// The machine is off for an hour.
    Outage,
    /// The machine is suspended: the wall clock goes on, the monotonic one does not.
    Suspend,
    /// The monotonic clock jumps.
    MonotonicJump,
    /// Both clocks stand still for a while.
    FrozenClock,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 15] = [
        Fault::PowerLoss,
        Fault::ProcessKill,
        Fault::FailedSync,
        Fault::FullDisk,
        Fault::BitFlip,
        Fault::CheckpointRefused,
        Fault::CheckpointTorn,
        Fault::CheckpointFull,
        Fault::CheckpointUnknown,
        Fault::WallAhead,
        Fault::WallBack,
        Fault::Outage,
        Fault::Suspend,
        Fault::MonotonicJump,
        Fault::FrozenClock,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::PowerLoss => "power-loss",
            Fault::ProcessKill => "process-kill",
            Fault::FailedSync => "failed-sync",
            Fault::FullDisk => "full-disk",
            Fault::BitFlip => "bit-flip",
            Fault::CheckpointRefused => "checkpoint-refused",
            Fault::CheckpointTorn => "checkpoint-torn",
            Fault::CheckpointFull => "checkpoint-full",
            Fault::CheckpointUnknown => "checkpoint-unknown",
            Fault::WallAhead => "wall-ahead",
            Fault::WallBack => "wall-back",
            Fault::Outage => "outage",
            Fault::Suspend => "suspend",
            Fault::MonotonicJump => "monotonic-jump",
            Fault::FrozenClock => "frozen-clock",
        }
    }
}

/// What clients use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Several commands in one request.
    pub batches: bool,
    /// Unique keys.
    pub unique_keys: bool,
    /// Request ids.
    pub request_ids: bool,
    /// Jobs that are due later.
    pub delays: bool,
    /// Retry policies other than the default.
    pub policies: bool,
    /// Deadlines.
    pub deadlines: bool,
    /// Cancel, and its policies.
    pub cancels: bool,
    /// Limit keys.
    pub limits: bool,
    /// Priorities and settings of queues.
    pub settings: bool,
    /// Dialects other than the native one.
    pub dialects: bool,
    /// Documents.
    pub documents: bool,
    /// Streams.
    pub streams: bool,
    /// Polls.
    pub polls: bool,
    /// Connections that die before a job was sent.
    pub dead_connections: bool,
    /// Reads.
    pub queries: bool,
    /// A payload budget so small that everything a checkpoint holds is evicted.
    pub eviction: bool,
    /// Many jobs that are due at the same time.
    pub storms: bool,
    /// Workers that say all sorts of things about leases that are over.
    pub stale_words: bool,
    /// Processes.
    pub flows: bool,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// How many things clients do.
    pub steps: u64,
    /// What they use.
    pub features: Features,
    /// What breaks, again and again.
    pub faults: Vec<Fault>,
    /// One in so many steps breaks something.
    pub fault_every: u64,
    /// Power is lost here, once, whatever else breaks.
    pub crash_at: Option<CrashPoint>,
    /// Queues, from 1.
    pub queues: u64,
    /// Groups of a queue, from 1.
    pub groups: u64,
}

impl Plan {
    /// What the seed draws.
    #[must_use]
    pub fn of_seed(seed: u64) -> Plan {
        let mut random = Random::new(seed ^ 0x5157_4152_4d00);
        let mut features = Features::draw(&mut random);
        // Drawn apart: the plans of all seeds without processes are what they were before.
        features.flows = Random::new(seed ^ 0x666c_6f77).chance(40);
        let share = [0, 15, 30, 60];
        let share = random.pick(&share).copied().unwrap_or(0);
        let faults = Fault::ALL.into_iter().filter(|_| random.chance(share)).collect();
        Plan {
            seed,
            steps: random.in_range(60..350),
            features,
            faults,
            fault_every: random.in_range(12..60),
            crash_at: None,
            queues: random.in_range(1..5),
            groups: random.in_range(1..7),
        }
    }

    /// What the seed draws, but with these faults alone, and often.
    #[must_use]
    pub fn with_faults(seed: u64, faults: &[Fault]) -> Plan {
        Plan { faults: faults.to_vec(), fault_every: 15, ..Plan::of_seed(seed) }
    }

    /// What the seed drew before there were processes.
    #[must_use]
    pub fn without_flows(seed: u64) -> Plan {
        let mut plan = Plan::of_seed(seed);
        plan.features.flows = false;
        plan
    }

    /// A short history without faults but for one loss of power.
    #[must_use]
    pub fn small(seed: u64, crash_at: Option<CrashPoint>) -> Plan {
        Plan { steps: 25, faults: Vec::new(), crash_at, ..Plan::of_seed(seed) }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.faults.iter().map(|fault| fault.name()).collect();
        write!(f, "{} steps, faults [{}], {:?}", self.steps, names.join(" "), self.features)
    }
}

impl Features {
    fn draw(random: &mut Random) -> Features {
        let mut on = || random.chance(55);
        let mut features = Features {
            batches: on(),
            unique_keys: on(),
            request_ids: on(),
            delays: on(),
            policies: on(),
            deadlines: on(),
            cancels: on(),
            limits: on(),
            settings: on(),
            dialects: on(),
            documents: on(),
            streams: on(),
            polls: on(),
            dead_connections: on(),
            queries: on(),
            eviction: on(),
            storms: false,
            stale_words: on(),
            flows: false,
        };
        features.storms = random.chance(6);
        features.polls |= !features.streams;
        features
    }
}
