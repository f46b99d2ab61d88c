//! The sliding window: the current count and a share of the previous one.
//!
//! The word is `window number | previous count | current count`. The estimate is
//! `current + previous x (1 - elapsed fraction of the current window)`: with 90 in the previous window, 20 in this one and
//! a quarter of it gone, 20 + 90 x 0.75 = 87.5.
//!
//! **It assumes that the previous window was evenly filled.** Ninety admissions at its very end count as if spread, so
//! soon after, almost another whole limit may pass within one window's length; ninety at its beginning count longer than
//! they should. It never admits more than the limit in an aligned window.

use super::{Algorithm, Meter, Rate, fixed_window::window};

/// The largest limits by window: a second, a minute, an hour, a day. The rest of the word numbers windows for 17 years at
/// least, so that a stale window never counts as the previous one.
pub const MAX_SLIDING_WINDOW: [(u64, u64); 4] = [
    (SECOND, (1 << 17) - 1),
    (60 * SECOND, (1 << 20) - 1),
    (3_600 * SECOND, (1 << 23) - 1),
    (86_400 * SECOND, (1 << 25) - 1),
];

const SECOND: u64 = 1_000_000_000;
const ONE: u64 = 1 << 32;

impl Meter {
    /// A sliding window that admits `rate.tokens` in `rate.period`; `None` unless the period is one of
    /// [`MAX_SLIDING_WINDOW`] and the limit in its range.
    #[must_use]
    pub fn sliding_window(rate: Rate) -> Option<Self> {
        window(rate, Algorithm::SlidingWindow, &MAX_SLIDING_WINDOW)
    }
}

/// A word taken apart, at a moment.
struct Counts {
    number: u64,
    previous: u64,
    current: u64,
    /// What remains of the current window, in 2^-32.
    remains: u64,
}

#[inline(always)]
fn counts(meter: &Meter, word: u64, now: u64) -> Counts {
    let bits = u32::from(meter.detail);
    let progress = meter.progress(now);
    let number = progress >> 32;
    let noted = word >> (2 * bits);
    let current = word & meter.count_mask();
    let previous = (word >> bits) & meter.count_mask();
    let remains = ONE - (progress & (ONE - 1));
    if noted == number {
        Counts {
            number,
            previous,
            current,
            remains,
        }
    } else if noted + 1 == number {
        Counts {
            number,
            previous: current,
            current: 0,
            remains,
        }
    } else if noted == number + 1 {
        // A clock read late on another CPU: this window has just begun.
        Counts {
            number: noted,
            previous,
            current,
            remains: ONE,
        }
    } else {
        Counts {
            number,
            previous: 0,
            current: 0,
            remains,
        }
    }
}

/// The estimate in 2^-32 tokens.
#[inline(always)]
pub(super) fn estimate(meter: &Meter, word: u64, now: u64) -> u64 {
    let Counts {
        previous,
        current,
        remains,
        ..
    } = counts(meter, word, now);
    (current << 32) + previous * remains
}

#[inline(always)]
pub(super) fn take(meter: &Meter, word: u64, now: u64, cost: u64) -> Option<u64> {
    let bits = u32::from(meter.detail);
    let room = meter.size.checked_sub(cost)?;
    let Counts {
        number,
        previous,
        current,
        remains,
    } = counts(meter, word, now);
    if (current << 32) + previous * remains > room << 32 {
        return None;
    }
    Some(number << (2 * bits) | previous << bits | (current + cost))
}

/// The estimate in whole tokens, rounded up.
#[inline(always)]
pub(super) fn counted(meter: &Meter, word: u64, now: u64) -> u64 {
    (estimate(meter, word, now) + (ONE - 1)) >> 32
}

/// Whole tokens left by the estimate.
pub(super) fn tokens(meter: &Meter, word: u64, now: u64) -> u64 {
    (meter.size << 32).saturating_sub(estimate(meter, word, now)) >> 32
}

#[cfg(test)]
mod tests;
