//! The state of one limit for one packet: found, brought up to date, asked and taken from.

use super::{Logs, Meters, NotInserted};
use crate::{
    meter::Meter,
    policy::{EXEMPT, MAX_SUCCESSORS, MeterEntry},
    source::SourceKey,
    state::Slot,
    word::Word,
};

/// How often an order is tried again, before the cost is taken by adding it outright.
const RETRIES: u32 = 8;

/// Looks at a slot that another CPU is converting, before each try.
const LOOKS: u32 = 32;

/// Refusals are counted no further, but from half of it again, so that they never run over into the meter's id.
const MAX_REFUSALS: u32 = 1 << 31;

/// The key of a sliding log: whose it is, and of which limit.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogKey {
    /// The source; for a shared limit, one that cannot exist.
    pub source: SourceKey,
    /// The limit, by its counters' number.
    pub limit: u64,
}

const _: () = assert!(size_of::<LogKey>() == 32);

/// What is wanted of a limit's state.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whether it would admit the packet.
    Look,
    /// The packet's cost.
    Take,
    /// The cost back.
    GiveBack,
    /// The packet's cost, where the word changes under every try.
    Add,
}

/// An order to work on the state of a limit. One word, for the kernel passes few: `meter | notes | wanted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order(pub u64);

const NOTES: u64 = 1 << 8;

impl Order {
    /// Asks the meter with this id for a [`Wanted`] by number; with `notes`, 0 or 1, refusals are counted until the meter is
    /// full again.
    #[inline(always)]
    #[must_use]
    pub const fn new(meter: u64, notes: u64, wanted: u64) -> Self {
        Self(meter << 32 | notes << 8 | wanted)
    }

    #[inline(always)]
    const fn meter(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    const fn notes(self) -> bool {
        self.0 & NOTES != 0
    }

    #[inline(always)]
    const fn wanted(self) -> u8 {
        self.0 as u8
    }
}

const LOOK: u8 = Wanted::Look as u8;
const TAKE: u8 = Wanted::Take as u8;
const ADD: u8 = Wanted::Add as u8;

/// What came of an order. One word: `refusals | exempt | exhausted | answer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done(pub u64);

const REFUSES: u64 = 1;
const BROKEN: u64 = 2;
const CONTENDED: u64 = 4;
const FOREIGN: u64 = 5;
/// Set in both.
const UNSETTLED: u64 = 4;
const EXHAUSTED: u64 = 1 << 8;
const IS_EXEMPT: u64 = 1 << 9;

impl Done {
    /// The limit admits the packet.
    pub const ADMITS: Self = Self(0);
    /// The limit admits the packet, since it does not apply to it any more.
    pub const EXEMPT: Self = Self(IS_EXEMPT);
    /// The limit's state cannot be kept.
    pub const BROKEN: Self = Self(BROKEN);

    /// Where no meter is in force, why.
    #[inline(always)]
    fn without_meter(id: u32) -> Self {
        if id == u32::from(EXEMPT) {
            Self::EXEMPT
        } else {
            Self::BROKEN
        }
    }

    /// Unsettled: another CPU has changed the word.
    const CONTENDED: Self = Self(CONTENDED);
    /// Unsettled: the word is another meter's, or being converted.
    const FOREIGN: Self = Self(FOREIGN);

    #[inline(always)]
    const fn refuses(refusals: u32, exhausted: bool) -> Self {
        Self((refusals as u64) << 32 | (exhausted as u64) << 8 | REFUSES)
    }

    /// Whether nothing remains to be done.
    #[inline(always)]
    #[must_use]
    pub const fn is_settled(self) -> bool {
        self.0 & UNSETTLED == 0
    }

    /// Whether the limit admits the packet.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self) -> bool {
        self.0 as u8 == 0
    }

    /// Whether the limit's state cannot be kept.
    #[inline(always)]
    #[must_use]
    pub const fn is_broken(self) -> bool {
        self.0 as u8 == BROKEN as u8
    }

    /// 1 if the word changed under every try, so that the cost was added outright, or refused where it cannot be.
    #[inline(always)]
    #[must_use]
    pub const fn exhausted_bit(self) -> u64 {
        (self.0 / EXHAUSTED) & 1
    }

    /// 1 if the limit does not apply to the packet any more.
    #[inline(always)]
    #[must_use]
    pub const fn exempt_bit(self) -> u64 {
        (self.0 / IS_EXEMPT) & 1
    }

    /// Refusals since the meter was last full, this one included, if they are noted.
    #[inline(always)]
    #[must_use]
    pub const fn refusals(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Works on the state of a limit.
#[inline(always)]
pub fn work<M: Meters>(slot: &Slot<Word>, order: Order, now: u64, cost: u64, meters: &M) -> Done {
    let attempt = |order| attempt(slot, order, now, cost, meters);
    let done = attempt(order);
    if done.is_settled() {
        return done;
    }
    persist(order, attempt, || convert(slot, order, now, meters))
}

/// Tries to work on the state of a limit. It stays unsettled where another meter has left its word, or another CPU changes
/// it at the same time.
///
/// The note says whose word it is. It is read before the word and after; a conversion changes both, the word between two
/// changes of the note, which counts it. So what was read belongs to the meter that was asked, a compare-and-swap succeeds
/// only while it does, and neither a conversion nor what is taken meanwhile gets lost. One exception: a cost that was added
/// and refused, and converted before it was given back, comes back in units of the wrong meter; a burst at most.
#[inline(always)]
pub fn attempt<M: Meters>(
    slot: &Slot<Word>,
    order: Order,
    now: u64,
    cost: u64,
    meters: &M,
) -> Done {
    let mut id = order.meter();
    let Some(meter) = in_force(&mut id, now, meters) else {
        return Done::without_meter(id);
    };
    let before = slot.note.load();
    let word = slot.word.load_after(before);
    let note = slot.note.load_after(word);
    if meter_of(note) != id || whose(before) != whose(note) {
        return Done::FOREIGN;
    }
    match order.wanted() {
        LOOK => {
            if meter.take(word, now, cost).is_some() {
                return Done::ADMITS;
            }
        }
        TAKE => {
            if let Some(new) = meter.take(word, now, cost) {
                if !slot.word.compare_exchange(word, new) {
                    return Done::CONTENDED;
                }
                if note as u32 != 0 && meter.is_full(word, now) {
                    // If it fails, another CPU has refused, or converts: what it notes is newer.
                    slot.note
                        .compare_exchange(note, note ^ u64::from(note as u32));
                }
                return Done::ADMITS;
            }
        }
        ADD => {
            // If the word has become another meter's since, it looks far too full or far too empty, and gets the cost back.
            if meter.take_by_adding(&slot.word, now, cost) {
                return Done(EXHAUSTED);
            }
        }
        _ => {
            meter.give_back(&slot.word, now, cost);
            return Done::ADMITS;
        }
    }
    Done::refuses(refusals(slot, note, order), order.wanted() == ADD)
}

/// Goes on where [`attempt`] has left an order unsettled; `attempt` and `convert` are those on its slot, which the kernel
/// runs in functions of their own.
#[inline(always)]
pub fn persist(order: Order, attempt: impl Fn(Order) -> Done, convert: impl Fn()) -> Done {
    convert();
    let mut done = Done::CONTENDED;
    for _ in 0..RETRIES {
        done = attempt(order);
        if done.0 != CONTENDED {
            break;
        }
    }
    if done.0 == CONTENDED && order.wanted() == TAKE {
        done = attempt(Order(order.0 - u64::from(TAKE) + u64::from(ADD)));
    }
    // Nothing is added where policies flip: it might be converted before it is known whether it may stay.
    for _ in 0..RETRIES {
        if done.is_settled() {
            break;
        }
        convert();
        done = attempt(order);
    }
    if done.is_settled() {
        done
    } else {
        Done::BROKEN
    }
}

/// Notes a refusal, if it is to be noted: refusals since the meter was last full, this one included.
#[inline(always)]
fn refusals(slot: &Slot<Word>, note: u64, order: Order) -> u32 {
    let noted = note as u32;
    if !order.notes() {
        0
    } else if noted >= MAX_REFUSALS {
        slot.note
            .compare_exchange(note, note - u64::from(MAX_REFUSALS / 2));
        noted
    } else {
        slot.note.fetch_add(1) as u32 + 1
    }
}

/// Works on a sliding log, entered if need be.
#[inline(always)]
pub fn work_log<M: Meters + Logs>(key: &LogKey, order: Order, now: u64, tables: &M) -> Done {
    let mut id = order.meter();
    let Some(meter) = in_force(&mut id, now, tables) else {
        return Done::without_meter(id);
    };
    let log = match tables.log(key) {
        Some(log) => log,
        None if order.wanted() == LOOK => return Done::ADMITS,
        None => {
            if tables.insert_log(key) == Err(NotInserted::Failed) {
                return Done::BROKEN;
            }
            match tables.log(key) {
                Some(log) => log,
                None => return Done::BROKEN,
            }
        }
    };
    match order.wanted() {
        LOOK | TAKE => {
            if meter.admits(log, now, order.wanted() == TAKE, |log, size| {
                tables.oldest(log, size)
            }) {
                Done::ADMITS
            } else {
                Done::refuses(0, false)
            }
        }
        _ => {
            meter.withdraw(log, now);
            Done::ADMITS
        }
    }
}

/// Takes from a word that always has the same meter: whether the cost was there, and whether the word changed under every
/// try. A refusal writes nothing, but under contention.
#[inline(always)]
pub(super) fn take(word: &Word, meter: &Meter, now: u64, cost: u64) -> (bool, bool) {
    for _ in 0..RETRIES {
        let old = word.load();
        let Some(new) = meter.take(old, now, cost) else {
            return (false, false);
        };
        if word.compare_exchange(old, new) {
            return (true, false);
        }
    }
    (meter.take_by_adding(word, now, cost), true)
}

/// The meter in force at `now`, where `id` is that of a chain, and becomes that of the meter in force. Where there is none,
/// `id` is [`EXEMPT`] if the limit does not apply any more.
///
/// What held for a time gives way to what holds after it, which may itself hold for a time only.
#[inline(always)]
pub fn in_force<'a, M: Meters>(id: &mut u32, now: u64, meters: &'a M) -> Option<&'a Meter> {
    for _ in 0..=MAX_SUCCESSORS {
        let MeterEntry { meter, until, then } = meters.meter(*id)?;
        if *until == 0 || now < *until {
            return Some(meter);
        }
        *id = *then as u32;
    }
    None
}

/// Converts what another meter has left in a slot, unless another CPU is at it; no more than tries, once.
#[inline(always)]
pub fn convert<M: Meters>(slot: &Slot<Word>, order: Order, now: u64, meters: &M) {
    let mut id = order.meter();
    let Some(meter) = in_force(&mut id, now, meters) else {
        return;
    };
    let note = settled(slot);
    let word = slot.word.load_after(note);
    let found = meter_of(note);
    if found == id || found == CONVERTING {
        return;
    }
    if found == 0 {
        // A source that is new to the limit: its word, 0, is that of any meter that has admitted nothing.
        slot.note.compare_exchange(note, note_of(0, id));
        return;
    }
    let version = note >> Slot::<Word>::VERSION_SHIFT;
    // If it succeeds, the word was read under this note.
    if !slot
        .note
        .compare_exchange(note, note_of(version, CONVERTING))
    {
        return;
    }
    let new = match meters.meter(found) {
        Some(old) => meter.convert(word, now, &old.meter),
        None => 0,
    };
    // A CPU that has read the note before may still take. Then the word is to be read again.
    let converted = slot.word.compare_exchange(word, new);
    slot.note.store(if converted {
        note_of(version + 1, id)
    } else {
        note
    });
}

/// The note of a slot, once no other CPU is converting it; it may take too long.
#[inline(always)]
fn settled(slot: &Slot<Word>) -> u64 {
    let mut note = slot.note.load();
    for _ in 0..LOOKS {
        if meter_of(note) != CONVERTING {
            break;
        }
        note = slot.note.load();
    }
    note
}

/// The meter that a note names.
#[inline(always)]
const fn meter_of(note: u64) -> u32 {
    (whose(note) & 0xffff) as u32
}

/// A note but for its refusals: it stays the same for as long as the word has one meaning.
#[inline(always)]
const fn whose(note: u64) -> u64 {
    note >> Slot::<Word>::METER_SHIFT
}

/// The note of a meter that has refused nothing.
#[inline(always)]
const fn note_of(version: u64, meter: u32) -> u64 {
    version << Slot::<Word>::VERSION_SHIFT | (meter as u64) << Slot::<Word>::METER_SHIFT
}

/// The id of no meter: a CPU is converting the slot.
const CONVERTING: u32 = 0xffff;

#[cfg(test)]
mod tests;
