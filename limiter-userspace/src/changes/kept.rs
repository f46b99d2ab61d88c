//! The changes in force, as the daemon holds them.

use std::collections::{BTreeMap, btree_map::Entry};

use limiter_policy::{
    changes::{Changes, OperatorBan, Override},
    spec::Terms,
    units::{RateSpec, SizeSpec},
};

use super::{moment::WallTime, target::Target};

/// The most bans that operators may make one by one; all of them are written anew with each change.
pub const MOST_BANS: usize = 16_384;
/// The most overrides.
pub const MOST_OVERRIDES: usize = 1_024;

/// The changes in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    bans: BTreeMap<Target, KeptBan>,
    overrides: BTreeMap<OverrideKey, KeptOverride>,
    /// Whether everything is in monitor mode, where somebody has said so; else the policy decides.
    pub monitor: Option<bool>,
}

/// A ban by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBan {
    /// Until when, in nanoseconds of the monotonic clock; `None` for ever.
    pub until: Option<u64>,
    /// Why.
    pub reason: Option<String>,
    /// Who made it.
    pub author: String,
    /// When.
    pub made: WallTime,
}

/// What an override is of. There is one at a time for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OverrideKey {
    /// The limit, by name.
    pub limit: String,
    /// For whom; `None` for all.
    pub source: Option<Target>,
}

/// Other terms of a limit for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOverride {
    /// Its rate; `None` for that of the policy.
    pub rate: Option<RateSpec>,
    /// Its burst or queue, likewise.
    pub burst: Option<SizeSpec>,
    /// Until when, in nanoseconds of the monotonic clock.
    pub until: u64,
    /// Why.
    pub reason: Option<String>,
    /// Who made it.
    pub author: String,
    /// When.
    pub made: WallTime,
}

/// What has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Bans.
    pub bans: Vec<(Target, KeptBan)>,
    /// Overrides.
    pub overrides: Vec<(OverrideKey, KeptOverride)>,
}

/// An override that the policy in force has no use for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The override.
    pub key: OverrideKey,
    /// Why, such as a limit that is not there.
    pub why: String,
}

impl Kept {
    /// The bans, sorted.
    #[must_use]
    pub const fn bans(&self) -> &BTreeMap<Target, KeptBan> {
        &self.bans
    }

    /// The overrides, sorted.
    #[must_use]
    pub const fn overrides(&self) -> &BTreeMap<OverrideKey, KeptOverride> {
        &self.overrides
    }

    /// Adds a ban, or puts it in the place of the one on the same target, which is returned.
    ///
    /// # Errors
    ///
    /// Where there are [`MOST_BANS`] others.
    pub fn add_ban(&mut self, target: Target, ban: KeptBan) -> Result<Option<KeptBan>, String> {
        if self.bans.len() >= MOST_BANS && !self.bans.contains_key(&target) {
            return Err(format!(
                "{target}: there are {MOST_BANS} bans already, which is the most; lift some with `limiter unban`, or \
                 put many into a file that the policy's `ban` names"
            ));
        }
        Ok(self.bans.insert(target, ban))
    }

    /// Lifts the ban on exactly this target.
    ///
    /// # Errors
    ///
    /// Where there is none; says which others cover it.
    pub fn remove_ban(&mut self, target: Target) -> Result<KeptBan, String> {
        self.bans.remove(&target).ok_or_else(|| {
            let around = self.bans.keys().rfind(|banned| banned.covers(target));
            match around {
                Some(around) => format!(
                    "{target} is not banned by itself but inside {around}, which is; lift that with `limiter unban {around}`"
                ),
                None => format!("{target} is not banned by an operator; see `limiter bans`"),
            }
        })
    }

    /// Adds an override, or puts it in the place of the one on the same limit and source, which is returned.
    ///
    /// # Errors
    ///
    /// Where there are [`MOST_OVERRIDES`] others.
    pub fn add_override(
        &mut self,
        key: OverrideKey,
        change: KeptOverride,
    ) -> Result<Option<KeptOverride>, String> {
        let full = self.overrides.len() >= MOST_OVERRIDES;
        match self.overrides.entry(key) {
            Entry::Vacant(place) if full => Err(format!(
                "{}: there are {MOST_OVERRIDES} overrides already, which is the most; take some back with \
                 `limiter override LIMIT --remove`, or name the sources in a class of the policy",
                place.key().limit
            )),
            Entry::Vacant(place) => {
                place.insert(change);
                Ok(None)
            }
            Entry::Occupied(mut place) => Ok(Some(place.insert(change))),
        }
    }

    /// Takes an override back.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub fn remove_override(&mut self, key: &OverrideKey) -> Result<KeptOverride, String> {
        self.overrides.remove(key).ok_or_else(|| {
            let whom = key
                .source
                .map_or_else(String::new, |source| format!(" for {source}"));
            format!(
                "{}: there is no override of it{whom}; see `limiter overrides`",
                key.limit
            )
        })
    }

    /// Takes out what is over at `now`, in nanoseconds of the monotonic clock.
    pub fn expire(&mut self, now: u64) -> Expired {
        Expired {
            bans: take(&mut self.bans, |ban| {
                ban.until.is_some_and(|until| until <= now)
            }),
            overrides: take(&mut self.overrides, |change| change.until <= now),
        }
    }

    /// When something ends next, if anything does.
    #[must_use]
    pub fn next_end(&self) -> Option<u64> {
        let bans = self.bans.values().filter_map(|ban| ban.until);
        let overrides = self.overrides.values().map(|change| change.until);
        bans.chain(overrides).min()
    }

    /// The changes as a policy is compiled with them, without those over at `now`; and overrides of no use. `terms` says
    /// what an override means in the policy in force, or why nothing.
    pub fn changes(
        &self,
        now: u64,
        terms: impl Fn(&OverrideKey, &KeptOverride) -> Result<Terms, String>,
    ) -> (Changes, Vec<Idle>) {
        let mut changes = Changes {
            bans: self
                .bans
                .iter()
                .filter(|(_, ban)| ban.until.is_none_or(|until| until > now))
                .map(|(target, ban)| OperatorBan {
                    prefix: target.net(),
                    until: ban.until,
                })
                .collect(),
            overrides: Vec::new(),
        };
        let mut idle = Vec::new();
        for (key, change) in self.overrides.iter().filter(|(_, one)| one.until > now) {
            match terms(key, change) {
                Ok(terms) => changes.overrides.push(Override {
                    limit: key.limit.clone(),
                    source: key.source.map(Target::net),
                    terms,
                    until: change.until,
                }),
                Err(why) => idle.push(Idle {
                    key: key.clone(),
                    why,
                }),
            }
        }
        (changes, idle)
    }
}

/// Takes the entries with such values out of a map.
fn take<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, which: impl Fn(&V) -> bool) -> Vec<(K, V)> {
    let keys: Vec<K> = map
        .iter()
        .filter(|(_, value)| which(value))
        .map(|(key, _)| key.clone())
        .collect();
    keys.into_iter()
        .filter_map(|key| map.remove_entry(&key))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use limiter_common::meter::Meter;

    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    fn ban(until: Option<u64>) -> KeptBan {
        KeptBan {
            until,
            reason: None,
            author: "root".to_owned(),
            made: UNIX_EPOCH.into(),
        }
    }

    fn key(limit: &str) -> OverrideKey {
        OverrideKey {
            limit: limit.to_owned(),
            source: None,
        }
    }

    fn change(rate: &str, until: u64) -> KeptOverride {
        KeptOverride {
            rate: Some(rate.parse().unwrap()),
            burst: None,
            until,
            reason: None,
            author: "root".to_owned(),
            made: UNIX_EPOCH.into(),
        }
    }

    #[test]
    fn a_second_ban_takes_the_place_of_the_first() {
        let mut kept = Kept::default();
        let one = target("198.51.100.7");
        assert_eq!(kept.add_ban(one, ban(Some(5))), Ok(None));
        assert_eq!(kept.add_ban(one, ban(None)), Ok(Some(ban(Some(5)))));
        assert_eq!(kept.remove_ban(one), Ok(ban(None)));
        let error = kept.remove_ban(one).unwrap_err();
        assert!(error.contains("not banned by an operator"), "{error}");
    }

    #[test]
    fn lifting_a_part_of_a_ban_names_the_whole() {
        let mut kept = Kept::default();
        kept.add_ban(target("198.51.100.0/24"), ban(None)).unwrap();
        let error = kept.remove_ban(target("198.51.100.7")).unwrap_err();
        assert!(error.contains("limiter unban 198.51.100.0/24"), "{error}");
    }

    #[test]
    fn both_are_bounded_and_full_ones_can_still_be_renewed() {
        let mut kept = Kept::default();
        for bits in 0..MOST_BANS {
            let address = std::net::Ipv4Addr::from_bits(u32::try_from(bits).unwrap());
            let one = Target::new(std::net::IpAddr::from(address).into());
            kept.add_ban(one, ban(None)).unwrap();
        }
        let error = kept.add_ban(target("198.51.100.7"), ban(None)).unwrap_err();
        assert!(error.contains("16384") && error.contains("file"), "{error}");
        assert!(kept.add_ban(target("0.0.0.1"), ban(Some(1))).is_ok());
        for i in 0..MOST_OVERRIDES {
            kept.add_override(key(&format!("limit-{i}")), change("1/s", 1))
                .unwrap();
        }
        let error = kept
            .add_override(key("one-more"), change("1/s", 1))
            .unwrap_err();
        assert!(error.contains("one-more: there are 1024"), "{error}");
        assert!(
            kept.add_override(key("limit-1"), change("2/s", 1))
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn everything_ends_at_its_time_and_not_before() {
        let mut kept = Kept::default();
        kept.add_ban(target("198.51.100.7"), ban(Some(100)))
            .unwrap();
        kept.add_ban(target("198.51.100.8"), ban(None)).unwrap();
        kept.add_override(key("login"), change("1/s", 50)).unwrap();
        assert_eq!(kept.next_end(), Some(50));
        assert_eq!(kept.expire(49), Expired::default());
        let ended = kept.expire(50);
        assert_eq!(ended.overrides, [(key("login"), change("1/s", 50))]);
        assert_eq!(ended.bans, []);
        assert_eq!(kept.next_end(), Some(100));
        assert_eq!(kept.expire(u64::MAX).bans.len(), 1);
        assert_eq!(kept.next_end(), None, "a ban for ever has no end");
        assert_eq!(kept.bans().len(), 1);
    }

    #[test]
    fn changes_leave_out_what_is_over_and_tell_what_is_of_no_use() {
        let mut kept = Kept::default();
        kept.add_ban(target("198.51.100.7"), ban(Some(100)))
            .unwrap();
        kept.add_ban(target("198.51.100.0/24"), ban(None)).unwrap();
        kept.add_override(key("gone"), change("1/s", 200)).unwrap();
        kept.add_override(key("login"), change("1/s", 200)).unwrap();
        kept.add_override(key("over"), change("1/s", 100)).unwrap();
        let terms = |key: &OverrideKey, change: &KeptOverride| {
            if key.limit == "gone" {
                return Err("the policy has no such limit".to_owned());
            }
            let rate = change.rate.clone().unwrap();
            Ok(Terms {
                meter: Meter::token_bucket(rate.rate, 1).unwrap(),
                rate,
                size: None,
            })
        };
        let (changes, idle) = kept.changes(100, terms);
        assert_eq!(
            changes.bans,
            [OperatorBan {
                prefix: target("198.51.100.0/24").net(),
                until: None
            }]
        );
        let limits: Vec<&str> = changes.overrides.iter().map(|one| &*one.limit).collect();
        assert_eq!(limits, ["login"]);
        let idle: Vec<&str> = idle.iter().map(|one| &*one.key.limit).collect();
        assert_eq!(idle, ["gone"]);
    }
}
