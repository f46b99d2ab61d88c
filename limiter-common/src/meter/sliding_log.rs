//! The sliding log: the moments of the last admissions.
//!
//! Exact: an admission claims the place of the oldest by compare-and-swap, and only if that one is a whole window old, so
//! that no more than the limit are ever younger than a window, on any number of CPUs. The price is memory: 8 bytes for
//! each admission remembered, [`LOG_LENGTH`] of them for each source.
//!
//! Each place is claimed at most once in a window's length, so what holds is independent of the order in which CPUs read
//! their clocks. A limit that is lowered looks at fewer places and forgets what the others remember; it is exact again
//! after one window.

use super::{Algorithm, Meter, Rate};
use crate::word::Word;

/// Admissions that a log remembers: the largest limit of a sliding log.
pub const LOG_LENGTH: usize = 32;

/// The moments of the last admissions, in nanoseconds of the monotonic clock, in no order; 0 for none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterLog<W = u64> {
    /// As many are in use as the limit admits.
    pub moments: [W; LOG_LENGTH],
}

const _: () = assert!(size_of::<MeterLog<Word>>() == 8 * LOG_LENGTH);

/// The place of the oldest admission among the first `size`.
#[inline(always)]
#[must_use]
pub fn oldest(log: &MeterLog<Word>, size: u64) -> u64 {
    let (mut oldest, mut least) = (0, u64::MAX);
    for (place, moment) in log.moments.iter().enumerate() {
        if place as u64 >= size {
            break;
        }
        let moment = moment.load();
        if moment < least {
            least = moment;
            oldest = place as u64;
        }
    }
    oldest
}

impl Meter {
    /// A sliding log that admits `rate.tokens` packets in any `rate.period`; `None` beyond [`LOG_LENGTH`].
    #[must_use]
    pub fn sliding_log(rate: Rate) -> Option<Self> {
        let Rate { tokens, period } = rate;
        if tokens == 0 || tokens > LOG_LENGTH as u64 || period == 0 {
            return None;
        }
        // It has no progress; the multiplier is the window.
        let algorithm = Algorithm::SlidingLog as u8;
        Some(Self {
            multiplier: period,
            size: tokens,
            shift: 64,
            algorithm,
            detail: 0,
            zero: 0,
        })
    }

    /// Whether the log admits a packet at `now`; claims a place for it if `claim`. `oldest` is [`oldest`], which the kernel
    /// runs in a function of its own.
    #[inline(always)]
    pub fn admits(
        &self,
        log: &MeterLog<Word>,
        now: u64,
        claim: bool,
        oldest: impl Fn(&MeterLog<Word>, u64) -> u64,
    ) -> bool {
        // Each place that another CPU was faster to is an admission, and after as many the log is full.
        for _ in 0..LOG_LENGTH {
            let Some(place) = log.moments.get(oldest(log, self.size) as usize) else {
                return false;
            };
            let moment = place.load();
            // A moment of 0 is no admission; one in the future was noted by a CPU whose clock was read later.
            if moment != 0 && now.saturating_sub(moment) < self.multiplier {
                return false;
            }
            if !claim || place.compare_exchange(moment, now.max(1)) {
                return true;
            }
        }
        false
    }

    /// Gives back an admission noted at `now`. What it replaced was a window old by then, so its place is as if claimed a
    /// window ago: to a clock read earlier it is not free.
    #[inline(always)]
    pub fn withdraw(&self, log: &MeterLog<Word>, now: u64) {
        for (place, moment) in log.moments.iter().enumerate() {
            if place as u64 >= self.size
                || moment.compare_exchange(now.max(1), now.saturating_sub(self.multiplier))
            {
                break;
            }
        }
    }

    /// Admissions left at `now`, and nanoseconds until the next; for people.
    #[must_use]
    pub fn log_decision(&self, log: &MeterLog, now: u64) -> super::Decision {
        let size = usize::try_from(self.size)
            .unwrap_or(LOG_LENGTH)
            .min(LOG_LENGTH);
        let waits = |moment: &u64| {
            if *moment == 0 {
                0
            } else {
                moment.saturating_add(self.multiplier).saturating_sub(now)
            }
        };
        let moments = &log.moments[..size];
        let free = moments.iter().filter(|moment| waits(moment) == 0).count() as u64;
        let allowed = free > 0;
        let retry_after = moments.iter().map(waits).min();
        super::Decision {
            allowed,
            remaining: free.saturating_sub(u64::from(allowed)),
            retry_after,
        }
    }
}

#[cfg(test)]
mod tests;
