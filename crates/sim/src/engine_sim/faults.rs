//! What breaks, and how it heals.

use windlass_checkpoint::{Checkpoint, Entry, Fault as StoreFault, MemoryCheckpoint, MemoryDisk};
use windlass_log::LogError;
use windlass_partition::recover::OpenError;

use super::Sim;
use super::machine::chain;
use super::plan::Fault;
use crate::disk::{CrashPoint, Restart, SimDisk};

const HOUR_MS: i64 = 3_600_000;
/// Flips tried while the partition is down.
const FLIPS: u64 = 6;

impl Sim {
    /// Now and then, something breaks.
    pub(super) fn maybe_break(&mut self) -> Result<(), String> {
        if self.random.in_range(0..self.plan.fault_every) != 0 {
            return Ok(());
        }
        let Some(fault) = self.random.pick(&self.plan.faults).copied() else { return Ok(()) };
        self.machine.coverage.count("fault", fault.name());
        self.inject(fault)
    }

    fn inject(&mut self, fault: Fault) -> Result<(), String> {
        let disk = &self.machine.disk;
        let clock = &self.machine.clock;
        match fault {
            Fault::PowerLoss => {
                let at = self.random.in_range(1..12);
                disk.crash_at(match self.random.in_range(0..5) {
                    0 => CrashPoint::Write(at),
                    1 => CrashPoint::Sync(at),
                    2 => CrashPoint::Name(1),
                    3 => CrashPoint::DirectorySync(1),
                    _ => CrashPoint::Operation(at),
                });
            }
            Fault::ProcessKill => self.crash(Restart::ProcessKilled),
            Fault::FailedSync => disk.fail_sync_at(self.random.in_range(1..6)),
            Fault::FullDisk => {
                let used: usize = disk
                    .paths()
                    .iter()
                    .filter_map(|path| disk.content(path))
                    .map(|content| content.len())
                    .sum();
                let used = u64::try_from(used).unwrap_or(u64::MAX);
                disk.set_capacity_bytes(Some(used + self.random.in_range(0..8_192)));
                self.full_until = self.step + self.random.in_range(5..80);
            }
            Fault::BitFlip => self.flip_bits()?,
            Fault::CheckpointRefused => self.break_store(StoreFault::Refused),
            Fault::CheckpointTorn => {
                let after_entries = self.random.in_range(0..8);
                self.break_store(StoreFault::Torn { after_entries });
            }
            Fault::CheckpointFull => {
                let after_entries = self.random.in_range(0..8);
                self.break_store(StoreFault::OutOfSpace { after_entries });
            }
            Fault::CheckpointUnknown => self.break_store(StoreFault::DurableButFailed),
            Fault::WallAhead => clock.step_wall(HOUR_MS),
            Fault::WallBack => clock.step_wall(-HOUR_MS),
            Fault::Outage => {
                let restart = if self.random.chance(50) {
                    Restart::PowerLoss
                } else {
                    Restart::ProcessKilled
                };
                self.crash(restart);
                self.machine.clock.outage(3_600_000);
            }
            Fault::Suspend => {
                let minutes = i64::try_from(self.random.in_range(1..90)).unwrap_or(1);
                clock.step_wall(minutes * 60_000);
            }
            Fault::MonotonicJump => clock.jump_monotonic(self.random.in_range(1..600_000)),
            Fault::FrozenClock => {
                clock.freeze();
                self.frozen_until = self.step + self.random.in_range(2..20);
            }
        }
        Ok(())
    }

    fn break_store(&mut self, fault: StoreFault) {
        self.machine.store_disk.fail_next_write(fault);
        if let Some(life) = &mut self.life {
            life.ask_checkpoint();
        }
    }

    pub(super) fn heal_in_time(&mut self) {
        if self.step >= self.full_until {
            self.heal_disk();
        }
        if self.step >= self.frozen_until && self.machine.clock.is_frozen() {
            self.machine.clock.thaw();
        }
    }

    pub(super) fn heal_disk(&mut self) {
        self.full_until = 0;
        self.machine.disk.set_capacity_bytes(None);
    }

    /// Closes the partition in good order, so that the one case is excluded that a single disk
    /// cannot tell from a torn write, and flips bits in copies of what it left: each is found, or
    /// does no harm.
    fn flip_bits(&mut self) -> Result<(), String> {
        let Some(life) = self.life.take() else { return Ok(()) };
        life.close();
        let crashed = self.machine.disk.is_crashed();
        self.crash(if crashed { Restart::PowerLoss } else { Restart::ProcessKilled });
        if crashed {
            return Ok(());
        }
        // Marks, and whatever else an opening settles.
        self.ensure_started()?;
        let Some(life) = self.life.take() else { return Ok(()) };
        life.close();
        if self.machine.disk.is_crashed() {
            self.crash(Restart::PowerLoss);
            return Ok(());
        }
        for _ in 0..FLIPS {
            match self.random.in_range(0..4) {
                0 | 1 => self.flip_log()?,
                2 => self.flip_store()?,
                _ => self.flip_image()?,
            }
        }
        self.crash(Restart::ProcessKilled);
        Ok(())
    }

    fn flip_log(&mut self) -> Result<(), String> {
        let disk = self.machine.disk.copy(self.random.next_u64());
        let paths = disk.paths();
        let Some(path) = self.random.pick(&paths).cloned() else { return Ok(()) };
        let bytes = disk.content(&path).map_or(0, |content| content.len());
        let bytes = u64::try_from(bytes).unwrap_or(0);
        if bytes == 0 {
            return Ok(());
        }
        let offset = self.random.in_range(0..bytes);
        disk.flip_bit(&path, usize::try_from(offset).unwrap_or(0), 3);
        let store = copy_store(&self.machine.store_disk, None)?;
        self.check_damaged(disk, &store, &format!("bit 3 of byte {offset} of {}", path.display()))
    }

    fn flip_store(&mut self) -> Result<(), String> {
        let contents = self.machine.store_disk.contents();
        let keys: Vec<&Vec<u8>> = contents.keys().collect();
        let Some(key) = self.random.pick(&keys).map(|key| (*key).clone()) else { return Ok(()) };
        let disk = self.machine.disk.copy(self.random.next_u64());
        let store = copy_store(&self.machine.store_disk, None)?;
        store.damage(&key);
        self.check_damaged(disk, &store, &format!("the value of {key:02x?}"))
    }

    /// A value of the state that the store itself takes for whole: the state's checksum finds it.
    fn flip_image(&mut self) -> Result<(), String> {
        let contents = self.machine.store_disk.contents();
        // The checksum is that of the engine's state. Payloads and finished jobs are not in it.
        let of_state = |key: &&Vec<u8>| !matches!(key.first(), Some(b'p' | b'D' | b'f'));
        let keys: Vec<&Vec<u8>> = contents.keys().filter(of_state).collect();
        let Some(key) = self.random.pick(&keys).copied() else { return Ok(()) };
        let mut value = contents.get(key).cloned().unwrap_or_default();
        let at = self.random.in_range(0..u64::try_from(value.len()).unwrap_or(0).max(1));
        let bit = u32::try_from(self.random.in_range(0..8)).unwrap_or(0);
        let Some(byte) = value.get_mut(usize::try_from(at).unwrap_or(0)) else { return Ok(()) };
        *byte ^= 1_u8.rotate_left(bit);
        let disk = self.machine.disk.copy(self.random.next_u64());
        let store = copy_store(&self.machine.store_disk, Some((key, &value)))?;
        match self.machine.recover_copy(disk, &store) {
            Err(OpenError::Checksum { .. } | OpenError::Image { .. }) => {
                self.machine.coverage.count("bit flip", "found by the checksum of the state");
                Ok(())
            }
            Err(error) => Err(format!("a flip in image {key:02x?}: {}", chain(&error))),
            Ok(_) => Err(format!("bit {bit} of byte {at} of image {key:02x?}: nobody saw it")),
        }
    }

    fn check_damaged(&mut self, disk: SimDisk, store: &MemoryDisk, at: &str) -> Result<(), String> {
        match self.machine.recover_copy(disk, store) {
            Ok(mut recovered) => {
                self.machine.coverage.count("bit flip", "did no harm");
                let compared = self.machine.shadow.compare(&mut recovered.core, store.contents());
                compared.map_err(|why| format!("{at} was flipped and nobody saw it: {why}"))
            }
            Err(OpenError::Log(LogError::Damaged(_)) | OpenError::Checkpoint(_)) => {
                self.machine.coverage.count("bit flip", "found");
                Ok(())
            }
            Err(error) => Err(format!("{at} was flipped: {}", chain(&error))),
        }
    }
}

/// Another store with the same content, but for one value.
fn copy_store(disk: &MemoryDisk, change: Option<(&[u8], &[u8])>) -> Result<MemoryDisk, String> {
    let copy = MemoryDisk::new();
    let Some(stamp) = disk.stamp() else { return Ok(copy) };
    let contents = disk.contents();
    let mut entries = contents.iter().map(|(key, value)| {
        let changed = change.filter(|(changed, _)| changed == key).map(|(_, value)| value);
        Ok(Entry::put(&**key, changed.unwrap_or(value)))
    });
    MemoryCheckpoint::open(&copy)
        .write(&mut entries, &stamp)
        .map_err(|error| format!("copying the store failed: {error}"))?;
    Ok(copy)
}
