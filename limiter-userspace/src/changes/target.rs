//! Whom a change is about: an address or a prefix.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use ipnet::{IpNet, Ipv4Net};
use limiter_policy::prefix::Prefix;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text;

/// An address or a prefix. IPv4-mapped IPv6 is IPv4; bits beyond the length are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(IpNet);

impl Target {
    /// The target that is this prefix, or of these addresses if bits beyond its length are set.
    #[must_use]
    pub fn new(net: IpNet) -> Self {
        Self(net.trunc())
    }

    /// As a prefix.
    #[must_use]
    pub const fn net(self) -> IpNet {
        self.0
    }

    /// The address, if it is one.
    #[must_use]
    pub fn address(self) -> Option<IpAddr> {
        (self.0.prefix_len() == self.0.max_prefix_len()).then(|| self.0.addr())
    }

    /// Whether every address of `other` is one of this target.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.0.contains(&other.0)
    }
}

impl From<IpAddr> for Target {
    /// One address.
    fn from(address: IpAddr) -> Self {
        Self::new(IpNet::from(address.to_canonical()))
    }
}

impl From<Prefix> for Target {
    fn from(prefix: Prefix) -> Self {
        let length = if prefix.address.is_mapped() && prefix.length >= 96 {
            prefix.length - 96
        } else {
            prefix.length
        };
        let address = IpAddr::from(prefix.address);
        Self::new(IpNet::new_assert(address, length))
    }
}

impl fmt::Display for Target {
    /// As [`Prefix`]: the length is left out where it covers one address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            Some(address) => f.pad(&address.to_string()),
            None => f.pad(&self.0.to_string()),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(format!(
                "{text:?} is not an address or prefix; write for example 198.51.100.7 or 2001:db8::/48"
            ));
        };
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(length) => decimal(length)
                .filter(|length| *length <= longest)
                .ok_or_else(|| format!("{text:?}: a length is a number from 0 to {longest}"))?,
        };
        let net = IpNet::new_assert(address, length);
        if net.trunc() != net {
            return Err(format!(
                "{text:?}: bits beyond the length are set; write {} for the prefix, or {address} for the one address",
                net.trunc()
            ));
        }
        match address {
            IpAddr::V6(address) if address.to_ipv4_mapped().is_some() || mapped(net) => {
                from_mapped(text, address, length)
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Ok(Self(net)),
        }
    }
}

/// A number of plain digits: no sign, no space.
fn decimal(text: &str) -> Option<u8> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Whether a prefix lies around some IPv4-mapped addresses but is longer than what is of all zeros.
fn mapped(net: IpNet) -> bool {
    (81..96).contains(&net.prefix_len())
        && net.contains(&IpAddr::V6(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped()))
}

fn from_mapped(text: &str, address: Ipv6Addr, length: u8) -> Result<Target, String> {
    let (Some(address), Some(length)) = (address.to_ipv4_mapped(), length.checked_sub(96)) else {
        return Err(format!(
            "{text:?} is of IPv4-mapped addresses, which stand for IPv4: write the IPv4 prefix"
        ));
    };
    Ok(Target(Ipv4Net::new_assert(address, length).into()))
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_prefixes() {
        for (text, shown) in [
            ("198.51.100.7", "198.51.100.7"),
            ("198.51.100.7/32", "198.51.100.7"),
            ("198.51.100.0/24", "198.51.100.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:db8::/48", "2001:db8::/48"),
            ("::/0", "::/0"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("::ffff:198.51.100.0/120", "198.51.100.0/24"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), shown, "{text}");
            assert_eq!(Target::from(Prefix::from(target.net())), target, "{text}");
        }
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, part) in [
            ("", "198.51.100.7 or 2001:db8::/48"),
            ("host.example", "198.51.100.7 or 2001:db8::/48"),
            ("198.51.100", "198.51.100.7 or 2001:db8::/48"),
            ("198.51.100.07", "198.51.100.7 or 2001:db8::/48"),
            (" 198.51.100.7", "198.51.100.7 or 2001:db8::/48"),
            ("fe80::1%eth0", "198.51.100.7 or 2001:db8::/48"),
            ("198.51.100.7/33", "0 to 32"),
            ("198.51.100.7/", "0 to 32"),
            ("198.51.100.7/-1", "0 to 32"),
            ("198.51.100.7/+8", "0 to 32"),
            ("198.51.100.0/255.255.255.0", "0 to 32"),
            ("2001:db8::/129", "0 to 128"),
            (
                "198.51.100.7/24",
                "write 198.51.100.0/24 for the prefix, or 198.51.100.7 for",
            ),
            ("2001:db8::1/64", "write 2001:db8::/64"),
            ("::ffff:198.51.100.7/120", "bits beyond"),
            ("::fffe:0:0/95", "write the IPv4 prefix"),
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn prefixes_cover_what_is_inside_them() {
        let target = |text: &str| text.parse::<Target>().unwrap();
        assert!(target("10.0.0.0/8").covers(target("10.1.2.3")));
        assert!(target("10.1.2.3").covers(target("10.1.2.3")));
        assert!(!target("10.1.2.3").covers(target("10.0.0.0/8")));
        assert!(!target("::/0").covers(target("10.1.2.3")));
    }
}
