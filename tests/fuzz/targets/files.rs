//! The fuzz targets for files and answers of registries.

use std::{cell::RefCell, fs, path::Path};

use metamcp::{
    catalog,
    config::{defaults::DESCRIPTION_BYTES_MAX, load},
    import, provision,
    task::TaskFiles,
};
use tempfile::{NamedTempFile, TempDir};

const TASK: &str = "00000000-0000-4000-8000-000000000000";

thread_local! {
    static FILE: RefCell<NamedTempFile> =
        RefCell::new(NamedTempFile::new().expect("a temporary file"));
    static DIRECTORY: RefCell<TempDir> =
        RefCell::new(tempfile::tempdir().expect("a temporary directory"));
}

/// Checks that a configuration file is parsed, or refused with a displayable error.
pub(super) fn configuration(data: &[u8]) {
    FILE.with_borrow(|file| {
        fs::write(file.path(), data).expect("written");
        if let Err(error) = load::file(file.path()) {
            assert!(!error.to_string().is_empty());
        }
    });
}

/// Checks the import of another program's file that declares servers.
pub(super) fn import(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for name in ["mcp.json", "config.toml"] {
        let path = Path::new(name);
        match import::read(path, text, None, &import::context_of(path, None)) {
            Ok(found) => drop(import::import(found, &import::OwnEndpoints::default())),
            Err(error) => assert!(error.to_string().len() < 1024, "{error}"),
        }
    }
}

/// Checks that a parsed catalog file is written and parsed again without a change.
pub(super) fn catalog(data: &[u8]) {
    let Ok(body) = str::from_utf8(data) else { return };
    if let Some(written) = catalog::rewritten(body) {
        assert_eq!(catalog::rewritten(&written).as_ref(), Some(&written));
    }
}

/// Checks that a parsed file of a background call is written and parsed again without a change.
pub(super) fn task(data: &[u8]) {
    DIRECTORY.with_borrow(|state| {
        let (task_files, directory) =
            (TaskFiles::in_directory(Some(state.path())), state.path().join("tasks"));
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join(TASK).with_extension("task"), data).expect("written");
        let read = task_files.read();
        assert!(read.len() <= 1);
        for task in &read {
            task_files.write(task);
            assert_eq!(format!("{:?}", task_files.read()), format!("{read:?}"));
            task_files.remove(std::slice::from_ref(&task.id));
        }
        fs::remove_dir_all(&directory).expect("removed");
    });
}

/// Checks that the entries of a registry page respect their limits.
pub(super) fn registry(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for [name, description, install] in provision::read_page(text).unwrap_or_default() {
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
        assert!(description.len() <= DESCRIPTION_BYTES_MAX, "{description}");
        // A value for a file is in quotes; a shell command needs none.
        let address = install.strip_prefix("url = \"").and_then(|rest| rest.strip_suffix('"'));
        let plain = address.unwrap_or(&install);
        assert!(!plain.contains(['\n', '\'', '"', '$', '`', ';']), "{install}");
    }
}
