//! Whatever stands in the files, the log answers with data or a typed error: it never panics, and never invents a frame.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use windlass_log::batch::BatchHeader;
use windlass_log::file::{inspect, repair, verify};
use windlass_log::frame::decode_frame;
use windlass_log::fs::OsFileSystem;
use windlass_log::{
    BatchBuilder, EpochRecord, EpochRequest, FileLog, FileLogOptions, FrameKind, Housekeeping,
    LifeId, Log, NewLog, ReadFrom,
};

const OPTIONS: FileLogOptions = FileLogOptions {
    segment_bytes: 16 * 1024,
    reserve_segments: 1,
    recycled_segments_max: 1,
    mark_batches: 1000,
    housekeeping: Housekeeping::InLine,
};

#[derive(Debug, Clone)]
struct Scribble {
    file: usize,
    offset: usize,
    bytes: Vec<u8>,
}

fn scribble() -> impl Strategy<Value = Scribble> {
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..64),
        Just(vec![0; 600]),
        Just(vec![0xFF; 40]),
    ];
    (0..3_usize, 0..16_384_usize, bytes).prop_map(|(file, offset, bytes)| Scribble {
        file,
        offset,
        bytes,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decoders_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let life = LifeId::from_raw(1);
        prop_assert!(decode_frame(&bytes, life).is_err());
        prop_assert!(BatchHeader::decode(&bytes, life).is_err());
        let _ = EpochRecord::decode(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn scribbled_logs_never_panic(scribbles in proptest::collection::vec(scribble(), 1..4)) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("log");
        let new = NewLog { life: LifeId::from_raw(5), partition: 0, first_lsn: 1 };
        let log = FileLog::create(Arc::new(OsFileSystem), &dir, &new, OPTIONS).unwrap();
        let mut tail = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 0 }).unwrap().tail;
        for _ in 0..4 {
            let mut builder = BatchBuilder::new();
            builder.start(&tail, 0);
            builder.frame(|buffer| buffer.extend_from_slice(&[7; 500]));
            let mut batch = builder.finish();
            log.append(&mut batch).unwrap();
            tail = batch.tail_after();
        }
        drop(log);
        let files = ["marks", "segment-0000000001.log", "segment-0000000002.log"];
        for scribble in &scribbles {
            let path = dir.join(files[scribble.file]);
            let mut content = fs::read(&path).unwrap();
            for (byte, new) in content.iter_mut().skip(scribble.offset).zip(&scribble.bytes) {
                *byte = *new;
            }
            fs::write(&path, content).unwrap();
        }
        let _ = verify(&OsFileSystem, &dir);
        let _ = inspect(&OsFileSystem, &dir, &mut |_| {});
        let open_and_read = || -> Result<(), windlass_log::LogError> {
            let log = FileLog::open(Arc::new(OsFileSystem), &dir, 0, OPTIONS)?;
            let mut reader = log.read(&ReadFrom::lsn(log.status().first_lsn))?;
            while let Some(entry) = reader.next_entry()? {
                assert!(entry.lsn <= 5);
                assert!(entry.kind == FrameKind::Epoch || entry.payload == [7; 500]);
            }
            Ok(())
        };
        if open_and_read().is_err() && repair(&OsFileSystem, &dir).is_ok() {
            open_and_read().unwrap();
        }
    }
}
