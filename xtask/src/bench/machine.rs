//! The machine a measurement was taken on.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use super::failure::{Context, Result};
use super::memory::touch_gb_per_s;

/// Bytes of one measured write.
const BLOCK: usize = 4096;
/// Writes measured.
const WRITES: usize = 2000;
/// The file is zero-filled once to this length and then overwritten round and round.
const FILE_BLOCKS: usize = 1024;

/// What figures depend on besides the systems.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Cores this process may use.
    pub(crate) cores: usize,
    /// The processor's name.
    pub(crate) cpu: String,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// One-minute load average before the first run: a noisy machine shows here.
    pub(crate) load_before: f64,
    /// Overwrite of a zero-filled 4 KiB block and fdatasync, median in microseconds.
    pub(crate) fsync_p50_us: f64,
    /// The same, 99th percentile.
    pub(crate) fsync_p99_us: f64,
    /// How fast memory is written that was not looked at for a while.
    pub(crate) memory_first_gb_per_s: f64,
    /// How fast the same memory is written when it is taken again.
    pub(crate) memory_again_gb_per_s: f64,
}

impl Machine {
    /// Looks at the machine; the fsync is measured in `dir`, on the disk the systems use.
    pub(crate) fn look(dir: &Path) -> Result<Self> {
        let cores = std::thread::available_parallelism().context("count the cores")?.get();
        let (fsync_p50_us, fsync_p99_us) = measure_fsync(dir)?;
        let (memory_first_gb_per_s, memory_again_gb_per_s) = touch_gb_per_s()?;
        Ok(Self {
            cores,
            cpu: proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            memory_mib: memory_mib("MemTotal"),
            kernel: first_word("/proc/sys/kernel/osrelease").unwrap_or_default(),
            load_before: first_word("/proc/loadavg")
                .and_then(|word| word.parse().ok())
                .unwrap_or(f64::NAN),
            fsync_p50_us,
            fsync_p99_us,
            memory_first_gb_per_s,
            memory_again_gb_per_s,
        })
    }
}

fn measure_fsync(dir: &Path) -> Result<(f64, f64)> {
    let path = dir.join("fsync.probe");
    let file = File::create(&path).context(format!("create {}", path.display()))?;
    file.write_all_at(&vec![0; BLOCK * FILE_BLOCKS], 0).context("fill the probe file")?;
    file.sync_all().context("sync the probe file")?;
    let mut micros = Vec::with_capacity(WRITES);
    for write in 0..WRITES {
        let block = [u8::try_from(write % 251).unwrap_or(0); BLOCK];
        let offset = (write % FILE_BLOCKS) * BLOCK;
        let started = Instant::now();
        file.write_all_at(&block, offset as u64).context("write the probe file")?;
        file.sync_data().context("sync the probe file")?;
        micros.push(started.elapsed().as_secs_f64() * 1e6);
    }
    fs::remove_file(&path).context("remove the probe file")?;
    micros.sort_by(f64::total_cmp);
    let at = |rank: usize| micros.get(rank).copied().unwrap_or(f64::NAN);
    Ok((at(WRITES / 2), at(WRITES * 99 / 100)))
}

/// What the kernel says of its memory under a name; 0 if nothing.
pub(crate) fn memory_mib(name: &str) -> u64 {
    proc_value("/proc/meminfo", name)
        .and_then(|value| value.split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}

fn proc_value(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_word(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()?.split_whitespace().next().map(str::to_owned)
}
