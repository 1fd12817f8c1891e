//! Images: what is started, and that it is here.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio_stream::StreamExt as _;

use crate::attempt::cancel::Cancel;
use crate::docker::daemon::{self, DockerError, words};
use crate::failure::{Failure, FailureType, Origin};
use crate::observer::Observer;
use crate::process::Side;

/// Characters of a name, with registry and tag.
const NAME_CHARS_MAX: usize = 384;
/// Mounts of one connector.
const MOUNTS_MAX: usize = 32;
/// Layers whose progress is followed.
const LAYERS_MAX: usize = 1_000;
/// Between two words about a pull.
const PROGRESS: Duration = Duration::from_secs(2);

/// A connector that is an image, and what its container gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// With its tag or digest.
    #[serde(rename = "image")]
    pub name: String,
    /// The network it is in, as the daemon names them; its default one otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Folders of the daemon's machine: `/there:/in/the/container`, with `:ro` to read only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// Processors that it may keep busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
}

/// What cannot be started as an image.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ImageError {
    /// It is no name.
    #[error("{0:?} is no name of an image: names are like airbyte/source-faker:7.2.1")]
    Name(String),
    /// It is no mount.
    #[error("{0:?} is no mount: mounts are like /srv/data:/local or /srv/data:/local:ro")]
    Mount(String),
    /// There are too many.
    #[error("an image has at most {MOUNTS_MAX} mounts")]
    Mounts,
    /// It is no network.
    #[error("{0:?} is no network of containers")]
    Network(String),
    /// It is no number of processors.
    #[error("{0:?} is no number of processors")]
    Cpus(String),
}

impl Image {
    /// With the tag `latest` where it names none, and no options.
    ///
    /// # Errors
    /// If the name is none.
    pub fn new(name: &str) -> Result<Self, ImageError> {
        let no_name = || ImageError::Name(name.to_owned());
        let good = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        let is_good = name.len() <= NAME_CHARS_MAX
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric() || "._-".contains(c))
            && name.chars().all(good);
        if !is_good {
            return Err(no_name());
        }
        let last = name.rsplit('/').next().unwrap_or_default();
        // Without a tag the daemon would pull all of them.
        let has_tag = last.contains([':', '@']);
        let name = if has_tag { name.to_owned() } else { format!("{name}:latest") };
        Ok(Self { name, network: None, mounts: Vec::new(), cpus: None })
    }

    /// The same with its options, looked at.
    ///
    /// # Errors
    /// If one of them is none.
    pub fn checked(self) -> Result<Self, ImageError> {
        let Self { name, network, mounts, cpus } = self;
        let image = Self::new(&name)?;
        let is_word = |text: &String| !text.is_empty() && !text.contains(char::is_whitespace);
        if let Some(network) = network.as_ref().filter(|network| !is_word(network)) {
            return Err(ImageError::Network(network.clone()));
        }
        if let Some(cpus) = cpus.filter(|cpus| !(cpus.is_finite() && *cpus > 0.0)) {
            return Err(ImageError::Cpus(cpus.to_string()));
        }
        if mounts.len() > MOUNTS_MAX {
            return Err(ImageError::Mounts);
        }
        if let Some(wrong) = mounts.iter().find(|mount| !is_mount(mount)) {
            return Err(ImageError::Mount(wrong.clone()));
        }
        Ok(Self { network, mounts, cpus, ..image })
    }

    /// Sees to it that it is on this machine: one that is not is pulled, and the observer told how far it is.
    ///
    /// # Errors
    /// If no daemon answers, or has it and can have it.
    pub fn ready(
        &self,
        side: Side,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<(), Box<Failure>> {
        let told = |text: &str| observer.step(text);
        // A pull goes on behind the back of a daemon that nobody listens to; the next one finds what it has.
        let here = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(DockerError::Cancelled),
                here = pull(self, &told) => here,
            }
        };
        daemon::block_on(here).map_err(|error| {
            let (origin, kind) = match &error {
                DockerError::Cancelled => {
                    (Origin::AirbytePlatform, FailureType::ManualCancellation)
                }
                DockerError::NoImage { is_final: true, .. } | DockerError::NoConnector(_) => {
                    (side.origin(), FailureType::ConfigError)
                }
                DockerError::NoImage { is_final: false, .. }
                | DockerError::NoDaemon { .. }
                | DockerError::NoSocket(_)
                | DockerError::Refused { .. } => {
                    (Origin::AirbytePlatform, FailureType::SystemError)
                }
            };
            Box::new(Failure::new(origin, kind, error.to_string()))
        })
    }
}

/// What the last part of an image's name is called: `source-faker` of `airbyte/source-faker:7.2.1`.
#[must_use]
pub fn short_name(image: &str) -> &str {
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split([':', '@']).next().unwrap_or_default()
}

fn is_mount(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [from, to] | [from, to, "ro" | "rw"] => from.starts_with('/') && to.starts_with('/'),
        _ => false,
    }
}

async fn pull(image: &Image, told: &dyn Fn(&str)) -> Result<(), DockerError> {
    let docker = daemon::connect().await?;
    if is_here(&docker, image).await? {
        return Ok(());
    }
    told(&format!("pulling {}", image.name));
    let options = CreateImageOptionsBuilder::default().from_image(&image.name).build();
    let mut answers = std::pin::pin!(docker.create_image(Some(options), None, None));
    let (mut layers, mut said) = (Layers::default(), Instant::now());
    while let Some(answer) = answers.next().await {
        layers.take(answer.map_err(|error| no_image(image, &error))?);
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            told(&format!("pulling {}: {}", image.name, layers.words()));
        }
    }
    if !is_here(&docker, image).await? {
        let why = "the daemon ended the pull without it".to_owned();
        return Err(DockerError::NoImage { image: image.name.clone(), why, is_final: false });
    }
    told(&format!("pulled {}", image.name));
    Ok(())
}

async fn is_here(docker: &Docker, image: &Image) -> Result<bool, DockerError> {
    match docker.inspect_image(&image.name).await {
        Ok(_) => Ok(true),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
        Err(error) => Err(DockerError::refused("look for the image")(error)),
    }
}

fn no_image(image: &Image, error: &Error) -> DockerError {
    let is_final = matches!(error, Error::DockerResponseServerError { status_code: 404, .. });
    DockerError::NoImage { image: image.name.clone(), why: words(error), is_final }
}

/// How far each layer is: bytes that came, of all.
#[derive(Default)]
struct Layers(BTreeMap<String, (i64, i64)>);

impl Layers {
    fn take(&mut self, info: CreateImageInfo) {
        let progress =
            info.progress_detail.filter(|_| info.status.as_deref() == Some("Downloading"));
        let bytes = progress.and_then(|progress| Some((progress.current?, progress.total?)));
        if let (Some(layer), Some(bytes)) = (info.id, bytes)
            && (self.0.len() < LAYERS_MAX || self.0.contains_key(&layer))
        {
            self.0.insert(layer, bytes);
        }
    }

    fn words(&self) -> String {
        let mb = |bytes: i64| format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10);
        let (done, all) = self.0.values().fold((0, 0), |(done, all), (current, total)| {
            (current.saturating_add(done), total.saturating_add(all))
        });
        format!("{} of {} MB", mb(done), mb(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images() {
        let name = |text: &str| Image::new(text).map(|image| image.name);
        let cases = [
            ("airbyte/source-faker", "airbyte/source-faker:latest"),
            ("airbyte/source-faker:7.2.1", "airbyte/source-faker:7.2.1"),
            ("localhost:5000/x", "localhost:5000/x:latest"),
            ("x@sha256:0a", "x@sha256:0a"),
        ];
        for (given, full) in cases {
            assert_eq!(name(given).as_deref(), Ok(full));
        }
        for wrong in ["", "-x", "a b", "a;b", "/x", "x:", "ä", &"x".repeat(400)] {
            assert_eq!(name(wrong), Err(ImageError::Name(wrong.to_owned())));
        }
        assert_eq!(short_name("localhost:5000/a/source-x:1"), "source-x");
    }

    #[test]
    fn options_of_images() {
        let image = |network: &str, mount: &str, cpus| Image {
            network: Some(network.to_owned()),
            mounts: vec![mount.to_owned()],
            cpus: Some(cpus),
            ..Image::new("x").unwrap()
        };
        assert!(image("host", "/a:/b:ro", 0.5).checked().is_ok());
        assert_eq!(image("", "/a:/b", 1.0).checked(), Err(ImageError::Network(String::new())));
        for wrong in ["a:/b", "/a", "/a:/b:rx", "/a:b"] {
            let refused = image("host", wrong, 1.0).checked();
            assert_eq!(refused, Err(ImageError::Mount(wrong.to_owned())));
        }
        assert_eq!(image("host", "/a:/b", 0.0).checked(), Err(ImageError::Cpus("0".to_owned())));
    }
}
