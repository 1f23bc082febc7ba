//! The failure for a file that this user cannot write: its owner, and the command that helps.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use nix::unistd::{Uid, User};
use rustix::fs::Access;

use super::{FAILED, Failed, output};

/// Checks that this user may replace the file: neither the file nor its directory is read-only.
///
/// # Errors
///
/// [`Failed`] with the owner, and with the command that works.
pub(super) fn check(file: &Path) -> Result<(), Failed> {
    let is_read_only = |path: &PathBuf| rustix::fs::access(path, Access::WRITE_OK).is_err();
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let directory = file.ancestors().skip(1).find(|path| path.exists()).map(Path::to_owned);
    let file = file.exists().then_some(file);
    match [file, directory].into_iter().flatten().find(is_read_only) {
        Some(path) => Err(foreign(&path)),
        None => Ok(()),
    }
}

/// Returns the failure for a file or directory that this user cannot write.
pub(super) fn foreign(path: &Path) -> Failed {
    let owner = path.ancestors().find_map(|path| path.metadata().ok()).map(|found| found.uid());
    failure(path, owner, rustix::process::geteuid().as_raw())
}

/// Returns the failure for `path` of the user `owner`, which the user `own` cannot write.
fn failure(path: &Path, owner: Option<u32>, own: u32) -> Failed {
    let shown = path.display();
    if owner == Some(own) {
        return Failed::new(FAILED, format!("`{shown}` is read-only, so nothing is changed")).hint(
            format!(
                "Run `chmod u+w {}`, then this command again.",
                quoted(&path.display().to_string())
            ),
        );
    }
    let owner = owner.map(|owner| {
        let user = User::from_uid(Uid::from_raw(owner)).ok().flatten();
        user.map_or_else(|| format!("user {owner}"), |user| user.name)
    });
    let owner = owner.unwrap_or_else(|| "another user".to_owned());
    let text = format!("`{shown}` belongs to {owner}, and this user cannot change it");
    Failed::new(FAILED, text).hint(format!("Run `{}`.", sudo_line()))
}

/// Returns this command line with `sudo`.
pub(super) fn sudo_line() -> String {
    let words: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    output::text(&format!("sudo metamcp {}", words.join(" ")))
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |found: char| found.is_ascii_alphanumeric() || "_@%+=:,./-".contains(found);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_file_of_this_user_is_made_writable_without_root() {
        let failed = failure(Path::new("/etc/a b.toml"), Some(7), 7);
        assert_eq!(failed.text, "`/etc/a b.toml` is read-only, so nothing is changed");
        let hint = failed.hint.expect("a next step");
        assert_eq!(hint, "Run `chmod u+w '/etc/a b.toml'`, then this command again.");
        let failed = failure(Path::new("/etc"), Some(4_000_000), 7);
        assert!(failed.text.starts_with("`/etc` belongs to user 4000000, "), "{}", failed.text);
        assert!(failed.hint.expect("a next step").starts_with("Run `sudo metamcp"));
    }
}
