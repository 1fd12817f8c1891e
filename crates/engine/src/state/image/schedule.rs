//! Images of schedules: `s key(8)`.

use std::collections::VecDeque;

use windlass_record::codec::{
    DecodeError, Decoder, Encoder, Field, decode_schedule_settings, encode_schedule_settings,
};
use windlass_record::id::JobKey;
use windlass_record::schedule::{FireCause, ScheduleName, SkipReason};

use super::{IMAGE_VERSION, ImageSink, LoadError, State, keyed};
use crate::state::schedule::{Run, RunOutcome, Schedule};

/// The first byte of their keys.
pub(super) const TAG: u8 = b's';

impl State {
    pub(super) fn write_schedules(&mut self, sink: &mut dyn ImageSink) {
        for (key, image_hash) in std::mem::take(&mut self.schedules.dead) {
            self.dirt.checksum = self.dirt.checksum.wrapping_sub(image_hash);
            sink.delete(&keyed(TAG, key));
        }
        for key in std::mem::take(&mut self.schedules.changed) {
            let Some(schedule) = self.schedules.by_key.get(&key) else { continue };
            let mut value = vec![IMAGE_VERSION];
            write(schedule, &mut Encoder::new(&mut value));
            let old = schedule.image_hash;
            let new = self.put_small(sink, &keyed(TAG, key), &value, old);
            if let Some(schedule) = self.schedules.by_key.get_mut(&key) {
                schedule.image_hash = new;
            }
        }
    }

    pub(super) fn load_schedule(
        &mut self,
        from: &mut Decoder<'_>,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let raw: [u8; 8] = rest.try_into().map_err(|_| LoadError::UnknownKey)?;
        let key = JobKey::from_raw(u64::from_be_bytes(raw));
        let schedule = read(key, hash, from)?;
        self.schedules.insert(schedule);
        Ok(())
    }
}

fn write(schedule: &Schedule, out: &mut Encoder<'_>) {
    out.str(&schedule.name.tenant);
    out.str(&schedule.name.name);
    out.u64(schedule.version);
    encode_schedule_settings(out, &schedule.settings);
    schedule.paused.as_deref().encode(out);
    out.u64(schedule.created_ms);
    out.u64(schedule.updated_ms);
    schedule.next_due_ms.encode(out);
    out.u32(schedule.caught_up);
    schedule.live.encode(out);
    out.u64(u64::try_from(schedule.queued.len()).expect("a length fits 64 bits"));
    for at_ms in &schedule.queued {
        out.u64(*at_ms);
    }
    out.u64(u64::try_from(schedule.runs.len()).expect("a length fits 64 bits"));
    for run in &schedule.runs {
        write_run(run, out);
    }
    out.u64(schedule.started);
    out.u64(schedule.skipped);
    out.u64(schedule.failed);
}

fn read(key: JobKey, hash: u64, from: &mut Decoder<'_>) -> Result<Schedule, DecodeError> {
    let name = ScheduleName { tenant: from.str()?.into(), name: from.str()?.into() };
    Ok(Schedule {
        key,
        name,
        version: from.u64()?,
        settings: decode_schedule_settings(from)?,
        paused: <Option<&str>>::decode(from)?.map(Box::from),
        created_ms: from.u64()?,
        updated_ms: from.u64()?,
        next_due_ms: Field::decode(from)?,
        caught_up: from.u32()?,
        live: Field::decode(from)?,
        queued: (0..from.u64()?).map(|_| from.u64()).collect::<Result<VecDeque<u64>, _>>()?,
        runs: (0..from.u64()?).map(|_| read_run(from)).collect::<Result<VecDeque<Run>, _>>()?,
        started: from.u64()?,
        skipped: from.u64()?,
        failed: from.u64()?,
        image_hash: hash,
    })
}

fn write_run(run: &Run, out: &mut Encoder<'_>) {
    out.u64(run.scheduled_for_ms);
    out.u64(run.at_ms);
    run.cause.encode(out);
    match &run.outcome {
        RunOutcome::Started(key) => {
            out.u8(0);
            key.encode(out);
        }
        RunOutcome::Skipped(why, count) => {
            out.u8(1);
            why.encode(out);
            out.u32(*count);
        }
        RunOutcome::Failed(message) => {
            out.u8(2);
            out.str(message);
        }
    }
}

fn read_run(from: &mut Decoder<'_>) -> Result<Run, DecodeError> {
    Ok(Run {
        scheduled_for_ms: from.u64()?,
        at_ms: from.u64()?,
        cause: FireCause::decode(from)?,
        outcome: match from.u8()? {
            0 => RunOutcome::Started(JobKey::decode(from)?),
            1 => RunOutcome::Skipped(SkipReason::decode(from)?, from.u32()?),
            2 => RunOutcome::Failed(from.str()?.into()),
            tag => return Err(DecodeError::UnknownTag { field: "outcome of a run", tag }),
        },
    })
}
