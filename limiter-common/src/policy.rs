//! The policy as the kernel holds it: `repr(C)` map values, compiled by user space.
//!
//! A packet's kind, ports and destination select one entry of the match table: the limits that apply, in the order in
//! which they are asked. The chain of classes that cover its source selects a row of meters: which parameters each
//! limit has for it, or none. Nothing is searched per packet.

use crate::{address::Address, meter::Meter, named::named_enum, needs::Need, source::Prefixes};

/// The most limits of a policy.
pub const MAX_LIMITS: usize = 64;
/// The most limits that may match one packet.
pub const MAX_MATCHING: u32 = 8;
/// Policies that the maps hold at once: the current one, the one before while it may come back, and the next.
pub const POLICIES: u32 = 3;
/// The most destination prefixes of a policy.
pub const MAX_DESTINATIONS: usize = 16;
/// Entries of the match table of one policy.
pub const MATCHES: u32 = 1 << 16;
/// The most chains of classes.
pub const MAX_CHAINS: u32 = 256;
/// Meters that the maps hold at once.
pub const METERS: u32 = 4096;
/// Words of a port table: a byte for each of 65,536 ports.
pub const PORT_WORDS: u32 = 8192;

/// All that a verdict depends on besides the packet, the state and the tables.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Counts the policies of one daemon, from 1.
    pub generation: u32,
    /// Not 0: some limit matches packets by port, so the port tables must be asked.
    pub by_port: u32,
    /// How many classes of destination ports, source ports and destinations the match table tells apart.
    pub destination_ports: u32,
    /// See `destination_ports`.
    pub source_ports: u32,
    /// How many of `destinations` are in use.
    pub destination_count: u32,
    /// Which of the class sets and list sets are this policy's; [`NO_SET`] for none.
    pub class_set: u32,
    /// See `class_set`.
    pub list_set: u32,
    /// Not 0: limits may ban, so that a newcomer must be looked up among the banned.
    pub bans: u32,
    /// Who shares a bucket.
    pub prefixes: Prefixes,
    /// Who shares a bucket of a limit on wider sources.
    pub wide: Prefixes,
    /// The limits, by number.
    pub limits: [Limit; MAX_LIMITS],
    /// Destinations told apart, longest prefix first.
    pub destinations: [Destination; MAX_DESTINATIONS],
    /// The ceilings of the host's own needs, by [`Need`].
    pub need_ceilings: [Meter; Need::COUNT],
}

/// No class set, or no list set.
pub const NO_SET: u32 = u32::MAX;

/// A limit as the kernel holds it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// How many tokens a packet costs; 0 where it costs its bytes.
    pub cost: u32,
    /// All ones where a packet costs the bytes of its frame, or else 0.
    pub length_mask: u32,
    /// Which state it takes from: a [`Place`] by number.
    pub place: u8,
    /// The slot there.
    pub slot: u8,
    /// 1: it drops nothing, and counts what it would.
    pub monitor: u8,
    /// 1: it bans.
    pub bans: u8,
    /// What becomes of a packet where the state cannot be kept: an [`OnError`] by number.
    pub on_error: u8,
    /// Not 0: each ban of a source soon after the last is twice as long.
    pub ban_doubles: u8,
    /// Not 0: it remembers admissions in a log, not a word.
    pub keeps_log: u8,
    /// Always zero.
    pub zero: u8,
    /// Refusals, since the meter was last full, that make a ban.
    pub ban_after: u32,
    /// Its counters, by number: the limit's identity over reloads.
    pub counter: u32,
    /// How long a ban lasts, in nanoseconds.
    pub ban_for: u64,
}

/// A destination told apart.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The prefix.
    pub prefix: Address,
    /// Its mask.
    pub mask: Address,
    /// Its class in the match table.
    pub class: u64,
}

/// A meter in the table of meters, perhaps for a time only.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeterEntry {
    /// The meter.
    pub meter: Meter,
    /// Until when it holds, in nanoseconds of the monotonic clock; 0 for as long as the policy.
    pub until: u64,
    /// The meter that holds after that, by number, or [`EXEMPT`].
    pub then: u64,
}

/// How many meters in turn may follow one that holds for a time: an override of a limit for one source, inside one for its
/// network, above one for all.
pub const MAX_SUCCESSORS: u32 = 3;

/// The meters of all limits for one chain of classes: ids in the table of meters, by limit.
pub type MeterRow = [u16; MAX_LIMITS];

/// The limit does not apply to this chain.
pub const EXEMPT: u16 = u16::MAX;

/// The limits that match a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matching {
    /// Their numbers in the order in which they are asked, one a byte, lowest byte first, [`NO_LIMIT`] after the last.
    pub limits: u64,
    /// Where they keep their state: [`Self::SOURCE`] and [`Self::WIDE`].
    pub needs: u64,
}

impl Matching {
    /// Some limit keeps its state with the source.
    pub const SOURCE: u64 = 1;
    /// Some limit keeps its state with the wider source.
    pub const WIDE: u64 = 2;
    /// No limit matches.
    pub const NONE: Self = Self {
        limits: u64::MAX,
        needs: 0,
    };
}

/// No limit.
pub const NO_LIMIT: u8 = u8::MAX;

named_enum! {
    /// Where a limit's state is.
    pub enum Place {
        /// With the source.
        Source = "source",
        /// With the wider source.
        Wide = "wide",
        /// Shared by everyone whom the limit matches.
        Shared = "shared",
    }
}

named_enum! {
    /// What becomes of a packet where a limit's state cannot be kept.
    pub enum OnError {
        /// It passes this limit: it is better to let a flood in than to lock anybody out.
        Pass = "pass",
        /// It is dropped: it is better to lock a newcomer out than to let an attacker through.
        Drop = "drop",
    }
}

named_enum! {
    /// Kinds of packets that limits tell apart. Every packet is of exactly one.
    pub enum Kind {
        /// A TCP connection attempt: SYN without ACK.
        TcpSyn = "tcp-syn",
        /// TCP of a connection: ACK without SYN.
        TcpEstablished = "tcp-established",
        /// Any other TCP: SYN with ACK, which answers the host's own attempt, or neither.
        TcpOther = "tcp-other",
        /// UDP and UDP-Lite.
        Udp = "udp",
        /// ICMP and ICMPv6.
        Icmp = "icmp",
        /// Other protocols with ports: SCTP, DCCP.
        Ports = "ports",
        /// Ports unknown.
        Portless = "portless",
    }
}

/// How many kinds the match table tells apart: each [`Kind`], whole or a fragment.
pub const KINDS: u32 = 2 * Kind::COUNT as u32;

/// Port tables of a policy.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortTable {
    /// TCP destination ports.
    TcpDestination,
    /// TCP source ports.
    TcpSource,
    /// UDP destination ports.
    UdpDestination,
    /// UDP source ports.
    UdpSource,
}

impl PortTable {
    /// How many there are.
    pub const COUNT: u32 = 4;
}

impl Policy {
    /// The entry of the match table for a packet of this kind, with these classes of ports and destination.
    #[inline(always)]
    #[must_use]
    pub const fn match_index(
        &self,
        kind: u32,
        destination_port: u32,
        source_port: u32,
        destination: u32,
    ) -> u32 {
        ((destination * self.source_ports + source_port) * self.destination_ports
            + destination_port)
            * KINDS
            + kind
    }
}

/// Which policy is in force: words that the daemon stores one at a time, each atomically.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flip<W = u64> {
    /// The policy in force, as a [`Force`].
    pub current: W,
    /// When `current` gives way to `before` by itself, in nanoseconds of the monotonic clock; 0 for never.
    pub revert_at: W,
    /// What comes back then, as a [`Force`].
    pub before: W,
}

/// A policy in force. One word: `epoch | monitor | policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Force(pub u64);

impl Force {
    /// Policy number `policy` of the maps in force as of `epoch`; with `monitor`, nothing is dropped.
    #[must_use]
    pub const fn new(epoch: u32, policy: u32, monitor: bool) -> Self {
        Self((epoch as u64) << 32 | (monitor as u64) << 8 | (policy & 0xff) as u64)
    }

    /// Counts the changes of policy and lists, from 1.
    #[inline(always)]
    #[must_use]
    pub const fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The policy's number in the maps.
    #[inline(always)]
    #[must_use]
    pub const fn policy(self) -> u32 {
        (self.0 & 0xff) as u32
    }

    /// Whether nothing is dropped.
    #[inline(always)]
    #[must_use]
    pub const fn monitor(self) -> bool {
        self.monitor_bit() != 0
    }

    /// 1 if nothing is dropped.
    #[inline(always)]
    #[must_use]
    pub const fn monitor_bit(self) -> u64 {
        self.0 >> 8 & 1
    }
}

const _: () = assert!(size_of::<Limit>() == 32);
const _: () = assert!(size_of::<MeterEntry>() == 40);
const _: () = assert!(size_of::<Destination>() == 40);
const _: () = assert!(
    size_of::<Policy>()
        == 32
            + 2 * size_of::<Prefixes>()
            + MAX_LIMITS * size_of::<Limit>()
            + MAX_DESTINATIONS * 40
            + Need::COUNT * size_of::<Meter>(),
    "a map value has no padding"
);
