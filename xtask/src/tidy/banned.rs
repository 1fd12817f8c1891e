//! What the pure crates may not call, and what nobody leaves behind.
//!
//! `record`, `flow` and `engine` are functions of their arguments. Whatever lets the world in is refused
//! here: clocks, files, sockets, threads, randomness, logging, and maps whose order changes from one
//! process to the next, since a replay must choose as the first run chose.

use std::path::Path;

use super::{Finding, Tree};
use crate::rust_source::{find_words, line_of};

const PURE: &[&str] = &["record", "flow", "engine"];

/// What pure crates may not say, and why or what instead.
const BANNED_IN_PURE: &[(&str, &str)] = &[
    ("SystemTime", "time comes with the command"),
    ("Instant", "time comes with the command"),
    ("std::fs", "the shell does IO"),
    ("std::io", "the shell does IO"),
    ("std::net", "the shell does IO"),
    ("std::process", "the shell does IO"),
    ("std::thread", "the core is one function call"),
    ("std::env", "only what the batch context lists is visible"),
    ("async fn", "the core is one function call"),
    ("async move", "the core is one function call"),
    (".await", "the core is one function call"),
    ("tokio", "the core is one function call"),
    ("rand", "jitter is a hash of the batch's seed"),
    ("getrandom", "jitter is a hash of the batch's seed"),
    ("tracing", "what is worth telling is an event or an effect"),
    ("println!", "what is worth telling is an event or an effect"),
    ("eprintln!", "what is worth telling is an event or an effect"),
    ("print!", "what is worth telling is an event or an effect"),
    ("eprint!", "what is worth telling is an event or an effect"),
    ("log::info!", "what is worth telling is an event or an effect"),
    ("log::warn!", "what is worth telling is an event or an effect"),
    ("log::error!", "what is worth telling is an event or an effect"),
    ("log::debug!", "what is worth telling is an event or an effect"),
    ("RandomState", "its order differs in every process"),
    ("HashMap::new", "its hasher is random: name one, as in `HashMap<K, V, FxBuildHasher>`"),
    ("HashSet::new", "its hasher is random: name one, as in `HashSet<T, FxBuildHasher>`"),
    ("HashMap::with_capacity", "its hasher is random: use `with_capacity_and_hasher`"),
    ("HashSet::with_capacity", "its hasher is random: use `with_capacity_and_hasher`"),
];

/// Maps by the number of type parameters with which their hasher is named.
const MAPS: &[(&str, usize)] = &[("HashMap", 3), ("HashSet", 2)];

/// What no code says, anywhere.
const BANNED_EVERYWHERE: &[(&str, &str)] = &[
    ("#[ignore", "assert today's wrong answer with a note, or take the test out"),
    ("todo!", "write it, or refuse with a typed error"),
    ("unimplemented!", "write it, or refuse with a typed error"),
    ("dbg!", "take it out"),
];

/// What no text says. In pieces, so that this file may name it.
const BANNED_WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

const CLOCK_CALLS: &[&str] = &["SystemTime::now", "Instant::now"];
const CLOCK_FILE: &str = "crates/partition/src/clock.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in &tree.rust {
        let mut find = |code: &str, needle: &str, rule: &'static str, why: &str| {
            for at in find_words(code, needle) {
                let what = format!("`{needle}`: {why}");
                findings.push(Finding::new(file, line_of(code, at), rule, what));
            }
        };
        for (needle, why) in BANNED_EVERYWHERE {
            find(&source.code, needle, "left behind", why);
        }
        for word in BANNED_WORDS {
            find(&source.text, word, "left behind", "do it, or open an issue and say why here");
        }
        let pure = PURE.iter().any(|name| file.starts_with(format!("crates/{name}/src")));
        // `src/tests/` is compiled for tests only and never shipped.
        let tests = file.components().any(|part| part.as_os_str() == "tests");
        if pure && !tests {
            let shipped = source.shipped();
            for (needle, why) in BANNED_IN_PURE {
                find(&shipped, needle, "pure crate", why);
            }
            for at in unnamed_hashers(&shipped) {
                let what = "a map without a named hasher: its order differs in every process";
                findings.push(Finding::new(file, line_of(&shipped, at), "pure crate", what));
            }
        }
        let one_clock = file.starts_with("crates/partition/src") && file != Path::new(CLOCK_FILE);
        if one_clock {
            let shipped = source.shipped();
            for call in CLOCK_CALLS {
                for at in find_words(&shipped, call) {
                    let what = format!("`{call}`: time enters in {CLOCK_FILE} only");
                    findings.push(Finding::new(file, line_of(&shipped, at), "one clock", what));
                }
            }
        }
    }
    findings
}

/// Where a map's type is written with its default hasher.
fn unnamed_hashers(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (map, parameters) in MAPS {
        for at in find_words(code, map) {
            let behind = code.get(at + map.len()..).unwrap_or_default();
            let generics = behind.strip_prefix("::").unwrap_or(behind).strip_prefix('<');
            if generics.is_some_and(|generics| count_parameters(generics) < *parameters) {
                found.push(at);
            }
        }
    }
    found
}

/// Type parameters up to the closing `>`.
fn count_parameters(generics: &str) -> usize {
    let (mut depth, mut commas) = (0_usize, 0);
    let mut since_comma = false;
    let mut previous = ' ';
    for c in generics.chars() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if previous == '-' => {}
            '>' if depth == 0 => break,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                commas += 1;
                since_comma = false;
            }
            _ => {}
        }
        if !c.is_whitespace() && c != ',' {
            since_comma = true;
        }
        previous = c;
    }
    commas + usize::from(since_comma)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &str, text: &str) -> Vec<usize> {
        let mut lines: Vec<_> =
            check(&Tree::of(&[(file, text)])).iter().map(|finding| finding.line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn the_world_stays_out_of_pure_crates() {
        let text = "use std::time::{Duration, Instant};\n// Instant\nfn f() { println!(\"Instant\") }\n\
                    #[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(lines("crates/engine/src/a.rs", text), [1, 3]);
        assert_eq!(lines("crates/server/src/a.rs", text), [0_usize; 0]);
        assert_eq!(lines("crates/engine/tests/a.rs", text), [0_usize; 0]);
        assert_eq!(lines("crates/engine/src/a.rs", "struct InstantReply; fn brand() {}"), [0; 0]);
    }

    #[test]
    fn maps_need_a_hasher() {
        let bad =
            "a: HashMap<u64, (u8, u8)>,\nb: HashSet<Vec<u8>>,\nc: HashMap::<\nu8, u8,\n>::x\n";
        assert_eq!(lines("crates/record/src/a.rs", bad), [1, 2, 3]);
        let good =
            "a: HashMap<u64, fn(u8) -> u8, FxBuildHasher>, b: HashSet<u8, H>, c: FxHashMap<u8, u8>";
        assert_eq!(lines("crates/record/src/a.rs", good), [0; 0]);
    }

    #[test]
    fn one_file_of_the_shell_has_the_clock() {
        let text = "fn f() { Instant::now(); }";
        assert_eq!(lines("crates/partition/src/shell.rs", text), [1]);
        assert_eq!(lines(CLOCK_FILE, text), [0; 0]);
    }

    #[test]
    fn nothing_is_left_behind() {
        let text = format!("#[ignore]\nfn f() {{ {}!() }}\n// {}\n", "todo", concat!("FIX", "ME"));
        assert_eq!(lines("crates/server/src/a.rs", &text), [1, 2, 3]);
    }
}
