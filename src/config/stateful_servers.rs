//! The servers known to keep state between calls. Clients that share one process of such a server
//! also share its state.

use super::{ServerConfig, SharingMode, TransportConfig};

/// Parts of command lines, and the state of their servers. Source: each package's documentation.
const KNOWN: [(&str, &str); 5] = [
    ("server-sequential-thinking", "one line of thoughts"),
    ("playwright/mcp", "one browser"),
    ("playwright-mcp", "one browser"),
    ("chrome-devtools-mcp", "one browser"),
    ("desktop-commander", "its terminals"),
];

/// Returns the state that the server of a command line keeps between calls, if known.
pub fn state_kept_by<'a>(
    command: &'a str,
    args: impl IntoIterator<Item = &'a String>,
) -> Option<&'static str> {
    let mut words = args.into_iter().map(String::as_str).chain([command]);
    words.find_map(|word| {
        let known = KNOWN.iter().find(|(name, _)| word.contains(name));
        known.map(|(_, state)| *state)
    })
}

impl ServerConfig {
    /// Returns the state that all clients of the server share, if known.
    pub fn shared_state(&self) -> Option<&'static str> {
        match &self.transport {
            TransportConfig::Stdio { command, args, .. } if self.sharing == SharingMode::Shared => {
                state_kept_by(command, args)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::good;

    #[test]
    fn a_stateful_server_is_recognized_by_its_command_line_if_clients_share_it() {
        let state = |table: &str| {
            let config = good(&format!("[servers.a]\n{table}\n"));
            config.servers.values().next().expect("one").shared_state()
        };
        let npx = |package: &str| format!("command = \"npx\"\nargs = [\"-y\", \"{package}\"]");
        assert_eq!(state(&npx("@playwright/mcp@0.0.41")), Some("one browser"));
        assert_eq!(state(&npx("chrome-devtools-mcp@latest")), Some("one browser"));
        assert_eq!(state("command = \"/opt/desktop-commander/run\""), Some("its terminals"));
        assert_eq!(state(&npx("@modelcontextprotocol/server-memory")), None);
        assert_eq!(state(&(npx("@playwright/mcp") + "\nsharing = \"session\"")), None);
        assert_eq!(state("url = \"http://127.0.0.1:1/playwright/mcp\""), None);
    }
}
