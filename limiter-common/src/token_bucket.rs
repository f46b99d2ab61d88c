//! The token bucket, in one word.
//!
//! A bucket of `burst` tokens fills at `rate`. Its word says *when it will be full again*, on a clock that counts
//! tokens: [`TokenBucket::produced`] is how many units the limit has produced since the clock began, and a bucket whose
//! word is `w` owes `w - produced(now)` units, none if that is negative. Taking adds the cost to what is owed.
//!
//! Nothing is ever rounded twice: `produced` is a pure function of the time, floored once, so a steady source gets its
//! rate to the last token however often it asks, a clock read late on another CPU only makes the bucket look a little
//! emptier, and idle time beyond what fills the bucket is simply not seen.
//!
//! A unit is `2^-token_shift` tokens, the finest that keeps the arithmetic inside 64 bits: up to 500,000,000 tokens a
//! second for as long as the clock can run, at the highest rate ([`MAX_BYTES_PER_SECOND`]) for 11.6 years of uptime,
//! after which that bucket would count as full.

use crate::{opaque::opaque, word::Word};

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

/// A rate and burst, prepared so that a decision takes one multiplication and no division.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// `multiplier / 2^shift` units are produced per nanosecond; the highest bit is set.
    multiplier: u64,
    /// How many units fit.
    burst: u64,
    /// See `multiplier`; 58 to 127.
    shift: u32,
    /// A token has `2^token_shift` units.
    token_shift: u32,
}

/// What a bucket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the cost could be taken.
    pub allowed: bool,
    /// Whole tokens left: after taking, if allowed.
    pub remaining: u64,
    /// Nanoseconds until the same cost can be taken, rounded up; 0 if allowed, `None` if never.
    pub retry_after: Option<u64>,
}

impl TokenBucket {
    /// A bucket of `burst` tokens filled at `rate`; `None` outside the ranges this module states.
    #[must_use]
    pub fn new(rate: Rate, burst: u64) -> Option<Self> {
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
        Some(Self {
            multiplier,
            burst: burst << token_shift,
            shift,
            token_shift,
        })
    }

    /// Tokens the bucket holds when full.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst >> self.token_shift
    }

    /// Units produced from the beginning of the clock to `now`, in nanoseconds. Never decreases.
    #[inline(always)]
    #[must_use]
    pub fn produced(&self, now: u64) -> u64 {
        let (high, low) = widening_mul(now, self.multiplier);
        if self.shift >= 64 {
            high >> (self.shift - 64)
        } else if high >> self.shift != 0 {
            u64::MAX
        } else {
            high << (64 - self.shift) | low >> self.shift
        }
    }

    /// Takes `cost` tokens at `now` from the bucket whose word is `word`: the new word, or `None` if they are not there.
    #[inline(always)]
    #[must_use]
    pub fn take(&self, word: u64, now: u64, cost: u64) -> Option<u64> {
        let cost = cost << self.token_shift;
        let produced = self.produced(now);
        let room = self.burst.checked_sub(cost)?;
        let start = word.max(produced);
        if start - produced > room {
            return None;
        }
        // Wraps only where `produced` has run out of range, and then to the word of a full bucket.
        Some(start.wrapping_add(cost))
    }

    /// Takes `cost` tokens at `now` from a bucket that other CPUs keep changing, in a bounded number of steps: adds the
    /// cost first and gives it back if it was not there. Whether it was.
    ///
    /// Never admits too much: what is in the word when the cost is added includes all that was admitted before. Between
    /// adding and giving back, another CPU may find the bucket emptier by the cost than it is, so one token per CPU in
    /// flight may be refused too early.
    #[inline(always)]
    pub fn take_by_adding(&self, word: &Word, now: u64, cost: u64) -> bool {
        let cost = cost << self.token_shift;
        let produced = self.produced(now);
        let Some(room) = self.burst.checked_sub(cost) else {
            return false;
        };
        let before = word.fetch_add(cost);
        if before < produced {
            // The bucket was full, and owes the cost from now on, not from when it last owed anything.
            word.add(produced - before);
            return true;
        }
        if before - produced > room {
            word.add(cost.wrapping_neg());
            return false;
        }
        true
    }

    /// Whole tokens in the bucket at `now`.
    #[must_use]
    pub fn tokens(&self, word: u64, now: u64) -> u64 {
        self.burst
            .saturating_sub(word.saturating_sub(self.produced(now)))
            >> self.token_shift
    }

    /// What would become of `cost` tokens asked for at `now`.
    #[must_use]
    pub fn decide(&self, word: u64, now: u64, cost: u64) -> Decision {
        match self.take(word, now, cost) {
            Some(taken) => Decision {
                allowed: true,
                remaining: self.tokens(taken, now),
                retry_after: Some(0),
            },
            None => Decision {
                allowed: false,
                remaining: self.tokens(word, now),
                retry_after: self.retry_after(word, now, cost),
            },
        }
    }

    /// The least wait, in nanoseconds, after which `cost` tokens can be taken; `None` if never.
    fn retry_after(&self, word: u64, now: u64, cost: u64) -> Option<u64> {
        let mut enough = u64::MAX - now;
        self.take(word, now + enough, cost)?;
        let mut too_short = 0;
        while enough - too_short > 1 {
            let middle = too_short + (enough - too_short) / 2;
            match self.take(word, now + middle, cost) {
                Some(_) => enough = middle,
                None => too_short = middle,
            }
        }
        Some(enough)
    }

    /// The word that owes, under `self`, the tokens that `word` owes under `old` at `now`.
    ///
    /// What is owed is carried over in tokens, not in time, and never exceeds the new burst.
    #[must_use]
    pub fn convert(&self, word: u64, now: u64, old: &Self) -> u64 {
        let owed = word.saturating_sub(old.produced(now));
        let owed = if owed > old.burst { old.burst } else { owed };
        let owed = if self.token_shift >= old.token_shift {
            let finer = self.token_shift - old.token_shift;
            if owed > self.burst >> finer {
                self.burst
            } else {
                owed << finer
            }
        } else {
            owed.div_ceil(1 << (old.token_shift - self.token_shift))
        };
        let owed = if owed > self.burst { self.burst } else { owed };
        if owed == 0 {
            0
        } else {
            self.produced(now).saturating_add(owed)
        }
    }
}

/// `numerator / denominator` as `multiplier / 2^shift` with the highest bit of the multiplier set.
///
/// Rounded up, so that a bucket asked at the very moment a token is due has it; too much by less than one part in 2^63.
const fn binary_fraction(numerator: u64, denominator: u64) -> (u64, u32) {
    let mut multiplier = numerator / denominator;
    let mut rest = (numerator % denominator) as u128;
    let mut shift = 0;
    while multiplier >> 63 == 0 {
        rest <<= 1;
        multiplier <<= 1;
        if rest >= denominator as u128 {
            rest -= denominator as u128;
            multiplier |= 1;
        }
        shift += 1;
    }
    if rest == 0 {
        return (multiplier, shift);
    }
    match multiplier.checked_add(1) {
        Some(multiplier) => (multiplier, shift),
        None => (1 << 63, shift - 1),
    }
}

/// The 128-bit product as two words, high and low. Written so that LLVM does not see through it and call for the 128-bit
/// multiplication that the BPF target does not have.
#[inline(always)]
fn widening_mul(a: u64, b: u64) -> (u64, u64) {
    const LOW: u64 = 0xffff_ffff;
    let (a1, a0) = (a >> 32, a & LOW);
    let (b1, b0) = (b >> 32, b & LOW);
    let p10 = a1 * b0 + opaque((a0 * b0) >> 32);
    let p01 = a0 * b1 + (p10 & LOW);
    (a1 * b1 + (p10 >> 32) + (p01 >> 32), a.wrapping_mul(b))
}

#[cfg(test)]
mod tests;
