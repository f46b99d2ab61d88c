//! The verdict on one frame: the whole path from bytes to pass or drop.
//!
//! In this order: parse; refuse what is malformed or comes from nobody; let the host's own needs through under their
//! ceilings; charge the source.

use crate::{
    counters::{Counters, Odd, Reason, Table},
    frame::Frame,
    needs::Need,
    opaque::forget,
    parse::{Content, NonIp, Packet, Parsed, UpperKind},
    policy::Policy,
    source::{SourceKey, Validity, validity},
    state::SourceState,
    token_bucket::TokenBucket,
    word::Word,
};

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// On to the network stack.
    Pass,
    /// Dropped, or in monitor mode passed and counted as if.
    Drop(Reason),
}

/// Why a source could not be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInserted {
    /// Another CPU was first.
    Exists,
    /// The table is out of entries or memory.
    Failed,
}

/// The state that verdicts depend on and change: BPF maps in the kernel, plain memory elsewhere.
pub trait Tables {
    /// Nanoseconds of the monotonic clock.
    fn now(&self) -> u64;

    /// The live state of a source.
    fn source(&self, key: &SourceKey) -> Option<&SourceState<Word>>;

    /// Enters a source that is not there; never replaces one that is.
    ///
    /// # Errors
    ///
    /// Where the source was not entered, why.
    fn insert(&self, key: &SourceKey, state: &SourceState) -> Result<(), NotInserted>;

    /// The bucket of one of the host's own needs, on the interface at hand.
    fn need(&self, need: Need) -> Option<&Word>;

    /// Told of a rare event, with how many there have been on this CPU.
    fn rare(&self, event: Table, count: u64);
}

/// How often a changed bucket is tried again before the cost is taken by adding it outright.
const RETRIES: u32 = 4;

/// The slot of the one limit in [`SourceState::buckets`].
pub const SLOT: usize = 0;

/// Judges a parsed frame and counts it.
#[inline(always)]
pub fn judge<F: Frame, T: Tables>(
    frame: &F,
    parsed: &Parsed,
    tables: &T,
    policy: &Policy,
    counters: &mut Counters,
) -> Verdict {
    counters.seen += 1;
    count_tags(parsed.tags, counters);
    let dropped = match parsed.content {
        Content::Malformed => Some(Reason::Malformed),
        Content::TooManyTags => Some(Reason::TooManyTags),
        Content::NonIp(kind) => non_ip(kind, tables, policy, counters),
        Content::Ip => ip(frame, &parsed.packet, tables, policy, counters),
    };
    let Some(reason) = dropped else {
        counters.passed += 1;
        return Verdict::Pass;
    };
    if policy.monitor != 0 {
        counters.would_drop[reason as usize] += 1;
        counters.passed += 1;
    } else {
        counters.dropped[reason as usize] += 1;
    }
    Verdict::Drop(reason)
}

#[inline(always)]
fn count_tags(tags: u32, counters: &mut Counters) {
    match tags {
        0 => {}
        1 => counters.odd[Odd::OneTag as usize] += 1,
        _ => counters.odd[Odd::TwoTags as usize] += 1,
    }
}

/// The reason for which a frame without IP is dropped, if it is.
#[inline(always)]
fn non_ip<T: Tables>(
    kind: NonIp,
    tables: &T,
    policy: &Policy,
    counters: &mut Counters,
) -> Option<Reason> {
    if let Some(need) = Need::of_frame(kind) {
        return grant(need, tables, policy, counters);
    }
    let odd = match kind {
        NonIp::Llc => Odd::Llc,
        NonIp::Ptp => Odd::Ptp,
        NonIp::Macsec => Odd::Macsec,
        NonIp::Pppoe => Odd::Pppoe,
        _ => Odd::OtherEtherType,
    };
    counters.odd[odd as usize] += 1;
    None
}

/// The reason for which an IP packet is dropped, if it is.
#[inline(always)]
fn ip<F: Frame, T: Tables>(
    frame: &F,
    packet: &Packet,
    tables: &T,
    policy: &Policy,
    counters: &mut Counters,
) -> Option<Reason> {
    let validity = validity(packet.version, packet.source);
    if let Some(need) = Need::of_packet(packet, validity) {
        return grant(need, tables, policy, counters);
    }
    count_unknown(packet.upper.kind, counters);
    let malformed = forget::<1>((packet.upper.kind == UpperKind::Malformed).into()) != 0;
    if !matches!(validity, Validity::Ordinary) {
        return Some(if malformed {
            Reason::Malformed
        } else {
            Reason::InvalidSource
        });
    }
    let (key, _) = SourceKey::of(packet.source, &policy.prefixes);
    let cost = if policy.limit.counts_bytes() {
        u64::from(frame.length())
    } else {
        1
    };
    let outcome = charge(&key, cost, malformed, tables, policy, counters);
    // A source pays for its malformed packets too: its address is as good as that of any other packet.
    if malformed {
        return Some(Reason::Malformed);
    }
    match outcome {
        None => counters.limit.passed += 1,
        Some(Reason::Limit) if policy.monitor != 0 => counters.limit.would_drop += 1,
        Some(Reason::Limit) => counters.limit.dropped += 1,
        // The limit could not be asked; the reason has a counter of its own.
        Some(_) => {}
    }
    outcome
}

#[inline(always)]
fn count_unknown(kind: UpperKind, counters: &mut Counters) {
    let odd = match kind {
        UpperKind::Ports | UpperKind::Icmp | UpperKind::Malformed => return,
        UpperKind::LaterFragment => Odd::LaterFragment,
        UpperKind::CutFirstFragment => Odd::CutFirstFragment,
        UpperKind::ChainTooLong => Odd::ExtChainLimit,
        UpperKind::OtherProtocol => Odd::UnknownProtocol,
    };
    counters.odd[odd as usize] += 1;
}

/// Lets one of the host's own needs through, up to its ceiling.
#[inline(always)]
fn grant<T: Tables>(
    need: Need,
    tables: &T,
    policy: &Policy,
    counters: &mut Counters,
) -> Option<Reason> {
    let ceiling = &policy.need_ceilings[need as usize];
    let taken = match tables.need(need) {
        Some(word) => take(word, ceiling, tables.now(), 1, tables, counters),
        None => false,
    };
    if taken {
        counters.needs_passed[need as usize] += 1;
        None
    } else {
        counters.needs_exceeded[need as usize] += 1;
        Some(Reason::NeedCeiling)
    }
}

/// Takes `cost` tokens from the bucket of `key`: the reason why not, or `None`.
#[inline(always)]
fn charge<T: Tables>(
    key: &SourceKey,
    cost: u64,
    malformed: bool,
    tables: &T,
    policy: &Policy,
    counters: &mut Counters,
) -> Option<Reason> {
    let now = tables.now();
    let bucket = &policy.limit.bucket;
    let state = match tables.source(key) {
        Some(state) => state,
        // A newcomer is judged here, before the table takes it.
        None => match enter(key, cost, malformed, now, tables, bucket, counters) {
            Entered::Charged(reason) => return reason,
            Entered::ByAnother => match tables.source(key) {
                Some(state) => state,
                None => return Some(Reason::TableFull),
            },
        },
    };
    state.last_seen.store(now);
    let taken = take(&state.buckets[SLOT], bucket, now, cost, tables, counters);
    if taken && !malformed {
        state.passed.add(1);
    } else {
        state.dropped.add(1);
    }
    if taken { None } else { Some(Reason::Limit) }
}

enum Entered {
    /// The source is in the table and this packet is paid for, or not.
    Charged(Option<Reason>),
    /// Another CPU entered it meanwhile.
    ByAnother,
}

/// Enters a source whose bucket is full but for this packet.
#[inline(always)]
fn enter<T: Tables>(
    key: &SourceKey,
    cost: u64,
    malformed: bool,
    now: u64,
    tables: &T,
    bucket: &TokenBucket,
    counters: &mut Counters,
) -> Entered {
    let taken = bucket.take(0, now, cost);
    let passed = taken.is_some() && !malformed;
    let mut state = SourceState {
        last_seen: now,
        passed: u64::from(passed),
        dropped: u64::from(!passed),
        ..Default::default()
    };
    state.buckets[SLOT] = taken.unwrap_or(0);
    match tables.insert(key, &state) {
        Ok(()) => {
            counters.table[Table::Inserted as usize] += 1;
            Entered::Charged(if taken.is_some() {
                None
            } else {
                Some(Reason::Limit)
            })
        }
        Err(NotInserted::Exists) => {
            counters.table[Table::InsertRaced as usize] += 1;
            Entered::ByAnother
        }
        Err(NotInserted::Failed) => {
            counters.table[Table::InsertFailed as usize] += 1;
            tables.rare(
                Table::InsertFailed,
                counters.table[Table::InsertFailed as usize],
            );
            Entered::Charged(Some(Reason::TableFull))
        }
    }
}

/// Takes from a bucket; whether the cost was there. A refusal writes nothing, but under contention.
#[inline(always)]
fn take<T: Tables>(
    word: &Word,
    bucket: &TokenBucket,
    now: u64,
    cost: u64,
    tables: &T,
    counters: &mut Counters,
) -> bool {
    for _ in 0..RETRIES {
        let old = word.load();
        let Some(new) = bucket.take(old, now, cost) else {
            return false;
        };
        if word.compare_exchange(old, new) {
            return true;
        }
    }
    counters.table[Table::RetriesExhausted as usize] += 1;
    tables.rare(
        Table::RetriesExhausted,
        counters.table[Table::RetriesExhausted as usize],
    );
    bucket.take_by_adding(word, now, cost)
}
