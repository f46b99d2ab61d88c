//! The arithmetic of a limit: one word of state, a pure decision.
//!
//! A [`Meter`] is a limit's algorithm with its parameters, prepared so that a decision divides nothing. It maps
//! `(word, now, cost)` to the next word or to a refusal; the kernel runs it between a load and a compare-and-swap, user
//! space to explain, tests against models. A word of zero is a meter that has admitted nothing.
//!
//! | algorithm | admits in any span t | its failure |
//! |---|---|---|
//! | token bucket | burst + rate x t | a burst after silence, as large as configured |
//! | leaky bucket | queue + 1 + rate x t | none is held back: what a queueing one delays, this one refuses |
//! | fixed window | twice the limit across a seam | see the seam |
//! | sliding window | the limit by estimate | assumes that the previous window was evenly filled |
//! | sliding log | the limit, exactly | memory for every admission |

mod clock;
mod fixed_window;
mod sliding_log;
mod sliding_window;
mod token_bucket;

pub use fixed_window::MAX_FIXED_WINDOW;
pub use sliding_log::{LOG_LENGTH, MeterLog, oldest};
pub use sliding_window::MAX_SLIDING_WINDOW;
pub use token_bucket::{
    MAX_BURST, MAX_BYTES_PER_SECOND, MAX_NANOS_PER_TOKEN, MAX_PACKETS_PER_SECOND, Rate,
};

use crate::{named::named_enum, word::Word};

named_enum! {
    /// How a limit decides.
    pub enum Algorithm {
        /// Saves up to a burst, refilled at a rate.
        TokenBucket = "token-bucket",
        /// Drains at a rate, holds up to a queue.
        LeakyBucket = "leaky-bucket",
        /// Counts in aligned windows.
        FixedWindow = "fixed-window",
        /// Counts in aligned windows, and weighs the previous one.
        SlidingWindow = "sliding-window",
        /// Remembers every admission of a window.
        SlidingLog = "sliding-log",
    }
}

/// An algorithm with its parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    /// Progress per nanosecond is `multiplier / 2^shift`; see [`clock`]. The highest bit is set, but for an unused meter.
    multiplier: u64,
    /// How much the meter admits: units of a bucket, or the count of a window.
    size: u64,
    /// See `multiplier`.
    shift: u32,
    /// An [`Algorithm`] by number.
    algorithm: u8,
    /// Log2 of the units per token of a bucket; bits of a count of a window.
    detail: u8,
    /// Always zero, so that equal meters are equal bytes.
    zero: u16,
}

const _: () = assert!(size_of::<Meter>() == 24);

/// What a meter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the cost could be taken.
    pub allowed: bool,
    /// Whole tokens left: after taking, if allowed.
    pub remaining: u64,
    /// Nanoseconds until the same cost can be taken, rounded up; 0 if allowed, `None` if never.
    pub retry_after: Option<u64>,
}

impl Meter {
    /// A meter that nothing uses.
    pub const UNUSED: Self = Self {
        multiplier: 0,
        size: 0,
        shift: 64,
        algorithm: 0,
        detail: 0,
        zero: 0,
    };

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        Algorithm::ALL[self.algorithm as usize % Algorithm::COUNT]
    }

    /// Takes `cost` tokens at `now`, in nanoseconds of the monotonic clock, from the meter whose word is `word`: the new
    /// word, or `None` if it does not admit them. A sliding log has no word and admits nothing here.
    #[inline(always)]
    #[must_use]
    pub fn take(&self, word: u64, now: u64, cost: u64) -> Option<u64> {
        match self.algorithm {
            TOKEN_BUCKET | LEAKY_BUCKET => token_bucket::take(self, word, now, cost),
            FIXED_WINDOW => fixed_window::take(self, word, now, cost),
            SLIDING_WINDOW => sliding_window::take(self, word, now, cost),
            _ => None,
        }
    }

    /// Takes `cost` tokens from a word that other CPUs keep changing, in a bounded number of steps: adds the cost first
    /// and gives it back if it was not there. Whether it was.
    ///
    /// Never admits too much: a word to which the cost was added is one that [`Self::take`] would have left, and includes all
    /// that was admitted before. It may refuse too early. Between adding and giving back, another CPU finds the bucket
    /// emptier by the cost than it is. And a bucket that owed nothing would not owe the cost from `now` on by adding it to
    /// what it owed last; but a word that has just changed under other hands hardly ever owes nothing.
    ///
    /// Nothing is added to windows: their counts have neighbours to run over into. They refuse.
    #[inline(always)]
    pub fn take_by_adding(&self, word: &Word, now: u64, cost: u64) -> bool {
        if !self.is_bucket() {
            return false;
        }
        let units = self.units(cost);
        let before = word.fetch_add(units);
        if token_bucket::take(self, before, now, cost) == Some(before.wrapping_add(units)) {
            return true;
        }
        self.give_back(word, now, cost);
        false
    }

    /// Gives back `cost` tokens taken at `now`, whatever else was taken since. A window that is over by then keeps them.
    #[inline(always)]
    pub fn give_back(&self, word: &Word, now: u64, cost: u64) {
        if self.is_bucket() {
            let units = self.units(cost);
            if word.fetch_add(units.wrapping_neg()) < units {
                // The word no longer holds what was taken: its source was evicted, and the memory is another's by now,
                // which would owe next to 2^64.
                word.add(units);
            }
            return;
        }
        for _ in 0..GIVE_BACK_RETRIES {
            let old = word.load();
            let Some(new) = self.without(old, now, cost) else {
                return;
            };
            if word.compare_exchange(old, new) {
                return;
            }
        }
    }

    /// The word of a window without `cost`, if that was counted in the window at `now`.
    #[inline(always)]
    fn without(&self, word: u64, now: u64, cost: u64) -> Option<u64> {
        let counted = word & self.count_mask();
        if word >> self.number_shift() == self.window_number(now) && counted >= cost {
            Some(word - cost)
        } else {
            None
        }
    }

    /// What a cost adds to the word of a bucket.
    #[inline(always)]
    const fn units(&self, cost: u64) -> u64 {
        cost << (self.detail as u32)
    }

    /// Whether the meter has admitted nothing that still counts.
    #[inline(always)]
    #[must_use]
    pub fn is_full(&self, word: u64, now: u64) -> bool {
        match self.algorithm {
            TOKEN_BUCKET | LEAKY_BUCKET => word <= self.progress(now),
            FIXED_WINDOW => fixed_window::counted(self, word, now) == 0,
            _ => sliding_window::estimate(self, word, now) == 0,
        }
    }

    /// Whole tokens that the meter would admit at `now`.
    #[must_use]
    pub fn tokens(&self, word: u64, now: u64) -> u64 {
        match self.algorithm {
            TOKEN_BUCKET | LEAKY_BUCKET => token_bucket::tokens(self, word, now),
            FIXED_WINDOW => self
                .size
                .saturating_sub(fixed_window::counted(self, word, now)),
            _ => sliding_window::tokens(self, word, now),
        }
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

    /// The least wait, in nanoseconds, after which `cost` tokens can be taken; `None` if never. What a meter admits only
    /// grows while nothing is taken, so halving finds it.
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

    /// The word that owes, under `self`, what `word` owes under `old` at `now`.
    ///
    /// What is owed is carried over in tokens, not in time, and never exceeds the new size; what counts in a window is owed
    /// by it. Rounded up to whole tokens, but between buckets. Between windows of one length the counts stay.
    ///
    /// Where the two read words differently, the new word differs from the old, so that a compare-and-swap by whoever has
    /// read the old one fails.
    #[inline(always)]
    #[must_use]
    pub fn convert(&self, word: u64, now: u64, old: &Self) -> u64 {
        if self.is_bucket() && old.is_bucket() {
            return token_bucket::convert(self, word, now, old);
        }
        if self.algorithm == old.algorithm
            && self.multiplier == old.multiplier
            && self.shift == old.shift
        {
            return word;
        }
        let tokens = match old.algorithm {
            TOKEN_BUCKET | LEAKY_BUCKET => token_bucket::owed(old, word, now),
            FIXED_WINDOW => fixed_window::counted(old, word, now),
            _ => sliding_window::counted(old, word, now),
        };
        if self.is_bucket() {
            let tokens = tokens.min(self.size >> u32::from(self.detail));
            return token_bucket::owing(self, self.units(tokens), now);
        }
        self.window_number(now) << self.number_shift() | tokens.min(self.size)
    }

    const fn is_bucket(&self) -> bool {
        matches!(self.algorithm, TOKEN_BUCKET | LEAKY_BUCKET)
    }

    /// The number of the window at `now`.
    #[inline(always)]
    fn window_number(&self, now: u64) -> u64 {
        self.progress(now) >> 32
    }

    /// Where the number of a window begins in its word.
    #[inline(always)]
    const fn number_shift(&self) -> u32 {
        match self.algorithm {
            FIXED_WINDOW => self.detail as u32,
            _ => 2 * self.detail as u32,
        }
    }

    /// The bits of the count of the current window.
    const fn count_mask(&self) -> u64 {
        (1 << (self.detail & 63)) - 1
    }
}

/// How often giving back to a window is tried; if in vain, it stays counted, which errs towards refusing.
const GIVE_BACK_RETRIES: u32 = 4;

const TOKEN_BUCKET: u8 = Algorithm::TokenBucket as u8;
const LEAKY_BUCKET: u8 = Algorithm::LeakyBucket as u8;
const FIXED_WINDOW: u8 = Algorithm::FixedWindow as u8;
const SLIDING_WINDOW: u8 = Algorithm::SlidingWindow as u8;
