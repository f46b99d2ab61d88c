//! What is wrong with a file, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A fault of a policy file. Its text is one line: `FILE:LINE:COLUMN: KEY: REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The key at fault, dotted: `limits.per-source.burst`. Limits go by name where they have one; elements are counted
    /// from 1.
    pub key: String,
    /// What is wrong, the bound, and what to write instead.
    pub reason: String,
}

/// A fault, before its place is counted out in lines and columns.
#[derive(Debug)]
pub(super) struct Fault {
    /// In bytes.
    offset: usize,
    key: String,
    reason: String,
}

/// What stands for a key where the text is not TOML.
const SYNTAX: &str = "syntax";

impl Fault {
    pub(super) fn new(offset: usize, key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            offset,
            key: key.into(),
            reason: reason.into(),
        }
    }

    /// The first place where a text is not TOML. Of errors in one place the last is the innermost.
    pub(super) fn first_syntax(text: &str, errors: &[toml::de::Error]) -> Option<Self> {
        let place = |error: &&toml::de::Error| error.span().unwrap_or_default().start;
        let error = errors.iter().rev().min_by_key(place)?;
        let span = error.span().unwrap_or_default();
        let mut reason = error.message().to_owned();
        if reason == "duplicate key" {
            // The parser names neither the key nor what is to be done.
            let key = text.get(span.clone()).unwrap_or_default();
            reason = format!(
                "`{key}` is defined twice: each key and each table once, but for [[limits]]"
            );
        }
        Some(Self::new(span.start, SYNTAX, reason))
    }

    pub(super) fn locate(self, path: &Path, text: &str) -> FileError {
        let Self {
            offset,
            key,
            reason,
        } = self;
        let (line, column) = line_and_column(text, offset);
        FileError {
            file: path.to_owned(),
            line,
            column,
            key,
            reason,
        }
    }
}

/// The line and column of a byte, both counted from 1.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    // Editors do not show a byte order mark.
    let (text, offset) = match text.strip_prefix('\u{feff}') {
        Some(rest) => (rest, offset.saturating_sub('\u{feff}'.len_utf8())),
        None => (text, offset),
    };
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    (line, column)
}

/// The longest key and reason shown: what was written is part of them, and may be of any length.
const MAX_SHOWN: usize = 1000;

/// A text on one line, of bounded length.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, c) in self.0.chars().enumerate() {
            if place == MAX_SHOWN {
                return f.write_str("...");
            }
            // The line and paragraph separators end a line for some readers of logs.
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                write!(f, "{}", c.escape_debug())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            key,
            reason,
        } = self;
        let file = file.to_string_lossy();
        let (file, key, reason) = (OneLine(&file), OneLine(key), OneLine(reason));
        write!(f, "{file}:{line}:{column}: {key}: {reason}")
    }
}

impl std::error::Error for FileError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let text = "a = 1\n\"\u{e9}\u{e9}\" = 2\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('2').unwrap()), (2, 8));
        assert_eq!(line_and_column(text, text.len()), (3, 1));
        assert_eq!(line_and_column(text, text.len() + 7), (3, 1));
        assert_eq!(line_and_column("\u{feff}a = 1", 3), (1, 1));
    }

    #[test]
    fn an_error_is_one_line_of_bounded_length() {
        let error = FileError {
            file: "p.toml".into(),
            line: 1,
            column: 2,
            key: "a\nb".to_owned(),
            reason: "x".repeat(2000),
        };
        let text = error.to_string();
        assert!(text.starts_with("p.toml:1:2: a\\nb: xxx"), "{text}");
        assert!(!text.contains('\n') && text.len() < 1100, "{text}");
    }
}
