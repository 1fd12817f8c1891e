//! `docs/job-lifecycle.md` is what the table says. `WINDLASS_BLESS=1 cargo test -p windlass-engine
//! lifecycle` writes it anew.

use std::fmt::Write;

use crate::lifecycle::{JobState, Transition, Verb, transition};

fn page() -> String {
    let mut out = String::from(
        "# The life of a job\n\n\
         Generated from `lifecycle::transition` by `WINDLASS_BLESS=1 cargo test -p windlass-engine \
         lifecycle`; a test compares it with this file.\n\n\
         ```mermaid\nstateDiagram-v2\n    [*] --> scheduled: create, not due yet\n    \
         [*] --> ready: create\n",
    );
    for from in JobState::ALL {
        for to in JobState::ALL {
            let verbs: Vec<&str> = Verb::ALL
                .into_iter()
                .filter(|verb| from != to && leads(from, *verb, to))
                .map(short)
                .collect();
            if !verbs.is_empty() {
                let _ =
                    writeln!(out, "    {} --> {}: {}", from.name(), to.name(), verbs.join(", "));
            }
        }
    }
    for rest in [JobState::Completed, JobState::Failed, JobState::Cancelled] {
        let _ = writeln!(out, "    {} --> [*]", rest.name());
    }
    out.push_str("```\n\nEach cell names the states that may follow. ");
    out.push_str("`-` is refused, `*` is for dialects whose workers report without a lease ");
    out.push_str("(Conductor). To a job at rest, which leaves the engine, every verb is ");
    out.push_str("answered with \"not found\".\n\n| |");
    let live = &JobState::ALL[..5];
    for state in live {
        let _ = write!(out, " {} |", state.name());
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(live.len()));
    out.push('\n');
    for verb in Verb::ALL {
        let _ = write!(out, "| {} |", short(verb));
        for state in live {
            let _ = write!(out, " {} |", cell(*state, verb));
        }
        out.push('\n');
    }
    out
}

fn leads(from: JobState, verb: Verb, to: JobState) -> bool {
    match transition(from, verb) {
        Transition::To(states) | Transition::WithoutLease(states) => states.contains(&to),
        Transition::WrongState | Transition::NotFound => false,
    }
}

fn cell(state: JobState, verb: Verb) -> String {
    let names = |states: &[JobState]| -> String {
        states.iter().map(|state| state.name()).collect::<Vec<_>>().join(", ")
    };
    match transition(state, verb) {
        Transition::To(states) => names(states),
        Transition::WithoutLease(states) => format!("{} *", names(states)),
        Transition::WrongState | Transition::NotFound => "-".to_owned(),
    }
}

fn short(verb: Verb) -> &'static str {
    match verb {
        Verb::Activate => "activate",
        Verb::Return => "return unsent",
        Verb::ExtendLease => "extend lease",
        Verb::Report => "report",
        Verb::Complete => "complete",
        Verb::Fail => "fail",
        Verb::ThrowError => "throw error",
        Verb::Release => "release",
        Verb::LeaseEnds => "lease ends",
        Verb::Due => "due",
        Verb::WaitingEnds => "waiting ends",
        Verb::AttemptEnds => "attempt ends",
        Verb::TotalEnds => "total ends",
        Verb::Cancel => "cancel",
        Verb::Update => "update",
        Verb::Resolve => "resolve",
    }
}

#[test]
fn the_lifecycle_page_is_what_the_table_says() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-lifecycle.md");
    let page = page();
    if std::env::var_os("WINDLASS_BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/job-lifecycle.md is out of date: WINDLASS_BLESS=1 cargo test -p windlass-engine lifecycle"
    );
}
