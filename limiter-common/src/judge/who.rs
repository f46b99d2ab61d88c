//! Who a packet is from: the source's state, its classes, and what the lists say.

use super::{InForce, Lists, NotInserted, SourceState as _, Tables};
use crate::{
    address::Address,
    counters::{Counters, Table},
    opaque::forget_all,
    policy::{Limit, NO_SET},
    source::SourceKey,
    standing::{Ban, Entry, Listed, Membership, Standing},
};

/// A source, for one packet.
pub(super) struct Who<S> {
    /// Its key.
    pub(super) key: SourceKey,
    /// Its state, if the table has it.
    pub(super) state: Option<S>,
    /// Its classes and what the lists say of it.
    pub(super) standing: Standing,
}

/// Finds out who a packet is from. Nothing is entered yet.
#[inline(always)]
pub(super) fn identify<T: Tables>(
    address: &Address,
    tables: &T,
    rules: InForce<'_>,
) -> Who<T::Source> {
    let (key, _) = SourceKey::of(*address, &rules.policy.prefixes);
    let state = tables.source(&key);
    let standing = state
        .as_ref()
        .map_or(Standing(0), |state| Standing(state.head().standing.load()));
    if standing.epoch() == rules.force.epoch() {
        return Who {
            key,
            state,
            standing,
        };
    }
    let standing = tables.resolve(address, &key, rules);
    // Where addresses of one source differ in their classes, the classes are part of the buckets' identity.
    let (key, state) = if standing.is_split() && standing.chain() != 0 {
        let key = key.of_chain(standing.chain().into());
        (key, tables.source(&key))
    } else {
        (key, state)
    };
    if let Some(state) = &state
        && !standing.is_split()
    {
        state.head().standing.store(standing.0);
    }
    Who {
        key,
        state,
        standing,
    }
}

/// Asks the class and list sets, which know addresses, and the bans, which know sources.
#[inline(always)]
pub fn resolve<L: Lists>(
    address: &Address,
    key: &SourceKey,
    rules: InForce<'_>,
    lists: &L,
) -> Standing {
    let Membership { chain, split } = match rules.policy.class_set {
        NO_SET => Membership::default(),
        set => lists.membership(set, *address),
    };
    let entry = match rules.policy.list_set {
        NO_SET => Entry::default(),
        set => lists.listed(set, *address),
    };
    let split = split | entry.split != 0;
    let mut listed = entry.listed as u8;
    if listed == Listed::No as u8 && rules.policy.bans != 0 {
        let key = if split { key.of_chain(chain) } else { *key };
        if lists.ban(&key).is_some() {
            listed = Listed::BannedByLimit as u8;
        }
    }
    let standing = Standing::new(rules.force.epoch(), chain as u16, listed);
    if split { standing.split() } else { standing }
}

/// What the lists say at `now` of a source whose standing tells to look it up: allowed, banned or nothing.
#[inline(always)]
pub fn listed_now<L: Lists>(
    address: &Address,
    key: &SourceKey,
    now: u64,
    rules: InForce<'_>,
    lists: &L,
) -> Listed {
    let entry = match rules.policy.list_set {
        NO_SET => Entry::default(),
        set => lists.listed(set, *address),
    };
    let listed = if entry.until == 0 || now < entry.until {
        entry.listed
    } else {
        entry.then
    };
    match listed as u8 {
        ALLOWED => Listed::Allowed,
        BANNED | BANNED_UNTIL => Listed::Banned,
        // Bans of limits hold as long as there are limits that ban, as in `resolve`.
        _ if rules.policy.bans == 0 => Listed::No,
        _ => match lists.ban(key) {
            Some(ban) if now < ban.until => Listed::Banned,
            _ => Listed::No,
        },
    }
}

const ALLOWED: u8 = Listed::Allowed as u8;
const BANNED: u8 = Listed::Banned as u8;
const BANNED_UNTIL: u8 = Listed::BannedUntil as u8;

/// Bans a source for a limit; false if there is no room.
#[inline(always)]
pub fn put_ban<L: Lists>(key: &SourceKey, limit: &Limit, now: u64, lists: &L) -> bool {
    let repeats = match lists.ban(key) {
        // Banned again before the last ban is over for as long as it lasted.
        Some(before) if now < before.until.saturating_add(before.until - before.since) => {
            before.repeats.saturating_add(1)
        }
        _ => 0,
    };
    let doublings = if limit.ban_doubles == 0 {
        0
    } else {
        repeats.min(MAX_DOUBLINGS)
    };
    lists.set_ban(
        key,
        &Ban {
            since: now,
            until: now.saturating_add(limit.ban_for.min(u64::MAX >> doublings) << doublings),
            limit: limit.counter,
            repeats,
        },
    )
}

/// A ban that doubles grows to 2^12 times its length at most: ten minutes become a month.
const MAX_DOUBLINGS: u32 = 12;

impl<S: super::SourceState> Who<S> {
    /// The same source, of whose words the verifier knows nothing: how it was found does not matter to the limits.
    #[inline(always)]
    pub(super) fn forget(&mut self, unknown: u64) {
        self.key.length = forget_all(self.key.length, unknown);
        self.standing.0 = forget_all(self.standing.0, unknown);
    }

    /// Enters the source if the table does not have it yet. A newcomer is judged here, before the table takes it.
    #[inline(always)]
    pub(super) fn enter<T: Tables<Source = S>>(&mut self, tables: &T, counters: &mut Counters) {
        if self.state.is_some() {
            return;
        }
        self.state = insert(&self.key, tables, counters);
        if let Some(state) = &self.state
            && !self.standing.is_split()
        {
            state.head().standing.store(self.standing.0);
        }
    }
}

/// The state of a wider source, entered if need be.
#[inline(always)]
pub(super) fn enter<T: Tables>(
    key: &SourceKey,
    tables: &T,
    counters: &mut Counters,
) -> Option<T::Source> {
    match tables.source(key) {
        Some(state) => Some(state),
        None => insert(key, tables, counters),
    }
}

#[inline(always)]
fn insert<T: Tables>(key: &SourceKey, tables: &T, counters: &mut Counters) -> Option<T::Source> {
    match tables.insert(key) {
        Ok(()) => counters.table[Table::Inserted as usize] += 1,
        Err(NotInserted::Exists) => counters.table[Table::InsertRaced as usize] += 1,
        Err(NotInserted::Failed) => {
            counters.table[Table::InsertFailed as usize] += 1;
            return None;
        }
    }
    tables.source(key)
}
