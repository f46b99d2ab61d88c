//! What sources send now: two readings of the source table, some time apart.

use std::{
    collections::HashMap,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use limiter_common::source::SourceKey;

use crate::{
    kernel::{monotonic_now, tables::Tables},
    ranking::{Counts, Rankings, Sorted},
};

/// Sources remembered from the first reading, some 20 MB at most and only meanwhile.
const REMEMBERED: usize = 1 << 18;
/// Of a table that holds more, sources with so few packets are not remembered: a flood from invented addresses has many
/// of them, and for those that go on sending it makes a difference of so few packets.
const FEW: u64 = 16;

/// The sources of the first reading.
struct Before {
    counts: HashMap<SourceKey, Counts>,
    few: u64,
    all: bool,
}

impl Before {
    fn new(tracked: u64) -> Self {
        let fits = usize::try_from(tracked).is_ok_and(|tracked| tracked < REMEMBERED / 2);
        Self {
            counts: HashMap::new(),
            few: if fits { 0 } else { FEW },
            all: true,
        }
    }

    fn remember(&mut self, key: SourceKey, counts: Counts) {
        if counts.packets <= self.few {
            return;
        }
        if self.counts.len() < REMEMBERED {
            self.counts.insert(key, counts);
        } else {
            self.all = false;
        }
    }

    /// What a source had sent then; `None` where that is not known.
    fn of(&self, key: &SourceKey, now: Counts) -> Option<Counts> {
        match self.counts.get(key) {
            // It was forgotten by the kernel and has come again.
            Some(before) if before.packets > now.packets => Some(Counts::default()),
            Some(before) => Some(*before),
            None => self.all.then(Counts::default),
        }
    }
}

/// Ranks sources by what they send in `interval`. `tracked` is how many there may be.
///
/// # Errors
///
/// Where the table cannot be read.
pub fn measure(tables: &Tables, interval: Duration, tracked: u64) -> Result<Sorted> {
    let mut before = Before::new(tracked);
    let (first, first_clock) = (Instant::now(), monotonic_now());
    let walk = tables.sources.walk(|key, state| {
        before.remember(key, Counts::of(&state.head));
    })?;
    before.all &= walk.complete;
    thread::sleep(interval.saturating_sub(first.elapsed()));
    // A walk meets the sources in the same order each time, so this is also how far apart it meets each of them.
    let elapsed = first.elapsed();
    let mut rankings = Rankings::default();
    tables.sources.walk(|key, state| {
        let now = Counts::of(&state.head);
        let rates = if state.head.last_seen < first_clock {
            Some(Counts::default())
        } else {
            let before = before.of(&key, now);
            before.and_then(|before| now.since(before, elapsed))
        };
        rankings.offer(key, &state.head, rates);
    })?;
    Ok(rankings.sorted())
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Address;

    use super::*;

    fn key(low: u64) -> SourceKey {
        SourceKey {
            address: Address { high: 0, low },
            length: 128,
        }
    }

    fn counts(packets: u64) -> Counts {
        Counts {
            packets,
            dropped: 0,
        }
    }

    #[test]
    fn what_was_not_there_before_had_sent_nothing() {
        let mut before = Before::new(10);
        before.remember(key(1), counts(5));
        assert_eq!(before.of(&key(1), counts(8)), Some(counts(5)));
        assert_eq!(before.of(&key(2), counts(8)), Some(counts(0)));
        assert_eq!(
            before.of(&key(1), counts(2)),
            Some(counts(0)),
            "a new entry of an old source"
        );
    }

    #[test]
    fn memory_is_bounded_and_what_is_not_known_is_not_claimed() {
        let mut before = Before::new(u64::MAX);
        before.remember(key(0), counts(FEW));
        assert_eq!(before.counts.len(), 0, "of a large table, few are not kept");
        for low in 0..=REMEMBERED as u64 {
            before.remember(key(low), counts(100));
        }
        assert_eq!(before.counts.len(), REMEMBERED);
        assert_eq!(before.of(&key(0), counts(200)), Some(counts(100)));
        assert_eq!(before.of(&key(REMEMBERED as u64), counts(200)), None);
    }
}
