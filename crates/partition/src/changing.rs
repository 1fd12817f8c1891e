//! User tasks that somebody asked to change, and whose listeners are asked first.

use windlass_engine::{TransitionEnded, TransitionOutcome};
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand};
use windlass_record::id::JobKey;

use crate::core::{Action, Core};
use crate::request::{Answer, Change, ChangeReply, Changed, Refused};
use crate::waits::Waits;

/// Those who wait for changes of user tasks, by the user task: it changes in one way at a time.
pub(crate) type Changing = Waits<Waiting>;

/// Somebody who waits for a change.
pub(crate) struct Waiting {
    pub(crate) reply: ChangeReply,
    /// What the change is answered with when it has happened.
    answer: Option<Answer>,
    /// What came of it, when that was known before the answer.
    ended: Option<TransitionOutcome>,
}

impl Waiting {
    fn new(reply: ChangeReply) -> Waiting {
        Waiting { reply, answer: None, ended: None }
    }
}

/// An answer on its way.
pub(crate) type Told = (ChangeReply, Result<Changed, Refused>);

impl Changing {
    /// It was taken, and its listeners are asked.
    pub(crate) fn began(&mut self, task: JobKey, answer: Answer) -> Option<Told> {
        let waiting = self.get_mut(task)?;
        waiting.answer = Some(answer);
        let outcome = waiting.ended.take()?;
        self.end(TransitionEnded { task, outcome })
    }

    /// They are through.
    pub(crate) fn end(&mut self, ended: TransitionEnded) -> Option<Told> {
        let waiting = self.get_mut(ended.task)?;
        let Some(answer) = waiting.answer.take() else {
            waiting.ended = Some(ended.outcome);
            return None;
        };
        let changed = match ended.outcome {
            TransitionOutcome::Done => Changed::Answered(answer),
            TransitionOutcome::Denied(reason) => Changed::Denied(reason),
            TransitionOutcome::Cancelled => Changed::Cancelled,
        };
        Some((self.remove(ended.task)?.reply, Ok(changed)))
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
        // It may be over within its first frame, so it is waited for before it begins.
        let end_ms = self.now_ms().saturating_add(wait_ms);
        self.changing.add(task, end_ms, Waiting::new(reply));
        match self.command(&command) {
            Ok(Answer::Flow(FlowAnswer::UserTaskPending { key, .. })) => {
                let answer = Answer::Flow(FlowAnswer::Key(key));
                if let Some((reply, changed)) = self.changing.began(task, answer) {
                    self.deliver(Action::Change(reply, changed));
                } else if self.changing.len() > self.options.waiters_max
                    && let Some(waiting) = self.changing.remove(task)
                {
                    // It was taken and goes on; there is no place to wait for its end.
                    self.deliver(Action::Change(waiting.reply, Ok(Changed::TimedOut)));
                }
            }
            answer => {
                if let Some(waiting) = self.changing.remove(task) {
                    self.deliver(Action::Change(waiting.reply, answer.map(Changed::Answered)));
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
                changing.add(task, 50, Waiting::new(reply(&heard)));
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
        changing.add(task, 50, Waiting::new(reply(&heard)));
        changing.began(task, Answer::Done);
        assert!(changing.expired(49).is_empty());
        for waiting in changing.expired(50) {
            (waiting.reply)(Ok(Changed::TimedOut));
        }
        assert_eq!(*heard.lock().unwrap(), [Ok(Changed::TimedOut)]);
        assert!(changing.end(ended(task, TransitionOutcome::Done)).is_none());
        changing.add(task, 60, Waiting::new(reply(&heard)));
        assert_eq!((changing.drain().count(), changing.next_end_ms()), (1, None));
    }
}
