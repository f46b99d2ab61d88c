//! A meter's own clock: how far it has come, as one multiplication of the time.
//!
//! `progress` is a pure function of the time, floored once. Buckets count the units that their rate has produced since
//! the clock began; windows count windows, in 2^-32.

use super::Meter;
use crate::opaque::opaque;

impl Meter {
    /// Progress from the beginning of the clock to `now`. Never decreases; stops at the end of its range.
    #[inline(always)]
    pub(super) fn progress(&self, now: u64) -> u64 {
        let (high, low) = widening_mul(now, self.multiplier);
        if self.shift >= 64 {
            high >> (self.shift - 64)
        } else if high >> self.shift != 0 {
            u64::MAX
        } else {
            high << (64 - self.shift) | low >> self.shift
        }
    }
}

/// `numerator / denominator` as `multiplier / 2^shift` with the highest bit of the multiplier set.
///
/// Rounded up, so that a bucket asked at the very moment a token is due has it; too much by less than one part in 2^63.
pub(super) const fn binary_fraction(numerator: u64, denominator: u64) -> (u64, u32) {
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
