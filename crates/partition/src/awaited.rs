//! Instances whose end somebody waits for.

use windlass_engine::InstanceEnded;
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand};

use crate::core::{Action, Core};
use crate::request::{Answer, InstanceRun, RunInstance, RunReply};
use crate::waits::Waits;

/// Those who wait for instances, by the instance.
pub(crate) type Awaited = Waits<Waiting>;

/// Somebody who waits for an instance.
pub(crate) struct Waiting {
    pub(crate) reply: RunReply,
    /// What was begun; its variables when it has already come to its end.
    pub(crate) run: Option<InstanceRun>,
    ended: Option<InstanceEnded>,
}

impl Awaited {
    /// It began. Gives back who waited if it has ended already.
    pub(crate) fn began(&mut self, run: InstanceRun) -> Option<(RunReply, InstanceRun)> {
        let waiting = self.get_mut(run.key)?;
        let key = run.key;
        waiting.run = Some(run);
        let ended = waiting.ended.take()?;
        debug_assert_eq!(ended.key, key, "an end is kept with its own instance");
        self.end(ended)
    }

    /// It came to its end. One that did not complete is never answered but by time.
    pub(crate) fn end(&mut self, ended: InstanceEnded) -> Option<(RunReply, InstanceRun)> {
        ended.variables.as_ref()?;
        let waiting = self.get_mut(ended.key)?;
        let Some(mut run) = waiting.run.take() else {
            waiting.ended = Some(ended);
            return None;
        };
        run.variables = ended.variables;
        Some((self.remove(run.key)?.reply, run))
    }
}

impl Core {
    /// Starts a process and waits for its end.
    pub(crate) fn run_instance(&mut self, run: RunInstance) {
        let RunInstance { mut command, wait_ms, reply } = run;
        if self.awaited.len() >= self.options.waiters_max {
            let refused = self.too_many_waiters();
            return self.deliver(Action::Run(reply, Err(refused)));
        }
        command.awaited = true;
        // It may end within its first frame, so its end is awaited before it begins.
        let key = self.engine.next_key();
        let end_ms = self.now_ms().saturating_add(wait_ms);
        self.awaited.add(key, end_ms, Waiting { reply, run: None, ended: None });
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
                if let Some(waiting) = self.awaited.remove(key) {
                    self.deliver(Action::Run(waiting.reply, Err(refused)));
                }
            }
        }
    }
}
