//! The background walk over the source table: how many there are, and which are the busiest.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use limiter_common::{source::SourceKey, state::SourceState};
use tracing::{info, warn};

use crate::{
    kernel::{
        monotonic_now,
        sources::{self, Walk},
        tables::Tables,
    },
    report::{Top, TopSource},
};

/// Sources kept of each ranking.
const RANKED: usize = 100;
/// Between walks; longer after a long walk, so that walking takes less than a tenth of the time.
const SHORTEST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(10);

/// What the last walk found.
#[derive(Clone, Debug)]
pub struct Survey {
    /// When it ended.
    pub at: Instant,
    /// How far it came.
    pub walk: Walk,
    top: Vec<Ranked>,
    most_dropped: Vec<Ranked>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    rank: u64,
    key: SourceKey,
    passed: u64,
    dropped: u64,
    last_seen: u64,
    packets_per_s: Option<u64>,
}

/// Holds the latest survey.
#[derive(Debug)]
pub struct Observer {
    latest: Mutex<Arc<Survey>>,
    capacity: u32,
}

impl Observer {
    /// An observer that has seen an empty table.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let walk = Walk {
            entries: 0,
            complete: true,
        };
        let empty = Survey {
            at: Instant::now(),
            walk,
            top: Vec::new(),
            most_dropped: Vec::new(),
        };
        Self {
            latest: Mutex::new(Arc::new(empty)),
            capacity,
        }
    }

    /// The latest survey.
    pub fn latest(&self) -> Arc<Survey> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Walks for ever, on a thread of its own.
    ///
    /// # Errors
    ///
    /// Where no thread can be had.
    pub fn start(self: &Arc<Self>, tables: Arc<Tables>) -> std::io::Result<()> {
        let observer = Arc::clone(self);
        thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || observer.run(&tables))
            .map(drop)
    }

    fn run(&self, tables: &Tables) {
        let mut pressure = Pressure::default();
        let mut failing = false;
        loop {
            let started = Instant::now();
            match survey(tables, &self.latest()) {
                Ok(survey) => {
                    failing = false;
                    pressure.note(survey.walk.entries, self.capacity);
                    *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(survey);
                }
                Err(error) if !failing => {
                    failing = true;
                    warn!("{error:#}");
                }
                Err(_) => {}
            }
            thread::sleep((started.elapsed() * 10).clamp(SHORTEST_REST, LONGEST_REST));
        }
    }
}

/// Says when the table fills up, and when it has room again: a line each.
#[derive(Default)]
struct Pressure {
    high: bool,
}

impl Pressure {
    fn note(&mut self, tracked: u64, capacity: u32) {
        let (tracked, capacity) = (u128::from(tracked), u128::from(capacity));
        if !self.high && tracked * 100 >= capacity * 95 {
            self.high = true;
            warn!(%tracked, %capacity, "the source table is full: the least recently seen sources are forgotten");
        } else if self.high && tracked * 100 < capacity * 80 {
            self.high = false;
            info!(%tracked, %capacity, "the source table has room again");
        }
    }
}

fn survey(tables: &Tables, before: &Survey) -> anyhow::Result<Survey> {
    let mut top = Ranking::default();
    let mut most_dropped = Ranking::default();
    let walk = sources::walk(tables, |key, state| {
        let SourceState {
            last_seen,
            passed,
            dropped,
            buckets: _,
        } = state;
        let entry = |rank| Ranked {
            rank,
            key,
            passed,
            dropped,
            last_seen,
            packets_per_s: None,
        };
        top.offer(entry(passed.saturating_add(dropped)));
        if dropped > 0 {
            most_dropped.offer(entry(dropped));
        }
    })?;
    let at = Instant::now();
    let elapsed = at.duration_since(before.at);
    let earlier: HashMap<SourceKey, u64> = before
        .top
        .iter()
        .chain(&before.most_dropped)
        .map(|ranked| (ranked.key, ranked.passed + ranked.dropped))
        .collect();
    let rated = |ranking: Ranking| {
        let mut sorted = ranking.sorted();
        for ranked in &mut sorted {
            ranked.packets_per_s = earlier
                .get(&ranked.key)
                .and_then(|before| (ranked.passed + ranked.dropped).checked_sub(*before))
                .and_then(|packets| per_second(packets, elapsed));
        }
        sorted
    };
    Ok(Survey {
        at,
        walk,
        top: rated(top),
        most_dropped: rated(most_dropped),
    })
}

fn per_second(count: u64, elapsed: Duration) -> Option<u64> {
    let rate = u128::from(count) * 1000 / elapsed.as_millis().max(1);
    u64::try_from(rate).ok()
}

/// The highest ranks seen so far.
#[derive(Default)]
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

    /// Highest first. A walk may have met an entry twice.
    fn sorted(self) -> Vec<Ranked> {
        let mut sorted: Vec<Ranked> = self
            .0
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(ranked)| ranked)
            .collect();
        sorted.dedup_by_key(|ranked| ranked.key);
        sorted
    }
}

impl Survey {
    /// The rankings, for people.
    #[must_use]
    pub fn top(&self) -> Top {
        let now = monotonic_now();
        let show = |ranked: &Ranked| TopSource {
            source: ranked.key.to_string(),
            passed: ranked.passed,
            dropped: ranked.dropped,
            packets_per_s: ranked.packets_per_s,
            last_seen_s: now.saturating_sub(ranked.last_seen) / 1_000_000_000,
        };
        Top {
            age_s: self.at.elapsed().as_secs(),
            busiest: self.top.iter().map(show).collect(),
            most_dropped: self.most_dropped.iter().map(show).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Address;

    use super::*;

    fn entry(rank: u64) -> Ranked {
        let key = SourceKey {
            address: Address { high: 0, low: rank },
            length: 128,
        };
        Ranked {
            rank,
            key,
            passed: rank,
            dropped: 0,
            last_seen: 0,
            packets_per_s: None,
        }
    }

    #[test]
    fn the_highest_ranks_stay_highest_first() {
        let mut ranking = Ranking::default();
        for rank in (0..1000).rev().chain(1000..2000) {
            ranking.offer(entry(rank));
        }
        let ranks: Vec<u64> = ranking.sorted().iter().map(|ranked| ranked.rank).collect();
        assert_eq!(ranks, (1900..2000).rev().collect::<Vec<_>>());
    }
}
