//! The algorithms by the book.

use limiter_common::meter::Algorithm;
use limiter_policy::spec::Terms;

use super::classes::InTurn;

/// An algorithm with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Book {
    algorithm: Algorithm,
    tokens: u128,
    period: u128,
    size: u128,
    /// A token is 2^fine units: the finest, up to 20, with at most 500,000,000 units a second.
    fine: u32,
}

/// The state of a limit, for one source or for everyone.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    under: Option<InTurn>,
    book: Option<Book>,
    /// Of a bucket: when it is full again, as units produced by then.
    full: u128,
    /// Of a window: its number, and what was admitted in it and the one before.
    window: u128,
    current: u128,
    previous: u128,
    /// Of a log: the admissions.
    log: Vec<u128>,
    /// Refusals since it was last full.
    pub(crate) refusals: u64,
}

impl Book {
    /// Terms as they were written.
    pub(crate) fn of(terms: &Terms) -> Self {
        let algorithm = terms.meter.algorithm();
        let (tokens, period) = (terms.rate.rate.tokens.into(), terms.rate.rate.period.into());
        let amount = terms.size.as_ref().map(|size| u128::from(size.amount));
        let size = match (algorithm, amount) {
            (Algorithm::LeakyBucket, Some(queue)) => queue + 1,
            (_, Some(burst)) => burst,
            (_, None) => tokens,
        };
        let fits = |fine: &u32| (tokens << fine) * 1_000_000_000 <= 500_000_000 * period;
        Self {
            algorithm,
            tokens,
            period,
            size,
            fine: (0..=20).rev().find(fits).unwrap_or(0),
        }
    }

    fn is_bucket(&self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::TokenBucket | Algorithm::LeakyBucket
        )
    }

    /// Units produced since the clock began.
    fn produced(&self, now: u64) -> u128 {
        u128::from(now) * (self.tokens << self.fine) / self.period
    }

    fn window(&self, now: u64) -> u128 {
        u128::from(now) / self.period
    }
}

impl State {
    /// Comes under the terms in force, as noted with the state.
    pub(crate) fn come_under(&mut self, in_turn: &InTurn, now: u64) {
        let book = in_turn.book();
        if book.algorithm != Algorithm::SlidingLog && self.under.as_ref() != Some(in_turn) {
            self.under = Some(in_turn.clone());
            self.adopt(book, now);
            self.refusals = 0;
        }
    }

    /// Owes under other terms what it owed under those before. Between windows of one length, counts stay.
    pub(crate) fn adopt(&mut self, book: &Book, now: u64) {
        let before = self.book.replace(book.clone());
        match before {
            None => {}
            Some(before) if before.is_bucket() && book.is_bucket() => {
                let owed = self.full.saturating_sub(before.produced(now));
                let owed = owed.min(before.size << before.fine);
                // In the units of the new terms, rounded up.
                let owed = (owed << book.fine).div_ceil(1 << before.fine);
                let owed = owed.min(book.size << book.fine);
                self.full = if owed == 0 {
                    0
                } else {
                    book.produced(now) + owed
                };
            }
            Some(before) if before.algorithm == book.algorithm && before.period == book.period => {}
            Some(before) => {
                let owed = self.owed(&before, now);
                self.owe(owed, book, now);
            }
        }
    }

    /// What is owed, in whole tokens, rounded up: what counts in a window is owed by it.
    fn owed(&mut self, book: &Book, now: u64) -> u128 {
        match book.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                let owed = self.full.saturating_sub(book.produced(now));
                owed.div_ceil(1 << book.fine).min(book.size)
            }
            Algorithm::FixedWindow => {
                self.turn(book, now);
                self.current
            }
            Algorithm::SlidingWindow => {
                self.turn(book, now);
                self.estimate(book, now).div_ceil(1 << 32)
            }
            Algorithm::SlidingLog => 0,
        }
    }

    /// Owes so many tokens, and at most all.
    fn owe(&mut self, tokens: u128, book: &Book, now: u64) {
        let tokens = tokens.min(book.size);
        self.full = book.produced(now) + (tokens << book.fine);
        (self.window, self.current, self.previous) = (book.window(now), tokens, 0);
    }

    /// Brings a window up to date.
    fn turn(&mut self, book: &Book, now: u64) {
        let number = book.window(now);
        if number != self.window {
            self.previous = if number == self.window + 1 {
                self.current
            } else {
                0
            };
            self.current = 0;
            self.window = number;
        }
    }

    /// What a sliding window holds, in 2^-32 tokens: what remains of it is counted in 2^-32, rounded up, so that a packet is
    /// rather refused.
    fn estimate(&self, book: &Book, now: u64) -> u128 {
        let elapsed = ((u128::from(now) % book.period) << 32) / book.period;
        (self.current << 32) + self.previous * ((1 << 32) - elapsed)
    }

    /// Whether a packet would be admitted.
    pub(crate) fn admits(&mut self, book: &Book, now: u64, cost: u128) -> bool {
        match book.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                let owed = self.full.saturating_sub(book.produced(now));
                owed + (cost << book.fine) <= book.size << book.fine
            }
            Algorithm::FixedWindow => {
                self.turn(book, now);
                self.current + cost <= book.size
            }
            Algorithm::SlidingWindow => {
                self.turn(book, now);
                self.estimate(book, now) + (cost << 32) <= book.size << 32
            }
            Algorithm::SlidingLog => {
                let now = u128::from(now);
                let young = self
                    .log
                    .iter()
                    .filter(|moment| now - **moment < book.period);
                (young.count() as u128) < book.size
            }
        }
    }

    /// Admits a packet.
    pub(crate) fn take(&mut self, book: &Book, now: u64, cost: u128) {
        if self.is_full(book, now) {
            self.refusals = 0;
        }
        match book.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                self.full = self.full.max(book.produced(now)) + (cost << book.fine);
            }
            Algorithm::FixedWindow | Algorithm::SlidingWindow => self.current += cost,
            Algorithm::SlidingLog => self.log.push(now.into()),
        }
    }

    fn is_full(&self, book: &Book, now: u64) -> bool {
        match book.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => self.full <= book.produced(now),
            Algorithm::FixedWindow => self.current == 0,
            Algorithm::SlidingWindow => self.estimate(book, now) == 0,
            Algorithm::SlidingLog => false,
        }
    }
}
