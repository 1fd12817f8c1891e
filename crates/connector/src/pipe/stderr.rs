//! What a connector prints on its standard error: text for the log, the end of it for the failure.

use crate::observer::Level;
use crate::observer::Observer;
use crate::pipe::shared::for_log;
use crate::process::Side;
use crate::process::wire::{Read, Wire};

/// Of the end, for a failure.
const TAIL_BYTES_MAX: usize = 8 << 10;
/// A longer line is logged in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Logs all of it, and returns its end.
#[must_use]
pub fn drain(wire: &Wire, side: Side, observer: &dyn Observer) -> String {
    let mut buffer = vec![0; 16 << 10];
    let (mut line, mut tail) = (Vec::new(), Vec::new());
    let log = |line: &mut Vec<u8>| {
        let text = for_log(line);
        if !text.is_empty() {
            observer.log(Some(side), Level::Info, &text);
        }
        line.clear();
    };
    while let Ok(Read::Bytes(count)) = wire.read(&mut buffer) {
        observer.heard();
        let new = buffer.get(..count).unwrap_or_default();
        tail.extend_from_slice(new);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES_MAX));
        for piece in new.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || line.len() >= LINE_BYTES_MAX {
                log(&mut line);
            }
        }
    }
    log(&mut line);
    String::from_utf8_lossy(&tail).trim().to_owned()
}
