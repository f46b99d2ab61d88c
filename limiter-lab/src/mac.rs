//! Hardware addresses.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Everybody.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Where frames to an IPv4 multicast group go.
    #[must_use]
    pub fn of_ipv4_group(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// Where frames to an IPv6 multicast group go.
    #[must_use]
    pub fn of_ipv6_group(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }

    /// The link-local address that an interface of this hardware address gives itself (modified EUI-64).
    #[must_use]
    pub fn link_local(self) -> Ipv6Addr {
        let mut octets = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0];
        octets[8..11].copy_from_slice(&self.0[..3]);
        octets[13..].copy_from_slice(&self.0[3..]);
        octets[8] ^= 2;
        octets.into()
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.map(|byte| format!("{byte:02x}")).join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_is_made_of_the_hardware_address() {
        let mac = Mac([0x02, 0, 0, 0, 0, 0x01]);
        assert_eq!(
            mac.link_local(),
            "fe80::ff:fe00:1".parse::<Ipv6Addr>().expect("valid")
        );
        assert_eq!(mac.to_string(), "02:00:00:00:00:01");
    }
}
