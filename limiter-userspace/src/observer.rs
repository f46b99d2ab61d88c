//! The background walk over the source table: how many there are, and which are the busiest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use limiter_common::source::SourceKey;
use tracing::{info, warn};

use crate::{
    control::Control,
    kernel::{sources::Walk, tables::Tables},
    ranking::{Counts, Rankings, Sorted},
};

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
    /// The rankings, by what was sent in all; rates are those since the walk before.
    pub ranked: Sorted,
}

/// Holds the latest survey.
#[derive(Debug)]
pub struct Observer {
    latest: Mutex<Arc<Survey>>,
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer {
    /// An observer that has seen an empty table.
    #[must_use]
    pub fn new() -> Self {
        let walk = Walk {
            entries: 0,
            complete: true,
        };
        let empty = Survey {
            at: Instant::now(),
            walk,
            ranked: Sorted::default(),
        };
        Self {
            latest: Mutex::new(Arc::new(empty)),
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
    pub fn start(self: &Arc<Self>, control: Arc<Control>) -> std::io::Result<()> {
        let observer = Arc::clone(self);
        thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || observer.run(&control))
            .map(drop)
    }

    fn run(&self, control: &Control) {
        let mut pressure = Pressure::default();
        let mut failing = false;
        loop {
            let started = Instant::now();
            match survey(&control.tables(), &self.latest()) {
                Ok(survey) => {
                    failing = false;
                    pressure.note(survey.walk.entries, control.room().sources);
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
    let mut rankings = Rankings::default();
    let walk = tables
        .sources
        .walk(|key, state| rankings.offer(key, &state.head, None))?;
    let at = Instant::now();
    let elapsed = at.duration_since(before.at);
    let Sorted {
        busiest,
        most_dropped,
    } = &before.ranked;
    let earlier: HashMap<SourceKey, Counts> = busiest
        .iter()
        .chain(most_dropped)
        .map(|ranked| (ranked.key, ranked.counts))
        .collect();
    let mut ranked = rankings.sorted();
    for source in ranked.busiest.iter_mut().chain(&mut ranked.most_dropped) {
        let before = earlier.get(&source.key);
        source.rates = before.and_then(|before| source.counts.since(*before, elapsed));
    }
    Ok(Survey { at, walk, ranked })
}
