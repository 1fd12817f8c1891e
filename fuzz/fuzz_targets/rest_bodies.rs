//! What clients send over REST, up to the command it asks for.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| windlass_api_native::rest::read_any(input));
