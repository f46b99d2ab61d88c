//! [`HostTables`] as the tables that a verdict works on.

use std::{collections::hash_map, ptr};

use limiter_common::{
    address::Address,
    judge::{
        Done, InForce, Lists, LogKey, Logs, Meters, NotInserted, Order, Tables, listed_now,
        put_ban, resolve, work, work_log,
    },
    meter::{MeterLog, oldest},
    needs::Need,
    policy::{Matching, MeterEntry, MeterRow, PORT_WORDS, PortTable},
    source::SourceKey,
    standing::{Ban, Entry, Listed, Membership, Standing},
    state::Slot,
    word::Word,
};

use super::{HostTables, sources::HostSource};

impl Meters for HostTables {
    fn meter(&self, id: u32) -> Option<&MeterEntry> {
        self.meters.get(&u16::try_from(id).ok()?)
    }
}

impl Lists for HostTables {
    fn membership(&self, _set: u32, address: Address) -> Membership {
        let found = self.compiled.classes.longest(address);
        found.map(|(_, membership)| *membership).unwrap_or_default()
    }

    fn listed(&self, _set: u32, address: Address) -> Entry {
        let found = self.compiled.lists.longest(address);
        found.map(|(_, entry)| *entry).unwrap_or_default()
    }

    fn ban(&self, key: &SourceKey) -> Option<Ban> {
        self.bans.borrow().get(key).copied()
    }

    fn set_ban(&self, key: &SourceKey, ban: &Ban) -> bool {
        let mut bans = self.bans.borrow_mut();
        let has_room = bans.contains_key(key) || bans.len() < self.ban_capacity;
        if has_room {
            bans.insert(*key, *ban);
        }
        has_room
    }
}

impl Logs for HostTables {
    fn log(&self, key: &LogKey) -> Option<&MeterLog<Word>> {
        let logs = self.logs.borrow();
        let log: *const MeterLog<Word> = ptr::from_ref(logs.get(key)?.as_ref());
        // SAFETY: the log is in a box of its own, and is removed or replaced through `&mut self` only.
        Some(unsafe { &*log })
    }

    fn insert_log(&self, key: &LogKey) -> Result<(), NotInserted> {
        match self.logs.borrow_mut().entry(*key) {
            hash_map::Entry::Occupied(_) => Err(NotInserted::Exists),
            hash_map::Entry::Vacant(entry) => {
                entry.insert(Box::default());
                Ok(())
            }
        }
    }

    fn oldest(&self, log: &MeterLog<Word>, size: u64) -> u64 {
        oldest(log, size)
    }
}

impl Tables for HostTables {
    type Source = HostSource;

    fn now(&self) -> u64 {
        self.time
    }

    fn port_class(&self, _policy: u32, table: PortTable, port: u16) -> u32 {
        let word = table as usize * PORT_WORDS as usize + usize::from(port / 8);
        let word = self.compiled.ports.get(word).copied().unwrap_or_default();
        word.to_le_bytes()[usize::from(port % 8)].into()
    }

    fn matching(&self, _policy: u32, index: u32) -> Option<&Matching> {
        self.compiled.matches.get(index as usize)
    }

    fn meters(&self, _policy: u32, chain: u32) -> Option<&MeterRow> {
        self.compiled.rows.get(&chain)
    }

    fn resolve(&self, address: &Address, key: &SourceKey, rules: InForce<'_>) -> Standing {
        resolve(address, key, rules, self)
    }

    fn listed_now(
        &self,
        address: &Address,
        key: &SourceKey,
        now: u64,
        rules: InForce<'_>,
    ) -> Listed {
        listed_now(address, key, now, rules, self)
    }

    fn put_ban(&self, key: &SourceKey, limit: u64, now: u64, rules: InForce<'_>) -> bool {
        let number = usize::try_from(limit).unwrap_or(usize::MAX);
        let limit = rules.policy.limits.get(number);
        limit.is_some_and(|limit| put_ban(key, limit, now, self))
    }

    fn source(&self, key: &SourceKey) -> Option<HostSource> {
        self.sources.borrow().get(key).cloned()
    }

    fn insert(&self, key: &SourceKey) -> Result<(), NotInserted> {
        match self.sources.borrow_mut().entry(*key) {
            hash_map::Entry::Occupied(_) => Err(NotInserted::Exists),
            hash_map::Entry::Vacant(entry) => {
                entry.insert(HostSource::new());
                Ok(())
            }
        }
    }

    fn shared(&self, slot: u32) -> Option<&Slot<Word>> {
        self.shared.get(slot as usize)
    }

    fn work(&self, slot: &Slot<Word>, order: Order, now: u64, cost: u64) -> Done {
        work(slot, order, now, cost, self)
    }

    fn work_log(&self, key: &LogKey, order: Order, now: u64) -> Done {
        work_log(key, order, now, self)
    }

    fn need(&self, need: Need) -> Option<&Word> {
        self.needs.get(need as usize)
    }
}
