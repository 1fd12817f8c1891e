//! Scenarios of `zeebe-rs`, see `tests/`. There is nothing else here.
