//! Sources of PyPI: through a sync of ours, through a pipe of the shell into the same destination, and
//! through the peers. Every run is counted at its end; one that lost a record has no figure.

use serde_json::{Map, Value, json};

use super::connectors::{Connectors, KINDS, Source};
use super::peers::{MELTANO, Meltano, PYAIRBYTE, PyAirbyte, Runs};
use crate::bench::OURS;
use crate::bench::args::Args;
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::peer::Workplace;
use crate::bench::report::{Sample, rounded};

/// What our own syncs are, in words.
const WORDS: &str = "`windlass sync run` into a destination of the real airbyte-cdk that writes SQLite; the \
                     catalog is given, as the shell's pipe has it; wall time of the process";

/// The wall times of one system on one source, or why there are none.
type Figure<'a> = std::result::Result<&'a Sample, &'a Failure>;

type SetUp = fn(&Workplace) -> Result<Box<dyn Runs>>;

/// All that could be installed, and why the rest could not.
pub(super) struct Installed {
    connectors: Result<Connectors>,
    sources: Vec<Result<()>>,
    peers: Vec<(&'static str, Result<Box<dyn Runs>>)>,
}

impl Installed {
    pub(super) fn new(workplace: &Workplace, args: &Args) -> Self {
        let connectors = Connectors::set_up(workplace);
        let sources = KINDS.iter().map(|kind| match &connectors {
            Ok(connectors) => connectors.add(&[kind.name]),
            Err(why) => Err(why.clone()),
        });
        let peers: [(&str, SetUp); 2] =
            [(PYAIRBYTE, PyAirbyte::set_up), (MELTANO, Meltano::set_up)];
        let wanted = peers.into_iter().filter(|(name, _)| args.wants(name));
        Self {
            sources: sources.collect(),
            peers: wanted.map(|(name, set_up)| (name, set_up(workplace))).collect(),
            connectors,
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let word = |outcome: &Result<()>| match outcome {
            Ok(()) => "installed".to_owned(),
            Err(why) => format!("skipped: {why}"),
        };
        let kinds = KINDS.iter().zip(&self.sources);
        let sources = kinds.map(|(kind, outcome)| format!("{}: {}", kind.name, word(outcome)));
        let peers = self.peers.iter().map(|(name, peer)| match peer {
            Ok(peer) => format!("{name}: {}", peer.version()),
            Err(why) => format!("{name}: skipped: {why}"),
        });
        sources.chain(peers).collect()
    }
}

/// What was found.
pub(super) struct Real {
    sources: Vec<Of>,
    peers: Vec<(&'static str, Result<(String, &'static str)>)>,
}

/// What was found about one source.
struct Of {
    key: &'static str,
    /// Or why nothing was run.
    size: Result<Size>,
    /// If it was asked for.
    ours: Option<Result<Ours>>,
    peers: Vec<(&'static str, Result<Sample>)>,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    records: u64,
    bytes: u64,
    alone_s: f64,
}

/// A sync of ours beside the shell's pipe.
#[derive(Default)]
struct Ours {
    sync_s: Sample,
    pipe_s: Sample,
    /// The one minus the other, of runs one after the other.
    overhead_s: Sample,
    peak_kib: f64,
}

impl Real {
    pub(super) fn measure(installed: &Installed, workplace: &Workplace, args: &Args) -> Self {
        let rounds = if args.quick { 1 } else { 3 };
        let mut sources = Vec::new();
        for (kind, added) in KINDS.iter().zip(&installed.sources) {
            let prepared = match (&installed.connectors, added) {
                (Ok(connectors), Ok(())) => workplace
                    .dir("syncs")
                    .and_then(|folder| connectors.prepare(kind, &folder.join(kind.key), args.quick))
                    .map(|source| (connectors, source)),
                (Err(why), _) | (Ok(_), Err(why)) => Err(why.clone()),
            };
            let mut of = Of {
                key: kind.key,
                size: prepared.as_ref().map(size).map_err(Clone::clone),
                ours: None,
                peers: Vec::new(),
            };
            if let Ok((connectors, source)) = &prepared {
                of.ours = args.wants(OURS).then(|| Ours::measure(connectors, source, rounds));
                for (name, peer) in &installed.peers {
                    if let Ok(peer) = peer {
                        of.peers.push((*name, measure_peer(name, &**peer, source, rounds)));
                    }
                }
            }
            sources.push(of);
        }
        let peers = installed.peers.iter().map(|(name, peer)| {
            let about = peer.as_ref().map(|peer| (peer.version(), peer.words()));
            (*name, about.map_err(Clone::clone))
        });
        Self { sources, peers: peers.collect() }
    }

    pub(super) fn by_system(&self) -> Vec<(&'static str, Map<String, Value>)> {
        let mut systems: Vec<(&'static str, Map<String, Value>)> = Vec::new();
        if let Some(ours) = self.ours_json() {
            systems.push((OURS, ours));
        }
        for (name, about) in &self.peers {
            let mut fields = Map::new();
            match about {
                Ok((version, words)) => {
                    fields.insert("version".to_owned(), json!(version));
                    fields.insert("configuration".to_owned(), json!(words));
                    self.speeds(|of| of.peer(name), &mut fields);
                }
                Err(why) => {
                    fields.insert("skipped".to_owned(), json!(why.to_string()));
                }
            }
            systems.push((name, fields));
        }
        systems
    }

    fn ours_json(&self) -> Option<Map<String, Value>> {
        // Nothing where it was not asked for.
        self.sources.iter().find(|of| of.ours.is_some() || of.size.is_err())?;
        let mut fields = Map::new();
        self.speeds(|of| Some(of.ours.as_ref()?.as_ref().map(|it| &it.sync_s)), &mut fields);
        let (mut overhead, mut memory, mut details) = (Map::new(), Map::new(), Map::new());
        for of in &self.sources {
            let (Ok(size), Some(Ok(ours))) = (&of.size, &of.ours) else { continue };
            let key = of.key.to_owned();
            overhead.insert(key.clone(), json!(rounded(ours.overhead_s.median(), 3)));
            memory.insert(key.clone(), json!(ours.peak_kib));
            details.insert(key, ours.json(size));
        }
        fields.insert("sync_overhead_s".to_owned(), overhead.into());
        fields.insert("sync_runner_peak_rss_kib".to_owned(), memory.into());
        details.insert("configuration".to_owned(), json!(WORDS));
        fields.insert("sync_of_connectors".to_owned(), details.into());
        Some(fields)
    }

    /// Records and MB a second by source, and why there are none.
    fn speeds<'a>(
        &'a self,
        of_system: impl Fn(&'a Of) -> Option<Figure<'a>>,
        fields: &mut Map<String, Value>,
    ) {
        let (mut records, mut mb) = (Map::new(), Map::new());
        let (mut walls, mut skipped) = (Map::new(), Map::new());
        for of in &self.sources {
            let key = of.key.to_owned();
            match (&of.size, of_system(of)) {
                (Ok(size), Some(Ok(sample))) => {
                    let wall_s = sample.median();
                    records.insert(key.clone(), json!((size.records as f64 / wall_s).round()));
                    let speed = size.bytes as f64 / 1e6 / wall_s;
                    mb.insert(key.clone(), json!(rounded(speed, 2)));
                    walls.insert(key, json!(rounded(wall_s, 2)));
                }
                (Err(why), _) | (Ok(_), Some(Err(why))) => {
                    skipped.insert(key, json!(why.to_string()));
                }
                (Ok(_), None) => {}
            }
        }
        fields.insert("sync_records_per_s".to_owned(), records.into());
        fields.insert("sync_mb_per_s".to_owned(), mb.into());
        fields.insert("sync_wall_s".to_owned(), walls.into());
        if !skipped.is_empty() {
            fields.insert("sync_skipped".to_owned(), skipped.into());
        }
    }

    /// The largest of all sources.
    pub(super) fn overhead_s(&self) -> Option<f64> {
        self.ours().map(|ours| ours.overhead_s.median()).reduce(f64::max)
    }

    pub(super) fn peak_kib(&self) -> Option<f64> {
        self.ours().map(|ours| ours.peak_kib).reduce(f64::max)
    }

    fn ours(&self) -> impl Iterator<Item = &Ours> {
        self.sources.iter().filter_map(|of| of.ours.as_ref()?.as_ref().ok())
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        for of in &self.sources {
            let size = match &of.size {
                Ok(size) => size,
                Err(why) => {
                    lines.push(format!("{} skipped: {why}", of.key));
                    continue;
                }
            };
            lines.push(format!(
                "{}, {} records of {} B, {:.2} s alone",
                of.key,
                size.records,
                size.bytes / size.records.max(1),
                size.alone_s
            ));
            if let Some(Ok(ours)) = &of.ours {
                lines.push(line("shell pipe", size, &Ok(ours.pipe_s.clone())));
                lines.push(line(OURS, size, &Ok(ours.sync_s.clone())));
                lines.push(format!(
                    "  {:<12} {:.3} s more than the pipe, {:.1} MB of the runner",
                    "",
                    ours.overhead_s.median(),
                    ours.peak_kib * 1024.0 / 1e6
                ));
            }
            if let Some(Err(why)) = &of.ours {
                lines.push(format!("  {OURS:<12} failed: {why}"));
            }
            lines.extend(of.peers.iter().map(|(name, outcome)| line(name, size, outcome)));
        }
        for (name, about) in &self.peers {
            lines.push(match about {
                Ok((version, words)) => format!("{name} {version}: {words}"),
                Err(why) => format!("{name} skipped: {why}"),
            });
        }
        lines
    }

    /// What we installed and could not run; a peer that does not run is skipped.
    pub(super) fn faults(&self) -> Vec<String> {
        let fault = |of: &Of| match &of.ours {
            Some(Err(why)) => Some(format!("{OURS}: sync of {}: {why}", of.key)),
            Some(Ok(_)) | None => None,
        };
        self.sources.iter().filter_map(fault).collect()
    }
}

impl Of {
    fn peer(&self, name: &str) -> Option<Figure<'_>> {
        let (_, outcome) = self.peers.iter().find(|(peer, _)| *peer == name)?;
        Some(outcome.as_ref())
    }
}

impl Ours {
    fn measure(connectors: &Connectors, source: &Source, rounds: usize) -> Result<Self> {
        let mut ours = Self::default();
        // Once to nowhere: the destination's files are cold.
        connectors.pipe(source)?;
        for round in 0..rounds {
            // Each of both is the first in turn.
            let (pipe, sync) = if round % 2 == 0 {
                let pipe = connectors.pipe(source)?;
                (pipe, connectors.sync(source)?)
            } else {
                let sync = connectors.sync(source)?;
                (connectors.pipe(source)?, sync)
            };
            ours.pipe_s.add(pipe.wall_s);
            ours.sync_s.add(sync.wall_s);
            ours.overhead_s.add(sync.wall_s - pipe.wall_s);
            ours.peak_kib = ours.peak_kib.max(sync.peak_kib);
            eprintln!(
                "bench: {}: pipe {:.2} s, sync {:.2} s, runner {} KiB",
                source.kind.key, pipe.wall_s, sync.wall_s, sync.peak_kib
            );
        }
        Ok(ours)
    }

    fn json(&self, size: &Size) -> Value {
        json!({
            "records": size.records,
            "bytes": size.bytes,
            "source_alone_s": rounded(size.alone_s, 3),
            "pipe_s": rounded(self.pipe_s.median(), 3),
            "sync_s": rounded(self.sync_s.median(), 3),
            "spread": {
                "pipe_s": self.pipe_s.spread(3),
                "sync_s": self.sync_s.spread(3),
                "overhead_s": self.overhead_s.spread(3),
            },
        })
    }
}

fn measure_peer(name: &str, peer: &dyn Runs, source: &Source, rounds: usize) -> Result<Sample> {
    let mut sample = Sample::default();
    for _ in 0..rounds {
        let wall_s = peer.run(source).context(format!("run {name}"))?;
        eprintln!("bench: {}: {name} {wall_s:.2} s", source.kind.key);
        sample.add(wall_s);
    }
    Ok(sample)
}

fn size((_, source): &(&Connectors, Source)) -> Size {
    Size { records: source.records, bytes: source.bytes, alone_s: source.alone_s }
}

fn line(name: &str, size: &Size, outcome: &Result<Sample>) -> String {
    match outcome {
        Ok(sample) => {
            let wall_s = sample.median();
            format!(
                "  {name:<12} {wall_s:.2} s, {:.0} records/s, {:.2} MB/s",
                size.records as f64 / wall_s,
                size.bytes as f64 / 1e6 / wall_s
            )
        }
        Err(why) => format!("  {name:<12} skipped: {why}"),
    }
}
