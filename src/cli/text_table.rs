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
    /// Texts are cut on a narrow terminal, so that all numbers are there.
    keeps_numbers: bool,
}

/// The width that each text has beside the numbers, in columns. To reach it, headings are shortened,
/// and then the last text stands below its row.
const TEXT_WIDTH_MIN: usize = 12;

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

    /// Returns a table whose texts are cut on a narrow terminal, so that all numbers are there. Each
    /// heading has its form for one. There, the last column, which is a text, stands below its row.
    pub(super) fn of_numbers<'a>(heading: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { is_whole: false, keeps_numbers: true, ..Self::whole(heading) }
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
        if let Some(columns) = columns.filter(|_| self.keeps_numbers) {
            return self.render_beside_numbers(columns, is_coloured);
        }
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

    /// Returns the lines with all numbers. The last texts stand below their rows if they do not fit.
    fn render_beside_numbers(&self, columns: usize, is_coloured: bool) -> String {
        let (rows, notes) = beside_numbers(&self.rows, columns);
        let mut text = String::new();
        for (index, line) in lines(&rows, Some(columns), is_coloured).iter().enumerate() {
            text.push_str(line);
            if let Some(note) = notes.get(index).filter(|_| index > 0) {
                let shown = cut(&note.text, columns.saturating_sub(GAP.len()));
                text.push_str(&format!("{GAP}{}\n", note.painted(&shown, is_coloured)));
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

/// Returns the rows with texts that leave room for the numbers in the number of `columns`, and the
/// last texts, if they stand below their rows.
fn beside_numbers(
    rows: &[Vec<TableCell>],
    columns: usize,
) -> (Vec<Vec<TableCell>>, Vec<TableCell>) {
    let (mut rows, mut notes) = (rows.to_vec(), Vec::new());
    if total_width(&rows) <= columns {
        return (rows, notes);
    }
    let is_number =
        |index: &usize| rows.iter().any(|row| row.get(*index).is_some_and(|cell| cell.is_number));
    let mut texts: Vec<usize> =
        (0..column_widths(&rows).len()).filter(|index| !is_number(index)).collect();
    let mut left = room_of_texts(&rows, &texts, columns);
    if left < TEXT_WIDTH_MIN * texts.len() {
        rows = rows.iter().map(|row| row.iter().map(TableCell::shortened).collect()).collect();
        left = room_of_texts(&rows, &texts, columns);
    }
    if left < TEXT_WIDTH_MIN * texts.len() && texts.len() > 1 {
        notes = rows.iter_mut().map(|row| row.pop().unwrap_or_default()).collect();
        texts.pop();
        left = room_of_texts(&rows, &texts, columns);
    }
    let widths = column_widths(&rows);
    // Each text has the same room, and short ones leave theirs to the others.
    texts.sort_by_key(|index| widths[*index]);
    for (n_done, index) in texts.iter().enumerate() {
        let width = widths[*index].min(left / (texts.len() - n_done)).max(1);
        left = left.saturating_sub(width);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(*index)) {
            cell.text = cut(&cell.text, width);
        }
    }
    (rows, notes)
}

/// Returns the width that the numbers and the gaps leave to the columns with the `texts`.
fn room_of_texts(rows: &[Vec<TableCell>], texts: &[usize], columns: usize) -> usize {
    let widths = column_widths(rows);
    let of_texts: usize = texts.iter().map(|index| widths[*index]).sum();
    columns.saturating_sub(total_width(rows).saturating_sub(of_texts))
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
mod tests;
