//! The directories that the service keeps its own files in.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::{Finding, Level};

/// How a name in a directory is safe from others who can write there: only its owner can take it away.
const STICKY: u32 = 0o1000;

/// Looks at directories that the service keeps its own files in, each with what it is for, and judges
/// them.
pub fn directories(found: &[(&str, Option<PathBuf>)]) -> Vec<Finding> {
    found.iter().map(|(purpose, path)| directory(purpose, path.as_deref())).collect()
}

/// Looks at the directory of a socket, which may be that of another user, and judges it.
pub fn socket_directory(path: &Path) -> Option<Finding> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    let shown = path.display();
    Some(match mode & 0o002 != 0 && mode & STICKY == 0 {
        true => Finding::new(
            Level::Warning,
            "runtime directory",
            format!("everybody can put another socket in the place of that in `{shown}`"),
        )
        .why(format!("its mode is {:03o}", mode & 0o777))
        .fix(format!("`chmod o-w {shown}`, or have the service make one: `RuntimeDirectory=`."))
        .nix("services.metamcp.enable = true; makes it"),
        false => Finding::new(Level::Ok, "runtime directory", format!("`{shown}`")),
    })
}

fn directory(purpose: &str, path: Option<&Path>) -> Finding {
    let subject = format!("{purpose} directory");
    let Some(path) = path else {
        return Finding::new(Level::Warning, subject, "there is none")
            .why("$HOME and the variables of systemd are not set: nothing is kept over a restart")
            .fix("Set $HOME, or add `StateDirectory=` and `CacheDirectory=` to the unit.")
            .nix("services.metamcp.enable = true; makes both");
    };
    let shown = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::new(
                Level::Ok,
                subject,
                format!("`{shown}` is made when it is needed"),
            );
        }
        Err(error) => {
            return Finding::new(Level::Warning, subject, format!("`{shown}` cannot be looked at"))
                .why(error.to_string())
                .fix("Run it as the user of the service.");
        }
    };
    if !found.is_dir() {
        return Finding::new(Level::Error, subject, format!("`{shown}` is no directory"))
            .fix(format!("Move it away: `mv {shown} {shown}.old`."));
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Finding::new(Level::Warning, subject, format!("`{shown}` is not this user's"))
            .why(format!(
                "it belongs to the user {}, this is {user}: nothing can be kept there",
                found.uid()
            ))
            .fix(format!("`chown {user} {shown}`, or run it as the user of the service."));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Finding::new(Level::Warning, subject, format!("others can write `{shown}`"))
            .why(format!(
                "its mode is {mode:03o}: files that others may have put there are not read"
            ))
            .fix(format!("`chmod 700 {shown}`"));
    }
    if mode & 0o700 != 0o700 {
        return Finding::new(Level::Error, subject, format!("`{shown}` cannot be written"))
            .why(format!("its mode is {mode:03o}"))
            .fix(format!("`chmod 700 {shown}`"));
    }
    Finding::new(Level::Ok, subject, format!("`{shown}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_may_take_a_socket_away() {
        let place = tempfile::tempdir().expect("a directory");
        for (mode, expected) in
            [(0o755, Level::Ok), (0o1777, Level::Ok), (0o777, Level::Warning), (0o770, Level::Ok)]
        {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("changed");
            let found = socket_directory(place.path()).expect("it is there");
            assert_eq!(found.level, expected, "{mode:o}");
        }
        assert!(socket_directory(&place.path().join("none")).is_none());
    }

    #[test]
    fn a_directory_is_for_its_owner_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let level = |path: &Path| directory("state", Some(path)).level;
        for (mode, expected) in
            [(0o700, Level::Ok), (0o750, Level::Ok), (0o770, Level::Warning), (0o500, Level::Error)]
        {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("changed");
            assert_eq!(level(place.path()), expected, "{mode:o}");
        }
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).expect("changed");
        assert_eq!(level(&place.path().join("none")), Level::Ok);
        let file = place.path().join("file");
        fs::write(&file, "").expect("written");
        assert_eq!(level(&file), Level::Error);
        assert_eq!(directory("state", None).level, Level::Warning);
    }
}
