//! User tasks that somebody asked to change, and whose listeners are asked first. Known to this
//! process alone: who waits is told when the partition stops, and asks again.

use std::collections::{BTreeSet, HashMap};

use windlass_engine::{TransitionEnded, TransitionOutcome};
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand};
use windlass_record::id::JobKey;

use crate::core::{Action, Core};
use crate::request::{Answer, Change, ChangeReply, Changed, Refused};

/// Those who wait for changes of user tasks, by the user task: it changes in one way at a time.
#[derive(Default)]
pub(crate) struct Changing {
    waiting: HashMap<JobKey, Waiting>,
    ends: BTreeSet<(u64, JobKey)>,
}

struct Waiting {
    reply: ChangeReply,
    end_ms: u64,
    /// What the change is answered with when it has happened.
    answer: Option<Answer>,
    /// What came of it, when that was known before the answer.
    ended: Option<TransitionOutcome>,
}

/// An answer on its way.
pub(crate) type Told = (ChangeReply, Result<Changed, Refused>);

impl Changing {
    /// Whether somebody waits already.
    pub(crate) fn has(&self, task: JobKey) -> bool {
        self.waiting.contains_key(&task)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Somebody waits for what he is about to ask for.
    pub(crate) fn add(&mut self, task: JobKey, end_ms: u64, reply: ChangeReply) {
        debug_assert!(!self.has(task), "who comes second is refused");
        self.ends.insert((end_ms, task));
        self.waiting.insert(task, Waiting { reply, end_ms, answer: None, ended: None });
    }

    /// It was taken, and its listeners are asked.
    pub(crate) fn began(&mut self, task: JobKey, answer: Answer) -> Option<Told> {
        let waiting = self.waiting.get_mut(&task)?;
        waiting.answer = Some(answer);
        let outcome = waiting.ended.take()?;
        self.end(TransitionEnded { task, outcome })
    }

    /// They are through.
    pub(crate) fn end(&mut self, ended: TransitionEnded) -> Option<Told> {
        let waiting = self.waiting.get_mut(&ended.task)?;
        let Some(answer) = waiting.answer.take() else {
            waiting.ended = Some(ended.outcome);
            return None;
        };
        let changed = match ended.outcome {
            TransitionOutcome::Done => Changed::Answered(answer),
            TransitionOutcome::Denied(reason) => Changed::Denied(reason),
            TransitionOutcome::Cancelled => Changed::Cancelled,
        };
        Some((self.remove(ended.task)?, Ok(changed)))
    }

    /// Nobody waits for it any more.
    pub(crate) fn remove(&mut self, task: JobKey) -> Option<ChangeReply> {
        let waiting = self.waiting.remove(&task)?;
        self.ends.remove(&(waiting.end_ms, task));
        Some(waiting.reply)
    }

    /// Those whose time is over.
    pub(crate) fn expired(&mut self, now_ms: u64) -> Vec<Told> {
        let mut expired = Vec::new();
        while let Some((end_ms, task)) = self.ends.first().copied()
            && end_ms <= now_ms
        {
            expired.extend(self.remove(task).map(|reply| (reply, Ok(Changed::TimedOut))));
            self.ends.remove(&(end_ms, task));
        }
        expired
    }

    /// When the first one's time is over.
    pub(crate) fn next_end_ms(&self) -> Option<u64> {
        self.ends.first().map(|(end_ms, _)| *end_ms)
    }

    /// The partition stops.
    pub(crate) fn drain(&mut self) -> Vec<ChangeReply> {
        self.ends.clear();
        self.waiting.drain().map(|(_, waiting)| waiting.reply).collect()
    }
}

impl Core {
    /// Changes a user task and waits until its listeners are through.
    pub(crate) fn change(&mut self, change: Change) {
        let Change { command, wait_ms, reply } = change;
        let flow = self.engine.state().flow();
        let task = if let FlowCommand::UpdateUserTask(command) = &command {
            Some(command.key)
        } else if let FlowCommand::SetVariables(command) = &command {
            flow.user_task_at(command.scope)
        } else {
            None
        };
        let command = Command::Flow(command);
        // While somebody waits the user task is about to change, and another change is refused.
        let Some(task) = task.filter(|task| !self.changing.has(*task)) else {
            let answer = self.command(&command).map(Changed::Answered);
            return self.deliver(Action::Change(reply, answer));
        };
        if self.changing.len() >= self.options.waiters_max {
            let refused = self.too_many_waiters();
            return self.deliver(Action::Change(reply, Err(refused)));
        }
        // It may be over within its first frame, so it is waited for before it begins.
        self.changing.add(task, self.now_ms().saturating_add(wait_ms), reply);
        match self.command(&command) {
            Ok(Answer::Flow(FlowAnswer::UserTaskPending { key, .. })) => {
                let answer = Answer::Flow(FlowAnswer::Key(key));
                if let Some((reply, changed)) = self.changing.began(task, answer) {
                    self.deliver(Action::Change(reply, changed));
                }
            }
            answer => {
                if let Some(reply) = self.changing.remove(task) {
                    self.deliver(Action::Change(reply, answer.map(Changed::Answered)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use windlass_record::flow::FlowAnswer;

    use super::*;

    type Heard = Arc<Mutex<Vec<Result<Changed, Refused>>>>;

    fn reply(heard: &Heard) -> ChangeReply {
        let heard = heard.clone();
        Box::new(move |changed| heard.lock().unwrap().push(changed))
    }

    fn ended(task: JobKey, outcome: TransitionOutcome) -> TransitionEnded {
        TransitionEnded { task, outcome }
    }

    #[test]
    fn who_waits_is_told_once_and_only_of_what_he_asked_for() {
        let task = JobKey::from_raw(7);
        let done = || Answer::Flow(FlowAnswer::Done);
        for (outcome, expected) in [
            (TransitionOutcome::Done, Changed::Answered(done())),
            (TransitionOutcome::Denied("no".into()), Changed::Denied("no".into())),
            (TransitionOutcome::Cancelled, Changed::Cancelled),
        ] {
            for ends_first in [false, true] {
                let (heard, mut changing) = (Heard::default(), Changing::default());
                assert!(changing.end(ended(task, outcome.clone())).is_none(), "nobody waits");
                changing.add(task, 50, reply(&heard));
                let told = if ends_first {
                    assert!(changing.end(ended(task, outcome.clone())).is_none());
                    changing.began(task, done())
                } else {
                    assert!(changing.began(task, done()).is_none());
                    changing.end(ended(task, outcome.clone()))
                };
                let (reply, changed) = told.expect("somebody waits");
                reply(changed);
                assert_eq!(*heard.lock().unwrap(), [Ok(expected.clone())]);
                assert_eq!((changing.has(task), changing.next_end_ms()), (false, None));
            }
        }
    }

    #[test]
    fn time_ends_the_wait() {
        let (heard, mut changing) = (Heard::default(), Changing::default());
        let task = JobKey::from_raw(7);
        changing.add(task, 50, reply(&heard));
        changing.began(task, Answer::Done);
        assert!(changing.expired(49).is_empty());
        for (reply, changed) in changing.expired(50) {
            reply(changed);
        }
        assert_eq!(*heard.lock().unwrap(), [Ok(Changed::TimedOut)]);
        assert!(changing.end(ended(task, TransitionOutcome::Done)).is_none());
        changing.add(task, 60, reply(&heard));
        assert_eq!((changing.drain().len(), changing.next_end_ms()), (1, None));
    }
}
