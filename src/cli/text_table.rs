//! A table with aligned columns.
//!
//! Hand-made: table crates wrap or frame cells. This one cuts at the edge of the terminal, or, if it
//! must lose nothing, uses shorter words, and below that width one line for each cell.

use super::terminal::{cut, width, wrap};

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
    /// The text for a narrow terminal, if it differs.
    short: Option<String>,
    colour: Option<CellColour>,
    is_number: bool,
}

/// Rows of cells; the first may be a heading.
#[derive(Clone, Debug, Default)]
pub(super) struct TextTable {
    rows: Vec<Vec<TableCell>>,
    is_headed: bool,
    /// The last column may be long: it stands below its row if it does not fit beside it.
    has_notes: bool,
    /// No text may be lost on a narrow terminal.
    is_whole: bool,
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

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the cell, aligned to the right.
    #[must_use]
    pub(super) fn number(mut self) -> Self {
        self.is_number = true;
        self
    }

    /// Returns the cell with this text on a narrow terminal.
    #[must_use]
    pub(super) fn short(mut self, text: impl Into<String>) -> Self {
        self.short = Some(text.into());
        self
    }

    fn shortened(&self) -> Self {
        let text = self.short.as_ref().unwrap_or(&self.text).clone();
        Self { text, short: None, ..self.clone() }
    }

    fn painted(&self, text: &str, is_coloured: bool) -> String {
        match self.colour.filter(|_| is_coloured) {
            Some(colour) => colour.paint(text),
            None => text.to_owned(),
        }
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
        Self { rows: vec![heading.collect()], is_headed: true, ..Self::default() }
    }

    /// Returns a table that loses no text on a narrow terminal. Each heading has its form for one.
    pub(super) fn whole<'a>(heading: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let heading = heading
            .into_iter()
            .map(|(text, short)| TableCell::from(text).short(short).colour(CellColour::Bold));
        Self { rows: vec![heading.collect()], is_headed: true, is_whole: true, ..Self::default() }
    }

    /// Returns the table with a last column that stands below its row if it does not fit beside it.
    #[must_use]
    pub(super) fn with_notes(self) -> Self {
        Self { has_notes: true, ..self }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns `true` if the table has no rows below its heading.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == usize::from(self.is_headed)
    }

    /// Returns the lines, within the number of `columns` if that is known. The last column is not
    /// padded.
    pub(super) fn render(&self, columns: Option<usize>, is_coloured: bool) -> String {
        let Some(columns) = columns.filter(|_| self.is_whole) else {
            return lines(&self.rows, columns, is_coloured).concat();
        };
        if total_width(&self.rows) <= columns {
            return lines(&self.rows, None, is_coloured).concat();
        }
        let (mut rows, mut notes) = (self.rows.clone(), Vec::new());
        if self.has_notes {
            notes = rows.iter_mut().map(|row| row.pop().unwrap_or_default()).collect();
            notes[0] = TableCell::default();
        }
        if total_width(&rows) > columns {
            rows = rows.iter().map(|row| row.iter().map(TableCell::shortened).collect()).collect();
        }
        if total_width(&rows) > columns {
            return stacked(&rows, &notes, columns, is_coloured);
        }
        let mut text = String::new();
        for (index, line) in lines(&rows, None, is_coloured).iter().enumerate() {
            text.push_str(line);
            if let Some(note) = notes.get(index) {
                text.push_str(&indented(note, columns, is_coloured));
            }
        }
        text
    }
}

fn column_widths(rows: &[Vec<TableCell>]) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (known, cell) in widths.iter_mut().zip(row) {
            *known = (*known).max(width(&cell.text));
        }
    }
    widths
}

fn total_width(rows: &[Vec<TableCell>]) -> usize {
    let widths: Vec<_> = column_widths(rows).into_iter().filter(|width| *width > 0).collect();
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// Returns each row as one line, cut to the number of `columns`.
fn lines(rows: &[Vec<TableCell>], columns: Option<usize>, is_coloured: bool) -> Vec<String> {
    let widths = column_widths(rows);
    let below = rows.get(1);
    let line = |row: &Vec<TableCell>| {
        // A heading is aligned like the cell below it.
        let below = below.unwrap_or(row);
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
                line.push_str(&cell.painted(&shown, is_coloured));
            }
            pending += after;
        }
        line.push('\n');
        line
    };
    rows.iter().map(line).collect()
}

/// Returns the rows with one line for each cell: `HEADING text`.
fn stacked(
    rows: &[Vec<TableCell>],
    notes: &[TableCell],
    columns: usize,
    is_coloured: bool,
) -> String {
    let Some((heading, rows)) = rows.split_first() else { return String::new() };
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (at, (cell, heading)) in row.iter().zip(heading).enumerate() {
            if at == 0 {
                for line in wrap(&cell.text, columns) {
                    text.push_str(&format!("{line}\n"));
                }
            } else if !cell.text.is_empty() && cell.text != "-" {
                let named =
                    TableCell { text: format!("{} {}", heading.text, cell.text), ..cell.clone() };
                text.push_str(&indented(&named, columns, is_coloured));
            }
        }
        if let Some(note) = notes.get(index + 1) {
            text.push_str(&indented(note, columns, is_coloured));
        }
    }
    text
}

/// Returns the wrapped lines of a cell, indented; nothing for an empty one.
fn indented(cell: &TableCell, columns: usize, is_coloured: bool) -> String {
    let gap = if columns > 4 * GAP.len() { GAP } else { "" };
    let lines = wrap(&cell.text, columns - gap.len());
    lines.iter().map(|line| format!("{gap}{}\n", cell.painted(line, is_coloured))).collect()
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

    fn whole() -> TextTable {
        let headings = [("SERVER", "SERVER"), ("LAST SEEN", "SEEN"), ("LAST ERROR", "ERROR")];
        let mut table = TextTable::whole(headings).with_notes();
        let seen = || TableCell::from("12 s ago").short("12 s");
        table.row(["git".into(), seen(), "".into()]);
        table.row(["a-long-name".into(), seen(), "its process exited with code 1".into()]);
        table
    }

    #[test]
    fn a_narrower_terminal_gets_shorter_words_and_no_fewer_columns() {
        let shown = [60, 40, 20, 12].map(|columns| whole().render(Some(columns), false));
        insta::assert_snapshot!(shown.join("\n"), @r"
        SERVER       LAST SEEN  LAST ERROR
        git          12 s ago
        a-long-name  12 s ago   its process exited with code 1

        SERVER       LAST SEEN
        git          12 s ago
        a-long-name  12 s ago
          its process exited with code 1

        SERVER       SEEN
        git          12 s
        a-long-name  12 s
          its process exited
          with code 1

        git
          SEEN 12 s
        a-long-name
          SEEN 12 s
          its
          process
          exited
          with code
          1
        ");
    }

    #[test]
    fn a_whole_table_loses_no_word_at_any_width() {
        for columns in 1..70 {
            let shown = whole().render(Some(columns), false);
            assert!(shown.lines().all(|line| width(line) <= columns), "{columns}: {shown}");
            let letters: String = shown.split_whitespace().collect();
            assert!(letters.contains("itsprocessexitedwithcode1"), "{columns}: {shown}");
        }
    }
}
