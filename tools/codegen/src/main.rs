//! Generates the Rust of the gRPC faces from their proto files: the server's half into the face,
//! the client's half to who calls it. No `protoc` needed. After a change of a proto file run
//!
//! ```text
//! cargo run --manifest-path tools/codegen/Cargo.toml
//! ```
//!
//! What it writes is committed. The head of each file carries the checksum and length of its proto
//! file; `cargo xtask tidy` compares them with the file as it is.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// A proto file and where its Rust goes.
struct Source {
    proto: &'static str,
    /// Where its imports would begin.
    root: &'static str,
    /// What prost names the file of its package.
    file: &'static str,
    /// What its users call it.
    module: &'static str,
    targets: &'static [(Half, &'static str)],
    /// How fields of type `bytes` come.
    bytes: &'static [&'static str],
    /// Fields behind a pointer: what few messages have, in messages that come by the hundred.
    boxed: &'static [&'static str],
}

/// Which half of the service a crate gets.
#[derive(Clone, Copy)]
enum Half {
    Server,
    Client,
}

const SOURCES: &[Source] = &[
    Source {
        proto: "crates/api-native/proto/windlass/v1/windlass.proto",
        root: "crates/api-native/proto",
        file: "windlass.v1.rs",
        module: "v1",
        targets: &[
            (Half::Server, "crates/api-native/src/generated"),
            (Half::Client, "crates/worker/src/generated"),
        ],
        bytes: &["."],
        boxed: &["windlass.v1.NewJob.options", "windlass.v1.JobView.options"],
    },
    Source {
        proto: "crates/api-zeebe/proto/gateway.proto",
        root: "crates/api-zeebe/proto",
        file: "gateway_protocol.rs",
        module: "protocol",
        targets: &[
            (Half::Server, "crates/api-zeebe/src/generated"),
            (Half::Client, "crates/api-zeebe/tests/generated"),
        ],
        bytes: &["."],
        boxed: &[],
    },
    Source {
        proto: "crates/api-zeebe/proto/grpc/health/v1/health.proto",
        root: "crates/api-zeebe/proto",
        file: "grpc.health.v1.rs",
        module: "health_v1",
        targets: &[
            (Half::Server, "crates/api-zeebe/src/generated"),
            (Half::Client, "crates/api-zeebe/tests/generated"),
        ],
        bytes: &[],
        boxed: &[],
    },
];

/// Lints that generated code may break. Restriction lints are not part of `clippy::all`.
const LINTS_ALLOWED: &str = "missing_docs, unreachable_pub, unused_qualifications, clippy::all, \
                             clippy::wildcard_enum_match_arm, clippy::unwrap_used";

fn main() -> ExitCode {
    match SOURCES.iter().try_for_each(generate) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to generate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate(source: &Source) -> Result<(), Box<dyn Error>> {
    let root = root()?;
    let proto = fs::read(root.join(source.proto))?;
    let head = head(source, &proto);
    let descriptors = protox::compile([root.join(source.proto)], [root.join(source.root)])?;
    for (half, folder) in source.targets {
        let folder = root.join(folder);
        fs::create_dir_all(&folder)?;
        let scratch = env::temp_dir().join(format!("windlass-codegen-{}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        let mut builder = tonic_prost_build::configure()
            .build_server(matches!(half, Half::Server))
            .build_client(matches!(half, Half::Client))
            .out_dir(&scratch);
        for path in source.bytes {
            builder = builder.bytes(path);
        }
        for path in source.boxed {
            builder = builder.boxed(path);
        }
        builder.compile_fds(descriptors.clone())?;
        let body = fs::read_to_string(scratch.join(source.file))?;
        fs::remove_dir_all(&scratch)?;
        let file = folder.join(source.file);
        fs::write(&file, format!("{head}{body}"))?;
        format(&root, &file)?;
        println!("{}", file.display());
    }
    Ok(())
}

fn head(source: &Source, proto: &[u8]) -> String {
    let Source { proto: path, file, module, .. } = source;
    let checksum = crc32c::crc32c(proto);
    let bytes = proto.len();
    format!(
        "//! @generated from {path} crc32c:{checksum:08x} bytes:{bytes}\n\
         //! by tools/codegen; a file module: `#[path = \"generated/{file}\"] pub mod {module};`\n\n\
         #![allow({LINTS_ALLOWED})]\n\n"
    )
}

/// As `cargo fmt` would, so that `cargo fmt --check` agrees.
fn format(root: &Path, file: &Path) -> Result<(), Box<dyn Error>> {
    let status = Command::new("rustfmt")
        .arg("--edition=2024")
        .arg("--config-path")
        .arg(root.join("rustfmt.toml"))
        .arg(file)
        .current_dir(root)
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("rustfmt: {status}").into()) }
}

fn root() -> Result<PathBuf, Box<dyn Error>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(2).ok_or("tools/codegen is two folders below the root")?;
    Ok(root.to_owned())
}
