//! The log in a directory of one machine. Format version 1.
//!
//! ```text
//! segment-0000000007.log   segments, numbered without gaps; the highest is the active one
//! reserve-0000000003       segments of the future: full of zeros, or of frames that were trimmed
//! preparing                a segment that is being filled with zeros
//! marks                    two mark blocks; their existence is the log's existence
//! lock                     held while a process has the log open
//! cut-…                    what `repair` cut off; never read, never removed
//! ```
//!
//! A **segment** is one header block of 4096 bytes, then batches back to back ([`batch`](crate::batch)), each on a block
//! of its own, then zeros or old bytes. Its size never changes. A batch that does not fit begins the next segment.
//!
//! ```text
//! segment header:                                    mark block (at 0 and at 4096):
//!      0     4  crc32c of bytes 4..4096                   0     4  crc32c of bytes 4..4096
//!      4     4  magic "WLSG"                              4     4  magic "WLMK"
//!      8     2  version 1                                 8     2  version 1
//!     10     2  partition                                10     2  partition
//!     12     4  epoch of the frame before                12     4  zero
//!     16     8  life id                                  16     8  life id
//!     24     8  number of the segment                    24     8  sequence of the mark, block = sequence mod 2
//!     32     8  first lsn                                32     8  durable lsn
//!     40     8  record time ms of the frame before       40     8  number of the first segment
//!     48     4  crc of the frame before                  48     8  number of the active segment
//!     52     4  zero                                     56     8  first lsn of the first segment
//!     56     8  bytes of the segment                     64     …  zeros
//!     64     …  zeros
//! ```
//!
//! Everything that matters in a header or mark block is in its first 512 bytes, which disks write as one.
//!
//! # Why segments are recycled
//!
//! A file that grows needs a commit of the file system's journal with each sync. A segment that was filled with zeros
//! once, and is overwritten from then on, does not: measured 2x faster at 4 KiB and 6-10x at 256 KiB. So a keeper thread
//! prepares segments ahead, a trimmed segment becomes a reserve by rename, and its old frames stay in it. They are
//! never mistaken for new ones: their lsns are in the past, and lsn and chain are under the checksum.
//!
//! # The order of writes
//!
//! 1. A batch is written only after the batch before it was synced. So at most one batch is ever unfinished, and a batch,
//!    or a single frame of one, **proves** that everything before that batch was durable.
//! 2. A segment is begun only after everything before it was synced: rename, sync of the directory, a mark that names the
//!    new segment, then its header and first batch with one sync.
//! 3. A mark is written after the sync it speaks of, every so many batches and always when the log is idle or closed, and
//!    is itself synced before the next one overwrites the other block.
//! 4. Segments are given back only after a mark that no longer names them is durable.
//!
//! # Opening
//!
//! From the header of the last segment begun, batches are read up to the first place that is not the next frame. There
//! the log ends, **unless** a mark, a later batch header, a later segment or a single later frame proves that the lsn
//! at this place was durable. Then the log is damaged, nothing is changed, and [`LogError::Damaged`](crate::LogError)
//! names file, offset and lsn. The whole rest of the segment is searched for such proof, byte by byte.
//!
//! Without proof, the bad place is the one unfinished batch. Its frames in front of the bad place are whole and in order;
//! they were never acknowledged, but they are kept (*choice*: the design says "drop the rest of that last batch"). It
//! costs nothing, and in the case below it saves everything that can be saved. Then, before anything else happens:
//!
//! * the last batch is **written again**, cut to the frames that are kept, unless a mark proves that it was durable. Its
//!   bytes may be in the kernel's memory only, and when a sync failed before the restart, a sync that succeeds now would
//!   prove nothing about them;
//! * if anything of the dropped frames is left, the rest of the segment is filled with zeros, so that no stale frame can
//!   come back to life behind later appends;
//! * the segment is synced, and a mark is written.
//!
//! All of this can be interrupted anywhere and is simply done again.
//!
//! Damage in older segments, which opening does not read, is found by the reader that needs them, and by
//! [`verify`](fn@verify).
//!
//! # What cannot be told from an unfinished write
//!
//! Damage to the **last acknowledged batch before a mark is written** looks exactly like a batch that was torn by the loss
//! of power, on one disk: nothing behind it exists that could prove otherwise. More precisely: when every byte written
//! after the damaged place is unreadable too, and no mark covers it. The frames from the damaged byte on are dropped then.
//! The window closes with the next batch, the next idle moment, or the close of the log. A second disk, or a replicated
//! backend, is the remedy. The simulator excludes exactly this case.

mod housekeeping;
mod inspect;
mod layout;
mod log;
mod marks;
mod open;
mod reader;
mod repair;
mod survey;
mod verify;

pub use inspect::{InspectedFrame, inspect};
pub use log::{FileLog, FileLogOptions, Housekeeping};
pub use open::NewLog;
pub use repair::{RepairReport, repair};
pub use verify::{SegmentReport, TailReport, VerifyReport, verify};
