//! The verdict on one frame: the whole path from bytes to pass or drop.
//!
//! In this order: parse; refuse what is malformed or comes from nobody; let the host's own needs through under their
//! ceilings; ask the lists; ask every limit that matches, most specific first.

mod limits;
mod matching;
mod slot;
mod tables;
mod who;

pub use matching::{index as match_index, kind};
pub use slot::{Done, LogKey, Order, Wanted, attempt, convert, in_force, persist, work, work_log};
pub use tables::{Lists, Logs, Meters, NotInserted, SourceState, Tables};
pub use who::{listed_now, put_ban, resolve};

use crate::{
    address::Address,
    counters::{Counters, Odd, Reason, Table},
    frame::Frame,
    needs::Need,
    opaque::opaque,
    parse::{Content, NonIp, Packet, Parsed, UpperKind},
    policy::{Force, Policy},
    source::{Validity, validity},
};

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// On to the network stack.
    Pass,
    /// Dropped, or in monitor mode passed and counted as if.
    Drop(Reason),
}

/// The policy in force, for one packet.
#[derive(Clone, Copy)]
pub struct InForce<'a> {
    /// Which it is, and since which epoch.
    pub force: Force,
    /// What it says.
    pub policy: &'a Policy,
}

/// What is asked of the limits about one packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The source address.
    pub source: Address,
    /// Which limits match, by [`Policy::match_index`].
    pub matching: u32,
    /// Bytes of the frame.
    pub length: u32,
    /// Not 0: a header is cut short; the packet is dropped whatever the limits say, but it is charged.
    pub malformed: u32,
    /// Always zero.
    pub zero: u32,
}

impl Request {
    /// No request.
    pub const NONE: Self = Self {
        source: Address { high: 0, low: 0 },
        matching: 0,
        length: 0,
        malformed: 0,
        zero: 0,
    };
}

/// What is known of a frame before the limits are asked.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It passes.
    Pass,
    /// The limits are to be asked.
    Ask,
    /// It is dropped: its header lies.
    Malformed,
    /// It is dropped: too many tags.
    TooManyTags,
    /// It is dropped: its source cannot exist.
    InvalidSource,
    /// It is dropped: one of the host's own needs, beyond its ceiling.
    NeedCeiling,
}

/// Judges a parsed frame and counts it. The kernel takes the three steps one by one, each with a stack of its own.
pub fn judge<F: Frame, T: Tables>(
    frame: &F,
    parsed: &Parsed,
    tables: &T,
    rules: InForce<'_>,
    counters: &mut Counters,
) -> Verdict {
    let mut request = Request::NONE;
    let step = classify(frame, parsed, tables, rules, counters, &mut request);
    let reason = match step {
        Step::Ask => ask(&request, tables, rules, counters),
        other => other.reason(),
    };
    settle(reason, rules.force, counters)
}

impl Step {
    /// The reason for a drop, if that is decided.
    #[inline(always)]
    #[must_use]
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Pass | Self::Ask => None,
            Self::Malformed => Some(Reason::Malformed),
            Self::TooManyTags => Some(Reason::TooManyTags),
            Self::InvalidSource => Some(Reason::InvalidSource),
            Self::NeedCeiling => Some(Reason::NeedCeiling),
        }
    }
}

/// The first step: all but the limits.
#[inline(always)]
pub fn classify<F: Frame, T: Tables>(
    frame: &F,
    parsed: &Parsed,
    tables: &T,
    rules: InForce<'_>,
    counters: &mut Counters,
    request: &mut Request,
) -> Step {
    counters.seen += 1;
    count_tags(parsed.tags, counters);
    match parsed.content {
        Content::Malformed => Step::Malformed,
        Content::TooManyTags => Step::TooManyTags,
        Content::NonIp(kind) => non_ip(kind, tables, rules.policy, counters),
        Content::Ip => ip(frame, &parsed.packet, tables, rules, counters, request),
    }
}

/// The second step: the lists and the limits. The reason for which the packet is dropped, if it is.
#[inline(always)]
pub fn ask<T: Tables>(
    request: &Request,
    tables: &T,
    rules: InForce<'_>,
    counters: &mut Counters,
) -> Option<Reason> {
    let reason = limits::ask(request, tables, rules, counters);
    // A source pays for its malformed packets too: its address is as good as that of any other packet.
    if request.malformed != 0 {
        Some(Reason::Malformed)
    } else {
        reason
    }
}

/// The last step: the verdict, counted.
#[inline(always)]
pub fn settle(reason: Option<Reason>, force: Force, counters: &mut Counters) -> Verdict {
    let Some(reason) = reason else {
        counters.passed += 1;
        return Verdict::Pass;
    };
    let by_reason = if force.monitor() {
        counters.passed += 1;
        &mut counters.would_drop
    } else {
        &mut counters.dropped
    };
    // The index is checked, though a reason is always in range: the verifier cannot know what the second step returns.
    if let Some(count) = by_reason.get_mut(opaque(reason as u64) as usize) {
        *count += 1;
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

/// What becomes of a frame without IP.
#[inline(always)]
fn non_ip<T: Tables>(kind: NonIp, tables: &T, policy: &Policy, counters: &mut Counters) -> Step {
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
    Step::Pass
}

/// What becomes of an IP packet, as far as that is decided before the limits.
#[inline(always)]
fn ip<F: Frame, T: Tables>(
    frame: &F,
    packet: &Packet,
    tables: &T,
    rules: InForce<'_>,
    counters: &mut Counters,
    request: &mut Request,
) -> Step {
    let validity = validity(packet.version, packet.source);
    if let Some(need) = Need::of_packet(packet, validity) {
        return grant(need, tables, rules.policy, counters);
    }
    count_unknown(packet.upper.kind, counters);
    let malformed = packet.upper.kind == UpperKind::Malformed;
    if !matches!(validity, Validity::Ordinary) {
        return if malformed {
            Step::Malformed
        } else {
            Step::InvalidSource
        };
    }
    *request = Request {
        source: packet.source,
        matching: matching::index(packet, tables, rules),
        length: frame.length(),
        malformed: malformed.into(),
        zero: 0,
    };
    Step::Ask
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
fn grant<T: Tables>(need: Need, tables: &T, policy: &Policy, counters: &mut Counters) -> Step {
    let ceiling = &policy.need_ceilings[need as usize];
    let (taken, exhausted) = match tables.need(need) {
        Some(word) => slot::take(word, ceiling, tables.now(), 1),
        None => (false, false),
    };
    if exhausted {
        counters.table[Table::RetriesExhausted as usize] += 1;
    }
    if taken {
        counters.needs_passed[need as usize] += 1;
        Step::Pass
    } else {
        counters.needs_exceeded[need as usize] += 1;
        Step::NeedCeiling
    }
}
