//! Frames that released versions wrote, kept for ever: each must decode to what it was then.
//!
//! A line is the frame in hexadecimal, a tab, and the debug text of its event. A new version adds a
//! file beside the old ones (`WINDLASS_BLESS=1` writes the newest if it is missing); no file is ever
//! written anew.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use common::{KINDS, Shelf, Source, kind_of};
use windlass_record::codec::{Decoder, VERSION, decode_event, encode_event};

fn path(version: u8) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}.hex"))
}

/// Several events of each kind.
fn write_newest() {
    let texts = ["", "orders", "größer", "a", "worker-1", "k"].map(str::to_owned);
    let mut out = String::new();
    for round in 0..6u64 {
        let numbers: Vec<u64> = (0..37u64)
            .map(|place| match (place + round) % 5 {
                0 => place % 4,
                1 => 127 + place + round,
                2 => 2_251_799_813_685_248 + place,
                3 => 1_800_000_000_000 + 977 * place,
                _ => u64::MAX - place,
            })
            .collect();
        for kind in 0..KINDS {
            let mut shelf = Shelf::default();
            let event = Source::new(&numbers[round as usize..], &texts).event(kind, &mut shelf);
            let mut bytes = vec![VERSION];
            encode_event(&event, &shelf, &mut bytes);
            for byte in &bytes {
                let _ = write!(out, "{byte:02x}");
            }
            let _ = writeln!(out, "\t{event:?}");
        }
    }
    std::fs::write(path(VERSION), out).expect("fixtures can be written");
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    digits
        .chunks(2)
        .map(|pair| pair.iter().collect::<String>())
        .map(|pair| u8::from_str_radix(&pair, 16).expect("fixtures are hexadecimal"))
        .collect()
}

#[test]
fn frames_of_every_version_decode_to_what_they_were() {
    if std::env::var_os("WINDLASS_BLESS").is_some() && !path(VERSION).exists() {
        write_newest();
    }
    for version in 1..=VERSION {
        let text = std::fs::read_to_string(path(version)).expect("each version has a fixture");
        let mut kinds = BTreeSet::new();
        for line in text.lines() {
            let (hex, expected) = line.split_once('\t').expect("a tab stands between");
            let frame = bytes(hex);
            let (&first, rest) = frame.split_first().expect("a frame has a version");
            assert_eq!(first, version);
            let mut from = Decoder::new(rest);
            let mut shelf = Shelf::default();
            let event = decode_event(&mut from, &mut shelf).expect("it was written by us");
            assert!(from.is_empty());
            assert_eq!(format!("{event:?}"), expected);
            kinds.insert(kind_of(&event));
            // What is read is written the same way again while the version lasts.
            if version == VERSION {
                let mut again = Vec::new();
                encode_event(&event, &shelf, &mut again);
                assert_eq!(again, rest);
            }
        }
        assert!(version < VERSION || kinds.len() == KINDS, "every event is in the newest fixture");
    }
}
