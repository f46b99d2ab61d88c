//! Policies to judge by.

use limiter_common::{
    needs::Need,
    policy::{Limit, Policy, Unit},
    source::Prefixes,
    token_bucket::{Rate, TokenBucket},
};

const SECOND: u64 = 1_000_000_000;

/// So many tokens a second.
#[must_use]
pub fn per_second(tokens: u64) -> Rate {
    Rate {
        tokens,
        period: SECOND,
    }
}

/// So many tokens an hour.
#[must_use]
pub fn per_hour(tokens: u64) -> Rate {
    Rate {
        tokens,
        period: 3_600 * SECOND,
    }
}

/// A policy whose limit counts packets: prefixes and ceilings as by default.
#[must_use]
pub fn packets(rate: Rate, burst: u64) -> Policy {
    with_limit(rate, burst, Unit::Packets)
}

/// A policy whose limit counts bytes: prefixes and ceilings as by default.
#[must_use]
pub fn bytes(rate: Rate, burst: u64) -> Policy {
    with_limit(rate, burst, Unit::Bytes)
}

/// The same policy, dropping nothing.
#[must_use]
pub fn monitored(policy: Policy) -> Policy {
    Policy {
        monitor: 1,
        ..policy
    }
}

/// The same policy with other prefix lengths.
#[must_use]
pub fn with_prefixes(policy: Policy, ipv4: u8, ipv6: u8) -> Policy {
    Policy {
        prefixes: Prefixes::new(ipv4, ipv6).expect("valid prefix lengths"),
        ..policy
    }
}

/// The ceiling of each of the host's own needs by default.
pub const NEED_RATE: u64 = 1_000;
/// How much of it can be saved up.
pub const NEED_BURST: u64 = 2_000;

fn with_limit(rate: Rate, burst: u64, unit: Unit) -> Policy {
    Policy {
        generation: 1,
        monitor: 0,
        prefixes: Prefixes::new(32, 64).expect("valid prefix lengths"),
        limit: Limit {
            bucket: bucket(rate, burst),
            unit: unit as u64,
        },
        need_ceilings: [bucket(per_second(NEED_RATE), NEED_BURST); Need::COUNT],
    }
}

fn bucket(rate: Rate, burst: u64) -> TokenBucket {
    TokenBucket::new(rate, burst).expect("a rate and burst within range")
}
