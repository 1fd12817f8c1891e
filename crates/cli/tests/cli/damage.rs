//! Data that is not what was written: a server does not start on it, and says what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{PROGRAM, Server, error, offline};

/// The data of a server with a checkpoint, which was stopped in good order.
fn stopped() -> (TempDir, PathBuf) {
    let server = Server::start();
    server.create(&["mail", "1"]);
    let dir = server.stop();
    let data = dir.path().join("data");
    (dir, data)
}

fn serve(data: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--zeebe-listen",
        "off",
        "--connectors",
        "off",
    ]);
    command.arg("--data-dir").arg(data).output().unwrap()
}

fn table(data: &Path) -> PathBuf {
    let tables = data.join("checkpoint/tree/tables");
    let largest = std::fs::read_dir(tables)
        .unwrap()
        .max_by_key(|entry| entry.as_ref().unwrap().metadata().unwrap().len());
    largest.unwrap().unwrap().path()
}

#[test]
fn a_checkpoint_that_is_damaged_says_so_in_words() {
    let (_dir, data) = stopped();
    let table = table(&data);
    let whole = std::fs::read(&table).unwrap();
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    let flips: &dyn Fn() = &|| std::fs::write(&table, &flipped).unwrap();
    let removes: &dyn Fn() = &|| std::fs::remove_file(&table).unwrap();
    for (damage, words) in [
        (flips, "a block does not have the checksum"),
        (removes, "files that belong to it are missing"),
    ] {
        damage();
        let refused = serve(&data);
        assert_eq!(refused.status.code(), Some(5), "{refused:?}");
        assert!(error(&refused).contains(words), "{}", error(&refused));
        assert!(error(&refused).contains("windlass log verify"), "{}", error(&refused));
        let verified = offline(&["log", "verify"], &data);
        assert_eq!(verified.status.code(), Some(5), "{verified:?}");
        let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!(report["damage"], Value::Null, "the log is whole");
        assert!(report["checkpoint"]["damage"].as_str().unwrap().contains(words), "{report}");
        let hint: Value =
            serde_json::from_slice(error(&verified).lines().last().unwrap().as_bytes()).unwrap();
        assert!(hint["error"]["hint"].as_str().unwrap().contains("move "), "{hint}");
        std::fs::write(&table, &whole).unwrap();
    }
    // As the hint says: this log has all of it.
    std::fs::rename(data.join("checkpoint"), data.join("damaged")).unwrap();
    let report = offline(&["log", "verify"], &data);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["checkpoint"], &report["damage"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_log_without_its_marks_is_damaged_and_not_absent() {
    let (_dir, data) = stopped();
    std::fs::remove_file(data.join("log/marks")).unwrap();
    let refused = serve(&data);
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let words = error(&refused);
    assert!(words.contains("marks") && words.contains("windlass log repair"), "{words}");
    std::fs::remove_dir_all(data.join("log")).unwrap();
    let refused = serve(&data);
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert!(error(&refused).contains("there is no log"), "{}", error(&refused));
    let (_other, data) = stopped();
    std::fs::remove_dir_all(data.join("checkpoint")).unwrap();
    std::fs::remove_file(data.join("log/marks")).unwrap();
    assert_eq!(serve(&data).status.code(), Some(5), "it is no new directory");
    assert_eq!(json!(offline(&["log", "verify"], &data).status.code()), 5);
}
