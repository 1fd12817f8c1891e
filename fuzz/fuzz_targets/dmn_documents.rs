//! Decisions of arbitrary bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| windlass_sim::fuzz::language::dmn_documents(bytes));
