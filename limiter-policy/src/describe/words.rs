//! Parts of a policy in words.

use limiter_common::meter::Algorithm;

use crate::spec::{ANY_PORT, Cost, Packets, PortMatch, Protocol, ServiceSpec, Terms};

/// The name of a kind of packets in files, status and logs.
pub(crate) const fn kind(packets: &Packets) -> &'static str {
    match packets {
        Packets::Any => "any",
        Packets::TcpSyn => "tcp-syn",
        Packets::TcpEstablished => "tcp-established",
        Packets::Udp => "udp",
        Packets::Answers(_) => "answers",
        Packets::Icmp => "icmp",
        Packets::Fragments => "fragments",
        Packets::Portless => "portless",
    }
}

/// Packets, in words.
pub(super) fn packets(packets: &Packets) -> String {
    match packets {
        Packets::Any => "all packets".to_owned(),
        Packets::Answers(ports) => format!("UDP answers from ports {}", ranges(ports)),
        Packets::TcpSyn => "TCP connection attempts (tcp-syn)".to_owned(),
        Packets::TcpEstablished => "TCP of connections (tcp-established)".to_owned(),
        Packets::Udp => "UDP".to_owned(),
        Packets::Icmp => "ICMP".to_owned(),
        Packets::Fragments => "fragments".to_owned(),
        Packets::Portless => "packets without ports (portless)".to_owned(),
    }
}

/// A port or range, or `any`.
fn range((first, last): (u16, u16)) -> String {
    if (first, last) == ANY_PORT {
        "any".to_owned()
    } else if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// Ports and ranges.
pub(super) fn ranges(ports: &[(u16, u16)]) -> String {
    let ports: Vec<_> = ports.iter().copied().map(range).collect();
    ports.join(", ")
}

/// A protocol and ports as they are written in files.
pub(super) fn port_match(of: &PortMatch) -> String {
    let protocol = match of.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    let destination = range(of.destination);
    if of.source == ANY_PORT {
        format!("{protocol}/{destination}")
    } else {
        format!("{protocol}/{destination} from {}", range(of.source))
    }
}

/// What a service matches.
pub(super) fn service_matches(service: &ServiceSpec) -> String {
    let matches: Vec<_> = service.matches.iter().map(port_match).collect();
    let mut text = matches.join(", ");
    if !service.destinations.is_empty() {
        let destinations: Vec<_> = service
            .destinations
            .iter()
            .map(ToString::to_string)
            .collect();
        text.push_str("; at ");
        text.push_str(&destinations.join(", "));
    }
    text
}

/// The name of the key that sizes the terms of an algorithm.
pub(super) fn size_key(terms: &Terms) -> &'static str {
    match terms.meter.algorithm() {
        Algorithm::LeakyBucket => "queue",
        _ => "burst",
    }
}

/// Terms as they are written in files.
pub(super) fn terms(terms: &Terms) -> String {
    match &terms.size {
        None => terms.rate.to_string(),
        Some(size) => format!("{}, {} {size}", terms.rate, size_key(terms)),
    }
}

/// The most that terms admit of packets of this cost, in the time that their rate names.
pub(super) fn most(terms: &Terms, cost: Cost) -> String {
    let (period, time) = terms.rate.time();
    let amount = |tokens: u128| match cost {
        Cost::Fixed(cost) => format!("{}", tokens / u128::from(cost).max(1)),
        Cost::Length => format!("{tokens} bytes"),
    };
    let rate = terms.rate.rate;
    let in_time =
        (u128::from(rate.tokens) * u128::from(period)).div_ceil(u128::from(rate.period).max(1));
    let size = terms
        .size
        .as_ref()
        .map_or(0, |size| u128::from(size.amount));
    match terms.meter.algorithm() {
        Algorithm::TokenBucket => format!("at most {} in any {time}", amount(in_time + size)),
        Algorithm::LeakyBucket => format!("at most {} in any {time}", amount(in_time + size + 1)),
        Algorithm::FixedWindow => format!(
            "at most {} in one {time} of the clock, {} in any {time}",
            amount(in_time),
            amount(2 * in_time)
        ),
        Algorithm::SlidingWindow => format!(
            "at most {0} in one {time} of the clock, by estimate {0} in any {time}",
            amount(in_time)
        ),
        Algorithm::SlidingLog => format!("at most {} in any {time}", amount(in_time)),
    }
}

/// A duration as it is written in files: `1h30m`. Days are the longest unit, since months are of no fixed length.
pub(super) fn duration(nanoseconds: u64) -> String {
    const UNITS: [(&str, u64); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut rest = nanoseconds;
    let mut text = String::new();
    for (unit, length) in UNITS {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            text.push_str(&count.to_string());
            text.push_str(unit);
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}
