//! The list of all clients, which `metamcp connect` prints.

use std::path::Path;

use super::{
    client_change::ChangeArgs,
    client_file::OpenedFile,
    installed_client, output, terminal,
    text_table::{CellColour, TableCell, TextTable},
};
use crate::{
    connect,
    import::{KnownClient, OwnEndpoints},
};

/// Prints the clients, their files, and whether they are connected.
pub(super) fn print(change: &ChangeArgs, own: &OwnEndpoints) {
    let mut table = TextTable::headed(["CLIENT", "FOUND", "CONNECTED", "FILE"]);
    let home = std::env::home_dir();
    for client in KnownClient::ALL {
        let Ok(file) = OpenedFile::open(client, change) else { continue };
        let is_found = file.text().is_some()
            || installed_client::is_installed(client)
            || installed_client::has_directory(file.path());
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
            TableCell::from(below_home(file.path(), home.as_deref())),
        ]);
    }
    output::table(&table);
}

/// Returns a path, with `~` for the home.
fn below_home(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => Path::new("~").join(below).display().to_string(),
        None => path.display().to_string(),
    }
}
