//! The encoding of events: every event comes back as it was, and no bytes make the decoder panic.

mod common;

use proptest::prelude::*;
use windlass_record::codec::{DecodeError, Decoder, decode_event, encode_event};

use common::{KINDS, Shelf, Source, kind_of};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_comes_back(
        numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..300], 1..40),
        texts in prop::collection::vec(".{0,12}", 1..8),
    ) {
        for kind in 0..KINDS {
            let mut kept = Shelf::default();
            let event = Source::new(&numbers, &texts).event(kind, &mut kept);
            prop_assert_eq!(kind_of(&event), kind);
            let mut bytes = Vec::new();
            encode_event(&event, &kept, &mut bytes);
            let mut found = Shelf::default();
            let mut from = Decoder::new(&bytes);
            let decoded = decode_event(&mut from, &mut found);
            prop_assert_eq!(decoded.as_ref(), Ok(&event));
            prop_assert!(from.is_empty(), "bytes are left over");
            prop_assert_eq!(&found.payloads, &kept.payloads);

            // Cut anywhere, it is an error and nothing else.
            for len in 0..bytes.len() {
                let cut = decode_event(&mut Decoder::new(&bytes[..len]), &mut Shelf::default());
                prop_assert!(cut.is_err(), "{:?} of {} bytes", &event, len);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_event_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_event(&mut Decoder::new(&bytes), &mut Shelf::default());
    }

    /// Bytes that begin like an event of each kind go further than purely arbitrary ones.
    #[test]
    fn damaged_events_are_an_event_or_an_error(
        numbers in prop::collection::vec(any::<u64>(), 1..40),
        place in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let texts = ["text".to_owned()];
        for kind in 0..KINDS {
            let mut kept = Shelf::default();
            let event = Source::new(&numbers, &texts).event(kind, &mut kept);
            let mut bytes = Vec::new();
            encode_event(&event, &kept, &mut bytes);
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let _ = decode_event(&mut Decoder::new(&bytes), &mut Shelf::default());
        }
    }
}

#[test]
fn errors_are_named() {
    for (bytes, expected) in [
        (&[][..], DecodeError::Truncated),
        (&[0], DecodeError::UnknownTag { field: "event", tag: 0 }),
        (&[255], DecodeError::UnknownTag { field: "event", tag: 255 }),
        // A lease moved by a number of 70 bits, and by one that ends.
        (&[2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 127], DecodeError::NumberTooLarge),
        (&[2, 128], DecodeError::Truncated),
        // A queue number of 33 bits; a text that is not UTF-8; a text longer than what is there.
        (&[5, 128, 128, 128, 128, 16, 0], DecodeError::NumberTooLarge),
        (&[18, 1, 1, 255], DecodeError::NotText),
        (&[18, 1, 9, 65], DecodeError::Truncated),
        // A log of 2^63 lines.
        (&[12, 1, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1], DecodeError::Truncated),
        (&[14, 1, 9], DecodeError::UnknownTag { field: "ready cause", tag: 9 }),
    ] {
        let decoded = decode_event(&mut Decoder::new(bytes), &mut Shelf::default());
        assert_eq!(decoded, Err(expected), "{bytes:?}");
    }
}
