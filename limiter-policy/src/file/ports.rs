//! Protocols and ports of services: `tcp/80,443`, `udp/27015-27030`, `udp/any from 53`.

use crate::spec::{ANY_PORT, PortMatch, Protocol};

/// A line of `match`: one protocol, destination ports, and perhaps source ports.
pub(super) fn parse_match(text: &str) -> Result<Vec<PortMatch>, String> {
    let example = "write for example tcp/22, tcp/80,443, udp/27015-27030 or udp/any from 53";
    let (protocol, ports) = text
        .split_once('/')
        .ok_or_else(|| format!("`{text}` is not a protocol and ports: {example}"))?;
    let protocol = match protocol {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "icmp" | "icmpv6" => {
            return Err(
                "icmp has no ports, so it is of no service: have a limit with packets = \"icmp\""
                    .to_owned(),
            );
        }
        other => {
            return Err(format!(
                "`{other}` is not a protocol with ports: use tcp or udp"
            ));
        }
    };
    let (destination, source) = match ports.split_once(" from ") {
        Some((destination, source)) => (destination, parse_ports(source)?),
        None => (ports, vec![ANY_PORT]),
    };
    let destination = parse_ports(destination)?;
    let pairs = destination
        .iter()
        .flat_map(|destination| source.iter().map(|source| (*destination, *source)));
    let matches = pairs.map(|(destination, source)| PortMatch {
        protocol,
        destination,
        source,
    });
    Ok(matches.collect())
}

/// `any`, or ports and ranges separated by commas.
fn parse_ports(text: &str) -> Result<Vec<(u16, u16)>, String> {
    if text.trim() == "any" {
        return Ok(vec![ANY_PORT]);
    }
    text.split(',').map(parse_range).collect()
}

/// A port, or the first and last of a range.
pub(super) fn parse_range(text: &str) -> Result<(u16, u16), String> {
    let text = text.trim();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (Some(first), Some(last)) = (parse_port(first), parse_port(last)) else {
        return Err(format!(
            "`{text}` is not a port or range: write whole numbers from 0 to 65535, such as 22 or 5000-5010"
        ));
    };
    if first > last {
        return Err(format!(
            "`{text}` ends before it begins: write {last}-{first}"
        ));
    }
    Ok((first, last))
}

/// Digits only, which `u16::from_str` is not strict about.
fn parse_port(text: &str) -> Option<u16> {
    if text.chars().all(|c| c.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Ports = (u16, u16);

    fn ports(text: &str) -> Vec<(Protocol, Ports, Ports)> {
        let matches = parse_match(text).unwrap();
        let parts = |m: &PortMatch| (m.protocol, m.destination, m.source);
        matches.iter().map(parts).collect()
    }

    #[test]
    fn as_people_write_them() {
        use Protocol::{Tcp, Udp};
        assert_eq!(ports("tcp/22"), [(Tcp, (22, 22), ANY_PORT)]);
        assert_eq!(ports("udp/27015-27030"), [(Udp, (27015, 27030), ANY_PORT)]);
        assert_eq!(
            ports("tcp/80, 443"),
            [(Tcp, (80, 80), ANY_PORT), (Tcp, (443, 443), ANY_PORT)]
        );
        assert_eq!(ports("udp/any from 53"), [(Udp, ANY_PORT, (53, 53))]);
        assert_eq!(
            ports("tcp/1024-65535 from 20"),
            [(Tcp, (1024, 65535), (20, 20))]
        );
        assert_eq!(ports("tcp/any from any"), [(Tcp, ANY_PORT, ANY_PORT)]);
        assert_eq!(ports("udp/1,2 from 3,4-5").len(), 4);
    }
}
