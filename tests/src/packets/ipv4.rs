//! IPv4 headers.

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};
use limiter_lab::frame::tcp_flags::SYN;

use super::{DHCP, KEY, Outcome, Row, TCP, UDP, cut, patched, v4};

const CHARGED: Outcome = Outcome::Charged(KEY);
const MALFORMED: Outcome = Outcome::ChargedMalformed(KEY);
const NOBODY: Outcome = Outcome::Dropped(Reason::Malformed);

/// Where the header begins.
const AT: usize = 14;
/// Where the total length is.
const TOTAL: usize = AT + 2;
const ICMP: u8 = 1;
/// Protocols of which only the ports are read: SCTP, DCCP, UDP-Lite.
const PORTS_ONLY: [u8; 3] = [132, 33, 136];

/// The source counts, whatever the protocol.
#[must_use]
pub fn every_protocol_is_charged() -> Vec<Row> {
    let mut rows = vec![
        Row::new("TCP SYN", v4().tcp(40_000, 22, SYN).build(), CHARGED),
        Row::new(
            "TCP without flags",
            v4().tcp(40_000, 22, 0).build(),
            CHARGED,
        ),
        Row::new("UDP", v4().udp(40_000, 53).build(), CHARGED),
        Row::new("UDP from port 0", v4().udp(0, 0).build(), CHARGED),
        Row::new("ping", v4().echo_request(1, 1).payload(56).build(), CHARGED),
    ];
    for number in PORTS_ONLY {
        let packet = v4().protocol(number).payload(8).build();
        rows.push(Row::new(format!("protocol {number}"), packet, CHARGED));
    }
    let known: Vec<u8> = PORTS_ONLY.into_iter().chain([ICMP, TCP, UDP]).collect();
    for number in (0..=u8::MAX).filter(|number| !known.contains(number)) {
        let name = format!("protocol {number}");
        let packet = v4().protocol(number).payload(8).build();
        rows.push(Row::new(name, packet, CHARGED).odd(Odd::UnknownProtocol));
    }
    let bare = v4().protocol(255).build();
    rows.push(Row::new("nothing behind the header", bare, CHARGED).odd(Odd::UnknownProtocol));
    rows
}

/// All eleven header lengths.
#[must_use]
pub fn options_do_not_move_the_ports() -> Vec<Row> {
    let mut rows = Vec::new();
    for words in 0..=10 {
        let tcp = v4().options(words).tcp(40_000, 22, SYN).build();
        let dhcp = v4().options(words).udp(68, 67).build();
        rows.push(Row::new(
            format!("TCP behind {words} options"),
            tcp,
            CHARGED,
        ));
        let name = format!("DHCP behind {words} options");
        rows.push(Row::new(name, dhcp, Outcome::Need(Need::Dhcp)));
    }
    // Options shaped as DHCP are none.
    let mut shaped = v4().options(2).udp(40_000, 53).build();
    shaped = patched(shaped, AT + 20, &DHCP);
    rows.push(Row::new("options shaped as DHCP", shaped, CHARGED));
    rows
}

/// Headers that say they are shorter or longer than can be: there is no source to charge.
#[must_use]
pub fn contradictions() -> Vec<Row> {
    let packet = v4().tcp(40_000, 22, SYN).build();
    let mut rows = Vec::new();
    for ihl in 0..5 {
        let bytes = patched(packet.clone(), AT, &[0x40 | ihl]);
        rows.push(Row::new(format!("header of {ihl} words"), bytes, NOBODY));
    }
    for version in (0..=15).filter(|version| *version != 4) {
        let bytes = patched(packet.clone(), AT, &[version << 4 | 5]);
        rows.push(Row::new(format!("version {version}"), bytes, NOBODY));
    }
    for total in 0..20_u16 {
        let bytes = patched(packet.clone(), TOTAL, &total.to_be_bytes());
        rows.push(Row::new(format!("total length {total}"), bytes, NOBODY));
    }
    let options = v4().options(10).tcp(40_000, 22, SYN).build();
    for total in [20_u16, 40, 59] {
        let bytes = patched(options.clone(), TOTAL, &total.to_be_bytes());
        let name = format!("total length {total} with a header of 60");
        rows.push(Row::new(name, bytes, NOBODY));
    }
    for length in [AT + 20, AT + 40, AT + 59] {
        let name = format!("header of 60 in a frame of {length}");
        rows.push(Row::new(name, cut(options.clone(), length), NOBODY));
    }
    rows
}

/// Ports are read inside the packet only, never from what the link added.
#[must_use]
pub fn total_length_bounds_the_packet() -> Vec<Row> {
    let dhcp = v4().udp(68, 67).padded_to(60).build();
    let with_total =
        |bytes: &[u8], total: u16| patched(bytes.to_vec(), TOTAL, &total.to_be_bytes());
    let mut rows = vec![
        Row::new(
            "padded to 60",
            v4().udp(40_000, 53).padded_to(60).build(),
            CHARGED,
        ),
        Row::new("DHCP padded to 60", dhcp.clone(), Outcome::Need(Need::Dhcp)),
        Row::new(
            "no UDP header, padding shaped as DHCP",
            with_total(&dhcp, 20),
            MALFORMED,
        ),
        Row::new("DHCP one byte short", with_total(&dhcp, 27), MALFORMED),
        Row::new(
            "DHCP to the byte",
            with_total(&dhcp, 28),
            Outcome::Need(Need::Dhcp),
        ),
        Row::new(
            "total length beyond the frame",
            with_total(&v4().udp(40_000, 53).payload(40).build(), 1500),
            CHARGED,
        ),
        Row::new(
            "the longest total length",
            with_total(&dhcp, u16::MAX),
            Outcome::Need(Need::Dhcp),
        ),
    ];
    let tcp = v4().tcp(40_000, 22, SYN).padded_to(60).build();
    rows.push(Row::new(
        "TCP one byte short",
        with_total(&tcp, 39),
        MALFORMED,
    ));
    rows.push(Row::new("TCP to the byte", with_total(&tcp, 40), CHARGED));
    let ping = v4().echo_request(1, 1).padded_to(60).build();
    rows.push(Row::new(
        "ping one byte short",
        with_total(&ping, 27),
        MALFORMED,
    ));
    rows.push(Row::new("ping to the byte", with_total(&ping, 28), CHARGED));
    for number in PORTS_ONLY {
        for (length, outcome) in [(3, MALFORMED), (4, CHARGED)] {
            let packet = v4().protocol(number).payload(length).padded_to(60);
            let name = format!("protocol {number} of {length} bytes");
            rows.push(Row::new(name, packet.build(), outcome));
        }
    }
    rows
}

/// "Don't fragment", and the bit that means nothing.
#[must_use]
pub fn flags_that_make_no_fragment() -> Vec<Row> {
    let dhcp = v4().udp(68, 67).build();
    let flags = [
        ("none", 0x0000_u16),
        ("don't fragment", 0x4000),
        ("reserved", 0x8000),
        ("both", 0xc000),
    ];
    flags
        .map(|(name, flags)| {
            let bytes = patched(dhcp.clone(), AT + 6, &flags.to_be_bytes());
            Row::new(format!("flags: {name}"), bytes, Outcome::Need(Need::Dhcp))
        })
        .into()
}
