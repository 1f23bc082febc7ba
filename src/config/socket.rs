//! Paths of Unix sockets, and the names of the units behind them.

use std::path::Path;

use toml::Spanned;

use super::{defaults, diagnostic::ConfigProblem, refusal::Refusal};

/// The path of a socket in words.
pub(super) const TITLE: &str = "absolute path of a socket";

/// The prefix of the name of a server's unit if the name is not declared.
const UNIT_PREFIX: &str = "metamcp-server-";

/// The longest name of a unit that leaves room for an instance and a suffix, in bytes.
/// Source: systemd.unit(5), 255 in all.
const UNIT_BYTES_MAX: usize = 160;

/// Checks the path of a socket that is declared under `key`.
pub(super) fn check_path(path: &Path, key: &str, example: &str) -> Result<(), Refusal> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if !path.is_absolute() || path.file_name().is_none() || bytes.contains(&0) {
        let message = format!("`{key}` is not an absolute path of a socket");
        return Err(Refusal::new(message, format!("write one, as in {example:?}")));
    }
    if bytes.len() > defaults::SOCKET_PATH_BYTES_MAX {
        let message = format!("a path of {} bytes is too long for a socket", bytes.len());
        let help = format!("use at most {} bytes", defaults::SOCKET_PATH_BYTES_MAX);
        return Err(Refusal::new(message, help));
    }
    Ok(())
}

/// Returns the name of the unit template behind `socket`, without the `@`: the declared name, or
/// one from the name of the socket. `place` is the place of the socket.
pub(super) fn unit(
    declared: Option<Spanned<String>>,
    socket: &Path,
    place: std::ops::Range<usize>,
) -> Result<String, ConfigProblem> {
    let (message, place) = match declared {
        Some(unit) if is_unit(unit.get_ref()) => return Ok(unit.into_inner()),
        Some(unit) => (format!("`{}` is not the name of a unit", unit.get_ref()), unit.span()),
        None => {
            let stem = socket.file_stem().unwrap_or_default().to_string_lossy();
            let unit = format!("{UNIT_PREFIX}{stem}");
            if is_unit(&unit) {
                return Ok(unit);
            }
            (format!("`{unit}` is not the name of a unit"), place)
        }
    };
    Err(ConfigProblem::at(place, message).help(
        "write the name of its template without `@` and suffix, as in `unit = \"metamcp-server-git\"`",
    ))
}

/// Checks the name of the group of the control socket.
pub(super) fn check_group(name: &str) -> Result<(), Refusal> {
    if is_group(name) {
        return Ok(());
    }
    Err(Refusal::new(
        format!("`{}` is not the name of a group", name.escape_debug()),
        "write the name of the group that may use the control socket, as in \"metamcp\"",
    ))
}

/// Returns whether `name` is a group by groupadd(8), with `-` and upper case as shadow allows. A
/// number would be an id. Opening the socket checks that the group exists.
fn is_group(name: &str) -> bool {
    let is_part = |found: char| found.is_ascii_alphanumeric() || "-_.".contains(found);
    (1..=defaults::GROUP_NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_part)
        && !name.starts_with(['-', '.'])
        && !name.chars().all(|found| found.is_ascii_digit())
}

/// Returns whether `name` is valid by systemd.unit(5), without the characters for escapes.
fn is_unit(name: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || ":-_.".contains(character);
    let has_suffix = [".service", ".socket"].iter().any(|suffix| name.ends_with(suffix));
    (1..=UNIT_BYTES_MAX).contains(&name.len()) && name.chars().all(is_part) && !has_suffix
}
