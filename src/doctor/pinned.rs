//! Whether a server is the same program tomorrow. Pure.

/// Returns the package that a command fetches in whatever version there is, if it does.
pub fn unpinned(command: &str, args: &[String]) -> Option<String> {
    let program = command.rsplit('/').next().unwrap_or(command);
    let runner = match program {
        "npx" | "bunx" | "pnpx" => Runner::Node,
        "uvx" | "pipx" => Runner::Python,
        _ => return None,
    };
    let package = package(runner, args)?;
    let is_path = package.starts_with(['.', '/']) || package.contains("://");
    (!is_path && !runner.is_pinned(&package)).then_some(package)
}

#[derive(Clone, Copy)]
enum Runner {
    Node,
    Python,
}

impl Runner {
    /// The options that name the package.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["-p", "--package"],
            Self::Python => &["--from", "--spec"],
        }
    }

    /// The other options that take a value.
    fn valued(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["-c", "--call", "-w", "--workspace", "--registry", "--prefix"],
            Self::Python => &[
                "--python",
                "-p",
                "--with",
                "--index-url",
                "--index",
                "--extra-index-url",
                "--directory",
                "--default-index",
            ],
        }
    }

    fn is_pinned(self, package: &str) -> bool {
        let version = match self {
            // The sign at the beginning is that of a scope.
            Self::Node => package.get(1..).and_then(|rest| rest.split_once('@')),
            Self::Python => package.split_once("==").or_else(|| package.split_once('@')),
        };
        version.is_some_and(|(_, version)| {
            version.starts_with(|found: char| found.is_ascii_digit())
                && !version.contains(['x', '*', ' ', '|'])
        })
    }
}

fn package(runner: Runner, args: &[String]) -> Option<String> {
    let mut args = args.iter().map(String::as_str).peekable();
    if matches!(runner, Runner::Python) && args.peek() == Some(&"run") {
        args.next();
    }
    let mut first = None;
    while let Some(arg) = args.next() {
        if let Some((option, value)) = arg.split_once('=')
            && runner.options().contains(&option)
        {
            return Some(value.to_owned());
        }
        if runner.options().contains(&arg) {
            return args.next().map(str::to_owned);
        }
        if runner.valued().contains(&arg) {
            args.next();
        } else if !arg.starts_with('-') {
            first = Some(arg.to_owned());
            break;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_version_is_another_one_tomorrow() {
        for (command, expected) in [
            ("npx -y @scope/server", Some("@scope/server")),
            ("npx -y @scope/server@latest", Some("@scope/server@latest")),
            ("npx -y @scope/server@^1.2.0", Some("@scope/server@^1.2.0")),
            ("npx @scope/server@1.2.3 /files", None),
            ("/usr/bin/npx -p server@1.2.3 run", None),
            ("npx --package=server run", Some("server")),
            ("npx ./local", None),
            ("uvx mcp-server-git --repository x==1", Some("mcp-server-git")),
            ("uvx mcp-server-git@2026.1.1", None),
            ("uvx --python 3.12 --from mcp==1.0 mcp", None),
            ("uvx --from git+https://example.com/x mcp", None),
            ("pipx run thing", Some("thing")),
            ("npx", None),
            ("node server.js", None),
        ] {
            let mut words = command.split(' ').map(str::to_owned);
            let program = words.next().expect("a program");
            let found = unpinned(&program, &words.collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{command}");
        }
    }
}
