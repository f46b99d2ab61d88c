//! The policy as the kernel holds it: one `repr(C)` map value, computed by user space.

use crate::{needs::Need, source::Prefixes, token_bucket::TokenBucket};

/// All that a verdict depends on besides the packet and the buckets.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Counts the policies of one daemon, from 1.
    pub generation: u32,
    /// Not 0: nothing is dropped; what would be is counted.
    pub monitor: u32,
    /// Who shares a bucket.
    pub prefixes: Prefixes,
    /// The limit of every source.
    pub limit: Limit,
    /// The ceilings of the host's own needs, by [`Need`].
    pub need_ceilings: [TokenBucket; Need::COUNT],
}

/// A limit as the kernel holds it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its bucket.
    pub bucket: TokenBucket,
    /// What one token pays for: a [`Unit`] by number.
    pub unit: u64,
}

/// What one token pays for.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A packet.
    Packets,
    /// A byte of the frame as received: Ethernet header and tags included, frame check sequence not.
    Bytes,
}

impl Limit {
    /// Whether tokens pay for bytes.
    #[inline(always)]
    #[must_use]
    pub const fn counts_bytes(&self) -> bool {
        self.unit == Unit::Bytes as u64
    }
}
