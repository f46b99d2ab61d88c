//! Frames of several buffers: in a test run the first one holds some 3,500 bytes.

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};
use limiter_lab::frame::{Extension, Frame, tcp_flags::SYN};

use super::{DHCPV6, KEY, KEY6, Outcome, Row, UDP, cut, patched, v4, v6};

/// More than any first buffer.
const BUFFER: usize = 4_096;
/// Where the IPv6 payload length is.
const PAYLOAD: usize = 18;
/// Where the header behind the IPv6 one begins.
const BEHIND_IPV6: usize = 54;

/// Headers in the first buffer, payload in the others.
#[must_use]
pub fn frames() -> Vec<Row> {
    let jumbo = v6()
        .extension(Extension::hop_by_hop())
        .udp(40_000, 53)
        .payload(60_000);
    let mut jumbo = jumbo.build();
    jumbo.resize(70_000, 0);
    let length = u32::try_from(jumbo.len() - BEHIND_IPV6).expect("short");
    let option = [&[UDP, 0, 0xc2, 4], &length.to_be_bytes()[..]].concat();
    let jumbo = patched(patched(jumbo, PAYLOAD, &[0, 0]), BEHIND_IPV6, &option);
    let of = |frame: Frame, length: usize| {
        let headers = frame.build().len();
        frame.payload(length - headers).build()
    };
    let charged = Outcome::Charged(KEY);
    vec![
        Row::new(
            "9,000 bytes of UDP",
            of(v4().udp(40_000, 53), 9_000),
            charged,
        ),
        Row::new(
            "9,000 bytes of TCP",
            of(v4().tcp(40_000, 22, SYN), 9_000),
            charged,
        ),
        Row::new(
            "65,000 bytes of UDP",
            of(v4().udp(40_000, 53), 65_000),
            charged,
        ),
        Row::new(
            "65,000 bytes of IPv6",
            of(v6().udp(40_000, 53), 65_000),
            Outcome::Charged(KEY6),
        ),
        Row::new(
            "70,000 bytes, a jumbo payload",
            jumbo,
            Outcome::Charged(KEY6),
        ),
        Row::new(
            "9,000 bytes of something else",
            of(Frame::other(0x8906), 9_000),
            Outcome::Passed,
        )
        .odd(Odd::OtherEtherType),
        Row::new(
            "9,000 bytes, header of 4 words",
            patched(of(v4().udp(40_000, 53), 9_000), 14, &[0x44]),
            Outcome::Dropped(Reason::Malformed),
        ),
    ]
}

/// Headers that no first buffer holds are read all the same.
#[must_use]
pub fn headers_beyond_the_first_buffer() -> Vec<Row> {
    let chain = |length: usize| {
        let mut frame = v6();
        for _ in 0..length {
            frame = frame.extension(Extension::generic(60, 2_048));
        }
        frame
    };
    let need = Outcome::Need(Need::Dhcp);
    let charged = Outcome::Charged(KEY6);
    let malformed = Outcome::ChargedMalformed(KEY6);
    let udp = chain(8).udp(546, 547).build();
    let ports = BEHIND_IPV6 + 8 * 2_048;
    assert!(ports > 2 * BUFFER, "the ports are beyond the first buffer");
    let later = chain(2)
        .fragment(8, false)
        .protocol(UDP)
        .payload_bytes(&DHCPV6);
    let cut_first = chain(2).fragment(0, true).protocol(UDP).payload(4);
    vec![
        Row::new(
            "DHCPv6 behind 2 x 2,048 bytes",
            chain(2).udp(546, 547).build(),
            need,
        ),
        Row::new("DHCPv6 behind 8 x 2,048 bytes", udp.clone(), need),
        Row::new(
            "TCP behind 8 x 2,048 bytes",
            chain(8).tcp(40_000, 22, SYN).build(),
            charged,
        ),
        Row::new(
            "ping behind 8 x 2,048 bytes",
            chain(8).echo_request(1, 1).build(),
            charged,
        ),
        Row::new("9 x 2,048 bytes", chain(9).udp(546, 547).build(), charged)
            .odd(Odd::ExtChainLimit),
        Row::new(
            "cut inside the ports",
            cut(udp.clone(), ports + 7),
            malformed,
        ),
        Row::new("cut inside the chain", cut(udp, 10_000), malformed),
        Row::new(
            "later fragment behind 2 x 2,048 bytes",
            later.build(),
            charged,
        )
        .odd(Odd::LaterFragment),
        Row::new(
            "first fragment behind 2 x 2,048 bytes",
            cut_first.build(),
            charged,
        )
        .odd(Odd::CutFirstFragment),
    ]
}
