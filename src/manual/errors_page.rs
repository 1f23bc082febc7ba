//! The manual page metamcp-errors(7).

use roff::Roff;

use super::{
    error_table::ERROR_GROUPS,
    page_text::{begin, item, section},
};

/// Returns metamcp-errors(7).
pub fn errors_page() -> String {
    let mut page = Roff::new();
    begin(&mut page, "metamcp-errors", "7", "the codes of metamcp, with causes and remedies");
    section(
        &mut page,
        "Description",
        "An error of metamcp has a number in `code`, a stable name in `data.code`, and the next \
         step in `data.suggestion`. Programs compare the name, and never the message.",
    );
    for group in ERROR_GROUPS {
        section(&mut page, group.title, group.intro);
        for entry in group.entries {
            let lines = [entry.cause.to_owned(), format!("Remedy: {}", entry.remedy)];
            item(&mut page, entry.code, &lines);
        }
    }
    section(&mut page, "See also", "`metamcp`(1), `metamcp.toml`(5)");
    page.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_code() {
        let page = errors_page();
        for entry in ERROR_GROUPS.iter().flat_map(|group| group.entries) {
            let escaped = entry.code.replace('-', "\\-");
            assert!(page.contains(&format!("\\fB{escaped}\\fR")), "{}", entry.code);
        }
    }
}
