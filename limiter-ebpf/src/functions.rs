//! Parts of a verdict in global functions.
//!
//! The verifier checks a global function once, on its own, and forgets what it knows of the caller's world; each has a
//! stack frame of its own, too (`Documentation/bpf/verifier.rst`; 5.6). Without them, each way a packet can take would be
//! followed through the arithmetic of every limit. A policy goes in by the word that put it in force, so that one packet is
//! judged by one policy.

use limiter_common::{
    address::Address,
    judge::{
        self, Done, InForce, LogKey, Order, Request, attempt, convert, listed_now, persist,
        put_ban, resolve, work_log,
    },
    meter::{MeterLog, oldest},
    opaque::opaque,
    policy::Force,
    source::SourceKey,
    standing::Listed,
    state::Slot,
    word::Word,
};

use crate::{maps, tables::KernelTables};

/// A copy on the stack of the function at hand: before 6.3 a map's key may not lie in memory that a global function was
/// given (`bpf_map_lookup_elem`: "R2 type=mem expected=fp").
#[inline(always)]
fn copied(key: &SourceKey) -> SourceKey {
    let SourceKey {
        address: Address { high, low },
        length,
    } = *key;
    SourceKey {
        address: Address {
            high: opaque(high),
            low: opaque(low),
        },
        length: opaque(length),
    }
}

/// [`attempt`] on a slot: an [`Order`] in, a [`Done`] out.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn limit_word(slot: *const Slot, order: u64, now: u64, cost: u64) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole slot, or null; a word has the layout of a u64.
    let slot: Option<&Slot<Word>> = unsafe { slot.cast::<Slot<Word>>().as_ref() };
    match slot {
        Some(slot) => attempt(slot, Order(order), now, cost, &KernelTables).0,
        None => Done::BROKEN.0,
    }
}

/// [`persist`] on a slot: likewise.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn limit_word_again(
    slot: *const Slot,
    order: u64,
    now: u64,
    cost: u64,
) -> u64 {
    persist(
        Order(order),
        |order| Done(limit_word(slot, order.0, now, cost)),
        || {
            convert_word(slot, order, now);
        },
    )
    .0
}

/// [`convert`] on a slot. A global function returns something.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn convert_word(slot: *const Slot, order: u64, now: u64) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole slot, or null; a word has the layout of a u64.
    let slot: Option<&Slot<Word>> = unsafe { slot.cast::<Slot<Word>>().as_ref() };
    if let Some(slot) = slot {
        convert(slot, Order(order), now, &KernelTables);
    }
    0
}

/// [`work_log`] on the log with a key.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn limit_log(key: *const LogKey, order: u64, now: u64) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole key, or null.
    match unsafe { key.as_ref() } {
        Some(LogKey { source, limit }) => {
            let key = LogKey {
                source: copied(source),
                limit: opaque(*limit),
            };
            work_log(&key, Order(order), now, &KernelTables).0
        }
        None => Done::BROKEN.0,
    }
}

/// [`oldest`] in a log.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn oldest_in_log(log: *const MeterLog, size: u64) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole log, or null; a word has the layout of a u64.
    let log: Option<&MeterLog<Word>> = unsafe { log.cast::<MeterLog<Word>>().as_ref() };
    log.map_or(0, |log| oldest(log, size))
}

#[inline(always)]
fn in_force(force: u64) -> Option<InForce<'static>> {
    let force = Force(force);
    let policy = maps::policy(force.policy())?;
    Some(InForce { force, policy })
}

/// [`resolve`]: a standing by its bits.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn resolve_source(
    address: *const Address,
    key: *const SourceKey,
    force: u64,
) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole address, or null.
    let address = unsafe { address.as_ref() };
    // SAFETY: likewise of a key.
    let key = unsafe { key.as_ref() };
    match (address, key, in_force(force)) {
        (Some(address), Some(key), Some(rules)) => {
            resolve(address, &copied(key), rules, &KernelTables).0
        }
        _ => 0,
    }
}

/// Answers of [`source_listed_now`].
pub(crate) const ALLOWED: u64 = Listed::Allowed as u64;
/// See [`ALLOWED`].
pub(crate) const BANNED: u64 = Listed::Banned as u64;

/// [`listed_now`]: by number.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn source_listed_now(
    address: *const Address,
    key: *const SourceKey,
    now: u64,
    force: u64,
) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole address, or null.
    let address = unsafe { address.as_ref() };
    // SAFETY: likewise of a key.
    let key = unsafe { key.as_ref() };
    match (address, key, in_force(force)) {
        (Some(address), Some(key), Some(rules)) => {
            listed_now(address, &copied(key), now, rules, &KernelTables) as u64
        }
        _ => 0,
    }
}

/// [`put_ban`]: 1, or 0 if there was no room.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn ban_source(
    key: *const SourceKey,
    limit: u64,
    now: u64,
    force: u64,
) -> u64 {
    // SAFETY: the verifier has checked that the pointer is that of a whole key, or null.
    let (Some(key), Some(rules)) = (unsafe { key.as_ref() }, in_force(force)) else {
        return 0;
    };
    match rules.policy.limits.get(limit as usize) {
        Some(limit) => put_ban(&copied(key), limit, now, &KernelTables).into(),
        None => 0,
    }
}

/// The second step of a verdict, [`judge::ask`]: the reason for which the packet is dropped, by number, or [`NO_REASON`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn ask(request: *const Request, force: u64) -> u32 {
    // SAFETY: the verifier has checked that the pointer is that of a whole request, or null.
    let request = unsafe { request.as_ref() };
    let (Some(request), Some(rules), Some(counters)) = (request, in_force(force), maps::counters())
    else {
        return NO_REASON;
    };
    match judge::ask(request, &KernelTables, rules, counters) {
        Some(reason) => reason as u32,
        None => NO_REASON,
    }
}

const NO_REASON: u32 = u32::MAX;
