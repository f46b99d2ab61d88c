//! Whether a new version of a list takes the place of the last good one.

use std::fmt;

use super::Parsed;

/// A list of fewer prefixes than this may grow as it likes: by hand, three entries become forty.
pub const GROWN_FROM: usize = 1_000;
/// How many times as long a list may have become.
const GROWTH: usize = 10;

/// Why a new version of a list is not taken. What was loaded before stays in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has no prefixes any more.
    Empty {
        /// How many it had.
        before: usize,
    },
    /// It has fewer than half as many prefixes.
    Shrunken {
        /// How many it had.
        before: usize,
        /// How many it would have.
        now: usize,
    },
    /// It has at least ten times as many prefixes, and [`GROWN_FROM`] or more.
    Grown {
        /// How many it had.
        before: usize,
        /// How many it would have.
        now: usize,
    },
    /// More than half of its entries are no prefixes: a web page, for instance.
    NotAList {
        /// Lines that say anything.
        entries: usize,
        /// Those that are no prefixes.
        foreign: usize,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { before } => write!(f, "no prefixes are left of {before}")?,
            Self::Shrunken { before, now } => write!(
                f,
                "only {now} of {before} prefixes are left, fewer than half"
            )?,
            Self::Grown { before, now } => write!(
                f,
                "{before} prefixes have become {now}, {GROWTH} times as many or more"
            )?,
            Self::NotAList { entries, foreign } => {
                return write!(
                    f,
                    "not a list of prefixes: {foreign} of its {entries} lines are none"
                );
            }
        }
        f.write_str(
            "; to take it nevertheless, remove the file from the policy, reload, add it again and reload",
        )
    }
}

impl std::error::Error for Refused {}

/// Whether a list may replace its last version, of which `before` tells how many prefixes it had; `None` where there is
/// none, so that any list will do, even an empty one that is yet to be filled.
///
/// # Errors
///
/// Where it more likely tells of an accident at its source.
pub fn accept(before: Option<usize>, parsed: &Parsed) -> Result<(), Refused> {
    let Parsed {
        entries, foreign, ..
    } = *parsed;
    if foreign > entries / 2 {
        return Err(Refused::NotAList { entries, foreign });
    }
    let now = parsed.prefixes.len();
    match before {
        None | Some(0) => Ok(()),
        Some(before) if now == 0 => Err(Refused::Empty { before }),
        Some(before) if now < before.div_ceil(2) => Err(Refused::Shrunken { before, now }),
        Some(before) if now >= GROWN_FROM && now / GROWTH >= before => {
            Err(Refused::Grown { before, now })
        }
        Some(_) => Ok(()),
    }
}
