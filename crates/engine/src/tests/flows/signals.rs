//! Signals: everybody who waits gets one.

use super::*;

impl Check {
    fn signal_with(&mut self, name: &str, variables: &str) {
        self.flow(FlowCommand::BroadcastSignal(BroadcastSignal {
            tenant: TENANT.into(),
            name: name.into(),
            variables: variables.as_bytes().into(),
        }))
        .expect("a signal is taken");
    }
}

#[test]
fn catch_events_boundary_events_and_starts() {
    let mut check = Check::with(&[
        process!("signal-catch.bpmn"),
        process!("signal-boundary.bpmn"),
        process!("signal-start.bpmn"),
    ]);
    let first = check.start("signal-catch", "");
    let second = check.start("signal-catch", "");
    let third = check.start("signal-boundary", "");
    check.signal_with("scenario-signal", r#"{"v":1}"#);
    for instance in [first, second] {
        assert!(check.engine.state().flow().element(instance).is_none());
    }
    assert_eq!(check.do_one("signal-seen", ""), r#"{"v":1}"#);
    check.signal_with("scenario-signal", r#"{"v":2}"#);
    assert_eq!(check.do_one("signal-seen", ""), r#"{"v":2}"#);
    check.do_one("signal-boundary", "");
    check.assert_completed(third, r#"{"v":2}"#);
    check.signal_with("scenario-signal-start", r#"{"w":1}"#);
    assert_eq!(check.do_one("signal-start", ""), r#"{"w":1}"#);
}

/// What an input mapping of the throw event makes goes with the signal, and nothing else.
#[test]
fn thrown() {
    let mut check = Check::with(&[
        process!("signal-catch.bpmn"),
        process!("signal-start.bpmn"),
        process!("signal-throw.bpmn"),
    ]);
    let waiting = check.start("signal-catch", "");
    let thrower = check.start("signal-throw", r#"{"own":1}"#);
    let ended = check.engine.take_ended_instances();
    let left = |key| {
        let ended = ended.iter().find(|ended| ended.key == key).expect("it is over");
        let variables = ended.variables.as_ref().expect("it completed");
        crate::join(variables.iter().map(|(name, value)| (name, value)))
    };
    assert_eq!(left(waiting), r#"{"payload":7}"#);
    assert_eq!(left(thrower), r#"{"own":1}"#);
    assert_eq!(check.do_one("signal-start", ""), "{}");
}

/// Hundreds of those who wait are reached in several steps, each once; who comes later is not.
#[test]
fn many() {
    let mut check = Check::with(&[process!("signal-catch.bpmn")]);
    for _ in 0..300 {
        check.start("signal-catch", "");
    }
    check.signal("scenario-signal");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
    let late = check.start("signal-catch", "");
    assert_eq!(check.tokens(late), ["wait"]);
}
