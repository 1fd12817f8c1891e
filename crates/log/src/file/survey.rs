//! Looks at a log without changing it: where it ends, and whether it ends there rightly. Opening, `verify` and `repair`
//! all act on the same survey. The rules are in the [module](super)'s doc under "Opening".

use std::io;
use std::path::Path;

use crate::LogError;
use crate::accept::Acceptor;
use crate::batch::{BLOCK_BYTES, BatchHeader, HeaderFault, Tail};
use crate::error::{Damage, Fault, Proof};
use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, LifeId, decode_frame, looks_like_frame};
use crate::fs::{File, FileSystem};
use crate::little_endian::{to_u64, to_usize};
use crate::walk::BatchWalk;

use super::layout::{BLOCK, FileNames, SegmentHeader, segment_path};
use super::marks::Mark;

/// How much of the log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All headers, and the last segment: enough to append.
    LastSegment,
    /// Every frame.
    WholeLog,
}

#[derive(Debug)]
pub(crate) struct Survey {
    /// The segments that were walked, in order.
    pub(crate) walked: Vec<WalkedSegment>,
    /// First lsns of all segments with a good header, walked or not.
    pub(crate) headers: Vec<SegmentHeader>,
    /// Frames of dropped batches, or of lost ones, stand behind the end.
    pub(crate) stray_frames: bool,
    /// The highest lsn that anything in the log speaks of.
    pub(crate) highest_lsn_seen: u64,
    pub(crate) damage: Option<Damage>,
}

#[derive(Debug)]
pub(crate) struct WalkedSegment {
    pub(crate) header: SegmentHeader,
    pub(crate) file_bytes: u64,
    pub(crate) walk: SegmentWalk,
}

/// How far the frames of a segment are in order.
#[derive(Debug, Clone)]
pub(crate) struct SegmentWalk {
    /// Behind the last good frame.
    pub(crate) tail: Tail,
    /// Record time of the last good frame.
    pub(crate) time_ms: u64,
    pub(crate) batches: u64,
    pub(crate) frames: u64,
    /// Behind the last whole batch.
    pub(crate) offset: u64,
    pub(crate) last_batch: Option<(u64, BatchHeader)>,
    /// The batch at `offset` has a good header and this many good frames, which end at this place in the batch.
    pub(crate) partial: Option<PartialBatch>,
    /// What ended the walk, and where.
    pub(crate) fault: Fault,
    pub(crate) fault_offset: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PartialBatch {
    pub(crate) header: BatchHeader,
    pub(crate) frames: u32,
    pub(crate) content_bytes: usize,
}

/// Called for every good frame: segment number, offset of the frame, its batch, its header.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(u64, u64, &BatchHeader, &FrameHeader);

pub(crate) fn survey(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
    mark: &Mark,
    depth: Depth,
    visit: Visit<'_>,
) -> Result<Survey, LogError> {
    let started = StartedSegments::find(fs, dir, names, mark)?;
    let mut survey = Survey {
        walked: Vec::new(),
        headers: started.headers.clone(),
        stray_frames: false,
        highest_lsn_seen: mark.durable_lsn,
        damage: None,
    };
    let first_wanted = match depth {
        Depth::LastSegment => started.headers.len().saturating_sub(1),
        Depth::WholeLog => 0,
    };
    for (index, header) in started.headers.iter().enumerate().skip(first_wanted) {
        let path = segment_path(dir, header.number);
        let file = open(fs, &path)?;
        let walked = walk_segment(file.as_ref(), header, visit)
            .map_err(|error| LogError::io("read", &path, error))?;
        if let Fault::BatchHeader(HeaderFault::UnsupportedVersion(version)) = walked.walk.fault {
            return Err(LogError::UnsupportedVersion { file: path, version });
        }
        let next = started.headers.get(index + 1);
        let continues = next.is_none_or(|next| next.before == walked.walk.tail);
        let (tail, fault) = (walked.walk.tail, walked.walk.fault.clone());
        let offset = walked.walk.fault_offset;
        survey.walked.push(walked);
        if let Some(next) = next.filter(|_| !continues) {
            let lost = next.before.next_lsn > tail.next_lsn;
            let proof = Proof::LaterSegment { segment: next.number };
            let lsn = tail.next_lsn;
            survey.damage = Some(if lost {
                Damage { file: path, offset, lsn, fault, proof }
            } else {
                let file = segment_path(dir, next.number);
                Damage { file, offset: 0, lsn, fault: Fault::SegmentOutOfOrder, proof }
            });
            break;
        }
    }
    if survey.damage.is_none() {
        survey.damage = started.damage(dir, mark, &survey);
    }
    search_behind_end(fs, dir, names, mark, &mut survey)?;
    Ok(survey)
}

/// The segments whose headers stand in a row, and what ends the row if something that must be there is not.
struct StartedSegments {
    headers: Vec<SegmentHeader>,
    broken: Option<(u64, Fault, Proof)>,
}

impl StartedSegments {
    fn find(
        fs: &dyn FileSystem,
        dir: &Path,
        names: &FileNames,
        mark: &Mark,
    ) -> Result<Self, LogError> {
        let mut found = Vec::new();
        for number in names.segments.iter().filter(|number| **number >= mark.first_segment) {
            found.push((*number, read_header(fs, dir, *number, mark)?));
        }
        let last_started = found.iter().rev().find(|(_, header)| header.is_ok());
        let last_started = last_started.map_or(0, |(number, _)| *number);

        let mut headers: Vec<SegmentHeader> = Vec::new();
        let mut found = found.into_iter().peekable();
        for number in mark.first_segment..=mark.active_segment.max(last_started) {
            let header = found.next_if(|(found, _)| *found == number);
            let proof = if number < last_started {
                Proof::LaterSegment { segment: last_started }
            } else {
                Proof::SyncedBeforeUse
            };
            let fault = match header {
                None => Fault::FileMissing,
                Some((_, Ok(header))) => {
                    headers.push(header);
                    continue;
                }
                // Behind the last segment begun, a segment without a header is one that was about to begin.
                Some((_, Err(_))) if number > last_started && !headers.is_empty() => continue,
                Some((_, Err(fault))) => fault,
            };
            return Ok(Self { headers, broken: Some((number, fault, proof)) });
        }
        Ok(Self { headers, broken: None })
    }

    fn damage(&self, dir: &Path, mark: &Mark, survey: &Survey) -> Option<Damage> {
        if let Some((number, fault, proof)) = &self.broken {
            let lsn = survey.walked.last().map_or(mark.first_lsn, |last| last.walk.tail.next_lsn);
            let (fault, proof) = (fault.clone(), *proof);
            return Some(Damage { file: segment_path(dir, *number), offset: 0, lsn, fault, proof });
        }
        let first = self.headers.first()?;
        if first.before.next_lsn == mark.first_lsn {
            return None;
        }
        Some(Damage {
            file: segment_path(dir, first.number),
            offset: 0,
            lsn: mark.first_lsn,
            fault: Fault::SegmentOutOfOrder,
            proof: Proof::SyncedBeforeUse,
        })
    }
}

fn read_header(
    fs: &dyn FileSystem,
    dir: &Path,
    number: u64,
    mark: &Mark,
) -> Result<Result<SegmentHeader, Fault>, LogError> {
    let path = segment_path(dir, number);
    let mut block = vec![0; BLOCK_BYTES];
    open(fs, &path)?.read_at(&mut block, 0).map_err(|error| LogError::io("read", &path, error))?;
    match SegmentHeader::decode(&block) {
        Ok(header) if header.before.life != mark.life => Ok(Err(Fault::SegmentHeader)),
        Ok(header) if header.number != number => {
            Ok(Err(Fault::SegmentMisplaced { found: header.number }))
        }
        Ok(header) => Ok(Ok(header)),
        Err(fault) => {
            fault.check_version(&path)?;
            Ok(Err(Fault::SegmentHeader))
        }
    }
}

pub(crate) fn open(fs: &dyn FileSystem, path: &Path) -> Result<Box<dyn File>, LogError> {
    fs.open(path).map_err(|error| LogError::io("open", path, error))
}

/// Reads the batch at `offset` into `buffer`: as much of it as its header claims and the segment holds, at least the
/// first block.
pub(crate) fn load_batch(
    file: &dyn File,
    life: LifeId,
    offset: u64,
    segment_bytes: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    let room = segment_bytes.saturating_sub(offset);
    buffer.resize(to_usize(room.min(BLOCK)), 0);
    let count = file.read_at(buffer, offset)?;
    buffer.truncate(count);
    let Ok(header) = BatchHeader::decode(buffer, life) else { return Ok(()) };
    let wanted = to_usize(header.padded_bytes().min(room));
    if count == BLOCK_BYTES && wanted > count {
        buffer.resize(wanted, 0);
        let rest = buffer.get_mut(count..).unwrap_or_default();
        let more = file.read_at(rest, offset + to_u64(count))?;
        buffer.truncate(count + more);
    }
    Ok(())
}

fn walk_segment(
    file: &dyn File,
    header: &SegmentHeader,
    visit: Visit<'_>,
) -> io::Result<WalkedSegment> {
    let mut acceptor = Acceptor::for_single_writer(&header.before);
    let mut walk = SegmentWalk {
        tail: header.before,
        time_ms: header.time_ms,
        batches: 0,
        frames: 0,
        offset: BLOCK,
        last_batch: None,
        partial: None,
        fault: Fault::BatchHeader(HeaderFault::Absent),
        fault_offset: BLOCK,
    };
    let life = header.before.life;
    let mut buffer = Vec::new();
    loop {
        load_batch(file, life, walk.offset, header.segment_bytes, &mut buffer)?;
        let mut batch = match BatchWalk::begin(&buffer, life, &acceptor) {
            Ok(batch) => batch,
            Err(fault) => {
                (walk.fault, walk.fault_offset) = (fault, walk.offset);
                break;
            }
        };
        let ended = loop {
            let at = to_u64(batch.at());
            match batch.step(&buffer, &mut acceptor) {
                Ok(Some(passed)) => {
                    visit(header.number, walk.offset + at, &batch.header, &passed.header);
                }
                Ok(None) => break None,
                Err(bad) => break Some(bad),
            }
        };
        walk.frames += u64::from(batch.passed());
        if batch.passed() > 0 {
            walk.time_ms = batch.header.time_ms;
        }
        if let Some(bad) = ended {
            let (frames, content_bytes) = (batch.passed(), bad.at);
            walk.partial = Some(PartialBatch { header: batch.header, frames, content_bytes });
            (walk.fault, walk.fault_offset) = (bad.fault, walk.offset + to_u64(bad.at));
            break;
        }
        walk.batches += 1;
        walk.last_batch = Some((walk.offset, batch.header));
        walk.offset += batch.header.padded_bytes();
    }
    walk.tail.epoch = acceptor.epoch();
    walk.tail.next_lsn = acceptor.next_lsn();
    walk.tail.chain = acceptor.chain();
    Ok(WalkedSegment { header: *header, file_bytes: file.len_bytes()?, walk })
}

/// Searches everything behind the end for proof that the end is not the end.
fn search_behind_end(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &FileNames,
    mark: &Mark,
    survey: &mut Survey,
) -> Result<(), LogError> {
    let Some(last) = survey.walked.last() else { return Ok(()) };
    let (number, walk) = (last.header.number, last.walk.clone());
    let lsn = walk.tail.next_lsn;
    let mut search = Search::new(mark.life, lsn);
    for later in names.segments.iter().filter(|later| **later >= number) {
        let path = segment_path(dir, *later);
        let offset = if *later == number { walk.offset } else { 0 };
        let read_error = |error| LogError::io("read", &path, error);
        let file = open(fs, &path)?;
        let end = file.len_bytes().map_err(read_error)?;
        let Some((from, to)) = written_span(&*file, offset, end).map_err(read_error)? else {
            continue;
        };
        let mut bytes = vec![0; to_usize(to.saturating_sub(from))];
        let count = file.read_at(&mut bytes, from).map_err(read_error)?;
        search.look_at(bytes.get(..count).unwrap_or_default(), from);
    }
    survey.stray_frames = search.stray_frames;
    survey.highest_lsn_seen = survey.highest_lsn_seen.max(search.highest_lsn);
    let marked = Proof::Mark { durable_lsn: mark.durable_lsn };
    let proof = if mark.durable_lsn >= lsn { Some(marked) } else { search.proof };
    if let Some(proof) = proof.filter(|_| survey.damage.is_none()) {
        let (file, offset) = (segment_path(dir, number), walk.fault_offset);
        survey.damage = Some(Damage { file, offset, lsn, fault: walk.fault, proof });
    }
    Ok(())
}

/// The blocks from the first to the last that are not zero: a fresh segment is zeros behind its end,
/// and need not be held in memory to see that.
fn written_span(file: &dyn File, from: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    const PART_BYTES: u64 = 1 << 20;
    let block = BLOCK_BYTES as u64;
    let mut part = vec![0; to_usize(PART_BYTES)];
    let mut span = None;
    let mut at = from;
    while at < end {
        let wanted = to_usize(PART_BYTES.min(end - at));
        let count = file.read_at(part.get_mut(..wanted).unwrap_or_default(), at)?;
        if count == 0 {
            break;
        }
        for (index, bytes) in (0..).zip(part.get(..count).unwrap_or_default().chunks(BLOCK_BYTES)) {
            if bytes.iter().any(|byte| *byte != 0) {
                let start = at + index * block;
                let first = span.map_or(start, |(first, _)| first);
                span = Some((first, (start + block).min(end)));
            }
        }
        at += count as u64;
    }
    Ok(span)
}

/// What stands behind the first lsn that cannot be read.
struct Search {
    life: LifeId,
    /// The first lsn that cannot be read.
    lsn: u64,
    proof: Option<Proof>,
    stray_frames: bool,
    highest_lsn: u64,
    checksum_bytes_left: u64,
}

/// No frame behind the end is further than this from it.
const LSN_DISTANCE_MAX: u64 = 1 << 32;

/// Bytes that look like frames are checksummed up to this many bytes in all, about a second's worth. Ours never reach
/// it; payloads made up to look like frames could otherwise hold up an open for hours.
const CHECKSUM_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

impl Search {
    fn new(life: LifeId, lsn: u64) -> Self {
        Self {
            life,
            lsn,
            proof: None,
            stray_frames: false,
            highest_lsn: lsn.saturating_sub(1),
            checksum_bytes_left: CHECKSUM_BYTES_MAX,
        }
    }

    /// `bytes` stand at `base`, a multiple of the block size, in their file.
    fn look_at(&mut self, bytes: &[u8], base: u64) {
        for (block, index) in bytes.chunks(BLOCK_BYTES).zip(0_u64..) {
            let offset = base + index * BLOCK;
            if let Ok(header) = SegmentHeader::decode(block) {
                self.found_segment(&header);
            }
            if let Ok(header) = BatchHeader::decode(block, self.life) {
                self.found_batch(&header, offset);
            }
        }
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= FRAME_HEADER_BYTES) {
            if at % BLOCK_BYTES == 0 && rest.iter().take(BLOCK_BYTES).all(|byte| *byte == 0) {
                // No frame begins with 32 zeros, so none begins in this block, but in its last bytes.
                at += BLOCK_BYTES - FRAME_HEADER_BYTES;
            } else {
                self.look_for_frame(rest, base + to_u64(at));
            }
            at += 1;
        }
    }

    fn look_for_frame(&mut self, bytes: &[u8], offset: u64) {
        let lsns = self.lsn..=self.lsn.saturating_add(LSN_DISTANCE_MAX);
        if !looks_like_frame(bytes, lsns) {
            return;
        }
        let length = crate::little_endian::u32_at(bytes, 4).map_or(0, u64::from);
        let Some(left) = self.checksum_bytes_left.checked_sub(length) else { return };
        self.checksum_bytes_left = left;
        let Ok(frame) = decode_frame(bytes, self.life) else { return };
        let lsn = frame.header.lsn;
        self.stray_frames = true;
        self.highest_lsn = self.highest_lsn.max(lsn);
        if frame.header.batch_first_lsn() > self.lsn {
            self.proof = self.proof.or(Some(Proof::LaterFrame { lsn, offset }));
        }
    }

    fn found_batch(&mut self, header: &BatchHeader, offset: u64) {
        if header.last_lsn() < self.lsn {
            return;
        }
        self.stray_frames = true;
        self.highest_lsn = self.highest_lsn.max(header.last_lsn());
        if header.durable_lsn >= self.lsn || header.first_lsn > self.lsn {
            let proof = Proof::LaterBatch { durable_lsn: header.first_lsn - 1, offset };
            self.proof = self.proof.or(Some(proof));
        }
    }

    fn found_segment(&mut self, header: &SegmentHeader) {
        if header.before.life == self.life && header.before.next_lsn > self.lsn {
            self.highest_lsn = self.highest_lsn.max(header.before.last_lsn());
            let proof = Proof::LaterSegment { segment: header.number };
            self.proof = self.proof.or(Some(proof));
        }
    }
}
