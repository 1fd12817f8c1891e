//! Answers about a job.
