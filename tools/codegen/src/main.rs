//! Generates the Rust of the native API from its proto file: the server's half into `api-native`,
//! the client's half into `worker`. No `protoc` needed. After a change of the proto file run
//!
//! ```text
//! cargo run --manifest-path tools/codegen/Cargo.toml
//! ```
//!
//! What it writes is committed. The head of each file carries the checksum and length of the proto
//! file; `cargo xtask tidy` compares them with the file as it is.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

const PROTO: &str = "crates/api-native/proto/windlass/v1/windlass.proto";
const PROTO_ROOT: &str = "crates/api-native/proto";
/// What prost names the file of package `windlass.v1`.
const FILE: &str = "windlass.v1.rs";

/// Which half of the service a crate gets.
#[derive(Clone, Copy)]
enum Half {
    Server,
    Client,
}

const TARGETS: &[(Half, &str)] = &[
    (Half::Server, "crates/api-native/src/generated"),
    (Half::Client, "crates/worker/src/generated"),
];

/// Lints that generated code may break. Restriction lints are not part of `clippy::all`.
const LINTS_ALLOWED: &str = "missing_docs, unreachable_pub, unused_qualifications, clippy::all, \
                             clippy::wildcard_enum_match_arm, clippy::unwrap_used";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to generate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let root = root()?;
    let proto = fs::read(root.join(PROTO))?;
    let head = head(&proto);
    let descriptors = protox::compile([root.join(PROTO)], [root.join(PROTO_ROOT)])?;
    for (half, folder) in TARGETS {
        let folder = root.join(folder);
        fs::create_dir_all(&folder)?;
        let scratch = env::temp_dir().join(format!("windlass-codegen-{}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        tonic_prost_build::configure()
            .build_server(matches!(half, Half::Server))
            .build_client(matches!(half, Half::Client))
            .bytes(".")
            .out_dir(&scratch)
            .compile_fds(descriptors.clone())?;
        let body = fs::read_to_string(scratch.join(FILE))?;
        fs::remove_dir_all(&scratch)?;
        let file = folder.join(FILE);
        fs::write(&file, format!("{head}{body}"))?;
        format(&root, &file)?;
        println!("{}", file.display());
    }
    Ok(())
}

fn head(proto: &[u8]) -> String {
    let checksum = crc32c::crc32c(proto);
    let bytes = proto.len();
    format!(
        "//! @generated from {PROTO} crc32c:{checksum:08x} bytes:{bytes}\n\
         //! by tools/codegen; a file module: `#[path = \"generated/{FILE}\"] pub mod v1;`\n\n\
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
