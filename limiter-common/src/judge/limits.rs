//! Asking the limits that match a packet.
//!
//! Look first, take second: every limit is asked before any is charged, so that a packet that one refuses takes nothing
//! from another. A flood that a limit per source refuses costs the ceiling nothing.

use super::{
    Done, InForce, LogKey, Order, Request, SourceState as _, Tables, Wanted,
    who::{self, Who},
};
use crate::{
    address::Address,
    counters::{Counters, Reason, Table},
    opaque::forget_all,
    policy::{EXEMPT, Limit, MAX_MATCHING, Matching, MeterRow, NO_LIMIT, NO_SET, OnError, Place},
    source::SourceKey,
    standing::Listed,
    state::{Head, Slot},
    word::Word,
};

/// A packet before the limits.
struct Asking<'a, T: Tables> {
    tables: &'a T,
    rules: InForce<'a>,
    request: &'a Request,
    matching: &'a Matching,
    row: &'a MeterRow,
    now: u64,
    who: Who<T::Source>,
    /// The wider source, if a limit keeps its state with it.
    wide: Option<T::Source>,
}

/// Asks the lists and limits; the reason for which the packet is dropped, if it is.
#[inline(always)]
pub(super) fn ask<T: Tables>(
    request: &Request,
    tables: &T,
    rules: InForce<'_>,
    counters: &mut Counters,
) -> Option<Reason> {
    let policy = rules.policy;
    let matching = tables.matching(rules.force.policy(), request.matching)?;
    if matching.limits as u8 == NO_LIMIT && policy.list_set == NO_SET && policy.bans == 0 {
        return None;
    }
    let who = who::identify(&request.source, tables, rules);
    let now = tables.now();
    let listed = listed(&who, &request.source, now, tables, rules);
    let chain = u32::from(who.standing.chain());
    let row = tables.meters(rules.force.policy(), chain)?;
    let mut asking = Asking {
        tables,
        rules,
        request,
        matching,
        row,
        now,
        who,
        wide: None,
    };
    let reason = match listed {
        Listed::Allowed => None,
        Listed::Banned => Some(Reason::Ban),
        _ => asking.all(counters),
    };
    if let Some(state) = &asking.who.state {
        note(
            state.head(),
            now,
            reason.is_none() && request.malformed == 0,
        );
    }
    reason
}

/// Notes a packet with its source.
#[inline(always)]
fn note(head: &Head<Word>, now: u64, passed: bool) {
    head.last_seen.store(now);
    if passed {
        head.passed.add(1);
    } else {
        head.dropped.add(1);
    }
}

/// What the lists say: allowed, banned, or nothing.
#[inline(always)]
fn listed<T: Tables>(
    who: &Who<T::Source>,
    address: &Address,
    now: u64,
    tables: &T,
    rules: InForce<'_>,
) -> Listed {
    match who.standing.listed() {
        NOTHING => Listed::No,
        ALLOWED => Listed::Allowed,
        BANNED => Listed::Banned,
        _ => {
            let listed = tables.listed_now(address, &who.key, now, rules);
            if matches!(listed, Listed::No)
                && let Some(state) = &who.state
                && !who.standing.is_split()
            {
                // What held until a time does so no more. Whatever is listed from now on begins a new epoch.
                let standing = who.standing.listed_as(NOTHING);
                state.head().standing.store(standing.0);
            }
            listed
        }
    }
}

const NOTHING: u8 = Listed::No as u8;
const ALLOWED: u8 = Listed::Allowed as u8;
const BANNED: u8 = Listed::Banned as u8;

/// Where the walk over the matching limits has got to. One word, so that the verifier can forget all of it at once:
/// `bans | reason | waived | exempt | exhausted | phase | end | place`.
#[derive(Clone, Copy)]
struct Walk(u64);

/// First it looks at all limits, then it takes from each; if a take fails, it gives back.
const LOOK: u64 = Wanted::Look as u64;
const TAKE: u64 = Wanted::Take as u64;
const GIVE_BACK: u64 = Wanted::GiveBack as u64;

const END_SHIFT: u32 = 4;
const PHASE_SHIFT: u32 = 8;
const EXHAUSTED_SHIFT: u32 = 10;
const EXEMPT_SHIFT: u32 = 16;
const WAIVED_SHIFT: u32 = 24;
const REASON_SHIFT: u32 = 32;
const BANS_SHIFT: u32 = 40;
/// Place, end and phase.
const PHASE_BITS: u64 = 0x3ff;

/// Each place is visited at most three times, and each phase but the last ends once.
const STEPS: u32 = 3 * MAX_MATCHING + 2;

impl Walk {
    /// A walk that begins with a phase.
    #[inline(always)]
    const fn new(phase: u64) -> Self {
        Self(phase << PHASE_SHIFT | (MAX_MATCHING as u64) << END_SHIFT)
    }

    /// Begins a phase at the first place.
    #[inline(always)]
    const fn begin(&mut self, phase: u64, end: u64) {
        self.0 = self.0 & !PHASE_BITS | phase << PHASE_SHIFT | end << END_SHIFT;
    }

    /// The same walk, of which the verifier knows nothing: what came of the limits before does not matter to how the next
    /// is asked. `unknown` is anything that the verifier does not know.
    #[inline(always)]
    fn forget(&mut self, unknown: u64) {
        self.0 = forget_all(self.0, unknown);
    }

    /// The next place in the list.
    #[inline(always)]
    const fn place(self) -> u64 {
        self.0 & 0xf
    }

    /// The place where this phase ends.
    #[inline(always)]
    const fn end(self) -> u64 {
        self.0 >> END_SHIFT & 0xf
    }

    #[inline(always)]
    const fn phase(self) -> u64 {
        self.0 >> PHASE_SHIFT & 3
    }

    /// Whether some word changed under every try.
    #[inline(always)]
    const fn is_exhausted(self) -> bool {
        self.0 >> EXHAUSTED_SHIFT & 1 != 0
    }

    /// By place: limits that do not apply to the packet, or could not be asked and let it pass.
    #[inline(always)]
    const fn exempt(self) -> u64 {
        self.0 >> EXEMPT_SHIFT & 0xff
    }

    /// By place: limits not to ask again; besides the exempt, those that would have refused but drop nothing.
    #[inline(always)]
    const fn done_with(self) -> u64 {
        (self.0 >> EXEMPT_SHIFT | self.0 >> WAIVED_SHIFT) & 0xff
    }

    /// The first reason for which the packet would be dropped.
    #[inline(always)]
    const fn reason(self) -> Option<Reason> {
        match self.0 >> REASON_SHIFT & 0xff {
            0 => None,
            TABLE_FULL => Some(Reason::TableFull),
            _ => Some(Reason::Limit),
        }
    }

    /// Notes a reason, if none was found before.
    #[inline(always)]
    const fn note_reason(&mut self, code: u64) {
        if (self.0 >> REASON_SHIFT) as u8 == 0 {
            self.0 |= code << REASON_SHIFT;
        }
    }

    /// The limit that bans the source, by number.
    #[inline(always)]
    const fn bans(self) -> Option<u64> {
        (self.0 >> BANS_SHIFT & 0xff).checked_sub(1)
    }
}

/// Reasons as a walk notes them.
const OVER_LIMIT: u64 = 1;
const TABLE_FULL: u64 = 2;

impl<T: Tables> Asking<'_, T> {
    /// Asks all limits; the reason for which the packet is dropped, if it is.
    #[inline(always)]
    fn all(&mut self, counters: &mut Counters) -> Option<Reason> {
        self.enter(counters);
        self.who.forget(self.now);
        // Of a single limit, looking first would tell nothing.
        let single = (self.matching.limits >> 8) as u8 == NO_LIMIT;
        let mut walk = Walk::new(if single { TAKE } else { LOOK });
        for _ in 0..STEPS {
            walk.forget(self.now);
            if !self.step(&mut walk, counters) {
                break;
            }
        }
        walk.forget(self.now);
        if walk.is_exhausted() {
            counters.table[Table::RetriesExhausted as usize] += 1;
        }
        if let Some(number) = walk.bans() {
            self.ban(number, counters);
        }
        let reason = walk.reason();
        if reason.is_none() && self.request.malformed == 0 {
            self.count_passed(walk.exempt(), counters);
        }
        reason
    }

    /// Asks one limit; false when there is no more to ask.
    #[inline(always)]
    fn step(&self, walk: &mut Walk, counters: &mut Counters) -> bool {
        let place = walk.place();
        let phase = walk.phase();
        let number = (self.matching.limits >> (8 * (place & 7))) as u8;
        if place >= walk.end() || number == NO_LIMIT {
            walk.begin(TAKE, MAX_MATCHING.into());
            return phase == LOOK;
        }
        let bit = 1 << (place & 7);
        walk.0 += 1;
        if walk.done_with() & bit != 0 {
            return true;
        }
        let (Some(limit), Some(id)) = (
            self.rules.policy.limits.get(usize::from(number)),
            self.row.get(usize::from(number)),
        ) else {
            return false;
        };
        if *id == EXEMPT {
            walk.0 |= bit << EXEMPT_SHIFT;
            return true;
        }
        // Arithmetic, where conditions would be ways for the verifier to follow.
        let monitored = u64::from(limit.monitor) | self.rules.force.monitor_bit();
        let notes = u64::from(limit.bans) & !monitored;
        let done = self.one(limit, Order::new((*id).into(), notes, phase));
        walk.0 |= done.exhausted_bit() << EXHAUSTED_SHIFT;
        walk.0 |= (done.exempt_bit() << (place & 7)) << EXEMPT_SHIFT;
        if done.admits() || phase == GIVE_BACK {
            return true;
        }
        let code = if done.is_broken() {
            if limit.on_error == OnError::Pass as u8 {
                counters.table[Table::LimitSkipped as usize] += 1;
                walk.0 |= bit << EXEMPT_SHIFT;
                return true;
            }
            TABLE_FULL
        } else {
            // Where the limit could not be asked, the reason has a counter of its own.
            count_refused(limit, monitored, counters);
            if notes != 0 && is_time_to_ban(done.refusals(), limit.ban_after) {
                walk.0 |= (u64::from(number) + 1) << BANS_SHIFT;
            }
            OVER_LIMIT
        };
        if monitored == 0 {
            walk.note_reason(code);
            // If another CPU took in between, what this packet has taken goes back.
            walk.begin(GIVE_BACK, place);
            return phase == TAKE;
        }
        walk.0 |= bit << WAIVED_SHIFT;
        if limit.monitor == 0 {
            walk.note_reason(code);
        }
        true
    }

    /// Asks one limit, or takes from it, or gives back.
    #[inline(always)]
    fn one(&self, limit: &Limit, order: Order) -> Done {
        if limit.keeps_log != 0 {
            let key = LogKey {
                source: self.source_of(limit),
                limit: limit.counter.into(),
            };
            return self.tables.work_log(&key, order, self.now);
        }
        let Some(state) = self.slot_of(limit) else {
            return Done::BROKEN;
        };
        let cost =
            u64::from(limit.cost) | u64::from(self.request.length) & u64::from(limit.length_mask);
        self.tables.work(state, order, self.now, cost)
    }

    /// Bans the source.
    #[inline(always)]
    fn ban(&self, number: u64, counters: &mut Counters) {
        if !self
            .tables
            .put_ban(&self.who.key, number, self.now, self.rules)
        {
            counters.table[Table::BanFailed as usize] += 1;
        } else if let Some(source) = &self.who.state
            && !self.who.standing.is_split()
        {
            let standing = self.who.standing.listed_as(Listed::BannedByLimit as u8);
            source.head().standing.store(standing.0);
        }
    }

    /// The source that a limit is kept for.
    #[inline(always)]
    fn source_of(&self, limit: &Limit) -> SourceKey {
        match limit.place {
            SHARED => SourceKey::EVERYONE,
            WIDE => self.wide_key(),
            _ => self.who.key,
        }
    }

    #[inline(always)]
    fn wide_key(&self) -> SourceKey {
        SourceKey::of(self.request.source, &self.rules.policy.wide).0
    }

    /// Enters the sources that the limits are kept for, if need be.
    #[inline(always)]
    fn enter(&mut self, counters: &mut Counters) {
        if self.matching.needs & Matching::SOURCE != 0 {
            self.who.enter(self.tables, counters);
        }
        if self.matching.needs & Matching::WIDE != 0 {
            self.wide = who::enter(&self.wide_key(), self.tables, counters);
        }
    }

    /// The state of a limit; `None` where it cannot be kept.
    #[inline(always)]
    fn slot_of(&self, limit: &Limit) -> Option<&Slot<Word>> {
        let slot = u32::from(limit.slot);
        match limit.place {
            SHARED => self.tables.shared(slot),
            WIDE => self.wide.as_ref()?.slot(slot),
            _ => self.who.state.as_ref()?.slot(slot),
        }
    }

    /// Counts a packet with all limits that it has passed.
    #[inline(always)]
    fn count_passed(&self, exempt: u64, counters: &mut Counters) {
        for place in 0..MAX_MATCHING {
            let number = (self.matching.limits >> (8 * place)) as u8;
            let Some(limit) = self.rules.policy.limits.get(usize::from(number)) else {
                break;
            };
            if exempt & (1 << place) == 0
                && let Some(counts) = counters.limits.get_mut(limit.counter as usize)
            {
                counts.passed += 1;
            }
        }
    }
}

/// Whether the source is to be banned at this refusal: each time that it is one too many once more, so that a flood that
/// goes on after its ban is banned again; but not at each packet, where a full table of bans would cost it a try.
#[inline(always)]
const fn is_time_to_ban(refusals: u32, after: u32) -> bool {
    let Some(rest) = refusals.checked_rem(after) else {
        return false;
    };
    rest == 0
        && (refusals == after || after >= FEW_REFUSALS || refusals.is_multiple_of(FEW_REFUSALS))
}

/// A ban after fewer refusals than this is not tried anew as often.
const FEW_REFUSALS: u32 = 8;

/// Counts a packet with the limit that is the reason for its drop, or would be.
#[inline(always)]
fn count_refused(limit: &Limit, monitored: u64, counters: &mut Counters) {
    if let Some(counts) = counters.limits.get_mut(limit.counter as usize) {
        counts.dropped += monitored ^ 1;
        counts.would_drop += monitored;
    }
}

const WIDE: u8 = Place::Wide as u8;
const SHARED: u8 = Place::Shared as u8;
