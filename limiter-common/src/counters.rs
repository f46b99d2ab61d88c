//! What is counted, per interface and CPU.

use crate::{named::named_enum, needs::Need, policy::MAX_LIMITS};

named_enum! {
    /// Why a packet was dropped. Exactly one reason each.
    pub enum Reason {
        /// Its source is over its limit.
        Limit = "limit",
        /// Its source is banned.
        Ban = "ban",
        /// A header is cut short or contradicts itself.
        Malformed = "malformed",
        /// More VLAN tags than are read.
        TooManyTags = "too_many_tags",
        /// A source that cannot exist.
        InvalidSource = "invalid_source",
        /// One of the host's own needs, beyond its ceiling.
        NeedCeiling = "need_ceiling",
        /// Its source is new, and the table took no new entry.
        TableFull = "table_full",
    }
}

named_enum! {
    /// Frames worth counting whatever their verdict.
    pub enum Odd {
        /// One VLAN tag.
        OneTag = "one_tag",
        /// Two VLAN tags.
        TwoTags = "two_tags",
        /// 802.3 length fields other than spanning tree: passed.
        Llc = "llc",
        /// Precision time: passed.
        Ptp = "ptp",
        /// MACsec: passed.
        Macsec = "macsec",
        /// PPPoE: passed; the IP inside is not limited.
        Pppoe = "pppoe_unparsed",
        /// Any other EtherType: passed.
        OtherEtherType = "other_ether_type",
        /// Fragments other than the first: limited by source, ports unknown.
        LaterFragment = "later_fragment",
        /// First fragments too short for their headers: limited by source, ports unknown.
        CutFirstFragment = "cut_first_fragment",
        /// Extension chains beyond the bound: limited by source, ports unknown.
        ExtChainLimit = "ext_chain_limit",
        /// Protocols without ports, or that are not read: limited by source.
        UnknownProtocol = "unknown_protocol",
    }
}

named_enum! {
    /// Work on the source table.
    pub enum Table {
        /// Sources entered.
        Inserted = "inserted",
        /// Sources that another CPU entered first; its entry was used.
        InsertRaced = "insert_raced",
        /// Sources that the table would not take.
        InsertFailed = "insert_failed",
        /// Packets whose bucket changed under each try, so that the cost was added outright.
        RetriesExhausted = "retries_exhausted",
        /// Limits that could not be asked and let the packet pass, as they say they do.
        LimitSkipped = "limit_skipped",
        /// Bans that found no room.
        BanFailed = "ban_failed",
    }
}

/// Counters of one interface on one CPU. At rest, `seen = passed + sum(dropped)`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Frames that reached the program, counted at entry.
    pub seen: u64,
    /// Frames that went on to the network stack.
    pub passed: u64,
    /// Frames dropped, by [`Reason`].
    pub dropped: [u64; Reason::COUNT],
    /// Frames passed in monitor mode that would have been dropped, by [`Reason`].
    pub would_drop: [u64; Reason::COUNT],
    /// The host's own needs that passed, by [`Need`].
    pub needs_passed: [u64; Need::COUNT],
    /// The host's own needs beyond their ceiling, by [`Need`].
    pub needs_exceeded: [u64; Need::COUNT],
    /// Odd frames, by [`Odd`].
    pub odd: [u64; Odd::COUNT],
    /// Work on the source table, by [`Table`].
    pub table: [u64; Table::COUNT],
    /// What became of the packets that a limit matched, by the limit's number.
    pub limits: [LimitCounters; MAX_LIMITS],
}

/// Counters of one limit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounters {
    /// It matched, and the packet passed everything.
    pub passed: u64,
    /// It was the reason for a drop.
    pub dropped: u64,
    /// It would have been, were it not in monitor mode.
    pub would_drop: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            seen: 0,
            passed: 0,
            dropped: [0; Reason::COUNT],
            would_drop: [0; Reason::COUNT],
            needs_passed: [0; Need::COUNT],
            needs_exceeded: [0; Need::COUNT],
            odd: [0; Odd::COUNT],
            table: [0; Table::COUNT],
            limits: [LimitCounters::default(); MAX_LIMITS],
        }
    }
}

impl Counters {
    /// Frames dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Adds what another CPU or interface counted.
    pub fn add(&mut self, other: &Self) {
        let Self {
            seen,
            passed,
            dropped,
            would_drop,
            needs_passed,
            needs_exceeded,
            odd,
            table,
            limits,
        } = other;
        self.seen += seen;
        self.passed += passed;
        add_each(&mut self.dropped, dropped);
        add_each(&mut self.would_drop, would_drop);
        for (mine, theirs) in self.limits.iter_mut().zip(limits) {
            let LimitCounters {
                passed,
                dropped,
                would_drop,
            } = theirs;
            mine.passed += passed;
            mine.dropped += dropped;
            mine.would_drop += would_drop;
        }
        add_each(&mut self.needs_passed, needs_passed);
        add_each(&mut self.needs_exceeded, needs_exceeded);
        add_each(&mut self.odd, odd);
        add_each(&mut self.table, table);
    }
}

fn add_each<const N: usize>(to: &mut [u64; N], from: &[u64; N]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

const _: () = assert!(
    size_of::<Counters>()
        == 8 * (2
            + 2 * Reason::COUNT
            + 2 * Need::COUNT
            + Odd::COUNT
            + Table::COUNT
            + 3 * MAX_LIMITS),
    "a map value has no padding"
);
