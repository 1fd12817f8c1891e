//! A checkpoint of arbitrary images.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| windlass_sim::fuzz::checkpoint_images(bytes));
