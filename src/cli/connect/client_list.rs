//! The list of clients, with their files and connections.

use std::{fs, path::Path};

use super::ChangeArgs;
use crate::{
    cli::{
        Failed,
        client_file::OpenedFile,
        output, terminal,
        text_table::{CellColour, TableCell, TextTable},
    },
    connect,
    import::{KnownClient, OwnEndpoints},
};

/// Lists the clients, their files, and whether they are connected.
pub(super) fn print(change: &ChangeArgs, own: &OwnEndpoints) -> Result<(), Failed> {
    let mut table = TextTable::headed(["CLIENT", "FOUND", "CONNECTED", "FILE"]);
    for client in KnownClient::ALL {
        let Ok(file) = OpenedFile::open(client, change) else { continue };
        let is_found = file.text().is_some() || is_installed(client) || has_directory(file.path());
        let entries = file.text().map(|text| connect::own_entries(client, text, own));
        let connected = match entries {
            Some(Ok(names)) if !names.is_empty() => {
                TableCell::from(terminal::escape(&names.join(", "))).colour(CellColour::Green)
            }
            Some(Err(_)) => TableCell::from("unreadable").colour(CellColour::Red),
            _ => TableCell::from("no").colour(CellColour::Dim),
        };
        table.row([
            TableCell::from(client.word()),
            TableCell::from(if is_found { "yes" } else { "no" }),
            connected,
            TableCell::from(file.path().display().to_string()),
        ]);
    }
    output::table(&table);
    Ok(())
}

/// Returns whether a program of the client is in the search path.
fn is_installed(client: KnownClient) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    directories.any(|directory| {
        client.profile().programs.iter().any(|program| directory.join(program).is_file())
    })
}

/// Returns whether the client has made its directory. The home itself is no sign of a client.
fn has_directory(path: &Path) -> bool {
    let directory = path.parent();
    directory.is_some_and(|directory| {
        directory.is_dir()
            && std::env::home_dir().as_deref() != Some(directory)
            && fs::canonicalize(directory).ok() != std::env::current_dir().ok()
    })
}
