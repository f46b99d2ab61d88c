//! IPv6 headers and their extensions.

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
    parse::MAX_EXTENSIONS,
};
use limiter_lab::frame::{Extension, tcp_flags::SYN};

use super::{DHCPV6, KEY6, Outcome, Row, TCP, UDP, cut, patched, v6};

const CHARGED: Outcome = Outcome::Charged(KEY6);
const MALFORMED: Outcome = Outcome::ChargedMalformed(KEY6);
const DHCP_NEED: Outcome = Outcome::Need(Need::Dhcp);

/// Where the header begins.
const AT: usize = 14;
/// Where the payload length is.
const PAYLOAD: usize = AT + 4;
/// Where the header ends.
const BEHIND: usize = AT + 40;

/// Extension headers of the common layout: hop-by-hop, routing, destination options, mobility, HIP, Shim6.
const COMMON: [u8; 6] = [0, 43, 60, 135, 139, 140];

/// Each extension header, in front of each protocol that is read.
#[must_use]
pub fn extensions_hide_nothing() -> Vec<Row> {
    let mut rows = vec![
        Row::new("TCP", v6().tcp(40_000, 22, SYN).build(), CHARGED),
        Row::new("DHCPv6", v6().udp(546, 547).build(), DHCP_NEED),
    ];
    for number in COMMON {
        for length in [8, 16, 64, 264] {
            let frame = v6().extension(Extension::generic(number, length));
            let behind = format!("behind extension {number} of {length} bytes");
            let tcp = frame.clone().tcp(40_000, 22, SYN).build();
            rows.push(Row::new(format!("TCP {behind}"), tcp, CHARGED));
            let ping = frame.clone().echo_request(1, 1).build();
            rows.push(Row::new(format!("ping {behind}"), ping, CHARGED));
            let dhcp = frame.udp(546, 547).build();
            rows.push(Row::new(format!("DHCPv6 {behind}"), dhcp, DHCP_NEED));
        }
    }
    rows
}

/// Its length counts words of 4 bytes, less 2; the others' units of 8, less 1.
#[must_use]
pub fn authentication_has_its_own_unit() -> Vec<Row> {
    let integrity = [0, 4, 12, 16, 20, 32, 64, 1012];
    let mut rows = Vec::new();
    for bytes in integrity {
        let frame = v6().extension(Extension::authentication(bytes));
        let behind = format!("behind an authentication header with {bytes} bytes");
        let tcp = frame.clone().tcp(40_000, 22, SYN).build();
        rows.push(Row::new(format!("TCP {behind}"), tcp, CHARGED));
        let dhcp = frame.udp(546, 547).build();
        rows.push(Row::new(format!("DHCPv6 {behind}"), dhcp, DHCP_NEED));
    }
    // Read in units of 8, this one would end in the middle of what follows.
    let frame = v6().extension(Extension::authentication(12));
    let mut forged = frame.udp(40_000, 53).payload(24).build();
    let at = BEHIND + 40;
    forged = patched(forged, at, &DHCPV6);
    rows.push(Row::new(
        "ports where a wrong unit would find them",
        forged,
        CHARGED,
    ));
    rows
}

/// Whatever the order, up to the bound.
#[must_use]
pub fn any_order() -> Vec<Row> {
    let extensions = [
        Extension::hop_by_hop(),
        Extension::destination(),
        Extension::routing(),
        Extension::authentication(12),
        Extension::generic(135, 16),
        Extension::generic(139, 40),
        Extension::generic(140, 8),
        Extension::destination(),
    ];
    assert!(
        extensions.len() <= MAX_EXTENSIONS as usize,
        "within the bound"
    );
    let chain = |extensions: &[Extension]| {
        let mut frame = v6();
        for extension in extensions {
            frame = frame.extension(extension.clone());
        }
        frame.udp(546, 547).build()
    };
    let mut reversed = extensions.clone();
    reversed.reverse();
    vec![
        Row::new("one of each", chain(&extensions), DHCP_NEED),
        Row::new("one of each, reversed", chain(&reversed), DHCP_NEED),
        Row::new(
            "hop-by-hop eight times",
            chain(&vec![Extension::hop_by_hop(); 8]),
            DHCP_NEED,
        ),
    ]
}

/// A length field of 255 means 2048 bytes, not none.
#[must_use]
pub fn longest_extension() -> Vec<Row> {
    let frame = v6().extension(Extension::generic(60, 2048));
    let dhcp = frame.clone().udp(546, 547).build();
    let tcp = frame.tcp(40_000, 22, SYN).build();
    let forged = patched(dhcp.clone(), BEHIND + 8, &DHCPV6);
    let forged = cut(forged, 64);
    vec![
        Row::new("DHCPv6 behind 2048 bytes", dhcp.clone(), DHCP_NEED),
        Row::new("TCP behind 2048 bytes", tcp, CHARGED),
        Row::new("2048 bytes cut to a frame of 64", cut(dhcp, 64), MALFORMED),
        Row::new("the same, shaped as DHCPv6 at its start", forged, MALFORMED),
    ]
}

/// As many as the bound are walked; with one more, nothing is known of ports.
#[must_use]
pub fn chain_longer_than_the_bound() -> Vec<Row> {
    let chain = |length: u32| {
        let mut frame = v6();
        for _ in 0..length {
            frame = frame.extension(Extension::destination());
        }
        frame.udp(546, 547)
    };
    let too_long = chain(MAX_EXTENSIONS + 1).build();
    let last = BEHIND + 8 * MAX_EXTENSIONS as usize;
    // The header that is not read looks like ports.
    let forged = patched(too_long.clone(), last, &DHCPV6);
    let limit = |name, bytes| Row::new(name, bytes, CHARGED).odd(Odd::ExtChainLimit);
    vec![
        Row::new(
            "as many as the bound",
            chain(MAX_EXTENSIONS).build(),
            DHCP_NEED,
        ),
        limit("one more", too_long.clone()),
        limit("one more, shaped as DHCPv6", forged),
        limit("one more, not there", cut(too_long, last)),
        limit("a hundred", chain(100).build()),
    ]
}

/// A source that sends them pays for them.
#[must_use]
pub fn extension_past_the_end() -> Vec<Row> {
    let mut rows = Vec::new();
    for number in COMMON {
        let frame = v6().extension(Extension::generic(number, 88)).udp(546, 547);
        let short = cut(frame.build(), BEHIND + 8);
        rows.push(Row::new(
            format!("extension {number}, 8 of 88 bytes"),
            short,
            MALFORMED,
        ));
        let shorter = cut(frame.build(), BEHIND + 2);
        rows.push(Row::new(
            format!("extension {number}, 2 bytes of it"),
            shorter,
            MALFORMED,
        ));
    }
    let authentication = v6().extension(Extension::authentication(16)).udp(546, 547);
    let short = cut(authentication.build(), BEHIND + 27);
    rows.push(Row::new(
        "authentication header, all but one byte",
        short,
        MALFORMED,
    ));
    // The frame goes on, the packet does not.
    let padded = v6()
        .extension(Extension::generic(60, 16))
        .udp(546, 547)
        .build();
    let padded = patched(padded, PAYLOAD, &8_u16.to_be_bytes());
    rows.push(Row::new("past the payload length", padded, MALFORMED));
    let second = v6()
        .extension(Extension::hop_by_hop())
        .extension(Extension::generic(60, 48))
        .udp(546, 547);
    let second = cut(second.build(), BEHIND + 20);
    rows.push(Row::new("the second one", second, MALFORMED));
    rows
}

/// Not IPv6 at all: there is no source to charge.
#[must_use]
pub fn contradictions() -> Vec<Row> {
    let packet = v6().tcp(40_000, 22, SYN).build();
    (0..=15_u8)
        .filter(|version| *version != 6)
        .map(|version| {
            let bytes = patched(packet.clone(), AT, &[version << 4]);
            let nobody = Outcome::Dropped(Reason::Malformed);
            Row::new(format!("version {version}"), bytes, nobody)
        })
        .collect()
}

/// Ports are read inside the packet only, never from what the link added.
#[must_use]
pub fn payload_length_bounds_the_packet() -> Vec<Row> {
    let dhcp = v6().udp(546, 547).build();
    let tcp = v6().tcp(40_000, 22, SYN).build();
    let with = |bytes: &[u8], length: u16| patched(bytes.to_vec(), PAYLOAD, &length.to_be_bytes());
    vec![
        Row::new("none", with(&dhcp, 0), MALFORMED),
        Row::new("UDP one byte short", with(&dhcp, 7), MALFORMED),
        Row::new("UDP to the byte", with(&dhcp, 8), DHCP_NEED),
        Row::new("TCP one byte short", with(&tcp, 19), MALFORMED),
        Row::new("TCP to the byte", with(&tcp, 20), CHARGED),
        Row::new("beyond the frame", with(&tcp, 1_460), CHARGED),
        Row::new("the longest", with(&dhcp, u16::MAX), DHCP_NEED),
    ]
}

/// A payload length of 0 in front of hop-by-hop options (RFC 2675).
#[must_use]
pub fn jumbo_payloads() -> Vec<Row> {
    let frame = v6().extension(Extension::hop_by_hop()).udp(546, 547);
    let jumbo = |length: u32| {
        let mut option = vec![UDP, 0, 0xc2, 4];
        option.extend(length.to_be_bytes());
        let bytes = patched(frame.build(), PAYLOAD, &[0, 0]);
        patched(bytes, BEHIND, &option)
    };
    vec![
        Row::new("jumbo option", jumbo(65_536), DHCP_NEED),
        Row::new(
            "hop-by-hop without the option",
            patched(frame.build(), PAYLOAD, &[0, 0]),
            DHCP_NEED,
        ),
        Row::new(
            "cut inside the ports",
            cut(jumbo(65_536), BEHIND + 10),
            MALFORMED,
        ),
        Row::new(
            "destination options announce nothing",
            patched(
                v6().extension(Extension::destination())
                    .udp(546, 547)
                    .build(),
                PAYLOAD,
                &[0, 0],
            ),
            MALFORMED,
        ),
    ]
}

/// "No next header", ESP, and what belongs to IPv4.
#[must_use]
pub fn protocols_without_ports() -> Vec<Row> {
    const READ: [u8; 6] = [TCP, UDP, 58, 132, 33, 136];
    const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
    let mut rows = Vec::new();
    let unread = |name: String, bytes| Row::new(name, bytes, CHARGED).odd(Odd::UnknownProtocol);
    for number in (0..=u8::MAX).filter(|n| !READ.contains(n) && !EXTENSIONS.contains(n)) {
        let packet = v6().protocol(number).payload_bytes(&DHCPV6).build();
        rows.push(unread(format!("protocol {number}"), packet));
    }
    rows.push(unread(
        "no next header, no payload".into(),
        v6().protocol(59).build(),
    ));
    let behind = v6().extension(Extension::destination()).protocol(59);
    rows.push(unread(
        "no next header behind options".into(),
        behind.build(),
    ));
    for number in READ {
        let packet = v6().protocol(number).payload(20).build();
        rows.push(Row::new(format!("protocol {number}"), packet, CHARGED));
    }
    rows
}
