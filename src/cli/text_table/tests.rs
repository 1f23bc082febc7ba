//! Tests of the tables.

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
fn a_long_text_takes_no_room_from_numbers() {
    for columns in 24..100 {
        let mut table =
            TextTable::of_numbers([("NAME", "NAME"), ("AVERAGE", "AVG"), ("WHO", "WHO")]);
        let number = || TableCell::from("123.4 ms").number();
        table.row(["W".repeat(250).into(), number(), "claude-code".into()]);
        table.row(["日本".repeat(50).into(), number(), "b".into()]);
        let shown = table.render(Some(columns), false);
        assert!(shown.lines().all(|line| width(line) <= columns), "{columns}: {shown}");
        assert_eq!(shown.matches("123.4 ms").count(), 2, "{columns}: {shown}");
        assert!(shown.contains("  claude-cod"), "{columns}: {shown}");
    }
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
