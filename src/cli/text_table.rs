//! A table with aligned columns.
//!
//! Hand-made: table crates wrap or frame cells, this one cuts at the edge of the terminal.

use super::terminal::{cut, width};

/// The colour of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellColour {
    /// A good state.
    Green,
    /// A state that needs attention.
    Yellow,
    /// An error.
    Red,
    /// A detail of less importance.
    Dim,
    /// A heading.
    Bold,
}

/// A cell with one line of text, already escaped for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableCell {
    text: String,
    colour: Option<CellColour>,
    is_number: bool,
}

/// Rows of cells; the first may be a heading.
#[derive(Clone, Debug, Default)]
pub(super) struct TextTable {
    rows: Vec<Vec<TableCell>>,
    is_headed: bool,
}

/// The space between two columns.
const GAP: &str = "  ";

impl CellColour {
    pub(super) fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Red => "31",
            Self::Dim => "2",
            Self::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

impl TableCell {
    #[must_use]
    pub(super) fn colour(mut self, colour: CellColour) -> Self {
        self.colour = Some(colour);
        self
    }

    /// Returns the cell, aligned to the right.
    #[must_use]
    pub(super) fn number(mut self) -> Self {
        self.is_number = true;
        self
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl TextTable {
    pub(super) fn headed<'a>(heading: impl IntoIterator<Item = &'a str>) -> Self {
        let heading =
            heading.into_iter().map(|text| TableCell::from(text).colour(CellColour::Bold));
        Self { rows: vec![heading.collect()], is_headed: true }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns `true` if the table has no rows below its heading.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == usize::from(self.is_headed)
    }

    /// Returns the lines, each cut to the number of `columns` if that is known. The last column is
    /// not padded.
    pub(super) fn render(&self, columns: Option<usize>, is_coloured: bool) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (known, cell) in widths.iter_mut().zip(row) {
                *known = (*known).max(width(&cell.text));
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            // A heading is aligned like the cell below it.
            let below = self.rows.get(1).unwrap_or(row);
            let mut left = columns.unwrap_or(usize::MAX);
            let mut line = String::new();
            let mut pending = 0;
            for (index, (cell, column)) in row.iter().zip(&widths).enumerate() {
                // An empty column is omitted.
                if *column == 0 {
                    continue;
                }
                let padding = column - width(&cell.text);
                let is_number = cell.is_number || below.get(index).is_some_and(|it| it.is_number);
                let (before, after) = if is_number { (padding, 0) } else { (0, padding) };
                let gap = if index == 0 { 0 } else { GAP.len() };
                // Spaces are written only before further text, never at the end of a line.
                pending += gap + before;
                let shown = cut(&cell.text, left.saturating_sub(pending));
                if !shown.is_empty() {
                    line.push_str(&" ".repeat(pending));
                    left -= pending + width(&shown);
                    pending = 0;
                    match cell.colour.filter(|_| is_coloured) {
                        Some(colour) => line.push_str(&colour.paint(&shown)),
                        None => line.push_str(&shown),
                    }
                }
                pending += after;
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table = TextTable::headed(["NAME", "N", "ERROR"]);
        table.row(["a".into(), TableCell::from("1").number(), "".into()]);
        let long = "something went wrong".to_owned();
        table.row([
            "日本".into(),
            TableCell::from("1000").number(),
            TableCell::from(long).colour(CellColour::Red),
        ]);
        table
    }

    #[test]
    fn table_columns_are_aligned_by_their_displayed_width() {
        insta::assert_snapshot!(table().render(None, false), @r"
        NAME     N  ERROR
        a        1
        日本  1000  something went wrong
        ");
    }

    #[test]
    fn a_table_line_is_cut_at_the_width_of_the_terminal() {
        let rendered = table().render(Some(20), true);
        assert!(rendered.ends_with("\u{1b}[31msomethi…\u{1b}[0m\n"), "{rendered:?}");
        for columns in 0..30 {
            for line in table().render(Some(columns), false).lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
    }
}
