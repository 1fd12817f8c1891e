//! Programs run to their end: how long each took, what the process itself had at its peak, and never
//! longer than a limit.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::bench::failure::{Context, Failure, Result};
use crate::bench::server;

/// Between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What a program has for ending by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// A program that ended well.
pub(super) struct Ran {
    pub(super) wall_s: f64,
    /// Of the process itself, not of those it started: the last that was seen of it.
    pub(super) peak_kib: f64,
    /// What it printed.
    pub(super) stdout: String,
}

/// A command as it must be for [`run`]: it dies with the bench. No Python hears what ours was told: a sync
/// of ours starts connectors without, and unbuffered output alone makes a pipe's source slower.
pub(super) fn command(program: &Path) -> Command {
    let mut command = server::guarded(&program.to_string_lossy(), None);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PYTHON") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs it with its output in `folder`. Whatever it started is in its process group and ends with it
/// when it takes too long.
pub(super) fn run(mut command: Command, folder: &Path, limit: Duration) -> Result<Ran> {
    let name = format!("{command:?}");
    let (out, err) = (folder.join("stdout.txt"), folder.join("stderr.txt"));
    let file = |path: &Path| File::create(path).context(format!("create {}", path.display()));
    command.stdin(Stdio::null()).stdout(file(&out)?).stderr(file(&err)?).process_group(0);
    let began = Instant::now();
    let mut child = command.spawn().context(format!("start {name}"))?;
    let mut peak_kib = 0.0;
    let status = loop {
        peak_kib = peak_kib_of(child.id()).unwrap_or(peak_kib);
        if let Some(status) = child.try_wait().context("wait for a program")? {
            break status;
        }
        if began.elapsed() > limit {
            end(&mut child);
            return Err(Failure::new(format!("not done after {} s", limit.as_secs())));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let wall_s = began.elapsed().as_secs_f64();
    if !status.success() {
        return Err(ended_badly(status, &err, &out));
    }
    let stdout = String::from_utf8_lossy(&fs::read(&out).context("read the output")?).into_owned();
    Ok(Ran { wall_s, peak_kib, stdout })
}

/// The most memory that a process ever had.
fn peak_kib_of(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let rest = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    rest.trim().strip_suffix(" kB")?.trim().parse().ok()
}

fn end(child: &mut Child) {
    let group = format!("-{}", child.id());
    let signal = |name: &str| {
        // It fails only when all are gone already, which is what is wanted.
        let mut kill = Command::new("kill");
        drop(kill.args(["-s", name, "--", &group]).stderr(Stdio::null()).status());
    };
    signal("TERM");
    let asked = Instant::now();
    while asked.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK_EVERY);
    }
    signal("KILL");
    drop(child.wait());
}

fn ended_badly(status: ExitStatus, err: &Path, out: &Path) -> Failure {
    let said = [err, out].map(|path| fs::read(path).unwrap_or_default());
    let said = said.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let words = said.iter().find(|text| !text.trim().is_empty()).map_or("", String::as_str);
    Failure::new(format!("{status}: {}", server::last_lines(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, limit_ms: u64) -> Result<Ran> {
        let name = format!("bench-timed-{}-{limit_ms}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let mut words = command(Path::new("sh"));
        words.args(["-c", line]);
        let ran = run(words, &folder, Duration::from_millis(limit_ms));
        fs::remove_dir_all(&folder).expect("the folder is still there");
        ran
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_it_started() {
        let began = Instant::now();
        let why = shell("sleep 600 | cat", 100).err().map(|why| why.to_string());
        assert_eq!(why.as_deref(), Some("not done after 0 s"));
        assert!(began.elapsed() < GRACE);
    }

    #[test]
    fn output_and_the_last_words_of_a_failure() {
        assert_eq!(shell("echo 7", 20_000).expect("it runs").stdout, "7\n");
        let why = shell("echo so >&2; exit 3", 30_000).err().map(|why| why.to_string());
        assert_eq!(why.as_deref(), Some("exit status: 3: so"));
    }
}
