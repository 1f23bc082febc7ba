//! A table of a bounded size, whose rows become cards on a narrow screen.

use serde_json::Value;

use super::html::Html;

/// A column: its title, and whether its cells, such as numbers, stay on one line.
pub(super) type TableColumn = (&'static str, bool);

/// Returns a table with a row for each item, as far as they fit into about `bytes_max` bytes, and
/// the number of the others. `cells` writes the cells of an item, one for each column.
///
/// The roles are those of the elements. A style that makes cards of rows would take them away.
pub(super) fn table<const N: usize>(
    columns: [TableColumn; N],
    items: &[Value],
    bytes_max: usize,
    cells: impl Fn(&Value) -> [Html; N],
) -> Html {
    let mut html = Html::default();
    html.markup("<table role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">");
    for (title, _) in columns {
        html.markup("<th scope=\"col\" role=\"columnheader\">").markup(title).markup("</th>");
    }
    html.markup("</tr></thead><tbody role=\"rowgroup\">");
    let mut n_shown = 0;
    for item in items {
        let row = row(columns, &cells(item));
        if html.len() + row.len() > bytes_max {
            break;
        }
        html.part(&row);
        n_shown += 1;
    }
    html.markup("</tbody></table>").part(&more(items.len() - n_shown));
    html
}

fn row<const N: usize>(columns: [TableColumn; N], cells: &[Html; N]) -> Html {
    let mut html = Html::default();
    html.markup("<tr role=\"row\">");
    for (index, ((title, is_one_line), cell)) in columns.into_iter().zip(cells).enumerate() {
        if index == 0 {
            html.markup("<th scope=\"row\" role=\"rowheader\">").part(cell).markup("</th>");
            continue;
        }
        html.markup("<td role=\"cell\" data-label=\"").markup(title).markup("\"");
        html.markup(if is_one_line { " class=\"n\">" } else { ">" }).part(cell).markup("</td>");
    }
    html.markup("</tr>");
    html
}

/// Returns the number of items that are not shown, if there are any.
pub(super) fn more(n_left: usize) -> Html {
    let mut html = Html::default();
    if n_left > 0 {
        html.markup("<p>and ").number(n_left).markup(" more</p>");
    }
    html
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_names_the_rows_that_it_leaves_out() {
        let items: Vec<Value> = (0..100).map(|number| json!(number)).collect();
        let shown = table([("Number", true), ("Half", true)], &items, 2_000, |item| {
            let mut cell = Html::default();
            cell.number(item);
            [cell.clone(), cell]
        });
        let n_rows = shown.as_str().matches("scope=\"row\"").count();
        assert!(shown.len() < 2_100 && n_rows > 5, "{}", shown.as_str());
        assert!(shown.as_str().ends_with(&format!("<p>and {} more</p>", 100 - n_rows)));
        assert_eq!(more(0), Html::default());
    }
}
