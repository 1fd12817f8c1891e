//! `windlass flow lint` from outside: it needs no server.

#![allow(clippy::unwrap_used, reason = "a test may stop here")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROCESS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="definitions">
  <bpmn:process id="order" isExecutable="true">
    <bpmn:startEvent id="start" />
    <bpmn:serviceTask id="pay">DEFINITION</bpmn:serviceTask>
    <bpmn:endEvent id="end" />
    <bpmn:sequenceFlow id="to_pay" sourceRef="start" targetRef="pay" />
    <bpmn:sequenceFlow id="to_end" sourceRef="pay" targetRef="end" />
  </bpmn:process>
</bpmn:definitions>
"#;
const DEFINITION: &str =
    r#"<bpmn:extensionElements><zeebe:taskDefinition type="pay" /></bpmn:extensionElements>"#;

fn lint(dir: &TempDir, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.current_dir(dir.path()).args(["flow", "lint"]).args(words).output().unwrap()
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

#[test]
fn a_sound_process_has_no_errors() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "order.bpmn", &PROCESS.replace("DEFINITION", DEFINITION));
    let output = lint(&dir, &["order.bpmn"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "1 file, 0 errors, 0 warnings\n");
}

#[test]
fn errors_have_a_place_and_an_element() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "order.xml", &PROCESS.replace("DEFINITION", ""));
    let output = lint(&dir, &["order.xml"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("order.xml:6:5: error: pay: "), "{said}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: a server would refuse this: 1 error\nhint: "), "{said}");

    let output = lint(&dir, &["order.xml", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["errors"], 1);
    let problem = &found["problems"][0];
    let place = json!([problem["file"], problem["line"], problem["column"], problem["element"]]);
    assert_eq!(place, json!(["order.xml", 6, 5, "pay"]));
}

#[test]
fn decisions_are_read_too_and_other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "broken.dmn", "<definitions");
    let output = lint(&dir, &["broken.dmn"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("broken.dmn:1:"), "{said}");

    write(dir.path(), "notes.txt", "words");
    for (file, why) in [("notes.txt", "neither BPMN nor DMN"), ("absent.bpmn", "failed to read")] {
        let output = lint(&dir, &[file]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(why), "{said}");
    }
}
