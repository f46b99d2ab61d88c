//! What the host itself needs, and what looks like it.

use std::net::{Ipv4Addr, Ipv6Addr};

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};
use limiter_lab::{
    Mac,
    frame::{Extension, Frame},
};

use super::{ATTACKER, ATTACKER6, HOST, HOST6, KEY, KEY6, Outcome, Row, cut, patched, v4, v6};

const DISCOVERY: Outcome = Outcome::Need(Need::NeighbourDiscovery);
const PATH_MTU: Outcome = Outcome::Need(Need::PathMtu);
const VRRP: Outcome = Outcome::Need(Need::Vrrp);
const CHARGED: Outcome = Outcome::Charged(KEY);
const CHARGED6: Outcome = Outcome::Charged(KEY6);
const NOBODY: Outcome = Outcome::Dropped(Reason::InvalidSource);

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ROUTER_KEY: &str = "fe80::1";
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const VRRP_GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 18);
const VRRP_GROUP6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x12);
const VRRP_PROTOCOL: u8 = 112;

const BRIDGES: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0]);
const SLOW_GROUP: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x02]);
const PORT_GROUP: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x03]);
const LLDP_GROUP: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
/// A configuration BPDU behind its LLC header.
const BPDU: [u8; 38] = {
    let mut bytes = [0; 38];
    bytes[0] = 0x42;
    bytes[1] = 0x42;
    bytes[2] = 0x03;
    bytes
};

/// A packet of each need.
#[must_use]
pub fn one_of_each() -> [(Need, Vec<u8>); Need::COUNT] {
    Need::ALL.map(|need| {
        let frame = match need {
            Need::Arp => Frame::arp_request(ATTACKER, HOST),
            Need::NeighbourDiscovery => Frame::neighbour_solicitation(ROUTER, HOST6),
            Need::PathMtu => v4().packet_too_big(1_280).payload(28),
            Need::Dhcp => v4().udp(67, 68).payload(240),
            Need::Lacp => Frame::other(0x8809).to(SLOW_GROUP).payload(110),
            Need::Lldp => Frame::other(0x88cc).to(LLDP_GROUP).payload(46),
            Need::Eapol => Frame::other(0x888e).to(PORT_GROUP).payload(46),
            Need::Stp => Frame::other(38).to(BRIDGES).payload_bytes(&BPDU),
            Need::Vrrp => vrrp_packet(),
        };
        (need, frame.build())
    })
}

/// Requests, replies, and the least that says ARP.
#[must_use]
pub fn arp() -> Vec<Row> {
    let need = Outcome::Need(Need::Arp);
    let request = Frame::arp_request(ATTACKER, HOST);
    vec![
        Row::new("who has the host", request.build(), need),
        Row::new("padded to 60", request.padded_to(60).build(), need),
        Row::new(
            "reply",
            Frame::arp_reply(ATTACKER, HOST, Mac([2; 6])).build(),
            need,
        ),
        Row::new(
            "probe",
            Frame::arp_request(Ipv4Addr::UNSPECIFIED, HOST).build(),
            need,
        ),
        Row::new(
            "announcement",
            Frame::arp_request(ATTACKER, ATTACKER).build(),
            need,
        ),
        Row::new("the type alone", Frame::other(0x0806).build(), need),
    ]
}

/// All five messages, with hop limit 255.
#[must_use]
pub fn neighbour_discovery() -> Vec<Row> {
    let options = Frame::neighbour_solicitation(ROUTER, HOST6).extension(Extension::destination());
    let mut rows = vec![
        Row::new(
            "router solicitation",
            Frame::router_solicitation(ROUTER).build(),
            DISCOVERY,
        ),
        Row::new(
            "router advertisement",
            Frame::router_advertisement(ROUTER).build(),
            DISCOVERY,
        ),
        Row::new(
            "neighbour solicitation",
            Frame::neighbour_solicitation(ROUTER, HOST6).build(),
            DISCOVERY,
        ),
        Row::new(
            "neighbour advertisement",
            Frame::neighbour_advertisement(ROUTER, HOST6).build(),
            DISCOVERY,
        ),
        Row::new("redirect", message(ROUTER, HOST6, 137).build(), DISCOVERY),
        Row::new("behind destination options", options.build(), DISCOVERY),
    ];
    for kind in 133..=137 {
        let name = format!("type {kind} from a global address");
        rows.push(Row::new(
            name,
            message(ATTACKER6, HOST6, kind).build(),
            DISCOVERY,
        ));
    }
    rows
}

/// From nobody yet, to a solicited-node group and nobody else.
#[must_use]
pub fn duplicate_address_detection() -> Vec<Row> {
    let nobody = Ipv6Addr::UNSPECIFIED;
    let detection = Frame::neighbour_solicitation(nobody, HOST6);
    let group = |text: &str| text.parse::<Ipv6Addr>().expect("a group");
    let to = |destination| message(nobody, destination, 135).build();
    let mut rows = vec![
        Row::new("to the target's group", detection.build(), DISCOVERY),
        Row::new("to the first group", to(group("ff02::1:ff00:0")), DISCOVERY),
        Row::new(
            "to the last group",
            to(group("ff02::1:ffff:ffff")),
            DISCOVERY,
        ),
        Row::new("to the host itself", to(HOST6), NOBODY),
        Row::new("to all nodes", to(ALL_NODES), NOBODY),
        Row::new("below the groups", to(group("ff02::1:feff:ffff")), NOBODY),
        Row::new("above the groups", to(group("ff02::2:ff00:1")), NOBODY),
        Row::new(
            "to a group of the site",
            to(group("ff05::1:ff00:1")),
            NOBODY,
        ),
        Row::new("forwarded", detection.clone().ttl(254).build(), NOBODY),
        Row::new("fragment", detection.fragment(0, true).build(), NOBODY),
    ];
    for kind in [133, 134, 136, 137] {
        let bytes = message(nobody, group("ff02::1:ff00:1"), kind).build();
        rows.push(Row::new(format!("type {kind}"), bytes, NOBODY));
    }
    rows
}

/// Forwarded, of other types, in the wrong family: ordinary packets.
#[must_use]
pub fn look_alikes_of_neighbour_discovery() -> Vec<Row> {
    let solicitation = Frame::neighbour_solicitation(ROUTER, HOST6);
    let router = Outcome::Charged(ROUTER_KEY);
    let mut rows = Vec::new();
    for limit in [0, 1, 64, 254] {
        let name = format!("hop limit {limit}");
        rows.push(Row::new(
            name,
            solicitation.clone().ttl(limit).build(),
            router,
        ));
    }
    for kind in [0, 1, 3, 128, 132, 138, 255] {
        let bytes = message(ROUTER, HOST6, kind).build();
        rows.push(Row::new(format!("type {kind}"), bytes, router));
    }
    let code = Frame::ipv6(ROUTER, HOST6)
        .ttl(255)
        .icmp(135, 1, [0; 4])
        .payload(16);
    rows.push(Row::new("code 1", code.build(), router));
    let icmpv6_in_ipv4 = v4()
        .ttl(255)
        .protocol(58)
        .payload_bytes(&[135, 0, 0, 0, 0, 0, 0, 0]);
    rows.push(
        Row::new("ICMPv6 in IPv4", icmpv6_in_ipv4.build(), CHARGED).odd(Odd::UnknownProtocol),
    );
    let icmp_in_ipv6 = v6()
        .ttl(255)
        .protocol(1)
        .payload_bytes(&[135, 0, 0, 0, 0, 0, 0, 0]);
    rows.push(Row::new("ICMP in IPv6", icmp_in_ipv6.build(), CHARGED6).odd(Odd::UnknownProtocol));
    rows.push(Row::new(
        "type 135 of ICMP",
        v4().ttl(255).icmp(135, 0, [0; 4]).build(),
        CHARGED,
    ));
    let group = Frame::neighbour_solicitation(ALL_NODES, HOST6).build();
    rows.push(Row::new("from a group", group, NOBODY));
    let loopback = Frame::neighbour_solicitation(Ipv6Addr::LOCALHOST, HOST6).build();
    rows.push(Row::new("from loopback", loopback, NOBODY));
    let short = cut(message(ROUTER, HOST6, 135).build(), 54 + 7);
    rows.push(Row::new(
        "cut short",
        short,
        Outcome::ChargedMalformed(ROUTER_KEY),
    ));
    rows
}

/// To its group, from a neighbour.
#[must_use]
pub fn vrrp() -> Vec<Row> {
    let v6 = |destination| {
        Frame::ipv6(ROUTER, destination)
            .ttl(255)
            .protocol(VRRP_PROTOCOL)
    };
    let ordinary =
        |name, frame: Frame| Row::new(name, frame.build(), CHARGED).odd(Odd::UnknownProtocol);
    let elsewhere = |to: [u8; 4]| Frame::ipv4(ATTACKER, to).ttl(255).protocol(VRRP_PROTOCOL);
    let behind = v6(VRRP_GROUP6)
        .extension(Extension::authentication(12))
        .payload(20);
    let mut rows = vec![
        Row::new("advertisement", vrrp_packet().build(), VRRP),
        Row::new("of IPv6", v6(VRRP_GROUP6).payload(20).build(), VRRP),
        Row::new("of IPv6, authenticated", behind.build(), VRRP),
        Row::new("in a tag", vrrp_packet().tagged(&[7]).build(), VRRP).odd(Odd::OneTag),
        ordinary("to the host", elsewhere(HOST.octets())),
        ordinary("to the group before", elsewhere([224, 0, 0, 17])),
        ordinary("to the group behind", elsewhere([224, 0, 0, 19])),
        ordinary("of another protocol", vrrp_packet().protocol(113)),
        Row::new(
            "of IPv6, to another group",
            v6(ALL_NODES).payload(20).build(),
            Outcome::Charged(ROUTER_KEY),
        )
        .odd(Odd::UnknownProtocol),
        Row::new(
            "of IPv6, forwarded",
            v6(VRRP_GROUP6).ttl(254).payload(20).build(),
            Outcome::Charged(ROUTER_KEY),
        )
        .odd(Odd::UnknownProtocol),
    ];
    for ttl in [0, 1, 64, 254] {
        rows.push(ordinary("forwarded", vrrp_packet().ttl(ttl)));
    }
    let from_nobody = Frame::ipv4(Ipv4Addr::UNSPECIFIED, VRRP_GROUP)
        .ttl(255)
        .protocol(112);
    rows.push(Row::new("from nobody", from_nobody.build(), NOBODY).odd(Odd::UnknownProtocol));
    rows
}

/// "Fragmentation needed" and "packet too big", from any router on the way.
#[must_use]
pub fn path_mtu() -> Vec<Row> {
    let quoted = v4().udp(1, 2).payload(8).build();
    let icmp = |kind, code| v4().icmp(kind, code, [0; 4]).payload(28).build();
    let icmpv6 = |kind, code| v6().icmp(kind, code, [0; 4]).payload(48).build();
    let needed = v4().packet_too_big(1_280).payload_bytes(&quoted[14..]);
    let mut rows = vec![
        Row::new("fragmentation needed", needed.build(), PATH_MTU),
        Row::new(
            "fragmentation needed, options",
            needed.options(3).build(),
            PATH_MTU,
        ),
        Row::new(
            "packet too big",
            v6().packet_too_big(1_280).payload(48).build(),
            PATH_MTU,
        ),
        Row::new("packet too big, code to be ignored", icmpv6(2, 9), PATH_MTU),
        Row::new(
            "packet too big from the link",
            message(ROUTER, HOST6, 2).build(),
            PATH_MTU,
        ),
    ];
    for code in [0, 1, 2, 3, 5, 13] {
        rows.push(Row::new(
            format!("unreachable, code {code}"),
            icmp(3, code),
            CHARGED,
        ));
    }
    for kind in [0, 2, 4, 5, 8, 11, 12] {
        rows.push(Row::new(
            format!("ICMP type {kind}, code 4"),
            icmp(kind, 4),
            CHARGED,
        ));
    }
    for kind in [1, 3, 4, 128, 129] {
        rows.push(Row::new(
            format!("ICMPv6 type {kind}"),
            icmpv6(kind, 4),
            CHARGED6,
        ));
    }
    for source in [
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::BROADCAST,
    ] {
        let bytes = Frame::ipv4(source, HOST)
            .packet_too_big(1_280)
            .payload(28)
            .build();
        rows.push(Row::new(
            format!("fragmentation needed from {source}"),
            bytes,
            NOBODY,
        ));
    }
    let nobody = Frame::ipv6(Ipv6Addr::UNSPECIFIED, HOST6)
        .packet_too_big(1_280)
        .payload(48);
    rows.push(Row::new(
        "packet too big from nobody",
        nobody.build(),
        NOBODY,
    ));
    rows
}

/// LACP, LLDP, 802.1X, spanning tree.
#[must_use]
pub fn of_the_link() -> Vec<Row> {
    let stp = Frame::other(38).to(BRIDGES).payload_bytes(&BPDU);
    let llc = |name, bytes| Row::new(name, bytes, Outcome::Passed).odd(Odd::Llc);
    let mut rows: Vec<Row> = one_of_each()
        .into_iter()
        .filter(|(need, _)| matches!(need, Need::Lacp | Need::Lldp | Need::Eapol | Need::Stp))
        .map(|(need, bytes)| Row::new(need.name(), bytes, Outcome::Need(need)))
        .collect();
    for (name, ether_type, need) in [
        ("LACP", 0x8809, Need::Lacp),
        ("LLDP", 0x88cc, Need::Lldp),
        ("802.1X", 0x888e, Need::Eapol),
    ] {
        let bytes = Frame::other(ether_type).build();
        rows.push(Row::new(
            format!("{name}, the type alone"),
            bytes,
            Outcome::Need(need),
        ));
    }
    rows.extend([
        Row::new(
            "STP in a tag",
            stp.clone().tagged(&[7]).build(),
            Outcome::Need(Need::Stp),
        )
        .odd(Odd::OneTag),
        llc("BPDU to somebody else", stp.clone().to(SLOW_GROUP).build()),
        llc(
            "another LLC address to all bridges",
            patched(stp.build(), 14, &[0x42, 0x43]),
        ),
        llc("the bridges' group and one byte", cut(stp.build(), 15)),
    ]);
    rows
}

fn vrrp_packet() -> Frame {
    Frame::ipv4(ATTACKER, VRRP_GROUP)
        .ttl(255)
        .protocol(VRRP_PROTOCOL)
        .payload(20)
}

/// An `ICMPv6` message that no router has forwarded.
fn message(source: Ipv6Addr, destination: Ipv6Addr, kind: u8) -> Frame {
    Frame::ipv6(source, destination)
        .ttl(255)
        .icmp(kind, 0, [0; 4])
        .payload(16)
}
