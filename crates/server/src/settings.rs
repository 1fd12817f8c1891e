//! The one table of settings: name, type, default, environment name and words of each. Flags, file
//! and help are made from it. A flag counts more than the environment, that more than the file,
//! that more than the default.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use windlass_builtin::http::Network;
use windlass_gateway::Limits;
use windlass_gateway::record::bound::Bounds;
use windlass_gateway::record::command::{ConfigureQueue, QueueName};
use windlass_gateway::record::policy::{
    JobOrder, PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};
use windlass_history::JobLevel;
use windlass_log::FileLogOptions;
use windlass_partition::{Durability, Options};

use crate::error::ConfigError;

/// Makes the flags, the file and the result from one row per setting. A row:
/// `name: Type = "default", "ENVIRONMENT_NAME", "words"` and, in braces, more for clap.
macro_rules! settings {
    ($($name:ident: $type:ty = $default:literal, $env:literal, $words:literal $({ $($more:tt)* })?;)*) => {
        /// Settings that were given as flags or in the environment.
        #[derive(Clone, Debug, Default, clap::Args)]
        pub struct Flags {
            $(
                #[doc = $words]
                #[arg(
                    long,
                    env = $env,
                    hide_env_values = true,
                    help = concat!($words, " [default: ", $default, "]"),
                    $($($more)*)?
                )]
                pub $name: Option<$type>,
            )*
        }

        /// The configuration file.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct File {
            $($name: Option<$type>,)*
            queue: Vec<QueueSeed>,
        }

        /// How the server runs.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(
                #[doc = $words]
                pub $name: $type,
            )*
            /// Queues that are made at the start if they do not exist.
            pub queues: Vec<ConfigureQueue>,
            /// Where to write the address once the server answers.
            pub ready_file: Option<PathBuf>,
            /// The program that is a sandbox when its first word is `sandbox`, and a runner of connectors
            /// when it is `connector-runner`; without one, they wait for another worker.
            pub sandbox_program: Option<PathBuf>,
        }

        impl Default for Config {
            fn default() -> Config {
                Config {
                    $($name: default_of($default),)*
                    queues: Vec::new(),
                    ready_file: None,
                    sandbox_program: None,
                }
            }
        }

        impl Config {
            fn merged(flags: Flags, file: File) -> Config {
                let default = Config::default();
                Config {
                    $($name: flags.$name.or(file.$name).unwrap_or(default.$name),)*
                    queues: file.queue.into_iter().map(QueueSeed::command).collect(),
                    ready_file: None,
                    sandbox_program: None,
                }
            }
        }
    };
}

settings! {
    data_dir: PathBuf = "windlass-data", "WINDLASS_DATA_DIR",
        "Directory of the log and the checkpoint; made when it does not exist";
    listen: SocketAddr = "127.0.0.1:8080", "WINDLASS_LISTEN",
        "Address for gRPC, REST, health and metrics; port 0 takes a free one and prints it";
    zeebe_listen: FaceListen = "127.0.0.1:26500", "WINDLASS_ZEEBE_LISTEN",
        "Address for Zeebe's clients over gRPC, or off, which takes /v2 away too";
    conductor: Switch = "on", "WINDLASS_CONDUCTOR",
        "Whether Conductor's API is there, under /api: on or off";
    airbyte: Switch = "on", "WINDLASS_AIRBYTE",
        "Whether Airbyte's public API is there, under /api/public/v1: on or off";
    airbyte_clients: String = "off", "WINDLASS_AIRBYTE_CLIENTS",
        "TOML file of those who may use Airbyte's API, a [[client]] table with id, secret and tenant each, or off: everybody";
    airbyte_retry_complete_successive_max: u32 = "5", "SYNC_JOB_RETRIES_COMPLETE_FAILURES_MAX_SUCCESSIVE",
        "Attempts of a sync in a row that moved no data and end the job";
    airbyte_retry_complete_total_max: u32 = "10", "SYNC_JOB_RETRIES_COMPLETE_FAILURES_MAX_TOTAL",
        "Attempts that moved no data in all that end the job";
    airbyte_retry_partial_successive_max: u32 = "1000", "SYNC_JOB_RETRIES_PARTIAL_FAILURES_MAX_SUCCESSIVE",
        "Failed attempts in a row that moved data and end the job";
    airbyte_retry_partial_total_max: u32 = "20", "SYNC_JOB_RETRIES_PARTIAL_FAILURES_MAX_TOTAL",
        "Failed attempts that moved data in all that end the job";
    airbyte_retry_backoff_seconds: u64 = "10", "SYNC_JOB_RETRIES_COMPLETE_FAILURES_BACKOFF_MIN_INTERVAL_S",
        "The wait after the first attempt that moved no data";
    airbyte_retry_backoff_seconds_max: u64 = "1800", "SYNC_JOB_RETRIES_COMPLETE_FAILURES_BACKOFF_MAX_INTERVAL_S",
        "The longest such wait";
    airbyte_retry_backoff_base: u32 = "3", "SYNC_JOB_RETRIES_COMPLETE_FAILURES_BACKOFF_BASE",
        "The factor between two such waits";
    allow_unauthenticated: bool = "false", "WINDLASS_ALLOW_UNAUTHENTICATED",
        "Listen on an address that others can reach, although nobody is asked who they are"
        { num_args = 0..=1, default_missing_value = "true", require_equals = true };
    builtin: Switch = "on", "WINDLASS_BUILTIN",
        "Whether the server works on scripts and HTTP tasks of flows itself: on or off";
    builtin_scripts_max: u32 = "2", "WINDLASS_BUILTIN_SCRIPTS_MAX",
        "Scripts that are evaluated at once, each in a process of its own";
    builtin_script_seconds: u64 = "4", "WINDLASS_BUILTIN_SCRIPT_SECONDS",
        "How long a script may run";
    builtin_http_max: u32 = "64", "WINDLASS_BUILTIN_HTTP_MAX",
        "HTTP tasks at once";
    builtin_http_deny: DeniedNetworks = "169.254.0.0/16,fe80::/10,fd00:ec2::254/128", "WINDLASS_BUILTIN_HTTP_DENY",
        "Networks that HTTP tasks may not reach, with commas between them; each address is checked as it is connected to";
    connectors: Switch = "on", "WINDLASS_CONNECTORS",
        "Whether the server launches Airbyte connectors itself: on or off";
    connector_syncs_max: u32 = "10", "MAX_SYNC_WORKERS",
        "Syncs at once";
    connector_checks_max: u32 = "5", "MAX_CHECK_WORKERS",
        "Checks and discoveries of connectors at once";
    connector_memory_mib: u64 = "0", "WINDLASS_CONNECTOR_MEMORY_MIB",
        "Memory of each connector; 0 is no bound";
    connectors_memory_mib: u64 = "0", "WINDLASS_CONNECTORS_MEMORY_MIB",
        "Memory of all connectors: with that of each it bounds the syncs at once; 0 is no bound";
    connector_core_percent: u64 = "50", "WINDLASS_CONNECTOR_CORE_PERCENT",
        "What of a processor core each connector is reckoned with, in percent";
    connectors_cores: u64 = "0", "WINDLASS_CONNECTORS_CORES",
        "Processor cores for all connectors: with that share of each they bound the syncs at once; 0 is no bound";
    connector_heartbeat_seconds: u64 = "10", "WINDLASS_CONNECTOR_HEARTBEAT_SECONDS",
        "A runner of connectors tells that it lives this often";
    connector_stop_seconds: u64 = "600", "WINDLASS_CONNECTOR_STOP_SECONDS",
        "A runner that cannot reach the server ends its connectors after this";
    connector_source_seconds: u64 = "10800", "WINDLASS_CONNECTOR_SOURCE_SECONDS",
        "A source that sends nothing for this long has failed";
    connector_destination_seconds: u64 = "86400", "WINDLASS_CONNECTOR_DESTINATION_SECONDS",
        "A destination that takes nothing for this long has failed";
    connector_exit_seconds: u64 = "60", "WINDLASS_CONNECTOR_EXIT_SECONDS",
        "A connector that is to end is killed after this";
    connector_claimed_seconds: u64 = "1800", "WINDLASS_CONNECTOR_CLAIMED_SECONDS",
        "An attempt whose packages, images and turn are not there after this has failed; 0 is no bound";
    connector_launched_seconds: u64 = "600", "WINDLASS_CONNECTOR_LAUNCHED_SECONDS",
        "An attempt whose connectors have not said a word for this long after their start has failed; 0 is no bound";
    connector_wrap: String = "off", "WINDLASS_CONNECTOR_WRAP",
        "Words that runners are started behind, such as systemd-run --scope --quiet, or off";
    connector_keep_days: u64 = "30", "WINDLASS_CONNECTOR_KEEP_DAYS",
        "Logs of attempts are kept for this long";
    log_format: LogFormat = "text", "WINDLASS_LOG_FORMAT",
        "How log lines on standard error look: text or json";
    log_level: String = "info,lsm_tree=warn,fjall=warn", "WINDLASS_LOG_LEVEL",
        "Which log lines: error, warn, info, debug, trace, or a filter such as info,h2=debug";
    otlp_endpoint: String = "off", "WINDLASS_OTLP_ENDPOINT",
        "Where traces go (OTLP over gRPC), such as http://127.0.0.1:4317, or off; needs a build with --features otel";
    shutdown_seconds: u64 = "10", "WINDLASS_SHUTDOWN_SECONDS",
        "How long a shutdown waits for open connections, and again for the last checkpoint";
    connections_max: usize = "10000", "WINDLASS_CONNECTIONS_MAX",
        "Connections at once on each port, if the limit of open files allows them; further ones wait to be accepted";
    durability: DurabilityMode = "fsync", "WINDLASS_DURABILITY",
        "What an acknowledgement means: fsync (it is on disk) or interval (it will be; a crash of process or machine LOSES ACKNOWLEDGED WORK)";
    durability_interval_ms: u64 = "50", "WINDLASS_DURABILITY_INTERVAL_MS",
        "With --durability interval: the log is synced at most this often, and up to this much acknowledged work can be lost";
    checkpoint_seconds: u64 = "10", "WINDLASS_CHECKPOINT_SECONDS",
        "A checkpoint is written this often when anything changed";
    checkpoint_log_mib: u64 = "256", "WINDLASS_CHECKPOINT_LOG_MIB",
        "And whenever the log grew by this";
    checkpoint_lag_mib_max: u64 = "4096", "WINDLASS_CHECKPOINT_LAG_MIB_MAX",
        "Creates are refused when the log has grown by this since the last checkpoint";
    history: Switch = "on", "WINDLASS_HISTORY",
        "Whether searches find what is finished: on or off. Kept in history.db, not in backups";
    history_retention_days: u64 = "30", "WINDLASS_HISTORY_RETENTION_DAYS",
        "Finished process instances and jobs stay in the history for this long";
    history_jobs: HistoryJobs = "none", "WINDLASS_HISTORY_JOBS",
        "Which jobs without a process are in the history: none, failures or full";
    history_lag_mib_max: u64 = "8192", "WINDLASS_HISTORY_LAG_MIB_MAX",
        "The log is kept for a history that lags until it takes up this much; then there is a gap";
    log_segment_mib: u64 = "64", "WINDLASS_LOG_SEGMENT_MIB",
        "Size of one file of the log, at least 16";
    log_reserve_segments: usize = "2", "WINDLASS_LOG_RESERVE_SEGMENTS",
        "Files of the log kept ready, zeroed; without them a full disk stops work from draining";
    payload_memory_mib: u64 = "8192", "WINDLASS_PAYLOAD_MEMORY_MIB",
        "Payloads past this are dropped from memory once a checkpoint holds them";
    payload_bytes_max: usize = "4194304", "WINDLASS_PAYLOAD_BYTES_MAX",
        "Bytes of one payload, result or document";
    live_jobs_max: u32 = "100000000", "WINDLASS_LIVE_JOBS_MAX",
        "Jobs that are not finished";
    queues_max: u32 = "100000", "WINDLASS_QUEUES_MAX",
        "Queues";
    finished_max: usize = "1000000", "WINDLASS_FINISHED_MAX",
        "Finished jobs that are remembered, over all queues";
    finished_mib_max: u64 = "1024", "WINDLASS_FINISHED_MIB_MAX",
        "Their results, messages, headers and logs; past it queues with more than an equal share forget their oldest";
    batch_items_max: usize = "10000", "WINDLASS_BATCH_ITEMS_MAX",
        "Items of one batch";
    waiters_max: usize = "65536", "WINDLASS_WAITERS_MAX",
        "Polls and streams that may wait";
    loop_commands_max: u64 = "65536", "WINDLASS_LOOP_COMMANDS_MAX",
        "Commands that may wait for the partition before further ones are refused; results are never refused";
    loop_mib_max: u64 = "256", "WINDLASS_LOOP_MIB_MAX",
        "MiB of them";
}

/// Starts the engine.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServeArgs {
    /// Configuration file; `windlass.toml` in the working directory is read if it exists. Its keys
    /// are the long flags with underscores, and each [[queue]] table seeds a queue that does not
    /// exist yet
    #[arg(long, env = "WINDLASS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the address here once the server answers
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// The table.
    #[command(flatten)]
    pub flags: Flags,
}

/// The longest time between syncs.
const DURABILITY_INTERVAL_MS_MAX: u64 = 60_000;

/// The file that is read when none is named.
const CONFIG_FILE: &str = "windlass.toml";

impl ServeArgs {
    /// Brings flags, environment, file and defaults together.
    pub fn config(self) -> Result<Config, ConfigError> {
        let file = match &self.config {
            Some(path) => File::read(path)?,
            None if Path::new(CONFIG_FILE).exists() => File::read(Path::new(CONFIG_FILE))?,
            None => File::default(),
        };
        let mut config = Config::merged(self.flags, file);
        config.ready_file = self.ready_file;
        config.check()?;
        Ok(config)
    }
}

impl File {
    fn read(path: &Path) -> Result<File, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|source| ConfigError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }
}

impl Config {
    /// Refuses what cannot be run, before anything is touched.
    pub fn check(&self) -> Result<(), ConfigError> {
        for listen in [Some(self.listen), self.zeebe_listen.address()].into_iter().flatten() {
            if !listen.ip().is_loopback() && !self.allow_unauthenticated {
                return Err(ConfigError::Unauthenticated { listen });
            }
        }
        if self.log_segment_mib < 16 {
            let (setting, must) = ("log_segment_mib", "at least 16, so that a batch fits");
            return Err(ConfigError::Value { setting, must });
        }
        if u64::try_from(self.payload_bytes_max).unwrap_or(u64::MAX) > mib(self.log_segment_mib) / 4
        {
            let must =
                "a quarter of log_segment_mib at most, so that a batch holds what one brings along";
            return Err(ConfigError::Value { setting: "payload_bytes_max", must });
        }
        if self.log_reserve_segments == 0 {
            let (setting, must) = ("log_reserve_segments", "at least 1");
            return Err(ConfigError::Value { setting, must });
        }
        if !(1..=DURABILITY_INTERVAL_MS_MAX).contains(&self.durability_interval_ms) {
            let (setting, must) = ("durability_interval_ms", "from 1 to 60000");
            return Err(ConfigError::Value { setting, must });
        }
        if self.batch_items_max < 2 {
            let must = "at least 2, so that the workers of the server can ask for jobs";
            return Err(ConfigError::Value { setting: "batch_items_max", must });
        }
        for (setting, max) in [
            ("live_jobs_max", u64::from(self.live_jobs_max)),
            ("queues_max", u64::from(self.queues_max)),
            ("waiters_max", u64::try_from(self.waiters_max).unwrap_or(u64::MAX)),
            ("payload_bytes_max", u64::try_from(self.payload_bytes_max).unwrap_or(u64::MAX)),
        ] {
            if max == 0 {
                return Err(ConfigError::Value { setting, must: "at least 1" });
            }
        }
        if self.connections_max == 0 {
            let (setting, must) = ("connections_max", "at least 1");
            return Err(ConfigError::Value { setting, must });
        }
        if self.sends_traces() && !cfg!(feature = "otel") {
            return Err(ConfigError::NoOtel);
        }
        Ok(())
    }

    /// Whether traces were asked for.
    pub(crate) fn sends_traces(&self) -> bool {
        self.otlp_endpoint != "off"
    }

    pub(crate) fn shutdown(&self) -> Duration {
        Duration::from_secs(self.shutdown_seconds)
    }

    /// What an acknowledgement means.
    pub(crate) fn durability(&self) -> Durability {
        match self.durability {
            DurabilityMode::Fsync => Durability::Fsync,
            DurabilityMode::Interval => {
                Durability::Interval(Duration::from_millis(self.durability_interval_ms))
            }
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            payload_bytes_max: self.payload_bytes_max,
            live_jobs_max: self.live_jobs_max,
            queues_max: self.queues_max,
            ..Bounds::default()
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            batch_items_max: self.batch_items_max,
            waiters_max: self.waiters_max,
            bounds: self.bounds(),
            ..Limits::default()
        }
    }

    pub(crate) fn partition(&self) -> Options {
        Options {
            bounds: self.bounds(),
            loop_commands_max: self.loop_commands_max,
            loop_bytes_max: mib(self.loop_mib_max),
            waiters_max: self.waiters_max,
            checkpoint_every: Duration::from_secs(self.checkpoint_seconds),
            checkpoint_log_bytes: mib(self.checkpoint_log_mib),
            checkpoint_lag_bytes_max: mib(self.checkpoint_lag_mib_max),
            follow_log_bytes_max: mib(self.history_lag_mib_max),
            payload_bytes_max: mib(self.payload_memory_mib),
            finished_max: self.finished_max,
            finished_bytes_max: mib(self.finished_mib_max),
            stop_wait_max: self.shutdown(),
            durability: self.durability(),
            ..Options::default()
        }
    }

    /// How the history is kept, if it is.
    pub(crate) fn history_options(&self) -> Option<windlass_history::Options> {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        match self.history {
            Switch::Off => None,
            Switch::On => Some(windlass_history::Options {
                jobs: self.history_jobs.level(),
                retention_ms: self.history_retention_days.saturating_mul(DAY_MS),
                ..windlass_history::Options::default()
            }),
        }
    }

    /// What the built-in workers may do, if there are any.
    pub(crate) fn builtin_settings(&self) -> Option<windlass_builtin::Settings> {
        let sandbox = |program: &PathBuf| vec![program.into(), "sandbox".into()];
        match self.builtin {
            Switch::Off => None,
            Switch::On => Some(windlass_builtin::Settings {
                sandbox_command: self.sandbox_program.as_ref().map(sandbox),
                scripts_max: self.builtin_scripts_max,
                script_limit: Duration::from_secs(self.builtin_script_seconds),
                requests_max: self.builtin_http_max,
                denied: self.builtin_http_deny.0.clone(),
                ..windlass_builtin::Settings::default()
            }),
        }
    }

    /// What follows a failed attempt of a sync.
    pub(crate) fn airbyte_retry(&self) -> RetryPolicy {
        RetryPolicy::Attempts {
            complete_successive_max: self.airbyte_retry_complete_successive_max,
            complete_total_max: self.airbyte_retry_complete_total_max,
            partial_successive_max: self.airbyte_retry_partial_successive_max,
            partial_total_max: self.airbyte_retry_partial_total_max,
            delay_ms: self.airbyte_retry_backoff_seconds.saturating_mul(1_000),
            base: self.airbyte_retry_backoff_base,
            cap_ms: self.airbyte_retry_backoff_seconds_max.saturating_mul(1_000),
        }
    }

    /// How connectors are launched, if they are.
    pub(crate) fn connector_settings(&self) -> Option<windlass_connector::runner::Settings> {
        let program = self.sandbox_program.as_ref().filter(|_| self.connectors == Switch::On)?;
        let data = std::path::absolute(&self.data_dir).ok()?;
        let some = |mib_max: u64| (mib_max > 0).then(|| mib(mib_max));
        let wrap = self.connector_wrap.split_whitespace().filter(|_| self.connector_wrap != "off");
        let mut runner: Vec<std::ffi::OsString> = wrap.map(Into::into).collect();
        runner.extend([program.into(), "connector-runner".into()]);
        Some(windlass_connector::runner::Settings {
            syncs_max: self.connector_syncs_max,
            checks_max: self.connector_checks_max,
            memory_bytes: some(self.connectors_memory_mib),
            memory_bytes_max: some(self.connector_memory_mib),
            cores: (self.connectors_cores > 0).then_some(self.connectors_cores),
            core_percent_each: self.connector_core_percent,
            heartbeat: Duration::from_secs(self.connector_heartbeat_seconds.max(1)),
            stop_after: Duration::from_secs(self.connector_stop_seconds.max(1)),
            source_silence: Duration::from_secs(self.connector_source_seconds),
            destination_silence: Duration::from_secs(self.connector_destination_seconds),
            exit_grace: Duration::from_secs(self.connector_exit_seconds),
            claimed: Duration::from_secs(self.connector_claimed_seconds),
            launched: Duration::from_secs(self.connector_launched_seconds),
            keep: Duration::from_secs(self.connector_keep_days.saturating_mul(24 * 3600)),
            ..windlass_connector::runner::Settings::new(data, runner)
        })
    }

    pub(crate) fn log(&self) -> FileLogOptions {
        FileLogOptions {
            segment_bytes: mib(self.log_segment_mib),
            reserve_segments: self.log_reserve_segments,
            ..FileLogOptions::default()
        }
    }
}

fn mib(mib: u64) -> u64 {
    mib.saturating_mul(1 << 20)
}

fn default_of<T: FromStr>(text: &str) -> T {
    text.parse().ok().expect("a test parses every default of the table")
}

/// Where a face with a port of its own listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum FaceListen {
    /// Nowhere.
    Off,
    /// There.
    On(SocketAddr),
}

impl FaceListen {
    /// The address, if it listens.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            FaceListen::Off => None,
            FaceListen::On(address) => Some(address),
        }
    }
}

impl FromStr for FaceListen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<FaceListen, &'static str> {
        if text == "off" {
            return Ok(FaceListen::Off);
        }
        text.parse()
            .map(FaceListen::On)
            .map_err(|_| "expected an address such as 127.0.0.1:26500, or off")
    }
}

impl TryFrom<String> for FaceListen {
    type Error = &'static str;

    fn try_from(text: String) -> Result<FaceListen, &'static str> {
        text.parse()
    }
}

/// See [`Durability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityMode {
    /// On disk before it is acknowledged.
    Fsync,
    /// Acknowledged before it is on disk.
    Interval,
}

impl FromStr for DurabilityMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<DurabilityMode, &'static str> {
        match text {
            "fsync" => Ok(DurabilityMode::Fsync),
            "interval" => Ok(DurabilityMode::Interval),
            _ => Err("expected fsync or interval"),
        }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Switch, &'static str> {
        match text {
            "on" => Ok(Switch::On),
            "off" => Ok(Switch::Off),
            _ => Err("expected on or off"),
        }
    }
}

/// Networks with commas between them; none is empty.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DeniedNetworks(pub Vec<Network>);

impl FromStr for DeniedNetworks {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<DeniedNetworks, &'static str> {
        let networks = text.split(',').map(str::trim).filter(|network| !network.is_empty());
        networks.map(str::parse).collect::<Result<_, _>>().map(DeniedNetworks)
    }
}

impl TryFrom<String> for DeniedNetworks {
    type Error = &'static str;

    fn try_from(text: String) -> Result<DeniedNetworks, &'static str> {
        text.parse()
    }
}

/// Which jobs without a process are in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryJobs {
    /// None.
    None,
    /// Live ones, and those that failed.
    Failures,
    /// All.
    Full,
}

impl HistoryJobs {
    fn level(self) -> JobLevel {
        match self {
            HistoryJobs::None => JobLevel::None,
            HistoryJobs::Failures => JobLevel::Failures,
            HistoryJobs::Full => JobLevel::Full,
        }
    }
}

impl FromStr for HistoryJobs {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<HistoryJobs, &'static str> {
        match text {
            "none" => Ok(HistoryJobs::None),
            "failures" => Ok(HistoryJobs::Failures),
            "full" => Ok(HistoryJobs::Full),
            _ => Err("expected none, failures or full"),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object per line.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LogFormat, &'static str> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("expected text or json"),
        }
    }
}

/// A `[[queue]]` table: settings of a queue that does not exist yet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueSeed {
    #[serde(default = "tenant")]
    tenant: String,
    name: String,
    /// Docspell's counting scheme, `[high, low]`; absent is strict priority.
    scheme: Option<[u32; 2]>,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    retries_first: bool,
    #[serde(default)]
    aging_ms: u64,
    #[serde(default)]
    one_type: bool,
    #[serde(default)]
    key_active_max: u32,
    key_rate: Option<Rate>,
    finished_max: Option<u32>,
    finished_ms: Option<u64>,
}

fn tenant() -> String {
    windlass_api_native::limit::TENANT_DEFAULT.to_owned()
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Ready,
    Creation,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rate {
    max: u32,
    window_ms: u64,
}

impl QueueSeed {
    fn command(self) -> ConfigureQueue {
        let priority = match self.scheme {
            None => PriorityRule::Strict,
            Some([high, low]) => PriorityRule::Scheme { high, low },
        };
        let order = match self.order {
            Order::Ready => JobOrder::Ready,
            Order::Creation => JobOrder::Creation,
        };
        let settings = QueueSettings {
            priority,
            order,
            retries_first: self.retries_first,
            aging_ms: self.aging_ms,
            one_type: self.one_type,
            key_active_max: self.key_active_max,
            key_rate: self
                .key_rate
                .map(|rate| RateWindow { max: rate.max, window_ms: rate.window_ms }),
            finished_max: self.finished_max.unwrap_or(QueueSettings::DEFAULT.finished_max),
            finished_ms: self.finished_ms.unwrap_or(QueueSettings::DEFAULT.finished_ms),
        };
        let queue = QueueName { tenant: self.tenant.into(), queue: self.name.into() };
        ConfigureQueue { queue, settings, seed_only: true }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use windlass_gateway::record::bound::Bound;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    fn parse(line: &[&str]) -> ServeArgs {
        let words = std::iter::once("serve").chain(line.iter().copied());
        Line::try_parse_from(words).unwrap().args
    }

    #[test]
    fn every_bound_that_follows_a_setting_names_one_that_exists() {
        for setting in Bound::ALL.iter().filter_map(|bound| bound.setting()) {
            toml::from_str::<File>(&format!("{setting} = 1")).unwrap();
        }
    }

    #[test]
    fn every_default_parses() {
        let config = Config::default();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert!(!config.allow_unauthenticated);
        assert_eq!(config.durability(), Durability::Fsync);
        config.check().unwrap();
    }

    #[test]
    fn the_defaults_are_those_of_the_crates_below() {
        let (config, options) = (Config::default(), Options::default());
        assert_eq!(config.bounds(), options.bounds);
        assert_eq!(config.partition().loop_commands_max, options.loop_commands_max);
        assert_eq!(config.partition().loop_bytes_max, options.loop_bytes_max);
        assert_eq!(config.partition().checkpoint_every, options.checkpoint_every);
        assert_eq!(config.partition().payload_bytes_max, options.payload_bytes_max);
        assert_eq!(config.partition().finished_max, options.finished_max);
        assert_eq!(config.partition().finished_bytes_max, options.finished_bytes_max);
        assert_eq!(config.log(), FileLogOptions::default());
        assert_eq!(config.airbyte_retry(), RetryPolicy::AIRBYTE);
    }

    #[test]
    fn a_flag_counts_more_than_the_file_and_the_file_more_than_the_default() {
        let dir = std::env::temp_dir().join(format!("windlass-settings-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("windlass.toml");
        let text = "listen = '127.0.0.1:1'\nlog_format = 'json'\n\
                    [[queue]]\nname = 'mail'\nscheme = [2, 1]\norder = 'creation'\n";
        std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let config = parse(&["--config", file, "--listen", "127.0.0.1:2"]).config().unwrap();
        assert_eq!(config.listen.port(), 2);
        assert_eq!(config.log_format, LogFormat::Json);
        assert_eq!(config.shutdown_seconds, 10);
        assert_eq!(config.queues.len(), 1);
        assert_eq!(config.queues[0].settings.priority, PriorityRule::Scheme { high: 2, low: 1 });

        std::fs::write(&path, "lisen = '127.0.0.1:1'\n").unwrap();
        let error = parse(&["--config", file]).config().unwrap_err();
        assert!(matches!(error, ConfigError::Parse { .. }), "{error}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn other_addresses_need_a_word() {
        let refused = parse(&["--listen", "0.0.0.0:8080"]).config().unwrap_err();
        assert!(refused.to_string().contains("--allow-unauthenticated"), "{refused}");
        parse(&["--listen", "0.0.0.0:8080", "--allow-unauthenticated"]).config().unwrap();
        let refused = parse(&["--zeebe-listen", "0.0.0.0:26500"]).config().unwrap_err();
        assert!(refused.to_string().contains("0.0.0.0:26500"), "{refused}");
    }

    #[test]
    fn a_face_can_be_off() {
        for (given, expected) in [("off", None), ("127.0.0.1:1", "127.0.0.1:1".parse().ok())] {
            let config = parse(&["--zeebe-listen", given]).config().unwrap();
            assert_eq!(config.zeebe_listen.address(), expected);
        }
        assert!("on".parse::<FaceListen>().is_err());
        let file: File = toml::from_str("zeebe_listen = 'off'").unwrap();
        assert_eq!(file.zeebe_listen, Some(FaceListen::Off));
    }

    #[test]
    fn help_says_everything() {
        use clap::CommandFactory;
        let help = Line::command().render_long_help().to_string();
        for word in ["--data-dir", "WINDLASS_DATA_DIR", "[default: 127.0.0.1:8080]", "--config"] {
            assert!(help.contains(word), "{word} is missing in\n{help}");
        }
    }
}
