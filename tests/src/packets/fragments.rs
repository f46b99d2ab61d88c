//! Fragments of both families.

use limiter_common::{counters::Odd, needs::Need};
use limiter_lab::frame::{Extension, Frame};

use super::{
    ATTACKER, ATTACKER6, DHCP, DHCPV6, HOST6, KEY, KEY6, Outcome, Row, TCP, UDP, patched, v4, v6,
};

/// Where the total length of an IPv4 packet is.
const TOTAL: usize = 16;
/// Where the header behind the IPv6 one begins.
const BEHIND_IPV6: usize = 54;
const ICMP: u8 = 1;
/// IPv6 destination options.
const DESTINATION: u8 = 60;

/// A datagram of 3000 bytes in pieces: all of them cost their source a token.
#[must_use]
pub fn charged_alike() -> Vec<Row> {
    let mut rows = Vec::new();
    for (family, frame, key) in [("IPv4", v4(), KEY), ("IPv6", v6(), KEY6)] {
        let pieces = frame.udp(40_000, 53).payload(3_000).fragments(1_480);
        assert_eq!(pieces.len(), 3);
        for (number, piece) in pieces.into_iter().enumerate() {
            let row = Row::new(
                format!("{family} piece {number}"),
                piece,
                Outcome::Charged(key),
            );
            rows.push(if number == 0 {
                row
            } else {
                row.odd(Odd::LaterFragment)
            });
        }
    }
    rows
}

/// What looks like ports in a later fragment is payload.
#[must_use]
pub fn later_payloads_are_no_ports() -> Vec<Row> {
    let later = |name: &str, frame: Frame, key| {
        Row::new(name, frame.build(), Outcome::Charged(key)).odd(Odd::LaterFragment)
    };
    let mut rows = vec![
        later(
            "IPv4, shaped as DHCP",
            v4().fragment(1_480, false)
                .protocol(UDP)
                .payload_bytes(&DHCP),
            KEY,
        ),
        later(
            "IPv4 in the middle",
            v4().fragment(1_480, true)
                .protocol(UDP)
                .payload_bytes(&DHCP),
            KEY,
        ),
        later(
            "IPv4 with options",
            v4().options(10)
                .fragment(8, false)
                .protocol(UDP)
                .payload_bytes(&DHCP),
            KEY,
        ),
        later(
            "IPv4 at the last offset",
            v4().fragment(65_528, false)
                .protocol(UDP)
                .payload_bytes(&DHCP),
            KEY,
        ),
        later(
            "IPv6, shaped as DHCPv6",
            v6().fragment(1_480, false)
                .protocol(UDP)
                .payload_bytes(&DHCPV6),
            KEY6,
        ),
        later(
            "IPv6, naming an extension that is not there",
            v6().fragment(8, false)
                .protocol(DESTINATION)
                .payload_bytes(&DHCPV6),
            KEY6,
        ),
        later(
            "IPv6 behind options",
            v6().extension(Extension::hop_by_hop())
                .fragment(8, true)
                .protocol(UDP)
                .payload_bytes(&DHCPV6),
            KEY6,
        ),
    ];
    let empty = v4().fragment(1_480, false).protocol(UDP);
    rows.push(later("IPv4 without payload", empty, KEY));
    rows
}

/// Eight bytes are no TCP header, and need not be one.
#[must_use]
pub fn short_last_one_is_whole() -> Vec<Row> {
    let mut rows = Vec::new();
    for length in [1, 8] {
        let v4 = v4().fragment(185 * 8, false).protocol(TCP).payload(length);
        let v6 = v6().fragment(185 * 8, false).protocol(TCP).payload(length);
        for (family, frame, key) in [("IPv4", v4, KEY), ("IPv6", v6, KEY6)] {
            let name = format!("{family}, {length} bytes, padded to 60");
            let bytes = frame.padded_to(60).build();
            rows.push(Row::new(name, bytes, Outcome::Charged(key)).odd(Odd::LaterFragment));
        }
    }
    rows
}

/// The fragment header as the case gives it.
#[must_use]
pub fn ipv6() -> Vec<Row> {
    let first = v6()
        .fragment(0, true)
        .udp(40_000, 53)
        .payload(1_000)
        .build();
    assert_eq!(first[BEHIND_IPV6..BEHIND_IPV6 + 4], [UDP, 0, 0, 1]);
    let later = v6()
        .fragment(0x05a8, false)
        .protocol(UDP)
        .payload(500)
        .build();
    assert_eq!(later[BEHIND_IPV6..BEHIND_IPV6 + 4], [UDP, 0, 0x05, 0xa8]);
    vec![
        Row::new("first", first, Outcome::Charged(KEY6)),
        Row::new("later", later, Outcome::Charged(KEY6)).odd(Odd::LaterFragment),
    ]
}

/// A fragment header on a datagram that is whole (RFC 6946): no fragment.
#[must_use]
pub fn atomic() -> Vec<Row> {
    let dhcp = v6().fragment(0, false).udp(546, 547).build();
    let need = Outcome::Need(Need::Dhcp);
    let reserved = patched(dhcp.clone(), BEHIND_IPV6 + 3, &[0x06]);
    let after_a_fragment = v6().fragment(0, true).fragment(0, false).udp(546, 547);
    let twice = v6().fragment(0, false).fragment(0, false).udp(546, 547);
    vec![
        Row::new("atomic", dhcp, need),
        Row::new("atomic, reserved bits set", reserved, need),
        Row::new("atomic twice", twice.build(), need),
        Row::new(
            "atomic inside a first fragment",
            after_a_fragment.build(),
            Outcome::Charged(KEY6),
        ),
    ]
}

/// Too short for its ports: the source pays, ports are unknown.
#[must_use]
pub fn first_cut_short() -> Vec<Row> {
    let first_v4 = |protocol| v4().fragment(0, true).protocol(protocol);
    let first_v6 = |protocol| v6().fragment(0, true).protocol(protocol);
    let inside_options = [UDP, 10, 0, 0, 0, 0, 0, 0];
    // The packet ends before what looks like its ports; the frame goes on.
    let beyond = first_v4(UDP).payload_bytes(&DHCP).build();
    let beyond = patched(beyond, TOTAL, &20_u16.to_be_bytes());
    [
        (
            "IPv4, 8 bytes of TCP",
            first_v4(TCP).payload(8).build(),
            KEY,
        ),
        (
            "IPv4, 19 bytes of TCP",
            first_v4(TCP).payload(19).build(),
            KEY,
        ),
        (
            "IPv4, 4 bytes of UDP",
            first_v4(UDP).payload_bytes(&DHCP[..4]).build(),
            KEY,
        ),
        (
            "IPv4, 4 bytes of ICMP",
            first_v4(ICMP).payload(4).build(),
            KEY,
        ),
        ("IPv4, no payload", first_v4(UDP).build(), KEY),
        ("IPv4, shaped as DHCP behind its end", beyond, KEY),
        (
            "IPv6, 8 bytes of TCP",
            first_v6(TCP).payload(8).build(),
            KEY6,
        ),
        ("IPv6, no payload", first_v6(UDP).build(), KEY6),
        (
            "IPv6, ends inside destination options",
            first_v6(DESTINATION).payload_bytes(&inside_options).build(),
            KEY6,
        ),
        (
            "IPv6, ends before destination options",
            first_v6(DESTINATION).build(),
            KEY6,
        ),
    ]
    .map(|(name, bytes, key)| {
        Row::new(name, bytes, Outcome::Charged(key)).odd(Odd::CutFirstFragment)
    })
    .into()
}

/// Those who are entitled to a need do not fragment it; neighbour discovery may not be (RFC 6980).
#[must_use]
pub fn serve_no_need() -> Vec<Row> {
    let solicitation = Frame::neighbour_solicitation(ATTACKER6, HOST6);
    let vrrp = Frame::ipv4(ATTACKER, [224, 0, 0, 18])
        .ttl(255)
        .protocol(112);
    let charged = |name, frame: Frame, key| Row::new(name, frame.build(), Outcome::Charged(key));
    let mut rows = Vec::new();
    for (name, more) in [("first", true), ("last", false)] {
        let offset = if more { 0 } else { 8 };
        let cases = [
            ("DHCP", v4().udp(68, 67), KEY),
            ("DHCPv6", v6().udp(546, 547), KEY6),
            ("path MTU", v4().packet_too_big(1_280).payload(28), KEY),
            (
                "path MTU of IPv6",
                v6().packet_too_big(1_280).payload(48),
                KEY6,
            ),
            ("neighbour solicitation", solicitation.clone(), KEY6),
        ];
        for (kind, frame, key) in cases {
            let row = charged(
                format!("{kind}, {name} fragment"),
                frame.fragment(offset, more),
                key,
            );
            rows.push(if more {
                row
            } else {
                row.odd(Odd::LaterFragment)
            });
        }
    }
    let vrrp = charged(
        "VRRP, first fragment".into(),
        vrrp.fragment(0, true).payload(16),
        KEY,
    );
    rows.push(vrrp.odd(Odd::UnknownProtocol));
    rows
}
