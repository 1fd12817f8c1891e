//! A buffer that lines are read into: whole lines come out, where they stand.

use std::io;
use std::ops::Range;

use crate::process::wire::{Read, Wire};

/// What is read at once; small enough to stay in a processor's cache until it is written.
const BUFFER_BYTES: usize = 256 << 10;

/// What came of filling the buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Filled {
    /// Here are lines, the last one ends with this range.
    Lines(Range<usize>),
    /// The other side has closed it. This is what stands behind its last line feed.
    End(Range<usize>),
    /// Somebody wants us to stop.
    Stopped,
    /// A line is longer than it may be.
    TooLong,
}

/// The buffer. It grows for a long line, and shrinks behind it.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Lines that were not handed out yet begin here.
    from: usize,
    /// So much is read.
    to: usize,
    line_bytes_max: usize,
}

impl Lines {
    /// An empty one.
    #[must_use]
    pub fn new(line_bytes_max: usize) -> Self {
        Self { bytes: vec![0; BUFFER_BYTES], from: 0, to: 0, line_bytes_max }
    }

    /// Reads until there is at least one whole line. What was handed out before is gone by that.
    ///
    /// # Errors
    /// If the wire says so.
    pub fn fill(&mut self, wire: &Wire) -> io::Result<Filled> {
        self.make_room();
        loop {
            if self.to == self.bytes.len() {
                if self.to > self.line_bytes_max {
                    return Ok(Filled::TooLong);
                }
                let length = (self.bytes.len() * 2).min(self.line_bytes_max + 1);
                self.bytes.resize(length, 0);
            }
            let room = self.bytes.get_mut(self.to..).unwrap_or_default();
            let count = match wire.read(room)? {
                Read::Bytes(count) => count,
                Read::End => {
                    return Ok(Filled::End(std::mem::replace(&mut self.from, self.to)..self.to));
                }
                Read::Stopped => return Ok(Filled::Stopped),
            };
            let new = self.to..self.to + count;
            self.to = new.end;
            let feed = self.bytes.get(new.clone()).and_then(|new| memchr::memrchr(b'\n', new));
            if let Some(feed) = feed {
                let begin = self.from;
                self.from = new.start + feed + 1;
                return Ok(Filled::Lines(begin..self.from));
            }
        }
    }

    /// The bytes of a range that was handed out.
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Moves the begin of a line that is not whole to the front.
    fn make_room(&mut self) {
        self.bytes.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.bytes.len() > BUFFER_BYTES && self.to < BUFFER_BYTES {
            self.bytes.truncate(BUFFER_BYTES);
            self.bytes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::process::wire::Stop;

    #[test]
    fn lines_of_all_lengths_come_out_whole() {
        let (out, into) = rustix::pipe::pipe().unwrap();
        let lengths = [0, 1, 100, BUFFER_BYTES - 1, BUFFER_BYTES, 3 * BUFFER_BYTES, 7];
        let writer = std::thread::spawn(move || {
            let mut into = std::fs::File::from(into);
            for length in lengths {
                into.write_all(&vec![b'x'; length]).unwrap();
                into.write_all(b"\n").unwrap();
            }
            into.write_all(b"rest").unwrap();
        });
        let wire = Wire::new(out, Stop::new().unwrap()).unwrap();
        let mut lines = Lines::new(4 * BUFFER_BYTES);
        let mut seen = Vec::new();
        let rest = loop {
            match lines.fill(&wire).unwrap() {
                Filled::Lines(range) => {
                    let text = lines.bytes(range);
                    let text = text.strip_suffix(b"\n").unwrap();
                    seen.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::len));
                }
                Filled::End(range) => break lines.bytes(range).to_vec(),
                other @ (Filled::Stopped | Filled::TooLong) => panic!("{other:?}"),
            }
        };
        writer.join().unwrap();
        assert_eq!((seen, rest), (lengths.to_vec(), b"rest".to_vec()));
        assert_eq!(lines.bytes.len(), BUFFER_BYTES, "it is small again");
    }

    #[test]
    fn a_line_over_the_limit_is_refused() {
        let (out, into) = rustix::pipe::pipe().unwrap();
        let writer = std::thread::spawn(move || {
            let _ = std::fs::File::from(into).write_all(&vec![b'x'; BUFFER_BYTES + 200]);
        });
        let wire = Wire::new(out, Stop::new().unwrap()).unwrap();
        let mut lines = Lines::new(BUFFER_BYTES + 100);
        assert_eq!(lines.fill(&wire).unwrap(), Filled::TooLong);
        drop(wire);
        writer.join().unwrap();
    }
}
