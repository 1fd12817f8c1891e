//! What clients send over gRPC, up to the command it asks for.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| windlass_api_native::grpc::read_any(input));
