//! Instances whose end somebody waits for. Known to this process alone: who waits is told when the
//! partition stops, and asks again.

use std::collections::{BTreeSet, HashMap};

use windlass_engine::InstanceEnded;
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand};
use windlass_record::id::JobKey;

use crate::core::{Action, Core};
use crate::request::{Answer, InstanceRun, RunInstance, RunReply};

/// Those who wait for instances, by the instance.
#[derive(Default)]
pub(crate) struct Awaited {
    waiting: HashMap<JobKey, Waiting>,
    ends: BTreeSet<(u64, JobKey)>,
}

struct Waiting {
    reply: RunReply,
    end_ms: u64,
    /// What was begun; its variables when it has already come to its end.
    run: Option<InstanceRun>,
    ended: Option<InstanceEnded>,
}

impl Awaited {
    /// Somebody waits for the instance that is about to begin.
    pub(crate) fn add(&mut self, key: JobKey, end_ms: u64, reply: RunReply) {
        self.ends.insert((end_ms, key));
        self.waiting.insert(key, Waiting { reply, end_ms, run: None, ended: None });
    }

    /// It began. Gives back who waited if it has ended already.
    pub(crate) fn began(&mut self, run: InstanceRun) -> Option<(RunReply, InstanceRun)> {
        let waiting = self.waiting.get_mut(&run.key)?;
        let key = run.key;
        waiting.run = Some(run);
        let ended = waiting.ended.take()?;
        debug_assert_eq!(ended.key, key, "an end is kept with its own instance");
        self.end(ended)
    }

    /// It came to its end. One that did not complete is never answered but by time.
    pub(crate) fn end(&mut self, ended: InstanceEnded) -> Option<(RunReply, InstanceRun)> {
        ended.variables.as_ref()?;
        let waiting = self.waiting.get_mut(&ended.key)?;
        let Some(mut run) = waiting.run.take() else {
            waiting.ended = Some(ended);
            return None;
        };
        run.variables = ended.variables;
        Some((self.remove(run.key)?, run))
    }

    /// Nobody waits for it any more.
    pub(crate) fn remove(&mut self, key: JobKey) -> Option<RunReply> {
        let waiting = self.waiting.remove(&key)?;
        self.ends.remove(&(waiting.end_ms, key));
        Some(waiting.reply)
    }

    /// Those whose time is over.
    pub(crate) fn expired(&mut self, now_ms: u64) -> Vec<(RunReply, InstanceRun)> {
        let mut expired = Vec::new();
        while let Some((end_ms, key)) = self.ends.first().copied()
            && end_ms <= now_ms
        {
            self.ends.remove(&(end_ms, key));
            if let Some(waiting) = self.waiting.remove(&key)
                && let Some(run) = waiting.run
            {
                expired.push((waiting.reply, run));
            }
        }
        expired
    }

    /// When the first one's time is over.
    pub(crate) fn next_end_ms(&self) -> Option<u64> {
        self.ends.first().map(|(end_ms, _)| *end_ms)
    }

    /// The partition stops.
    pub(crate) fn drain(&mut self) -> Vec<RunReply> {
        self.ends.clear();
        self.waiting.drain().map(|(_, waiting)| waiting.reply).collect()
    }
}

impl Core {
    /// Starts a process and waits for its end.
    pub(crate) fn run_instance(&mut self, run: RunInstance) {
        let RunInstance { mut command, wait_ms, reply } = run;
        command.awaited = true;
        // It may end within its first frame, so its end is awaited before it begins.
        let key = self.engine.next_key();
        let end_ms = self.now_ms().saturating_add(wait_ms);
        self.awaited.add(key, end_ms, reply);
        match self.command(&Command::Flow(FlowCommand::CreateInstance(command))) {
            Ok(Answer::Flow(FlowAnswer::InstanceCreated {
                key,
                definition,
                process_id,
                version,
            })) => {
                let run = InstanceRun { key, definition, process_id, version, variables: None };
                if let Some((reply, run)) = self.awaited.began(run) {
                    self.deliver(Action::Run(reply, Ok(run)));
                }
            }
            Ok(_) => unreachable!("a created instance is answered with itself"),
            Err(refused) => {
                if let Some(reply) = self.awaited.remove(key) {
                    self.deliver(Action::Run(reply, Err(refused)));
                }
            }
        }
    }
}
