//! Who is allowed or banned. Of the prefixes that cover a source, the longest decides; of equal ones, that which allows.

use std::cmp::Reverse;

use limiter_common::{
    source::Prefixes,
    standing::{Entry, Listed},
};

use super::{
    LoadedPrefixes,
    split::{self, Split},
};
use crate::{
    changes::{Changes, OperatorBan},
    prefix::{Prefix, PrefixSet},
};

const NO: u32 = Listed::No as u32;
const ALLOWED: u32 = Listed::Allowed as u32;
const BANNED: u32 = Listed::Banned as u32;
const BANNED_UNTIL: u32 = Listed::BannedUntil as u32;

/// What decides for a prefix comes first.
const fn rank(entry: &Entry) -> (u32, Reverse<u64>) {
    let listed = match entry.listed {
        // Of itself it says nothing, and takes what is said of a shorter one.
        NO => u32::MAX,
        listed => listed,
    };
    (listed, Reverse(entry.until))
}

const fn entry(listed: u32, until: u64) -> Entry {
    Entry {
        listed,
        split: 0,
        until,
        then: NO,
        zero: 0,
    }
}

/// The list set of a policy.
pub(super) fn compile(
    prefixes: &LoadedPrefixes,
    changes: &Changes,
    keys: &Prefixes,
    now: u64,
) -> PrefixSet<Entry> {
    let lists = Lists {
        allow: &prefixes.allow,
        ban: &prefixes.ban,
        bans: changes.bans.iter().collect(),
        now,
    };
    PrefixSet::sorted(lists.entries(Entry::default(), keys))
}

/// Edits a list set where a ban by an operator has come or gone, as if it were compiled anew, but by looking only at what is
/// around that ban: a million prefixes are no matter. The prefixes are sorted ([`LoadedPrefixes::sort`]); `changes` hold
/// or leave out the ban on `touched` already.
///
/// Returns what is to be put into the kernel's set, or where there is no value, taken out of it.
pub fn edit(
    lists: &mut PrefixSet<Entry>,
    prefixes: &LoadedPrefixes,
    changes: &Changes,
    keys: &Prefixes,
    touched: Prefix,
    now: u64,
) -> Vec<(Prefix, Option<Entry>)> {
    let region = split::concerned(touched, keys);
    let inside = Lists {
        allow: within(&prefixes.allow, region),
        ban: within(&prefixes.ban, region),
        bans: changes
            .bans
            .iter()
            .filter(|ban| region.covers(&ban.prefix.into()))
            .collect(),
        now,
    };
    let outer = around(prefixes, changes, region, now);
    lists.replace_within(region, inside.entries(outer, keys))
}

/// Those of sorted prefixes that lie in a region.
fn within(sorted: &[Prefix], region: Prefix) -> &[Prefix] {
    debug_assert!(sorted.is_sorted(), "the prefixes are sorted");
    let begin = sorted.partition_point(|prefix| *prefix < region);
    let length = sorted[begin..].partition_point(|prefix| region.covers(prefix));
    &sorted[begin..begin + length]
}

/// What is said of a region by shorter prefixes.
fn around(prefixes: &LoadedPrefixes, changes: &Changes, region: Prefix, now: u64) -> Entry {
    (0..region.length).fold(Entry::default(), |outer, length| {
        let prefix = Prefix::new(region.address, length);
        let same = |sorted| equal(sorted, prefix);
        let lists = Lists {
            allow: same(&prefixes.allow),
            ban: same(&prefixes.ban),
            bans: changes
                .bans
                .iter()
                .filter(|ban| Prefix::from(ban.prefix) == prefix)
                .collect(),
            now,
        };
        lists
            .said()
            .min_by_key(|(_, entry)| rank(entry))
            .map_or(outer, |(_, entry)| under(entry, outer))
    })
}

/// Those of sorted prefixes that equal one: none, or as one.
fn equal(sorted: &[Prefix], prefix: Prefix) -> &[Prefix] {
    let found = sorted.binary_search(&prefix);
    found.map_or(&[], |at| &sorted[at..=at])
}

/// Allow and ban lists, or a part of them.
struct Lists<'a> {
    allow: &'a [Prefix],
    ban: &'a [Prefix],
    bans: Vec<&'a OperatorBan>,
    now: u64,
}

impl Lists<'_> {
    /// All that they say, in no order.
    fn said(&self) -> impl Iterator<Item = (Prefix, Entry)> {
        let allow = self.allow.iter().map(|prefix| (*prefix, entry(ALLOWED, 0)));
        let ban = self.ban.iter().map(|prefix| (*prefix, entry(BANNED, 0)));
        let bans = self.bans.iter().filter_map(|ban| match ban.until {
            None => Some((ban.prefix.into(), entry(BANNED, 0))),
            Some(until) if until > self.now => {
                Some((ban.prefix.into(), entry(BANNED_UNTIL, until)))
            }
            Some(_) => None,
        });
        allow.chain(ban).chain(bans)
    }

    /// The entries of the list set, sorted, where shorter prefixes say `outer` of all of them.
    fn entries(&self, outer: Entry, keys: &Prefixes) -> Vec<(Prefix, Entry)> {
        let mut entries = Vec::with_capacity(self.allow.len() + self.ban.len() + self.bans.len());
        entries.extend(self.said());
        let split = Split::new(entries.iter().map(|(prefix, _)| *prefix), keys);
        entries.extend(split.needed().map(|prefix| (prefix, entry(NO, 0))));
        entries.sort_unstable_by_key(|(prefix, entry)| (*prefix, rank(entry)));
        entries.dedup_by_key(|(prefix, _)| *prefix);
        inherit(&mut entries, outer, &split);
        entries
    }
}

/// Completes each entry by what the next shorter one says.
fn inherit(entries: &mut [(Prefix, Entry)], outermost: Entry, split: &Split<'_>) {
    // The entries around the one at hand, shortest first.
    let mut around: Vec<(Prefix, Entry)> = Vec::new();
    for (prefix, entry) in entries {
        while around
            .last()
            .is_some_and(|(outer, _)| !outer.covers(prefix))
        {
            around.pop();
        }
        let outer = around.last().map_or(outermost, |(_, entry)| *entry);
        *entry = under(*entry, outer);
        entry.split = split.contains(*prefix).into();
        around.push((*prefix, *entry));
    }
}

/// What an entry says, given what holds where it says nothing, or no more.
const fn under(entry: Entry, outer: Entry) -> Entry {
    match (entry.listed, outer.listed) {
        (NO, _) | (BANNED_UNTIL, BANNED) => outer,
        // One ban goes over into the other.
        (BANNED_UNTIL, BANNED_UNTIL) => Entry {
            until: if outer.until > entry.until {
                outer.until
            } else {
                entry.until
            },
            then: outer.then,
            ..entry
        },
        (BANNED_UNTIL, then) => Entry { then, ..entry },
        _ => entry,
    }
}
