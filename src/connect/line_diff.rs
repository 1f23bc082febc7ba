//! A unified diff of two texts.

/// The unchanged lines around a change.
const CONTEXT: usize = 3;

/// The largest product of changed lines that is compared line by line.
const CELLS_MAX: usize = 4_000_000;

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffLine {
    /// The places of the following lines.
    Place(String),
    /// A line in both texts.
    Same(String),
    /// A line of the former text.
    Removed(String),
    /// A line of the new text.
    Added(String),
}

/// Returns the differences of two texts, with three lines around each. Those of line ends are
/// mentioned if there are no others.
pub fn unified(before: &str, after: &str) -> Vec<DiffLine> {
    let is_changed = before != after;
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let all = all_lines(&before, &after);
    let is_change = |line: &DiffLine| !matches!(line, DiffLine::Same(_));
    let changes: Vec<usize> =
        all.iter().enumerate().filter(|(_, line)| is_change(line)).map(|(at, _)| at).collect();
    let mut diff = Vec::new();
    if changes.is_empty() && is_changed {
        diff.push(DiffLine::Place("only line ends change".to_owned()));
    }
    let (mut before_line, mut after_line) = (1, 1);
    let mut at = 0;
    for hunk in hunks(&changes, all.len()) {
        while at < hunk.start {
            advance(&all[at], &mut before_line, &mut after_line);
            at += 1;
        }
        let lines = &all[hunk.clone()];
        let count = |is_in: fn(&DiffLine) -> bool| lines.iter().filter(|line| is_in(line)).count();
        let n_before = count(|line| !matches!(line, DiffLine::Added(_)));
        let n_after = count(|line| !matches!(line, DiffLine::Removed(_)));
        let start = |line: usize, n: usize| if n == 0 { line - 1 } else { line };
        diff.push(DiffLine::Place(format!(
            "@@ -{},{n_before} +{},{n_after} @@",
            start(before_line, n_before),
            start(after_line, n_after)
        )));
        diff.extend(lines.iter().cloned());
        while at < hunk.end {
            advance(&all[at], &mut before_line, &mut after_line);
            at += 1;
        }
    }
    diff
}

fn advance(line: &DiffLine, before: &mut usize, after: &mut usize) {
    *before += usize::from(!matches!(line, DiffLine::Added(_)));
    *after += usize::from(!matches!(line, DiffLine::Removed(_)));
}

/// Returns the ranges of lines around changes; those that touch are one.
fn hunks(changes: &[usize], n_lines: usize) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for change in changes {
        let range = change.saturating_sub(CONTEXT)..(change + CONTEXT + 1).min(n_lines);
        match hunks.last_mut() {
            Some(last) if range.start <= last.end => last.end = range.end,
            _ => hunks.push(range),
        }
    }
    hunks
}

/// Returns all lines of both texts, with the longest common sequence once.
fn all_lines(before: &[&str], after: &[&str]) -> Vec<DiffLine> {
    let n_head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (head, before) = before.split_at(n_head);
    let after = &after[n_head..];
    let n_tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, tail) = before.split_at(before.len() - n_tail);
    let new = &after[..after.len() - n_tail];
    let same = |line: &&str| DiffLine::Same((*line).to_owned());
    let mut lines: Vec<DiffLine> = head.iter().map(same).collect();
    compare(old, new, &mut lines);
    lines.extend(tail.iter().map(same));
    lines
}

/// Adds the lines of two texts, removed ones before added ones.
fn compare(old: &[&str], new: &[&str], lines: &mut Vec<DiffLine>) {
    let width = new.len() + 1;
    let is_compared = old.len().saturating_mul(new.len()) <= CELLS_MAX;
    // The length of the longest common sequence from each pair of lines on.
    let mut lengths = vec![0_u32; if is_compared { (old.len() + 1) * width } else { 0 }];
    if is_compared {
        for (at, line) in old.iter().enumerate().rev() {
            for (to, other) in new.iter().enumerate().rev() {
                lengths[at * width + to] = match line == other {
                    true => lengths[(at + 1) * width + to + 1] + 1,
                    false => lengths[(at + 1) * width + to].max(lengths[at * width + to + 1]),
                };
            }
        }
    }
    let (mut at, mut to) = (0, 0);
    while at < old.len() || to < new.len() {
        let is_left = at < old.len() && to < new.len();
        if is_left && is_compared && old[at] == new[to] {
            lines.push(DiffLine::Same(old[at].to_owned()));
            (at, to) = (at + 1, to + 1);
        } else if at < old.len()
            && (!is_left
                || !is_compared
                || lengths[(at + 1) * width + to] >= lengths[at * width + to + 1])
        {
            lines.push(DiffLine::Removed(old[at].to_owned()));
            at += 1;
        } else {
            lines.push(DiffLine::Added(new[to].to_owned()));
            to += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let show = |line: DiffLine| match line {
            DiffLine::Place(text) => text,
            DiffLine::Same(text) => format!(" {text}"),
            DiffLine::Removed(text) => format!("-{text}"),
            DiffLine::Added(text) => format!("+{text}"),
        };
        unified(before, after).into_iter().map(show).collect::<Vec<String>>().join("\n")
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n";
        let after = before.replace("2\n3", "2\nx\n3").replace("12\n", "");
        assert_eq!(
            shown(before, &after),
            "@@ -1,5 +1,6 @@\n 1\n 2\n+x\n 3\n 4\n 5\n@@ -9,5 +10,4 @@\n 9\n 10\n 11\n-12\n 13"
        );
        assert_eq!(shown("", "a\n"), "@@ -0,0 +1,1 @@\n+a");
        assert_eq!(shown("a\n", "a\n"), "");
    }

    #[test]
    fn a_change_of_nothing_but_line_ends_is_said_in_words() {
        assert_eq!(shown("a\r\nb\r\n", "a\nb\n"), "only line ends change");
        assert_eq!(shown("a", "a\n"), "only line ends change");
        assert_eq!(shown("a\r\n", "b\n"), "@@ -1,1 +1,1 @@\n-a\n+b");
    }

    proptest! {
        #[test]
        fn both_texts_follow_from_all_lines_of_a_diff(
            before in "([ab]\n){0,8}", after in "([ab]\n){0,8}"
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
            let lines = all_lines(&old, &new);
            let of = |is_in: fn(&DiffLine) -> Option<&String>| -> String {
                lines.iter().filter_map(is_in).map(|line| format!("{line}\n")).collect()
            };
            prop_assert_eq!(of(|line| match line {
                DiffLine::Same(text) | DiffLine::Removed(text) => Some(text),
                _ => None,
            }), before);
            prop_assert_eq!(of(|line| match line {
                DiffLine::Same(text) | DiffLine::Added(text) => Some(text),
                _ => None,
            }), after);
        }
    }
}
