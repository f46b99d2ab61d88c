//! What the daemon tells: the shapes of the JSON on its socket.

use std::collections::BTreeMap;

use limiter_common::{
    counters::{Counters, Odd, Reason, Table},
    needs::Need,
};
use serde::{Deserialize, Serialize};

use crate::{changes::answer::OverrideShown, kernel::pins::Detached};

/// Counts by name.
pub type ByName = BTreeMap<String, u64>;

/// `GET /v1/status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the daemon.
    pub version: String,
    /// Whether every interface is attached and the policy in force.
    pub ready: bool,
    /// Process id of the daemon.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// Each interface.
    pub interfaces: Vec<InterfaceStatus>,
    /// Each limit, over all interfaces.
    pub limits: Vec<LimitStatus>,
    /// The source table.
    pub sources: SourcesStatus,
    /// Files with prefixes.
    pub lists: Vec<ListStatus>,
    /// Overrides in force.
    pub overrides: Vec<OverrideShown>,
    /// Bans in force, by who made them.
    pub bans: BanCounts,
    /// Changes that could not be recorded.
    pub audit_lost: u64,
}

/// The policy in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// Counts the policies of this daemon.
    pub generation: u32,
    /// Where it came from.
    pub source: String,
    /// `enforce` or `monitor`.
    pub mode: String,
    /// Leading bits that tell IPv4 sources apart.
    pub ipv4_prefix: u8,
    /// Leading bits that tell IPv6 sources apart.
    pub ipv6_prefix: u8,
    /// Why the last reload failed; null if it did not. The policy before it is in force then.
    pub last_reload_failure: Option<String>,
}

/// What became of a list file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListStatus {
    /// The file.
    pub file: String,
    /// Prefixes in force.
    pub prefixes: u64,
    /// Lines that were skipped.
    pub skipped: u64,
    /// The first of them.
    pub examples: Vec<String>,
    /// Why its last content is not in force, but the one before; null where it is.
    pub kept: Option<String>,
}

/// How many bans are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanCounts {
    /// By operators.
    pub operator: u64,
    /// By limits, as of at most a few seconds ago.
    pub limit: u64,
    /// Prefixes of the policy's own lists.
    pub policy: u64,
}

/// An interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Name.
    pub name: String,
    /// Index.
    pub ifindex: u32,
    /// Whether our program is on it, as the kernel says now.
    pub attached: bool,
    /// `native` or `generic`.
    pub attach_mode: String,
    /// How it is held: always `link`.
    pub attach_type: String,
    /// Our program.
    pub program_id: u32,
    /// What it saw.
    pub packets: PacketCounts,
    /// The host's own needs, by kind.
    pub host_needs: BTreeMap<String, NeedCounts>,
    /// Odd frames, by kind, whatever became of them.
    pub odd: ByName,
}

/// Packets of an interface. At rest, `seen = passed + dropped`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PacketCounts {
    /// Counted at entry.
    pub seen: u64,
    /// Passed on to the network stack.
    pub passed: u64,
    /// Dropped.
    pub dropped: u64,
    /// Dropped, by reason; adds up to `dropped`.
    pub dropped_by_reason: ByName,
    /// Passed in monitor mode, by the reason for which they would have been dropped.
    pub would_drop_by_reason: ByName,
}

/// One kind of the host's own needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NeedCounts {
    /// Passed under the ceiling.
    pub passed: u64,
    /// Beyond the ceiling.
    pub exceeded: u64,
}

/// A limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Name.
    pub name: String,
    /// `enforce` or `monitor`.
    pub mode: String,
    /// Who shares a bucket.
    pub per: String,
    /// The service it protects; null for all packets.
    pub service: Option<String>,
    /// Which packets.
    pub packets: String,
    /// How it decides.
    pub algorithm: String,
    /// Rate, as it was written; of windows and logs, how many in what time.
    pub rate: String,
    /// Burst or queue, as it was written; null for windows and logs.
    pub burst: Option<String>,
    /// It matched, and the packet passed everything.
    pub passed: u64,
    /// It was the reason for a drop.
    pub dropped: u64,
    /// It would have been, in monitor mode.
    pub would_drop: u64,
}

/// The source table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourcesStatus {
    /// Entries it can hold.
    pub capacity: u32,
    /// Entries found by the last walk.
    pub tracked: u64,
    /// Seconds since that walk.
    pub tracked_age_s: u64,
    /// Whether that walk reached the end; if not, `tracked` is a lower bound.
    pub tracked_complete: bool,
    /// Memory that the kernel took for it.
    pub memory_bytes: u64,
    /// Work on it, by kind.
    pub events: ByName,
}

/// `GET /v1/top`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Top {
    /// Seconds since the walk that found them.
    pub age_s: u64,
    /// `enforce` or `monitor`, where what is said to be dropped is not.
    pub mode: String,
    /// The time over which rates were measured to rank by them; null where the ranking is by what was sent in all.
    pub interval_ms: Option<u64>,
    /// Most packets first.
    pub busiest: Vec<TopSource>,
    /// Most dropped packets first; none that lost nothing.
    pub most_dropped: Vec<TopSource>,
}

/// A source in [`Top`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopSource {
    /// The source: an address or prefix.
    pub source: String,
    /// Packets passed since it was entered.
    pub passed: u64,
    /// Packets dropped since, or that would have been.
    pub dropped: u64,
    /// Packets per second between the last two readings, where both saw it.
    pub packets_per_s: Option<u64>,
    /// Dropped packets, or that would have been, likewise.
    pub dropped_per_s: Option<u64>,
    /// Seconds since its last packet.
    pub last_seen_s: u64,
}

/// `GET /v1/policy`: the policy in force, a fact a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyLines {
    /// The lines.
    pub lines: Vec<String>,
}

/// `POST /v1/unload`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Unloaded {
    /// Interfaces on which enforcement has ended.
    pub interfaces: Vec<String>,
    /// What could not be detached, and why; absent where that is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Programs of limiter that are still attached, not by our pins; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

impl From<Detached> for Unloaded {
    fn from(Detached { interfaces, failed }: Detached) -> Self {
        Self {
            interfaces,
            failed,
            others: Vec::new(),
        }
    }
}

/// Any answer but 200.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// What went wrong.
    pub error: String,
}

impl From<&Counters> for PacketCounts {
    fn from(counters: &Counters) -> Self {
        Self {
            seen: counters.seen,
            passed: counters.passed,
            dropped: counters.dropped_total(),
            dropped_by_reason: by_name(Reason::ALL.map(Reason::name), &counters.dropped),
            would_drop_by_reason: by_name(Reason::ALL.map(Reason::name), &counters.would_drop),
        }
    }
}

/// The host's own needs, by kind.
#[must_use]
pub fn needs(counters: &Counters) -> BTreeMap<String, NeedCounts> {
    Need::ALL
        .into_iter()
        .zip(counters.needs_passed.iter().zip(&counters.needs_exceeded))
        .map(|(need, (passed, exceeded))| {
            (
                need.name().to_owned(),
                NeedCounts {
                    passed: *passed,
                    exceeded: *exceeded,
                },
            )
        })
        .collect()
}

/// Odd frames, by kind.
#[must_use]
pub fn odd(counters: &Counters) -> ByName {
    by_name(Odd::ALL.map(Odd::name), &counters.odd)
}

/// Work on the source table, by kind.
#[must_use]
pub fn table_events(counters: &Counters) -> ByName {
    by_name(Table::ALL.map(Table::name), &counters.table)
}

fn by_name<const N: usize>(names: [&str; N], counts: &[u64; N]) -> ByName {
    names
        .into_iter()
        .map(str::to_owned)
        .zip(counts.iter().copied())
        .collect()
}
