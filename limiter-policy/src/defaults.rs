//! What holds where neither file nor flags say otherwise.

use limiter_common::meter::Meter;

use crate::{
    spec::{SourcesSpec, Terms},
    units::{RateSpec, SizeSpec},
};

/// An IPv4 host; what a home line or a customer of a hoster gets of IPv6; and what their provider's neighbours share.
pub(crate) const SOURCES: SourcesSpec = SourcesSpec {
    ipv4_prefix: 32,
    ipv6_prefix: 64,
    wide_ipv4_prefix: 24,
    wide_ipv6_prefix: 48,
    capacity: 1 << 20,
    log_capacity: 1 << 16,
    ban_capacity: 1 << 16,
};

/// Far above what a healthy network sends, far below what hurts a host.
pub(crate) const NEEDS_RATE: &str = "1000/s";
/// See [`NEEDS_RATE`].
pub(crate) const NEEDS_BURST: &str = "2000";

/// The wider prefix of sources of `narrow` bits where none is given: never longer than they are.
pub(crate) fn wide(default: u8, narrow: u8) -> u8 {
    default.min(narrow)
}

/// The ceiling of each of the host's needs.
///
/// # Errors
///
/// Never: the defaults are in range, which a test shows.
pub(crate) fn needs() -> Result<Terms, String> {
    let rate: RateSpec = NEEDS_RATE.parse()?;
    let size: SizeSpec = NEEDS_BURST.parse()?;
    let meter =
        Meter::token_bucket(rate.rate, size.amount).ok_or("not a bucket that can be counted")?;
    Ok(Terms {
        meter,
        rate,
        size: Some(size),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_defaults_are_in_range() {
        super::needs().unwrap();
    }
}
