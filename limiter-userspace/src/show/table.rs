//! Columns of text.

use std::fmt::Write as _;

/// Rows below a title each, as wide as needed; the last column is not padded.
pub(super) fn table<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let titles = titles.map(str::to_owned);
    let rows: Vec<[String; N]> = [titles]
        .iter()
        .chain(rows)
        .map(|row| row.each_ref().map(|cell| printable(cell)))
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in &rows {
        let mut text = String::new();
        for (cell, width) in row.iter().zip(widths) {
            write!(text, "{cell:<width$}  ").expect("a string takes any text");
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// Text without control characters, which could forge lines or command a terminal: names of processes and the like are
/// chosen by others.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_needed() {
        let rows = [["1".to_owned(), "ä".to_owned(), String::new()]];
        assert_eq!(table(["a", "bcd", "e"], &rows), "a  bcd  e\n1  ä\n");
    }

    #[test]
    fn terminals_are_not_commanded() {
        assert_eq!(printable("a\u{1b}[2J\nb\u{7f}ü"), "a\\u{1b}[2J\\nb\\u{7f}ü");
    }
}
