//! Numbers within bounds.

use std::fmt::Display;

use toml::Spanned;

use super::diagnostic::ConfigProblem;

/// Returns the number of `key`, if it is set. Refuses a number below `least` or above `most`.
pub(super) fn bounded_number<N, T>(
    key: &str,
    found: Option<&Spanned<N>>,
    (least, most): (T, T),
) -> Result<Option<T>, ConfigProblem>
where
    N: Copy + Display + TryInto<T>,
    T: Copy + Display + PartialOrd,
{
    let Some(found) = found else { return Ok(None) };
    match (*found.get_ref()).try_into() {
        Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => {
            let message = format!("`{key}` is {}", found.get_ref());
            Err(ConfigProblem::at(found.span(), message).help(format!("use {least} to {most}")))
        }
    }
}
