//! A connector as a container, through the API of the Docker daemon of this machine.
//!
//! To the attempt a container is a process like any other: the helper's `container` stands in for it (see
//! [`program`](crate::process::program)), forwards its streams and signals, and ends as it ended. So the pipe, the
//! graces, the guard and the lock are the same for both; what is different is here:
//!
//! * [`image`] is what is started, and sees to it that it is on this machine;
//! * [`container`] is the stand-in: it makes the container, gives it its files, and is its end;
//! * [`sweep`](mod@sweep) finds containers by their labels, whoever started them, and removes them.
//!
//! No daemon is asked anything unless a connector is an image: a [`Mark`](sweep::Mark) in the attempt's folder says
//! that there may be a container, from before there is one until it is known that there is none.

pub mod container;
mod daemon;
pub mod image;
pub mod sweep;

pub use daemon::{DockerError, HOST, address};
pub use image::{Image, ImageError, short_name};

/// The attempt of a container: a label.
const ATTEMPT_LABEL: &str = "windlass.attempt";
/// Its side.
const SIDE_LABEL: &str = "windlass.side";
