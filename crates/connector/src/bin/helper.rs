//! The helper by itself, for the tests of this crate; see `windlass_connector::process::helper`.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_connector::process::helper(std::env::args_os().skip(1))
}
