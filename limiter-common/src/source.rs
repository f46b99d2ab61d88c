//! Who shares a bucket: the key of a source, and the sources that cannot exist.

use core::fmt;

use crate::{address::Address, parse::Version};

/// The key of a bucket: an address prefix. Every byte is written, so that equal sources have equal keys.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceKey {
    /// The prefix, bits beyond its length zero.
    pub address: Address,
    /// Its length in the 128-bit form of [`Address`]: an IPv4 /32 is 128.
    pub length: u64,
}

const _: () = assert!(size_of::<SourceKey>() == 24, "a key has no padding");

/// How many leading bits of an address tell sources apart.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    ipv4_mask: Address,
    ipv6_mask: Address,
    ipv4_length: u64,
    ipv6_length: u64,
}

/// Bits in front of an IPv4 address in the 128-bit form.
const MAPPED_BITS: u32 = 96;

impl Prefixes {
    /// IPv4 sources by their first `ipv4` bits, IPv6 sources by their first `ipv6`; `None` unless 1 to 32 and 1 to 128.
    #[must_use]
    pub const fn new(ipv4: u8, ipv6: u8) -> Option<Self> {
        if ipv4 < 1 || ipv4 > 32 || ipv6 < 1 || ipv6 > 128 {
            return None;
        }
        let ipv4_length = MAPPED_BITS as u64 + ipv4 as u64;
        Some(Self {
            ipv4_mask: Address::mask(MAPPED_BITS + ipv4 as u32),
            ipv6_mask: Address::mask(ipv6 as u32),
            ipv4_length,
            ipv6_length: ipv6 as u64,
        })
    }

    /// The configured lengths, IPv4 and IPv6.
    #[must_use]
    pub const fn lengths(&self) -> (u64, u64) {
        (self.ipv4_length - MAPPED_BITS as u64, self.ipv6_length)
    }
}

/// The rule that made a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// The configured IPv4 prefix.
    Ipv4,
    /// The configured IPv6 prefix.
    Ipv6,
    /// Link-local `fe80::/10` (RFC 4291 section 2.5.6): one link, so the whole address.
    LinkLocal,
    /// NAT64 `64:ff9b::/96` (RFC 6052 section 2.1): an IPv4 host each, so the whole address.
    Nat64,
    /// 6to4 `2002::/16` (RFC 3056 section 2): an IPv4 host each, which owns a /48.
    SixToFour,
}

const LINK_LOCAL_MASK: u64 = 0xffc0 << 48;
const LINK_LOCAL: u64 = 0xfe80 << 48;
const NAT64: u64 = 0x0064_ff9b << 32;
const SIX_TO_FOUR: u64 = 0x2002;
const SIX_TO_FOUR_LENGTH: u64 = 48;
const SIX_TO_FOUR_MASK: Address = Address::mask(48);

impl SourceKey {
    /// The key of `address`, and the rule that made it.
    #[inline(always)]
    #[must_use]
    pub const fn of(address: Address, prefixes: &Prefixes) -> (Self, KeyRule) {
        if address.is_mapped() {
            let address = address.masked(prefixes.ipv4_mask);
            return (
                Self {
                    address,
                    length: prefixes.ipv4_length,
                },
                KeyRule::Ipv4,
            );
        }
        if address.high & LINK_LOCAL_MASK == LINK_LOCAL {
            return (
                Self {
                    address,
                    length: 128,
                },
                KeyRule::LinkLocal,
            );
        }
        if address.high == NAT64 && address.low >> 32 == 0 {
            return (
                Self {
                    address,
                    length: 128,
                },
                KeyRule::Nat64,
            );
        }
        if address.high >> 48 == SIX_TO_FOUR {
            let address = address.masked(SIX_TO_FOUR_MASK);
            return (
                Self {
                    address,
                    length: SIX_TO_FOUR_LENGTH,
                },
                KeyRule::SixToFour,
            );
        }
        let address = address.masked(prefixes.ipv6_mask);
        (
            Self {
                address,
                length: prefixes.ipv6_length,
            },
            KeyRule::Ipv6,
        )
    }
}

impl SourceKey {
    /// How far a chain of classes is shifted in the length.
    const CHAIN_SHIFT: u32 = 32;

    /// The key of those addresses of the source that a chain of classes covers.
    #[inline(always)]
    #[must_use]
    pub const fn of_chain(self, chain: u32) -> Self {
        Self {
            address: self.address,
            length: self.length | (chain as u64) << Self::CHAIN_SHIFT,
        }
    }

    /// The chain of classes that is part of the key; 0 for none.
    #[must_use]
    pub const fn chain(&self) -> u64 {
        self.length >> Self::CHAIN_SHIFT
    }

    /// A key for what everyone shares: no source has a length of 0.
    pub const EVERYONE: Self = Self {
        address: Address { high: 0, low: 0 },
        length: 0,
    };
}

impl fmt::Display for SourceKey {
    /// `198.51.100.7` or `2001:db8:a::/64`: the length is left out where it covers one address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, length } = *self;
        let length = length & u64::from(u32::MAX);
        match (
            address.is_mapped() && length >= u64::from(MAPPED_BITS),
            length,
        ) {
            (_, 128) => write!(f, "{address}"),
            (true, length) => write!(f, "{address}/{}", length - u64::from(MAPPED_BITS)),
            (false, length) => write!(f, "{address}/{length}"),
        }
    }
}

/// Whether a source address can belong to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// A sender like any other.
    Ordinary,
    /// `0.0.0.0` or `::`: a host without an address yet.
    Unspecified,
    /// Nobody: multicast, broadcast, loopback on the wire, "this network" `0.0.0.0/8` (RFC 1122 section 3.2.1.3),
    /// IPv4-mapped IPv6 (RFC 4291 section 2.7, RFC 6890).
    Impossible,
}

/// Judges the source address of a packet of family `version`.
#[inline(always)]
#[must_use]
pub const fn validity(version: Version, source: Address) -> Validity {
    match version {
        Version::V4 => {
            let bits = source.v4_bits();
            match bits >> 24 {
                0 if bits == 0 => Validity::Unspecified,
                0 | 127 | 224..=239 => Validity::Impossible,
                _ if bits == u32::MAX => Validity::Impossible,
                _ => Validity::Ordinary,
            }
        }
        Version::V6 => {
            if source.high >> 56 == 0xff || source.is_mapped() {
                return Validity::Impossible;
            }
            match (source.high, source.low) {
                (0, 0) => Validity::Unspecified,
                (0, 1) => Validity::Impossible,
                _ => Validity::Ordinary,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;
    use std::string::ToString;

    use super::*;

    extern crate std;

    fn address(text: &str) -> Address {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn key(text: &str, ipv4: u8, ipv6: u8) -> std::string::String {
        SourceKey::of(address(text), &Prefixes::new(ipv4, ipv6).unwrap())
            .0
            .to_string()
    }

    #[test]
    fn who_shares_a_bucket() {
        assert_eq!(key("198.51.100.7", 32, 64), "198.51.100.7");
        assert_eq!(key("2001:db8:a:1::dead:beef", 32, 64), "2001:db8:a:1::/64");
        assert_eq!(
            key("fe80::1:2", 32, 64),
            "fe80::1:2",
            "link-local by full address"
        );
        assert_eq!(key("febf::1", 32, 64), "febf::1", "fe80::/10 ends at febf");
        assert_eq!(key("fec0::1", 32, 64), "fec0::/64");
        assert_eq!(
            key("64:ff9b::c633:6407", 32, 64),
            "64:ff9b::c633:6407",
            "NAT64 by full address"
        );
        assert_eq!(
            key("64:ff9b:1::c633:6407", 32, 64),
            "64:ff9b:1::/64",
            "the local-use NAT64 prefix is not it"
        );
        assert_eq!(key("64:ff9b::1:c633:6407", 32, 64), "64:ff9b::/64");
        assert_eq!(
            key("2002:c633:6407:9::1", 32, 64),
            "2002:c633:6407::/48",
            "6to4 by /48"
        );
    }

    #[test]
    fn prefix_lengths_are_exact_at_their_ends() {
        assert_eq!(key("255.255.255.254", 1, 64), "128.0.0.0/1");
        assert_eq!(key("203.0.113.77", 24, 64), "203.0.113.0/24");
        assert_eq!(key("8001::1", 32, 1), "8000::/1");
        assert_eq!(key("2001:db8::1", 32, 128), "2001:db8::1");
        assert_eq!(key("2001:db8::1", 32, 127), "2001:db8::/127");
        for (ipv4, ipv6) in [(0, 64), (33, 64), (32, 0), (32, 129), (255, 255)] {
            assert_eq!(Prefixes::new(ipv4, ipv6), None);
        }
    }

    #[test]
    fn keys_of_different_lengths_differ() {
        let a = SourceKey::of(address("198.51.0.0"), &Prefixes::new(16, 64).unwrap()).0;
        let b = SourceKey::of(address("198.51.0.0"), &Prefixes::new(32, 64).unwrap()).0;
        assert_ne!(a, b);
    }

    #[test]
    fn impossible_sources() {
        for text in [
            "0.0.0.1",
            "0.255.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "224.0.0.1",
            "239.1.2.3",
            "255.255.255.255",
        ] {
            assert_eq!(
                validity(Version::V4, address(text)),
                Validity::Impossible,
                "{text}"
            );
        }
        for text in [
            "1.0.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "223.255.255.255",
            "240.0.0.1",
            "255.255.255.254",
            "10.0.0.1",
        ] {
            assert_eq!(
                validity(Version::V4, address(text)),
                Validity::Ordinary,
                "{text}"
            );
        }
        for text in ["::1", "ff02::1", "ff00::", "ffff::1"] {
            assert_eq!(
                validity(Version::V6, address(text)),
                Validity::Impossible,
                "{text}"
            );
        }
        assert_eq!(
            validity(Version::V6, address("198.51.100.7")),
            Validity::Impossible,
            "case 38: mapped on the wire"
        );
        for text in [
            "::2",
            "fe80::1",
            "2001:db8::1",
            "::1:0:0:0",
            "fdff::1",
            "1::",
        ] {
            assert_eq!(
                validity(Version::V6, address(text)),
                Validity::Ordinary,
                "{text}"
            );
        }
        assert_eq!(
            validity(Version::V4, address("0.0.0.0")),
            Validity::Unspecified
        );
        assert_eq!(validity(Version::V6, address("::")), Validity::Unspecified);
    }
}
