//! The fixed window: a count in aligned windows.
//!
//! The word is `window number | count`. The windows are aligned to the monotonic clock, so a source may spend a whole
//! window's limit at its end and the next one's at its beginning: **up to twice the limit passes within one window's
//! length across the seam.** Choose it where a number per clock window is what was promised to somebody.

use super::{Algorithm, Meter, Rate, clock::binary_fraction};

/// The largest limits by window: a second, a minute, an hour, a day. The rest of the word numbers windows for 17 years
/// at least, so that a window is never taken for a later one of the same number.
pub const MAX_FIXED_WINDOW: [(u64, u64); 4] = [
    (SECOND, (1 << 35) - 1),
    (60 * SECOND, (1 << 40) - 1),
    (3_600 * SECOND, (1 << 46) - 1),
    (86_400 * SECOND, (1 << 51) - 1),
];

const SECOND: u64 = 1_000_000_000;

impl Meter {
    /// A fixed window that admits `rate.tokens` in each `rate.period`; `None` unless the period is one of
    /// [`MAX_FIXED_WINDOW`] and the limit in its range.
    #[must_use]
    pub fn fixed_window(rate: Rate) -> Option<Self> {
        window(rate, Algorithm::FixedWindow, &MAX_FIXED_WINDOW)
    }
}

/// A meter that counts in windows of `rate.period`.
pub(super) fn window(rate: Rate, algorithm: Algorithm, ranges: &[(u64, u64)]) -> Option<Meter> {
    let Rate { tokens, period } = rate;
    let (_, most) = ranges.iter().find(|(window, _)| *window == period)?;
    if tokens == 0 || tokens > *most {
        return None;
    }
    let (multiplier, shift) = binary_fraction(1, period);
    Some(Meter {
        multiplier,
        size: tokens,
        // Progress in 2^-32 of a window.
        shift: shift - 32,
        algorithm: algorithm as u8,
        detail: u8::try_from(most.count_ones()).ok()?,
        zero: 0,
    })
}

/// The window at `now`, unless the word is already in the one after: a clock read late on another CPU.
#[inline(always)]
fn current(meter: &Meter, word: u64, now: u64) -> u64 {
    let bits = u32::from(meter.detail);
    let number = meter.progress(now) >> 32;
    let noted = word >> bits;
    if noted == number + 1 { noted } else { number }
}

/// What is counted in the window at `now`.
#[inline(always)]
pub(super) fn counted(meter: &Meter, word: u64, now: u64) -> u64 {
    let same = word >> u32::from(meter.detail) == current(meter, word, now);
    if same { word & meter.count_mask() } else { 0 }
}

#[inline(always)]
pub(super) fn take(meter: &Meter, word: u64, now: u64, cost: u64) -> Option<u64> {
    let room = meter.size.checked_sub(cost)?;
    let count = counted(meter, word, now);
    if count > room {
        return None;
    }
    Some(current(meter, word, now) << u32::from(meter.detail) | (count + cost))
}

#[cfg(test)]
mod tests;
