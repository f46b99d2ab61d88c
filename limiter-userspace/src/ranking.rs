//! Which sources come first.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
    time::Duration,
};

use limiter_common::{source::SourceKey, state::Head};

use crate::{kernel::monotonic_now, report::TopSource};

/// Sources kept of each ranking.
const RANKED: usize = 100;

/// A source that may be ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked {
    /// What is compared: per second, then in all.
    rank: (u64, u64),
    /// The source.
    pub key: SourceKey,
    /// Packets so far.
    pub counts: Counts,
    last_seen: u64,
    /// Packets per second, where that is known.
    pub rates: Option<Counts>,
}

/// Packets of a source, in all or per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counts {
    /// Passed or dropped.
    pub packets: u64,
    /// Dropped, or that would have been.
    pub dropped: u64,
}

impl Counts {
    /// Of a source, in all.
    #[must_use]
    pub fn of(state: &Head) -> Self {
        Self {
            packets: state.passed.saturating_add(state.dropped),
            dropped: state.dropped,
        }
    }

    /// Per second, if `before` was counted so long ago; `None` where it was of an entry that was forgotten meanwhile.
    #[must_use]
    pub fn since(self, before: Self, elapsed: Duration) -> Option<Self> {
        Some(Self {
            packets: per_second(self.packets.checked_sub(before.packets)?, elapsed),
            dropped: per_second(self.dropped.checked_sub(before.dropped)?, elapsed),
        })
    }
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    let rate = u128::from(count) * 1000 / elapsed.as_millis().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Both rankings, while sources are offered.
#[derive(Debug, Default)]
pub struct Rankings {
    busiest: Ranking,
    most_dropped: Ranking,
}

/// Both rankings, highest first.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    /// By packets.
    pub busiest: Vec<Ranked>,
    /// By dropped packets; none that lost nothing.
    pub most_dropped: Vec<Ranked>,
}

impl Rankings {
    /// Ranks a source by its rates, and where those are equal or unknown by what it sent in all.
    pub fn offer(&mut self, key: SourceKey, state: &Head, rates: Option<Counts>) {
        let counts = Counts::of(state);
        let known = rates.unwrap_or_default();
        let entry = |rank| Ranked {
            rank,
            key,
            counts,
            last_seen: state.last_seen,
            rates,
        };
        self.busiest.offer(entry((known.packets, counts.packets)));
        if counts.dropped > 0 {
            self.most_dropped
                .offer(entry((known.dropped, counts.dropped)));
        }
    }

    /// Highest first.
    #[must_use]
    pub fn sorted(self) -> Sorted {
        Sorted {
            busiest: self.busiest.sorted(),
            most_dropped: self.most_dropped.sorted(),
        }
    }
}

impl Sorted {
    /// Both, as JSON has them.
    #[must_use]
    pub fn shown(&self) -> (Vec<TopSource>, Vec<TopSource>) {
        let now = monotonic_now();
        let show = |ranked: &Ranked| TopSource {
            source: ranked.key.to_string(),
            passed: ranked.counts.packets - ranked.counts.dropped,
            dropped: ranked.counts.dropped,
            packets_per_s: ranked.rates.map(|rates| rates.packets),
            dropped_per_s: ranked.rates.map(|rates| rates.dropped),
            last_seen_s: now.saturating_sub(ranked.last_seen) / 1_000_000_000,
        };
        (
            self.busiest.iter().map(show).collect(),
            self.most_dropped.iter().map(show).collect(),
        )
    }
}

/// The highest ranks seen so far.
#[derive(Debug, Default)]
struct Ranking(BinaryHeap<Reverse<Ranked>>);

impl Ranking {
    fn offer(&mut self, entry: Ranked) {
        if self.0.len() < RANKED {
            self.0.push(Reverse(entry));
        } else if self.0.peek().is_some_and(|least| least.0.rank < entry.rank) {
            self.0.pop();
            self.0.push(Reverse(entry));
        }
    }

    /// Highest first. A walk may have met a source twice.
    fn sorted(self) -> Vec<Ranked> {
        let mut met = HashSet::new();
        self.0
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(ranked)| ranked)
            .filter(|ranked| met.insert(ranked.key))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Address;

    use super::*;

    fn offer(rankings: &mut Rankings, low: u64, passed: u64, rates: Option<Counts>) {
        let key = SourceKey {
            address: Address { high: 0, low },
            length: 128,
        };
        let state = Head {
            passed,
            ..Head::default()
        };
        rankings.offer(key, &state, rates);
    }

    fn order(rankings: Rankings) -> Vec<u64> {
        let sorted = rankings.sorted();
        assert!(sorted.most_dropped.is_empty(), "nothing was dropped");
        let busiest = sorted.busiest.iter();
        busiest.map(|ranked| ranked.key.address.low).collect()
    }

    #[test]
    fn the_highest_ranks_stay_highest_first() {
        let mut rankings = Rankings::default();
        for rank in (0..1000).rev().chain(1000..2000) {
            offer(&mut rankings, rank, rank, None);
        }
        assert_eq!(order(rankings), (1900..2000).rev().collect::<Vec<_>>());
    }

    #[test]
    fn who_sends_now_comes_before_who_has_sent_more() {
        let rate = |packets| {
            Some(Counts {
                packets,
                dropped: 0,
            })
        };
        let mut rankings = Rankings::default();
        offer(&mut rankings, 1, 1_000_000, rate(0));
        offer(&mut rankings, 2, 50, rate(50));
        offer(&mut rankings, 3, 2_000_000, None);
        offer(&mut rankings, 4, 70, rate(60));
        assert_eq!(order(rankings), [4, 2, 3, 1]);
    }

    #[test]
    fn a_rate_is_what_came_in_the_time() {
        let counts = |packets, dropped| Counts { packets, dropped };
        let half = Duration::from_millis(500);
        assert_eq!(
            counts(110, 60).since(counts(10, 0), half),
            Some(counts(200, 120))
        );
        assert_eq!(counts(5, 0).since(counts(10, 0), half), None);
    }
}
