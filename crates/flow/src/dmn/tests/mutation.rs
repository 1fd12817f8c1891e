//! Documents that nobody would write: whatever the bytes, there is a model or there are problems.

use std::{env, panic};

use crate::feel::{Budget, Environment};

use super::model::of_everything;
use super::support::variables;
use crate::dmn::parse_leniently;

/// Documents per run; `WINDLASS_SEEDS` asks for more.
const SEEDS: u64 = 2_000;

/// Pieces that mutations put in: of XML, of DMN, of FEEL.
const PIECES: [&str; 24] = [
    "<",
    ">",
    "/>",
    "</text>",
    "<text>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "&amp;",
    "&#0;",
    "\"",
    "<context>",
    "</context>",
    "<list>",
    "</list>",
    "hitPolicy=\"PRIORITY\"",
    "hitPolicy=\"ANY\"",
    "href=\"#boxes\"",
    "f(f)",
    "[..]",
    "{",
    "not(",
    "\u{1F600}",
];

/// xorshift64*: a test needs no better one.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap() % end.max(1)
    }
}

#[test]
fn any_bytes_give_a_model_or_problems() {
    let one = env::var("WINDLASS_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let many = env::var("WINDLASS_SEEDS").ok().map(|count| count.parse::<u64>().unwrap());
    let seeds = one.map_or(1..many.unwrap_or(SEEDS) + 1, |seed| seed..seed + 1);
    let tried = seeds.end - seeds.start;
    let mut models = 0;
    for seed in seeds {
        let result = panic::catch_unwind(|| run(seed));
        match result {
            Ok(is_model) => models += u64::from(is_model),
            Err(panic) => {
                eprintln!("seed {seed} failed; repeat it with");
                eprintln!(
                    "  WINDLASS_SEED={seed} cargo test -p windlass-flow dmn::tests::mutation"
                );
                panic::resume_unwind(panic);
            }
        }
    }
    assert!(one.is_some() || models > tried / 20, "{models} of {tried} documents were models");
}

/// One document and all its decisions; whether it was a model.
fn run(seed: u64) -> bool {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let bytes = mutated(of_everything().as_bytes(), &mut random);
    let Ok((model, _)) = parse_leniently(&bytes) else {
        return false;
    };
    let variables = variables(r#"{"temperature": 3, "persons": 4, "season": [1, {"a": null}]}"#);
    let environment = Environment { now_ms: 0, seed };
    for decision in model.decisions() {
        let mut budget = Budget { steps_left: 10_000, ..Budget::default() };
        let evaluation = model.evaluate(&decision.id, &*variables, &environment, &mut budget);
        assert_eq!(evaluation.failed_decision().is_some(), evaluation.output.is_err());
    }
    true
}

fn mutated(original: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let end = (at + random.below(40)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            2 => {
                let piece = PIECES[random.below(PIECES.len())].bytes();
                drop(bytes.splice(at..at, piece));
            }
            3 => {
                let copied = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                drop(bytes.splice(to..to, copied));
            }
            4 => {
                // Inside a text, where the document stays one.
                let texts: Vec<usize> = bytes
                    .windows(6)
                    .enumerate()
                    .filter(|(_, own)| own == b"<text>")
                    .map(|(own, _)| own)
                    .collect();
                let at = texts.get(random.below(texts.len())).map_or(0, |own| own + 6);
                let piece = PIECES[random.below(PIECES.len())].replace(['<', '&'], "(");
                drop(bytes.splice(at..at, piece.into_bytes()));
            }
            _ => {
                // One digit or letter becomes another, which often leaves everything well formed.
                if bytes[at].is_ascii_alphanumeric() {
                    bytes[at] = b'0' + u8::try_from(random.below(10)).unwrap();
                }
            }
        }
    }
    bytes
}
