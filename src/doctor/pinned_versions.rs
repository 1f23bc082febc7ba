//! The check for programs that fetch packages without a pinned version.
//!
//! Pure.

/// Returns the package that a command line fetches in its newest version, if any.
pub(super) fn unpinned_package<'a>(command: &str, args: &'a [String]) -> Option<&'a str> {
    let program = command.rsplit('/').next().unwrap_or_default();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (args, named): (&[&str], &[&str]) = match (program, args.as_slice()) {
        ("npx" | "bunx", args) => (args, &["-p", "--package"]),
        ("npm" | "bun", ["exec" | "x", args @ ..]) => (args, &["-p", "--package"]),
        ("pnpm" | "yarn", ["dlx", args @ ..]) => (args, &["-p", "--package"]),
        ("uvx", args) | ("uv", ["tool", "run", args @ ..]) => (args, &["--from"]),
        ("pipx", ["run", args @ ..]) => (args, &["--spec"]),
        _ => return None,
    };
    let package = package(args, named)?;
    if is_pinned(package) { None } else { Some(package) }
}

/// Returns the package of a command line: the value of an option, else the first word.
fn package<'a>(args: &[&'a str], named: &[&str]) -> Option<&'a str> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if named.contains(arg) {
            return args.next().copied();
        }
        if let Some((option, value)) = arg.split_once('=')
            && named.contains(&option)
        {
            return Some(value);
        }
        match *arg {
            // These options are followed by a value that is not a package.
            "--python" | "-p" | "--with" | "--index-url" | "--registry" => {
                args.next();
            }
            arg if arg.starts_with('-') => {}
            arg => return Some(arg),
        }
    }
    None
}

/// Returns `true` if a package has a version, or is a local file.
fn is_pinned(package: &str) -> bool {
    if package.starts_with(['.', '/', '~']) {
        return true;
    }
    // The first character may be the `@` of a scope.
    let rest = package.get(1..).unwrap_or_default();
    let version =
        rest.split_once("==").or_else(|| rest.split_once('@')).map(|(_, version)| version);
    version.is_some_and(|version| {
        let version = version.trim_start_matches('v');
        let is_whole = version.split('.').count() > 2 || version.contains("==");
        // A commit hash is also a full version.
        let is_commit = version.rsplit('@').next().is_some_and(|commit| {
            commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        version.starts_with(|first: char| first.is_ascii_digit()) && is_whole || is_commit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_version_is_found() {
        for (line, expected) in [
            ("npx -y @scope/server", Some("@scope/server")),
            ("npx -y @scope/server@latest", Some("@scope/server@latest")),
            ("npx -y @scope/server@2", Some("@scope/server@2")),
            ("npx -y @scope/server@1.2.3", None),
            ("npx --package=server@1.2.3 run", None),
            ("npx -p server run", Some("server")),
            ("npx ./server.js", None),
            ("/usr/bin/uvx mcp-server-git --repository .", Some("mcp-server-git")),
            ("uvx --python 3.12 mcp-server-git@2025.1.1", None),
            ("uvx --from mcp==1.2.0 mcp", None),
            ("uvx --from git+https://example.org/x@0123456789abcdef x", None),
            ("uv tool run server", Some("server")),
            ("uv run server.py", None),
            ("pipx run server", Some("server")),
            ("pnpm dlx server", Some("server")),
            ("node server.js", None),
            ("npx", None),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().expect("a program");
            let args: Vec<String> = words.collect();
            assert_eq!(unpinned_package(&command, &args), expected, "{line}");
        }
    }
}
