//! Address prefixes as people write them: exactly, or not at all.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::{fault::Fault, reader::Node};

/// An array of prefixes.
pub(super) fn read_all(node: &Node<'_>) -> Result<Vec<IpNet>, Fault> {
    const WANTED: &str = "an array of prefixes such as [\"198.51.100.0/24\", \"2001:db8::/32\"]";
    node.elements(WANTED)?
        .iter()
        .map(|element| {
            let text = element.string("a prefix such as \"198.51.100.0/24\"")?;
            parse(text).map_err(|reason| element.fault(reason))
        })
        .collect()
}

/// A prefix, or an address as the prefix of just itself.
fn parse(text: &str) -> Result<IpNet, String> {
    let (address, length) = match text.split_once('/') {
        None => (text, None),
        Some((address, length)) => (address, Some(length)),
    };
    let address: IpAddr = address.parse().map_err(|_reason_is_ours: std::net::AddrParseError| {
        format!("`{text}` is not an address or prefix: write for example 198.51.100.7, 198.51.100.0/24 or 2001:db8::/32")
    })?;
    let (family, longest) = match address {
        IpAddr::V4(_) => ("IPv4", 32),
        IpAddr::V6(_) => ("IPv6", 128),
    };
    let net = match length {
        None => IpNet::from(address),
        Some(length) => parse_length(length)
            .and_then(|length| IpNet::new(address, length).ok())
            .ok_or_else(|| {
                format!("`{text}`: the length of an {family} prefix is a whole number from 0 to {longest}")
            })?,
    };
    if net.addr() != net.network() {
        return Err(format!(
            "`{text}` has bits beyond its length: write {} for the prefix, or {address} for the one address",
            net.trunc()
        ));
    }
    refuse_mapped(net).map_err(|reason| format!("`{text}` {reason}"))?;
    Ok(net)
}

/// Digits only: `+24` and `024` mean nothing here.
fn parse_length(text: &str) -> Option<u8> {
    let digits = text.chars().all(|c| c.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits && !leading_zero {
        text.parse().ok()
    } else {
        None
    }
}

/// IPv4 takes the IPv4-mapped form inside, so an IPv6 prefix must not reach into it.
fn refuse_mapped(net: IpNet) -> Result<(), String> {
    const MAPPED_LENGTH: u8 = 96;
    let IpNet::V6(net) = net else {
        return Ok(());
    };
    if let Some(address) = net.addr().to_ipv4_mapped() {
        return match net
            .prefix_len()
            .checked_sub(MAPPED_LENGTH)
            .map(|length| Ipv4Net::new(address, length))
        {
            Some(Ok(net)) => Err(format!(
                "is IPv4 written as IPv6, which is no source on the wire: write {net}"
            )),
            _ => Err("is IPv4 written as IPv6, which is no source on the wire".to_owned()),
        };
    }
    let mapped = std::net::Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);
    if net.contains(&mapped) {
        return Err("would cover all IPv4-mapped addresses: write 2000::/3 for all of the public IPv6 internet".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn prefixes() {
        for (text, shown) in [
            ("203.0.113.7", "203.0.113.7/32"),
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("2000::/3", "2000::/3"),
            ("::1", "::1/128"),
            ("::/96", "::/96"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_refused() {
        for (text, part) in [
            ("", "not an address"),
            ("example.net", "not an address"),
            ("203.0.113", "not an address"),
            (" 203.0.113.1", "not an address"),
            ("fe80::1%eth0", "not an address"),
            ("010.0.0.1", "not an address"),
            ("203.0.113.0/33", "0 to 32"),
            ("203.0.113.0/", "0 to 32"),
            ("203.0.113.0/+8", "0 to 32"),
            ("203.0.113.0/024", "0 to 32"),
            ("203.0.113.0/255.255.255.0", "0 to 32"),
            ("2001:db8::/129", "0 to 128"),
            (
                "203.0.113.7/24",
                "write 203.0.113.0/24 for the prefix, or 203.0.113.7 for the one address",
            ),
            ("2001:db8::1/32", "write 2001:db8::/32 for the prefix"),
            ("::ffff:203.0.113.7", "write 203.0.113.7/32"),
            ("::ffff:203.0.113.0/120", "write 203.0.113.0/24"),
            ("::/0", "would cover all IPv4-mapped"),
            ("::/80", "would cover all IPv4-mapped"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
