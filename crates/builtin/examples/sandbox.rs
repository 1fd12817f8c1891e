//! A sandbox, as `windlass sandbox` is one: for tests of the pool.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_builtin::sandbox::serve()
}
