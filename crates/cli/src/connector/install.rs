//! Installs connectors: a package of Python in an environment of its own, an image, or any command.
//!
//! `<data>/connectors/<name>/manifest.json` is written last: a folder without one is an installation that
//! was broken off, and is made anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use windlass_connector::docker::{self, Image};
use windlass_connector::package::{self, Installation, PackageError};
use windlass_connector::process::Command;
use windlass_connector::{Cancel, Level, Observer, Side};

use crate::failure::Failure;
use crate::output::{Output, table};

/// Characters of a name.
const NAME_CHARS_MAX: usize = 64;

#[derive(Debug, Args)]
pub(crate) struct DataDir {
    /// Where connectors and syncs are kept
    #[arg(long, env = "WINDLASS_DATA_DIR", default_value = "windlass-data", value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What it is called: source-… or destination-…
    name: String,
    /// The package, if it is not airbyte-NAME; also with a version, or a path
    #[arg(long, value_name = "PACKAGE", conflicts_with = "command")]
    package: Option<String>,
    /// The Python to install it with; without it, 3.11 or 3.10 is looked for
    #[arg(long, value_name = "PROGRAM", conflicts_with = "command")]
    python: Option<PathBuf>,
    /// Any command instead of a package, with its arguments
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// An image of Docker instead, as NAME or NAME:TAG; it is pulled if it is not here
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["command", "package", "python"])]
    image: Option<String>,
    /// The network of the image's containers, for instance host
    #[arg(long, value_name = "NETWORK", requires = "image")]
    network: Option<String>,
    /// A folder of this machine that the image's containers see: FROM:TO or FROM:TO:ro
    #[arg(long = "mount", value_name = "MOUNT", requires = "image")]
    mounts: Vec<String>,
    /// Processors that a container of the image may keep busy, for instance 0.5
    #[arg(long, value_name = "NUMBER", requires = "image")]
    cpus: Option<f64>,
    /// Install it again
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    data: DataDir,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    data: DataDir,
}

pub(crate) fn add(args: &AddArgs, json: bool) -> Result<(), Failure> {
    check_name(&args.name)?;
    let folder = folder(&args.data.data_dir, &args.name);
    let manifest = folder.join("manifest.json");
    let package = args.package.clone().unwrap_or_else(|| format!("airbyte-{}", args.name));
    let image = image_of(args)?;
    let wanted = match (&args.command, &image) {
        (Some(command), _) => json!({ "command": words(command)? }),
        (None, Some(image)) => json!(image),
        (None, None) => json!({ "package": package }),
    };
    make(&args.data.data_dir.join("connectors"))?;
    // Who comes second finds what the first one has installed.
    let told = |text: &str| eprintln!("{text}");
    let turn = package::turn(&folder, &told, &Cancel::new());
    let _turn = turn.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(known) = read_manifest(&manifest)
        && !args.force
        && wanted
            .as_object()
            .is_some_and(|wanted| wanted.iter().all(|(name, value)| known.get(name) == Some(value)))
    {
        return show(json, &known, "is there already; --force installs it again");
    }
    let mut new = match (&args.command, &image) {
        (Some(_), _) => wanted,
        (None, Some(image)) => pull(image, &args.name, wanted, json)?,
        (None, None) => install(&folder, &args.name, &package, args.python.as_deref())?,
    };
    let kept = package::keep(&folder, &args.name, &mut new);
    kept.map_err(|error| Failure::new(error.to_string()))?;
    show(json, &new, "is ready")
}

fn image_of(args: &AddArgs) -> Result<Option<Image>, Failure> {
    let Some(name) = &args.image else { return Ok(None) };
    let wrong = |error| Failure::caused(&error);
    let image = Image::new(name).map_err(wrong)?;
    let (network, mounts, cpus) = (args.network.clone(), args.mounts.clone(), args.cpus);
    Image { network, mounts, cpus, ..image }.checked().map(Some).map_err(wrong)
}

/// Sees to it that an image is here.
fn pull(image: &Image, name: &str, wanted: Value, json: bool) -> Result<Value, Failure> {
    let side = if name.starts_with("destination") { Side::Destination } else { Side::Source };
    let ready = image.ready(side, &Pulling { json }, &Cancel::new());
    ready.map_err(|failure| Failure::new(failure.external_message))?;
    Ok(wanted)
}

/// How far a pull is, on standard error.
struct Pulling {
    json: bool,
}

impl Observer for Pulling {
    fn log(&self, _side: Option<Side>, _level: Level, _text: &str) {}

    fn step(&self, name: &str) {
        if !self.json {
            eprintln!("{name}");
        }
    }
}

fn show(json: bool, manifest: &Value, what: &str) -> Result<(), Failure> {
    Output { json }.show(manifest, || {
        let text = |field: &str| manifest.get(field).and_then(Value::as_str).unwrap_or_default();
        format!("{} {} {what}", text("name"), text("version"))
    })
}

pub(crate) fn list(args: &ListArgs, json: bool) -> Result<(), Failure> {
    let folder = args.data.data_dir.join("connectors");
    let mut found: Vec<Value> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| read_manifest(&entry.ok()?.path().join("manifest.json")))
        .collect();
    found.sort_by_key(|manifest| manifest.get("name").map(ToString::to_string));
    let value = json!({ "connectors": found });
    Output { json }.show(&value, || {
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        if rows.is_empty() {
            return format!("no connectors in {}", folder.display());
        }
        table(&["name", "version", "command"], &rows)
    })
}

fn row(manifest: &Value) -> Vec<String> {
    let text = |field: &str| manifest.get(field).and_then(Value::as_str).unwrap_or_default();
    let command = manifest.get("command").and_then(Value::as_array).into_iter().flatten();
    let command: Vec<&str> =
        command.chain(manifest.get("image")).filter_map(Value::as_str).collect();
    vec![text("name").to_owned(), text("version").to_owned(), command.join(" ")]
}

/// What an image is named with instead of an installed connector.
const IMAGE_PREFIX: &str = "docker:";

/// A name without what is said about where it comes from: `source-faker` of
/// `docker:airbyte/source-faker:7.2.1`.
pub(crate) fn short_name(name: &str) -> &str {
    name.strip_prefix(IMAGE_PREFIX).map_or(name, docker::short_name)
}

/// How an installed connector, or an image, is started.
pub(crate) fn command_of(data: &Path, name: &str) -> Result<Command, Failure> {
    if let Some(image) = name.strip_prefix(IMAGE_PREFIX) {
        let image = Image::new(image).map_err(|error| Failure::caused(&error))?;
        return Ok(Command::image(image));
    }
    check_name(name)?;
    let manifest = folder(data, name).join("manifest.json");
    let known = read_manifest(&manifest).ok_or_else(|| {
        Failure::not_found(format!("there is no connector {name} in {}", data.display()))
            .hint(format!("`windlass connector add {name}` installs it"))
    })?;
    let words = known.get("command").and_then(|words| serde_json::from_value(words.clone()).ok());
    let image = known.get("image").and_then(|_| serde_json::from_value(known.clone()).ok());
    let command = words.map(Command::local).or_else(|| image.map(Command::image));
    command.ok_or_else(|| {
        Failure::damaged(format!("{} has no command", manifest.display()))
            .hint(format!("`windlass connector add {name} --force` installs it again"))
    })
}

/// Splits a command at its spaces; quotes hold words together.
pub(crate) fn words(command: &str) -> Result<Vec<String>, Failure> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if quote.is_some() || words.is_empty() {
        return Err(Failure::new(format!("{command:?} is no command with its arguments")));
    }
    Ok(words)
}

fn folder(data: &Path, name: &str) -> PathBuf {
    data.join("connectors").join(name)
}

fn read_manifest(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn make(folder: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(folder);
    made.map_err(|error| Failure::io(format!("make {}", folder.display()), error))
}

fn check_name(name: &str) -> Result<(), Failure> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(good) {
        return Err(Failure::new(format!("{name:?} is no name of a connector"))
            .hint("names are like source-faker: small letters, digits, - and _"));
    }
    Ok(())
}

fn install(
    folder: &Path,
    name: &str,
    package: &str,
    python: Option<&Path>,
) -> Result<Value, Failure> {
    let bar = ProgressBar::no_length();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    let told = |text: &str| bar.set_message(text.to_owned());
    let job = Installation { folder, program: name, package, python, attempt: None };
    let made = job.run(&told, &Cancel::new());
    bar.finish_and_clear();
    made.map_err(|error| {
        let hint = match error {
            PackageError::NoPython => "--python names one",
            PackageError::Failed { .. } => {
                "--python names another Python, --package another package or version"
            }
            PackageError::NoProgram { .. } => "give the connector the name of its program",
            PackageError::Name(_) | PackageError::Io { .. } | PackageError::Cancelled => {
                return Failure::new(error.to_string());
            }
        };
        Failure::new(error.to_string()).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_at_spaces() {
        let split = |text: &str| words(text).unwrap();
        assert_eq!(split("python3  main.py"), ["python3", "main.py"]);
        assert_eq!(split("'a b' \"c'd\" ''"), ["a b", "c'd", ""]);
        for wrong in ["", "  ", "'a"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_stay_within_the_folder() {
        assert!(check_name("source-faker").is_ok());
        for wrong in ["", "../x", "A", "a/b", ".", &"a".repeat(65)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
