//! Whose address a flood's frames bear.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Result, ensure};

use crate::plan::Plan;

/// The sources of a flood: which address the n-th frame bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    first: IpAddr,
    count: u64,
    prefix: u8,
    drawn: bool,
    random_hosts: bool,
    seed: u64,
}

impl Sources {
    /// One address.
    #[must_use]
    pub fn one(address: IpAddr) -> Self {
        Self::rotating(address, 1)
    }

    /// So many consecutive addresses, one after the other, round and round.
    #[must_use]
    pub fn rotating(first: IpAddr, count: u32) -> Self {
        Self {
            first,
            count: count.into(),
            prefix: if first.is_ipv4() { 32 } else { 128 },
            drawn: false,
            random_hosts: false,
            seed: 0x6c69_6d69_7465_7221,
        }
    }

    /// Each drawn anew from so many consecutive addresses, up to 2^32.
    #[must_use]
    pub fn drawn(first: IpAddr, count: u64) -> Self {
        Self {
            count,
            drawn: true,
            ..Self::rotating(first, 1)
        }
    }

    /// Any IPv4 address whatsoever, impossible sources included.
    #[must_use]
    pub fn any_ipv4() -> Self {
        Self::drawn(Ipv4Addr::UNSPECIFIED.into(), 1 << 32)
    }

    /// Any IPv4 address from 128.0.0.0 to 223.255.255.255: 1.6 thousand million possible sources.
    #[must_use]
    pub fn possible_ipv4() -> Self {
        Self::drawn(Ipv4Addr::new(128, 0, 0, 0).into(), 96 << 24)
    }

    /// Any address inside so many consecutive IPv6 /48 prefixes.
    #[must_use]
    pub fn in_ipv6_sites(first: Ipv6Addr, count: u32) -> Self {
        Self::drawn(first.into(), count.into())
            .prefixes(48)
            .random_hosts()
    }

    /// Counts prefixes of this length rather than addresses; what is behind the prefix stays as in the first address.
    #[must_use]
    pub fn prefixes(mut self, length: u8) -> Self {
        self.prefix = length;
        self
    }

    /// Makes what is behind the prefix random in every frame.
    #[must_use]
    pub fn random_hosts(mut self) -> Self {
        self.random_hosts = true;
        self
    }

    /// What random draws start from: the same seed gives the same sources.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The address that frame `n` bears, counted from 0.
    ///
    /// # Errors
    /// The addresses do not fit: none at all, more than 2^32, a prefix longer than an address, or a count that runs past the last address.
    pub fn address(&self, n: u64) -> Result<IpAddr> {
        let [high, low] = self.plan()?.source(n);
        let number = u128::from(high) << 64 | u128::from(low);
        Ok(match self.first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number)?)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
        })
    }

    /// The part of the plan that depends on the sources alone.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let Self {
            first,
            count,
            prefix,
            drawn,
            random_hosts,
            seed,
        } = *self;
        let (mut number, width, version) = match first {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32, 4),
            IpAddr::V6(address) => (address.to_bits(), 128, 6),
        };
        ensure!(
            (1..=1 << 32).contains(&count),
            "{count} sources: there must be 1 to 2^32"
        );
        ensure!(
            (1..=width).contains(&prefix),
            "a prefix of {prefix} bits: it must have 1 to {width}"
        );
        let shift = u32::from(width - prefix);
        let last = u128::MAX >> (128 - u32::from(width));
        let room = (last - number) >> shift;
        ensure!(
            u128::from(count - 1) <= room,
            "{count} sources from {first} on run past the last address"
        );
        let behind = if random_hosts { (1 << shift) - 1 } else { 0 };
        number &= !behind;
        Ok(Plan {
            first: halves(number),
            noise: halves(behind),
            count,
            seed,
            shift,
            random: drawn.into(),
            version,
            ..Plan::default()
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "each half is cut out on purpose"
)]
fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn addresses(sources: Sources, n: u64) -> Vec<IpAddr> {
        (0..n)
            .map(|n| sources.address(n).expect("valid sources"))
            .collect()
    }

    fn texts(sources: Sources, n: u64) -> Vec<String> {
        addresses(sources, n)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn rotating_sources_go_round() {
        let sources = Sources::rotating(Ipv4Addr::new(198, 51, 100, 254).into(), 3);
        assert_eq!(
            texts(sources, 4),
            [
                "198.51.100.254",
                "198.51.100.255",
                "198.51.101.0",
                "198.51.100.254"
            ]
        );
        let first: Ipv6Addr = "2001:db8:0:0:ffff:ffff:ffff:ffff".parse().expect("valid");
        assert_eq!(
            texts(Sources::rotating(first.into(), 2), 2)[1],
            "2001:db8:0:1::",
            "carries into the high half"
        );
    }

    #[test]
    fn prefixes_are_counted_where_they_end() {
        let first: Ipv6Addr = "2001:db8::7".parse().expect("valid");
        assert_eq!(
            texts(Sources::rotating(first.into(), 2).prefixes(64), 2),
            ["2001:db8::7", "2001:db8:0:1::7"]
        );
        assert_eq!(
            texts(Sources::rotating(first.into(), 2).prefixes(48), 2)[1],
            "2001:db8:1::7"
        );
        assert_eq!(
            texts(Sources::rotating(first.into(), 2).prefixes(100), 2)[1],
            "2001:db8::1000:7"
        );
    }

    #[test]
    fn random_sources_spread_evenly_over_their_range() {
        let low = Ipv4Addr::new(10, 0, 0, 0);
        let mut quarters = [0_u32; 4];
        for address in addresses(Sources::drawn(low.into(), 4 << 22), 40_000) {
            let IpAddr::V4(address) = address else {
                panic!("an IPv6 address")
            };
            quarters[usize::try_from((address.to_bits() - low.to_bits()) >> 22).expect("small")] +=
                1;
        }
        assert!(
            quarters.iter().all(|count| (9_600..10_400).contains(count)),
            "{quarters:?}"
        );
        assert!(
            addresses(Sources::any_ipv4(), 10_000)
                .into_iter()
                .collect::<HashSet<_>>()
                .len()
                > 9_990
        );
    }

    #[test]
    fn random_sites_hold_random_hosts() {
        let first: Ipv6Addr = "2001:db8:100::".parse().expect("valid");
        let (mut sites, mut hosts) = (HashSet::new(), HashSet::new());
        for address in addresses(Sources::in_ipv6_sites(first, 3), 1_000) {
            let IpAddr::V6(address) = address else {
                panic!("an IPv4 address")
            };
            sites.insert(address.to_bits() >> 80);
            hosts.insert(address.to_bits() << 48);
        }
        let expected = (0..3).map(|n| (first.to_bits() >> 80) + n).collect();
        assert_eq!(sites, expected);
        assert_eq!(hosts.len(), 1_000);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let last = IpAddr::from(Ipv4Addr::BROADCAST);
        for sources in [
            Sources::rotating(last, 2),
            Sources::rotating(last, 0),
            Sources::drawn(Ipv4Addr::UNSPECIFIED.into(), (1 << 32) + 1),
            Sources::one(last).prefixes(33),
        ] {
            assert!(sources.address(0).is_err(), "{sources:?}");
        }
        assert!(Sources::one(last).address(0).is_ok());
    }
}
