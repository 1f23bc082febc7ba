//! The installed unit, and the program that it starts.

use std::path::Path;

use super::{
    finding::{Finding, FindingArea::Unit},
    host, unit,
};
use crate::{config::defaults, files, systemd::own_unit::SystemdUnit};

/// The installed unit, with its readable directives.
pub(super) struct InstalledUnit {
    pub(super) unit: Option<SystemdUnit>,
    pub(super) directives: Option<unit::UnitDirectives>,
}

impl InstalledUnit {
    pub(super) fn find() -> Self {
        let unit = SystemdUnit::installed();
        let directives = unit.as_ref().and_then(directives);
        Self { unit, directives }
    }

    /// Returns the words of `ExecStart=`.
    pub(super) fn command(&self) -> Vec<&str> {
        self.directives.as_ref().map(unit::command).unwrap_or_default()
    }
}

/// Returns the `[Service]` directives of a unit, from its readable files.
fn directives(unit: &SystemdUnit) -> Option<unit::UnitDirectives> {
    let text = |file: &Path| {
        let bytes = files::bounded(file, defaults::UNIT_FILE_BYTES_MAX).ok()?;
        String::from_utf8(bytes).ok()
    };
    let main = text(&unit.file()?)?;
    let more = unit.drop_ins().into_iter().filter_map(|file| text(&file));
    let texts: Vec<String> = [main].into_iter().chain(more).collect();
    Some(unit::read(texts.iter().map(String::as_str)))
}

/// Examines the unit, and the program that it starts.
pub(super) async fn examine_unit(
    unit: &SystemdUnit,
    directives: &unit::UnitDirectives,
    command: &[&str],
    found: &mut Vec<Finding>,
) {
    let n_before = found.len();
    found.extend(unit::compare(directives, unit.is_of_user));
    let Some(program) = command.first() else {
        found.push(
            Finding::error(Unit, format!("{} has no `ExecStart=`", unit.name))
                .fix("Install the shipped unit, `systemd/metamcp.service`."),
        );
        return;
    };
    let ours = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    match Path::new(program).canonicalize() {
        Err(error) => found.push(
            Finding::error(Unit, format!("{} starts `{program}`, which is missing", unit.name))
                .because(error.to_string())
                .fix("Install metamcp there, or correct `ExecStart=`."),
        ),
        Ok(path) if Some(&path) != ours.as_ref() => {
            let output = host::output(program, &["--version"]).await.unwrap_or_default();
            let theirs = output.trim().strip_prefix("metamcp ").unwrap_or("of unknown version");
            let ours = env!("CARGO_PKG_VERSION");
            if theirs != ours {
                let name = &unit.name;
                let what = format!("{name} starts metamcp {theirs}, and this program is {ours}");
                let fix = format!("Install this program as `{program}`, or run that one.");
                found.push(Finding::warning(Unit, what).fix(fix));
            }
        }
        Ok(_) => {}
    }
    if found.len() == n_before {
        found.push(Finding::ok(Unit, format!("{} matches the shipped unit", unit.name)));
    }
}
