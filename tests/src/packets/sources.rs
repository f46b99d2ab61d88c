//! Source addresses: who they are, and who cannot be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use limiter_common::counters::{Odd, Reason};
use limiter_lab::frame::{Extension, Frame};

use super::{
    HOST, HOST6, KEY, KEY6, Outcome, Row, SERVICE_VLAN, UDP, VLAN, cut, v4, v6, with_tags,
};

const IMPOSSIBLE: Outcome = Outcome::Dropped(Reason::InvalidSource);

/// Addresses that are each other's mirror image.
#[must_use]
pub fn byte_order() -> Vec<Row> {
    ["10.0.0.1", "1.0.0.10", "10.1.0.0", "100.1.10.1"]
        .map(|address| charged(address, address))
        .into()
}

/// Every way in which a packet of the attacker can come in leads to the same key, all of whose bytes are written.
#[must_use]
pub fn one_key_by_any_path() -> Vec<Row> {
    let odd = |name, bytes, outcome, odd| Row::new(name, bytes, outcome).odd(odd);
    let [four, six] = [KEY, KEY6].map(Outcome::Charged);
    let tagged = with_tags(&v4().udp(1, 2).build(), &[SERVICE_VLAN, VLAN]);
    let later = v4().fragment(8, false).protocol(UDP).payload(8).build();
    vec![
        Row::new("UDP", v4().udp(1, 2).build(), four),
        Row::new("ping", v4().echo_request(1, 1).build(), four),
        Row::new("options", v4().options(10).udp(1, 2).build(), four),
        odd("tags", tagged, four, Odd::TwoTags),
        odd("fragment", later, four, Odd::LaterFragment),
        odd(
            "unknown protocol",
            v4().protocol(99).build(),
            four,
            Odd::UnknownProtocol,
        ),
        Row::new(
            "malformed",
            cut(v4().udp(1, 2).build(), 41),
            Outcome::ChargedMalformed(KEY),
        ),
        Row::new("IPv6", v6().udp(1, 2).build(), six),
        Row::new(
            "extension",
            v6().extension(Extension::routing()).udp(1, 2).build(),
            six,
        ),
    ]
}

/// The rules that make a source of an address, with the default prefixes.
#[must_use]
pub fn who_shares() -> Vec<Row> {
    [
        ("198.51.100.8", "198.51.100.8"),
        ("2001:db8:a:1::1", "2001:db8:a:1::/64"),
        ("2001:db8:a:1:ffff:ffff:ffff:ffff", "2001:db8:a:1::/64"),
        ("2001:db8:a:2::1", "2001:db8:a:2::/64"),
        ("fe80::1", "fe80::1"),
        ("fe80::2", "fe80::2"),
        ("fe80:0:0:9::2", "fe80:0:0:9::2"),
        ("febf:ffff::1", "febf:ffff::1"),
        ("fec0::1", "fec0::/64"),
        ("fe7f::1", "fe7f::/64"),
        ("fd00::1", "fd00::/64"),
        ("64:ff9b::c633:6407", "64:ff9b::c633:6407"),
        ("64:ff9b::c633:6408", "64:ff9b::c633:6408"),
        ("64:ff9b:1::c633:6407", "64:ff9b:1::/64"),
        ("64:ff9b::1:c633:6407", "64:ff9b::/64"),
        ("2002:c633:6407::1", "2002:c633:6407::/48"),
        ("2002:c633:6407:ffff::1", "2002:c633:6407::/48"),
        ("2002:c633:6408::1", "2002:c633:6408::/48"),
        ("2003::1", "2003::/64"),
    ]
    .map(|(address, key)| charged(address, key))
    .into()
}

/// IPv4 addresses in IPv6 clothes.
#[must_use]
pub fn mapped() -> Vec<Row> {
    let mut rows: Vec<Row> = [
        "::ffff:198.51.100.7",
        "::ffff:0.0.0.0",
        "::ffff:255.255.255.255",
        "::ffff:127.0.0.1",
    ]
    .map(refused)
    .into();
    // Compatible (RFC 4291 section 2.5.5.1) and translated (RFC 2765 section 2.1) addresses are old, not impossible.
    rows.push(charged("::198.51.100.7", "::/64"));
    rows.push(charged("::ffff:0:198.51.100.7", "::/64"));
    rows
}

/// Groups, everybody, and oneself.
fn impossible_addresses() -> Vec<Row> {
    [
        "0.0.0.0",
        "0.0.0.1",
        "0.255.255.255",
        "127.0.0.0",
        "127.0.0.1",
        "127.255.255.255",
        "224.0.0.0",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "::",
        "::1",
        "ff00::",
        "ff02::1",
        "ff0e::1",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ]
    .map(refused)
    .into()
}

/// The nearest neighbours of those who cannot be, and of those who are easily mistaken.
#[must_use]
pub fn edge_of_the_possible() -> Vec<Row> {
    let mut rows: Vec<Row> = [
        "1.0.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "223.255.255.255",
        "240.0.0.0",
        "255.255.255.254",
        "198.51.100.0",
        "198.51.100.255",
    ]
    .map(|address| charged(address, address))
    .into();
    for (address, key) in [
        ("::2", "::/64"),
        ("::1:0", "::/64"),
        ("::1:0:0:0:0", "0:0:0:1::/64"),
        ("::fffe:198.51.100.7", "::/64"),
        ("0:0:0:1:0:ffff:c633:6407", "0:0:0:1::/64"),
        ("feff::1", "feff::/64"),
    ] {
        rows.push(charged(address, key));
    }
    rows
}

/// The impossible, with every kind of packet that could make a difference.
#[must_use]
pub fn impossible() -> Vec<Row> {
    let mut rows = impossible_addresses();
    let loopback = || Frame::ipv4(Ipv4Addr::LOCALHOST, HOST);
    let unknown = loopback().protocol(99).build();
    rows.push(Row::new("unknown protocol", unknown, IMPOSSIBLE).odd(Odd::UnknownProtocol));
    let later = loopback()
        .fragment(8, false)
        .protocol(UDP)
        .payload(8)
        .build();
    rows.push(Row::new("later fragment", later, IMPOSSIBLE).odd(Odd::LaterFragment));
    let cut_short = cut(loopback().udp(1, 2).build(), 40);
    rows.push(Row::new(
        "malformed",
        cut_short,
        Outcome::Dropped(Reason::Malformed),
    ));
    let group = Frame::ipv6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), HOST6);
    let tagged = with_tags(&group.udp(1, 2).build(), &[VLAN]);
    rows.push(Row::new("tagged", tagged, IMPOSSIBLE).odd(Odd::OneTag));
    rows
}

fn charged(address: &'static str, key: &'static str) -> Row {
    Row::new(address, from(address), Outcome::Charged(key))
}

fn refused(address: &'static str) -> Row {
    Row::new(address, from(address), IMPOSSIBLE)
}

/// An ordinary packet from this address.
fn from(address: &str) -> Vec<u8> {
    let frame = match address.parse().expect("an address") {
        IpAddr::V4(source) => Frame::ipv4(source, HOST),
        IpAddr::V6(source) => Frame::ipv6(source, HOST6),
    };
    frame.udp(40_000, 53).build()
}
