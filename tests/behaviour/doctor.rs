//! `metamcp doctor`, with servers that are well and servers that are not.

use std::fs;

use serde_json::Value;

use crate::harness::{
    daemon::{Daemon, run},
    fake::{self, Fakes},
};

/// Servers that behave in different ways.
fn config(fakes: &Fakes) -> String {
    let program = fake::program().display().to_string();
    let shell = |name: &str, script: &str, more: &str| {
        format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n{more}\n")
    };
    let loud = format!("echo the word is $TOKEN >&2; echo hello; exec {program} stdio");
    fakes.server("quiet", &[])
        + &shell("loud", &loud, "env = { TOKEN = \"hush-hush-hush\" }")
        + &shell("broken", "echo cannot find my files >&2; exit 3", "")
        + "[servers.missing]\ncommand = \"/nonexistent/server\"\n"
        + "[servers.far]\nurl = \"http://127.0.0.1:9/mcp\"\n"
        + "[servers.secret]\ncommand = \"true\"\nenv = { KEY = \"credential:no-such\" }\n"
}

/// Returns a text without what differs from run to run.
fn golden(text: &str, fakes: &Fakes) -> String {
    let text = text.replace(&fake::program().display().to_string(), "FAKE");
    let text = text.replace(&fakes.path("").display().to_string(), "DIRECTORY/");
    let mut shown = String::new();
    let mut digits = String::new();
    let mut left = text.as_str();
    while let Some(found) = left.chars().next() {
        left = &left[found.len_utf8()..];
        if found.is_ascii_digit() {
            digits.push(found);
            continue;
        }
        let is_time = left.starts_with("ms") && found == ' ';
        shown.push_str(if is_time && !digits.is_empty() { "N" } else { &digits });
        digits.clear();
        shown.push(found);
    }
    shown + &digits
}

#[test]
fn each_server_is_looked_at_by_itself() {
    let fakes = Fakes::new();
    let file = fakes.path("metamcp.toml");
    fs::write(&file, config(&fakes)).expect("written");
    let file = file.display().to_string();
    let look = |server: &str, more: &[&str]| {
        let arguments = ["doctor", "--config", &file, "--server", server];
        run(&[&arguments[..], more].concat())
    };
    let mut people = String::new();
    for (server, expected) in
        [("quiet", 0), ("loud", 0), ("broken", 1), ("missing", 1), ("far", 1), ("secret", 0)]
    {
        let (code, out, error) = look(server, &[]);
        assert_eq!(code, expected, "{server}: {out}{error}");
        assert!(!out.contains("hush-hush"), "{out}");
        people.push_str(&out);
        people.push('\n');
    }
    insta::assert_snapshot!("doctor_for_people", golden(&people, &fakes));
    let (code, out, _) = look("loud", &["--json"]);
    assert_eq!(code, 0);
    let told: Value = serde_json::from_str(&out).expect(&out);
    let told = serde_json::to_string_pretty(&told).expect("JSON");
    insta::assert_snapshot!("doctor_for_programs", golden(&told, &fakes));
    let (_, out, _) = look("loud", &["--nix"]);
    assert!(out.contains("services.metamcp.settings.servers.loud"), "{out}");
    let (code, _, error) = look("quite", &[]);
    assert_eq!(code, 64, "{error}");
}

#[test]
fn a_configuration_with_a_mistake_is_an_error_with_its_place() {
    let fakes = Fakes::new();
    let file = fakes.path("metamcp.toml");
    fs::write(&file, "[pool]\nsize = 0\n").expect("written");
    let file = file.display().to_string();
    let (code, out, _) = run(&["doctor", "--config", &file, "--json"]);
    assert_eq!(code, 1, "{out}");
    let told: Value = serde_json::from_str(&out).expect(&out);
    let finding = &told["findings"][0];
    assert_eq!(
        (&finding["subject"], &finding["level"]),
        (&"configuration".into(), &"error".into())
    );
    assert!(finding["why"].to_string().contains("metamcp.toml:2:8"), "{finding}");
    assert!(finding["fix"].is_string() && finding["nix"].is_string(), "{finding}");
}

#[test]
fn a_service_that_runs_is_found_and_one_that_does_not_is_told() {
    let daemon = Daemon::with("").ready();
    let (address, socket) = (daemon.address(), daemon.control().display().to_string());
    let fakes = Fakes::new();
    let file = fakes.path("metamcp.toml");
    fs::write(&file, format!("[listen]\nhttp = \"{address}\"\n")).expect("written");
    let file = file.display().to_string();
    let look = |socket: &str| -> Vec<(String, String)> {
        let (_, out, error) = run(&["doctor", "--config", &file, "--socket", socket, "--json"]);
        let told: Value = serde_json::from_str(&out).expect(&error);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let findings = told["findings"].as_array().expect("a list").iter();
        findings.map(|finding| (text(&finding["subject"]), text(&finding["what"]))).collect()
    };
    let has = |found: &[(String, String)], subject: &str, what: &str| {
        found.iter().any(|(is, says)| is == subject && says.contains(what))
    };
    let found = look(&socket);
    assert!(has(&found, "service", "runs, pid"), "{found:?}");
    assert!(has(&found, "http", "`/healthz` answers"), "{found:?}");
    assert!(!has(&found, "http", "foreign"), "{found:?}");
    for subject in ["state directory", "cache directory", "unit", "clock", "memory"] {
        assert!(has(&found, subject, ""), "{subject}: {found:?}");
    }
    let found = look("/nonexistent/socket");
    assert!(has(&found, "control socket", "no service runs"), "{found:?}");
}
