//! IP addresses of both families in one 128-bit form.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address as two words, most significant first, in host order.
///
/// An IPv4 address takes its IPv4-mapped form (`::ffff:a.b.c.d`, RFC 4291 section 2.5.5.2). Nothing else uses that
/// form: as a source on the wire it is impossible, so the two families cannot collide.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The first 64 bits.
    pub high: u64,
    /// The last 64 bits.
    pub low: u64,
}

const MAPPED: u64 = 0xffff_0000_0000;

impl Address {
    /// An IPv4 address from its 32 bits in host order.
    #[inline(always)]
    #[must_use]
    pub const fn from_v4(bits: u32) -> Self {
        Self {
            high: 0,
            low: MAPPED | bits as u64,
        }
    }

    /// An IPv6 address from its 16 bytes in network order.
    #[inline(always)]
    #[must_use]
    pub const fn from_v6(b: [u8; 16]) -> Self {
        Self {
            high: u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            low: u64::from_be_bytes([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]]),
        }
    }

    /// Whether the address has the IPv4-mapped form.
    #[inline(always)]
    #[must_use]
    pub const fn is_mapped(self) -> bool {
        self.high == 0 && self.low >> 32 == MAPPED >> 32
    }

    /// The 32 bits of an IPv4 address in host order; meaningless unless [`Self::is_mapped`].
    #[inline(always)]
    #[must_use]
    pub const fn v4_bits(self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low half is the IPv4 address"
        )]
        {
            self.low as u32
        }
    }

    /// The address with only the first `mask` bits kept.
    #[inline(always)]
    #[must_use]
    pub const fn masked(self, mask: Self) -> Self {
        Self {
            high: self.high & mask.high,
            low: self.low & mask.low,
        }
    }

    /// The mask of the first `len` bits, 0 to 128; more counts as 128.
    #[must_use]
    pub const fn mask(len: u32) -> Self {
        let high = if len >= 64 {
            u64::MAX
        } else {
            !(u64::MAX >> len)
        };
        let low = match len {
            0..=64 => 0,
            65..=127 => !(u64::MAX >> (len - 64)),
            _ => u64::MAX,
        };
        Self { high, low }
    }
}

impl From<IpAddr> for Address {
    /// An IPv4-mapped IPv6 address becomes the IPv4 address it stands for.
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::from_v4(v4.to_bits()),
            IpAddr::V6(v6) => Self::from_v6(v6.octets()),
        }
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> Self {
        if address.is_mapped() {
            Self::V4(Ipv4Addr::from_bits(address.v4_bits()))
        } else {
            Self::V6(Ipv6Addr::from_bits(
                u128::from(address.high) << 64 | u128::from(address.low),
            ))
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        IpAddr::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_exact_at_every_length() {
        for len in 0..=128 {
            let mask = Address::mask(len);
            let bits = u128::from(mask.high) << 64 | u128::from(mask.low);
            assert_eq!(bits.leading_ones(), len);
            assert_eq!(
                bits.count_ones(),
                len,
                "case 90: no shift by the whole width"
            );
        }
    }

    #[test]
    fn both_families_survive_the_round_trip() {
        for text in [
            "0.0.0.0",
            "10.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "2001:db8::7",
            "fe80::1",
        ] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(IpAddr::from(Address::from(ip)), ip);
        }
        let mapped: IpAddr = "::ffff:198.51.100.7".parse().unwrap();
        let plain: IpAddr = "198.51.100.7".parse().unwrap();
        assert_eq!(
            IpAddr::from(Address::from(mapped)),
            plain,
            "case 38: the mapped form means IPv4"
        );
    }

    #[test]
    fn byte_order_is_that_of_the_text() {
        // Case 34: 10.0.0.1 is not 1.0.0.10.
        assert_eq!(
            Address::from_v4(0x0a00_0001),
            "10.0.0.1".parse::<IpAddr>().unwrap().into()
        );
        assert_ne!(
            Address::from_v4(0x0a00_0001),
            "1.0.0.10".parse::<IpAddr>().unwrap().into()
        );
    }
}
