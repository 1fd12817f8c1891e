//! How the history is kept.

/// What is kept of jobs that no flow made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobLevel {
    /// Nothing; they cost nothing here.
    #[default]
    None,
    /// Those that are live, and those that failed at least once or did not end well.
    Failures,
    /// All of them.
    Full,
}

/// How the history is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is kept of jobs that no flow made.
    pub jobs: JobLevel,
    /// Finished instances and jobs are deleted when they ended longer ago than this.
    pub retention_ms: u64,
    /// And the oldest of them when there are more than this.
    pub finished_max: u64,
    /// Connections that answer searches at once.
    pub readers_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            jobs: JobLevel::None,
            retention_ms: 30 * 24 * 60 * 60 * 1000,
            finished_max: 10_000_000,
            readers_max: 2,
        }
    }
}
