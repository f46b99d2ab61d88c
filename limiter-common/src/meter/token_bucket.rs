//! The token bucket, in one word.
//!
//! A bucket of `burst` tokens fills at `rate`. Its word says *when it will be full again*, on a clock that counts
//! tokens: its progress is how many units the limit has produced since the clock began, and a bucket whose word is `w`
//! owes `w - progress(now)` units, none if that is negative. Taking adds the cost to what is owed.
//!
//! Nothing is ever rounded twice: progress is a pure function of the time, floored once, so a steady source gets its
//! rate to the last token however often it asks, a clock read late on another CPU only makes the bucket look a little
//! emptier, and idle time beyond what fills the bucket is simply not seen.
//!
//! A unit is `2^-token_shift` tokens, the finest that keeps the arithmetic inside 64 bits: up to 500,000,000 tokens a
//! second for as long as the clock can run, at the highest rate ([`MAX_BYTES_PER_SECOND`]) for 11.6 years of uptime,
//! after which that bucket would count as full.

use super::{Algorithm, Meter, clock::binary_fraction};

/// Tokens in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens, at least 1.
    pub tokens: u64,
    /// In this many nanoseconds, at least 1.
    pub period: u64,
}

/// The highest rate of a limit that counts packets, per second. No card delivers more.
pub const MAX_PACKETS_PER_SECOND: u64 = 1_000_000_000;
/// The highest rate of a limit that counts bytes, per second: 400 Gbit/s.
pub const MAX_BYTES_PER_SECOND: u64 = 50_000_000_000;
/// The slowest rate: one token in this many nanoseconds, 31 days.
pub const MAX_NANOS_PER_TOKEN: u64 = 31 * 86_400 * 1_000_000_000;
/// The most tokens a bucket can hold: 2^42.
pub const MAX_BURST: u64 = 1 << 42;

const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// Units per second that leave the clock 2^64 ns of room.
const MAX_EXACT_UNITS_PER_SECOND: u128 = 500_000_000;
const MAX_TOKEN_SHIFT: u32 = 20;

impl Rate {
    /// Whether this is more than `per_second` tokens a second.
    #[must_use]
    pub fn exceeds(self, per_second: u64) -> bool {
        u128::from(self.tokens) * NANOS_PER_SECOND
            > u128::from(per_second) * u128::from(self.period)
    }

    /// Whether this is less than one token in [`MAX_NANOS_PER_TOKEN`].
    #[must_use]
    pub fn is_too_slow(self) -> bool {
        u128::from(self.period) > u128::from(self.tokens) * u128::from(MAX_NANOS_PER_TOKEN)
    }
}

impl Meter {
    /// A bucket of `burst` tokens filled at `rate`; `None` outside the ranges this module states.
    #[must_use]
    pub fn token_bucket(rate: Rate, burst: u64) -> Option<Self> {
        bucket(rate, burst, Algorithm::TokenBucket)
    }

    /// A leaky bucket that drains at `rate` and holds `queue` tokens besides the one that is draining; `None` outside the
    /// ranges this module states. As a meter it is a token bucket of `queue + 1`: XDP cannot hold a packet back, so one
    /// that would have waited passes at once, and one that would have found the queue full is refused.
    #[must_use]
    pub fn leaky_bucket(rate: Rate, queue: u64) -> Option<Self> {
        bucket(rate, queue.checked_add(1)?, Algorithm::LeakyBucket)
    }
}

fn bucket(rate: Rate, burst: u64, algorithm: Algorithm) -> Option<Meter> {
    let Rate { tokens, period } = rate;
    if tokens == 0
        || period == 0
        || burst == 0
        || burst > MAX_BURST
        || period > MAX_NANOS_PER_TOKEN
        || rate.is_too_slow()
        || rate.exceeds(MAX_BYTES_PER_SECOND)
    {
        return None;
    }
    let token_shift = (0..=MAX_TOKEN_SHIFT).rev().find(|shift| {
        (u128::from(tokens) << shift) * NANOS_PER_SECOND
            <= MAX_EXACT_UNITS_PER_SECOND * u128::from(period)
    });
    let token_shift = token_shift.unwrap_or(0);
    let (multiplier, shift) = binary_fraction(tokens << token_shift, period);
    Some(Meter {
        multiplier,
        size: burst << token_shift,
        shift,
        algorithm: algorithm as u8,
        detail: u8::try_from(token_shift).ok()?,
        zero: 0,
    })
}

#[inline(always)]
pub(super) fn take(meter: &Meter, word: u64, now: u64, cost: u64) -> Option<u64> {
    let cost = cost << u32::from(meter.detail);
    let produced = meter.progress(now);
    let room = meter.size.checked_sub(cost)?;
    let start = word.max(produced);
    if start - produced > room {
        return None;
    }
    // Wraps only where progress has run out of range, and then to the word of a full bucket.
    Some(start.wrapping_add(cost))
}

/// Whole tokens in the bucket at `now`.
pub(super) fn tokens(meter: &Meter, word: u64, now: u64) -> u64 {
    meter
        .size
        .saturating_sub(word.saturating_sub(meter.progress(now)))
        >> u32::from(meter.detail)
}

/// What is owed under `old`, owed under `new`, to a unit.
#[inline(always)]
pub(super) fn convert(new: &Meter, word: u64, now: u64, old: &Meter) -> u64 {
    let owed = word.saturating_sub(old.progress(now)).min(old.size);
    let owed = if new.detail >= old.detail {
        let finer = u32::from(new.detail - old.detail);
        if owed > new.size >> finer {
            new.size
        } else {
            owed << finer
        }
    } else {
        let coarser = u32::from(old.detail - new.detail);
        (owed + (1 << coarser) - 1) >> coarser
    };
    owing(new, owed, now)
}

/// The word of a bucket that owes so many units; at most all.
///
/// Even of a full bucket it is one that no other meter is likely to write, never 0: whoever has read the word before a
/// conversion must find it changed.
#[inline(always)]
pub(super) fn owing(meter: &Meter, owed: u64, now: u64) -> u64 {
    meter
        .progress(now)
        .wrapping_add(owed.min(meter.size))
        .max(1)
}

/// What is owed at `now`, in whole tokens, rounded up.
#[inline(always)]
pub(super) fn owed(meter: &Meter, word: u64, now: u64) -> u64 {
    let bits = u32::from(meter.detail);
    let owed = word.saturating_sub(meter.progress(now)).min(meter.size);
    (owed + (1 << bits) - 1) >> bits
}

#[cfg(test)]
mod tests;
