//! Regular expressions for the whole numbers of a range.

/// Returns a pattern for the whole numbers of a range, without leading zeros.
pub(super) fn numbers(least: u64, most: u64) -> String {
    let mut patterns = Vec::new();
    let mut from = least;
    // One alternative for each number of digits.
    while from <= most {
        let nines = 10_u64.pow(from.checked_ilog10().unwrap_or(0) + 1) - 1;
        let to = nines.min(most);
        patterns.push(of_one_length(&from.to_string(), &to.to_string()));
        from = to + 1;
    }
    format!("(?:{})", patterns.join("|"))
}

/// As [`numbers`], for two bounds with the same number of digits.
fn of_one_length(least: &str, most: &str) -> String {
    let (Some(first), Some(last)) = (least.chars().next(), most.chars().next()) else {
        return String::new();
    };
    let (low, high) = (&least[1..], &most[1..]);
    let any = |from: char, to: char| {
        let digits = if from == to { from.to_string() } else { format!("[{from}-{to}]") };
        match low.len() {
            0 => digits,
            1 => format!("{digits}[0-9]"),
            n => format!("{digits}[0-9]{{{n}}}"),
        }
    };
    let is_all = |low: &str, high: &str| {
        low.chars().all(|digit| digit == '0') && high.chars().all(|digit| digit == '9')
    };
    if is_all(low, high) {
        return any(first, last);
    }
    if first == last {
        return format!("{first}{}", of_one_length(low, high));
    }
    let next = |digit: char, by: i8| char::from((digit as u8).saturating_add_signed(by));
    let mut patterns = Vec::new();
    let (mut from, mut to) = (first, last);
    if low.contains(|digit| digit != '0') {
        patterns.push(format!("{first}{}", of_one_length(low, &"9".repeat(low.len()))));
        from = next(first, 1);
    }
    if high.contains(|digit| digit != '9') {
        to = next(last, -1);
    }
    if from <= to {
        patterns.push(any(from, to));
    }
    if to != last {
        patterns.push(format!("{last}{}", of_one_length(&"0".repeat(high.len()), high)));
    }
    format!("(?:{})", patterns.join("|"))
}
