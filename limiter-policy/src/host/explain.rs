//! What would become of a packet, and why: the walk of a verdict, with nothing taken.

use limiter_common::{
    address::Address,
    frame::SliceFrame,
    judge::{
        LogKey, Meters as _, Order, Tables as _, convert, in_force, kind, match_index, resolve,
    },
    meter::{Decision, Meter},
    parse::{Content, Packet, parse},
    policy::{EXEMPT, Kind, Limit, MAX_MATCHING, Matching, NO_LIMIT, Place},
    source::{KeyRule, SourceKey},
    standing::{Ban, Entry, Listed, Standing},
    state::Slot,
    word::Word,
};

use super::{HostTables, sources};

/// What would become of a packet, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The packet.
    pub packet: Packet,
    /// Its kind.
    pub kind: Kind,
    /// The key that its source's state is kept under.
    pub key: SourceKey,
    /// The rule that made the key.
    pub rule: KeyRule,
    /// Whether addresses of its source differ in classes or lists, so that the chain of classes is part of the key.
    pub split: bool,
    /// The classes that cover its source: of two that one limit names, that with the longer prefix first.
    pub classes: Vec<String>,
    /// The chain of classes, by number.
    pub chain: u16,
    /// What the lists and bans say: allowed, banned or nothing.
    pub listed: Listed,
    /// The entry of the lists that covers its source, if any does.
    pub entry: Option<Entry>,
    /// The ban that a limit has put on its source, over or not.
    pub ban: Option<Ban>,
    /// The limits that match, in the order in which they are asked.
    pub limits: Vec<Asked>,
}

/// A limit that matches a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// Its number in the policy.
    pub number: usize,
    /// Whether it counts what it would drop, and drops nothing.
    pub monitor: bool,
    /// Whom its state belongs to; `None` for everyone.
    pub key: Option<SourceKey>,
    /// The meter in force, by id; `None` where the limit does not apply to the source's classes.
    pub meter: Option<u16>,
    /// Until when that meter is in force, in nanoseconds of the monotonic clock; 0 for as long as the policy.
    pub until: u64,
    /// Tokens that the packet costs.
    pub cost: u64,
    /// What it says; `None` where it does not apply.
    pub decision: Option<Decision>,
}

impl Explained {
    /// The limit for which the packet would be dropped, if any.
    #[must_use]
    pub fn refused_by(&self) -> Option<&Asked> {
        let refuses = |asked: &&Asked| {
            !asked.monitor && asked.decision.is_some_and(|decision| !decision.allowed)
        };
        match self.listed {
            Listed::No => self.limits.iter().find(refuses),
            _ => None,
        }
    }
}

/// Who a packet is from.
pub(super) struct Who {
    pub(super) key: SourceKey,
    rule: KeyRule,
    standing: Standing,
}

/// As a verdict finds it where nothing is remembered of the source.
pub(super) fn who(tables: &HostTables, address: Address) -> Who {
    let rules = tables.rules();
    let (key, rule) = SourceKey::of(address, &rules.policy.prefixes);
    let standing = resolve(&address, &key, rules, tables);
    let key = if standing.is_split() {
        key.of_chain(standing.chain().into())
    } else {
        key
    };
    Who {
        key,
        rule,
        standing,
    }
}

/// Explains what would become of a frame at the time set; `None` unless it is a whole IP packet.
#[must_use]
pub fn explain(tables: &HostTables, frame: &[u8]) -> Option<Explained> {
    let length = frame.len() as u64;
    let parsed = parse(&SliceFrame(frame));
    if parsed.content != Content::Ip {
        return None;
    }
    let packet = parsed.packet;
    let rules = tables.rules();
    let Who {
        key,
        rule,
        standing,
    } = who(tables, packet.source);
    let chain = standing.chain();
    let compiled = &tables.compiled;
    let matching = compiled
        .matches
        .get(match_index(&packet, tables, rules) as usize);
    let matching = matching.unwrap_or(&Matching::NONE);
    let numbers = (0..MAX_MATCHING).map(|place| matching.limits.to_le_bytes()[place as usize]);
    let limits = numbers
        .take_while(|number| *number != NO_LIMIT)
        .map(|number| {
            let asking = Asking {
                tables,
                key,
                wide: SourceKey::of(packet.source, &rules.policy.wide).0,
                chain: chain.into(),
                length,
            };
            asking.one(number.into())
        })
        .collect();
    let listed = match Listed::from_number(standing.listed().into()) {
        Some(Listed::BannedUntil | Listed::BannedByLimit) => {
            tables.listed_now(&packet.source, &key, tables.time, rules)
        }
        Some(listed) => listed,
        None => Listed::No,
    };
    Some(Explained {
        kind: kind(&packet),
        packet,
        key,
        rule,
        split: standing.is_split(),
        classes: compiled
            .chains
            .get(&chain.into())
            .cloned()
            .unwrap_or_default(),
        chain,
        listed,
        entry: compiled
            .lists
            .longest(packet.source)
            .map(|(_, entry)| *entry),
        ban: tables.bans.borrow().get(&key).copied(),
        limits,
    })
}

/// A packet before its limits.
struct Asking<'a> {
    tables: &'a HostTables,
    key: SourceKey,
    wide: SourceKey,
    chain: u32,
    length: u64,
}

impl Asking<'_> {
    fn one(&self, number: usize) -> Asked {
        let tables = self.tables;
        let limit = &tables.compiled.policy.limits[number];
        let key = match Place::from_number(limit.place.into()) {
            Some(Place::Source) => Some(self.key),
            Some(Place::Wide) => Some(self.wide),
            Some(Place::Shared) | None => None,
        };
        let mut id = tables
            .compiled
            .rows
            .get(&self.chain)
            .map_or(EXEMPT, |row| row[number])
            .into();
        let meter = in_force(&mut id, tables.time, tables);
        let cost = u64::from(limit.cost) | self.length & u64::from(limit.length_mask);
        Asked {
            name: tables.compiled.limits[number].name.clone(),
            number,
            monitor: limit.monitor != 0 || tables.monitor,
            key,
            meter: meter.and(u16::try_from(id).ok()),
            until: tables.meter(id).map_or(0, |entry| entry.until),
            cost,
            decision: meter.map(|meter| self.decide(limit, key, id, meter, cost)),
        }
    }

    fn decide(
        &self,
        limit: &Limit,
        key: Option<SourceKey>,
        id: u32,
        meter: &Meter,
        cost: u64,
    ) -> Decision {
        let now = self.tables.time;
        if limit.keeps_log != 0 {
            let log = self.tables.log_copy(&LogKey {
                source: key.unwrap_or(SourceKey::EVERYONE),
                limit: limit.counter.into(),
            });
            return meter.log_decision(&log.unwrap_or_default(), now);
        }
        let found = match key {
            Some(key) => {
                let source = self.tables.source_copy(&key);
                source.and_then(|source| source.slots.get(usize::from(limit.slot)).copied())
            }
            None => self.tables.shared_copy(limit.slot.into()),
        };
        // Brought up to date as a verdict does it, but on a copy.
        let slot: Slot<Word> = Slot::default();
        sources::set_slot(&slot, found.unwrap_or_default());
        convert(&slot, Order::new(id.into(), 0, 0), now, self.tables);
        meter.decide(slot.word.load(), now, cost)
    }
}
