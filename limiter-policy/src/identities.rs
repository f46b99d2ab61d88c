//! Numbers that stay with their names, so that state stays with its limit over reloads and restarts.

use std::{collections::HashMap, ops::Range};

use limiter_common::{
    limits::SHARED_SLOTS,
    policy::{MAX_CHAINS, MAX_LIMITS, METERS, MeterEntry},
    state::MAX_SLOTS,
};
use serde::{Deserialize, Serialize};

/// Numbers that stay with their names over reloads, so that state stays with its limit.
///
/// Over a restart the daemon keeps the names as it likes, and gives the meters back from the kernel's table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Identities {
    /// Counts the policies compiled.
    turn: u64,
    counters: Numbers<String>,
    slots: Numbers<String>,
    shared: Numbers<String>,
    chains: Numbers<Vec<String>>,
    #[serde(skip)]
    meters: MeterIds,
}

/// A number that belonged to something else before. What the kernel holds under it is to be cleared, before the policy
/// comes into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Number {
    /// Counters, and the sliding logs that are kept under their number.
    Counter(u32),
    /// A slot of each source.
    Slot(u32),
    /// A slot that everyone shares.
    Shared(u32),
    /// A chain of classes: the sources whose key holds it.
    Chain(u32),
}

/// There are fewer numbers than names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// Numbers, in the order of their names.
pub(crate) type Given = Result<Vec<u32>, Exhausted>;

impl Identities {
    /// Begins another policy.
    pub(crate) const fn begin(&mut self) {
        self.turn += 1;
    }

    /// Counters of limits.
    pub(crate) fn counters(&mut self, names: &[String], fresh: &mut Vec<Number>) -> Given {
        let range = 0..u32::try_from(MAX_LIMITS).map_err(|_too_many| Exhausted)?;
        self.counters
            .give(names, range, self.turn, |n| fresh.push(Number::Counter(n)))
    }

    /// Slots of a source, of limits per source and per wider source.
    pub(crate) fn slots(&mut self, names: &[String], fresh: &mut Vec<Number>) -> Given {
        self.slots.give(names, 0..MAX_SLOTS, self.turn, |n| {
            fresh.push(Number::Slot(n));
        })
    }

    /// Slots of limits that everyone shares.
    pub(crate) fn shared(&mut self, names: &[String], fresh: &mut Vec<Number>) -> Given {
        self.shared.give(names, 0..SHARED_SLOTS, self.turn, |n| {
            fresh.push(Number::Shared(n));
        })
    }

    /// Chains of classes, other than that of no class.
    pub(crate) fn chains(&mut self, names: &[Vec<String>], fresh: &mut Vec<Number>) -> Given {
        self.chains.give(names, 1..MAX_CHAINS, self.turn, |n| {
            fresh.push(Number::Chain(n));
        })
    }

    /// The id of a meter.
    pub(crate) fn meter(&mut self, entry: MeterEntry) -> Result<u16, Exhausted> {
        self.meters.give(entry, self.turn)
    }

    /// Remembers the meters that the kernel holds, by id, as after a restart.
    pub fn restore_meters(&mut self, entries: impl IntoIterator<Item = (u16, MeterEntry)>) {
        for (id, entry) in entries {
            if MeterIds::RANGE.contains(&id) {
                self.meters.put(id, entry, self.turn);
            }
        }
    }
}

/// Numbers of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Numbers<K>(Vec<Numbered<K>>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Numbered<K> {
    name: K,
    number: u32,
    /// When it was last used.
    turn: u64,
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Clone + PartialEq> Numbers<K> {
    /// Gives each name its number: that which it has, or a free one, or, where there is none, that of the name that has
    /// been gone for the longest time, which is then reported.
    fn give(
        &mut self,
        names: &[K],
        range: Range<u32>,
        turn: u64,
        mut fresh: impl FnMut(u32),
    ) -> Given {
        // All that stay come first, lest one loses its number to a name that is new.
        for numbered in &mut self.0 {
            if names.contains(&numbered.name) {
                numbered.turn = turn;
            }
        }
        let mut give = |name: &K| {
            if let Some(found) = self.0.iter().find(|numbered| numbered.name == *name) {
                return Ok(found.number);
            }
            let free = range
                .clone()
                .find(|number| self.0.iter().all(|n| n.number != *number));
            let number = if let Some(number) = free {
                number
            } else {
                let gone = self.0.iter().enumerate().filter(|(_, n)| n.turn != turn);
                let (at, _) = gone.min_by_key(|(_, n)| n.turn).ok_or(Exhausted)?;
                let number = self.0.swap_remove(at).number;
                fresh(number);
                number
            };
            self.0.push(Numbered {
                name: name.clone(),
                number,
                turn,
            });
            Ok(number)
        };
        names.iter().map(&mut give).collect()
    }
}

/// Ids of meters. A slot's word means what the meter says whose id is noted beside it, so an id is used again only when
/// there is no other, and then the one that has been gone for the longest time.
#[derive(Clone, Debug, Default)]
struct MeterIds {
    ids: HashMap<MeterEntry, u16>,
    /// By id, beginning with the first of the range: the meter and when it was last used.
    known: Vec<Option<(MeterEntry, u64)>>,
}

impl MeterIds {
    /// 0 is noted beside a word that no meter has written.
    #[expect(clippy::cast_possible_truncation, reason = "a table of 4096")]
    const RANGE: Range<u16> = 1..METERS as u16;

    fn give(&mut self, entry: MeterEntry, turn: u64) -> Result<u16, Exhausted> {
        let id = match self.ids.get(&entry) {
            Some(id) => *id,
            None => self.unused(turn)?,
        };
        self.put(id, entry, turn);
        Ok(id)
    }

    fn unused(&self, turn: u64) -> Result<u16, Exhausted> {
        let last_used = |id: &u16| {
            let known = self.known.get(usize::from(*id - Self::RANGE.start));
            known.copied().flatten().map_or(0, |(_, turn)| turn)
        };
        let id = Self::RANGE.min_by_key(last_used).ok_or(Exhausted)?;
        if last_used(&id) == turn {
            return Err(Exhausted);
        }
        Ok(id)
    }

    fn put(&mut self, id: u16, entry: MeterEntry, turn: u64) {
        let at = usize::from(id - Self::RANGE.start);
        if self.known.len() <= at {
            self.known.resize(at + 1, None);
        }
        if let Some((before, _)) = self.known[at].replace((entry, turn)) {
            self.ids.remove(&before);
        }
        self.ids.insert(entry, id);
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::meter::{Meter, Rate};

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn numbers_stay_with_their_names() {
        let mut numbers = Numbers::default();
        let mut fresh = Vec::new();
        let mut give = |turn, given: &[&str]| {
            fresh.clear();
            let numbers = numbers.give(&names(given), 0..3, turn, |n| fresh.push(n));
            (numbers, fresh.clone())
        };
        assert_eq!(give(1, &["a", "b"]), (Ok(vec![0, 1]), vec![]));
        assert_eq!(give(2, &["b"]), (Ok(vec![1]), vec![]));
        assert_eq!(
            give(3, &["c", "b"]),
            (Ok(vec![2, 1]), vec![]),
            "a free number comes before one that was given back"
        );
        assert_eq!(give(4, &["a", "b"]), (Ok(vec![0, 1]), vec![]));
        assert_eq!(
            give(5, &["d", "b", "a"]),
            (Ok(vec![2, 1, 0]), vec![2]),
            "none is taken from a name that is still in use"
        );
        assert_eq!(give(6, &["a", "b", "c", "d"]).0, Err(Exhausted));
    }

    #[test]
    fn meter_ids_are_used_again_last_and_oldest_first() {
        let meter = |burst| MeterEntry {
            meter: Meter::token_bucket(
                Rate {
                    tokens: 1,
                    period: 1_000_000_000,
                },
                burst,
            )
            .unwrap(),
            until: 0,
            then: 0,
        };
        let mut ids = MeterIds::default();
        assert_eq!(ids.give(meter(1), 1), Ok(1));
        assert_eq!(ids.give(meter(2), 1), Ok(2));
        assert_eq!(ids.give(meter(1), 2), Ok(1), "equal meters share an id");
        for burst in 3..4096 {
            assert_eq!(ids.give(meter(burst), 3).map(u64::from), Ok(burst));
        }
        assert_eq!(ids.give(meter(5000), 3), Ok(2), "gone since the first");
        assert_eq!(ids.give(meter(5001), 3), Ok(1));
        assert_eq!(ids.give(meter(5002), 3), Err(Exhausted));
        assert_eq!(ids.give(meter(5002), 4), Ok(1), "the next policy may");
    }
}
