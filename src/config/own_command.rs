//! The command of a server that starts metamcp itself.
//!
//! Pure.

use std::collections::VecDeque;

/// The options that lead a command of metamcp to another service or file.
const ELSEWHERE: [&str; 3] = ["--socket", "--config", "--demo"];

/// Returns the words of a command without `env` and shells around it.
pub(crate) fn unwrapped(command: &str, args: &[&str]) -> Vec<String> {
    let words = std::iter::once(&command).chain(args);
    let mut words: VecDeque<String> = words.map(|&word| word.to_owned()).collect();
    while let Some(first) = words.front() {
        let flag = words.get(1).map(String::as_str).unwrap_or_default();
        match program_name(first) {
            "env" => {
                words.pop_front();
                while words.front().is_some_and(|it| it.contains('=') || it.starts_with('-')) {
                    words.pop_front();
                }
            }
            "sh" | "bash" | "dash" | "zsh" if flag.starts_with('-') && flag.ends_with('c') => {
                let script = words.get(2).cloned().unwrap_or_default();
                let plain = script.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
                words = plain.skip_while(|word| *word == "exec").map(str::to_owned).collect();
            }
            _ => break,
        }
    }
    words.into()
}

/// Returns whether a command starts metamcp with the configuration that declares it, or connects to
/// that service: it would start itself without end.
pub(crate) fn starts_itself(command: &str, args: &[String]) -> bool {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let is_elsewhere = |word: &&str| {
        word.contains("METAMCP_") || ELSEWHERE.iter().any(|option| word.contains(option))
    };
    let words = unwrapped(command, &args);
    let is_own = words.first().is_some_and(|program| program_name(program) == "metamcp");
    let command = words.get(1).map(String::as_str);
    is_own && matches!(command, Some("stdio" | "serve")) && !args.iter().any(is_elsewhere)
}

/// Returns the name of a program without its directory.
pub(crate) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::{bad, good};

    #[test]
    fn a_server_that_starts_this_service_itself_is_refused() {
        for declared in [
            "command = \"metamcp\"\nargs = [\"stdio\"]",
            "command = \"/usr/bin/metamcp\"\nargs = [\"serve\", \"--transport\", \"stdio\"]",
            "command = \"env\"\nargs = [\"A=b\", \"metamcp\", \"stdio\"]",
            "command = \"sh\"\nargs = [\"-c\", \"exec metamcp stdio\"]",
            "url = \"http://0.0.0.0:12011/\"",
            "url = \"http://[::]:12011/\"",
        ] {
            let shown = bad(&format!("[servers.me]\n{declared}\n"));
            assert!(shown.starts_with("server `me` is this service itself"), "{shown}");
        }
        for declared in [
            "command = \"metamcp\"\nargs = [\"stdio\", \"--socket\", \"/run/b.sock\"]",
            "command = \"metamcp\"\nargs = [\"demo-server\"]",
            "command = \"sh\"\nargs = [\"-c\", \"METAMCP_SOCKET=/b metamcp stdio\"]",
            "command = \"sh\"\nargs = [\"stdio\"]",
        ] {
            good(&format!("[servers.me]\n{declared}\n"));
        }
    }
}
