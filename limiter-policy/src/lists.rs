//! Lists of prefixes in files: one a line, for classes, allowed and banned sources.

mod accept;
mod delta;
mod families;
mod line;

use std::fmt;

pub use accept::{GROWN_FROM, Refused, accept};
pub use delta::{Delta, difference, small_difference};
pub use families::keep_apart;
pub use line::{Reason, WIDEST};

use crate::prefix::Prefix;

/// Skipped lines that are kept, to be shown; the others are only counted.
pub const SHOWN: usize = 10;
/// Bytes of a skipped line that are kept.
pub const SHOWN_BYTES: usize = 64;

/// What a file says.
///
/// A prefix inside another one stays, although it adds no address: the longest prefix decides between lists, so
/// without it another list's prefix in between the two would win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Its prefixes, sorted, each once.
    pub prefixes: Vec<Prefix>,
    /// Lines that say anything: neither blank nor a comment only.
    pub entries: usize,
    /// The first [`SHOWN`] of the lines that were skipped.
    pub skipped: Vec<Skipped>,
    /// How many of the skipped lines are no prefixes.
    pub foreign: usize,
    /// How many of the skipped lines are prefixes that cover too much for a list: see [`WIDEST`].
    pub too_wide: usize,
    /// Prefixes with address bits beyond their length, which were cleared.
    pub masked: usize,
    /// Prefixes that had come before.
    pub duplicates: usize,
    /// Prefixes inside another one.
    pub covered: usize,
}

/// A line that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its number, from 1.
    pub line: usize,
    /// How it begins.
    pub text: String,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, text, reason } = self;
        write!(f, "line {line}: {text:?}: {reason}")
    }
}

impl Parsed {
    /// How many lines were skipped.
    #[must_use]
    pub const fn skipped_lines(&self) -> usize {
        self.foreign + self.too_wide
    }

    fn skip(&mut self, line: usize, text: &[u8], reason: Reason) {
        match reason {
            Reason::TooWide => self.too_wide += 1,
            _ => self.foreign += 1,
        }
        if self.skipped.len() < SHOWN {
            let start = &text[..text.len().min(SHOWN_BYTES)];
            self.skipped.push(Skipped {
                line,
                text: String::from_utf8_lossy(start).into_owned(),
                reason,
            });
        }
    }
}

/// Reads a list: an address or a prefix a line, of either family, in any order.
///
/// `#` and `;` begin a comment. Blanks around an entry, blank lines, carriage returns and a byte order mark mean
/// nothing. An IPv4-mapped IPv6 address is the IPv4 address it stands for.
#[must_use]
pub fn parse(text: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let entry = line::entry(line);
        if entry.is_empty() {
            continue;
        }
        parsed.entries += 1;
        match line::prefix(entry) {
            Ok((prefix, masked)) => {
                parsed.prefixes.push(prefix);
                parsed.masked += usize::from(masked);
            }
            Err(reason) => parsed.skip(index + 1, entry, reason),
        }
    }
    let before = parsed.prefixes.len();
    parsed.prefixes.sort_unstable();
    parsed.prefixes.dedup();
    parsed.duplicates = before - parsed.prefixes.len();
    parsed.covered = covered(&parsed.prefixes);
    parsed
}

/// How many of the sorted prefixes lie inside another one: all those after it that it covers follow it at once.
fn covered(sorted: &[Prefix]) -> usize {
    let mut outer: Option<Prefix> = None;
    let mut count = 0;
    for prefix in sorted {
        if outer.is_some_and(|outer| outer.covers(prefix)) {
            count += 1;
        } else {
            outer = Some(*prefix);
        }
    }
    count
}

#[cfg(test)]
mod tests;
